"""Reductions that ignore NaN."""

import numpy as np

from retrograd.core.dtype import is_differentiable
from retrograd.interop.numpy_protocol import reductions, sorting
from retrograd.interop.numpy_protocol.reductions import or_default
from retrograd.interop.numpy_protocol.table import O, as_floating, axes, implements, only_default, tensor, values

_NONE = np._NoValue


def _valid_mask(x, where=_NONE):
    """Whether each element is not NaN, and selected by an optional mask."""
    there = ~O.isnan(x)
    return there if where is _NONE else there & tensor(where)


def _replace_nan(x, rest):
    return O.where(O.isnan(x), rest, x) if is_differentiable(x.dtype) else x


@implements()
def nansum(a, axis=None, dtype=None, out=None, keepdims=_NONE, initial=_NONE, where=_NONE):
    """The sum of the elements that are not NaN."""
    return reductions.sum(_replace_nan(tensor(a), 0), axis, dtype, None, keepdims, initial, where)


@implements()
def nanprod(a, axis=None, dtype=None, out=None, keepdims=_NONE, initial=_NONE, where=_NONE):
    """The product of the elements that are not NaN."""
    return reductions.prod(_replace_nan(tensor(a), 1), axis, dtype, None, keepdims, initial, where)


@implements()
def nancumsum(a, axis=None, dtype=None, out=None):
    """The cumulative sums with NaN as 0."""
    return reductions.cumsum(_replace_nan(tensor(a), 0), axis, dtype)


@implements()
def nancumprod(a, axis=None, dtype=None, out=None):
    """The cumulative products with NaN as 1."""
    return reductions.cumprod(_replace_nan(tensor(a), 1), axis, dtype)


@implements()
def nanmax(a, axis=None, out=None, keepdims=_NONE, initial=_NONE, where=_NONE):
    """The largest element that is not NaN; NaN if there is none."""
    return _extreme(reductions.max, -np.inf, a, axis, keepdims, initial, where)


@implements()
def nanmin(a, axis=None, out=None, keepdims=_NONE, initial=_NONE, where=_NONE):
    """The smallest element that is not NaN; NaN if there is none."""
    return _extreme(reductions.min, np.inf, a, axis, keepdims, initial, where)


def _extreme(extreme, rest, a, axis, keepdims, initial, where):
    x = tensor(a)
    if not is_differentiable(x.dtype):
        return extreme(x, axis, None, keepdims, initial, where)
    found = extreme(O.where(O.isnan(x), rest, x), axis, None, keepdims, initial, where)
    return O.where(reductions.any_(_valid_mask(x), axis, None, keepdims), found, np.nan)


@implements()
def nanmean(a, axis=None, dtype=None, out=None, keepdims=_NONE, *, where=_NONE):
    """The mean of the elements that are not NaN."""
    x = as_floating(a)
    return reductions.mean(_replace_nan(x, 0), axis, dtype, None, keepdims, where=_valid_mask(x, where))


@implements()
def nanvar(
    a, axis=None, dtype=None, out=None, ddof=0, keepdims=_NONE, *, where=_NONE, mean=_NONE, correction=_NONE
):  # fmt: skip
    """The variance of the elements that are not NaN."""
    return _nan_moment(reductions.var, a, axis, dtype, ddof, keepdims, where, mean, correction)


@implements()
def nanstd(
    a, axis=None, dtype=None, out=None, ddof=0, keepdims=_NONE, *, where=_NONE, mean=_NONE, correction=_NONE
):  # fmt: skip
    """The standard deviation of the elements that are not NaN."""
    return _nan_moment(reductions.std, a, axis, dtype, ddof, keepdims, where, mean, correction)


def _nan_moment(reduced, a, axis, dtype, ddof, keepdims, where, mean, correction):
    """Return `var` or `std` of the elements that are not NaN; NaN where there are no more than the correction."""
    x = as_floating(a)
    there, lost = _valid_mask(x, where), or_default(correction, ddof)
    found = reduced(
        _replace_nan(x, 0), axis, dtype, None, ddof, keepdims, where=there, mean=mean, correction=correction
    )
    return O.where(reductions.sum(there, axis, keepdims=keepdims) > lost, found, np.nan)


# ----------------------------------------------------------------------------------------------------- quantiles


@implements()
def nanquantile(
    a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=_NONE, *, weights=None
):  # fmt: skip
    """The quantiles of the elements that are not NaN."""
    only_default("nanquantile", weights=(weights, None))
    x = as_floating(a)
    if x.dtype.kind == "c":
        raise TypeError("np.nanquantile: expected real numbers; complex ones have no shares between them")
    return _shares_of_numbers(x, q, axis, method, or_default(keepdims, False))


def _shares_of_numbers(x, q, axis, method, keepdims):
    """Return the quantiles of the numbers along axes; NaN where there is none."""
    over = axes(axis, x.ndim)
    rows = O.movedim(x, over, tuple(range(-len(over), 0)))
    sizes = rows.shape[: x.ndim - len(over)], rows.shape[x.ndim - len(over) :]
    flat = O.reshape(rows, tuple(int(np.prod(part, dtype=int)) for part in sizes))
    found = [sorting.quantiles_along(_numbers(row), q, None, method) for row in flat]
    shape = tuple(1 if i in over else n for i, n in enumerate(x.shape) if keepdims or i not in over)
    made = O.stack(found, -1) if found else O.zeros((*np.shape(values(q)), 0), dtype=x.dtype)
    return O.reshape(made, (*made.shape[:-1], *shape))


def _numbers(row):
    """Return the elements of a row that are not NaN, flattened; a row of NaN is unchanged."""
    known = np.flatnonzero(~np.isnan(values(row)))
    return row[known] if len(known) else row


@implements()
def nanpercentile(
    a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=_NONE, *, weights=None
):  # fmt: skip
    """`nanquantile` of q / 100."""
    return nanquantile(a, np.true_divide(values(q), 100), axis, None, False, method, keepdims, weights=weights)


@implements()
def nanmedian(a, axis=None, out=None, overwrite_input=False, keepdims=_NONE):
    """The median of the elements that are not NaN."""
    return _shares_of_numbers(as_floating(a), 0.5, axis, "linear", or_default(keepdims, False))
