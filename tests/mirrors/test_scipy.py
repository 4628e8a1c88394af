"""SciPy functions on tensors: SciPy's results and their derivatives."""

import importlib
import os
import subprocess
import sys

import numpy as np
import pytest
import scipy

import retrograd as rg
import retrograd.scipy
from retrograd.autograd import gradcheck, gradgradcheck
from retrograd.core import Tensor
from retrograd.func import vmap
from retrograd.func.autograd_api import grad, make_jvp

from ..case_groups import group_cases
from .harness import along, difference, directions_for

X = np.array([0.3, 0.55, 0.9])
A, B = np.array([1.5, 2.3, 4.0]), np.array([0.7, 1.2, 3.1])
_r = np.random.default_rng(5)
SQUARE = _r.normal(size=(3, 3))
POSITIVE = SQUARE @ SQUARE.T + np.eye(3)
TRIANGLE = np.tril(SQUARE) + 2 * np.eye(3)

_ONE = """
    digamma psi erf erfc erfcinv erfinv expit gamma gammaln i0 i1 j0 j1 logit rgamma y0 y1 entr ndtr log_ndtr ndtri
    exp10 log_expit loggamma erfcx i0e i1e k0 k1
"""
# function, arguments; those that are arrays of floats have derivatives
SPECIAL = {
    **{name: [(X,)] for name in _ONE.split()},
    **{name: [(A, B), (2.5, B), (A, 1.3)] for name in ("beta", "betaln")},
    "betainc": [(2.0, 1.5, X)], "betaincc": [(2.0, 1.5, X)],
    "gammainc": [(2.0, X)], "gammaincc": [(2.0, X)], "chdtr": [(3.0, X)], "chdtrc": [(3.0, X)],
    "iv": [(1, X)], "ive": [(1, X)], "jn": [(2, X)], "jv": [(2, X)], "yn": [(1, X)], "kv": [(1, X)],
    "polygamma": [(1, X)], "multigammaln": [(A, 2)], "factorial": [(X,)], "poch": [(A, B)], "binom": [(A, B)],
    "logsumexp": [(X,), (SQUARE, 1), (SQUARE, 0, X), (SQUARE, None, np.abs(SQUARE), True)],
    "softmax": [(SQUARE,), (SQUARE, 1)], "log_softmax": [(SQUARE,), (SQUARE, 0)],
    "xlogy": [(A, B)], "xlog1py": [(A, B)], "rel_entr": [(A, B)], "kl_div": [(A, B)],
    **{name: [(X,), (1e-4 * X,)] for name in ("exprel", "cosm1")},
    "powm1": [(A, B), (1 + 1e-4 * A, B)], "radian": [(A, B, X)], "zetac": [(1 + A,)],
    **{name: [(A, B), (A, 0.0), (A, 1e-5)] for name in ("boxcox", "boxcox1p", "inv_boxcox", "inv_boxcox1p")},
    "softplus": [(A,)], **{name: [(1, A), (2, A, 1)] for name in ("jvp", "yvp", "ivp", "kvp")},
    "spherical_jn": [(2, A), (2, A, True), (0, A, True)],
    "huber": [(A, B), (0.5, B)], "pseudo_huber": [(A, B)],
    **{name: [(30 * X,)] for name in ("sindg", "cosdg", "tandg", "cotdg")},
    **{name: [(1.0, 4, X)] for name in ("bdtr", "bdtrc")}, **{name: [(2, 3, X)] for name in ("nbdtr", "nbdtrc")},
    **{name: [(A, B, X)] for name in ("fdtr", "fdtrc", "gdtr", "gdtrc")},
    **{name: [(2.0, A)] for name in ("pdtr", "pdtrc")},
    "zeta": [(3.0, X), (1 + A, B), (A,), (np.array([-2.4, -0.3, 0.6]),)],
}  # fmt: skip
_DENSITIES = ("pdf", "logpdf", "cdf", "logcdf", "sf", "logsf")
STATS = {
    **{f"norm.{f}": [(X,), (X, A, B), (X, 0.5, 1.5)] for f in _DENSITIES},
    **{f"t.{f}": [(X - 0.5, 3.0), (X, 3.0, A, B)] for f in _DENSITIES},
    **{f"beta.{f}": [(X, 2.0, 1.5), (X, 2.0, 1.5, -0.2, 1.4)] for f in _DENSITIES},
    **{f"gamma.{f}": [(X, 2.0), (X, 2.0, -1.0, B)] for f in _DENSITIES},
    **{f"chi2.{f}": [(X, 3.0)] for f in _DENSITIES},
    "beta.logpdf of shapes": [(X, A, B)], "gamma.logpdf of shapes": [(X, A)], "t.logpdf of shapes": [(X, A)],
    "chi2.logpdf of shapes": [(X, A)],
    **{f"poisson.{f}": [(np.array([0, 2, 5]), A)] for f in ("pmf", "logpmf", "cdf", "sf", "logcdf", "logsf")},
    "dirichlet.pdf": [(np.array([0.2, 0.3, 0.5]), A)],
    "dirichlet.logpdf": [(np.array([0.2, 0.3, 0.5]), A), (np.array([[0.2, 0.6], [0.3, 0.1], [0.5, 0.3]]), A)],
    "multivariate_normal.pdf": [(X, A, POSITIVE), (SQUARE, A, POSITIVE)],
    "multivariate_normal.logpdf": [(X, A, POSITIVE), (SQUARE, A, POSITIVE), (X, 0.5, 2.0), (X, A, B), (X,)],
    "multivariate_normal.entropy": [(A, POSITIVE)],
}  # fmt: skip
LINALG = {
    "sqrtm": [(POSITIVE,)], "inv": [(POSITIVE,)], "det": [(POSITIVE,)], "expm": [(SQUARE,)], "norm": [(SQUARE,)],
    "cholesky": [(POSITIVE,), (POSITIVE, True)], "solve": [(POSITIVE, X), (POSITIVE, SQUARE)],
    "solve_sylvester": [(POSITIVE, TRIANGLE, SQUARE)],
    "solve_triangular": [(TRIANGLE, X, 0, True), (TRIANGLE, SQUARE, 1, True), (TRIANGLE.T, X), (TRIANGLE.T, X, 2)],
    "solve_banded": [((1, 1), np.array([[0.0, 0.3, 0.4], [2.0, 2.5, 3.0], [0.2, 0.1, 0.0]]), X)],
    "block_diag": [(SQUARE, X)], "logm": [(POSITIVE,), (SQUARE + 3 * np.eye(3),)],
    "funm": [(SQUARE, lambda x: x**2), (POSITIVE, lambda x: 1 / (1 + x))],
    "expm_frechet": [(SQUARE, TRIANGLE, None, False)],
    **{name: [(SQUARE,)] for name in ("coshm", "sinhm", "tanhm", "cosm", "sinm", "tanm")},
    "solve_continuous_lyapunov": [(POSITIVE, SQUARE)],
    "solve_discrete_lyapunov": [(SQUARE / 4, POSITIVE), (SQUARE / 4, POSITIVE, "bilinear")],
    "toeplitz": [(X,), (X, A)], "solve_toeplitz": [(A, X), ((A, np.array([1.5, 0.3, -0.2])), SQUARE)],
    "eigvalsh": [(POSITIVE,), (SQUARE + SQUARE.T, POSITIVE)],
}  # fmt: skip
SIGNAL = {"convolve": [(X, A), (X, A[:2], "same"), (A, X[:2], "valid"), (X[:2], A, "valid"), (SQUARE, POSITIVE[:2])]}
CASES = [
    (module, name, args)
    for module, table in {"special": SPECIAL, "stats": STATS, "linalg": LINALG, "signal": SIGNAL}.items()
    for name in table
    for args in table[name]
]
IDS = [f"{module}.{name}-{i}" for i, (module, name, _) in enumerate(CASES)]


