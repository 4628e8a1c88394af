"""Opacus: gradients of each example, clipped and noisy steps, and the privacy that they cost."""

import torch
from opacus import GradSampleModule, PrivacyEngine
from opacus.accountants import RDPAccountant
from opacus.optimizers import DPOptimizer
from seeded import array, fill, integers
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def answers():
    """Return gradients, parameters and budgets."""
    found = {}
    layers = {
        "linear": (nn.Linear(3, 4), array(5, 3)),
        "conv": (nn.Conv2d(2, 3, 3, padding=1), array(5, 2, 6, 6)),
        "norm": (nn.GroupNorm(2, 4), array(5, 4, 3)),
        "layer norm": (nn.LayerNorm(4), array(5, 4)),
        "embedding": (nn.Embedding(7, 3), integers(7, 5, 4)),
    }
    for name, (layer, x) in layers.items():
        module = GradSampleModule(fill(layer))
        module(x).square().sum().backward()
        found.update({f"{name} {key}": p.grad_sample.numpy() for key, p in module.named_parameters()})
    x, y = array(12, 3), integers(2, 12)
    model = GradSampleModule(fill(nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2))))
    optimizer = DPOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.1), noise_multiplier=0.0, max_grad_norm=0.3, expected_batch_size=12
    )
    for _ in range(3):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    found.update({f"private {key}": p.detach().numpy() for key, p in model.named_parameters()})
    accountant = RDPAccountant()
    for _ in range(5):
        accountant.step(noise_multiplier=1.1, sample_rate=0.1)
    found["epsilon"] = torch.tensor(accountant.get_epsilon(1e-5), dtype=torch.float64).numpy()
    net = fill(nn.Linear(3, 2))
    engine = PrivacyEngine()
    net, optimizer, loader = engine.make_private(
        module=net,
        optimizer=torch.optim.SGD(net.parameters(), lr=0.1),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        data_loader=DataLoader(TensorDataset(x, y), batch_size=4),
    )
    for inputs, targets in loader:
        if len(inputs):
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(inputs), targets).backward()
            optimizer.step()
    found["finite"] = torch.stack([p.detach().isfinite().all() for p in net.parameters()]).numpy()

    return found
