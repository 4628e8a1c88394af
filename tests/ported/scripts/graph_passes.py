"""Rewrite a network as a graph, by fused batch norms, patterns and overridden steps, and train what remains."""

import copy

import numpy as np
import torch
import torch.fx as fx
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.fusion import fuse_conv_bn_eval


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4)
        self.drop, self.fc = nn.Dropout(0.5), nn.Linear(4, 3)

    def forward(self, x, scale: float = 1.0):
        x = self.drop(torch.relu(self.bn(self.conv(x))))
        x = torch.add(x, x)
        return self.fc(x.mean([2, 3])) * scale


def fused(model):
    traced = fx.symbolic_trace(model)
    modules = dict(traced.named_modules())
    for node in traced.graph.nodes:
        if node.op != "call_module" or not isinstance(modules[node.target], nn.BatchNorm2d):
            continue
        before = node.args[0]
        if isinstance(modules[before.target], nn.Conv2d):
            parent, _, name = before.target.rpartition(".")
            setattr(modules[parent], name, fuse_conv_bn_eval(modules[before.target], modules[node.target]))
            node.replace_all_uses_with(before)
            traced.graph.erase_node(node)
    traced.graph.lint()
    traced.recompile()
    return traced


class Counting(fx.Interpreter):
    def __init__(self, module):
        super().__init__(module)
        self.counts = {}

    def run_node(self, n):
        self.counts[n.op] = self.counts.get(n.op, 0) + 1
        return super().run_node(n)


class WithoutDropout(fx.Transformer):
    def call_module(self, target, args, kwargs):
        left_out = isinstance(self.submodules[target], nn.Dropout)
        return args[0] if left_out else super().call_module(target, args, kwargs)

    def call_function(self, target, args, kwargs):
        return super().call_function(torch.sigmoid if target is torch.relu else target, args, kwargs)


def main(steps=5):
    rng = np.random.default_rng(0)
    model = Net().eval()
    for p in model.parameters():
        p.data.copy_(torch.from_numpy(rng.normal(0, 0.2, p.shape).astype("float32")))
    model.bn.running_var.fill_(2.0)
    x, y = torch.from_numpy(rng.normal(size=(2, 1, 6, 6)).astype("float32")), torch.tensor([0, 2])

    small = fused(copy.deepcopy(model))
    difference = (small(x) - model(x)).abs().max().item()
    matches = fx.replace_pattern(small, lambda x: torch.add(x, x), lambda x: x * 2)
    counting = Counting(small)
    counting.run(x)
    trained = WithoutDropout(small).transform()
    optimizer = torch.optim.Adam(trained.parameters(), lr=1e-2)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(trained(x, scale=2.0), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    small.delete_all_unused_submodules()
    numbers = {"fused alike": difference < 1e-5, "matches": len(matches), "runs": sorted(counting.counts.values())}
    numbers["names"] = [len(node.name) for node in trained.graph.nodes]
    numbers["modules"] = len(list(small.named_modules()))
    return losses, numbers
