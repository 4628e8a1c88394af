"""Train an embedding of the digits by the triplet margin loss with the hardest negatives of each batch."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits

LOSSES_FALL = False  # each batch has its own hardest triplets


class EmbeddingNet(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.convnet = nn.Sequential(
            nn.Conv2d(1, 8, 3), nn.PReLU(), nn.MaxPool2d(2, stride=2), nn.Conv2d(8, 16, 2), nn.PReLU(), nn.Flatten()
        )
        self.fc = nn.Sequential(nn.Linear(16 * 2 * 2, 32), nn.PReLU(), nn.Linear(32, dim))

    def forward(self, x):
        return F.normalize(self.fc(self.convnet(x)), p=2, dim=1)


class SiameseNet(nn.Module):
    def __init__(self, embedding_net):
        super().__init__()
        self.embedding_net = embedding_net

    def forward(self, *inputs):
        return tuple(self.embedding_net(x) for x in inputs)

    @torch.no_grad()
    def get_embedding(self, x):
        return self.embedding_net(x)


def pairwise_distances(embeddings, squared=False):
    dot = torch.matmul(embeddings, embeddings.t())
    square_norm = torch.diag(dot)
    distances = square_norm.unsqueeze(0) - 2.0 * dot + square_norm.unsqueeze(1)
    distances[distances < 0] = 0
    if not squared:
        mask = distances.eq(0).float()
        distances = (1.0 - mask) * torch.sqrt(distances + mask * 1e-16)
    return distances


def hardest(embeddings, labels):
    distances = pairwise_distances(embeddings.detach())
    same = labels[None, :] == labels[:, None]
    eye = torch.eye(len(labels), device=labels.device).bool()
    positive = distances.masked_fill(~same | eye, float("-inf")).argmax(1)
    negative = distances.masked_fill(same, float("inf")).argmin(dim=1)
    valid = (same & ~eye).any(1).nonzero(as_tuple=True)[0]
    return valid, positive[valid], negative[valid]


def main(steps=5):
    digits = load_digits()
    images = torch.tensor(digits.images / 16.0, dtype=torch.float).unsqueeze(1)
    labels = torch.LongTensor(digits.target)
    rng = np.random.RandomState(0)
    model = SiameseNet(EmbeddingNet())
    with torch.no_grad():
        for p in model.parameters():
            if p.ndim > 1:
                p.copy_(torch.Tensor(rng.randn(*p.shape) * 0.2))
            elif p.numel() > 1:
                p.zero_()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5, last_epoch=-1)
    criterion = nn.TripletMarginLoss(margin=1.0, p=2)
    contrastive = nn.CosineEmbeddingLoss(margin=0.2)

    losses, accuracies = [], []
    for step in range(steps):
        idx = torch.from_numpy(rng.permutation(len(images))[:48])
        x, y = images[idx], labels[idx]
        (emb,) = model(x)
        anchor, positive, negative = (emb[i] for i in hardest(emb, y))
        loss = criterion(anchor, positive, negative)
        sign = torch.where(torch.rand(anchor.size(0)) < 2, 1, -1)
        loss = loss + 0.1 * contrastive(anchor, positive, sign) + 0.1 * contrastive(anchor, negative, -sign)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
        accuracies.append(
            (F.pairwise_distance(anchor, positive) < F.pairwise_distance(anchor, negative)).float().mean()
        )
    gallery, query = model.get_embedding(images[:200]), model.get_embedding(images[200:300])
    knn = torch.cdist(query, gallery).topk(3, largest=False).indices
    votes = labels[:200][knn].mode(dim=1).values
    return losses, {
        "accuracies": torch.stack(accuracies).tolist(),
        "knn": (votes == labels[200:300]).double().mean().item(),
        "lr": scheduler.get_last_lr(),
    }
