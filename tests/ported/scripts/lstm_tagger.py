"""Train a bidirectional LSTM that tags the words of sentences of different lengths, packed for the LSTM."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.utils.data import DataLoader, Dataset

PAD = 0
SENTENCES = [
    ("the dog ate the apple", "DET NN V DET NN"),
    ("everybody read that book", "NN V DET NN"),
    ("she sleeps", "NN V"),
    ("the old man saw a dog", "DET ADJ NN V DET NN"),
    ("a book", "DET NN"),
    ("that old dog read", "DET ADJ NN V"),
    ("everybody ate", "NN V"),
    ("she saw the old apple", "NN V DET ADJ NN"),
]


class Tagged(Dataset):
    def __init__(self):
        self.word_to_ix = {"<pad>": PAD}
        self.tag_to_ix = {"<pad>": PAD}
        for words, tags in SENTENCES:
            for word in words.split():
                self.word_to_ix.setdefault(word, len(self.word_to_ix))
            for tag in tags.split():
                self.tag_to_ix.setdefault(tag, len(self.tag_to_ix))

    def __len__(self):
        return len(SENTENCES)

    def __getitem__(self, index):
        words, tags = SENTENCES[index]
        return (
            torch.tensor([self.word_to_ix[w] for w in words.split()], dtype=torch.long),
            torch.tensor([self.tag_to_ix[t] for t in tags.split()], dtype=torch.long),
        )


def collate(batch):
    words, tags = zip(*batch)
    lengths = torch.tensor([len(w) for w in words])
    words = pad_sequence(words, batch_first=True, padding_value=PAD)
    return words, pad_sequence(tags, batch_first=True, padding_value=PAD), lengths


class LSTMTagger(nn.Module):
    def __init__(self, vocab_size, tagset_size, embedding_dim=12, hidden_dim=10):
        super().__init__()
        self.word_embeddings = nn.Embedding(vocab_size, embedding_dim, padding_idx=PAD)
        self.lstm = nn.LSTM(embedding_dim, hidden_dim, num_layers=2, batch_first=True, bidirectional=True)
        self.hidden2tag = nn.Linear(2 * hidden_dim, tagset_size)

    def forward(self, sentence, lengths):
        embeds = self.word_embeddings(sentence)
        packed = pack_padded_sequence(embeds, lengths.cpu(), batch_first=True, enforce_sorted=False)
        packed_out, (h_n, c_n) = self.lstm(packed)
        lstm_out, _ = pad_packed_sequence(packed_out, batch_first=True, total_length=sentence.size(1))
        return F.log_softmax(self.hidden2tag(lstm_out), dim=-1)


def main(steps=5):
    torch.manual_seed(1)
    data = Tagged()
    loader = DataLoader(data, batch_size=4, shuffle=False, collate_fn=collate)
    model = LSTMTagger(len(data.word_to_ix), len(data.tag_to_ix))
    rng = np.random.default_rng(0)
    for name, param in model.named_parameters():
        param.data.copy_(torch.from_numpy(rng.normal(0, 0.3, param.shape).astype("float32")))
        if name == "word_embeddings.weight":
            param.data[PAD].zero_()
    loss_function = nn.NLLLoss(ignore_index=PAD)
    optimizer = optim.SGD(model.parameters(), lr=0.5)
    losses = []
    for _ in range(steps):
        total = 0.0
        for words, tags, lengths in loader:
            model.zero_grad()
            tag_scores = model(words, lengths)
            loss = loss_function(tag_scores.view(-1, tag_scores.shape[-1]), tags.view(-1))
            loss.backward()
            optimizer.step()
            total += loss.item()
        losses.append(total / len(loader))

    model.eval()
    correct = count = 0
    with torch.no_grad():
        for words, tags, lengths in loader:
            mask = tags != PAD
            correct += model(words, lengths).argmax(-1).eq(tags).masked_select(mask).sum().item()
            count += mask.sum().item()
    return losses, {"accuracy": correct / count, "padding": model.word_embeddings.weight[PAD].abs().sum().item()}
