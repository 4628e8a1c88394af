"""Special functions: poles, ends, infinities, refused arguments, precisions and orders that the laws do not cover."""

import math

import numpy as np
import pytest
import scipy.special

import retrograd as rg
from retrograd.testing import assert_close

DOUBLE = {"dtype": rg.float64}


def derivative(f, at, order=1):
    """Return the derivative of that order of a scalar function."""
    x = rg.tensor(at, requires_grad=True, **DOUBLE)
    y = f(x)
    for _ in range(order):
        (y,) = rg.autograd.grad(y, x, create_graph=True)
    return y.item()


# -------------------------------------------------------------------------------------------- ends and poles


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: rg.erfinv(rg.tensor([-1.0, 1.0, 1.5])), [-math.inf, math.inf, math.nan]),
        (lambda: rg.special.ndtri(rg.tensor([0.0, 1.0, -0.5])), [-math.inf, math.inf, math.nan]),
        (lambda: rg.special.log_ndtr(rg.tensor([-math.inf, math.inf])), [-math.inf, 0.0]),
        (lambda: rg.lgamma(rg.tensor([0.0, -1.0, math.inf])), [math.inf] * 3),
        (lambda: rg.digamma(rg.tensor([0.0, -0.0, -2.0])), [-math.inf, math.inf, math.nan]),
        (lambda: rg.special.rgamma(rg.tensor([0.0, -1.0])), [0.0, 0.0]),
        (lambda: rg.special.entr(rg.tensor([0.0, 1.0, -1.0])), [0.0, 0.0, -math.inf]),
        (lambda: rg.xlogy(rg.tensor(0.0), rg.tensor([0.0, -1.0, math.inf, math.nan])), [0.0, 0.0, 0.0, math.nan]),
        (lambda: rg.special.xlog1py(rg.tensor(0.0), rg.tensor([-1.0, -2.0])), [0.0, 0.0]),
        (
            lambda: rg.special.rel_entr(rg.tensor([0.0, 1.0, -1.0]), rg.tensor([0.0, 0.0, 1.0])),
            [0.0, math.inf, math.inf],
        ),
        (lambda: rg.logit(rg.tensor([0.0, 1.0, 2.0])), [-math.inf, math.inf, math.nan]),
        (lambda: rg.special.bessel_y0(rg.tensor([0.0, -1.0])), [-math.inf, math.nan]),
        (lambda: rg.special.zeta(rg.tensor([1.0, 0.5]), rg.tensor(2.0)), [math.inf, math.nan]),
        (lambda: rg.special.betainc(rg.tensor(2.0), rg.tensor(3.0), rg.tensor([0.0, 1.0])), [0.0, 1.0]),
        (lambda: rg.igamma(rg.tensor(2.0), rg.tensor([0.0, math.inf])), [0.0, 1.0]),
    ],
)
def test_values_at_the_ends(call, expected):
    np.testing.assert_array_equal(call().numpy(), np.asarray(expected, np.float32))


def test_xlogy_has_no_gradient_where_the_first_is_0_and_the_logarithm_infinite():
    a, b = rg.tensor([0.0, 0.0], requires_grad=True), rg.tensor([0.0, 3.0])
    (g,) = rg.autograd.grad(rg.xlogy(a, b).sum(), a)
    assert_close(g, np.float32([0.0, math.log(3.0)]))
    (g,) = rg.autograd.grad(rg.xlogy(a, b), a, rg.tensor([math.inf, 1.0]))
    assert_close(g, np.float32([0.0, math.log(3.0)]))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("f", [rg.xlogy, rg.special.xlog1py])
def test_zero_cotangents_of_infinite_logarithms_give_zeros(f):
    a, b = rg.tensor([3.0, 3.0, 0.0], requires_grad=True), rg.tensor([math.inf, -1.0, math.inf])
    (g,) = rg.autograd.grad(f(a, b), a, rg.zeros(3))
    assert g.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", [rg.float16, rg.float32, rg.float64])
