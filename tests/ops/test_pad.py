"""Padding: order of the widths, negative widths, dtypes."""

import numpy as np
import pytest

import retrograd as rg

pad = rg.nn.functional.pad


def test_the_last_dimension_comes_first():
    assert pad(rg.ones(2, 3), (1, 0)).shape == (2, 4)
    assert pad(rg.ones(2, 3), (0, 0, 2, 1)).shape == (5, 3)


def test_cropping_comes_before_wrapping():
    x = rg.arange(4.0)[None]
    assert pad(x, (-1, 2), "circular").tolist() == [[1.0, 2.0, 3.0, 1.0, 2.0]]
    assert pad(x, (-1, 2), "reflect").tolist() == [[1.0, 2.0, 3.0, 2.0, 1.0]]
    assert pad(x, (2, -2), "replicate").tolist() == [[0.0, 0.0, 0.0, 1.0]]


def test_cropped_elements_get_no_gradient():
    x = rg.ones(4, requires_grad=True)
    pad(x, (2, -1), value=7.0).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0, 1.0, 0.0]


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", "complex64"])
def test_dtypes_are_kept(dtype):
    out = pad(rg.ones(3, dtype=dtype), (1, 1), value=1)
    assert out.dtype == np.dtype(dtype)
    assert out.tolist() == [1] * 5


def test_every_element_that_occurs_twice_gets_two_gradients():
    x = rg.zeros(1, 3, requires_grad=True)
    pad(x, (2, 2), "replicate").sum().backward()
    assert x.grad.tolist() == [[3.0, 1.0, 3.0]]
    x.grad = None
    pad(x, (1, 2), "reflect").sum().backward()
    assert x.grad.tolist() == [[2.0, 3.0, 1.0]]


def test_nothing_can_be_repeated():
    with pytest.raises(ValueError, match="by at most 0"):
        pad(rg.zeros(2, 0), (1, 1), "replicate")
