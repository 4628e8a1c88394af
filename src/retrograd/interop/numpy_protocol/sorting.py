"""Sorting and derived functions: partitions, medians, quantiles, sets."""

from typing import NamedTuple

import numpy as np

from retrograd.core import Tensor
from retrograd.interop.numpy_protocol.table import (
    O,
    as_floating,
    axes,
    functions,
    implements,
    only_default,
    promote_operands,
    refuse,
    tensor,
    values,
)
from retrograd.ops.create import as_tensor


def _row_or(x, axis):
    """Return x and the axis; without one, flatten the elements."""
    x = tensor(x)
    return (O.reshape(x, (-1,)), 0) if axis is None else (x, axis)


@implements()
def argsort(a, axis=-1, kind=None, order=None, *, stable=None, descending=None):
    """The indices that sort the elements, in ascending or in descending order; NaN are at the end of both."""
    only_default("argsort", order=(order, None))
    x, axis = _row_or(a, axis)
    if descending:
        return as_tensor(_descending_order(values(x), axis))
    return as_tensor(np.argsort(values(x), axis, "stable" if kind == "mergesort" or stable else kind))


def _descending_order(x, axis):
    """Return the indices that sort an array in descending order: a stable one, as NumPy has it from 2.5 on."""
    backward = np.argsort(np.flip(x, axis), axis, "stable")
    order = np.flip(x.shape[axis] - 1 - backward, axis)
    missing = np.isnan(np.take_along_axis(x, order, axis))  # these came first
    return np.take_along_axis(order, np.argsort(missing, axis, "stable"), axis)


def _apply_order(x, axis, places):
    """Return the elements along an axis in the order that NumPy computed."""
    return O.take_along_dim(x, as_tensor(places), axis) if x.ndim else x


@implements()
def sort(a, axis=-1, kind=None, order=None, *, stable=None, descending=None):
    """The elements in ascending or in descending order along an axis; NaN are at the end of both."""
    x, axis = _row_or(a, axis)
    order = argsort(x, axis, kind, order, stable=stable, descending=descending) if x.ndim else None
    return x if order is None else _apply_order(x, axis, order)


@implements()
def sort_complex(a):
    """The elements as complex numbers, in ascending order of their real parts."""
    x = tensor(a)
    return sort(x if x.dtype.kind == "c" else O.complex(as_floating(x), O.zeros_like(as_floating(x))))


@implements()
def partition(a, kth, axis=-1, kind="introselect", order=None):
    """A partition: the element at index kth is in sorted position, smaller ones before it and larger ones after it."""
    only_default("partition", order=(order, None))
    x, axis = _row_or(a, axis)
    return _apply_order(x, axis, np.argpartition(values(x), kth, axis, kind))


# --------------------------------------------------------------------------------------------- quantiles

_METHODS = ("linear", "lower", "higher", "midpoint", "nearest")


@implements()
def quantile(
    a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False, *, weights=None
):  # fmt: skip
    """The q-quantile of the elements; several values of q form a new first axis."""
    only_default("quantile", weights=(weights, None))
    x = as_floating(a)
    if x.dtype.kind == "c":
        raise TypeError("np.quantile: expected real numbers; complex ones have no shares between them")
    if not _size(x, axes(axis, x.ndim)):
        raise ValueError(f"np.quantile: expected at least one number, got shape {x.shape}")
    return quantiles_along(x, q, axis, method, keepdims)


def quantiles_along(x, q, axis, method="linear", keepdims=False):
    """Return the quantiles along axes; NaN where there are no elements."""
    if method not in _METHODS:
        refuse("quantile", f"method {method!r} is not supported for tensors; there are {', '.join(_METHODS)}")
    shares = np.asarray(values(q), float)
    if np.any((shares < 0) | (shares > 1)):
        raise ValueError("Quantiles must be in the range [0, 1]")
    over = axes(axis, x.ndim)
    rows = O.reshape(O.movedim(x, over, tuple(range(-len(over), 0))), (*_remaining_shape(x, over), _size(x, over)))
    if not rows.shape[-1]:
        rows = O.full((*rows.shape[:-1], 1), np.nan, dtype=x.dtype)
    found = _interpolate(sort(rows), shares.ravel() * (rows.shape[-1] - 1), method)
    shape = tuple(1 if i in over else n for i, n in enumerate(x.shape)) if keepdims else _remaining_shape(x, over)
    return O.reshape(O.movedim(found, -1, 0), (*shares.shape, *shape))


