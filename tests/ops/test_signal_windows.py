"""Window functions under both sets of names."""

import pytest

import retrograd as rg
from retrograd.testing import assert_close

PAIRS = ["hann", "hamming", "blackman", "bartlett", "kaiser"]


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("periodic", [True, False])
def test_the_names_in_the_root_are_periodic_by_default(name, periodic):
    window, other = getattr(rg, f"{name}_window"), getattr(rg.signal.windows, name)
    assert_close(window(6, periodic), other(6, sym=not periodic))
    assert_close(window(6), other(6, sym=False))


@pytest.mark.parametrize("name", PAIRS)
def test_a_periodic_window_is_a_symmetric_one_without_the_last(name):
    window = getattr(rg.signal.windows, name)
    assert_close(window(6, sym=False), window(7)[:-1], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", [*PAIRS, "cosine", "exponential", "gaussian", "nuttall", "general_hamming"])
def test_windows_are_symmetric_and_of_the_requested_dtype(name):
    x = getattr(rg.signal.windows, name)(7, dtype=rg.float64)
    assert x.dtype == rg.float64
    assert_close(x, x.flip(0), rtol=1e-12, atol=1e-15)
    assert getattr(rg.signal.windows, name)(0).shape == (0,)
    assert getattr(rg.signal.windows, name)(1).tolist() == [1.0]


def test_the_default_dtype_is_that_of_windows():
    rg.set_default_dtype(rg.float64)
    try:
        assert rg.hann_window(4).dtype == rg.float64
    finally:
        rg.set_default_dtype(rg.float32)
