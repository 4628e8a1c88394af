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


def test_a_number_that_loses_its_gradient_in_scipy_is_warned_of_with_the_counterpart():
    with pytest.warns(UserWarning, match=r"retrograd\.scipy\.integrate\.quad tensors"):
        scipy.integrate.quad(lambda t: x.sum() * t, 0, 1)


def test_no_counterpart_is_named_where_the_users_code_reads_the_tensor():
    def loss(a):
        return np.asarray(x).sum()

    with pytest.raises(ReadError) as caught:
        scipy.optimize.minimize(loss, np.ones(3))
    assert "scipy" not in str(caught.value)
