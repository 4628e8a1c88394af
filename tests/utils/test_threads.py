"""Process-wide settings are restored."""

import sys

import pytest
from threadpoolctl import threadpool_info

from retrograd.utils import blas_threads, short_turns


def counts():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_matrix_products_get_one_thread_and_then_as_many_as_before():
    before = counts()
    with blas_threads(1):
        assert counts() == [1] * len(before)
    with pytest.raises(RuntimeError), blas_threads(1):
        raise RuntimeError
    assert counts() == before


def test_a_limit_does_not_raise_a_lower_one():
    with blas_threads(1), blas_threads(1000):
        assert set(counts()) <= {1}


def test_less_than_one_thread_is_refused():
    with pytest.raises(ValueError, match="at least 1 thread, got 0"), blas_threads(0):
        pass


def test_turns_are_as_long_as_before_again():
    before = sys.getswitchinterval()
    with short_turns():
        assert sys.getswitchinterval() < before
    with pytest.raises(RuntimeError), short_turns():
        raise RuntimeError
    assert sys.getswitchinterval() == before
