"""Functions at the ends of their range: subnormal, huge and integer arguments, where formulas cancel or overflow."""

import math

import numpy as np
import pytest

import retrograd as rg
from retrograd.testing import assert_close

F = rg.nn.functional


def gradient(f, *values, dtype="float64"):
    """Return the gradients of f at scalars."""
    xs = [rg.tensor(v, dtype=dtype, requires_grad=True) for v in values]
    return [g.item() for g in rg.autograd.grad(f(*xs), xs)]


def near(found, expected, rtol=1e-12):
    assert_close(np.asarray(found), np.asarray(expected), rtol=rtol, atol=0)


def test_lgamma_has_its_digits_near_its_zeros_and_at_subnormal_numbers():
    x = rg.tensor([5e-324, -5e-324, 1 - 2**-53, 1 + 2**-52, 2 - 2**-40, 1.03, -math.inf, 0.0], dtype="float64")
    first = -np.euler_gamma
    expected = [
        744.4400719213812, 744.4400719213812, -(2**-53) * first, 2**-52 * first, -(2**-40) * (1 + first),
        -0.016616847, math.inf, math.inf,
    ]  # fmt: skip
    found = rg.lgamma(x).numpy()
    near(found[:5], expected[:5], 1e-11)
    assert found[5] == pytest.approx(math.lgamma(1.03), rel=1e-12)
    assert found[6:].tolist() == expected[6:]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("f", [F.elu, F.celu, F.selu])
def test_exponential_units_have_a_slope_far_to_the_left(f, dtype):
    scale = 1.0507009873554805 * 1.6732632423543772 if f is F.selu else 1.0
    near(gradient(f, -30.0, dtype=dtype), [scale * math.exp(-30)], 1e-5)


def test_the_slope_of_expm1_is_the_exponential():
    near(gradient(rg.expm1, -40.0), [math.exp(-40)])


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_angles_have_slopes_at_every_distance(scale):
    near(gradient(rg.atan2, 3 * scale, 4 * scale), [0.16 / scale, -0.12 / scale])


def test_angles_have_no_slope_at_the_origin():
    assert gradient(rg.atan2, 0.0, 0.0) == [0.0, 0.0]
    h = rg.func.hessian(lambda x: rg.atan2(x[0], x[1]))(rg.zeros(2))
    assert h.tolist() == [[0.0, 0.0], [0.0, 0.0]]


@pytest.mark.parametrize("a", [4, rg.tensor(4)])
def test_integer_parameters_do_not_make_derivatives_less_exact(a):
    near(gradient(lambda x: rg.special.gammainc(a, x), 0.5), [0.5**3 * math.exp(-0.5) / 6])
    near(gradient(lambda x: rg.special.betainc(a, 2, x), 0.5), [20 * 0.5**3 * 0.5])


def test_sinc_of_large_numbers_keeps_its_phase():
    x = rg.tensor([1e8, 1e8 + 8], dtype="float32", requires_grad=True)
    y = rg.sinc(x)
    assert y.tolist() == [0.0, 0.0]
    near(rg.autograd.grad(y.sum(), x)[0].numpy(), 1 / x.detach().numpy(), 1e-6)


def test_sigmoids_fall_through_the_subnormal_numbers():
    x = rg.tensor([-88.0, -100.0, -104.5, -math.inf])
    found = rg.sigmoid(x).numpy()
    assert_close(found.astype("float64"), np.exp(x.numpy().astype("float64")), rtol=0, atol=1.5e-45)
    near(rg.nn.functional.silu(x[:1]).numpy(), [np.float32(-88 * math.exp(-88))], 1e-6)
    assert found[3] == 0.0


def test_bessel_functions_have_limits_where_scipy_gives_none():
    tiny = rg.tensor([5e-324], dtype="float64")
    assert rg.special.modified_bessel_k1(tiny).item() == math.inf
    near(rg.special.modified_bessel_k0(tiny).numpy(), [744.5560034370395])
    assert gradient(rg.special.i1, 5e-324) == [0.5]
    near(rg.special.ive(2, rg.tensor([1e300], dtype="float64")).numpy(), [1 / math.sqrt(2 * math.pi * 1e300)])
    assert rg.special.airy_ai(rg.tensor([1e10, math.inf])).tolist() == [0.0, 0.0]
    x = rg.tensor([-1e6, -2e6], dtype="float64")
    assert np.isfinite(rg.special.airy_ai(x * 1e3).numpy()).all()


def test_interpolation_beyond_the_start_does_not_overflow():
    most = float(np.finfo("float32").max)
    assert rg.lerp(rg.tensor(0.0), rg.tensor(most), -0.5).item() == -most / 2


def test_the_smallest_integer_may_be_an_exponent():
    a, b = rg.tensor([2, 1, -1, -1], dtype="int8"), rg.tensor([-128, -128, -128, -127], dtype="int8")
    assert rg.pow(a, b).tolist() == [0, 1, 1, -1]


def test_polynomials_of_unsigned_integers_do_not_wrap_around():
    x, n = rg.tensor([0, 1, 2], dtype="uint8"), rg.tensor([3], dtype="uint8")
    assert rg.special.shifted_chebyshev_polynomial_t(x, n).tolist() == [-1.0, 1.0, 99.0]
    y = rg.tensor([0.5], dtype="float64", requires_grad=True)
    degrees = rg.tensor([0, 1, 2], dtype="uint8")
    for f, slopes in (
        (rg.special.chebyshev_polynomial_u, [0.0, 2.0, 4.0]),
        (rg.special.laguerre_polynomial_l, [0.0, -1.0, -1.5]),
    ):
        found = [rg.autograd.grad(f(y, degrees)[i], y)[0].item() for i in range(3)]
        near(found, slopes)


def test_of_zero_there_is_no_entropy_of_negative_sign():
    assert not np.signbit(rg.special.entr(rg.tensor([0.0, -0.0])).numpy()).any()
