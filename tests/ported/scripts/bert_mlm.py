"""Train a BERT-like encoder to restore masked tokens of padded sentences, with a tied decoder."""

import numpy as np
import torch
import torch.nn as nn
from torch.optim import AdamW
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, Dataset

PAD, CLS, SEP, MASK, VOCAB = 0, 1, 2, 3, 24


class BertEmbeddings(nn.Module):
    def __init__(self, hidden_size=24, max_position=12):
        super().__init__()
        self.word_embeddings = nn.Embedding(VOCAB, hidden_size, padding_idx=PAD)
        self.position_embeddings = nn.Embedding(max_position, hidden_size)
        self.token_type_embeddings = nn.Embedding(2, hidden_size)
        self.LayerNorm = nn.LayerNorm(hidden_size, eps=1e-12)
        self.dropout = nn.Dropout(0.0)
        self.register_buffer("position_ids", torch.arange(max_position).expand((1, -1)))

    def forward(self, input_ids, token_type_ids=None):
        seq_length = input_ids.size()[1]
        position_ids = self.position_ids[:, :seq_length]
        if token_type_ids is None:
            token_type_ids = torch.zeros_like(input_ids)
        embeddings = self.word_embeddings(input_ids) + self.token_type_embeddings(token_type_ids)
        embeddings += self.position_embeddings(position_ids)
        return self.dropout(self.LayerNorm(embeddings))


class BertForMaskedLM(nn.Module):
    def __init__(self, hidden_size=24, layers=2, heads=4):
        super().__init__()
        self.embeddings = BertEmbeddings(hidden_size)
        layer = nn.TransformerEncoderLayer(
            hidden_size, heads, dim_feedforward=48, dropout=0.0, activation="gelu", batch_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, num_layers=layers, enable_nested_tensor=False)
        self.transform = nn.Sequential(nn.Linear(hidden_size, hidden_size), nn.GELU(), nn.LayerNorm(hidden_size))
        self.decoder = nn.Linear(hidden_size, VOCAB, bias=False)
        self.bias = nn.Parameter(torch.zeros(VOCAB))
        self.decoder.weight = self.embeddings.word_embeddings.weight

    def forward(self, input_ids, attention_mask, labels=None):
        hidden = self.encoder(self.embeddings(input_ids), src_key_padding_mask=attention_mask == 0)
        scores = self.decoder(self.transform(hidden)) + self.bias
        loss = None
        if labels is not None:
            loss = nn.CrossEntropyLoss()(scores.view(-1, VOCAB), labels.view(-1))
        return loss, scores


class Sentences(Dataset):
    """Sentences that count upwards from a random number, some shorter than others."""

    def __init__(self, count, seed=1):
        rng = np.random.default_rng(seed)
        starts, lengths = rng.integers(4, 14, count), rng.integers(5, 10, count)
        self.sentences = [[CLS, *range(a, a + n), SEP] for a, n in zip(starts, lengths)]

    def __len__(self):
        return len(self.sentences)

    def __getitem__(self, i):
        return torch.tensor(self.sentences[i])


class MaskingCollator:
    def __init__(self, probability=0.3):
        self.probability, self.rng = probability, np.random.default_rng(2)

    def __call__(self, examples):
        inputs = nn.utils.rnn.pad_sequence(examples, batch_first=True, padding_value=PAD)
        attention_mask = inputs.ne(PAD).long()
        labels = inputs.clone()
        probability_matrix = torch.full(labels.shape, self.probability)
        special_tokens_mask = (inputs == CLS) | (inputs == SEP)
        probability_matrix.masked_fill_(special_tokens_mask, value=0.0)
        probability_matrix.masked_fill_(inputs.eq(PAD), value=0.0)
        masked_indices = torch.from_numpy(self.rng.random(tuple(labels.shape)).astype("float32")) < probability_matrix
        labels[~masked_indices] = -100
        inputs[masked_indices] = MASK
        return {"input_ids": inputs, "attention_mask": attention_mask, "labels": labels}


def main(steps=5):
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = BertForMaskedLM()
    rng = np.random.default_rng(0)
    for name, p in model.named_parameters():
        if p.dim() > 1:
            p.data.copy_(torch.from_numpy(rng.normal(0, 0.1, p.shape).astype("float32")))
        elif name.endswith("bias"):
            p.data.zero_()
    model.embeddings.word_embeddings.weight.data[PAD].zero_()
    model.to(device)
    no_decay = ["bias", "LayerNorm.weight", "norm1.weight", "norm2.weight"]
    named = list(model.named_parameters())
    groups = [
        {"params": [p for n, p in named if not any(nd in n for nd in no_decay)], "weight_decay": 0.01},
        {"params": [p for n, p in named if any(nd in n for nd in no_decay)], "weight_decay": 0.0},
    ]
    optimizer = AdamW(groups, lr=5e-3, eps=1e-8)
    warmup, total = 2, 20

    def lr_lambda(current_step):
        if current_step < warmup:
            return float(current_step + 1) / float(max(1, warmup))
        return max(0.0, float(total - current_step) / float(max(1, total - warmup)))

    scheduler = LambdaLR(optimizer, lr_lambda)
    loader = DataLoader(Sentences(16 * steps), batch_size=16, collate_fn=MaskingCollator())
    model.train()
    losses, restored = [], []
    for batch in loader:
        batch = {k: v.to(device) for k, v in batch.items()}
        loss, scores = model(**batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        model.zero_grad()
        losses.append(loss.item())
        masked = batch["labels"] != -100
        restored.append((scores.argmax(-1)[masked] == batch["labels"][masked]).float().mean().item())
    return losses, {"restored": restored, "lr": scheduler.get_last_lr()}
