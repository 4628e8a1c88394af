"""Products of arrays: matrix products, affine maps, and contractions."""

import math

import numpy as np

from retrograd import kernels
from retrograd.backend.traced_array import TracedArray

__all__ = ["contract", "linear", "matmul", "product", "rows_dot"]

WORTH = 8, 1 << 17  # the least size of a dimension, and number of multiplications, for the kernel

# Column counts for which the float32 matrix-vector product of OpenBLAS 0.3.31 reads uninitialized stack memory, on
# processors with AVX-512.  That changes no result, but a signaling NaN among the values makes NumPy warn.
FALSE_ALARM = (5,)

_matmul = kernels.caching(np.matmul)
_ARRAYS = (np.ndarray, TracedArray)


def matmul(a, b):
    """Return NumPy's product; a stack of matrices times one matrix is computed as a single product of all rows."""
    if type(a) is type(b) and b.ndim == 2 and a.ndim > 2 and a.flags.c_contiguous:
        return product(row_matrix(a), b).reshape(*a.shape[:-1], b.shape[1])
    return product(a, b)


@kernels.small_matmul
def product(a, b):
    """Return NumPy's matmul, or a kernel's for large matrices.

    The kernel's threads never wait for one that is not running, unlike those of BLAS, and it uses AVX-512 everywhere.
    """
    if type(a) is type(b) and type(a) in _ARRAYS and a.ndim > 1 < b.ndim:
        (m, k), n = a.shape[-2:], b.shape[-1]
        if k == 1 == b.shape[-2]:
            return np.multiply(a, b, order="C")  # matmul's loop for that case takes five times as long
        wide = min(m, k, n) >= WORTH[0] and m * k * n >= WORTH[1] and kernels.get_vector_bytes() >= 32
        if wide and a.dtype == b.dtype and a.dtype.char in "fd":
            return kernels.multiply_matrices(a, b)
    if type(a) in _ARRAYS and a.shape[-1:] == FALSE_ALARM and a.dtype.char == "f":
        with np.errstate(invalid="ignore"):
            return _matmul(a, b, order="C")
    return _matmul(a, b, order="C")


def row_matrix(x):
    """Return x as a matrix of its rows; a view if the strides allow."""
    return x if x.ndim == 2 else x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


@kernels.small_linear
def linear(x, weight, bias=None):
    """Return x times the transposed weight, plus the bias: one product over all rows of x."""
    if weight.ndim == 1 and bias is None:
        return matmul(x, weight)
    if weight.ndim != 2 or (bias is not None and bias.shape != weight.shape[:1]):
        raise ValueError("linear: the shapes do not fit")  # NumPy would broadcast the bias
    out = product(row_matrix(x), weight.T)
    if bias is not None:
        out += bias
    return out if x.ndim == 2 else out.reshape(*x.shape[:-1], weight.shape[0])


def rows_dot(a, b):
    """Return the sum over all rows of their outer products, as one matrix product."""
    if a.shape[:-1] != b.shape[:-1]:
        raise ValueError("rows_dot: the rows do not match")
    return product(row_matrix(a).T, row_matrix(b))


def contract(a, b, equation):
    """Return an explicit einsum of two operands through BLAS; each letter is once per term, in two terms or more.

    Letters in both operands and the result are batch dimensions; those missing from the result are contracted.
    """
    left, right, out = equation.replace("->", ",").split(",")
    size = dict(zip(left + right, a.shape + b.shape, strict=True))
    batch = [c for c in left if c in right and c in out]
    inner = [c for c in left if c in right and c not in out]
    rows, columns = [c for c in left if c not in right], [c for c in right if c not in left]
    shape = tuple(size[c] for c in batch)
    many, k, m = (math.prod(size[c] for c in group) for group in (rows, inner, columns))
    x = np.transpose(a, [left.index(c) for c in batch + rows + inner]).reshape(*shape, many, k)
    y = np.transpose(b, [right.index(c) for c in batch + inner + columns]).reshape(*shape, k, m)
    z = product(x, y) if inner else x * y
    order = batch + rows + columns
    return np.transpose(z.reshape([size[c] for c in order]), [order.index(c) for c in out])
