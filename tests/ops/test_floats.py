"""Floating-point operators: special values, ties, dtypes, in-place forms and booleans, which the laws do not cover."""

import math
import subprocess
import sys

import numpy as np
import pytest

import retrograd as rg
from retrograd.core import registry
from retrograd.testing import assert_close


def gradients(f, *values):
    """Return the values of f, and the gradients of their sum."""
    xs = [rg.tensor(v, requires_grad=True) for v in values]
    out = f(*xs)
    return [out.tolist(), *[g.tolist() for g in rg.autograd.grad(out.sum(), xs)]]


# --------------------------------------------------------------------------------------------- special values


def test_nan_to_num_uses_its_arguments_and_stops_the_gradient_there():
    x = [1.0, math.nan, math.inf, -math.inf]
    out, g = gradients(lambda x: rg.nan_to_num(x, nan=5.0, posinf=6.0), x)
    assert out == [1.0, 5.0, 6.0, float(np.finfo(np.float32).min)]
    assert g == [1.0, 0.0, 0.0, 0.0]


def test_nan_loses_in_fmax_and_fmin():
    a, b = [math.nan, 1.0, math.nan], [2.0, math.nan, math.nan]
    for f in (rg.fmax, rg.fmin):
        out, ga, gb = gradients(f, a, b)
        assert out[:2] == [2.0, 1.0]
        assert math.isnan(out[2])
        assert (ga, gb) == ([0.0, 1.0, 1.0], [1.0, 0.0, 0.0])


def test_fmax_gives_the_gradient_of_equals_to_the_first():
    assert gradients(rg.fmax, [1.0], [1.0]) == [[1.0], [1.0], [0.0]]


def test_signs_of_zero_count():
    zeros = rg.tensor([0.0, -0.0])
    assert rg.signbit(zeros).tolist() == [False, True]
    assert rg.signbit(rg.copysign(1.0, zeros)).tolist() == [False, True]


def test_copysign_at_zero_has_no_slope():
    assert gradients(lambda a: rg.copysign(a, -2.0), [0.0, 3.0, -3.0]) == [[-0.0, -3.0, -3.0], [0.0, -1.0, 1.0]]


def test_infinities_are_distinguished_by_sign():
    x = rg.tensor([math.inf, -math.inf, math.nan, 1.0])
    assert rg.isposinf(x).tolist() == [True, False, False, False]
    assert rg.isneginf(x).tolist() == [False, True, False, False]


def test_heaviside_passes_the_gradient_of_the_values_where_x_is_zero():
    out, gx, gv = gradients(rg.heaviside, [-1.0, 0.0, 2.0, math.nan], [0.5, 0.5, 0.5, 0.5])
    assert out == [0.0, 0.5, 1.0, 0.0]
    assert (gx, gv) == ([0.0] * 4, [0.0, 1.0, 0.0, 0.0])


def test_frexp_holds_from_the_smallest_number_to_the_largest():
    x = rg.tensor([5e-324, 1.7e308, 0.0], dtype=rg.float64, requires_grad=True)
    mantissa, exponent = rg.frexp(x)
    assert exponent.dtype == rg.int32
    assert exponent.tolist() == [-1073, 1024, 0]
    assert np.ldexp(mantissa.detach().numpy(), exponent.numpy()).tolist() == x.tolist()
    (g,) = rg.autograd.grad(mantissa[1:].sum(), x)
    assert g.tolist() == [0.0, 2.0**-1024, 1.0]


def test_logaddexp2_and_logaddexp_have_a_gradient_where_one_is_infinite():
    for f in (rg.logaddexp, rg.logaddexp2):
        out, ga, gb = gradients(f, [0.0, math.inf, 0.0], [math.inf, 0.0, -math.inf])
        assert out == [math.inf, math.inf, 0.0]
        assert (ga, gb) == ([0.0, 1.0, 1.0], [1.0, 0.0, 0.0])


# ------------------------------------------------------------------------------------------- clamp, round, lerp


def test_clamp_takes_tensors_and_they_get_gradients():
    out = gradients(rg.clamp, [-2.0, 0.5, 3.0, math.nan], [-1.0] * 4, [1.0] * 4)
    assert out[0][:3] == [-1.0, 0.5, 1.0]
    assert math.isnan(out[0][3])
    assert out[1:] == [[0.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]]


def test_clamp_within_crossed_bounds_is_the_upper_one():
    x = rg.tensor([0.0, 5.0])
    assert rg.clamp(x, 3.0, 1.0).tolist() == rg.clamp(x, rg.tensor(3.0), rg.tensor(1.0)).tolist() == [1.0, 1.0]


def test_clamp_passes_the_gradient_on_the_bounds():
    for low, high in ((0.0, 1.0), (rg.tensor(0.0), rg.tensor(1.0))):
        assert gradients(lambda x, low=low, high=high: rg.clip(x, low, high), [0.0, 1.0])[1] == [1.0, 1.0]


def test_a_tensor_as_bound_that_is_nan_gives_nan():
    assert rg.clamp_min(rg.ones(1), rg.tensor([math.nan])).isnan().all()


