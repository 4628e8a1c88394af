"""A data set of sequences of different lengths: random_split, a collate function that pads, packed sequences."""

import numpy as np
import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader, Dataset, random_split


class SequenceDataset(Dataset):
    def __init__(self, n, transform=None):
        rng = np.random.default_rng(0)
        self.items = [rng.integers(1, 20, rng.integers(2, 9)) for _ in range(n)]
        self.labels = [int(item.sum() % 3) for item in self.items]
        self.transform = transform

    def __len__(self):
        return len(self.items)

    def __getitem__(self, idx):
        if torch.is_tensor(idx):
            idx = idx.tolist()
        sample = {"tokens": self.items[idx], "label": self.labels[idx]}
        return self.transform(sample) if self.transform else sample


class ToTensor:
    def __call__(self, sample):
        return {"tokens": torch.from_numpy(sample["tokens"]), "label": torch.tensor(sample["label"])}


def collate(batch):
    batch = sorted(batch, key=lambda s: len(s["tokens"]), reverse=True)
    lengths = torch.tensor([len(s["tokens"]) for s in batch])
    padded = pad_sequence([s["tokens"] for s in batch], batch_first=True, padding_value=0)
    return padded, lengths, torch.stack([s["label"] for s in batch])


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 8, padding_idx=0)
        self.gru = nn.GRU(8, 16, batch_first=True)
        self.head = nn.Linear(16, 3)

    def forward(self, tokens, lengths):
        packed = pack_padded_sequence(self.embed(tokens), lengths.cpu(), batch_first=True, enforce_sorted=True)
        _, hidden = self.gru(packed)
        return self.head(hidden[-1])


def main(steps=5):
    rng = np.random.default_rng(1)
    dataset = SequenceDataset(40, transform=ToTensor())
    train, valid = random_split(dataset, [0.8, 0.2], generator=torch.Generator().manual_seed(42))
    # The permutation of each library is its own: train on a fixed half, and check the sizes of the split.
    fixed = torch.utils.data.Subset(dataset, list(range(32)))
    loader = DataLoader(
        fixed,
        batch_size=8,
        shuffle=False,
        collate_fn=collate,
        drop_last=True,
        num_workers=0,
        pin_memory=torch.cuda.is_available(),
        persistent_workers=False,
    )
    model = Classifier()
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.from_numpy(0.3 * rng.standard_normal(tuple(p.shape))))
        model.embed.weight[0].fill_(0)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(steps):
        total = 0.0
        for batch_idx, (tokens, lengths, labels) in enumerate(loader):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(tokens, lengths), labels)
            loss.backward()
            optimizer.step()
            total += loss.item() * tokens.size(0)
        losses.append(total / len(loader.dataset))
    covered = sorted(list(train.indices) + list(valid.indices)) == list(range(40))
    batch = next(iter(DataLoader(dataset, batch_size=1)))
    return losses, {"sizes": [len(train), len(valid)], "covered": covered, "label": batch["label"].tolist()}