def function(package, module, name):
    """Return `module.name` of a package; words after the name only distinguish cases."""
    found = importlib.import_module(f"{package}.{module}")
    for part in name.split()[0].split("."):
        found = getattr(found, part)
    return found


def moving(args):
    """Return the positions of the differentiable arguments."""
    return [i for i, a in enumerate(args) if isinstance(a, np.ndarray) and a.dtype.kind == "f"]


def on_tensors(args):
    return [rg.tensor(a) if isinstance(a, np.ndarray) else a for a in args]


@group_cases
@pytest.mark.parametrize(("module", "name", "args"), CASES, ids=IDS)
def test_values_are_those_of_scipy(module, name, args):
    expected = function("scipy", module, name)(*args)
    ours = function("retrograd.scipy", module, name)
    found = ours(*on_tensors(args))
    assert isinstance(found, Tensor)
    assert found.shape == np.shape(expected)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-10, atol=1e-14)
    plain = ours(*args)
    assert type(plain) is type(expected)
    np.testing.assert_array_equal(plain, expected)


KINDS = {
    "int64": lambda a: np.round(3 * a).astype(np.int64), "float32": lambda a: a.astype(np.float32),
    "empty": lambda a: a[..., :0],
}  # fmt: skip
# Of integers: no fractions of a whole.  For empty arrays: where SciPy has no result, and those that are no matrices.
REFUSED = {"int64": "dirichlet", "float32": "-", "empty": "softmax log_softmax dirichlet convolve solve_sylvester"}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS)
def test_values_for_other_dtypes_are_those_of_scipy(kind, float64_as_default):
    for module, name, args in CASES:
        given = [KINDS[kind](a) if isinstance(a, np.ndarray) and a.dtype.kind == "f" else a for a in args]
        if not name.startswith(tuple(REFUSED[kind].split())) and any(isinstance(a, np.ndarray) for a in given):
            assert same_answers(given, module, name), (module, name, given)


