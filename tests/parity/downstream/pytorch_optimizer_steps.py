"""pytorch-optimizer: steps of all its optimizers that need no further arguments, one by one and on lists of tensors."""

import numpy as np
import torch
from ema_pytorch import EMA
from pytorch_optimizer import get_supported_optimizers, load_optimizer
from seeded import array, fill
from torch import nn

# Optimizers that take other arguments, groups or shapes than those here.
OTHERS = (
    "adago adalomo adammini adamuon alig bsam demo distributedmuon lomo magma muon muonclip normuon ranger21 "
    "spectralsphere"
)
RANDOM = "adahessian gravity kron sgld sophiah"  # whose states begin with random numbers
# Those that use eigenvectors of singular matrices, which the last bits decide, or products in bfloat16.
ILL_CONDITIONED = "alice lorarite scion scionlight soap splus"
LEFT_OUT = f"{OTHERS} {RANDOM} {ILL_CONDITIONED}".split()
NAMES = [name for name in get_supported_optimizers() if name not in LEFT_OUT]


def model():
    """Return a small network with weights of one, two and three dimensions."""
    return fill(nn.Sequential(nn.Conv1d(2, 4, 3, padding=1), nn.Tanh(), nn.Flatten(), nn.Linear(20, 3)))


def steps(name, **settings):
    """Return losses and parameters of some steps, the last one after saving and loading the state."""
    net = model()
    optimizer = load_optimizer(name)(net.parameters(), **settings)
    x, y = array(8, 2, 5), array(8, 3, seed=4)

    def closure():
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(x), y)
        loss.backward()
        return loss

    losses = [float(optimizer.step(closure)) for _ in range(4)]
    optimizer.load_state_dict(optimizer.state_dict())
    optimizer.step(closure)
    return {"losses": np.array(losses), **{key: p.detach().numpy() for key, p in net.named_parameters()}}


def averages():
    """Return the weights that averages of a trained network have."""
    found = {}
    for lists in (False, True):
        net = nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Linear(5, 1))
        average = EMA(fill(net), beta=0.9, update_after_step=1, update_every=1, use_foreach=lists)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(4):
            optimizer.zero_grad()
            net(array(6, 4)).square().mean().backward()
            optimizer.step()
            average.update()
        found.update({f"average, lists {lists}, {key}": x.numpy() for key, x in average.state_dict().items()})
    return found


def answers():
    """Return losses and parameters by optimizer."""
    found = averages()
    for name in NAMES:
        for settings in ({}, {"foreach": True}):
            if not (name == "lbfgs" and settings):
                results = steps(name, **settings)
                found.update({f"{name} {settings} {key}": value for key, value in results.items()})
    return found