def test_round_goes_to_even_and_to_decimals():
    assert rg.round(rg.tensor([0.5, 1.5, -2.5])).tolist() == [0.0, 2.0, -2.0]
    assert_close(rg.round(rg.tensor([1.2345, -1.2355]), decimals=2), np.float32([1.23, -1.24]))
    assert rg.tensor([1250.0, 1350.0]).round(decimals=-2).tolist() == [1200.0, 1400.0]


def test_lerp_reaches_both_ends_exactly():
    a, b = rg.tensor([1e8, 0.1]), rg.tensor([0.1, 1e8])
    assert rg.lerp(a, b, 0.0).tolist() == a.tolist()
    assert rg.lerp(a, b, 1.0).tolist() == b.tolist()


# ------------------------------------------------------------------------------------------------ dtypes, calls


def test_float_power_is_in_double_precision():
    assert rg.float_power(rg.tensor([2]), 3).dtype == rg.float64
    assert rg.float_power(rg.tensor([2.0]), 0.5).item() == math.sqrt(2)
    assert rg.float_power(rg.tensor([1j]), 2).dtype == rg.complex128
    assert rg.float_power(3, rg.tensor([2])).tolist() == [9.0]


def test_rounded_quotients_of_integers_are_exact_integers():
    large = 2**62 + 1
    a, b = rg.tensor([large, -7, 7, -7]), rg.tensor([1, 2, -2, -2])
    assert rg.divide(a, b, rounding_mode="trunc").tolist() == [large, -3, -3, 3]
    assert rg.divide(a, b, rounding_mode="floor").tolist() == [large, -4, -4, 3]
    assert rg.divide(a, b).dtype == rg.float32


def test_scaled_addition_keeps_integers():
    a = rg.tensor([1, 2])
    assert registry["scaled_add"](a, a, alpha=3).tolist() == [4, 8]
    assert rg.subtract(a, a, alpha=3).tolist() == [-2, -4]
    assert rg.rsub(a, 10, alpha=3).tolist() == [7, 4]


def test_in_place_forms_write():
    x = rg.tensor([1.0, 4.0])
    assert x.addcmul_(x, x, value=2.0) is x
    assert x.tolist() == [3.0, 36.0]
    assert x.lerp_(rg.zeros(2), 0.5) is x
    assert x.tolist() == [1.5, 18.0]
    assert x.clip_(max=2.0).tolist() == [1.5, 2.0]
    assert x.fmod_(1.0).tolist() == [0.5, 0.0]
    assert x.multiply_(2.0).negative_().tolist() == [-1.0, -0.0]


def test_in_place_forms_are_differentiated():
    x = rg.tensor([2.0], requires_grad=True)
    y = x * 1
    y.addcdiv_(y, x, value=3.0).hypot_(rg.tensor([12.0]))
    y.backward()
    assert y.item() == 13.0  # of 2 + 3 and 12
    assert_close(x.grad, np.float32([5 / 13]))


# --------------------------------------------------------------------------------------------------- comparison


def test_closeness_is_relative_to_the_second():
    a, b = rg.tensor([100.0, 110.0]), rg.tensor([110.0, 100.0])
    assert rg.isclose(a, b, rtol=0.095, atol=0.0).tolist() == [True, False]


def test_nan_is_close_to_nan_only_with_equal_nan():
    x = rg.tensor([math.nan, math.inf])
    assert rg.isclose(x, x).tolist() == [False, True]
    assert not rg.allclose(x, x)
    assert rg.allclose(x, x, equal_nan=True)
    assert x.allclose(x, equal_nan=True) is True


def test_equal_compares_shapes_and_elements():
    x = rg.tensor([1, 2])
    assert rg.equal(x, rg.tensor([1, 2])) is True
    assert x.equal(rg.tensor([1, 3])) is False
    assert not rg.equal(x, rg.tensor([[1, 2]]))
    assert rg.equal(rg.zeros(0), rg.zeros(0))


@pytest.mark.parametrize(
    "divide", [rg.floor_divide, rg.remainder, rg.fmod, lambda a, b: rg.div(a, b, rounding_mode="floor")]
)
def test_integers_are_not_divided_by_zero(divide):
    for by in (0, rg.tensor([2, 0])):
        with pytest.raises(ZeroDivisionError, match="integers can't be divided by 0"):
            divide(rg.tensor([4, 5]), by)
    assert divide(rg.zeros(0, dtype="int64"), 0).shape == (0,)
    divide(rg.tensor([4.0]), rg.tensor([2.0]))


@pytest.mark.parametrize(
    "f", [rg.pow, rg.floor_divide, rg.remainder, rg.fmod, rg.bitwise_left_shift, rg.bitwise_right_shift]
)
def test_booleans_are_no_numbers_to_calculate_with(f):
    a = rg.tensor([True, False])
    with pytest.raises(TypeError, match="not defined for bool"):
        f(a, a)
    assert f(a, 1).dtype == rg.int64


def test_functions_of_one_boolean_keep_to_a_dtype():
    x = rg.tensor([True, False])
    assert [f(x).dtype for f in (rg.sign, rg.conj, rg.sgn, rg.square)] == [rg.bool, rg.bool, rg.bool, rg.int64]
    with pytest.raises(TypeError, match="round: not defined for bool"):
        rg.round(x)


