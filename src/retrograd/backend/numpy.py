"""The namespace of NumPy arrays: NumPy's own functions, and those that operators need beside them."""

import math

import numpy as np

from retrograd.backend.special import erf

__all__ = ["erf"]


def __getattr__(name):
    return getattr(np, name)


def cast(x, dtype):
    """x in another dtype; x itself if that is its own.  Complex to real drops the imaginary part, as asked."""
    if x.dtype.kind == "c" and dtype.kind != "c":
        x = x.real
    return x.astype(dtype, copy=False)


def sigmoid(x):
    """1 / (1 + exp(-x)), without overflow: the exponential is of a number that is never positive."""
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, e) / (1 + e)


def relu(x):
    """max(x, 0); NaN stays NaN."""
    return np.maximum(x, np.zeros((), x.dtype))


def softplus(x):
    """log(1 + exp(x)), without overflow."""
    return np.logaddexp(x, np.zeros((), x.dtype))


def gelu(x):
    """x times the normal distribution function."""
    return x * (0.5 * (1 + erf(x * math.sqrt(0.5)))).astype(x.dtype, copy=False)


def softmax(x, dim):
    """exp(x) / sum(exp(x)) along dim, shifted by the maximum."""
    e = np.subtract(x, np.max(x, axis=dim, keepdims=True, initial=-np.inf))
    np.exp(e, out=e)
    e /= np.sum(e, axis=dim, keepdims=True)
    return e


def log_softmax(x, dim):
    """log(softmax(x)), without taking the logarithm of a small number."""
    shifted = np.subtract(x, np.max(x, axis=dim, keepdims=True, initial=-np.inf))
    return shifted - np.log(np.sum(np.exp(shifted), axis=dim, keepdims=True))


def logsumexp(x, dim, keepdim):
    """log(sum(exp(x))) over dim, shifted by the maximum; an infinite maximum is not subtracted."""
    top = np.max(x, axis=dim, keepdims=True, initial=-np.inf)
    shift = np.where(np.isfinite(top), top, np.zeros((), x.dtype))
    with np.errstate(divide="ignore"):
        out = np.log(np.sum(np.exp(x - shift), axis=dim, keepdims=True)) + shift
    return out if keepdim else np.squeeze(out, axis=dim)


def scatter_add(src, where, shape):
    """Zeros of `shape` with `src` added at the index `where`; places named twice get both."""
    out = np.zeros(shape, src.dtype)
    if all(isinstance(i, (int, slice, type(None), type(Ellipsis))) for i in where):
        out[where] = src
    else:
        np.add.at(out, where, src)
    return out


def scatter_along(src, indices, shape, dim):
    """Zeros of `shape` with each element of `src` added at its index along `dim`."""
    out = np.zeros(shape, src.dtype)
    where = list(np.ogrid[tuple(slice(s) for s in indices.shape)])
    where[dim] = indices
    np.add.at(out, tuple(where), src)
    return out


def one_hot(x, num_classes):
    """Classes as rows of zeros with a single one; -1 asks for as many columns as the largest class needs."""
    columns = int(x.max(initial=-1)) + 1 if num_classes < 0 else num_classes
    if x.size and (x.min() < 0 or x.max() >= columns):
        raise ValueError(f"one_hot: classes {x.min()} to {x.max()} do not fit into {columns}")
    return (x[..., None] == np.arange(columns)).astype(np.int64)
