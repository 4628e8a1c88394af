"""Numbers for programs that both engines run: from NumPy's generators, since the engines' own numbers differ."""

import numpy as np
import torch


def array(*shape, seed=1):
    """Return normal numbers in float32."""
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape).astype(np.float32))


def integers(high, *shape, seed=2):
    """Return integers from 0 to high - 1."""
    return torch.from_numpy(np.random.default_rng(seed).integers(0, high, size=shape))


def fill(module):
    """Set all parameters; return the module."""
    numbers = np.random.default_rng(0)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            fan_in = parameter.shape[-1] if parameter.ndim > 1 else 1
            values = numbers.normal(size=tuple(parameter.shape)) * 0.3 / max(fan_in, 1) ** 0.5
            around = 1.0 if parameter.ndim < 2 and name.endswith(("weight", "gamma", "g")) else 0.0
            parameter.copy_(torch.from_numpy(np.asarray(values + around, np.float32)))
    return module


def trained(name, module, *inputs, loss=lambda out: out.square().mean(), steps=2):
    """Return a module's results in some steps of gradient descent, its first gradients, and its last parameters."""
    found = {}
    optimizer = torch.optim.SGD(module.parameters(), lr=0.05)
    for step in range(steps):
        out = module(*inputs)
        found[f"{name} {step}"] = out.detach().numpy()
        optimizer.zero_grad()
        loss(out).backward()
        if not step:
            gradients = [(key, p.grad) for key, p in module.named_parameters() if p.grad is not None]
            found.update({f"{name} gradient {key}": g.numpy() for key, g in gradients})
        optimizer.step()
    found.update({f"{name} trained {key}": p.detach().numpy() for key, p in module.named_parameters()})
    return found
