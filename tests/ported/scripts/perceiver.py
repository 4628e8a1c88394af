"""Train a small Perceiver: latents attend to pixels with Fourier features, then to themselves, with shared weights."""

from functools import wraps
from math import pi

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import einsum, nn


def exists(val):
    return val is not None


def default(val, d):
    return val if exists(val) else d


def cache_fn(f):
    cache = dict()

    @wraps(f)
    def cached_fn(*args, _cache=True, key=None, **kwargs):
        if not _cache:
            return f(*args, **kwargs)
        nonlocal cache
        if key in cache:
            return cache[key]
        result = f(*args, **kwargs)
        cache[key] = result
        return result

    return cached_fn


def fourier_encode(x, max_freq, num_bands=4):
    x = x.unsqueeze(-1)
    device, dtype, orig_x = x.device, x.dtype, x
    scales = torch.linspace(1.0, max_freq / 2, num_bands, device=device, dtype=dtype)
    scales = scales[(*((None,) * (len(x.shape) - 1)), Ellipsis)]
    x = x * scales * pi
    x = torch.cat([x.sin(), x.cos()], dim=-1)
    return torch.cat((x, orig_x), dim=-1)


class PreNorm(nn.Module):
    def __init__(self, dim, fn, context_dim=None):
        super().__init__()
        self.fn = fn
        self.norm = nn.LayerNorm(dim)
        self.norm_context = nn.LayerNorm(context_dim) if exists(context_dim) else None

    def forward(self, x, **kwargs):
        x = self.norm(x)
        if exists(self.norm_context):
            context = kwargs["context"]
            kwargs.update(context=self.norm_context(context))
        return self.fn(x, **kwargs)


class GEGLU(nn.Module):
    def forward(self, x):
        x, gates = x.chunk(2, dim=-1)
        return x * F.gelu(gates)


class FeedForward(nn.Module):
    def __init__(self, dim, mult=2, dropout=0.0):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(dim, dim * mult * 2), GEGLU(), nn.Linear(dim * mult, dim), nn.Dropout(dropout)
        )

    def forward(self, x):
        return self.net(x)


class Attention(nn.Module):
    def __init__(self, query_dim, context_dim=None, heads=2, dim_head=8):
        super().__init__()
        inner_dim = dim_head * heads
        context_dim = default(context_dim, query_dim)
        self.scale, self.heads = dim_head**-0.5, heads
        self.to_q = nn.Linear(query_dim, inner_dim, bias=False)
        self.to_kv = nn.Linear(context_dim, inner_dim * 2, bias=False)
        self.to_out = nn.Linear(inner_dim, query_dim)

    def forward(self, x, context=None, mask=None):
        b, h = x.shape[0], self.heads
        q = self.to_q(x)
        context = default(context, x)
        k, v = self.to_kv(context).chunk(2, dim=-1)
        q, k, v = map(lambda t: t.reshape(b, t.shape[1], h, -1).transpose(1, 2).flatten(0, 1), (q, k, v))
        sim = einsum("b i d, b j d -> b i j", q, k) * self.scale
        if exists(mask):
            max_neg_value = -torch.finfo(sim.dtype).max
            mask = mask.reshape(b, 1, 1, -1).expand(-1, h, -1, -1).flatten(0, 1)
            sim.masked_fill_(~mask, max_neg_value)
        attn = sim.softmax(dim=-1)
        out = einsum("b i j, b j d -> b i d", attn, v)
        out = out.unflatten(0, (b, h)).transpose(1, 2).flatten(2)
        return self.to_out(out)


class Perceiver(nn.Module):
    def __init__(self, *, depth=2, num_freq_bands=3, num_latents=6, latent_dim=12, num_classes=10, self_per_cross=2):
        super().__init__()
        self.num_freq_bands = num_freq_bands
        input_dim = 2 * (2 * num_freq_bands + 1) + 1
        self.latents = nn.Parameter(torch.randn(num_latents, latent_dim))
        get_cross_attn = lambda: PreNorm(latent_dim, Attention(latent_dim, input_dim), context_dim=input_dim)
        get_cross_ff = lambda: PreNorm(latent_dim, FeedForward(latent_dim))
        get_latent_attn = lambda: PreNorm(latent_dim, Attention(latent_dim))
        get_latent_ff = lambda: PreNorm(latent_dim, FeedForward(latent_dim))
        get_cross_attn, get_cross_ff, get_latent_attn, get_latent_ff = map(
            cache_fn, (get_cross_attn, get_cross_ff, get_latent_attn, get_latent_ff)
        )
        self.layers = nn.ModuleList([])
        for i in range(depth):
            should_cache = i > 0
            cache_args = {"_cache": should_cache}
            self_attns = nn.ModuleList([])
            for block_ind in range(self_per_cross):
                self_attns.append(
                    nn.ModuleList(
                        [get_latent_attn(**cache_args, key=block_ind), get_latent_ff(**cache_args, key=block_ind)]
                    )
                )
            self.layers.append(nn.ModuleList([get_cross_attn(**cache_args), get_cross_ff(**cache_args), self_attns]))
        self.to_logits = nn.Sequential(nn.LayerNorm(latent_dim), nn.Linear(latent_dim, num_classes))

    def forward(self, data, mask=None):
        b, *axis, _, device, dtype = *data.shape, data.device, data.dtype
        axis_pos = list(map(lambda size: torch.linspace(-1.0, 1.0, steps=size, device=device, dtype=dtype), axis))
        pos = torch.stack(torch.meshgrid(*axis_pos, indexing="ij"), dim=-1)
        enc_pos = fourier_encode(pos, 8.0, self.num_freq_bands).flatten(-2)
        enc_pos = enc_pos[None].expand(b, *enc_pos.shape)
        data = torch.cat((data, enc_pos), dim=-1).flatten(1, -2)
        x = self.latents.unsqueeze(0).repeat(b, 1, 1)
        for cross_attn, cross_ff, self_attns in self.layers:
            x = cross_attn(x, context=data, mask=mask) + x
            x = cross_ff(x) + x
            for self_attn, self_ff in self_attns:
                x = self_attn(x) + x
                x = self_ff(x) + x
        return self.to_logits(x.mean(dim=-2))


def main(steps=5):
    rng = np.random.default_rng(0)
    model = Perceiver()
    with torch.no_grad():
        for p in model.parameters():
            if p.ndim > 1:
                p.copy_(torch.from_numpy(rng.normal(0, p.shape[-1] ** -0.5, p.shape)))
        for module in model.modules():
            if getattr(module, "bias", None) is not None:
                module.bias.zero_()
    digits = load_digits()
    x = torch.from_numpy(digits.images[:64]).float()[..., None] / 16
    y = torch.as_tensor(digits.target[:64])
    mask = torch.ones(64, 64, dtype=torch.bool)
    mask[:, -5:] = False
    opt = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=1e-2)
    losses = []
    for _ in range(steps):
        opt.zero_grad(set_to_none=True)
        loss = F.cross_entropy(model(x, mask=mask), y, label_smoothing=0.1)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        losses.append(loss.item())
    return losses, {
        "parameters": sum(p.numel() for p in model.parameters() if p.requires_grad),
        "keys": len(model.state_dict()),
        "latents": model.latents.grad.norm().item(),
    }
