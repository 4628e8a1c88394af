"""C++ pooling agrees with the NumPy reference, for any windows and number of threads."""

import numpy as np
import pytest

import retrograd as rg
from retrograd import kernels
from retrograd.kernels import chosen, reference
from retrograd.kernels.pooling_windows import windows_of

pytestmark = pytest.mark.skipif(not kernels.compiled, reason="the kernels are not compiled")

ALONE = (1, 1, 0, 1, 1)
# Images, and windows along each dimension.
FORMS = {
    "side by side": ((5, 1, 8, 8), (ALONE, (2, 2, 0, 1, 4), (2, 2, 0, 1, 4))),
    "side by side, odd sizes": ((5, 1, 7, 9), (ALONE, (2, 2, 0, 1, 3), (2, 2, 0, 1, 4))),
    "side by side, many small": ((150, 1, 4, 4), (ALONE, (2, 2, 0, 1, 2), (2, 2, 0, 1, 2))),
    "side by side, one": ((9, 1, 3, 3), (ALONE, (2, 2, 0, 1, 1), (2, 2, 0, 1, 1))),
    "side by side, in long rows": ((3, 1, 6, 71), (ALONE, (2, 2, 0, 1, 3), (2, 2, 0, 1, 35))),
    "overlapping": ((3, 1, 37, 70), (ALONE, (3, 2, 1, 1, 19), (3, 2, 1, 1, 35))),
    "of every place": ((2, 1, 9, 40), (ALONE, (3, 1, 1, 1, 9), (5, 1, 2, 1, 40))),
    "far apart": ((2, 1, 11, 100), (ALONE, (2, 5, 0, 1, 2), (3, 7, 1, 2, 14))),
    "dilated": ((2, 1, 6, 9), (ALONE, (2, 1, 1, 3, 5), (3, 1, 2, 2, 9))),
    "cut off at the end": ((2, 1, 1, 5), (ALONE, ALONE, (2, 2, 0, 1, 3))),
    "three dimensions": ((2, 4, 5, 6), ((2, 2, 0, 1, 2), (3, 1, 1, 1, 5), (2, 3, 1, 1, 2))),
    "of several sizes": ((3, 7, 11, 13), ((3,), (4,), (5,))),
    "of padding alone": ((2, 1, 1, 3), (ALONE, (2, 1, 1, 2, 1), (3, 1, 1, 1, 3))),
    "of padding alone, along": ((2, 1, 2, 1), (ALONE, (1, 1, 0, 1, 2), (2, 1, 1, 2, 1))),
    "one place": ((1, 1, 1, 1), (ALONE, ALONE, ALONE)),
    "much work": ((40, 1, 40, 50), (ALONE, (3, 2, 1, 1, 20), (2, 2, 0, 1, 25))),
}
each_form = pytest.mark.parametrize("form", FORMS)
each_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])
ODD = (np.nan, np.inf, -np.inf, 0.0, -0.0, 3e38, -3e38, 1e-42)


def noise(shape, dtype, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def pooling_results(module, form, x):
    """Return all results of the pooling kernels: maxima, their indices, and gradients; sums, and gradients."""
    windows = FORMS[form][1]
    plan = windows_of(windows, x.shape[1:])
    size = (len(x), *(w[-1] for w in windows))
    g = noise(size, x.dtype, 1)
    maxima, places, back = np.empty_like(g), np.empty(size, np.int64), np.empty_like(x)
    module.window_maxima(plan, x, maxima)
    module.window_argmax(plan, x, places)
    module.window_maxima_backward(plan, g, x, back)
    if any(len(w) == 1 for w in windows):
        return maxima, places, back
    sums, sums_back = np.empty_like(g), np.empty_like(x)
    module.window_sums(plan, x, sums)
    module.window_sums_backward(plan, g, sums_back)
    return maxima, places, back, sums, sums_back


def same(got, expected):
    tolerance = 1e-5 if got[0].dtype == np.float32 else 1e-13
    for ours, theirs in zip(got, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


@each_form
@each_dtype
def test_windows_are_pooled_as_by_the_reference(form, dtype):
    x = noise(FORMS[form][0], dtype)
    same(pooling_results(chosen, form, x), pooling_results(reference, form, x))


@each_form
@each_dtype
def test_of_equals_the_first_is_found(form, dtype):
    x = np.round(noise(FORMS[form][0], dtype))
    same(pooling_results(chosen, form, x), pooling_results(reference, form, x))


@each_form
@each_dtype
def test_odd_numbers_are_found_as_by_the_reference(form, dtype):
    x = np.random.default_rng(0).choice(np.array(ODD, dtype), FORMS[form][0])
    with np.errstate(all="ignore"):
        same(pooling_results(chosen, form, x)[:3], pooling_results(reference, form, x)[:3])


@each_form
def test_any_number_of_threads_gives_the_same_digits(form):
    x, before = noise(FORMS[form][0], np.float32), rg.get_num_threads()
    try:
        rg.set_num_threads(1)
        alone = pooling_results(chosen, form, x)
        rg.set_num_threads(3)
        together = pooling_results(chosen, form, x)
    finally:
        rg.set_num_threads(before)
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one, other)
