"""Train by sharpness-aware minimisation, an optimizer around another one with a closure of its own."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.nn.modules.batchnorm import _BatchNorm


class SAM(torch.optim.Optimizer):
    def __init__(self, params, base_optimizer, rho=0.05, adaptive=False, **kwargs):
        assert rho >= 0.0, f"Invalid rho, should be non-negative: {rho}"
        defaults = dict(rho=rho, adaptive=adaptive, **kwargs)
        super(SAM, self).__init__(params, defaults)
        self.base_optimizer = base_optimizer(self.param_groups, **kwargs)
        self.param_groups = self.base_optimizer.param_groups
        self.defaults.update(self.base_optimizer.defaults)

    @torch.no_grad()
    def first_step(self, zero_grad=False):
        grad_norm = self._grad_norm()
        for group in self.param_groups:
            scale = group["rho"] / (grad_norm + 1e-12)
            for p in group["params"]:
                if p.grad is None:
                    continue
                self.state[p]["old_p"] = p.data.clone()
                e_w = (torch.pow(p, 2) if group["adaptive"] else 1.0) * p.grad * scale.to(p)
                p.add_(e_w)
        if zero_grad:
            self.zero_grad()

    @torch.no_grad()
    def second_step(self, zero_grad=False):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                p.data = self.state[p]["old_p"]
        self.base_optimizer.step()
        if zero_grad:
            self.zero_grad()

    @torch.no_grad()
    def step(self, closure=None):
        assert closure is not None, "Sharpness Aware Minimization requires closure, but it was not provided"
        closure = torch.enable_grad()(closure)
        self.first_step(zero_grad=True)
        closure()
        self.second_step()

    def _grad_norm(self):
        shared_device = self.param_groups[0]["params"][0].device
        return torch.norm(
            torch.stack(
                [
                    ((torch.abs(p) if group["adaptive"] else 1.0) * p.grad).norm(p=2).to(shared_device)
                    for group in self.param_groups
                    for p in group["params"]
                    if p.grad is not None
                ]
            ),
            p=2,
        )

    def load_state_dict(self, state_dict):
        super().load_state_dict(state_dict)
        self.base_optimizer.param_groups = self.param_groups


def disable_running_stats(model):
    def _disable(module):
        if isinstance(module, _BatchNorm):
            module.backup_momentum = module.momentum
            module.momentum = 0

    model.apply(_disable)


def enable_running_stats(model):
    def _enable(module):
        if isinstance(module, _BatchNorm) and hasattr(module, "backup_momentum"):
            module.momentum = module.backup_momentum

    model.apply(_enable)


def smooth_crossentropy(pred, gold, smoothing=0.1):
    n_class = pred.size(1)
    one_hot = torch.full_like(pred, fill_value=smoothing / (n_class - 1))
    one_hot.scatter_(dim=1, index=gold.unsqueeze(1), value=1.0 - smoothing)
    log_prob = F.log_softmax(pred, dim=1)
    return F.kl_div(input=log_prob, target=one_hot, reduction="none").sum(-1)


def main(steps=5):
    digits = load_digits()
    x = torch.from_numpy(digits.images[:256]).float().unsqueeze(1) / 16
    y = torch.from_numpy(digits.target[:256])
    rng = np.random.default_rng(0)
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3, 1, 1, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(128, 10),
    )
    for p in model.parameters():
        if p.dim() > 1:
            p.data = torch.from_numpy(rng.normal(0, p[0].numel() ** -0.5, p.shape)).float()
    model[5].bias.data.zero_()
    results = []
    optimizer = SAM(
        model.parameters(), torch.optim.SGD, rho=0.5, adaptive=True, lr=0.1, momentum=0.9, weight_decay=5e-4
    )
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer.base_optimizer, milestones=[2, 4], gamma=0.5)
    for step in range(steps):
        inputs, targets = x[step * 32 % 256 :][:32], y[step * 32 % 256 :][:32]
        enable_running_stats(model)
        predictions = model(inputs)
        loss = smooth_crossentropy(predictions, targets)
        loss.mean().backward()
        if step % 2 == 0:
            optimizer.first_step(zero_grad=True)
            disable_running_stats(model)
            smooth_crossentropy(model(inputs), targets).mean().backward()
            optimizer.second_step(zero_grad=True)
        else:

            def closure():
                disable_running_stats(model)
                loss = smooth_crossentropy(model(inputs), targets).mean()
                loss.backward()
                return loss

            optimizer.step(closure)
            optimizer.zero_grad()
        scheduler.step()
        results.append(loss.mean().item())
    restored = SAM(model.parameters(), torch.optim.SGD, rho=0.5, adaptive=True, lr=0.1, momentum=0.9)
    restored.load_state_dict(optimizer.state_dict())
    with torch.no_grad():
        correct = torch.argmax(model.eval()(x), 1) == y
    return results, {
        "correct": correct.sum().item(),
        "lr": restored.param_groups[0]["lr"],
        "mean": model[1].running_mean.tolist(),
    }
