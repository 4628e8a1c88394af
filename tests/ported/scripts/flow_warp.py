"""Learn optical flow without labels: warp one image to the other; photometric, census and smoothness losses."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def conv(in_planes, out_planes, kernel_size=3, stride=1, dilation=1, isReLU=True):
    layers = [
        nn.Conv2d(
            in_planes, out_planes, kernel_size=kernel_size, stride=stride, dilation=dilation,
            padding=((kernel_size - 1) * dilation) // 2, bias=True,
        )
    ]  # fmt: skip
    return nn.Sequential(*layers, nn.LeakyReLU(0.1, inplace=True)) if isReLU else nn.Sequential(*layers)


def mesh_grid(B, H, W):
    x_base = torch.arange(0, W).repeat(B, H, 1)
    y_base = torch.arange(0, H).repeat(B, W, 1).transpose(1, 2)
    return torch.stack([x_base, y_base], 1)


def norm_grid(v_grid):
    _, _, H, W = v_grid.size()
    v_grid_norm = torch.zeros_like(v_grid)
    v_grid_norm[:, 0, :, :] = 2.0 * v_grid[:, 0, :, :] / (W - 1) - 1.0
    v_grid_norm[:, 1, :, :] = 2.0 * v_grid[:, 1, :, :] / (H - 1) - 1.0
    return v_grid_norm.permute(0, 2, 3, 1)


def flow_warp(x, flow12, pad="border", mode="bilinear"):
    B, _, H, W = x.size()
    base_grid = mesh_grid(B, H, W).type_as(x)
    v_grid = norm_grid(base_grid + flow12)
    return nn.functional.grid_sample(x, v_grid, mode=mode, padding_mode=pad, align_corners=True)


def TernaryLoss(im, im_warp, max_distance=1):
    patch_size = 2 * max_distance + 1

    def _ternary_transform(intensities):
        out_channels = patch_size * patch_size
        w = torch.eye(out_channels).view((out_channels, 1, patch_size, patch_size))
        weights = w.type_as(im)
        patches = F.conv2d(intensities, weights, padding=max_distance)
        transf = patches - intensities
        return transf / torch.sqrt(0.81 + torch.pow(transf, 2))

    def _hamming_distance(t1, t2):
        dist = torch.pow(t1 - t2, 2)
        return torch.mean(dist / (0.1 + dist), 1, keepdim=True)

    def _valid_mask(t, padding):
        n, _, h, w = t.size()
        inner = torch.ones(n, 1, h - 2 * padding, w - 2 * padding).type_as(t)
        return F.pad(inner, [padding] * 4)

    dist = _hamming_distance(_ternary_transform(im), _ternary_transform(im_warp))
    return dist * _valid_mask(im, max_distance)


def SSIM(x, y, md=1):
    patch_size = 2 * md + 1
    C1, C2 = 0.01**2, 0.03**2
    mu_x = nn.AvgPool2d(patch_size, 1, 0)(x)
    mu_y = nn.AvgPool2d(patch_size, 1, 0)(y)
    mu_x_mu_y, mu_x_sq, mu_y_sq = mu_x * mu_y, mu_x.pow(2), mu_y.pow(2)
    sigma_x = nn.AvgPool2d(patch_size, 1, 0)(x * x) - mu_x_sq
    sigma_y = nn.AvgPool2d(patch_size, 1, 0)(y * y) - mu_y_sq
    sigma_xy = nn.AvgPool2d(patch_size, 1, 0)(x * y) - mu_x_mu_y
    SSIM_n = (2 * mu_x_mu_y + C1) * (2 * sigma_xy + C2)
    SSIM_d = (mu_x_sq + mu_y_sq + C1) * (sigma_x + sigma_y + C2)
    return torch.clamp((1 - SSIM_n / SSIM_d) / 2, 0, 1)


def gradient(data):
    D_dy = data[:, :, 1:] - data[:, :, :-1]
    D_dx = data[:, :, :, 1:] - data[:, :, :, :-1]
    return D_dx, D_dy


def smooth_grad_1st(flo, image, alpha):
    img_dx, img_dy = gradient(image)
    weights_x = torch.exp(-torch.mean(torch.abs(img_dx), 1, keepdim=True) * alpha)
    weights_y = torch.exp(-torch.mean(torch.abs(img_dy), 1, keepdim=True) * alpha)
    dx, dy = gradient(flo)
    loss_x = weights_x * dx.abs() / 2.0
    loss_y = weights_y * dy.abs() / 2.0
    return loss_x.mean() / 2.0 + loss_y.mean() / 2.0


class FlowNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.ModuleList([conv(1, 6, stride=1), conv(6, 8, stride=2)])
        self.context = nn.Sequential(conv(8 + 9 + 2, 8, dilation=2), conv(8, 2, isReLU=False))
        self.md = 1

    def corr(self, a, b):
        padded = F.pad(b, (self.md,) * 4)
        B, C, H, W = a.shape
        out = [
            (a * padded[:, :, i : i + H, j : j + W]).mean(1, keepdim=True)
            for i in range(2 * self.md + 1) for j in range(2 * self.md + 1)
        ]  # fmt: skip
        return torch.cat(out, 1)

    def forward(self, im1, im2):
        pyramid1, pyramid2 = [], []
        for pyramid, x in ((pyramid1, im1), (pyramid2, im2)):
            for layer in self.encoder:
                x = layer(x)
                pyramid.insert(0, x)
        flow = torch.zeros_like(pyramid1[0][:, :2])
        f2 = flow_warp(pyramid2[0], flow)
        flow = flow + self.context(torch.cat([pyramid1[0], self.corr(pyramid1[0], f2), flow], dim=1))
        up = F.interpolate(flow * 2, scale_factor=2, mode="bilinear", align_corners=True)
        return [up, flow]


def main(steps=5):
    rng = np.random.default_rng(0)
    base = F.interpolate(torch.tensor(rng.random((2, 1, 6, 6)), dtype=torch.float32), size=(12, 12), mode="bicubic",
                         align_corners=False)  # fmt: skip
    im1, im2 = base[..., :-1].contiguous()[..., :10], base[..., 1:][..., :10]
    im1, im2 = im1[:, :, :10], im2[:, :, :10]
    model = FlowNet()
    for m in model.modules():
        if isinstance(m, nn.Conv2d):
            m.weight.data.copy_(torch.from_numpy(rng.normal(0, 0.15, m.weight.data.shape)))
            if m.bias is not None:
                nn.init.constant_(m.bias, 0.1)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3, betas=(0.9, 0.999), eps=1e-7)
    losses, epes = [], []
    for _ in range(steps):
        flows = model(im1, im2)
        total = 0
        for scale, flow in enumerate(flows):
            size = flow.shape[-2:]
            a, b = (F.interpolate(im, tuple(size), mode="area") for im in (im1, im2))
            warped = flow_warp(b, flow)
            with torch.no_grad():
                occu = ((mesh_grid(2, *size).type_as(flow) + flow)[:, :1] <= size[1] - 1).float()
            loss_warp = 0.15 * ((a - warped).abs() * occu).mean() + 0.85 * SSIM(a * occu, warped * occu).mean()
            loss_warp = (loss_warp + TernaryLoss(a * occu, warped * occu).mean()) / occu.mean()
            total = total + loss_warp / 2**scale + 0.05 * smooth_grad_1st(flow, a, 10)
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
        losses.append(total.item())
        epes.append(
            torch.norm(flows[0].detach() - torch.tensor([-1.0, 0.0]).view(1, 2, 1, 1), p=2, dim=1).mean().item()
        )
    return losses, {"end point errors": epes, "flow": flows[0].detach().numpy()}
