"""Differentially private training: gradients of each example by vmap of grad, clipped one by one."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.func import functional_call, grad, grad_and_value, vmap


class CNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 3, 1)
        self.fc1 = nn.Linear(6 * 3 * 3, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.max_pool2d(x, 2)
        x = torch.flatten(x, 1)
        return F.log_softmax(self.fc1(x), dim=1)


def main(steps=5):
    rng = np.random.default_rng(0)
    digits = load_digits()
    data = torch.from_numpy(digits.images[:32]).float().unsqueeze(1) / 16
    targets = torch.from_numpy(digits.target[:32]).long()
    model = CNN()
    params = {k: torch.from_numpy(0.2 * rng.standard_normal(v.shape)).float() for k, v in model.named_parameters()}
    buffers = {k: v.detach() for k, v in model.named_buffers()}

    def compute_loss(params, buffers, sample, target):
        predictions = functional_call(model, (params, buffers), (sample.unsqueeze(0),))
        return F.nll_loss(predictions, target.unsqueeze(0))

    ft_compute_grad = grad_and_value(compute_loss)
    ft_compute_sample_grad = vmap(ft_compute_grad, in_dims=(None, None, 0, 0))
    losses = []
    for _ in range(steps):
        grads, values = ft_compute_sample_grad(params, buffers, data, targets)
        squares = [g.flatten(1).pow(2).sum(1) for g in grads.values()]
        norms = torch.stack(squares).sum(0).sqrt()
        factor = (1.0 / (norms + 1e-6)).clamp(max=1.0)
        params = {k: p - 0.5 * torch.einsum("i,i...->...", factor, grads[k]) / len(data) for k, p in params.items()}
        losses.append(values.mean().item())
    whole = grad(lambda p: F.nll_loss(functional_call(model, p, (data,)), targets))(params)
    each = ft_compute_sample_grad(params, buffers, data, targets)[0]
    close = all(torch.allclose(whole[k], each[k].mean(0), atol=1e-5) for k in params)
    return losses, {"norms": norms.numpy(), "close": close}
