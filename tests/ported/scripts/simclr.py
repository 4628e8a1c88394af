"""Contrastive learning with the loss of SimCLR (NT-Xent) on shifted digits."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits


def nt_xent(features, temperature=0.5, n_views=2):
    batch_size = features.shape[0] // n_views
    labels = torch.cat([torch.arange(batch_size) for _ in range(n_views)], dim=0)
    labels = (labels.unsqueeze(0) == labels.unsqueeze(1)).float()
    features = F.normalize(features, dim=1)
    similarity_matrix = torch.matmul(features, features.T)
    mask = torch.eye(labels.shape[0], dtype=torch.bool)
    labels = labels[~mask].view(labels.shape[0], -1)
    similarity_matrix = similarity_matrix[~mask].view(similarity_matrix.shape[0], -1)
    positives = similarity_matrix[labels.bool()].view(labels.shape[0], -1)
    negatives = similarity_matrix[~labels.bool()].view(similarity_matrix.shape[0], -1)
    logits = torch.cat([positives, negatives], dim=1)
    targets = torch.zeros(logits.shape[0], dtype=torch.long)
    return logits / temperature, targets


def augment(images, rng):
    dy, dx = (int(v) for v in rng.integers(-1, 2, 2))
    images = torch.roll(images, shifts=(dy, dx), dims=(2, 3))
    return images + torch.from_numpy(0.1 * rng.standard_normal(tuple(images.shape))).to(images.dtype)


def main(steps=5):
    rng = np.random.default_rng(0)
    images = torch.from_numpy(load_digits().images[:64]).float().unsqueeze(1).div(16.0)
    encoder = nn.Sequential(
        nn.Conv2d(1, 8, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(True), nn.Flatten()
    )
    projector = nn.Sequential(nn.Linear(128, 32), nn.ReLU(), nn.Linear(32, 16))
    model = nn.Sequential(encoder, projector)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.from_numpy(rng.standard_normal(tuple(p.shape)) * 0.2))
    optimizer = torch.optim.Adam(model.parameters(), 3e-3, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps, eta_min=0, last_epoch=-1)
    criterion = torch.nn.CrossEntropyLoss()
    losses, accuracy = [], []
    views = torch.cat([augment(images, rng), augment(images, rng)], dim=0)
    for epoch in range(steps):
        logits, labels = nt_xent(model(views))
        loss = criterion(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        _, top = logits.topk(5, 1, True, True)
        correct = top.t().eq(labels.view(1, -1).expand_as(top.t()))
        accuracy.append(correct[:1].reshape(-1).float().sum(0, keepdim=True).mul_(100.0 / labels.size(0)).item())
        losses.append(loss.item())
    return losses, {"top1": accuracy}