def same_answers(args, module, name):
    """Return whether retrograd's and SciPy's functions give the same results, or both refuse."""
    answers = []
    for package, given in (("scipy", args), ("retrograd.scipy", on_tensors(args))):
        with np.errstate(all="ignore"):
            try:
                answers.append(np.asarray(function(package, module, name)(*given)))
            except Exception:
                answers.append(None)
    theirs, ours = answers
    if theirs is None or ours is None:
        return theirs is ours
    rounding = 1e-3 if any(getattr(a, "dtype", None) == np.float32 for a in args) else 1e-8
    return ours.shape == theirs.shape and np.allclose(ours, theirs, rtol=rounding, atol=rounding, equal_nan=True)


def allowed(name, example, value):
    """Return the value within the function's domain: symmetric, or fractions that sum to 1."""
    if name.startswith(("cholesky", "multivariate_normal")) and example is POSITIVE:
        return (value + value.T) / 2
    if name.startswith("dirichlet") and example is not A:
        return value / value.sum(0)
    return value


@group_cases
@pytest.mark.parametrize(("module", "name", "args"), CASES, ids=IDS)
def test_derivatives_are_those_of_what_scipy_computes(module, name, args):
    places = moving(args)

    def weighted(function):
        def scalar(*values):
            filled = list(args)
            for place, value in zip(places, values, strict=True):
                filled[place] = allowed(name, args[place], value)
            out = function(*filled)
            return (out * np.cos(np.arange(1.0, out.size + 1)).reshape(out.shape)).sum()

        return scalar

    values = [args[i] for i in places]
    directions = directions_for(values)
    expected = difference(weighted(function("scipy", module, name)), values, directions)
    ours, argnums = weighted(function("retrograd.scipy", module, name)), tuple(range(len(places)))
    slope = along(grad(ours, argnums)(*values), directions)
    assert slope == pytest.approx(expected, rel=2e-6, abs=1e-8)
    assert make_jvp(ours, argnums)(*values)(tuple(directions))[1] == pytest.approx(slope, rel=1e-9, abs=1e-11)


