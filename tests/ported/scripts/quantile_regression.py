"""Fit three quantiles and a heteroscedastic normal at once, with crossing penalties, and check their coverage."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


class QuantileLoss(nn.Module):
    def __init__(self, quantiles):
        super().__init__()
        self.quantiles = quantiles

    def forward(self, preds, target):
        assert not target.requires_grad
        assert preds.size(0) == target.size(0)
        losses = []
        for i, q in enumerate(self.quantiles):
            errors = target - preds[:, i]
            losses.append(torch.max((q - 1) * errors, q * errors).unsqueeze(1))
        return torch.mean(torch.sum(torch.cat(losses, dim=1), dim=1))


def pinball(preds, target, taus):
    error = target.unsqueeze(-1) - preds
    return torch.where(error >= 0, taus * error, (taus - 1) * error).mean()


class Net(nn.Module):
    def __init__(self, n_quantiles):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(1, 24), nn.GELU(approximate="tanh"), nn.Linear(24, 24), nn.CELU(0.5))
        self.quantiles = nn.Linear(24, n_quantiles)
        self.normal = nn.Linear(24, 2)

    def forward(self, x):
        h = self.body(x)
        mean, raw = self.normal(h).unbind(-1)
        return self.quantiles(h), mean, F.softplus(raw).add(1e-3)


def main(steps=5):
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(-2, 2, 200)).astype(np.float32)
    y = (np.sin(2 * x) + rng.normal(0, 0.1 + 0.2 * np.abs(x))).astype(np.float32)
    x, y = torch.from_numpy(x)[:, None], torch.from_numpy(y)
    quantiles = [0.1, 0.5, 0.9]
    taus = torch.tensor(quantiles)
    model = Net(len(quantiles))
    for p in model.parameters():
        p.data.copy_(torch.from_numpy(rng.normal(0, 0.4, tuple(p.shape))))
    optimizer = torch.optim.Rprop(model.parameters(), lr=5e-3)
    criterion, normal = QuantileLoss(quantiles), nn.GaussianNLLLoss(full=True)
    losses = []
    for epoch in range(steps):
        preds, mean, var = model(x)
        crossing = F.relu(preds[:, :-1] - preds[:, 1:]).sum(1).mean()
        loss = criterion(preds, y) + pinball(preds, y, taus) + 0.5 * crossing + 0.1 * normal(mean, y, var)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        preds, _, _ = model(x)
    inside = ((y >= preds[:, 0]) & (y <= preds[:, -1])).float()
    residuals = (y - preds[:, 1]).abs()
    return losses, {
        "inside": inside.mean().item(),
        "residuals": torch.quantile(residuals, torch.tensor([0.25, 0.5, 0.75])).tolist(),
        "median": residuals.median().item(),
        "histogram": torch.histc(residuals, bins=5, min=0, max=2).tolist(),
        "buckets": torch.bucketize(residuals[:10], torch.tensor([0.1, 0.5, 1.0])).tolist(),
        "percent": np.percentile(residuals, 90).item(),
    }
