"""Hooks of optimizers, an optimizer of one's own, groups with different rates, gradients accumulated over batches."""

import math

import numpy as np
import torch
import torch.nn as nn
from torch.optim.optimizer import Optimizer


class SimpleAdam(Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        if not 0.0 <= lr:
            raise ValueError("Invalid learning rate: {}".format(lr))
        super(SimpleAdam, self).__init__(params, dict(lr=lr, betas=betas, eps=eps))

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if len(state) == 0:
                    state["step"] = 0
                    state["exp_avg"] = torch.zeros_like(p, memory_format=torch.preserve_format)
                    state["exp_avg_sq"] = torch.zeros_like(p, memory_format=torch.preserve_format)
                state["step"] += 1
                state["exp_avg"].mul_(beta1).add_(p.grad, alpha=1 - beta1)
                state["exp_avg_sq"].mul_(beta2).addcmul_(p.grad, p.grad, value=1 - beta2)
                denom = (state["exp_avg_sq"].sqrt() / math.sqrt(1 - beta2 ** state["step"])).add_(group["eps"])
                p.addcdiv_(state["exp_avg"], denom, value=-group["lr"] / (1 - beta1 ** state["step"]))
        return loss


def main(steps=5):
    rng = np.random.default_rng(0)
    model = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 1))
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.from_numpy(0.4 * rng.standard_normal(tuple(p.shape))))
    x = torch.from_numpy(rng.standard_normal((32, 6)).astype(np.float32))
    y = (x[:, :2].prod(dim=1, keepdim=True)).sin()
    own = SimpleAdam([{"params": model[0].parameters()}, {"params": model[2].parameters(), "lr": 3e-2}], lr=1e-2)
    norms, after = [], []

    def pre(optimizer, args, kwargs):
        norms.append(sum(p.grad.norm().item() for g in optimizer.param_groups for p in g["params"]))

    pre_handle = own.register_step_pre_hook(pre)
    post_handle = own.register_step_post_hook(lambda optimizer, args, kwargs: after.append(len(optimizer.state)))
    losses = []
    for epoch in range(steps):
        own.zero_grad()
        total = 0.0
        for xb, yb in zip(x.chunk(2), y.chunk(2)):
            loss = nn.functional.mse_loss(model(xb), yb) / 2
            loss.backward()
            total += loss.item()
        own.step()
        losses.append(total)
    pre_handle.remove()
    post_handle.remove()
    own.step()
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    sgd.register_step_post_hook(lambda *args: after.append(-1))
    sgd.step()
    state = own.state_dict()
    own.load_state_dict(state)
    return losses, {"norms": norms, "after": after, "groups": [g["lr"] for g in own.param_groups]}
