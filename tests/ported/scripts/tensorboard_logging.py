"""Training with a TensorBoard log: scalars, histograms, images, a graph's text, hyperparameters."""

import os
import tempfile

import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.utils.tensorboard import SummaryWriter


def main(steps=5):
    rng = np.random.default_rng(0)
    digits = load_digits()
    images = torch.from_numpy(digits.images[:64]).float().unsqueeze(1) / 16
    labels = torch.from_numpy(digits.target[:64])
    model = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 10))
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.from_numpy(rng.standard_normal(tuple(p.shape)) * 0.2))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    with tempfile.TemporaryDirectory() as folder:
        with SummaryWriter(log_dir=folder, flush_secs=10) as writer:
            writer.add_image("digits", images[0], 0)
            writer.add_text("model", str(model))
            for step in range(steps):
                loss = nn.functional.cross_entropy(model(images), labels)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                writer.add_scalar("Loss/train", loss, step)
                writer.add_scalars("rates", {"lr": optimizer.param_groups[0]["lr"]}, global_step=step)
                for name, p in model.named_parameters():
                    writer.add_histogram(name, p, step)
                    writer.add_histogram(f"{name}.grad", p.grad, step)
                losses.append(loss.item())
            writer.add_hparams({"lr": 1e-2, "bsize": 64}, {"hparam/loss": losses[-1]})
            writer.flush()
        files = [name for _, _, names in os.walk(folder) for name in names if "tfevents" in name]
        assert files
    return losses
