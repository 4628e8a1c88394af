"""Train an ensemble at once: stacked parameters, functional_call and vmap over models and their batches."""

import copy

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.func import functional_call, grad, grad_and_value, stack_module_state, vmap


class SimpleMLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(64, 24)
        self.drop = nn.Dropout(0.0)
        self.norm = nn.LayerNorm(24)
        self.fc2 = nn.Linear(24, 10)

    def forward(self, x):
        x = x.flatten(1)
        x = F.relu(self.norm(self.fc1(x)))
        return self.fc2(self.drop(x))


def main(steps=5, num_models=4):
    rng = np.random.default_rng(1)
    digits = load_digits()
    data = torch.from_numpy(digits.images[:400].astype(np.float32) / 16)
    targets = torch.from_numpy(digits.target[:400])
    models = [SimpleMLP() for _ in range(num_models)]
    for model in models:
        for p in model.parameters():
            if p.ndim == 2:
                p.data = torch.from_numpy(rng.normal(0, p.shape[1] ** -0.5, p.shape).astype(np.float32))
            elif p is not model.norm.weight:
                nn.init.zeros_(p)
    params, buffers = stack_module_state(models)
    base_model = copy.deepcopy(models[0]).requires_grad_(False)

    def fmodel(params, buffers, x):
        return functional_call(base_model, (params, buffers), (x,))

    def compute_loss(params, buffers, x, y):
        return F.cross_entropy(fmodel(params, buffers, x), y)

    optimizer = torch.optim.Adam(list(params.values()), lr=1e-2)
    losses = []
    for step in range(steps):
        picked = torch.from_numpy(rng.integers(0, 300, (num_models, 32)))
        grads, values = vmap(grad_and_value(compute_loss), randomness="different")(
            params, buffers, data[picked], targets[picked]
        )
        for name, p in params.items():
            p.grad = grads[name]
        optimizer.step()
        losses.append(values.mean().item())

    predictions = vmap(fmodel, in_dims=(0, 0, None))(params, buffers, data[300:])
    probs = predictions.softmax(-1).mean(0)
    disagreement = predictions.argmax(-1).double().var(0).mean()

    # gradients per example of the first model
    first = {name: p[0].detach() for name, p in params.items()}
    per_example = vmap(grad(lambda p, x, y: compute_loss(p, {}, x[None], y[None])), in_dims=(None, 0, 0))(
        first, data[:16], targets[:16]
    )
    norms = torch.sqrt(sum(g.flatten(1).pow(2).sum(1) for g in per_example.values()))
    return losses, {
        "accuracy": (probs.argmax(1) == targets[300:]).float().mean().item(),
        "disagreement": disagreement.item(),
        "norms": norms.detach().numpy(),
    }
