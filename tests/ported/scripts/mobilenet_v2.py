"""Train a MobileNetV2 of few channels: inverted residuals with depthwise convolutions and ReLU6."""

from functools import partial

import numpy as np
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset


def _make_divisible(v, divisor, min_value=None):
    new_v = max(min_value or divisor, int(v + divisor / 2) // divisor * divisor)
    return new_v + divisor if new_v < 0.9 * v else new_v


class ConvBNReLU(nn.Sequential):
    def __init__(self, in_planes, out_planes, kernel_size=3, stride=1, groups=1, norm_layer=nn.BatchNorm2d):
        super().__init__(
            nn.Conv2d(in_planes, out_planes, kernel_size, stride, (kernel_size - 1) // 2, groups=groups, bias=False),
            norm_layer(out_planes),
            nn.ReLU6(inplace=True),
        )


class InvertedResidual(nn.Module):
    def __init__(self, inp, oup, stride, expand_ratio, norm_layer):
        super().__init__()
        assert stride in [1, 2]
        hidden_dim = int(round(inp * expand_ratio))
        self.use_res_connect = stride == 1 and inp == oup
        layers = []
        if expand_ratio != 1:
            layers.append(ConvBNReLU(inp, hidden_dim, kernel_size=1, norm_layer=norm_layer))
        layers.extend(
            [
                ConvBNReLU(hidden_dim, hidden_dim, stride=stride, groups=hidden_dim, norm_layer=norm_layer),
                nn.Conv2d(hidden_dim, oup, 1, 1, 0, bias=False),
                norm_layer(oup),
            ]
        )
        self.conv = nn.Sequential(*layers)

    def forward(self, x):
        return x + self.conv(x) if self.use_res_connect else self.conv(x)


class MobileNetV2(nn.Module):
    def __init__(self, num_classes=10, width_mult=0.5, round_nearest=4):
        super().__init__()
        norm_layer = partial(nn.BatchNorm2d, eps=1e-3, momentum=0.01)
        setting = [[1, 8, 1, 1], [6, 12, 2, 2], [6, 16, 2, 2]]  # expansion, channels, repeats, stride
        channels = _make_divisible(16 * width_mult, round_nearest)
        features = [ConvBNReLU(3, channels, stride=1, norm_layer=norm_layer)]
        for t, c, n, s in setting:
            output_channel = _make_divisible(c * width_mult, round_nearest)
            for i in range(n):
                features.append(InvertedResidual(channels, output_channel, s if i == 0 else 1, t, norm_layer))
                channels = output_channel
        features.append(ConvBNReLU(channels, 32, kernel_size=1, norm_layer=norm_layer))
        self.features = nn.Sequential(*features)
        self.classifier = nn.Sequential(nn.Dropout(0.0), nn.Linear(32, num_classes))
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out")
            elif isinstance(m, nn.Linear):
                nn.init.normal_(m.weight, 0, 0.01)
                nn.init.zeros_(m.bias)

    def forward(self, x):
        x = self.features(x)
        x = nn.functional.adaptive_avg_pool2d(x, 1).reshape(x.shape[0], -1)
        return self.classifier(x)


class Blobs(Dataset):
    """Images of noise with a bright column, whose position is the class."""

    def __init__(self, count):
        rng = np.random.default_rng(1)
        self.images = rng.normal(0, 0.5, (count, 3, 16, 16)).astype("float32")
        self.labels = rng.integers(0, 10, count)
        self.images[np.arange(count), :, :, self.labels] += 2

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, idx):
        if torch.is_tensor(idx):
            idx = idx.tolist()
        return torch.from_numpy(self.images[idx]), int(self.labels[idx])


def main(steps=5):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = MobileNetV2()
    rng = np.random.default_rng(0)
    for name, p in model.named_parameters():
        if p.ndim == 4:
            p.data.copy_(torch.from_numpy(rng.normal(0, (2 / p.size(0)) ** 0.5, p.shape).astype("float32")))
        elif "classifier" in name and name.endswith("weight"):
            p.data.copy_(torch.from_numpy(rng.normal(0, 0.1, p.shape).astype("float32")))
    model.to(device)
    loader = DataLoader(Blobs(16 * steps), batch_size=16, shuffle=False, num_workers=0, drop_last=True)
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.RMSprop(model.parameters(), lr=1e-4, alpha=0.9, eps=0.0316, momentum=0.9, weight_decay=1e-5)
    lr_scheduler = optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.98)
    running_loss, losses = 0.0, []
    model.train()
    for images, target in loader:
        images, target = images.to(device, non_blocking=True), target.to(device, non_blocking=True)
        loss = criterion(model(images), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        lr_scheduler.step()
        running_loss += loss.item() * images.size(0)
        losses.append(loss.item())
    params = sum(p.numel() for p in model.parameters() if p.requires_grad)
    return losses, {"mean": running_loss / len(loader.dataset), "params": params, "lr": lr_scheduler.get_last_lr()}
