"""Train a denoising diffusion model on the digits, then sample from its average weights."""

import copy
import math

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import einsum, nn


def exists(x):
    return x is not None


class Residual(nn.Module):
    def __init__(self, fn):
        super().__init__()
        self.fn = fn

    def forward(self, x, *args, **kwargs):
        return self.fn(x, *args, **kwargs) + x


class SinusoidalPositionEmbeddings(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, time):
        device = time.device
        half_dim = self.dim // 2
        embeddings = math.log(10000) / (half_dim - 1)
        embeddings = torch.exp(torch.arange(half_dim, device=device) * -embeddings)
        embeddings = time[:, None] * embeddings[None, :]
        return torch.cat((embeddings.sin(), embeddings.cos()), dim=-1)


class Block(nn.Module):
    def __init__(self, dim, dim_out, groups=4):
        super().__init__()
        self.proj = nn.Conv2d(dim, dim_out, 3, padding=1)
        self.norm = nn.GroupNorm(groups, dim_out)
        self.act = nn.SiLU()

    def forward(self, x, scale_shift=None):
        x = self.norm(self.proj(x))
        if exists(scale_shift):
            scale, shift = scale_shift
            x = x * (scale + 1) + shift
        return self.act(x)


class ResnetBlock(nn.Module):
    def __init__(self, dim, dim_out, *, time_emb_dim=None):
        super().__init__()
        self.mlp = nn.Sequential(nn.SiLU(), nn.Linear(time_emb_dim, dim_out * 2)) if exists(time_emb_dim) else None
        self.block1 = Block(dim, dim_out)
        self.block2 = Block(dim_out, dim_out)
        self.res_conv = nn.Conv2d(dim, dim_out, 1) if dim != dim_out else nn.Identity()

    def forward(self, x, time_emb=None):
        scale_shift = None
        if exists(self.mlp) and exists(time_emb):
            time_emb = self.mlp(time_emb)[:, :, None, None]
            scale_shift = time_emb.chunk(2, dim=1)
        h = self.block1(x, scale_shift=scale_shift)
        return self.block2(h) + self.res_conv(x)


class LinearAttention(nn.Module):
    def __init__(self, dim, heads=2, dim_head=4):
        super().__init__()
        self.scale = dim_head**-0.5
        self.heads = heads
        self.to_qkv = nn.Conv2d(dim, dim_head * heads * 3, 1, bias=False)
        self.to_out = nn.Sequential(nn.Conv2d(dim_head * heads, dim, 1), nn.GroupNorm(1, dim))

    def forward(self, x):
        b, c, h, w = x.shape
        q, k, v = map(lambda t: t.reshape(b, self.heads, -1, h * w), self.to_qkv(x).chunk(3, dim=1))
        q = q.softmax(dim=-2) * self.scale
        k = k.softmax(dim=-1)
        context = einsum("b h d n, b h e n -> b h d e", k, v)
        out = einsum("b h d e, b h d n -> b h e n", context, q)
        return self.to_out(out.view(b, -1, h, w))


class Unet(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.init_conv = nn.Conv2d(1, dim, 1, padding=0)
        self.time_mlp = nn.Sequential(
            SinusoidalPositionEmbeddings(dim), nn.Linear(dim, dim * 4), nn.GELU(), nn.Linear(dim * 4, dim * 4)
        )
        self.down1 = ResnetBlock(dim, dim, time_emb_dim=dim * 4)
        self.downsample = nn.Sequential(nn.PixelUnshuffle(2), nn.Conv2d(dim * 4, 2 * dim, 1))
        self.mid1 = ResnetBlock(2 * dim, 2 * dim, time_emb_dim=dim * 4)
        self.attn = Residual(LinearAttention(2 * dim))
        self.upsample = nn.Sequential(
            nn.Upsample(scale_factor=2, mode="nearest"), nn.Conv2d(2 * dim, dim, 3, padding=1)
        )
        self.up1 = ResnetBlock(2 * dim, dim, time_emb_dim=dim * 4)
        self.final_conv = nn.Conv2d(dim, 1, 1)

    def forward(self, x, time):
        x = self.init_conv(x)
        t = self.time_mlp(time)
        r = self.down1(x, t)
        x = self.attn(self.mid1(self.downsample(r), t))
        x = torch.cat((self.upsample(x), r), dim=1)
        return self.final_conv(self.up1(x, t))


def cosine_beta_schedule(timesteps, s=0.008):
    x = torch.linspace(0, timesteps, timesteps + 1)
    alphas_cumprod = torch.cos(((x / timesteps) + s) / (1 + s) * torch.pi * 0.5) ** 2
    alphas_cumprod = alphas_cumprod / alphas_cumprod[0]
    return torch.clip(1 - (alphas_cumprod[1:] / alphas_cumprod[:-1]), 0.0001, 0.9999)


def extract(a, t, x_shape):
    out = a.gather(-1, t.cpu())
    return out.reshape(t.shape[0], *((1,) * (len(x_shape) - 1))).to(t.device)


class EMA:
    def __init__(self, model, decay):
        self.decay, self.module = decay, copy.deepcopy(model).eval().requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        for e, p in zip(self.module.state_dict().values(), model.state_dict().values()):
            e.copy_(self.decay * e + (1.0 - self.decay) * p)


def main(steps=5, timesteps=20):
    rng = np.random.default_rng(0)
    betas = cosine_beta_schedule(timesteps)
    alphas = 1.0 - betas
    alphas_cumprod = torch.cumprod(alphas, axis=0)
    alphas_cumprod_prev = F.pad(alphas_cumprod[:-1], (1, 0), value=1.0)
    posterior_variance = betas * (1.0 - alphas_cumprod_prev) / (1.0 - alphas_cumprod)
    images = torch.from_numpy(load_digits().images).float().div_(8).sub_(1)[:, None]

    model = Unet()
    for module in model.modules():
        if isinstance(module, (nn.Conv2d, nn.Linear)):
            fan_in = module.weight[0].numel()
            module.weight.data.copy_(torch.tensor(rng.normal(0, fan_in**-0.5, module.weight.shape)))
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    ema = EMA(model, 0.9)
    losses = []
    x_start = images[torch.from_numpy(rng.choice(len(images), 16, replace=False))]
    noise = torch.from_numpy(rng.standard_normal(x_start.shape)).to(torch.float32)
    t = torch.from_numpy(rng.integers(0, timesteps, 16)).long()
    for step in range(steps):
        optimizer.zero_grad()
        x_noisy = (
            extract(alphas_cumprod.sqrt(), t, x_start.shape) * x_start
            + extract((1.0 - alphas_cumprod).sqrt(), t, x_start.shape) * noise
        )
        loss = F.smooth_l1_loss(noise, model(x_noisy, t))
        loss.backward()
        optimizer.step()
        ema.update(model)
        losses.append(loss.item())

    img = torch.from_numpy(rng.standard_normal((2, 1, 8, 8)).astype(np.float32))
    with torch.no_grad():
        for i in reversed(range(0, timesteps)):
            time = torch.full((2,), i, dtype=torch.long)
            recip = torch.rsqrt(extract(alphas, time, img.shape))
            mean = recip * (
                img
                - extract(betas, time, img.shape)
                * ema.module(img, time)
                / (1 - extract(alphas_cumprod, time, img.shape)).sqrt()
            )
            img = mean.clamp(-2, 2)
            if i:
                noise = torch.as_tensor(rng.standard_normal(tuple(img.shape)), dtype=img.dtype)
                img = img + torch.sqrt(extract(posterior_variance, time, img.shape)) * noise
    return losses, {"sample": [img.mean().item(), img.std().item()]}
