"""Captum: attributions of a network's outputs to its inputs, layers and neurons."""

import numpy as np
import torch
from captum import attr
from torch import nn


class Net(nn.Module):
    """Convolutions on small images; each activation is a module of its own, as DeepLift wants."""

    def __init__(self):
        super().__init__()
        numbers = np.random.default_rng(0)
        self.first, self.act1 = nn.Conv2d(2, 4, 3), nn.ReLU()
        self.pool = nn.MaxPool2d(2)
        self.second, self.act2 = nn.Linear(16, 8), nn.ReLU()
        self.last = nn.Linear(8, 3)
        self.double()
        with torch.no_grad():
            for p in self.parameters():
                p.copy_(torch.from_numpy(numbers.normal(size=tuple(p.shape)) * 0.5))

    def forward(self, x):
        """Return three scores for each image of shape (2, 6, 6)."""
        x = self.pool(self.act1(self.first(x)))
        return self.last(self.act2(self.second(x.flatten(1))))


def answers():
    """Return attributions by method."""
    net = Net().eval()
    numbers = np.random.default_rng(1)
    x = torch.from_numpy(numbers.normal(size=(3, 2, 6, 6)))
    base = torch.from_numpy(numbers.normal(size=(3, 2, 6, 6)) * 0.1)
    target = torch.tensor([0, 2, 1])
    found = {}

    def keep(name, value):
        for i, part in enumerate(value if isinstance(value, tuple) else (value,)):
            found[f"{name} {i}"] = part.detach().numpy()

    for method in ("Saliency", "InputXGradient", "GuidedBackprop", "Deconvolution"):
        keep(method, getattr(attr, method)(net).attribute(x.clone().requires_grad_(), target=target))
    for method in ("IntegratedGradients", "DeepLift"):
        keep(method, getattr(attr, method)(net).attribute(x, base, target=target, return_convergence_delta=True))
    for way in ("riemann_trapezoid", "riemann_left", "gausslegendre"):
        keep(
            f"IntegratedGradients {way}",
            attr.IntegratedGradients(net).attribute(x, base, target, n_steps=9, method=way, internal_batch_size=6),
        )
    keep("DeepLiftShap", attr.DeepLiftShap(net).attribute(x, base, target=target))
    mask = torch.arange(72).reshape(1, 2, 6, 6) // 8
    keep("FeatureAblation", attr.FeatureAblation(net).attribute(x, base, target=target, feature_mask=mask))
    keep("Occlusion", attr.Occlusion(net).attribute(x, (2, 3, 3), (1, 2, 2), target=target))
    for name in ("first", "act1", "pool", "second"):
        layer = getattr(net, name)
        keep(f"LayerActivation {name}", attr.LayerActivation(net, layer).attribute(x))
        keep(f"LayerGradientXActivation {name}", attr.LayerGradientXActivation(net, layer).attribute(x, target=target))
        keep(f"LayerConductance {name}", attr.LayerConductance(net, layer).attribute(x, base, target=target, n_steps=8))
        keep(
            f"LayerIntegratedGradients {name}",
            attr.LayerIntegratedGradients(net, layer).attribute(x, base, target=target, n_steps=8),
        )
        keep(
            f"InternalInfluence {name}", attr.InternalInfluence(net, layer).attribute(x, base, target=target, n_steps=8)
        )
    keep("LayerGradCam", attr.LayerGradCam(net, net.first).attribute(x, target=target))
    keep("GuidedGradCam", attr.GuidedGradCam(net, net.first).attribute(x, target=target))
    keep("LayerDeepLift", attr.LayerDeepLift(net, net.second).attribute(x, base, target=target))
    keep("NeuronGradient", attr.NeuronGradient(net, net.act2).attribute(x, 2))
    keep("NeuronConductance", attr.NeuronConductance(net, net.act2).attribute(x, 2, base, target=target, n_steps=8))
    keep("NeuronIntegratedGradients", attr.NeuronIntegratedGradients(net, net.act2).attribute(x, 2, base, n_steps=8))
    keep("NeuronDeepLift", attr.NeuronDeepLift(net, net.act2).attribute(x, 2, base))
    return found
