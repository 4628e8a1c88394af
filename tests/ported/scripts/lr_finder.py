"""Find a learning rate by a range test, restore the weights, and train with cyclic rates and warm-up."""

import copy
import io
import math

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn, optim
from torch.optim.lr_scheduler import (
    CosineAnnealingWarmRestarts,
    CyclicLR,
    LambdaLR,
    LinearLR,
    SequentialLR,
    _LRScheduler,
)
from torch.utils.data import BatchSampler, DataLoader, SequentialSampler, TensorDataset


class ExponentialLR(_LRScheduler):
    def __init__(self, optimizer, end_lr, num_iter, last_epoch=-1):
        self.end_lr = end_lr
        self.num_iter = num_iter
        super(ExponentialLR, self).__init__(optimizer, last_epoch)

    def get_lr(self):
        r = self.last_epoch / (self.num_iter - 1)
        return [base_lr * (self.end_lr / base_lr) ** r for base_lr in self.base_lrs]


class LRFinder(object):
    def __init__(self, model, optimizer, criterion):
        self.model, self.optimizer, self.criterion = model, optimizer, criterion
        self.history = {"lr": [], "loss": []}
        self.best_loss = None
        self.memory = io.BytesIO()
        torch.save({"model": model.state_dict(), "optimizer": copy.deepcopy(optimizer.state_dict())}, self.memory)

    def reset(self):
        self.memory.seek(0)
        state = torch.load(self.memory, map_location=lambda storage, location: storage)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])

    def range_test(self, loader, end_lr=10, num_iter=12, smooth_f=0.05, diverge_th=5):
        schedule = ExponentialLR(self.optimizer, end_lr, num_iter)
        iterator = iter(loader)
        for iteration in range(num_iter):
            try:
                inputs, labels = next(iterator)
            except StopIteration:
                iterator = iter(loader)
                inputs, labels = next(iterator)
            self.optimizer.zero_grad()
            loss = self.criterion(self.model(inputs), labels)
            loss.backward()
            self.optimizer.step()
            self.history["lr"].append(schedule.get_last_lr()[0])
            schedule.step()
            loss = loss.item()
            if iteration == 0:
                self.best_loss = loss
            else:
                loss = smooth_f * loss + (1 - smooth_f) * self.history["loss"][-1]
                self.best_loss = min(self.best_loss, loss)
            self.history["loss"].append(loss)
            if loss > diverge_th * self.best_loss:
                break
        return self.history


def main(steps=5):
    digits = load_digits()
    dataset = TensorDataset(torch.tensor(digits.data, dtype=torch.float32).div(16), torch.tensor(digits.target))
    loader = DataLoader(dataset, batch_sampler=BatchSampler(SequentialSampler(dataset), 100, drop_last=False))
    rng = np.random.default_rng(6)
    model = nn.Sequential()
    model.add_module("hidden", nn.Linear(64, 32))
    model.add_module("act", nn.Hardswish())
    model.add_module("out", nn.Linear(32, 10))
    for p in model.parameters():
        p.data = torch.from_numpy(rng.normal(0, 0.12, p.shape)).float()
    criterion = nn.CrossEntropyLoss(reduction="mean")
    optimizer = optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    finder = LRFinder(model, optimizer, criterion)
    history = finder.range_test(loader)
    finder.reset()
    for group in optimizer.param_groups:
        group["lr"] = group["initial_lr"] = 0.1

    warmup = LinearLR(optimizer, start_factor=0.2, total_iters=2)
    restarts = CosineAnnealingWarmRestarts(optimizer, T_0=3, T_mult=2)
    scheduler = SequentialLR(optimizer, schedulers=[warmup, restarts], milestones=[2])
    losses, rates = [], []
    for step, (inputs, labels) in zip(range(steps), loader):
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
        rates.append(optimizer.param_groups[0]["lr"])
        scheduler.step()
        losses.append(loss.item())

    other = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    cyclic = CyclicLR(other, base_lr=0.01, max_lr=0.1, step_size_up=2, mode="exp_range", gamma=0.9)
    plain = LambdaLR(optim.Adam(model.parameters()), lambda epoch: min(1.0, math.sqrt(epoch + 1) / 3))
    for _ in range(5):
        other.step()
        cyclic.step()
        rates += cyclic.get_last_lr()
        rates.append(other.param_groups[0]["momentum"])
        plain.optimizer.step()
        plain.step()
        rates += plain.get_last_lr()
    return losses, {"lr": history["lr"], "loss": history["loss"], "rates": rates}
