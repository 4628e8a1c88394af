"""Checkpoint and resume: a run that is saved and continued in new objects ends like one that was never interrupted."""

import io
import tempfile
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim


def make(rng):
    model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Tanh(), nn.Linear(16, 1))
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.from_numpy(rng.standard_normal(tuple(p.shape)) / 4))
    optimizer = optim.AdamW(model.parameters(), lr=1e-2, amsgrad=True)
    warmup = optim.lr_scheduler.LinearLR(optimizer, start_factor=0.1, total_iters=2)
    decay = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=10)
    scheduler = optim.lr_scheduler.SequentialLR(optimizer, [warmup, decay], milestones=[2])
    return model, optimizer, scheduler


def train(model, optimizer, scheduler, x, y, steps):
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.huber_loss(model(x), y)
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    return losses


def main(steps=5):
    data = np.random.default_rng(1)
    x = torch.tensor(data.standard_normal((32, 8)), dtype=torch.float32)
    y = x.sin().sum(1, keepdim=True)
    model, optimizer, scheduler = make(np.random.default_rng(0))
    losses = train(model, optimizer, scheduler, x, y, steps)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "checkpoint.pth.tar"
        state = {
            "epoch": steps,
            "arch": "mlp",
            "state_dict": model.state_dict(),
            "best_acc1": np.float64(0.5).item(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "losses": losses,
        }
        torch.save(state, path)
        uninterrupted = train(model, optimizer, scheduler, x, y, steps)
        checkpoint = torch.load(path, map_location=torch.device("cpu"), weights_only=True)
    buffer = io.BytesIO()
    torch.save(checkpoint["state_dict"], buffer)
    buffer.seek(0)
    model, optimizer, scheduler = make(np.random.default_rng(7))
    model.load_state_dict(torch.load(buffer))
    optimizer.load_state_dict(checkpoint["optimizer"])
    scheduler.load_state_dict(checkpoint["scheduler"])
    resumed = train(model, optimizer, scheduler, x, y, steps)
    assert checkpoint["epoch"] == steps and checkpoint["losses"] == losses
    return losses + resumed, {"same": resumed == uninterrupted, "lr": scheduler.get_last_lr()}