def test_exponents_that_are_broadcast_give_the_powers_of_full_ones(dtype):
    bases = rg.tensor([-math.inf, -2.0, -1.0, -0.0, 0.0, 0.25, 3.0, math.inf, math.nan], dtype=dtype)
    for exponent in (-1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 2.0, 2.5, 3.0, -math.inf, math.inf, math.nan):
        full = (bases ** rg.full_like(bases, exponent)).numpy()
        single = [float(base ** rg.tensor(exponent, dtype=dtype)) for base in bases.unbind()]
        np.testing.assert_array_equal(np.array(single), full.astype(float), str(exponent))
        for shape in ((), (1,), (3, 1)):
            found = (bases ** rg.full(shape, exponent, dtype=dtype)).numpy()
            found = found.reshape(-1, bases.numel())
            for row in found:
                np.testing.assert_array_equal(row, full, str(exponent))
                np.testing.assert_array_equal(np.signbit(row), np.signbit(full), str(exponent))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", [rg.float32, rg.float64])
@pytest.mark.parametrize("exponent", [3, 3.0, -2, 4, 5, -3, -4, 101])
def test_whole_powers_have_the_signs_and_special_values_of_numpy(exponent, dtype):
    bases = np.array([-math.inf, -1e30, -2.5, -1.0, -0.0, 0.0, 0.25, 3.0, 1e-30, math.inf, math.nan], dtype)
    found, expected = (rg.from_numpy(bases) ** exponent).numpy(), np.power(bases, exponent)
    np.testing.assert_allclose(found, expected, rtol=4 * np.finfo(dtype).eps)
    signs = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found)[signs], np.signbit(expected)[signs])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_logit_is_flat_where_it_clamps_and_has_no_gradient_outside():
    x = rg.tensor([-0.5, 0.5, 0.95], requires_grad=True)
    (clamped,) = rg.autograd.grad(rg.logit(x, eps=0.1).sum(), x)
    (plain,) = rg.autograd.grad(rg.logit(x).sum(), x)
    assert clamped.tolist() == [0.0, 4.0, 0.0]
    assert math.isnan(plain[0])
    assert plain[1] == 4.0


# ----------------------------------------------------------------------------------------------- high orders


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (rg.sinc, [1, 0, -(math.pi**2) / 3, 0, math.pi**4 / 5]),
        (rg.special.spherical_bessel_j0, [1, 0, -1 / 3, 0, 1 / 5]),
        (rg.special.bessel_j0, [1, 0, -1 / 2, 0, 3 / 8]),
        (rg.special.bessel_j1, [0, 1 / 2, 0, -3 / 8, 0]),
        (rg.i0, [1, 0, 1 / 2, 0, 3 / 8]),
        (rg.special.i1, [0, 1 / 2, 0, 3 / 8, 0]),
        (lambda x: rg.special.chebyshev_polynomial_t(x + 1, 4), [1, 16, 80, 192, 192]),
        (lambda x: rg.special.chebyshev_polynomial_u(x + 1, 3), [4, 20, 48, 48, 0]),
        (lambda x: rg.special.legendre_polynomial_p(x - 1, 3), [-1, 6, -15, 15, 0]),
    ],
)
def test_derivatives_hold_to_the_fourth_order_where_formulas_divide_by_zero(f, expected):
    for order, value in enumerate(expected):
        assert derivative(f, 0.0, order) == pytest.approx(value, abs=1e-12), f"order {order}"


@pytest.mark.parametrize("order", [0, 1, 2, 3, 6])
@pytest.mark.parametrize("at", [0.05, 0.9, 2.5, -7.3])
def test_sinc_has_the_derivatives_of_the_spherical_bessel_function(at, order):
    expected = derivative(lambda x: rg.special.spherical_jn(0, x * math.pi), at, order)
    assert derivative(rg.sinc, at, order) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_derivatives_of_digamma_are_polygamma():
    for order in range(4):
        assert derivative(rg.digamma, 1.3, order) == pytest.approx(scipy.special.polygamma(order, 1.3), rel=1e-12)


# ---------------------------------------------------------------------------- derivatives by orders and shapes