# ---------------------------------------------------------------------------------------- cases outside the tables


def test_scipys_own_ufuncs_take_tensors():
    assert isinstance(scipy.special.erf(rg.ones(2)), Tensor)
    assert grad(lambda x: scipy.special.gammaln(x))(3.0) == pytest.approx(scipy.special.psi(3.0))
    with pytest.raises(TypeError, match=r"np\.ellipk: no counterpart for tensors"):
        scipy.special.ellipk(rg.ones(2))


def test_the_mirrors_ufuncs_differentiate_also_where_scipy_follows_the_array_api():
    program = (
        "import retrograd as rg, scipy.special as own; from retrograd.scipy import special\n"
        "assert type(own.gammaln).__name__ == 'function'\n"
        "x = rg.tensor([3.0], requires_grad=True); special.gammaln(x).backward()\n"
        "print(x.grad.item(), special.gammaln(3.0), special.ellipk(0.5) == own.ellipk(0.5))"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, "SCIPY_ARRAY_API": "1"}, capture_output=True, text=True
    )
    slope, value, same = run.stdout.split()
    assert float(slope) == pytest.approx(scipy.special.psi(3.0), rel=1e-6)
    assert (float(value), same) == (pytest.approx(scipy.special.gammaln(3.0)), "True")


def test_the_rest_is_scipys_own():
    assert retrograd.scipy.special.ellipk is scipy.special.ellipk
    assert retrograd.scipy.stats.norm.ppf(0.5) == 0
    assert retrograd.scipy.interpolate.BSpline is scipy.interpolate.BSpline
    assert "ellipk" in dir(retrograd.scipy.special)
    with pytest.raises(AttributeError, match=r"retrograd\.scipy\.special has no 'no_such_name', and scipy\.special"):
        retrograd.scipy.special.no_such_name  # noqa: B018


@pytest.mark.parametrize("name", ["gamma", "beta", "chi2"])
def test_outside_of_the_support_the_density_is_zero_and_its_slope_too(name):
    shapes = {"gamma": (2.0,), "beta": (2.0, 1.5), "chi2": (3.0,)}[name]
    module = getattr(retrograd.scipy.stats, name)
    x = rg.tensor([-1.0, 0.5], requires_grad=True)
    for function, value in ((module.pdf, 0), (module.cdf, 0), (module.sf, 1), (module.logpdf, -np.inf)):
        out = function(x, *shapes)
        assert out[0].item() == value
        x.grad = None
        out[1:].sum().backward()
        assert x.grad[0] == 0


@pytest.mark.parametrize("name", ["norm", "t", "gamma", "beta", "chi2"])
def test_numbers_that_say_nothing_give_nan(name):
    shapes = {"norm": (), "t": (3.0,), "gamma": (2.0,), "beta": (2.0, 1.5), "chi2": (3.0,)}[name]
    module, x = getattr(retrograd.scipy.stats, name), rg.tensor([np.nan, 0.5])
    for f in _DENSITIES:
        assert np.isnan(getattr(module, f)(x, *shapes).tolist()).tolist() == [True, False]
        assert np.isnan(getattr(module, f)(x, *shapes, 0.0, -1.0).tolist()).all()
        assert np.isnan(getattr(module, f)(x, *shapes, scale=rg.tensor([1.0, -2.0])).tolist()).all()


@pytest.mark.parametrize(
    ("name", "shapes"),
    [("gamma", (1.0,)), ("gamma", (0.5,)), ("beta", (1.0, 1.0)), ("beta", (0.5, 2.0)), ("chi2", (2.0,))],
)
def test_densities_have_a_value_at_the_ends_of_the_support(name, shapes):
    ends = np.array([0.0, 1.0])
    for f in ("pdf", "logpdf"):
        found = getattr(getattr(retrograd.scipy.stats, name), f)(rg.tensor(ends), *shapes)
        np.testing.assert_allclose(found.numpy(), getattr(getattr(scipy.stats, name), f)(ends, *shapes))


