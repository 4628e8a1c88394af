"""Find the largest eigenvalue of a loss's Hessian by power iteration in four ways, while the model trains."""

import numpy as np
import torch
import torch.nn as nn
from torch.autograd.functional import hvp as functional_hvp
from torch.func import functional_call, grad, jvp, vjp
from torch.nn.utils import parameters_to_vector, vector_to_parameters


def group_product(xs, ys):
    return sum([torch.sum(x * y) for (x, y) in zip(xs, ys)])


def normalization(v):
    s = group_product(v, v)
    s = s**0.5
    s = s.cpu().item()
    return [vi / (s + 1e-6) for vi in v]


def eigenvalue(loss, params, v, max_iter=20, tol=1e-6):
    gradsH = torch.autograd.grad(loss, params, create_graph=True)
    previous = None
    for _ in range(max_iter):
        v = normalization(v)
        Hv = torch.autograd.grad(gradsH, params, grad_outputs=v, only_inputs=True, retain_graph=True)
        value = group_product(Hv, v).cpu().item()
        if previous is not None and abs(previous - value) / (abs(previous) + 1e-6) < tol:
            break
        previous, v = value, [h.detach() for h in Hv]
    return value, normalization(v)


def main(steps=5):
    rng = np.random.default_rng(7)
    X = torch.from_numpy(rng.standard_normal((64, 3)))
    target = torch.sin(X).sum(1, keepdim=True)
    model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1)).double()
    vector_to_parameters(torch.from_numpy(rng.normal(0, 0.5, 41)), model.parameters())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    start = [torch.from_numpy(rng.standard_normal(p.shape)) for p in model.parameters()]

    losses, largest, others = [], [], []
    for step in range(steps):
        params = list(model.parameters())
        loss = ((model(X) - target) ** 2).mean()
        value, v = eigenvalue(loss, params, start)
        largest.append(value)

        names = [name for name, _ in model.named_parameters()]

        def of_params(*values):
            return ((functional_call(model, dict(zip(names, values)), (X,)) - target) ** 2).mean()

        detached = tuple(p.detach() for p in params)
        arg = tuple(range(len(detached)))
        forward_over_reverse = jvp(grad(of_params, argnums=arg), detached, tuple(v))[1]
        _, pullback = vjp(grad(of_params, argnums=arg), *detached)
        reverse_over_reverse = pullback(tuple(v))
        _, through_functional = functional_hvp(of_params, detached, tuple(v))
        for product in (forward_over_reverse, reverse_over_reverse, through_functional):
            others.append(group_product(product, v).item())

        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    weights = parameters_to_vector(model.parameters())
    return losses, {"largest": largest, "others": others, "norm": torch.linalg.vector_norm(weights).item()}