def test_integers_to_negative_powers_are_rounded_towards_zero():
    a, b = rg.tensor([2, 1, -1, -1, 0, 3]), rg.tensor([-1, -2, -3, -2, -1, 2])
    assert rg.pow(a, b).tolist() == [0, 1, -1, 1, 0, 9]
    assert rg.pow(2, b).tolist() == [0, 0, 0, 0, 0, 4]
    with pytest.raises(RuntimeError, match="pow: Integers to negative integer powers are not allowed, here -1"):
        a**-1


def test_a_step_of_booleans_is_taken_or_not():
    a, b = rg.tensor([True, False]), rg.tensor([False, True])
    for alpha in (True, 2):
        assert rg.add(a, b, alpha=alpha).tolist() == [True, True]
    assert rg.add(a, b, alpha=0).tolist() == [True, False]


SCALED = {
    "add": lambda x, small: rg.add(x, small, alpha=2),
    "add_": lambda x, small: x.clone().add_(small, alpha=2),
    "sub": lambda x, small: rg.sub(x, small, alpha=2),
    "sub_": lambda x, small: x.clone().sub_(small, alpha=2),
    "rsub": lambda x, small: rg.rsub(small, x, alpha=2),
    "addcmul": lambda x, small: rg.addcmul(x, small, small, value=2),
    "addcmul without a value": lambda x, small: rg.addcmul(x, small, small),
    "addcdiv": lambda x, small: rg.addcdiv(x, small, x, value=2),
    "addr": lambda x, small: rg.addr(x, small, small, alpha=2),
    "addr of small integers": lambda x, small: rg.addr(small, x, x, beta=2),
}


@pytest.mark.parametrize("name", SCALED)
@pytest.mark.parametrize("wide", [rg.float64, rg.int32])
def test_small_integers_are_scaled_in_the_dtype_of_the_result(name, wide):
    x, small = rg.tensor([1, 2], dtype=wide), rg.tensor([200, 3], dtype=rg.uint8)
    assert SCALED[name](x, small).tolist() == SCALED[name](x, small.to(wide)).tolist()


@pytest.mark.parametrize("f", [rg.fmod, rg.remainder])
def test_the_slope_of_a_remainder_by_the_divisor_does_not_depend_on_the_dividend(f):
    a, b = rg.tensor([3.0, -2.0], requires_grad=True), rg.tensor([0.0, 0.7], requires_grad=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        (slope,) = rg.autograd.grad(f(a, b).sum(), b, create_graph=True)
    assert rg.autograd.grad(slope.sum(), a, materialize_grads=True)[0].tolist() == [0.0, 0.0]


def test_ldexp_of_integers_is_exact_beyond_the_range_of_the_power():
    x = rg.tensor([0.0, 1e-30, math.inf], requires_grad=True)
    out = rg.ldexp(x, rg.tensor([200, 200, 200]))
    assert out.tolist() == np.ldexp(x.detach().numpy(), 200).tolist()
    assert rg.ldexp(rg.tensor([1.0], dtype="float64"), rg.tensor([250], dtype="uint8")).item() == 2.0**250
    assert rg.ldexp(rg.tensor([3]), 2).dtype == rg.float32


def test_complex_numbers_add_up_in_logarithms():
    a, b = rg.tensor([1000 + 1j, -math.inf]), rg.tensor([1000 - 1j, -math.inf])
    assert_close(rg.logaddexp(a, b), [1000 + math.log(2 * math.cos(1)), -math.inf])
    x = rg.tensor([0.3 + 2j, -1j], dtype="complex128", requires_grad=True)
    assert rg.autograd.gradcheck(lambda x: rg.logaddexp(x, 1 + 1j), (x,))


def test_integers_that_a_dtype_cannot_hold_are_compared_all_the_same():
    code = "import retrograd as rg; x = rg.tensor([1, 250], dtype='uint8')\n"
    code += "assert (x == 300).tolist() == [False, False] and (x < 300).all() and (x > -1).all()"
    subprocess.run([sys.executable, "-c", code], check=True)  # the first call of an operator goes its own way


def test_tolerances_are_not_negative():
    with pytest.raises(ValueError, match=r"isclose: tolerances must not be negative, got rtol=-1\.0"):
        rg.allclose(input=rg.ones(2), other=rg.ones(2), rtol=-1.0)


def test_leaky_relu_makes_floats_of_integers():
    assert_close(rg.nn.functional.leaky_relu(rg.tensor([-2, 3]), 0.5), [-1.0, 3.0])


@pytest.mark.parametrize("zero", [0.0, [0.0, 0.0, 0.0]])
def test_powers_of_zero_have_a_slope_by_the_exponent_where_that_is_negative(zero):
    zero = rg.tensor(zero) if isinstance(zero, list) else zero
    with np.errstate(divide="ignore"):
        out, g = gradients(lambda b: rg.pow(zero, b), [-1.0, 0.0, 2.0])
    assert (out, g) == ([math.inf, 1.0, 0.0], [-math.inf, 0.0, 0.0])