def test_far_out_the_normal_distribution_has_its_limits():
    module, x = retrograd.scipy.stats.norm, rg.tensor(np.array([-np.inf, np.inf]))
    for f in _DENSITIES:
        np.testing.assert_array_equal(getattr(module, f)(x).numpy(), getattr(scipy.stats.norm, f)(x.numpy()))


def test_students_distribution_has_its_slope_in_the_middle():
    module = retrograd.scipy.stats.t
    assert grad(lambda x: module.cdf(x, 3.0))(0.0) == pytest.approx(scipy.stats.t.pdf(0, 3))


def test_the_poisson_distribution_knows_no_halves():
    module = retrograd.scipy.stats.poisson
    k = np.array([-1.0, 0.5, 2.0])
    np.testing.assert_allclose(module.pmf(k, rg.tensor(2.0)).numpy(), scipy.stats.poisson.pmf(k, 2.0), rtol=1e-6)


@pytest.mark.parametrize("f", ["pmf", "logpmf", "cdf", "sf", "logcdf", "logsf"])
def test_the_poisson_distribution_of_nothing_known_is_nan(f):
    function = getattr(retrograd.scipy.stats.poisson, f)
    assert np.isnan(function(rg.tensor([np.nan, 1.0]), rg.tensor([1.0, -1.0])).tolist()).all()


def test_convolution_along_some_axes_sums_over_others():
    x, y = _r.normal(size=(4, 2, 5)), _r.normal(size=(3, 2, 2))
    found = retrograd.scipy.signal.convolve(x, y, "valid", axes=([2], [2]), dot_axes=([1], [1]))
    assert found.shape == (4, 3, 4)
    expected = sum(np.convolve(x[1, k], y[2, k], "valid") for k in range(2))
    np.testing.assert_allclose(found[1, 2], expected)
    assert (
        grad(lambda x: retrograd.scipy.signal.convolve(x, y, axes=([2], [2]), dot_axes=([1], [1])).sum())(x).shape
        == x.shape
    )


def test_normal_densities_of_singular_covariances_are_those_of_scipy():
    def own(x, mean, cov):
        return retrograd.scipy.stats.multivariate_normal.logpdf(x, mean, cov, allow_singular=True)

    plane = np.diag([1.0, 2.0, 0.0])
    points = np.array([[0.3, 0.5, 0.0], [0.3, 0.5, 1.0]])
    for cov in (plane, POSITIVE, plane[:, [2, 0, 1]][[2, 0, 1]]):
        expected = scipy.stats.multivariate_normal.logpdf(points, np.zeros(3), cov, allow_singular=True)
        np.testing.assert_allclose(own(rg.tensor(points), np.zeros(3), cov).numpy(), expected)
    inside = lambda x, m: own(np.concatenate([x, points[0, 2:]]), np.concatenate([m, points[0, 2:]]), plane)  # noqa: E731
    slopes = grad(inside, (0, 1))(points[0, :2], np.zeros(2))
    np.testing.assert_allclose(slopes, [[-0.3, -0.25], [0.3, 0.25]])
    np.testing.assert_allclose(
        grad(own, 2)(X, A, POSITIVE), grad(retrograd.scipy.stats.multivariate_normal.logpdf, 2)(X, A, POSITIVE)
    )
    with pytest.raises(ValueError, match="positive semidefinite"):
        own(rg.tensor(X), A, -POSITIVE)


@pytest.mark.parametrize("x", [[0.5, 0.6, 0.1], [1.2, -0.1, -0.1], [0.7, 0.7]])
def test_values_outside_the_simplex_have_no_density(x):
    for package in (scipy, retrograd.scipy):
        with pytest.raises(ValueError, match=r"stats.dirichlet: x must|'x'"):
            package.stats.dirichlet.logpdf(rg.tensor(x) if package is not scipy else x, A)


