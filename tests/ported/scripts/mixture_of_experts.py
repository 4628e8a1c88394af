"""Train a sparsely gated mixture of experts: the best two of six experts for each token, with a balancing loss."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits


class Expert(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.w1 = nn.Linear(dim, hidden, bias=False)
        self.w2 = nn.Linear(hidden, dim, bias=False)
        self.w3 = nn.Linear(dim, hidden, bias=False)
        self.act_fn = nn.SiLU()

    def forward(self, x):
        return self.w2(self.act_fn(self.w1(x)) * self.w3(x))


class SparseMoeBlock(nn.Module):
    def __init__(self, hidden_dim, ffn_dim, num_experts=6, top_k=2):
        super().__init__()
        self.num_experts, self.top_k = num_experts, top_k
        self.gate = nn.Linear(hidden_dim, num_experts, bias=False)
        self.experts = nn.ModuleList([Expert(hidden_dim, ffn_dim) for _ in range(num_experts)])

    def forward(self, hidden_states):
        batch_size, sequence_length, hidden_dim = hidden_states.shape
        hidden_states = hidden_states.view(-1, hidden_dim)
        router_logits = self.gate(hidden_states)
        routing_weights = F.softmax(router_logits, dim=1, dtype=torch.float)
        routing_weights, selected_experts = torch.topk(routing_weights, self.top_k, dim=-1)
        routing_weights /= routing_weights.sum(dim=-1, keepdim=True)
        routing_weights = routing_weights.to(hidden_states.dtype)
        final_hidden_states = torch.zeros(
            (batch_size * sequence_length, hidden_dim), dtype=hidden_states.dtype, device=hidden_states.device
        )
        expert_mask = torch.nn.functional.one_hot(selected_experts, num_classes=self.num_experts).permute(2, 1, 0)
        for expert_idx in range(self.num_experts):
            idx, top_x = torch.where(expert_mask[expert_idx])
            if top_x.shape[0] == 0:
                continue
            current_state = hidden_states[None, top_x].reshape(-1, hidden_dim)
            current_hidden_states = self.experts[expert_idx](current_state) * routing_weights[top_x, idx, None]
            final_hidden_states.index_add_(0, top_x, current_hidden_states.to(hidden_states.dtype))
        return final_hidden_states.reshape(batch_size, sequence_length, hidden_dim), router_logits


def load_balancing_loss(gate_logits, num_experts, top_k):
    routing_weights = torch.softmax(gate_logits, dim=-1)
    _, selected_experts = torch.topk(routing_weights, top_k, dim=-1)
    expert_mask = F.one_hot(selected_experts, num_experts)
    tokens_per_expert = torch.mean(expert_mask.float(), dim=0)
    router_prob_per_expert = torch.mean(routing_weights, dim=0)
    return torch.sum(tokens_per_expert * router_prob_per_expert.unsqueeze(0)) * num_experts


class Model(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.embed = nn.Linear(8, dim)
        self.norm = nn.LayerNorm(dim)
        self.moe = SparseMoeBlock(dim, 24)
        self.head = nn.Linear(dim, 10)

    def forward(self, x):
        h = self.embed(x)
        out, logits = self.moe(self.norm(h))
        return self.head((h + out).mean(1)), logits


def main(steps=5):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    digits = load_digits()
    x = torch.as_tensor(digits.images[:256] / 16, dtype=torch.float32, device=device)  # rows of pixels are the tokens
    y = torch.as_tensor(digits.target[:256], device=device)
    model = Model().to(device)
    rng = np.random.default_rng(0)
    for p in model.parameters():
        if p.dim() > 1:
            p.data.copy_(torch.from_numpy(rng.normal(0, 0.25, p.size()).astype("float32")))
        else:
            nn.init.constant_(p, 0.0 if p.data.sum().item() != p.numel() else 1.0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.01)
    losses, balances = [], []
    for _ in range(steps):
        output, router_logits = model(x)
        aux = load_balancing_loss(router_logits, 6, 2)
        loss = F.cross_entropy(output, y) + 0.02 * aux
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(model.parameters(), 0.5)
        optimizer.step()
        losses.append(loss.item())
        balances.append(aux.item())
    counts = torch.bincount(router_logits.topk(2, dim=-1)[1].flatten(), minlength=6)
    return losses, {"balances": balances, "counts": counts.tolist()}
