"""Train a set transformer with padding masks to find the largest number of sets of different sizes."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence


class MAB(nn.Module):
    def __init__(self, dim, num_heads, ln=True):
        super().__init__()
        self.attn = nn.MultiheadAttention(dim, num_heads, batch_first=True)
        self.ln0 = nn.LayerNorm(dim) if ln else nn.Identity()
        self.ln1 = nn.LayerNorm(dim) if ln else nn.Identity()
        self.ff = nn.Sequential(nn.Linear(dim, 2 * dim), nn.ReLU(inplace=True), nn.Linear(2 * dim, dim))

    def forward(self, x, y, key_padding_mask=None, need_weights=False):
        a, w = self.attn(
            x, y, y, key_padding_mask=key_padding_mask, need_weights=need_weights, average_attn_weights=False
        )
        h = self.ln0(x + a)
        return self.ln1(h + self.ff(h)), w


class ISAB(nn.Module):
    def __init__(self, dim, num_heads, num_inds):
        super().__init__()
        self.I = nn.Parameter(torch.Tensor(1, num_inds, dim))
        nn.init.xavier_uniform_(self.I)
        self.mab0 = MAB(dim, num_heads)
        self.mab1 = MAB(dim, num_heads)

    def forward(self, x, mask=None):
        h, _ = self.mab0(self.I.repeat(x.size(0), 1, 1), x, mask)
        return self.mab1(x, h)[0]


class PMA(nn.Module):
    def __init__(self, dim, num_heads, num_seeds):
        super().__init__()
        self.S = nn.Parameter(torch.empty(1, num_seeds, dim))
        self.mab = MAB(dim, num_heads, ln=False)

    def forward(self, x, mask=None):
        return self.mab(self.S.expand(x.size(0), -1, -1), x, mask, need_weights=True)


class SetTransformer(nn.Module):
    def __init__(self, dim=16, heads=4):
        super().__init__()
        self.embed = nn.Linear(1, dim)
        self.enc = nn.ModuleList([ISAB(dim, heads, 4), ISAB(dim, heads, 4)])
        layer = nn.TransformerEncoderLayer(
            dim, heads, 32, dropout=0.0, activation=F.gelu, batch_first=True, norm_first=True
        )
        self.sab = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.pool = PMA(dim, heads, 2)
        self.head = nn.Linear(2 * dim, 1)

    def forward(self, x, mask):
        h = self.embed(x)
        for layer in self.enc:
            h = layer(h, mask).masked_fill(mask[..., None], 0.0)
        h = self.sab(h, src_key_padding_mask=mask)
        h, weights = self.pool(h, mask)
        return self.head(h.flatten(start_dim=1)).squeeze(-1), weights


def batch(rng, size=16):
    sets = [torch.from_numpy(rng.uniform(0, 1, (n, 1)).astype("f")) for n in rng.integers(2, 9, size)]
    lengths = torch.as_tensor([len(s) for s in sets])
    x = pad_sequence(sets, batch_first=True, padding_value=-1.0)
    mask = torch.arange(x.size(1))[None] >= lengths[:, None]
    target = torch.hstack([s.amax() for s in sets])
    return x, mask, target


def main(steps=5):
    rng = np.random.default_rng(5)
    model = SetTransformer()
    with torch.no_grad():
        for p in model.parameters():
            if p.dim() > 1:
                p.set_(torch.from_numpy(rng.normal(0, p.size(-1) ** -0.5, p.shape).astype("f")))
        for module in model.modules():
            if isinstance(module, (nn.Linear, nn.MultiheadAttention)):
                for name, p in module.named_parameters(recurse=False):
                    if "bias" in name:
                        p.zero_()
    optimizer = torch.optim.NAdam(model.parameters(), lr=3e-4)
    losses = []
    x, mask, target = batch(rng)
    for step in range(steps):
        optimizer.zero_grad()
        predicted, weights = model(x, mask)
        loss = F.l1_loss(predicted, target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    # the result does not depend on the order of the elements
    perm = torch.from_numpy(rng.permutation(x.size(1)))
    again, _ = model.eval()(x.index_select(1, perm), mask.index_select(1, perm))
    once, _ = model(x, mask)
    return losses, {
        "weights": weights.detach().numpy(),
        "invariant": torch.allclose(again, once, atol=1e-5),
        "masked": weights.masked_select(mask[:, None, None]).sum().item(),
    }
