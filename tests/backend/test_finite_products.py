"""Matrix products of finite values give no warning, whatever the stack contains.

OpenBLAS 0.3.31 computes single-precision products of a matrix with 5 columns and a vector from uninitialized stack
memory, where the processor has AVX-512.  These values change no result, but a signaling NaN among them raises the
processor's flag, and NumPy warns of an invalid value.
"""

import ctypes
import sys

import numpy as np
import pytest

import retrograd as rg
from retrograd.nn import functional as F

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="ctypes has no functions of no library there")

SIGNALING_NAN = 0x7FA00000
FIVE = 5


class Words(ctypes.Structure):
    """An argument that fills the part of the stack that later calls use."""

    _fields_ = [("words", ctypes.c_uint32 * 10_000)]


@pytest.fixture
def fill_stack():
    """Return a function that leaves signaling NaNs on the stack."""
    words = Words()
    np.frombuffer(words, np.uint32)[:] = SIGNALING_NAN
    take = ctypes.CDLL(None).abs  # any function that looks at one word of them only
    take.argtypes = [Words]
    return lambda: take(words)


def ones(*shape):
    return rg.ones(*shape)


def ragged(*shapes):
    return rg.nested.nested_tensor([ones(*shape) for shape in shapes])


CALLS = {
    "matmul of a vector": lambda m: rg.matmul(ones(m, FIVE), ones(FIVE)),
    "matmul of a column": lambda m: rg.matmul(ones(m, FIVE), ones(FIVE, 1)),
    "matmul of a row": lambda m: rg.matmul(ones(1, FIVE), ones(m, FIVE).T),
    "matmul of a stack": lambda m: rg.matmul(ones(3, m, FIVE), ones(3, FIVE, 1)),
    "mv": lambda m: rg.mv(ones(m, FIVE), ones(FIVE)),
    "addmv": lambda m: rg.addmv(ones(m), ones(m, FIVE), ones(FIVE)),
    "inner": lambda m: rg.inner(ones(m, FIVE), ones(FIVE)),
    "einsum": lambda m: rg.einsum("ij,j->i", ones(m, FIVE), ones(FIVE)),
    "tensordot": lambda m: rg.tensordot(ones(m, FIVE), ones(FIVE), 1),
    "chain": lambda m: rg.linalg.multi_dot([ones(m, FIVE), ones(FIVE, 1), ones(1)]),
    "linear": lambda m: F.linear(ones(m, FIVE), ones(1, FIVE)),
    "bilinear": lambda m: F.bilinear(ones(m, FIVE), ones(m, 1), ones(1, FIVE, 1)),
    "cdist": lambda m: rg.cdist(ones(m, FIVE), ones(1, FIVE)),
    "convolution": lambda m: F.conv1d(ones(1, FIVE, m), ones(1, FIVE, 1)),
    "convolution, backward": lambda m: backward(F.conv1d, ones(1, m, FIVE), ones(1, m, 1)),
    "attention": lambda m: F.scaled_dot_product_attention(ones(1, m, FIVE), ones(1, 1, FIVE), ones(1, 1, FIVE)),
    "attention of one query": lambda m: F.scaled_dot_product_attention(
        ones(1, 1, 2), ones(1, FIVE, 2), ones(1, FIVE, m)
    ),
    "attention, backward": lambda m: backward(
        F.scaled_dot_product_attention, ones(1, m, 2), ones(1, FIVE, 2), ones(1, FIVE, 2)
    ),
    "adaptive pooling": lambda m: F.adaptive_avg_pool1d(ones(1, m, FIVE), 2),
    "interpolation": lambda m: F.interpolate(ones(1, m, FIVE), size=8, mode="linear"),
    "interpolation, backward": lambda m: backward(lambda x: F.interpolate(x, size=2, mode="linear"), ones(1, m, FIVE)),
    "ragged matrices": lambda m: rg.matmul(ragged((m, FIVE), (3, FIVE)), ragged((FIVE, 1), (FIVE, 1))),
    "solving a triangle": lambda m: rg.linalg.solve_triangular(rg.eye(FIVE + 1), ones(FIVE + 1, m), upper=False),
    "pinv": lambda m: rg.linalg.pinv(ones(m, FIVE)),
}


def backward(f, *inputs):
    f(*[x.requires_grad_() for x in inputs]).sum().backward()


@pytest.mark.parametrize("m", [1, 2, 3, 6, 7])
@pytest.mark.parametrize("name", CALLS)
def test_products_of_finite_numbers_bring_no_warning(name, m, fill_stack):
    fill_stack()
    CALLS[name](m)
