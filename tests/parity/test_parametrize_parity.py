"""Parametrized weights and initialization compared with PyTorch."""

import numpy as np
import pytest
import torch

import retrograd as rg
from retrograd import nn

CASES = {
    "weight_norm": ("weight_norm", {}, (5, 3)),
    "weight_norm of the whole": ("weight_norm", {"dim": None}, (5, 3)),
    "weight_norm of columns": ("weight_norm", {"dim": 1}, (3, 4)),
    "spectral_norm": ("spectral_norm", {"n_power_iterations": 2}, (5, 3)),
    "spectral_norm of columns": ("spectral_norm", {"dim": 1}, (5, 3)),
    "orthogonal, tall": ("orthogonal", {}, (3, 5)),
    "orthogonal, wide": ("orthogonal", {}, (5, 3)),
    "orthogonal, square": ("orthogonal", {}, (4, 4)),
    "orthogonal, cayley": ("orthogonal", {"orthogonal_map": "cayley"}, (5, 3)),
    "orthogonal, exponential": ("orthogonal", {"orthogonal_map": "matrix_exp"}, (3, 5)),
    "orthogonal, no base": ("orthogonal", {"use_trivialization": False}, (5, 3)),
    "orthogonal, no base, cayley": ("orthogonal", {"use_trivialization": False, "orthogonal_map": "cayley"}, (5, 3)),
}


@pytest.mark.parametrize("case", CASES)
def test_a_parametrized_layer_agrees(case):
    name, settings, sizes = CASES[case]
    mine = getattr(nn.utils.parametrizations, name)(nn.Linear(*sizes).double(), **settings)
    peer = getattr(torch.nn.utils.parametrizations, name)(torch.nn.Linear(*sizes).double(), **settings)
    with torch.no_grad():
        for key, parameter in peer.named_parameters():
            if name == "orthogonal" and key.endswith("original"):
                parameter.add_(torch.randn_like(parameter).mul(0.3).fill_diagonal_(0))
    assert {k: tuple(v.shape) for k, v in mine.state_dict().items()} == {
        k: tuple(v.shape) for k, v in peer.state_dict().items()
    }
    mine.load_state_dict({k: v.numpy() for k, v in peer.state_dict().items()})
    x = np.random.default_rng(0).normal(size=(2, sizes[0]))
    for _ in range(2):
        out, expected = mine(rg.tensor(x)), peer(torch.tensor(x))
        np.testing.assert_allclose(out.tolist(), expected.tolist(), rtol=1e-8, atol=1e-10)
    out.square().sum().backward()
    expected.square().sum().backward()
    for key, parameter in peer.named_parameters():
        found = mine.get_parameter(key).grad.tolist()
        np.testing.assert_allclose(found, parameter.grad.tolist(), rtol=1e-7, atol=1e-9, err_msg=key)


@pytest.mark.parametrize(
    ("name", "shape", "settings"),
    [
        ("eye_", (3, 4), {}),
        ("dirac_", (4, 2, 3), {}),
        ("dirac_", (4, 2, 3, 4), {"groups": 2}),
        ("dirac_", (2, 3, 1, 2, 3), {}),
    ],
)
def test_values_without_chance_agree(name, shape, settings):
    mine = getattr(nn.init, name)(rg.empty(shape), **settings)
    assert mine.tolist() == getattr(torch.nn.init, name)(torch.empty(shape), **settings).tolist()


def test_gains_agree():
    for name in ("linear", "conv1d", "conv_transpose2d", "sigmoid", "tanh", "relu", "selu", "leaky_relu"):
        assert nn.init.calculate_gain(name) == pytest.approx(torch.nn.init.calculate_gain(name))


def test_every_function_for_initial_values_is_there():
    wanted = {name for name in dir(torch.nn.init) if name.endswith("_") and not name.startswith("_")}
    assert wanted <= set(dir(nn.init))
