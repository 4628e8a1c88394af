"""Copies in row-major order have the elements of the array, bit for bit, whatever its layout, dtype and size."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrograd.kernels import chosen, reference

from .layouts import LAYOUTS

DTYPES = ["f4", "f8", "i4", ">f4", "c8", "c16", "f2", "?", "M8[s]"]


def bits(n, dtype):
    """Return n elements of a dtype, of any bits, among them those of signaling NaN."""
    found = np.random.default_rng(n).integers(0, 256, n * np.dtype(dtype).itemsize, np.uint8)
    return found.view(dtype) if dtype != "?" else found > 127


def same(x):
    """Assert that a copy is one of x, in row-major order."""
    out, expected = chosen.row_major(x), reference.row_major(x)
    assert out.flags.c_contiguous
    assert not np.shares_memory(out, x)
    assert (out.dtype, out.shape, out.tobytes()) == (expected.dtype, expected.shape, expected.tobytes())


@pytest.mark.parametrize("dtype", DTYPES)
@settings(max_examples=40)
@given(data=st.data())
def test_any_order_of_dimensions(dtype, data):
    shape = data.draw(st.lists(st.sampled_from([1, 2, 3, 5, 16, 17, 33, 70]), min_size=1, max_size=4).filter(small))
    x = bits(int(np.prod(shape)), dtype).reshape(shape)
    same(data.draw(st.sampled_from(LAYOUTS))(x).transpose(data.draw(st.permutations(range(len(shape))))))


def small(shape):
    return np.prod(shape) <= 1 << 15


@pytest.mark.usefixtures("threads", "width")
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(("shape", "order"), [
    ((130, 600), (1, 0)), ((2, 3, 90, 80), (0, 2, 3, 1)), ((2, 90, 80, 3), (0, 3, 1, 2)), ((40, 30, 50), (2, 0, 1)),
    ((40, 30, 50), (2, 1, 0)), ((100, 1000), (1, 0)),
])  # fmt: skip
def test_transposed_matrices(shape, order, dtype):
    x = bits(int(np.prod(shape)), dtype).reshape(shape).transpose(order)
    same(x)
    same(x[1:, ::-1])
    same(np.broadcast_to(x[:, :1], x.shape))


def test_an_array_without_elements_or_dimensions():
    same(np.ones((0, 4), "f").T)
    same(np.array(3.0))


def test_objects_are_counted():
    x = np.array([object() for _ in range(2000)]).reshape(40, 50).T
    out = chosen.row_major(x)
    assert out.flags.c_contiguous
    assert (out == x).all()


def test_a_copy_is_a_plain_array():
    class Named(np.ndarray):
        """A subclass."""

    assert type(chosen.row_major(np.ones((40, 50), "f").T.view(Named))) is np.ndarray
