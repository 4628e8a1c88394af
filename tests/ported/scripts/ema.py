"""An exponential moving average of the weights, by AveragedModel and by hand, and stochastic weight averaging."""

from copy import deepcopy

import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.optim.swa_utils import SWALR, AveragedModel, get_ema_multi_avg_fn, update_bn


class ModelEMA:
    def __init__(self, model, decay=0.9):
        self.module = deepcopy(model).eval()
        self.decay = decay
        for p in self.module.parameters():
            p.requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        for ema_v, model_v in zip(self.module.state_dict().values(), model.state_dict().values()):
            if ema_v.is_floating_point():
                ema_v.lerp_(model_v, 1.0 - self.decay)
            else:
                ema_v.copy_(model_v)


def main(steps=5):
    rng = np.random.default_rng(0)
    digits = load_digits()
    x = torch.from_numpy(digits.data[:200]).float().div_(16)
    y = torch.from_numpy(digits.target[:200])
    model = nn.Sequential(nn.Linear(64, 24, bias=False), nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, 10))
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.from_numpy(0.2 * rng.standard_normal(tuple(p.shape))))
    averaged = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
    swa_model = AveragedModel(model)
    by_hand = ModelEMA(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)
    swa_scheduler = SWALR(optimizer, anneal_strategy="linear", anneal_epochs=2, swa_lr=0.005)
    losses = []
    for epoch in range(steps):
        loss = nn.functional.cross_entropy(model(x), y, label_smoothing=0.1)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        averaged.update_parameters(model)
        by_hand.update(model)
        if epoch > steps // 2:
            swa_model.update_parameters(model)
            swa_scheduler.step()
        else:
            scheduler.step()
        losses.append(loss.item())
    update_bn([(x[:100],), (x[100:],)], swa_model)
    swa_model.eval()
    averaged.eval()
    with torch.no_grad():
        numbers = {
            "swa": nn.CrossEntropyLoss()(swa_model(x), y).item(),
            "ema": averaged.module(x).norm().item(),
            "by hand": by_hand.module(x).norm().item(),
            "lr": optimizer.param_groups[0]["lr"],
            "n": int(averaged.n_averaged),
        }
    return losses, numbers
