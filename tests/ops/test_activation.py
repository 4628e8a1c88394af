"""Activations: kinks, saturation, noise, in-place forms, and refused arguments."""

import math

import numpy as np
import pytest

import retrograd as rg
from retrograd.nn import functional as F
from retrograd.testing import assert_close

from ..case_groups import group_cases


def slopes(f, *points):
    x = rg.tensor(points, dtype="float64", requires_grad=True)
    return rg.autograd.grad(f(x).sum(), x)[0].tolist()


@pytest.mark.parametrize(
    ("f", "at", "expected"),
    [
        (F.elu, 0.0, 1.0),
        (F.relu6, 0.0, 0.0),
        (F.relu6, 6.0, 0.0),
        (F.hardtanh, 1.0, 0.0),
        (F.hardsigmoid, 3.0, 0.0),
        (F.hardswish, -3.0, 0.0),
        (F.hardswish, 3.0, 1.0),
        (F.hardshrink, 0.5, 0.0),
        (F.softshrink, -0.5, 0.0),
        (lambda x: F.threshold(x, 0.3, 9.0), 0.3, 0.0),
    ],
)
def test_the_derivative_at_a_kink_is_the_documented_one(f, at, expected):
    assert slopes(f, at) == [expected]


@group_cases
@pytest.mark.parametrize(
    "f", [F.elu, F.selu, F.celu, F.mish, F.softplus, F.logsigmoid, F.silu, F.hardswish, F.tanhshrink]
)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_large_numbers_neither_overflow_nor_warn(f, dtype):
    x = rg.tensor([-1e4, -50.0, 50.0, 1e4], dtype=dtype, requires_grad=True)
    out = f(x)
    assert out.dtype == dtype
    assert np.isfinite(out.detach().numpy()).all()
    assert np.isfinite(rg.autograd.grad(out.sum(), x)[0].numpy()).all()


@pytest.mark.parametrize("f", [F.elu, F.mish, F.softplus, F.logsigmoid, F.hardswish, F.softshrink])
def test_kernels_leave_their_input_alone(f):
    x = rg.tensor([-1.0, 0.5, 2.0])
    f(x)
    assert x.tolist() == [-1.0, 0.5, 2.0]


def test_small_numbers_keep_their_digits():
    x = rg.tensor([-1e-12, -1e-9], dtype="float64")
    assert_close(F.elu(x).numpy(), x.numpy(), rtol=1e-8, atol=0.0)
    assert_close(
        F.mish(rg.tensor([-40.0], dtype="float64")).numpy(), np.array([-40 * math.exp(-40)]), rtol=1e-12, atol=0.0
    )


def test_softplus_is_the_identity_beyond_its_threshold():
    x = rg.tensor([0.4, 0.6], dtype="float64", requires_grad=True)
    out = rg.softplus(x, 2.0, 1.0)
    assert out.tolist() == [math.log1p(math.exp(0.8)) / 2, 0.6]
    assert rg.autograd.grad(out.sum(), x)[0].tolist()[1] == 1.0


@pytest.mark.parametrize("f", [F.elu, F.softplus, F.logsigmoid, F.hardsigmoid, F.mish])
def test_integers_become_the_default_dtype(f):
    assert f(rg.tensor([1, 2])).dtype == np.float32


def test_bounds_of_integers_are_integers():
    assert F.relu6(rg.tensor([-1, 9])).tolist() == [0, 6]
    assert F.hardtanh(rg.tensor([-5, 5]), -2, 2).dtype == np.int64


@pytest.mark.parametrize("f", [F.elu, F.mish, F.relu6, F.hardswish, F.softshrink])
def test_complex_numbers_are_refused_by_name(f):
    with pytest.raises(TypeError, match=f"{f.__name__}: complex numbers are not supported"):
        f(rg.tensor([1j]))


# ------------------------------------------------------------------------------------------------ weighted, random


