"""Train a deep residual network whose activations are recomputed, and compare its gradients with the plain ones."""

from functools import partial

import numpy as np
import torch
import torch.nn as nn
import torch.utils.checkpoint as cp
from torch.utils.checkpoint import checkpoint, checkpoint_sequential


def _bn_function_factory(norm, relu, conv):
    def bn_function(*inputs):
        concated_features = torch.cat(inputs, 1)
        return conv(relu(norm(concated_features)))

    return bn_function


class _DenseLayer(nn.Module):
    def __init__(self, num_input_features, growth_rate, efficient):
        super().__init__()
        self.add_module("norm1", nn.BatchNorm2d(num_input_features))
        self.add_module("relu1", nn.ReLU(inplace=True))
        self.add_module("conv1", nn.Conv2d(num_input_features, growth_rate, kernel_size=3, padding=1, bias=False))
        self.efficient = efficient

    def forward(self, *prev_features):
        bn_function = _bn_function_factory(self.norm1, self.relu1, self.conv1)
        if self.efficient and any(prev_feature.requires_grad for prev_feature in prev_features):
            return cp.checkpoint(bn_function, *prev_features, use_reentrant=True)
        return bn_function(*prev_features)


class DenseBlock(nn.Module):
    def __init__(self, num_layers, num_input_features, growth_rate, efficient):
        super().__init__()
        for i in range(num_layers):
            layer = _DenseLayer(num_input_features + i * growth_rate, growth_rate, efficient)
            self.add_module("denselayer%d" % (i + 1), layer)

    def forward(self, init_features):
        features = [init_features]
        for name, layer in self.named_children():
            features.append(layer(*features))
        return torch.cat(features, 1)


class Net(nn.Module):
    def __init__(self, efficient):
        super().__init__()
        self.stem = nn.Conv2d(1, 4, 3, padding=1)
        self.block = DenseBlock(3, 4, 4, efficient)
        self.tail = nn.Sequential(
            nn.Conv2d(16, 16, 3, stride=2, padding=1),
            nn.ELU(),
            nn.Conv2d(16, 8, 3),
            nn.ELU(),
            nn.Flatten(),
            nn.Linear(32, 3),
        )
        self.efficient = efficient

    def forward(self, x):
        x = self.block(self.stem(x))
        if self.efficient:
            return checkpoint_sequential(self.tail, 2, x, use_reentrant=False)
        return self.tail(x)


def main(steps=5):
    rng = np.random.default_rng(0)
    models = [Net(efficient) for efficient in (False, True)]
    for (name, p), (_, q) in zip(models[0].named_parameters(), models[1].named_parameters()):
        if p.dim() > 1:
            p.data = torch.from_numpy(rng.normal(0, 0.2, p.shape)).float()
        elif "norm" not in name:
            p.data.fill_(0.01)
        q.data.copy_(p.data)
    x = torch.from_numpy(rng.standard_normal((8, 1, 8, 8))).float()
    y = torch.from_numpy(rng.integers(0, 3, 8))
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.05, momentum=0.9) for m in models]
    losses, differences, recomputed = [], [], []

    def count(module, args, output):
        recomputed.append(module)

    handle = models[1].tail[0].register_forward_hook(count)
    for step in range(steps):
        values = []
        for model, optimizer in zip(models, optimizers):
            optimizer.zero_grad()
            loss = nn.functional.multi_margin_loss(model(x), y)
            loss.backward()
            optimizer.step()
            values.append(loss)
        losses.append(values[1].item())
        differences.append((values[0] - values[1]).abs().item() < 1e-6)
    handle.remove()

    w = torch.tensor(0.5, requires_grad=True)
    policy = partial(checkpoint, use_reentrant=False, preserve_rng_state=False)
    out = policy(lambda a, scale: (a.sin() * scale).exp(), w, scale=2.0)
    (g,) = torch.autograd.grad(out, w, create_graph=True)
    (gg,) = torch.autograd.grad(g, w)
    return losses, {"equal": differences, "runs": len(recomputed), "second derivative": gg.item()}
