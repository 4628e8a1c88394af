"""Optimizer step kernels agree with the reference, for any memory layout."""

import warnings

import numpy as np
import pytest

from retrograd import kernels
from retrograd.kernels import chosen, reference

from ..case_groups import group_cases

pytestmark = pytest.mark.skipif(not kernels.compiled, reason="the kernels are not compiled")

DTYPES = (np.float32, np.float64)
MEANS = (0.9, 0.99, 0.1, 0.01, 1e-8, 0.05)
STEPS = [
    ("descent", 1, (1, 0, 0.5)),
    ("descent", 1, (-1, 0.1, 0.5)),
    ("momentum", 2, (1, 0, 0.9, 1, 0, 0.5)),
    ("momentum", 2, (-1, 0.1, 0.9, 0.7, 0.5, 0.45)),
    ("adam", 3, (1, 0, 1, *MEANS)),
    ("adam", 3, (-1, 0.1, 0.95, *MEANS)),
    ("amsgrad", 4, (1, 0, 1, *MEANS)),
    ("amsgrad", 4, (-1, 0.1, 0.95, *MEANS)),
]


def both(name, kept, numbers, arrays):
    """Return gradient and state after the kernel and after its reference, on copies of arrays in the same layout."""
    results = []
    for module in (chosen, reference):
        g, p, *rest = [a.copy(order="K") for a in arrays[: kept + 1]]
        getattr(module, name)(p, g, *rest, *map(float, numbers), out=(p, *rest))
        results.append([p, *rest])
    return zip(*results, strict=True)


def assert_close(got, expected):
    assert got.dtype == expected.dtype
    eps = np.finfo(got.dtype).eps
    np.testing.assert_allclose(got, expected, rtol=8 * eps, atol=8 * eps)


def somewhere(dtype, *shape):
    """Return a gradient, a parameter, and its optimizer state, of which squares are not negative."""
    g, p, m, v, largest = np.random.default_rng(0).standard_normal((5, *shape)).astype(dtype)
    return [np.asarray(a) for a in (g, p, m, np.abs(v), np.abs(largest))]


@group_cases
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("name", "kept", "numbers"), STEPS)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (17,), (1000,), (3, 700)])
def test_a_step_is_that_of_the_reference(name, kept, numbers, dtype, shape):
    for got, expected in both(name, kept, numbers, somewhere(dtype, *shape)):
        assert_close(got, expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("name", "kept", "numbers"), STEPS)
def test_arrays_may_have_any_layout(name, kept, numbers, dtype):
    ones = somewhere(dtype, 60, 50)
    places = [ones[0].T, *[a[::-1] for a in ones[1:]]]
    apart = [np.asfortranarray(a) if k % 2 else a for k, a in enumerate(places)]
    apart[0] = apart[0].reshape(60, 50)
    for got, expected in both(name, kept, numbers, apart):
        assert_close(got, expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("name", "kept", "numbers"), STEPS)
def test_hard_numbers_are_those_of_the_reference_without_warnings(name, kept, numbers, dtype):
    tiny, huge = np.finfo(dtype).smallest_subnormal, np.finfo(dtype).max / 8
    hard = np.array([0.0, -0.0, 1.0, np.nan, np.inf, -np.inf, tiny, huge, -huge], dtype)
    arrays = [a.ravel() for a in np.meshgrid(*[hard] * 3)]
    arrays += [np.abs(a) for a in (arrays[0], arrays[1])]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        p, rest = arrays[1].copy(), [a.copy() for a in arrays[2 : kept + 1]]
        getattr(chosen, name)(p, arrays[0], *rest, *map(float, numbers), out=(p, *rest))
    with np.errstate(all="ignore"):
        for got, expected in both(name, kept, numbers, arrays):
            np.testing.assert_allclose(got, expected, rtol=1e-5, atol=4 * tiny)


def test_without_decay_an_infinite_parameter_stays_what_it_is():
    for module in (chosen, reference):
        p, b, g = np.array([np.inf]), np.zeros(1), np.array([1.0])
        module.descent(p, g, 1.0, 0.0, 0.5, out=(p,))
        module.momentum(p, g, b, 1.0, 0.0, 0.9, 1.0, 0.0, 0.5, out=(p, b))
        assert (p[0], b[0]) == (np.inf, 1.0)
