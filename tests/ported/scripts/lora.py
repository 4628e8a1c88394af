"""Train a classifier on half of the digits, then adapt it to the others by low-rank updates of frozen layers."""

import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits


class LoRALayer:
    def __init__(self, r, lora_alpha, lora_dropout):
        self.r = r
        self.lora_alpha = lora_alpha
        self.lora_dropout = nn.Dropout(p=lora_dropout) if lora_dropout > 0.0 else lambda x: x
        self.merged = False


class Linear(nn.Linear, LoRALayer):
    def __init__(self, in_features, out_features, r=0, lora_alpha=1, lora_dropout=0.0, **kwargs):
        nn.Linear.__init__(self, in_features, out_features, **kwargs)
        LoRALayer.__init__(self, r=r, lora_alpha=lora_alpha, lora_dropout=lora_dropout)
        if r > 0:
            self.lora_A = nn.Parameter(self.weight.new_zeros((r, in_features)))
            self.lora_B = nn.Parameter(self.weight.new_zeros((out_features, r)))
            self.scaling = self.lora_alpha / self.r
            self.weight.requires_grad = False
        self.reset_parameters()

    def reset_parameters(self):
        nn.Linear.reset_parameters(self)
        if hasattr(self, "lora_A"):
            nn.init.kaiming_uniform_(self.lora_A, a=math.sqrt(5))
            nn.init.zeros_(self.lora_B)

    def train(self, mode=True):
        nn.Linear.train(self, mode)
        if self.r > 0 and mode == self.merged:
            delta = (self.lora_B @ self.lora_A) * self.scaling
            self.weight.data += -delta.data if mode else delta.data
            self.merged = not mode
        return self

    def forward(self, x):
        if self.r > 0 and not self.merged:
            result = F.linear(x, self.weight, bias=self.bias)
            result += (self.lora_dropout(x) @ self.lora_A.transpose(0, 1) @ self.lora_B.transpose(0, 1)) * self.scaling
            return result
        return F.linear(x, self.weight, bias=self.bias)


class Classifier(nn.Module):
    def __init__(self, r=0):
        super().__init__()
        self.fc1 = Linear(64, 32, r=r, lora_alpha=8)
        self.fc2 = Linear(32, 10, r=r, lora_alpha=8)

    def forward(self, x):
        return self.fc2(F.relu(self.fc1(x)))


def mark_only_lora_as_trainable(model):
    for n, p in model.named_parameters():
        if "lora_" not in n:
            p.requires_grad = False


def lora_state_dict(model):
    my_state_dict = model.state_dict()
    return {k: my_state_dict[k] for k in my_state_dict if "lora_" in k}


def fit(model, x, y, steps, lr):
    optimizer = torch.optim.Adam(filter(lambda p: p.requires_grad, model.parameters()), lr=lr)
    losses = []
    model.train()
    for _ in range(steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def main(steps=5):
    torch.manual_seed(0)
    digits = load_digits()
    x, y = torch.from_numpy(digits.data).float() / 16, torch.from_numpy(digits.target)
    low = y < 5
    rng = np.random.default_rng(0)
    base = Classifier()
    for p in base.parameters():
        p.data = torch.from_numpy(rng.normal(0, 0.1, p.shape)).float()
    first = fit(base, x[low], y[low], steps, 1e-2)

    model = Classifier(r=4)
    missing = model.load_state_dict(base.state_dict(), strict=False)
    for n, p in model.named_parameters():
        if "lora_A" in n:
            p.data.copy_(torch.from_numpy(rng.normal(0, 0.1, p.shape)))
    mark_only_lora_as_trainable(model)
    trainable = sum(p.numel() for p in model.parameters() if p.requires_grad)
    before = model.fc1.weight.clone()
    losses = fit(model, x[~low], y[~low], steps, 1e-2)
    assert torch.equal(before, model.fc1.weight)
    assert model.fc1.weight.grad is None
    assert sorted(missing.missing_keys) == sorted(lora_state_dict(model))

    with torch.no_grad():
        unmerged = model(x[:20])
        model.eval()
        merged = model(x[:20])
    assert not torch.equal(before, model.fc1.weight)
    assert torch.allclose(unmerged, merged, atol=1e-5)
    model.train()
    assert torch.allclose(before, model.fc1.weight, atol=1e-6)
    return losses, {"first": first, "trainable": trainable, "output": merged.abs().mean().item()}
