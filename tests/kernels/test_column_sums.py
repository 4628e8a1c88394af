"""Column sums agree with exact arithmetic, for every memory layout and number of threads."""

import math

import numpy as np
import pytest

from retrograd import kernels
from retrograd.kernels import chosen, reference

DTYPES = (np.float32, np.float64)
SHAPES = [(0, 3), (3, 0), (1, 1), (5, 1), (1000, 1), (33, 7), (129, 64), (31, 65), (2000, 129), (70_000, 3), (300, 700)]
needs_compiled = pytest.mark.skipif(not kernels.compiled, reason="the kernels are not compiled")


def numbers(dtype, *shape):
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


@needs_compiled
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("key", [np.s_[:], np.s_[::-1], np.s_[:, ::-1], np.s_[::2, ::2]])
def test_sums_of_columns_are_exact_to_a_few_units_in_the_last_place(shape, dtype, key, threads):
    x = numbers(dtype, *shape)[key]
    exact = np.array([math.fsum(column) for column in x.T], dtype).reshape(x.shape[1:])
    width = math.sqrt(max(len(x), 1)) * np.finfo(dtype).eps
    np.testing.assert_allclose(kernels.column_sums(x), exact, rtol=0, atol=8 * width)


@needs_compiled
@pytest.mark.parametrize("dtype", DTYPES)
def test_stacks_and_turned_matrices_are_those_of_the_reference(dtype, threads):
    x = numbers(dtype, 3, 40, 50)
    for given in (x, x.swapaxes(1, 2), x[:, 3], x[:0]):
        np.testing.assert_allclose(chosen.column_sums(given), reference.column_sums(given), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("columns", [1, 3, 200])
def test_nan_and_infinities_stay_in_their_column_and_are_no_accidents(dtype, columns):
    x = np.ones((500, columns), dtype)
    x[77, 0], x[78, -1] = np.inf, -np.inf
    got = kernels.column_sums(x)
    assert np.isnan(got[0]) if columns == 1 else (got[0] == np.inf and got[-1] == -np.inf)
    assert np.all(got[1:-1] == 500)


@needs_compiled
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4000, 300), (100_000, 5)])
def test_the_digits_are_the_same_for_any_number_of_threads(shape, dtype):
    x, before, found = numbers(dtype, *shape), kernels.get_num_threads(), []
    for count in (1, 2, 5):
        kernels.set_num_threads(count)
        found.append(chosen.column_sums(x))
    kernels.set_num_threads(before)
    assert all(np.array_equal(found[0], one) for one in found)
