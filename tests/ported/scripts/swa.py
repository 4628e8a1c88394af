"""Average weights over the last steps with SWALR, and compute the averaged model's statistics with update_bn."""

import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.optim.swa_utils import SWALR, AveragedModel, get_ema_multi_avg_fn, update_bn
from torch.utils.data import DataLoader, TensorDataset, random_split


def conv_block(cin, cout):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, padding=1), nn.BatchNorm2d(cout), nn.ReLU6())


def main(steps=5):
    rng = np.random.default_rng(0)
    digits = load_digits()
    dataset = TensorDataset(
        torch.from_numpy(digits.images).float()[:, None] / 16, torch.from_numpy(digits.target).long()
    )
    train, valid = torch.utils.data.Subset(dataset, range(320)), torch.utils.data.Subset(dataset, range(1000, 1200))
    parts = random_split(train, [0.75, 0.25], generator=torch.Generator().manual_seed(42))
    assert [len(part) for part in parts] == [240, 80]
    loader = DataLoader(train, batch_size=64, shuffle=False)
    model = nn.Sequential(
        conv_block(1, 8),
        nn.MaxPool2d(2),
        conv_block(8, 16),
        nn.AdaptiveAvgPool2d((1, 1)),
        nn.Flatten(),
        nn.Linear(16, 10),
    )
    for m in model.modules():
        if isinstance(m, nn.Conv2d):
            n = m.kernel_size[0] * m.kernel_size[1] * m.out_channels
            m.weight.data = torch.from_numpy(rng.normal(0, np.sqrt(2.0 / n), m.weight.shape)).float()
            m.bias.data.zero_()
        elif isinstance(m, nn.Linear):
            m.weight.data = torch.from_numpy(rng.normal(0, 0.1, m.weight.shape)).float()
            m.bias.data.zero_()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    swa_model = AveragedModel(model)
    ema_model = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.8), use_buffers=True)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=100)
    swa_start = 2
    swa_scheduler = SWALR(optimizer, swa_lr=0.05, anneal_epochs=2, anneal_strategy="cos")
    loss_fn = nn.CrossEntropyLoss()

    losses, rates = [], []
    for step, (input, target) in enumerate(loader):
        if step == steps:
            break
        optimizer.zero_grad()
        loss = loss_fn(model(input), target)
        loss.backward()
        optimizer.step()
        ema_model.update_parameters(model)
        if step > swa_start:
            swa_model.update_parameters(model)
            swa_scheduler.step()
        else:
            scheduler.step()
        losses.append(loss.item())
        rates.append(optimizer.param_groups[0]["lr"])
    update_bn(loader, swa_model)
    inputs, targets = next(iter(DataLoader(valid, batch_size=200)))
    scores = []
    for averaged in (swa_model, ema_model, model):
        averaged.eval()
        with torch.no_grad():
            scores.append(loss_fn(averaged(inputs), targets).item())
    saved = swa_model.state_dict()
    return losses, {
        "rates": rates,
        "scores": scores,
        "averaged": saved["n_averaged"].item(),
        "statistics": saved["module.0.1.running_mean"].numpy(),
    }
