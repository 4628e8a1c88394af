"""Derivatives at ties, kinks and bounds, where the difference quotient is undefined, by PyTorch's conventions."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.testing import assert_close


def slope(f, *values):
    x = rg.tensor(list(values), dtype=rg.float64, requires_grad=True)
    f(x).sum().backward()
    return x.grad


@pytest.mark.parametrize("name", ["abs", "relu", "sign", "floor", "ceil", "round", "trunc"])
def test_at_zero_the_derivative_is_zero(name):
    assert_close(slope(getattr(rg, name), 0.0), [0.0])


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [((-1, 1), [0, 1, 1, 1, 0]), ((None, 1), [1, 1, 1, 1, 0]), ((-1, None), [0, 1, 1, 1, 1])],
)
def test_clamp_lets_gradients_pass_at_its_bounds(bounds, expected):
    assert_close(slope(lambda x: x.clamp(*bounds), -2.0, -1.0, 0.0, 1.0, 2.0), expected)


@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_two_equals_share_the_gradient(name):
    a = rg.tensor([1.0, 2.0], dtype=rg.float64, requires_grad=True)
    b = rg.tensor([1.0, 2.0], dtype=rg.float64, requires_grad=True)
    getattr(rg, name)(a, b).sum().backward()
    assert_close(a.grad, [0.5, 0.5])
    assert_close(b.grad, [0.5, 0.5])


@pytest.mark.parametrize("name", ["amax", "amin"])
def test_all_equals_share_the_gradient_of_an_extreme(name):
    sign = 1.0 if name == "amax" else -1.0
    assert_close(slope(lambda x: getattr(x * sign, name)(), 3.0, 1.0, 3.0, 3.0), sign * np.array([1, 0, 1, 1]) / 3)


@pytest.mark.parametrize("name", ["max", "min"])
def test_along_a_dimension_the_chosen_element_has_the_whole_gradient(name):
    assert_close(slope(lambda x: getattr(x, name)(dim=0).values, 2.0, 2.0, 2.0), [1, 0, 0])


@pytest.mark.parametrize(
    ("values", "expected"),
    [((0.0, 2.0, 3.0), [6, 0, 0]), ((0.0, 0.0, 3.0), [0, 0, 0]), ((1.0, 2.0, 3.0), [6, 3, 2])],
)
def test_the_derivative_of_a_product_with_zeros_is_the_product_of_the_others(values, expected):
    assert_close(slope(lambda x: x.prod(), *values), expected)


def test_powers_of_zero_have_the_derivatives_of_polynomials():
    assert_close(slope(lambda x: x**2, 0.0), [0.0])
    assert_close(slope(lambda x: x**1, 0.0), [1.0])
    assert_close(slope(lambda x: x**0, 0.0), [0.0])
    assert_close(slope(lambda b: 0.0**b, 2.0), [0.0])


def test_where_keeps_the_branch_not_taken_out_of_the_gradient():
    assert_close(slope(lambda x: rg.where(x > 0, x.sqrt(), x * 3.0), 4.0), [0.25])


def test_a_norm_has_derivative_zero_at_zero():
    assert_close(slope(lambda x: x.norm(), 0.0, 0.0), [0.0, 0.0])


def test_repeated_indices_get_both_cotangents():
    i = rg.tensor([0, 0, 2])
    assert_close(slope(lambda x: x[i] * rg.tensor([1.0, 10.0, 100.0], dtype=rg.float64), 1.0, 2.0, 3.0), [11, 0, 100])


def test_minimum_with_unsigned_and_boolean_operands_has_the_gradient_of_the_smaller():
    x = rg.tensor([5.0, 1.0], requires_grad=True)
    for other in (rg.tensor([2, 3], dtype=rg.uint8), rg.tensor([True, True])):
        (g,) = rg.autograd.grad(rg.minimum(x, other).sum(), x)
        assert g.tolist() == [0.0, 1.0 if other.dtype == rg.uint8 else 0.5]


def test_the_angle_at_the_origin_has_slope_zero():
    x = rg.zeros(1, requires_grad=True)
    assert rg.autograd.grad(rg.atan2(x, x * 1).sum(), x)[0].tolist() == [0.0]


def test_second_derivatives_of_a_complex_modulus():
    z = rg.tensor(1 + 2j, dtype=rg.complex128, requires_grad=True)
    (g,) = rg.autograd.grad(rg.abs(z), z, create_graph=True)
    (h,) = rg.autograd.grad((g * g.conj()).to(rg.float64), z)
    assert abs(h.item()) < 1e-12  # the gradient has length 1 everywhere


def test_a_param_that_is_a_number_refuses_a_tensor_whose_gradient_would_be_lost():
    x = rg.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(TypeError, match="value"):
        x.addcmul(x, x, value=x[0])
    assert x.addcmul(x, x, value=x[1].detach()).tolist() == [3.0, 10.0]


@pytest.mark.parametrize("name", ["relu", "softplus", "gelu", "sign", "amax", "argmin"])
def test_functions_of_real_numbers_refuse_complex_ones(name):
    with pytest.raises(TypeError, match="complex numbers are not supported"):
        getattr(rg, name)(rg.tensor([1 + 2j]))


@pytest.mark.parametrize("name", ["huber_loss", "smooth_l1_loss"])
def test_smooth_losses_are_parabolas_where_input_and_target_agree(name):
    x, target = rg.tensor([2.0], requires_grad=True), rg.tensor([2.0])
    (g,) = rg.autograd.grad(getattr(rg, name)(x, target), x, create_graph=True)
    (h,) = rg.autograd.grad(g.sum(), x)
    assert (g.item(), h.item()) == (0.0, 1.0)
