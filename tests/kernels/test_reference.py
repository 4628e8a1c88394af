"""The C++ kernels agree with the NumPy reference implementations, for any memory layout."""

import warnings

import numpy as np
import pytest

from retrograd import kernels
from retrograd.kernels import chosen, reference

OF_NUMBERS = ("erf", "gelu")
DTYPES = (np.float32, np.float64)
needs_compiled = pytest.mark.skipif(not kernels.compiled, reason="the kernels are not compiled")


def close(got, expected, scale=1.0):
    tolerance = 4e-6 if expected.dtype == np.float32 else 4e-15
    assert got.dtype == expected.dtype
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance * scale)


def numbers(dtype, *shape):
    return (np.random.default_rng(0).standard_normal(shape) * 3).astype(dtype)


@needs_compiled
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OF_NUMBERS)
@pytest.mark.parametrize("part", [np.s_[:], np.s_[::3], np.s_[::-1, ::2], np.s_[:0], np.s_[3, 4], np.s_[:, 5]])
def test_elementwise_functions_are_those_of_the_reference(name, dtype, part):
    x = numbers(dtype, 40, 70)[part]
    close(np.asarray(getattr(chosen, name)(x)), np.asarray(getattr(reference, name)(np.asarray(x))))


@needs_compiled
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OF_NUMBERS)
def test_infinities_nan_and_zeros_are_those_of_the_reference_without_warnings(name, dtype):
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e30, -1e30, 40.0, -40.0, 14.0, -14.0], dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = getattr(chosen, name)(x)
    close(got, getattr(reference, name)(x))
    assert np.signbit(got[4]) == np.signbit(getattr(reference, name)(x)[4])


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_slope_of_gelu_is_its_difference_quotient(dtype):
    x, step = np.linspace(-5, 5, 101).astype(dtype), dtype(1e-2)
    quotient = (reference.gelu(x + step) - reference.gelu(x - step)) / (2 * step)
    np.testing.assert_allclose(kernels.gelu_grad(np.ones_like(x), x), quotient, atol=1e-4)


@needs_compiled
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [1, 2, 15, 16, 17, 64, 1023, 3000])
@pytest.mark.parametrize("apart", [False, True])
def test_rows_are_standardized_as_by_the_reference(dtype, size, apart):
    x = numbers(dtype, 2 * size, 7).T[:, ::2] if apart else numbers(dtype, 7, size)
    pairs = zip(chosen.standardize_rows(x, dtype(1e-5)), reference.standardize_rows(x, dtype(1e-5)), strict=True)
    for got, expected in pairs:
        close(got, expected, scale=30)


@needs_compiled
def test_the_mean_of_many_numbers_far_from_zero_keeps_its_digits():
    x = (1000 + np.random.default_rng(0).standard_normal((1, 100_000))).astype(np.float32)
    _, mean, variance = chosen.standardize_rows(x, np.float32(0))
    assert abs(mean[0] - x.astype(np.float64).mean()) < 1e-4
    assert abs(variance[0] - x.astype(np.float64).var()) < 1e-4


@needs_compiled
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("apart", [False, True])
def test_rows_are_mixed_as_by_the_reference(dtype, apart):
    x, y = numbers(dtype, 5, 37), numbers(dtype, 5, 37)[::-1]
    if apart:
        x, y = x.T.copy().T, y[:, ::-1]
    p, q, r, a = numbers(dtype, 4, 5)
    x, y = x[None], y[None]
    close(chosen.channel_mix(x, p, q, y, r, a), reference.channel_mix(x, p, q, y, r, a), scale=30)
    zeros = np.zeros(5, dtype)
    close(chosen.channel_mix(x, p, zeros, y, r, zeros), reference.channel_mix(x, p, zeros, y, r, zeros), scale=30)


@needs_compiled
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("apart", [False, True])
def test_rows_are_scaled_and_shifted_as_by_the_reference(dtype, apart):
    x = numbers(dtype, 3, 5, 37)
    weight, bias = numbers(dtype, 2, 37)
    if apart:
        x, weight, bias = x[..., ::2], weight[::2], bias[::2]
    close(chosen.affine_rows(x, weight, bias), reference.affine_rows(x, weight, bias), scale=30)