def test_convolutions_with_nothing_are_refused():
    with pytest.raises(ValueError, match="neither array may be empty"):
        retrograd.scipy.signal.convolve(rg.tensor(X), rg.tensor(X[:0]))


def test_weighted_sums_of_exponentials_may_be_complex():
    z = SQUARE + 1j * POSITIVE
    found = retrograd.scipy.special.logsumexp(rg.tensor(z), 1, X)
    np.testing.assert_allclose(found.numpy(), scipy.special.logsumexp(z, 1, X))


def composed(name):
    """Return a function of a module's `linalg` that gives one array from results that are several or not unique."""
    return {
        "cho_solve": lambda m, a, b: m.cho_solve(m.cho_factor((a + a.T) / 2), b),
        "cho_solve, lower": lambda m, a, b: m.cho_solve(m.cho_factor((a + a.T) / 2, lower=True), b),
        "lu_solve": lambda m, a, b: m.lu_solve(m.lu_factor(a), b),
        "lu_solve, transposed": lambda m, a, b: m.lu_solve(m.lu_factor(a), b, 1),
        "lu_solve, adjoint": lambda m, a, b: m.lu_solve(m.lu_factor(a), b, 2),
        "lu": lambda m, a, b: m.lu(a)[1] @ b + m.lu(a)[2][0],
        "lu, permuted": lambda m, a, b: m.lu(a, permute_l=True)[0] @ b,
        "eigh": lambda m, a, b: abs(m.eigh(a)[1]) @ b,
        "eigh, upper": lambda m, a, b: abs(m.eigh(a, lower=False)[1]) @ b,
        "eigh of a pencil": lambda m, a, b: (
            abs(m.eigh(a, POSITIVE + np.eye(3))[1]) @ b + m.eigh(SQUARE + SQUARE.T, a)[0]
        ),
        "expm_frechet": lambda m, a, b: m.expm_frechet(a, SQUARE)[0] @ b,
    }[name]


COMPOSED = (
    "cho_solve", "cho_solve, lower", "lu_solve", "lu_solve, transposed", "lu_solve, adjoint", "lu", "lu, permuted",
    "eigh", "eigh, upper", "eigh of a pencil", "expm_frechet",
)  # fmt: skip


@pytest.mark.parametrize("name", COMPOSED)
@pytest.mark.parametrize("dtype", [float, complex])
def test_factors_and_pencils_have_the_values_of_scipy_and_their_derivatives(name, dtype):
    function = composed(name)
    a = POSITIVE + (1j * (SQUARE - SQUARE.T) / 8 if dtype is complex else 0)
    if "cho" in name:
        a = POSITIVE
    a = a.astype(dtype) if "expm" not in name else POSITIVE
    b = X if "eigh" in name or "expm" in name else X.astype(dtype)
    ours = lambda a, b: function(retrograd.scipy.linalg, a, b)  # noqa: E731
    np.testing.assert_allclose(ours(rg.tensor(a), rg.tensor(b)).numpy(), function(scipy.linalg, a, b), rtol=1e-9)
    given = [rg.tensor(POSITIVE, requires_grad=True), rg.tensor(X, requires_grad=True)]
    if dtype is float:
        assert gradcheck(ours, given, check_forward_ad=True)
        assert gradgradcheck(ours, given)


def test_logarithms_of_real_matrices_may_be_complex_and_pass_gradcheck():
    found = retrograd.scipy.linalg.logm(rg.tensor(-np.eye(2)))
    np.testing.assert_allclose(found.numpy(), 1j * np.pi * np.eye(2))
    given = [rg.tensor(POSITIVE, requires_grad=True)]
    assert gradcheck(retrograd.scipy.linalg.logm, given, check_forward_ad=True)
    assert gradgradcheck(retrograd.scipy.linalg.logm, given)
    batch = rg.tensor(np.stack([POSITIVE, 2 * POSITIVE]))
    both = vmap(retrograd.scipy.linalg.logm)(batch).numpy()
    np.testing.assert_allclose(both, [scipy.linalg.logm(m) for m in batch.numpy()], rtol=1e-9)


