"""Train an MLP-Mixer on mixed-up digits: mixup and cutmix with soft labels, warmup and cosine decay by LambdaLR."""

import math
from functools import partial

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, TensorDataset

pair = lambda x: x if isinstance(x, tuple) else (x, x)


class PreNormResidual(nn.Module):
    def __init__(self, dim, fn):
        super().__init__()
        self.fn = fn
        self.norm = nn.LayerNorm(dim)

    def forward(self, x):
        return self.fn(self.norm(x)) + x


def FeedForward(dim, expansion_factor=4, dropout=0.0, dense=nn.Linear):
    inner_dim = int(dim * expansion_factor)
    return nn.Sequential(
        dense(dim, inner_dim),
        nn.GELU(approximate="tanh"),
        nn.Dropout(dropout),
        dense(inner_dim, dim),
        nn.Dropout(dropout),
    )


class Rearrange(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.p = p

    def forward(self, x):
        patches = x.unfold(2, self.p, self.p).unfold(3, self.p, self.p)
        return patches.permute(0, 2, 3, 4, 5, 1).reshape(x.size(0), -1, self.p * self.p * x.size(1))

    def extra_repr(self):
        return f"patch={self.p}"


def MLPMixer(*, image_size, channels, patch_size, dim, depth, num_classes, expansion_factor=2):
    image_h, image_w = pair(image_size)
    assert (image_h % patch_size) == 0 and (image_w % patch_size) == 0, "image must be divisible by patch size"
    num_patches = (image_h // patch_size) * (image_w // patch_size)
    chan_first, chan_last = partial(nn.Conv1d, kernel_size=1), nn.Linear
    return nn.Sequential(
        Rearrange(patch_size),
        nn.Linear((patch_size**2) * channels, dim),
        *[
            nn.Sequential(
                PreNormResidual(dim, FeedForward(num_patches, expansion_factor, dense=chan_first)),
                PreNormResidual(dim, FeedForward(dim, 0.5 * expansion_factor, dense=chan_last)),
            )
            for _ in range(depth)
        ],
        nn.LayerNorm(dim),
        nn.AdaptiveAvgPool2d((1, None)),
        nn.Flatten(),
        nn.Linear(dim, num_classes),
    )


def rand_bbox(size, lam, rng):
    W, H = size[2], size[3]
    cut_rat = np.sqrt(1.0 - lam)
    cut_w, cut_h = int(W * cut_rat), int(H * cut_rat)
    cx, cy = rng.integers(W), rng.integers(H)
    return (
        np.clip(cx - cut_w // 2, 0, W), np.clip(cy - cut_h // 2, 0, H),
        np.clip(cx + cut_w // 2, 0, W), np.clip(cy + cut_h // 2, 0, H),
    )  # fmt: skip


def mix(x, target, rng, num_classes=10):
    lam = rng.beta(1.0, 1.0)
    rand_index = torch.from_numpy(rng.permutation(x.size()[0]))
    one_hot = torch.full((x.size(0), num_classes), 0.1 / num_classes).scatter_(1, target.view(-1, 1), 0.9)
    if rng.random() < 0.5:
        x = x.mul(lam).add_(x.flip(0).mul_(1.0 - lam))
        return x, one_hot * lam + one_hot.flip(0) * (1.0 - lam)
    bbx1, bby1, bbx2, bby2 = rand_bbox(x.size(), lam, rng)
    x[:, :, bbx1:bbx2, bby1:bby2] = x[rand_index, :, bbx1:bbx2, bby1:bby2]
    lam = 1 - ((bbx2 - bbx1) * (bby2 - bby1) / (x.size()[-1] * x.size()[-2]))
    return x, one_hot * lam + one_hot[rand_index] * (1.0 - lam)


class SoftTargetCrossEntropy(nn.Module):
    def forward(self, x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return torch.sum(-target * torch.log_softmax(x, dim=-1), dim=-1).mean()


def get_cosine_schedule_with_warmup(optimizer, num_warmup_steps, num_training_steps, num_cycles=0.5, last_epoch=-1):
    def lr_lambda(current_step):
        if current_step < num_warmup_steps:
            return float(current_step + 1) / float(max(1, num_warmup_steps))
        progress = float(current_step - num_warmup_steps) / float(max(1, num_training_steps - num_warmup_steps))
        return max(0.0, 0.5 * (1.0 + math.cos(math.pi * float(num_cycles) * 2.0 * progress)))

    return LambdaLR(optimizer, lr_lambda, last_epoch)


def main(steps=5):
    rng = np.random.default_rng(0)
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1).div_(16).sub_(0.3).div_(0.37)
    loader = DataLoader(TensorDataset(images[:200], torch.tensor(digits.target[:200])), batch_size=50, drop_last=True)
    model = MLPMixer(image_size=8, channels=1, patch_size=2, dim=16, depth=2, num_classes=10)
    for module in model.modules():
        if isinstance(module, (nn.Linear, nn.Conv1d)):
            module.weight.data = torch.from_numpy(rng.normal(0, 0.15, module.weight.size())).to(module.weight)
            nn.init.zeros_(module.bias)
    decay = {id(p) for m in model.modules() if isinstance(m, (nn.Linear, nn.Conv1d)) for p in [m.weight]}
    optimizer = torch.optim.AdamW(
        [
            {"params": [p for p in model.parameters() if id(p) in decay], "weight_decay": 0.05},
            {"params": [p for p in model.parameters() if id(p) not in decay], "weight_decay": 0.0},
        ],
        lr=8e-3,
        betas=(0.9, 0.99),
    )
    scheduler = get_cosine_schedule_with_warmup(optimizer, 2, max(steps, 8))
    criterion = SoftTargetCrossEntropy()
    losses, rates = [], []
    while len(losses) < steps:
        for inputs, labels in loader:
            inputs, labels = mix(inputs, labels, rng)
            loss = criterion(model(inputs), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            rates.append(scheduler.get_last_lr()[0])
            scheduler.step()
            losses.append(loss.item())
            if len(losses) == steps:
                break
    model.eval()
    with torch.no_grad():
        accuracy = (model(images[200:300]).argmax(1) == torch.tensor(digits.target[200:300])).float().mean()
    return losses, {"rates": rates, "accuracy": accuracy.item(), "length of repr": len(str(model).splitlines())}