@pytest.mark.parametrize("name", ["jv", "yv", "iv", "kv", "ive", "kve"])
def test_derivatives_of_bessel_functions_by_their_order_are_those_of_mpmath(name):
    mpmath = pytest.importorskip("mpmath")
    function = getattr(mpmath, {"j": "besselj", "y": "bessely", "i": "besseli", "k": "besselk"}[name[0]])
    sign = {"ive": -1, "kve": 1}.get(name, 0)
    with mpmath.workdps(40):
        for v in (-1.7, 0.3, 2.5, 20.0):
            for x in (0.05, 2.0, 9.0, 20.0):
                h = mpmath.mpf(10) ** -12
                expected = (function(v + h, x) - function(v - h, x)) / (2 * h) * mpmath.exp(sign * x)
                order = rg.tensor(v, dtype=rg.float64, requires_grad=True)
                out = getattr(rg.special, name)(order, rg.tensor(x, dtype=rg.float64))
                assert rg.autograd.grad(out, order)[0].item() == pytest.approx(float(expected), rel=1e-10)


def test_derivatives_of_the_incomplete_beta_function_by_its_shapes_are_those_of_mpmath():
    mpmath = pytest.importorskip("mpmath")

    def exact(a, b, x):
        return mpmath.betainc(a, b, 0, x, regularized=True)

    with mpmath.workdps(40):
        h = mpmath.mpf(10) ** -12
        for a, b in ((0.05, 1.0), (0.7, 90.0), (3.0, 5.0), (400.0, 5.0)):
            for x in (0.001, 0.3, 0.7, 0.95):
                ends = [mpmath.mpf(a), mpmath.mpf(b)]
                expected = [
                    (exact(ends[0] + h, b, x) - exact(ends[0] - h, b, x)) / (2 * h),
                    (exact(a, ends[1] + h, x) - exact(a, ends[1] - h, x)) / (2 * h),
                ]
                shapes = [rg.tensor(s, dtype=rg.float64, requires_grad=True) for s in (a, b)]
                found = rg.autograd.grad(rg.special.betainc(*shapes, rg.tensor(x, dtype=rg.float64)), shapes)
                for ours, theirs in zip(found, expected, strict=True):
                    assert ours.item() == pytest.approx(float(theirs), rel=1e-10, abs=1e-12)


def test_derivatives_of_the_zeta_function_by_its_exponent_are_those_of_mpmath():
    mpmath = pytest.importorskip("mpmath")
    for x in (1.001, 1.5, 4.0, 30.0, 90.0):
        for q in (0.01, 1.0, 7.5, 300.0):
            exponent = rg.tensor(x, dtype=rg.float64, requires_grad=True)
            (found,) = rg.autograd.grad(rg.special.zeta(exponent, q), exponent)
            assert found.item() == pytest.approx(float(mpmath.zeta(x, q, 1)), rel=1e-11)
    exponent = rg.tensor([0.5, 3.0], dtype=rg.float64, requires_grad=True)
    (slope,) = rg.autograd.grad(rg.special.zeta(exponent, rg.tensor([1.0, -0.5])).sum(), exponent)
    assert slope.isnan().tolist() == [True, True]


def test_derivatives_by_orders_outside_of_their_range_are_nan():
    order = rg.tensor([1.0, -90.0, 90.0], dtype=rg.float64, requires_grad=True)
    (slope,) = rg.autograd.grad(rg.special.jv(order, rg.tensor(2.0, dtype=rg.float64)).sum(), order)
    assert slope.isnan().tolist() == [False, True, True]
    shape = rg.tensor([2000.0, 2.0], dtype=rg.float64, requires_grad=True)
    ends = rg.tensor([0.5, 0.0], dtype=rg.float64)
    (slope,) = rg.autograd.grad(rg.special.betainc(shape, 2.0, ends).sum(), shape)
    assert slope.isnan().tolist() == [True, False]
    assert slope[1] == 0


# -------------------------------------------------------------------------------------- calls, refusals, dtypes


@pytest.mark.parametrize(
    ("f", "name"),
    [
        (lambda n: rg.special.chebyshev_polynomial_t(rg.tensor(1.0), n), "special.chebyshev_polynomial_t: .*'n'"),
        (lambda n: rg.special.hermite_polynomial_h(rg.tensor(1.0), n), "special.hermite_polynomial_h: .*'n'"),
    ],
)
def test_parameters_that_have_no_derivative_are_refused_by_name(f, name):
    with pytest.raises(NotImplementedError, match=name):
        f(rg.tensor(2.0, requires_grad=True))


