"""The error function is accurate to the precision of its dtype over the whole range."""

import math

import numpy as np
import pytest

from retrograd.backend.special import erf

HARD = [0.0, -0.0, 1e-300, -1e-40, 0.46875, 4.0, 3.95, -4.0, 6.0, 30.0, -40.0, np.inf, -np.inf]


def exact(x):
    return np.array([math.erf(float(v)) for v in x.ravel()]).reshape(x.shape)


@pytest.mark.parametrize(("dtype", "units"), [(np.float64, 2), (np.float32, 4), (np.float16, 1)])
def test_erf_is_right_to_a_few_units_in_the_last_place_of_one(dtype, units):
    x = np.concatenate([np.linspace(-7, 7, 20001), HARD]).astype(dtype)
    assert erf(x).dtype == dtype
    assert np.max(np.abs(erf(x) - exact(x))) <= units * np.finfo(dtype).eps


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_small_arguments_keep_their_relative_precision_and_sign(dtype):
    x = np.array([1e-5, -1e-5, 1e-20, -0.0], dtype)
    np.testing.assert_allclose(erf(x), exact(x), rtol=1e-6 if dtype == np.float32 else 1e-15)
    assert np.signbit(erf(x)).tolist() == [False, True, False, True]


def test_nan_stays_and_other_shapes_work():
    assert np.isnan(erf(np.array([np.nan]))).all()
    assert np.isnan(erf(np.array([np.nan], np.float32))).all()
    assert erf(np.array(0.5)).shape == ()
    assert erf(np.zeros((0, 3))).shape == (0, 3)
    assert erf(np.arange(6.0).reshape(2, 3).T).shape == (3, 2)
