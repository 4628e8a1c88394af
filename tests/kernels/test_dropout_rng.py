"""Random kernels give NumPy's bits for any number of threads; dropout masks are just as reproducible."""

import numpy as np
import pytest

from retrograd import kernels
from retrograd.backend import philox
from retrograd.kernels import chosen, reference

from ..case_groups import group_cases

needs_compiled = pytest.mark.skipif(not kernels.compiled, reason="the kernels are not compiled")
DTYPES = (np.float32, np.float64)
MOST = 2**64 - 1


@needs_compiled
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("count", [0, 8, 80, 100_000])
@pytest.mark.parametrize("counter", [(0, 0, 0, 0), (MOST - 1, 5, 0, 0), (MOST, MOST, MOST, 0), (MOST,) * 4])
def test_uniform_numbers_are_those_of_numpy(counter, count, dtype, threads):
    key, counter = np.array([7, MOST - 3], np.uint64), np.array(counter, np.uint64)
    got, expected = np.empty((2, count), dtype)
    chosen.uniform(key, counter, got)
    reference.uniform(key, counter, expected)
    np.testing.assert_array_equal(got, expected)


@group_cases
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("before", [[], [1], [2], [3, 1], [8], [5, 2]])
@pytest.mark.parametrize("size", [(philox.MANY,), (3, 7001), (2, 4, 5003), (), (0, 5)])
def test_a_stream_is_that_of_its_source(size, before, dtype):
    stream, source = philox.random_source(3), philox.random_source(3)
    for k, count in enumerate(before):  # single ones keep the other half of a word
        kind = DTYPES[k % 2]
        np.testing.assert_array_equal(philox.uniform(stream, (count,), kind), source.random(count, kind))
    np.testing.assert_array_equal(philox.uniform(stream, size, dtype), source.random(size, dtype))
    assert repr(stream.bit_generator.state) == repr(source.bit_generator.state)


@pytest.mark.parametrize("dtype", DTYPES)
def test_dropout_scales_kept_elements_and_zeroes_the_rest(dtype, threads):
    x = np.random.default_rng(0).standard_normal((300, 700)).astype(dtype)
    kept = np.random.default_rng(1).random((300, 700)) < 0.7
    for mask, values in ((kept, x), (kept[:, ::-1], x[::-1]), (kept[:, :1], x), (kept.T, x.T), (kept[:0], x[:0])):
        np.testing.assert_array_equal(
            kernels.masked(mask, values, dtype(1.25)), np.where(mask, values * dtype(1.25), 0)
        )


@pytest.mark.parametrize("module", [chosen, reference])
def test_numbers_that_are_none_are_not_hidden(module):
    x = np.array([np.nan, np.inf, -1.0, np.nan, np.inf, -1.0])
    with np.errstate(invalid="ignore"):
        got = module.masked(np.arange(6) < 3, x, 2.0)
    np.testing.assert_array_equal(got, [np.nan, np.inf, -2.0, np.nan, np.nan, -0.0])


@needs_compiled
@pytest.mark.parametrize("spoil", ["key", "counter", "count", "dtype", "strides"])
def test_arrays_that_do_not_fit_are_refused(spoil):
    key, counter, out = np.zeros(2, np.uint64), np.zeros(4, np.uint64), np.zeros(16)
    key = key.astype(np.int64) if spoil == "key" else key
    counter = counter[:3] if spoil == "counter" else counter
    out = {"count": out[:3], "dtype": out.astype(int), "strides": out[::2]}.get(spoil, out)
    with pytest.raises(ValueError, match="uniform: the arrays do not fit"):
        chosen.uniform(key, counter, out)