def _size(x, over):
    return int(np.prod([x.shape[i] for i in over], dtype=int))


def _remaining_shape(x, over):
    """Return the sizes of the remaining axes."""
    return tuple(n for i, n in enumerate(x.shape) if i not in over)


def _interpolate(rows, spots, method):
    """Return interpolated elements of sorted rows; a row with NaN, which sorts last, gives NaN."""
    low, high = np.floor(spots).astype(int), np.ceil(spots).astype(int)
    share = {
        "linear": spots - low,
        "lower": np.zeros_like(spots),
        "higher": np.ones_like(spots),
        "midpoint": np.where(low == high, 0.0, 0.5),
        "nearest": np.rint(spots) - low,
    }[method]
    below, above = rows[..., low], rows[..., high]
    made = below + (above - below) * as_tensor(share.astype(rows.dtype))
    return O.where(O.isnan(rows[..., -1:]), np.nan, made)


@implements()
def percentile(
    a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False, *, weights=None
):  # fmt: skip
    """`quantile` of q / 100."""
    return quantile(a, np.true_divide(values(q), 100), axis, None, False, method, keepdims, weights=weights)


@implements()
def median(a, axis=None, out=None, overwrite_input=False, keepdims=False):
    """The middle element, or the mean of the two in the middle."""
    return quantiles_along(as_floating(a), 0.5, axis, keepdims=keepdims)


# ------------------------------------------------------------------------------------------------------- sets


@implements()
def unique(
    ar, return_index=False, return_inverse=False, return_counts=False, axis=None, *, equal_nan=True, sorted=True
):  # fmt: skip
    """The distinct elements, sorted; the first of equal ones gets the gradient. Optionally indices and counts."""
    x = tensor(ar)
    _, first, *rest = np.unique(values(x), True, return_inverse, return_counts, axis, equal_nan=equal_nan)
    chosen = O.reshape(x, (-1,))[first] if axis is None else O.index_select(x, axis, as_tensor(first))
    extra = [as_tensor(y) for y in ([first] if return_index else []) + rest]
    return (chosen, *extra) if extra else chosen


@implements()
def unique_values(x):
    """The distinct elements, sorted; each NaN is separate."""
    return unique(x, equal_nan=False)


class UniqueAllResult(NamedTuple):
    """The distinct elements, their first indices, the index of each element among them, and their counts."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCountsResult(NamedTuple):
    """The distinct elements, and their counts."""

    values: Tensor
    counts: Tensor


class UniqueInverseResult(NamedTuple):
    """The distinct elements, and the index of each element among them."""

    values: Tensor
    inverse_indices: Tensor


@implements()
def unique_all(x):
    """The distinct elements, sorted, with the requested extra results; each NaN is separate."""
    return UniqueAllResult(*unique(x, True, True, True, equal_nan=False))


@implements()
def unique_counts(x):
    """The distinct elements, sorted, and their counts."""
    return UniqueCountsResult(*unique(x, return_counts=True, equal_nan=False))


@implements()
def unique_inverse(x):
    """The distinct elements, sorted, and the index of each element among them."""
    return UniqueInverseResult(*unique(x, return_inverse=True, equal_nan=False))


@implements()
def union1d(ar1, ar2):
    """The distinct elements of both, sorted."""
    a, b = promote_operands(ar1, ar2)
    return unique(O.cat([O.reshape(a, (-1,)), O.reshape(b, (-1,))], 0))


@implements()
def intersect1d(ar1, ar2, assume_unique=False, return_indices=False):
    """The distinct elements that are in both, sorted; the gradient is that of the first."""
    only_default("intersect1d", return_indices=(return_indices, False))
    mine = unique(ar1)
    return mine[functions["isin"](mine, ar2)]


@implements()
def setxor1d(ar1, ar2, assume_unique=False):
    """The distinct elements that are in exactly one of the two, sorted."""
    return sort(O.cat(list(promote_operands(setdiff1d(ar1, ar2), setdiff1d(ar2, ar1))), 0))


@implements()
def setdiff1d(ar1, ar2, assume_unique=False):
    """The distinct elements of the first that are not in the second, sorted."""
    mine = unique(ar1)
    return mine[~functions["isin"](mine, ar2)]