def test_prelu_has_one_slope_for_all_or_one_for_each_channel():
    x = rg.tensor([[[-1.0], [-1.0]]], requires_grad=True)
    weight = rg.tensor([0.5, 0.25], requires_grad=True)
    out = rg.prelu(x, weight)
    assert out.tolist() == [[[-0.5], [-0.25]]]
    assert rg.autograd.grad(out.sum(), weight)[0].tolist() == [-1.0, -1.0]
    assert rg.prelu(x, rg.tensor(0.5)).tolist() == [[[-0.5], [-0.5]]]


def test_rrelu_draws_slopes_in_training_and_differentiates_by_those_drawn():
    x = rg.tensor([-1.0] * 500 + [2.0], requires_grad=True)
    out = F.rrelu(x, 0.2, 0.6, training=True)
    drawn = -out.detach().numpy()[:-1]
    assert drawn.min() >= 0.2
    assert drawn.max() <= 0.6
    assert len(set(drawn.tolist())) > 400
    assert out[-1].item() == 2.0
    assert_close(rg.autograd.grad(out.sum(), x)[0].numpy()[:-1], drawn)


def test_gumbel_softmax_draws_from_the_distribution_of_its_logits():
    logits = rg.log(rg.tensor([0.7, 0.2, 0.1])).expand(20000, 3)
    draws = F.gumbel_softmax(logits, hard=True)
    assert set(draws.flatten().tolist()) == {0.0, 1.0}
    assert_close(draws.mean(0).numpy(), np.array([0.7, 0.2, 0.1], "float32"), rtol=0.0, atol=0.02)


def test_hard_gumbel_softmax_has_the_gradient_of_the_soft_one():
    x = rg.tensor([0.3, -0.2, 1.0], dtype="float64", requires_grad=True)
    weights = rg.tensor([1.0, 2.0, 4.0], dtype="float64")
    found = []
    for hard in (False, True):
        rg.manual_seed(3)
        found.append(rg.autograd.grad((F.gumbel_softmax(x, 0.7, hard=hard) * weights).sum(), x)[0].numpy())
    assert_close(*found)


# --------------------------------------------------------------------------------------------------- in place


@pytest.mark.parametrize("name", ["relu_", "elu_", "selu_", "celu_", "hardtanh_", "leaky_relu_", "rrelu_"])
def test_forms_with_an_underscore_write_and_pass_gradients_on(name):
    start = rg.tensor([-2.0, 3.0], requires_grad=True)
    x = start * 1
    out = getattr(F, name)(x)
    expected = getattr(F, name[:-1])(rg.tensor([-2.0, 3.0]))
    assert out is x
    assert x.tolist() == expected.tolist()
    plain = rg.tensor([-2.0, 3.0], requires_grad=True)
    assert_close(rg.autograd.grad(x.sum(), start)[0], rg.autograd.grad(getattr(F, name[:-1])(plain).sum(), plain)[0])


def test_threshold_writes_its_value():
    x = rg.tensor([-2.0, 3.0])
    rg.threshold_(x, 0.0, 7.0)
    assert x.tolist() == [7.0, 3.0]


@pytest.mark.parametrize("name", ["relu_", "selu_", "celu_", "rrelu_", "threshold_"])
def test_those_that_pytorch_has_at_the_top_are_there(name):
    assert callable(getattr(rg, name))


# --------------------------------------------------------------------------------------------------- softmax


@pytest.mark.parametrize("f", [rg.softmax, rg.log_softmax, F.softmin])
def test_softmax_computes_in_the_requested_dtype_and_its_gradient_has_the_inputs(f):
    x = rg.tensor([1.0, 2.0], requires_grad=True)
    out = f(x, 0, dtype="float64")
    assert out.dtype == np.float64
    assert rg.autograd.grad(out[0], x)[0].dtype == np.float32
    assert f(rg.tensor([1, 2]), 0, dtype="float32").dtype == np.float32


def test_softmax_of_complex_numbers_does_not_lose_their_imaginary_parts():
    with pytest.raises(TypeError, match="softmax: complex numbers would lose"):
        rg.softmax(rg.tensor([1j]), 0, dtype="float32")


def test_a_softmax_of_numbers_needs_a_tensor():
    with pytest.raises(TypeError, match="missing argument 'dim'"):
        F.softmax([1.0, 2.0])
