"""Functions along one dimension, the others being mapped over: softmax, cumulative sums and products, products."""

import math

import numpy as np

from retrograd import kernels

__all__ = ["cumprod", "cumsum", "log_softmax", "log_softmax_grad", "prod", "softmax", "softmax_grad"]


def softmax(x, dim):
    """Return exp(x) / sum(exp(x)) along dim, shifted by the maximum."""
    return _run("softmax", dim, x)


def log_softmax(x, dim):
    """Return log(softmax(x)), without taking the logarithm of a small number."""
    return _run("log_softmax", dim, x)


def softmax_grad(g, out, dim):
    """Return the derivative of `softmax`, whose result is `out`, times g; it is symmetric."""
    return _run("softmax_grad", dim, out, g)


def log_softmax_grad(g, out, dim):
    """Return the transposed derivative of `log_softmax`, whose result is `out`, times g."""
    return _run("log_softmax_grad", dim, out, g)


def _run(name, dim, x, *cotangents):
    """Return the result of the kernel for rows or for columns; of the reference if neither takes the arrays."""
    if x.dtype.char in "fd" and x.ndim and all(g.dtype == x.dtype for g in cotangents):
        if dim in (-1, x.ndim - 1):
            return getattr(kernels, f"{name}_rows")(*cotangents, x)
        if -x.ndim <= dim < x.ndim and all(a.flags.c_contiguous for a in (x, *cotangents)):
            return _columns(getattr(kernels, f"{name}_columns"), dim, *cotangents, x)
    return getattr(kernels.reference, f"{name}_rows")(*cotangents, x, dim)


def _columns(kernel, dim, *arrays, **params):
    """Return the result of a kernel for stacks of matrices, whose columns are along dim of the arrays."""
    shape = arrays[0].shape
    dim %= len(shape)
    stacks = math.prod(shape[:dim]), shape[dim], math.prod(shape[dim + 1 :])
    return kernel(*[a.reshape(stacks) for a in arrays], **params).reshape(shape)


def cumsum(x, axis, dtype=None):
    """Return NumPy's cumulative sums along an axis; a kernel adds several rows, or columns, at the same time."""
    if x.dtype.char not in "fd" or (dtype is not None and dtype != x.dtype) or not -x.ndim <= axis < x.ndim:
        return np.cumsum(x, axis=axis, dtype=dtype)
    if axis in (-1, x.ndim - 1):
        return kernels.cumsum_rows(x, order="C")
    return _columns(kernels.cumsum_columns, axis, x, order="C")


def cumprod(x, axis, dtype=None):
    """Return NumPy's cumulative products along an axis; a kernel multiplies several rows at the same time."""
    if x.dtype.char in "fd" and (dtype is None or dtype == x.dtype) and x.ndim and axis in (-1, x.ndim - 1):
        return kernels.cumprod_rows(x, order="C")
    return np.cumprod(x, axis=axis, dtype=dtype)


def rows_of(x, axis):
    """Return x with the elements to be reduced over the axes as its last dimension; None if they are not in rows."""
    if axis is None:
        return x.reshape(-1) if x.flags.c_contiguous else None
    return x if len(axis) == 1 and axis[0] in (-1, x.ndim - 1) else None


def prod(x, axis=None, dtype=None, keepdims=False):
    """Return NumPy's product; a kernel multiplies the elements of rows in parallel."""
    rows = rows_of(x, axis) if x.dtype.char in "fd" and (dtype is None or dtype == x.dtype) else None
    if rows is None:
        return np.multiply.reduce(x, axis=axis, dtype=dtype, keepdims=keepdims)
    out = kernels.product_rows(rows)
    return out.reshape((1,) * x.ndim if axis is None else (*out.shape, 1)) if keepdims else out
