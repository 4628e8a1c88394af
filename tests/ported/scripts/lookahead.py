"""Train an RNN over rows of digits by two optimizers of one's own: Lookahead around RAdam."""

import itertools as it
from collections import defaultdict
from copy import deepcopy

import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.optim.optimizer import Optimizer, required


def centralized_gradient(x, use_gc=True):
    if use_gc and len(list(x.size())) > 1:
        x.add_(-x.mean(dim=tuple(range(1, len(list(x.size())))), keepdim=True))
    return x


class RAdam(Optimizer):
    def __init__(self, params, lr=required, betas=(0.9, 0.999), eps=1e-8, weight_decay=0):
        if lr is not required and not 0.0 <= lr:
            raise ValueError(f"Invalid learning rate: {lr}")
        defaults = dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay)
        self.buffer = [[None, None, None] for ind in range(10)]
        super(RAdam, self).__init__(params, defaults)

    def __setstate__(self, state):
        super(RAdam, self).__setstate__(state)

    def step(self, closure=None):
        loss = None
        if closure is not None:
            loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                grad = centralized_gradient(p.grad.data.float())
                if grad.is_sparse:
                    raise RuntimeError("RAdam does not support sparse gradients")
                p_data_fp32 = p.data.float()
                state = self.state[p]
                if len(state) == 0:
                    state["step"] = 0
                    state["exp_avg"] = torch.zeros_like(p_data_fp32)
                    state["exp_avg_sq"] = torch.zeros_like(p_data_fp32)
                else:
                    state["exp_avg"] = state["exp_avg"].type_as(p_data_fp32)
                    state["exp_avg_sq"] = state["exp_avg_sq"].type_as(p_data_fp32)
                exp_avg, exp_avg_sq = state["exp_avg"], state["exp_avg_sq"]
                beta1, beta2 = group["betas"]
                exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
                exp_avg.mul_(beta1).add_(grad, alpha=1 - beta1)
                state["step"] += 1
                buffered = self.buffer[int(state["step"] % 10)]
                if state["step"] == buffered[0]:
                    N_sma, step_size = buffered[1], buffered[2]
                else:
                    buffered[0] = state["step"]
                    beta2_t = beta2 ** state["step"]
                    N_sma_max = 2 / (1 - beta2) - 1
                    N_sma = N_sma_max - 2 * state["step"] * beta2_t / (1 - beta2_t)
                    buffered[1] = N_sma
                    if N_sma >= 5:
                        step_size = np.sqrt(
                            (1 - beta2_t) * (N_sma - 4) / (N_sma_max - 4) * (N_sma - 2) / N_sma * N_sma_max
                            / (N_sma_max - 2)
                        ) / (1 - beta1 ** state["step"])  # fmt: skip
                    else:
                        step_size = 1.0 / (1 - beta1 ** state["step"])
                    buffered[2] = step_size
                if group["weight_decay"] != 0:
                    p_data_fp32.add_(p_data_fp32, alpha=-group["weight_decay"] * group["lr"])
                if N_sma >= 5:
                    denom = exp_avg_sq.sqrt().add_(group["eps"])
                    p_data_fp32.addcdiv_(exp_avg, denom, value=-step_size * group["lr"])
                else:
                    p_data_fp32.add_(exp_avg, alpha=-step_size * group["lr"])
                p.data.copy_(p_data_fp32)
        return loss


class Lookahead(Optimizer):
    def __init__(self, base_optimizer, alpha=0.5, k=2):
        if not 0.0 <= alpha <= 1.0:
            raise ValueError(f"Invalid slow update rate: {alpha}")
        self.optimizer = base_optimizer
        self.param_groups = self.optimizer.param_groups
        self.alpha = alpha
        self.k = k
        for group in self.param_groups:
            group["step_counter"] = 0
        self.slow_weights = [[p.clone().detach() for p in group["params"]] for group in self.param_groups]
        for w in it.chain(*self.slow_weights):
            w.requires_grad = False
        self.state = defaultdict(dict, base_optimizer.state)
        self.defaults = base_optimizer.defaults

    def step(self, closure=None):
        loss = self.optimizer.step(closure)
        for group, slow_weights in zip(self.param_groups, self.slow_weights):
            group["step_counter"] += 1
            if group["step_counter"] % self.k != 0:
                continue
            for p, q in zip(group["params"], slow_weights):
                if p.grad is None:
                    continue
                q.data.add_(p.data - q.data, alpha=self.alpha)
                p.data.copy_(q.data)
        return loss

    def state_dict(self):
        return self.optimizer.state_dict()

    def load_state_dict(self, state_dict):
        self.optimizer.load_state_dict(state_dict)
        self.param_groups = self.optimizer.param_groups

    def zero_grad(self):
        self.optimizer.zero_grad()


class RowRNN(nn.Module):
    def __init__(self, hidden=16):
        super().__init__()
        self.rnn = nn.RNN(8, hidden, nonlinearity="tanh", batch_first=True)
        self.out = nn.Linear(hidden, 10)

    def forward(self, x):
        r_out, h_n = self.rnn(x, None)
        return self.out(r_out[:, -1, :])


def main(steps=5):
    rng = np.random.RandomState(0)
    digits = load_digits()
    x = torch.Tensor(digits.images[:100] / 16)
    y = torch.LongTensor(digits.target[:100])
    model = RowRNN()
    for param in model.parameters():
        param.data = torch.Tensor(rng.uniform(-0.3, 0.3, param.data.size()))
    optimizer = Lookahead(RAdam(model.parameters(), lr=0.05, weight_decay=1e-3))
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer.optimizer, 0.98)
    losses = []
    for epoch in range(steps):
        if epoch == steps // 2:
            optimizer.load_state_dict(deepcopy(optimizer.state_dict()))
        loss = nn.CrossEntropyLoss()(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    return losses, {
        "slow": [w.norm().item() for w in optimizer.slow_weights[0]],
        "lr": optimizer.param_groups[0]["lr"],
        "step": optimizer.optimizer.state[model.out.weight]["step"],
        "counter": optimizer.state_dict()["param_groups"][0]["step_counter"],
    }
