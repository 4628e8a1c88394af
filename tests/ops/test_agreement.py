"""The comparison of the laws: what it accepts is within the tolerance, for all dtypes and special values."""

import numpy as np
import pytest

from retrograd.testing.calculus import agree

from ..case_groups import group_cases

NEAR = [
    (np.array([1.0, 100.0]), np.array([1.0, 100.0 + 9e-5])),  # relative to the largest entry
    (np.array([np.nan, np.inf, 1.0]), np.array([np.nan, np.inf, 1.0])),
    (np.array([1 + 1e-7j]), np.array([1 + 0j])),
    (np.float32([1.0]), np.array([1.0])),
    (np.array([3, 4]), np.array([3, 4])),
    (np.array([True]), np.array([True])),
    (np.zeros((0, 3)), np.zeros((0, 3))),
    (np.array(1e300), np.array(1e300)),
    (2.0, 2.0),
]
FAR = [
    (np.array([1.0, 100.0]), np.array([1.0, 100.0 + 2e-4])),
    (np.array([1.0]), np.array([np.nan])),
    (np.array([np.nan]), np.array([1.0])),
    (np.array([np.inf]), np.array([1.0])),
    (np.array([np.inf]), np.array([-np.inf])),
    (np.array([1 + 1e-5j]), np.array([1 + 0j])),
    (np.array([3, 4]), np.array([3, 5])),
    (np.array([True]), np.array([False])),
    (np.ones((1, 3)), np.ones(3)),
    (np.ones(1), np.ones(3)),
    (np.float32([1.0]), np.float32([1.1])),
    (np.array(1e300), np.array(-1e300)),
]


@group_cases
@pytest.mark.parametrize(("found", "wanted"), NEAR)
def test_values_within_the_tolerance_agree(found, wanted):
    agree((found,), (wanted,), "result", 1e-6)


@group_cases
@pytest.mark.parametrize(("found", "wanted"), FAR)
def test_other_values_are_named_with_their_index(found, wanted):
    with pytest.raises(AssertionError, match=r"result, number 1: (shapes differ|.*The worst is at index)"):
        agree((1.0, found), (1.0, wanted), "result", 1e-6)
