"""Train a small radiance field: encoded positions, stratified and importance samples along rays, volume rendering."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class Embedder:
    def __init__(self, num_freqs, include_input=True):
        self.freq_bands = 2.0 ** torch.linspace(0.0, num_freqs - 1, steps=num_freqs)
        self.embed_fns = [lambda x: x] if include_input else []
        for freq in self.freq_bands:
            for p_fn in [torch.sin, torch.cos]:
                self.embed_fns.append(lambda x, p_fn=p_fn, freq=freq: p_fn(x * freq))

    def embed(self, inputs):
        return torch.cat([fn(inputs) for fn in self.embed_fns], -1)


class NeRF(nn.Module):
    def __init__(self, W=24, input_ch=21, skips=[1]):
        super(NeRF, self).__init__()
        self.skips = skips
        self.pts_linears = nn.ModuleList(
            [nn.Linear(input_ch, W)]
            + [nn.Linear(W, W) if i not in self.skips else nn.Linear(W + input_ch, W) for i in range(2)]
        )
        self.output_linear = nn.Linear(W, 4)

    def forward(self, x):
        h = x
        for i, layer in enumerate(self.pts_linears):
            h = F.relu(layer(h))
            if i in self.skips:
                h = torch.cat([x, h], -1)
        return self.output_linear(h)


def raw2outputs(raw, z_vals, rays_d):
    raw2alpha = lambda raw, dists, act_fn=F.relu: 1.0 - torch.exp(-act_fn(raw) * dists)
    dists = z_vals[..., 1:] - z_vals[..., :-1]
    dists = torch.cat([dists, torch.Tensor([1e10]).expand(dists[..., :1].shape)], -1)
    dists = dists * torch.norm(rays_d[..., None, :], dim=-1)
    rgb = torch.sigmoid(raw[..., :3])
    alpha = raw2alpha(raw[..., 3], dists)
    weights = alpha * torch.cumprod(torch.cat([torch.ones((alpha.shape[0], 1)), 1.0 - alpha + 1e-10], -1), -1)[:, :-1]
    rgb_map = torch.sum(weights[..., None] * rgb, -2)
    depth_map = torch.sum(weights * z_vals, -1)
    disp_map = 1.0 / torch.max(1e-10 * torch.ones_like(depth_map), depth_map / torch.sum(weights, -1))
    return rgb_map, disp_map, torch.sum(weights, -1), weights


def sample_pdf(bins, weights, N_samples):
    weights = weights + 1e-5
    pdf = weights / torch.sum(weights, -1, keepdim=True)
    cdf = torch.cumsum(pdf, -1)
    cdf = torch.cat([torch.zeros_like(cdf[..., :1]), cdf], -1)
    u = torch.linspace(0.05, 0.95, steps=N_samples)
    u = u.expand(list(cdf.shape[:-1]) + [N_samples]).contiguous()
    inds = torch.searchsorted(cdf, u, right=True)
    below = torch.max(torch.zeros_like(inds - 1), inds - 1)
    above = torch.min((cdf.shape[-1] - 1) * torch.ones_like(inds), inds)
    inds_g = torch.stack([below, above], -1)
    matched_shape = [inds_g.shape[0], inds_g.shape[1], cdf.shape[-1]]
    cdf_g = torch.gather(cdf.unsqueeze(1).expand(matched_shape), 2, inds_g)
    bins_g = torch.gather(bins.unsqueeze(1).expand(matched_shape), 2, inds_g)
    denom = cdf_g[..., 1] - cdf_g[..., 0]
    denom = torch.where(denom < 1e-5, torch.ones_like(denom), denom)
    t = (u - cdf_g[..., 0]) / denom
    return bins_g[..., 0] + t * (bins_g[..., 1] - bins_g[..., 0])


def get_rays(H, W, focal, c2w):
    i, j = torch.meshgrid(torch.linspace(0, W - 1, W), torch.linspace(0, H - 1, H), indexing="xy")
    dirs = torch.stack([(i - W * 0.5) / focal, -(j - H * 0.5) / focal, -torch.ones_like(i)], -1)
    rays_d = torch.sum(dirs[..., np.newaxis, :] * c2w[:3, :3], -1)
    return c2w[:3, -1].expand(rays_d.shape), rays_d


def main(steps=5):
    rng = np.random.default_rng(0)
    embedder, model = Embedder(3), NeRF()
    for p in model.parameters():
        p.data = torch.Tensor(rng.normal(0, p.shape[-1] ** -0.5, p.shape))
    model.output_linear.bias.data[3] = 2.0  # some density on every ray
    c2w = torch.Tensor(np.concatenate([np.eye(3), [[0], [0], [3]]], 1))
    rays_o, rays_d = (r.reshape(-1, 3).float() for r in get_rays(6, 6, 6.0, c2w))
    target = torch.Tensor(rng.random((36, 3)))
    optimizer = torch.optim.Adam(params=list(model.parameters()), lr=5e-3, betas=(0.9, 0.999))
    mse2psnr = lambda x: -10.0 * torch.log(x) / torch.log(torch.Tensor([10.0]))
    losses, psnrs = [], []
    for step in range(1, steps + 1):
        z_vals = torch.linspace(2.0, 4.0, steps=8).expand([36, 8])
        mids = 0.5 * (z_vals[..., 1:] + z_vals[..., :-1])
        upper, lower = torch.cat([mids, z_vals[..., -1:]], -1), torch.cat([z_vals[..., :1], mids], -1)
        z_vals = lower + (upper - lower) * torch.Tensor(rng.random(tuple(z_vals.shape)))
        pts = rays_o[..., None, :] + rays_d[..., None, :] * z_vals[..., :, None]
        rgb0, _, _, weights = raw2outputs(model(embedder.embed(pts)), z_vals, rays_d)
        z_samples = sample_pdf(0.5 * (z_vals[..., 1:] + z_vals[..., :-1]), weights[..., 1:-1], 6).detach()
        z_all, _ = torch.sort(torch.cat([z_vals, z_samples], -1), -1)
        pts = rays_o[..., None, :] + rays_d[..., None, :] * z_all[..., :, None]
        rgb, disp, acc, _ = raw2outputs(model(embedder.embed(pts)), z_all, rays_d)
        img_loss = torch.mean((rgb - target) ** 2)
        loss = img_loss + torch.mean((rgb0 - target) ** 2)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        for param_group in optimizer.param_groups:
            param_group["lr"] = 5e-3 * (0.1 ** (step / 250))
        losses.append(loss.item())
        psnrs.append(mse2psnr(img_loss).item())
    to8b = lambda x: (255 * np.clip(x, 0, 1)).astype(np.uint8)
    return losses, {"psnr": psnrs, "acc": acc.mean().item(), "image": to8b(rgb.detach().numpy()).shape}
