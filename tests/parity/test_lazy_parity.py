"""Lazy layers compared with PyTorch: sizes, reprs, exchanged states, and steps of training."""

import inspect

import numpy as np
import pytest
import torch

import retrograd as rg
from retrograd import nn

from .test_nn_parity import compare, numbers

IMAGES = {1: (2, 4, 9), 2: (2, 4, 7, 6), 3: (2, 4, 5, 6, 4)}
LAYERS = {"LazyLinear": ((3,), {"bias": True}, (2, 5, 4))}
for d, shape in IMAGES.items():
    LAYERS[f"LazyConv{d}d"] = (6, 3), {"stride": 2, "groups": 2, "padding_mode": "circular", "padding": 1}, shape
    LAYERS[f"LazyConvTranspose{d}d"] = (6, 3), {"stride": 2, "output_padding": 1, "bias": False}, shape
    LAYERS[f"LazyBatchNorm{d}d"] = (), {"eps": 0.1, "momentum": 0.3}, shape
    LAYERS[f"LazyInstanceNorm{d}d"] = (), {"affine": True, "track_running_stats": True}, shape


def pair(name):
    args, settings, shape = LAYERS[name]
    return getattr(nn, name)(*args, **settings), getattr(torch.nn, name)(*args, **settings), numbers(*shape)


def arrays(state):
    return {key: np.array(x.tolist(), str(x.dtype).removeprefix("torch.")) for key, x in state.items()}


@pytest.mark.parametrize("name", LAYERS)
def test_a_lazy_layer_agrees_after_its_first_call(name):
    mine, peer, x = pair(name)
    assert list(mine.state_dict()) == list(peer.state_dict())
    assert type(mine).__name__ == type(peer).__name__
    mine(rg.tensor(x))
    peer(torch.tensor(x))
    assert type(mine).__name__ == type(peer).__name__ == name.removeprefix("Lazy")
    compare(mine, peer, [x])
    compare(mine, peer, [x])  # with the running statistics of the first


@pytest.mark.parametrize("name", LAYERS)
def test_states_go_into_lazy_layers_of_the_other_library(name):
    mine, peer, x = pair(name)
    one, other = getattr(nn, name)(*LAYERS[name][0], **LAYERS[name][1]), pair(name)[1]
    one(rg.tensor(x))
    other(torch.tensor(x))
    mine.load_state_dict(arrays(other.state_dict()))
    peer.load_state_dict({key: torch.tensor(value) for key, value in arrays(one.state_dict()).items()})
    assert not mine.has_uninitialized_params()
    assert not peer.has_uninitialized_params()
    np.testing.assert_allclose(mine(rg.tensor(x)).tolist(), other(torch.tensor(x)).tolist(), rtol=1e-5, atol=1e-5)
    if "InstanceNorm" in name:  # PyTorch forgets to set num_features then, and refuses every input
        peer.num_features = 4
    np.testing.assert_allclose(one(rg.tensor(x)).tolist(), peer(torch.tensor(x)).tolist(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", LAYERS)
def test_the_arguments_are_those_of_pytorch(name):
    ours, theirs = (inspect.signature(getattr(module, name)).parameters.values() for module in (nn, torch.nn))
    assert [(p.name, p.default, p.kind) for p in ours] == [(p.name, p.default, p.kind) for p in theirs]


def test_a_model_of_lazy_layers_trains_as_in_pytorch():
    def steps(m, base, state):
        model = m.Sequential(m.LazyConv2d(4, 3), m.LazyBatchNorm2d(), m.ReLU(), m.Flatten(), m.LazyLinear(2))
        optimizer = base.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        x = base.tensor(images)
        model(x)
        if state is not None:
            model.load_state_dict(state)
        state, losses = {k: v.clone() for k, v in model.state_dict().items()}, []
        for _ in range(3):
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses, state

    images = numbers(3, 2, 5, 5)
    expected, state = steps(torch.nn, torch, None)
    found, _ = steps(nn, rg, arrays(state))
    np.testing.assert_allclose(found, expected, rtol=1e-5)
