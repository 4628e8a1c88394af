"""Train a U-Net to separate bright discs from noise, with cross-entropy and the Dice score."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class DoubleConv(nn.Module):
    """(convolution => [BN] => ReLU) * 2"""

    def __init__(self, in_channels, out_channels, mid_channels=None):
        super().__init__()
        if not mid_channels:
            mid_channels = out_channels
        self.double_conv = nn.Sequential(
            nn.Conv2d(in_channels, mid_channels, kernel_size=3, padding=1, bias=False),
            nn.BatchNorm2d(mid_channels),
            nn.ReLU(inplace=True),
            nn.Conv2d(mid_channels, out_channels, kernel_size=3, padding=1, bias=False),
            nn.BatchNorm2d(out_channels),
            nn.ReLU(inplace=True),
        )

    def forward(self, x):
        return self.double_conv(x)


class Down(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.maxpool_conv = nn.Sequential(nn.MaxPool2d(2), DoubleConv(in_channels, out_channels))

    def forward(self, x):
        return self.maxpool_conv(x)


class Up(nn.Module):
    def __init__(self, in_channels, out_channels, bilinear=True):
        super().__init__()
        if bilinear:
            self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
            self.conv = DoubleConv(in_channels, out_channels, in_channels // 2)
        else:
            self.up = nn.ConvTranspose2d(in_channels, in_channels // 2, kernel_size=2, stride=2)
            self.conv = DoubleConv(in_channels, out_channels)

    def forward(self, x1, x2):
        x1 = self.up(x1)
        diff_y = x2.size()[2] - x1.size()[2]
        diff_x = x2.size()[3] - x1.size()[3]
        x1 = F.pad(x1, [diff_x // 2, diff_x - diff_x // 2, diff_y // 2, diff_y - diff_y // 2])
        return self.conv(torch.cat([x2, x1], dim=1))


class UNet(nn.Module):
    def __init__(self, n_channels, n_classes, width=6):
        super().__init__()
        self.inc = DoubleConv(n_channels, width)
        self.down1 = Down(width, 2 * width)
        self.down2 = Down(2 * width, 2 * width)
        self.up1 = Up(4 * width, width, bilinear=True)
        self.up2 = Up(2 * width, width, bilinear=False)
        self.up2.up = nn.ConvTranspose2d(width, width, kernel_size=2, stride=2)
        self.outc = nn.Conv2d(width, n_classes, kernel_size=1)

    def forward(self, x):
        x1 = self.inc(x)
        x2 = self.down1(x1)
        x3 = self.down2(x2)
        x = self.up1(x3, x2)
        x = self.up2(x, x1)
        return self.outc(x)


def dice_coeff(input, target, epsilon=1e-6):
    sum_dim = (-1, -2, -3)
    inter = 2 * (input * target).sum(dim=sum_dim)
    sets_sum = input.sum(dim=sum_dim) + target.sum(dim=sum_dim)
    sets_sum = torch.where(sets_sum == 0, inter, sets_sum)
    return ((inter + epsilon) / (sets_sum + epsilon)).mean()


def dice_loss(input, target):
    return 1 - dice_coeff(input.flatten(0, 1), target.flatten(0, 1))


def discs(count, size=18):
    rng = np.random.default_rng(1)
    grid = np.stack(np.mgrid[:size, :size])
    centers = rng.uniform(4, size - 4, (count, 2, 1, 1))
    masks = ((grid - centers) ** 2).sum(1) < 16
    images = masks[:, None] + rng.normal(0, 0.3, (count, 1, size, size))
    return torch.from_numpy(images.astype("float32")), torch.from_numpy(masks.astype("int64"))


def main(steps=5):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    images, true_masks = discs(8)
    model = UNet(n_channels=1, n_classes=2)
    model = model.to(memory_format=torch.channels_last)
    rng = np.random.default_rng(0)
    for p in model.parameters():
        if p.dim() > 1:
            p.data.copy_(torch.from_numpy(rng.normal(0, 0.2, p.shape).astype("float32")))
        elif p.data.abs().sum() != p.numel():
            p.data.zero_()
    model.to(device=device)
    images = images.to(device=device, dtype=torch.float32, memory_format=torch.channels_last)
    true_masks = true_masks.to(device=device, dtype=torch.long)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3, weight_decay=1e-8, momentum=0.5)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, "max", patience=1)
    criterion = nn.CrossEntropyLoss()
    losses, scores = [], []
    for _ in range(steps):
        model.train()
        masks_pred = model(images)
        loss = criterion(masks_pred, true_masks)
        one_hot = F.one_hot(true_masks, 2).permute(0, 3, 1, 2).float()
        loss += dice_loss(F.softmax(masks_pred, dim=1).float(), one_hot)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        score = dice_coeff(masks_pred.detach().argmax(dim=1).unsqueeze(1).float(), true_masks.unsqueeze(1).float())
        scheduler.step(score)
        losses.append(loss.item())
        scores.append(score.item())
    return losses, {"scores": scores, "lr": optimizer.param_groups[0]["lr"]}
