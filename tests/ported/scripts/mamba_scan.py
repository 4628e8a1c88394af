"""Train a small Mamba: a causal depthwise convolution and a selective scan whose states are a loop over time."""

import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class MambaBlock(nn.Module):
    def __init__(self, d_model, d_state=4, d_conv=3, expand=2):
        super().__init__()
        self.d_inner = int(expand * d_model)
        self.dt_rank = math.ceil(d_model / 8)
        self.d_state = d_state
        self.in_proj = nn.Linear(d_model, self.d_inner * 2, bias=False)
        self.conv1d = nn.Conv1d(
            in_channels=self.d_inner,
            out_channels=self.d_inner,
            bias=True,
            kernel_size=d_conv,
            groups=self.d_inner,
            padding=d_conv - 1,
        )
        self.x_proj = nn.Linear(self.d_inner, self.dt_rank + d_state * 2, bias=False)
        self.dt_proj = nn.Linear(self.dt_rank, self.d_inner, bias=True)
        A = torch.arange(1, d_state + 1, dtype=torch.float32).repeat(self.d_inner, 1)
        self.A_log = nn.Parameter(torch.log(A))
        self.A_log._no_weight_decay = True
        self.D = nn.Parameter(torch.ones(self.d_inner))
        self.D._no_weight_decay = True
        self.out_proj = nn.Linear(self.d_inner, d_model, bias=False)

    def forward(self, x):
        (_, length, _) = x.shape
        x_and_res = self.in_proj(x)
        (x, res) = x_and_res.split(split_size=[self.d_inner, self.d_inner], dim=-1)
        x = x.transpose(1, 2)
        x = self.conv1d(x)[:, :, :length]
        x = F.silu(x.mT)
        y = self.ssm(x)
        return self.out_proj(y * F.silu(res))

    def ssm(self, x):
        (d_in, n) = self.A_log.shape
        A = -torch.exp(self.A_log.float())
        D = self.D.float()
        x_dbl = self.x_proj(x)
        (delta, B, C) = x_dbl.split(split_size=[self.dt_rank, n, n], dim=-1)
        delta = F.softplus(self.dt_proj(delta))
        return self.selective_scan(x, delta, A, B, C, D)

    def selective_scan(self, u, delta, A, B, C, D):
        (b, length, d_in) = u.shape
        n = A.shape[1]
        deltaA = torch.exp(torch.einsum("bld,dn->bldn", delta, A))
        deltaB_u = torch.einsum("bld,bln,bld->bldn", delta, B, u)
        x = torch.zeros((b, d_in, n), device=deltaA.device)
        ys = []
        for i in range(length):
            x = deltaA[:, i] * x + deltaB_u[:, i]
            ys.append(torch.einsum("bdn,bn->bd", x, C[:, i, :]))
        y = torch.stack(ys, dim=1)
        return torch.addcmul(y, u, D)


class ResidualBlock(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.mixer = MambaBlock(d_model)
        self.norm = nn.LayerNorm(d_model, elementwise_affine=True, bias=False)

    def forward(self, x):
        return self.mixer(self.norm(x)) + x


class Mamba(nn.Module):
    def __init__(self, vocab=10, d_model=16, n_layer=2):
        super().__init__()
        self.backbone = nn.ModuleDict(
            dict(
                embedding=nn.Embedding(vocab, d_model),
                layers=nn.ModuleList([ResidualBlock(d_model) for _ in range(n_layer)]),
                norm_f=nn.LayerNorm(d_model),
            )
        )
        self.lm_head = nn.Linear(d_model, vocab, bias=False)
        self.lm_head.weight = self.backbone.embedding.weight

    def forward(self, input_ids):
        x = self.backbone.embedding(input_ids)
        for layer in self.backbone.layers:
            x = layer(x)
        return self.lm_head(self.backbone["norm_f"](x))


def main(steps=5):
    rng = np.random.default_rng(4)
    model = Mamba()
    state = model.state_dict()
    for key in state:
        if not key.endswith(("A_log", "D", "norm.weight", "norm_f.weight")):
            state[key] = torch.asarray(rng.normal(0, 0.2, state[key].shape), dtype=torch.float32)
    state["lm_head.weight"] = state["backbone.embedding.weight"]
    print(model.load_state_dict(state, strict=True))
    decay = [p for p in model.parameters() if not getattr(p, "_no_weight_decay", False)]
    others = [p for p in model.parameters() if getattr(p, "_no_weight_decay", False)]
    optimizer = torch.optim.AdamW([dict(params=decay), dict(params=others, weight_decay=0)], lr=1e-2)
    # the copy task: the second half of each sequence repeats the first
    losses = []
    for step in range(steps):
        half = rng.integers(1, 10, (8, 6))
        tokens = torch.from_numpy(np.concatenate([half, half], 1))
        logits = model(tokens[:, :-1])
        target = tokens[:, 1:].clone()
        target[:, :5] = -100
        loss = F.cross_entropy(logits.transpose(1, 2), target, label_smoothing=0.05)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    gradients = {n: p.grad.norm().item() for n, p in model.named_parameters()}
    return losses, {"gradient": list(gradients.values())}
