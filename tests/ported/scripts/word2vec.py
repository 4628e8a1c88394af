"""Skip-gram word vectors with negative sampling."""

from collections import Counter

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

TEXT = """the king rules the land and the queen rules the sea while the farmer works the land
and the sailor works the sea the king and the queen meet the farmer and the sailor""".split()


class SkipGram(nn.Module):
    def __init__(self, vocab_size, embedding_dim):
        super(SkipGram, self).__init__()
        self.in_embed = nn.Embedding(vocab_size, embedding_dim)
        self.out_embed = nn.Embedding(vocab_size, embedding_dim)

    def forward(self, center, context, negatives):
        v = self.in_embed(center).unsqueeze(2)
        positive = torch.bmm(self.out_embed(context).unsqueeze(1), v).squeeze()
        negative = torch.bmm(self.out_embed(negatives).neg(), v).squeeze(2)
        return -(F.logsigmoid(positive) + F.logsigmoid(negative).sum(1)).mean()


def main(steps=5):
    rng = np.random.default_rng(0)
    counts = Counter(TEXT)
    vocab = {word: i for i, (word, _) in enumerate(counts.most_common())}
    ids = [vocab[w] for w in TEXT]
    pairs = [(ids[i], ids[j]) for i in range(len(ids)) for j in range(max(0, i - 2), min(len(ids), i + 3)) if i != j]
    frequency = np.array([counts[w] for w in vocab]) ** 0.75
    noise = frequency / frequency.sum()
    model = SkipGram(len(vocab), 12)
    model.in_embed.weight.data.copy_(torch.from_numpy(rng.uniform(-0.5, 0.5, (len(vocab), 12))))
    nn.init.zeros_(model.out_embed.weight)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.3)
    center, context = torch.LongTensor([p[0] for p in pairs]), torch.LongTensor([p[1] for p in pairs])
    losses = []
    for epoch in range(steps):
        negatives = torch.tensor(rng.choice(len(vocab), (len(pairs), 4), p=noise), dtype=torch.int64)
        optimizer.zero_grad()
        loss = model(center, context, negatives)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        weights = F.normalize(model.in_embed.weight, p=2, dim=1)
        similarity = weights @ weights.T
        values, nearest = similarity[vocab["king"]].topk(3)
        distribution = torch.multinomial(torch.from_numpy(noise), 8, replacement=True)
    return losses, {"values": values.numpy(), "nearest": nearest.tolist(), "drawn": len(distribution)}
