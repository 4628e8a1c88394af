"""SciPy's own functions, called with tensors that require grad, are answered by the names of those that take them."""

import numpy as np
import pytest
import scipy.integrate
import scipy.linalg
import scipy.ndimage
import scipy.optimize
import scipy.signal
import scipy.special
import scipy.stats

import retrograd as rg
from retrograd.core.level import ReadError

A = rg.eye(3, dtype="float64").requires_grad_()
x = rg.ones(3, dtype="float64", requires_grad=True)
CALLS = {
    "linalg.solve": lambda: scipy.linalg.solve(A, x),
    "linalg.expm": lambda: scipy.linalg.expm(A),
    "special.logsumexp": lambda: scipy.special.logsumexp(x),
    "optimize.minimize": lambda: scipy.optimize.minimize(lambda a: (a * a).sum(), x),
    "integrate.simpson": lambda: scipy.integrate.simpson(x),
    "signal.fftconvolve": lambda: scipy.signal.fftconvolve(x, x),
    "ndimage.gaussian_filter": lambda: scipy.ndimage.gaussian_filter(x, 1.0),
    "stats.zscore": lambda: scipy.stats.zscore(x),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_function_of_scipy_is_answered_by_its_counterpart(name):
    with pytest.raises(ReadError, match=f"scipy.{name} takes arrays, retrograd.scipy.{name} tensors"):
        CALLS[name]()


def residuals(a, *more):
    return x * rg.tensor(np.asarray(a)) - 1


START = np.ones(3)
BY_COMPILED_CODE = {
    "fsolve": lambda: scipy.optimize.fsolve(residuals, START),
    "leastsq": lambda: scipy.optimize.leastsq(residuals, START),
    "curve_fit": lambda: scipy.optimize.curve_fit(lambda t, a: residuals(t * a), START, START),
    **{f"root, {m}": lambda m=m: scipy.optimize.root(residuals, START, method=m) for m in ("hybr", "lm", "broyden1")},
    **{
        f"root, the derivative, {m}": lambda m=m: scipy.optimize.root(
            lambda a: a * a - 1, START, jac=lambda a: rg.diag(residuals(a)), method=m
        )
        for m in ("hybr", "lm")
    },
    **{
        f"minimize, the derivative, {m}": lambda m=m: scipy.optimize.minimize(
            lambda a: a @ a, START, jac=residuals, method=m
        )
        for m in ("CG", "BFGS", "L-BFGS-B", "TNC", "SLSQP", "trust-constr")
    },
}


@pytest.mark.parametrize("name", BY_COMPILED_CODE)
def test_the_counterpart_is_named_where_compiled_code_takes_the_result(name, capsys):
    called = name.partition(",")[0]
    with pytest.raises(ReadError, match=f"scipy.optimize.{called} takes arrays, retrograd.scipy.optimize.{called} ten"):
        BY_COMPILED_CODE[name]()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("method", ["CG", "BFGS", "L-BFGS-B", "TNC", "SLSQP", "trust-constr"])
def test_optimizers_take_values_and_derivatives_that_are_tensors_without_gradients(method):
    def f(a):
        return ((rg.tensor(a) - 2) ** 2).sum()

    found = scipy.optimize.minimize(f, START, jac=lambda a: 2 * (rg.tensor(a) - 2), method=method)
    np.testing.assert_allclose(found.x, 2, atol=1e-4)


def test_a_number_that_loses_its_gradient_in_scipy_is_warned_of_with_the_counterpart():
    with pytest.warns(UserWarning, match=r"retrograd\.scipy\.integrate\.quad tensors"):
        scipy.integrate.quad(lambda t: x.sum() * t, 0, 1)


def test_no_counterpart_is_named_where_the_users_code_reads_the_tensor():
    def loss(a):
        return np.asarray(x).sum()

    with pytest.raises(ReadError) as caught:
        scipy.optimize.minimize(loss, np.ones(3))
    assert "scipy" not in str(caught.value)
