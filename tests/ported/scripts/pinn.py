"""A physics-informed network for u'' = -u with u(0) = 0 and u'(0) = 1: derivatives with respect to inputs in a loss."""

import numpy as np
import torch
import torch.nn as nn


class PINN(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(1, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1)
        )

    def forward(self, t):
        return self.net(t)


def derivative(y, x):
    return torch.autograd.grad(y, x, grad_outputs=torch.ones_like(y), create_graph=True, retain_graph=True)[0]


def main(steps=5):
    rng = np.random.default_rng(0)
    model = PINN().double()
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.from_numpy(0.5 * rng.standard_normal(tuple(p.shape))))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    t = torch.linspace(0, 3, 32, dtype=torch.float64).view(-1, 1).requires_grad_(True)
    t0 = torch.zeros(1, 1, dtype=torch.float64, requires_grad=True)
    losses = []
    for epoch in range(steps):
        optimizer.zero_grad()
        u = model(t)
        u_t = derivative(u, t)
        u_tt = derivative(u_t, t)
        physics = torch.mean((u_tt + u) ** 2)
        u0 = model(t0)
        boundary = torch.squeeze(u0) ** 2 + (torch.squeeze(derivative(u0, t0)) - 1) ** 2
        loss = physics + boundary
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
