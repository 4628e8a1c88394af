"""entmax and pytorch-crf: sparse distributions, their losses, and conditional random fields, with gradients."""

import entmax
import numpy as np
import torch
from seeded import array, fill, integers, trained
from torch import nn
from torchcrf import CRF

FUNCTIONS = {
    "sparsemax": entmax.sparsemax,
    "entmax15": entmax.entmax15,
    "sparsemax by bisection": entmax.sparsemax_bisect,
    "entmax by bisection": entmax.entmax_bisect,
    "normmax by bisection": entmax.normmax_bisect,
    "budget by bisection": lambda x, dim: entmax.budget_bisect(x, budget=2, dim=dim),
}
LOSSES = entmax.SparsemaxLoss, entmax.Entmax15Loss, entmax.SparsemaxBisectLoss, entmax.EntmaxBisectLoss


def distributions():
    """Return values and gradients of entmax's functions and losses, and a trained network with two of them."""
    found, targets = {}, integers(7, 5)
    for name, function in FUNCTIONS.items():
        for dim in (-1, 0):
            x = array(5, 7).requires_grad_()
            y = function(x, dim=dim)
            found[f"{name} {dim}"] = y.detach().numpy()
            found[f"{name} {dim} gradient"] = torch.autograd.grad(y.square().sum(), x)[0].numpy()
    for kind in LOSSES:
        for reduction in ("sum", "elementwise_mean", "none"):
            x = array(5, 7).requires_grad_()
            loss = kind(reduction=reduction)(x, targets)
            found[f"{kind.__name__} {reduction}"] = loss.detach().numpy()
            found[f"{kind.__name__} {reduction} gradient"] = torch.autograd.grad(loss.sum(), x)[0].numpy()
    alpha = torch.tensor(1.3, requires_grad=True)
    y = (entmax.entmax_bisect(array(5, 7), alpha=alpha, dim=-1) * array(5, 7, seed=4)).sum()
    found["by alpha"] = torch.autograd.grad(y, alpha)[0].numpy()
    layers = nn.Linear(7, 7), entmax.Sparsemax(dim=1), nn.Linear(7, 7), entmax.Entmax15(dim=1)
    return {**found, **trained("sparse network", fill(nn.Sequential(*layers)), array(5, 7))}


def fields():
    """Return likelihoods, gradients and best paths of conditional random fields."""
    found = {}
    for batch_first in (False, True):
        crf = fill(CRF(5, batch_first=batch_first))
        scores, tags, mask = array(3, 6, 5), integers(5, 3, 6), torch.ones(3, 6, dtype=torch.bool)
        mask[0, 4:] = mask[1, 5:] = False
        if not batch_first:
            scores, tags, mask = scores.transpose(0, 1), tags.transpose(0, 1), mask.transpose(0, 1)
        scores = scores.clone().requires_grad_()
        for reduction in ("sum", "mean", "token_mean", "none"):
            likelihood = crf(scores, tags, mask=mask, reduction=reduction)
            name = f"field, batch first {batch_first}, {reduction}"
            found[name] = likelihood.detach().numpy()
            inputs = dict(crf.named_parameters()) | {"scores": scores}
            gradients = torch.autograd.grad(likelihood.sum(), list(inputs.values()))
            found.update({f"{name} {key}": g.numpy() for key, g in zip(inputs, gradients, strict=True)})
        paths = crf.decode(scores, mask=mask)
        found[f"paths, batch first {batch_first}"] = np.concatenate(paths)
    return found


def answers():
    """Return the results of both libraries."""
    return distributions() | fields()
