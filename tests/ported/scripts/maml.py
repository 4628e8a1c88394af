"""Model-agnostic meta-learning: gradients through a step of gradient descent, for waves of random phase."""

import numpy as np
import torch
import torch.nn.functional as F


def forward(params, x):
    w1, b1, w2, b2 = params
    return F.linear(torch.tanh(F.linear(x, w1, b1)), w2, b2)


def main(steps=5):
    rng = np.random.default_rng(0)
    shapes = [(16, 1), (16,), (1, 16), (1,)]
    params = [torch.tensor(0.5 * rng.standard_normal(s), dtype=torch.float32).requires_grad_() for s in shapes]
    meta_optimizer = torch.optim.Adam(params, lr=1e-2)
    tasks = [(rng.uniform(0.5, 2.0), rng.uniform(0, np.pi)) for _ in range(4)]
    losses = []
    for _ in range(steps):
        meta_optimizer.zero_grad()
        meta_loss = 0.0
        for amplitude, phase in tasks:
            x = torch.linspace(-2, 2, 20).unsqueeze(1)
            y = amplitude * torch.sin(x + phase)
            support, query = slice(0, None, 2), slice(1, None, 2)
            inner_loss = F.mse_loss(forward(params, x[support]), y[support])
            grads = torch.autograd.grad(inner_loss, params, create_graph=True)
            adapted = [p - 0.1 * g for p, g in zip(params, grads)]
            meta_loss = meta_loss + F.mse_loss(forward(adapted, x[query]), y[query])
        meta_loss = meta_loss / len(tasks)
        meta_loss.backward()
        meta_optimizer.step()
        losses.append(meta_loss.item())
    return losses
