"""A neural ordinary differential equation, integrated by the classical Runge-Kutta method, fitted to a spiral."""

import numpy as np
import torch
from torch import nn, optim


class ODEFunc(nn.Module):
    def __init__(self):
        super(ODEFunc, self).__init__()
        self.net = nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, 2))

    def forward(self, t, y):
        return self.net(y**3)


def rk4_step(func, t, dt, y):
    k1 = func(t, y)
    k2 = func(t + dt / 2, y + dt / 2 * k1)
    k3 = func(t + dt / 2, y + dt / 2 * k2)
    k4 = func(t + dt, y + dt * k3)
    return y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def odeint(func, y0, t):
    ys = [y0]
    for t0, t1 in zip(t[:-1], t[1:]):
        ys.append(rk4_step(func, t0, t1 - t0, ys[-1]))
    return torch.stack(ys, dim=0)


def main(steps=5):
    rng = np.random.default_rng(0)
    true_A = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])
    t = torch.linspace(0.0, 1.5, 16)
    true_y0 = torch.tensor([[2.0, 0.0]])
    with torch.no_grad():
        true_y = odeint(lambda t, y: torch.mm(y**3, true_A), true_y0, t)
    func = ODEFunc()
    for m in func.net.modules():
        if isinstance(m, nn.Linear):
            m.weight.data = torch.from_numpy(0.1 * rng.standard_normal(m.weight.shape)).float()
            nn.init.constant_(m.bias, val=0)
    optimizer = optim.RMSprop(func.parameters(), lr=1e-3)
    losses = []
    for itr in range(1, steps + 1):
        optimizer.zero_grad()
        pred_y = odeint(func, true_y0, t).to(true_y.device)
        loss = torch.mean(torch.abs(pred_y - true_y))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
