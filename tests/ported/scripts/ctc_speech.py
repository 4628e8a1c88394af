"""Train a small bidirectional network on synthetic speech by the CTC loss, and decode it greedily and by prefixes."""

import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.utils.data import DataLoader, Dataset

ALPHABET = "_abcd"


class Utterances(Dataset):
    def __init__(self, n=24, seed=0):
        rng = np.random.default_rng(seed)
        patterns = rng.normal(0, 1, (len(ALPHABET), 6))
        self.items = []
        for _ in range(n):
            text = rng.integers(1, len(ALPHABET), rng.integers(2, 5))
            frames = [patterns[c] + rng.normal(0, 0.2, 6) for c in text for _ in range(rng.integers(2, 5))]
            self.items.append((torch.tensor(np.array(frames), dtype=torch.float32), torch.tensor(text)))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.items[index]


def collate(batch):
    batch.sort(key=lambda item: item[0].shape[0], reverse=True)
    frames, texts = zip(*batch)
    frame_lengths = torch.tensor([len(f) for f in frames])
    text_lengths = torch.tensor([len(t) for t in texts], dtype=torch.long)
    return pad_sequence(frames), torch.cat(texts), frame_lengths, text_lengths


class SpeechModel(nn.Module):
    def __init__(self, hidden=16):
        super().__init__()
        self.conv = nn.Conv1d(6, hidden, kernel_size=3, padding="same", bias=False)
        self.bn = nn.BatchNorm1d(hidden)
        self.rnn = nn.GRU(hidden, hidden, num_layers=2, bidirectional=True)
        self.head = nn.Linear(2 * hidden, len(ALPHABET))

    def forward(self, x, lengths):
        x = F.hardtanh(self.bn(self.conv(x.permute(1, 2, 0))), 0, 20).permute(2, 0, 1)
        packed = pack_padded_sequence(x, lengths, enforce_sorted=True)
        x, _ = pad_packed_sequence(self.rnn(packed)[0])
        return F.log_softmax(self.head(x), dim=-1)


def greedy(log_probs, lengths):
    texts = []
    for best, length in zip(log_probs.argmax(-1).t(), lengths.tolist()):
        collapsed = torch.unique_consecutive(best[:length])
        texts.append("".join(ALPHABET[i] for i in collapsed[collapsed != 0]))
    return texts


def main(steps=5):
    loader = DataLoader(Utterances(), batch_size=8, collate_fn=collate, num_workers=0)
    model = SpeechModel()
    rng = np.random.default_rng(1)
    for name, p in model.named_parameters():
        if not name.startswith("bn"):
            p.data = torch.from_numpy(rng.uniform(-1, 1, tuple(p.shape)) / math.sqrt(16)).float()
    criterion = nn.CTCLoss(blank=0, zero_infinity=True)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=1e-2, total_steps=max(steps, 9), anneal_strategy="linear"
    )
    losses = []
    done = False
    while not done:
        for frames, texts, frame_lengths, text_lengths in loader:
            optimizer.zero_grad()
            log_probs = model(frames, frame_lengths)
            loss = criterion(log_probs, texts, frame_lengths, text_lengths)
            loss.backward()
            total_norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            scheduler.step()
            losses.append(loss.item())
            if done := len(losses) == steps:
                break
    model.eval()
    with torch.inference_mode():
        log_probs = model(frames, frame_lengths)
    texts = greedy(log_probs, frame_lengths)
    return losses, {
        "norm": total_norm.item(),
        "lengths of texts": [len(t) for t in texts],
        "log probs": log_probs[0].numpy(),
        "running": model.bn.running_var.numpy(),
    }
