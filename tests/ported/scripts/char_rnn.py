"""Train a character-level recurrent network by truncated backpropagation through time, then sample from it."""

import numpy as np
import torch
import torch.nn as nn
from torch.nn.utils import clip_grad_norm_

TEXT = "the quick brown fox jumps over the lazy dog and the lazy dog sleeps under the old oak tree " * 12


class Dictionary:
    def __init__(self, text):
        self.idx2char = sorted(set(text))
        self.char2idx = {c: i for i, c in enumerate(self.idx2char)}

    def __len__(self):
        return len(self.idx2char)

    def encode(self, text, batch_size):
        ids = torch.LongTensor([self.char2idx[c] for c in text])
        num_batches = ids.size(0) // batch_size
        return ids[: num_batches * batch_size].view(batch_size, -1)


class RNNLM(nn.Module):
    def __init__(self, vocab_size, embed_size, hidden_size, num_layers, cell="GRU"):
        super().__init__()
        self.num_layers, self.hidden_size = num_layers, hidden_size
        self.embed = nn.Embedding(vocab_size, embed_size)
        self.rnn = getattr(nn, cell)(embed_size, hidden_size, num_layers, batch_first=True, dropout=0.0)
        self.linear = nn.Linear(hidden_size, vocab_size)
        self.init_weights()

    def init_weights(self):
        rng = np.random.default_rng(0)
        for p in self.parameters():
            nn.init.uniform_(p, -0.1, 0.1)
            p.data = torch.from_numpy(rng.uniform(-0.2, 0.2, p.shape).astype("float32"))

    def forward(self, x, h):
        x = self.embed(x)
        self.rnn.flatten_parameters()
        out, h = self.rnn(x, h)
        out = out.reshape(out.size(0) * out.size(1), out.size(2))
        return self.linear(out), h

    def init_hidden(self, bsz):
        weight = next(self.parameters())
        return weight.new_zeros(self.num_layers, bsz, self.hidden_size)


def detach(states):
    return [state.detach() for state in states]


def main(steps=5):
    torch.manual_seed(1111)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    dictionary = Dictionary(TEXT)
    ids = dictionary.encode(TEXT, 8).to(device)
    model = RNNLM(len(dictionary), 16, 32, 2).to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    seq_length, losses = 20, []
    hidden = model.init_hidden(8)
    for i in range(0, ids.size(1) - seq_length, seq_length):
        if len(losses) == steps:
            break
        inputs, targets = ids[:, i : i + seq_length], ids[:, (i + 1) : (i + 1) + seq_length]
        (hidden,) = detach([hidden])
        outputs, hidden = model(inputs, hidden)
        loss = criterion(outputs, targets.reshape(-1))
        model.zero_grad()
        loss.backward()
        clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        losses.append(loss.item())

    rng = np.random.default_rng(1)
    written = []
    with torch.no_grad():
        state = model.init_hidden(1)
        char = torch.tensor([[dictionary.char2idx["t"]]], device=device)
        for _ in range(10):
            output, state = model(char, state)
            prob = output.squeeze().div(0.8).exp().cpu()
            prob = (prob / prob.sum()).double().numpy()
            char.fill_(int(np.searchsorted(prob.cumsum(), rng.random() * prob.sum())))
            written.append(char.item())
    return losses, {"perplexity": np.exp(losses[-1]), "written": written}
