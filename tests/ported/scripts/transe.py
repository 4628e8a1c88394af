"""Learn embeddings of a knowledge graph by TransE: margin ranking with corrupted triples, ranks and hits at ten."""

import collections
import math

import numpy as np
import torch
import torch.nn as nn
from torch.utils import data

Key = collections.namedtuple("Key", "entity relation")


class TransE(nn.Module):
    def __init__(self, entity_count, relation_count, device, norm=1, dim=12, margin=1.0):
        super(TransE, self).__init__()
        self.entity_count = entity_count
        self.relation_count = relation_count
        self.device = device
        self.norm = norm
        self.dim = dim
        self.entities_emb = self._init_entity_emb()
        self.relations_emb = self._init_relation_emb()
        self.criterion = nn.MarginRankingLoss(margin=margin, reduction="none")

    def _init_entity_emb(self):
        # -1 to avoid nan for OOV vector
        entities_emb = nn.Embedding(
            num_embeddings=self.entity_count + 1, embedding_dim=self.dim, padding_idx=self.entity_count
        )
        uniform_range = 6 / np.sqrt(self.dim)
        entities_emb.weight.data.uniform_(-uniform_range, uniform_range)
        return entities_emb

    def _init_relation_emb(self):
        relations_emb = nn.Embedding(
            num_embeddings=self.relation_count + 1, embedding_dim=self.dim, padding_idx=self.relation_count
        )
        uniform_range = 6 / np.sqrt(self.dim)
        relations_emb.weight.data.uniform_(-uniform_range, uniform_range)
        # -1 to avoid nan for OOV vector
        relations_emb.weight.data[:-1, :].div_(relations_emb.weight.data[:-1, :].norm(p=1, dim=1, keepdim=True))
        return relations_emb

    def forward(self, positive_triplets: torch.LongTensor, negative_triplets: torch.LongTensor):
        # -1 to avoid nan for OOV vector
        self.entities_emb.weight.data[:-1, :].div_(self.entities_emb.weight.data[:-1, :].norm(p=2, dim=1, keepdim=True))
        assert positive_triplets.size()[1] == 3
        positive_distances = self._distance(positive_triplets)
        assert negative_triplets.size()[1] == 3
        negative_distances = self._distance(negative_triplets)
        return self.loss(positive_distances, negative_distances), positive_distances, negative_distances

    def predict(self, triplets: torch.LongTensor):
        return self._distance(triplets)

    def loss(self, positive_distances, negative_distances):
        target = torch.tensor([-1], dtype=torch.long, device=self.device)
        return self.criterion(positive_distances, negative_distances, target)

    def _distance(self, triplets):
        assert triplets.size()[1] == 3
        heads = triplets[:, 0]
        relations = triplets[:, 1]
        tails = triplets[:, 2]
        return (self.entities_emb(heads) + self.relations_emb(relations) - self.entities_emb(tails)).norm(
            p=self.norm, dim=1
        )


def hit_at_k(predictions: torch.Tensor, ground_truth_idx: torch.Tensor, device, k: int = 10) -> int:
    assert predictions.size(0) == ground_truth_idx.size(0)
    zero_tensor = torch.tensor([0], device=device)
    one_tensor = torch.tensor([1], device=device)
    _, indices = predictions.topk(k=k, largest=False)
    return torch.where(indices == ground_truth_idx, one_tensor, zero_tensor).sum().item()


def mrr(predictions: torch.Tensor, ground_truth_idx: torch.Tensor) -> float:
    indices = predictions.argsort()
    return (1.0 / (indices == ground_truth_idx).nonzero()[:, 1].float().add(1.0)).sum().item()


class FB(data.Dataset):
    def __init__(self, n=20, relations=3, seed=0):
        rng = np.random.default_rng(seed)
        self.facts = [(h, int(r), int((h + r + 1) % n)) for h in range(n) for r in rng.permutation(relations)]

    def __len__(self):
        return len(self.facts)

    def __getitem__(self, index):
        head, relation, tail = self.facts[index]
        return head, relation, tail


def main(steps=5):
    rng = np.random.default_rng(1)
    device = torch.device("cpu")
    train_generator = data.DataLoader(FB(), batch_size=16, num_workers=0)
    model = TransE(entity_count=20, relation_count=3, device=device, norm=1)
    model = model.to(device)
    for emb in (model.entities_emb, model.relations_emb):
        emb.weight.data[:-1] = torch.from_numpy(rng.uniform(-1, 1, (emb.num_embeddings - 1, 12)).astype("f4"))
        emb.weight.data[emb.padding_idx] = 0
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    losses, impact = [], []
    while len(losses) < steps:
        model.train()
        for local_heads, local_relations, local_tails in train_generator:
            local_heads, local_relations, local_tails = (
                local_heads.to(device), local_relations.to(device), local_tails.to(device),
            )  # fmt: skip
            positive_triples = torch.stack((local_heads, local_relations, local_tails), dim=1)
            head_or_tail = torch.from_numpy(rng.integers(0, 2, local_heads.size()))
            random_entities = torch.from_numpy(rng.integers(0, 20, local_heads.size())).to(device)
            broken_heads = torch.where(head_or_tail == 1, random_entities, local_heads)
            broken_tails = torch.where(head_or_tail == 0, random_entities, local_tails)
            negative_triples = torch.stack((broken_heads, local_relations, broken_tails), dim=1)
            optimizer.zero_grad()
            loss, pd, nd = model(positive_triples, negative_triples)
            loss.mean().backward()
            impact.append(loss.data.count_nonzero().item())
            optimizer.step()
            losses.append(loss.data.mean().item())
            if len(losses) == steps:
                break
    entity_ids = torch.arange(end=20, device=device).unsqueeze(0)
    head, relation, tail = (t[:8] for t in (local_heads, local_relations, local_tails))
    all_entities = entity_ids.repeat(8, 1)
    heads = head.reshape(-1, 1).repeat(1, all_entities.size()[1])
    relations = relation.reshape(-1, 1).repeat(1, all_entities.size()[1])
    triplets = torch.stack((heads, relations, all_entities), dim=2).reshape(-1, 3)
    tails_predictions = model.predict(triplets).reshape(8, -1)
    ground = tail.reshape(-1, 1)
    key = Key(*(int(v[0]) for v in (head, relation)))
    return losses, {
        "impact": impact,
        "hits": [hit_at_k(tails_predictions, ground, device, k) for k in (1, 3, 10)],
        "mrr": mrr(tails_predictions, ground),
        "key": list(key),
        "log of size": math.log(model.entities_emb.weight.abs().sum().item()),
    }
