"""A normalizing flow of affine coupling layers (RealNVP) on two moons."""

import math

import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import make_moons


class Coupling(nn.Module):
    def __init__(self, mask, hidden=16):
        super().__init__()
        self.register_buffer("mask", mask)
        self.s = nn.Sequential(nn.Linear(2, hidden), nn.LeakyReLU(), nn.Linear(hidden, 2), nn.Tanh())
        self.t = nn.Sequential(nn.Linear(2, hidden), nn.LeakyReLU(), nn.Linear(hidden, 2))

    def forward(self, z):
        masked = z * self.mask
        s = self.s(masked) * (1 - self.mask)
        t = self.t(masked) * (1 - self.mask)
        return masked + (1 - self.mask) * (z * torch.exp(s) + t), s

    def inverse(self, x):
        masked = self.mask * x
        s = self.s(masked) * (1 - self.mask)
        t = self.t(masked) * (1 - self.mask)
        return (1 - self.mask) * (x - t) * torch.exp(-s) + masked, -s.sum(dim=1)


class RealNVP(nn.Module):
    def __init__(self, masks):
        super().__init__()
        self.layers = nn.ModuleList([Coupling(m) for m in masks])

    def log_prob(self, x):
        log_det = x.new_zeros(x.shape[0])
        for layer in reversed(self.layers):
            x, change = layer.inverse(x)
            log_det += change
        prior = -0.5 * (x**2).sum(dim=1) - math.log(2 * math.pi)
        return prior + log_det

    def sample(self, z):
        for layer in self.layers:
            z, _ = layer(z)
        return z


def main(steps=5):
    rng = np.random.default_rng(0)
    masks = torch.from_numpy(np.array([[0, 1], [1, 0]] * 2).astype(np.float32))
    flow = RealNVP(masks)
    state = {k: torch.from_numpy(0.3 * rng.standard_normal(v.shape)).to(v) for k, v in flow.state_dict().items()}
    state.update({k: v for k, v in flow.state_dict().items() if k.endswith("mask")})
    result = flow.load_state_dict(state)
    assert not result.missing_keys and not result.unexpected_keys
    optimizer = torch.optim.Adam([p for p in flow.parameters() if p.requires_grad], lr=1e-2)
    x = torch.from_numpy(make_moons(128, noise=0.05, random_state=0)[0].astype(np.float32))
    losses = []
    for _ in range(steps):
        loss = -flow.log_prob(x).mean()
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
        losses.append(loss.item())
    flow.eval()
    with torch.no_grad():
        samples = flow.sample(torch.from_numpy(rng.standard_normal((64, 2)).astype("float32"))).detach().cpu().numpy()
    return losses, {"samples": [float(samples.std()), float(abs(samples).mean())]}