def test_options_without_a_derivative_are_refused():
    linalg = retrograd.scipy.linalg
    for call in (
        lambda x: linalg.eigh(x, subset_by_value=[0, 1]),
        lambda x: linalg.funm(x, abs, disp=False),
    ):  # fmt: skip
        with pytest.raises(TypeError, match=r"linalg\..* is not supported for tensors"):
            call(rg.tensor(POSITIVE))
    with pytest.raises(ValueError, match="solve_discrete_lyapunov: method must be 'direct' or 'bilinear'"):
        linalg.solve_discrete_lyapunov(rg.tensor(SQUARE), SQUARE, "other")


def test_a_root_of_a_real_matrix_may_be_complex():
    np.testing.assert_allclose(retrograd.scipy.linalg.sqrtm(rg.tensor(-np.eye(2))).numpy(), 1j * np.eye(2))
    np.testing.assert_allclose(retrograd.scipy.linalg.sqrtm(rg.tensor(-np.eye(2) + 0j)).numpy(), 1j * np.eye(2))


# -------------------------------------------------------------------------------------------------- odeint

TIMES = np.array([0.0, 0.4, 1.1])
EXACT = {"rtol": 1e-11, "atol": 1e-11}


def pendulum(y, t, stiffness, damping):
    return [y[1], -stiffness * np.sin(y[0]) - damping[0] * y[1] * t]


def loss(y0, t, stiffness, damping):
    path = retrograd.scipy.integrate.odeint(pendulum, y0, t, (stiffness, damping), **EXACT)
    return (path * np.cos(np.arange(1.0, 7).reshape(3, 2))).sum()


START = (np.array([0.5, 0.2]), TIMES, np.array(2.0), np.array([0.3, 9.0]))


def test_odeint_is_scipys():
    expected = scipy.integrate.odeint(pendulum, *START[:2], START[2:])
    found = retrograd.scipy.integrate.odeint(pendulum, rg.tensor(START[0]), START[1], START[2:])
    np.testing.assert_array_equal(found.numpy(), expected)
    np.testing.assert_array_equal(retrograd.scipy.integrate.odeint(pendulum, *START[:2], START[2:]), expected)


def test_odeint_differentiates_in_both_modes():
    directions = directions_for(START)
    expected = difference(loss, START, directions)
    slope = along(grad(loss, (0, 1, 2, 3))(*START), directions)
    assert slope == pytest.approx(expected, rel=1e-6)
    assert make_jvp(loss, (0, 1, 2, 3))(*START)(tuple(directions))[1] == pytest.approx(expected, rel=1e-6)


def test_odeint_differentiates_again():
    directions, argnums = directions_for(START), (0, 2)

    def slope(y0, stiffness):
        first = grad(loss, argnums)(y0, TIMES, stiffness, START[3])
        return (first[0] * directions[0]).sum() + first[1] * directions[2]

    values, moved = [START[0], START[2]], [directions[0], directions[2]]
    assert along(grad(slope, (0, 1))(*values), moved) == pytest.approx(difference(slope, values, moved, 1e-4), rel=1e-4)


def test_odeint_refuses_what_it_does_not_know():
    with pytest.raises(ValueError, match=r"odeint: y0 and t must be vectors, got shapes \(2, 2\)"):
        retrograd.scipy.integrate.odeint(pendulum, rg.ones(2, 2), TIMES, START[2:])
    with pytest.raises(TypeError, match=r"odeint: Dfun=.* is not supported"):
        retrograd.scipy.integrate.odeint(pendulum, rg.ones(2), TIMES, START[2:], Dfun=np.eye)