@pytest.mark.parametrize("x", [1e-30, 0.01, 2.5, 30.0, 900.0])
def test_incomplete_gamma_functions_have_derivatives_by_their_first_argument(x):
    a, step = rg.tensor(2.5, dtype="float64", requires_grad=True), 1e-4
    (lower,) = rg.autograd.grad(rg.igamma(a, rg.tensor(x, dtype="float64")), a)
    (upper,) = rg.autograd.grad(rg.igammac(a, rg.tensor(x, dtype="float64")), a)
    expected = (scipy.special.gammainc(2.5 + step, x) - scipy.special.gammainc(2.5 - step, x)) / (2 * step)
    assert lower.item() == pytest.approx(expected, rel=1e-6, abs=1e-12)
    assert upper.item() == -lower.item()


def test_incomplete_functions_take_parameters_that_are_not_whole():
    a, x = rg.tensor([0.3, 2.7], **DOUBLE), rg.tensor([0.5, 4.0], requires_grad=True, **DOUBLE)
    assert_close(rg.igamma(a, x).detach(), scipy.special.gammainc(a.numpy(), x.detach().numpy()))
    (g,) = rg.autograd.grad(rg.igamma(a, x).sum(), x)
    density = x ** (a - 1) * rg.exp(-x) / rg.special.gamma(a)
    assert_close(g, density.detach())


@pytest.mark.parametrize("name", ["erfc", "lgamma", "digamma", "i0", "sinc", "logit"])
@pytest.mark.parametrize("dtype", [rg.float16, rg.float32, rg.float64])
def test_the_dtype_stays(name, dtype):
    assert getattr(rg, name)(rg.tensor([0.5], dtype=dtype)).dtype == dtype


def test_integers_become_the_default_dtype():
    assert rg.erfc(rg.tensor([0, 1])).dtype == rg.float32
    assert rg.special.jv(rg.tensor([2]), rg.tensor([1])).dtype == rg.float32
    assert rg.special.expn(2, rg.tensor([1.0])).dtype == rg.float32  # SciPy computes in double precision


def test_polygamma_is_called_as_in_pytorch():
    x = rg.tensor([1.0, 2.0])
    assert x.polygamma(1).tolist() == rg.polygamma(1, x).tolist() == rg.special.polygamma(n=1, input=x).tolist()


def test_several_names_are_one_operator():
    assert rg.special.gammaln is rg.lgamma
    assert rg.special.psi is rg.digamma
    assert rg.special.expit is rg.sigmoid
    assert rg.special.multigammaln is rg.mvlgamma
    assert rg.special.jn is rg.special.jv
    assert rg.special.j0 is rg.special.bessel_j0


def test_all_functions_that_autograd_has_of_scipy_special_exist():
    names = """beta betainc betaln digamma erf erfc erfcinv erfinv expit gamma gammainc gammaincc gammaln gammasgn i0 i1
        iv ive j0 j1 jn logit logsumexp multigammaln polygamma psi rgamma y0 y1 yn"""
    assert not [name for name in names.split() if not hasattr(rg.special, name)]


def test_sici_answers_both_by_name():
    both = rg.special.sici(rg.tensor([1.0], **DOUBLE))
    assert_close(both.si, scipy.special.sici([1.0])[0])
    assert_close(both.ci, scipy.special.sici([1.0])[1])


def test_polynomials_of_negative_degree_are_zero_and_degrees_broadcast():
    x = rg.tensor([[0.5], [2.0]], **DOUBLE)
    out = rg.special.chebyshev_polynomial_t(x, rg.tensor([-1, 0, 1, 2]))
    assert out.tolist() == [[0.0, 1.0, 0.5, -0.5], [0.0, 1.0, 2.0, 7.0]]


@pytest.mark.parametrize("f", [rg.xlogy, rg.special.xlog1py])
def test_gradients_have_the_dtype_of_the_input_if_the_other_operand_has_another(f):
    a = rg.tensor([0.0, 2.0], requires_grad=True)
    (g,) = rg.autograd.grad(f(a, rg.tensor(3.0, **DOUBLE)).sum(), a)
    assert g.dtype == rg.float32
