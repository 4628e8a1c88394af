"""Training aware of quantization: weights and activations are rounded, gradients pass straight through."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits


class FakeQuantize(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale, zero_point, qmin, qmax):
        q = torch.clamp(torch.round(x / scale + zero_point), qmin, qmax)
        inside = (x / scale + zero_point >= qmin) & (x / scale + zero_point <= qmax)
        ctx.save_for_backward(inside)
        return (q - zero_point) * scale

    @staticmethod
    def backward(ctx, grad_output):
        (inside,) = ctx.saved_tensors
        return grad_output * inside, None, None, None, None


class QuantLinear(nn.Linear):
    def __init__(self, *args, bits=4, **kwargs):
        super().__init__(*args, **kwargs)
        self.bits = bits
        self.register_buffer("running_max", torch.zeros(1))

    def forward(self, x):
        qmax = 2 ** (self.bits - 1) - 1
        with torch.no_grad():
            self.running_max.copy_(torch.max(self.running_max, x.detach().abs().max()))
        scale = self.weight.detach().abs().max() / qmax
        w = FakeQuantize.apply(self.weight, scale, 0, -qmax - 1, qmax)
        x = FakeQuantize.apply(x, self.running_max.clamp(min=1e-8) / 255, 0, 0, 255)
        return F.linear(x, w, self.bias)

    def extra_repr(self):
        return f"{super().extra_repr()}, bits={self.bits}"


def main(steps=5):
    rng = np.random.default_rng(0)
    digits = load_digits()
    x = torch.as_tensor(digits.data[:128], dtype=torch.float64) / 16
    y = torch.as_tensor(digits.target[:128])
    model = nn.Sequential(QuantLinear(64, 32), nn.ReLU(), QuantLinear(32, 10, bits=8)).double()
    for p in model.parameters():
        p.data = torch.from_numpy(0.2 * rng.standard_normal(tuple(p.shape)))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, betas=(0.9, 0.99))
    losses = []
    for _ in range(steps):
        loss = F.nll_loss(F.log_softmax(model(x), dim=1), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert "bits=4" in repr(model)
    return losses, {"max": [m.running_max.item() for m in model if isinstance(m, QuantLinear)]}
