"""Reductions along axes: sums, products, extrema, moments, logical and cumulative ones."""

import numpy as np

from retrograd.interop.numpy_protocol import complex_order
from retrograd.interop.numpy_protocol.complex_order import arg_extreme, extreme, real_or_complex
from retrograd.interop.numpy_protocol.table import (
    O,
    as_floating,
    cast,
    implements,
    operand,
    over,
    prepend_number,
    refuse,
    tensor,
)

_NONE = np._NoValue  # NumPy's default where None has another meaning


def mask_elements(x, where, rest):
    """Return x where the mask is true, elsewhere the neutral element."""
    return x if where is _NONE or where is True else O.where(tensor(where), x, rest)


def truth(x):
    """Whether each element is not 0."""
    x = tensor(x)
    return x if x.dtype == np.bool_ else x != 0


def or_default(value, default):
    """Return an argument, or its default if it was not given."""
    return default if value is _NONE else value


@implements()
def sum(a, axis=None, dtype=None, out=None, keepdims=_NONE, initial=_NONE, where=_NONE):
    """The sum over axes (None: all; (): none)."""
    total = over(O.sum, mask_elements(tensor(a), where, 0), axis, or_default(keepdims, False), dtype)
    return total if initial is _NONE else total + operand(initial)


@implements()
def prod(a, axis=None, dtype=None, out=None, keepdims=_NONE, initial=_NONE, where=_NONE):
    """The product over axes."""
    product = over(O.prod, mask_elements(tensor(a), where, 1), axis, or_default(keepdims, False), dtype)
    return product if initial is _NONE else product * operand(initial)


@implements("max", "amax")
def max(a, axis=None, out=None, keepdims=_NONE, initial=_NONE, where=_NONE):
    """The largest element; ties share the gradient."""
    return _extreme("max", O.amax, real_or_complex(O.maximum, complex_order.maximum), a, axis, keepdims, initial, where)


@implements("min", "amin")
def min(a, axis=None, out=None, keepdims=_NONE, initial=_NONE, where=_NONE):
    """The smallest element; ties share the gradient."""
    return _extreme("min", O.amin, real_or_complex(O.minimum, complex_order.minimum), a, axis, keepdims, initial, where)


def _extreme(name, operator, pairwise, a, axis, keepdims, initial, where):
    x = tensor(a)
    if where is not _NONE and where is not True:
        if initial is _NONE:
            raise ValueError(f"np.{name}: where= needs initial=, the result where nothing is chosen")
        x = O.where(tensor(where), x, operand(initial))
    found = over(extreme(operator) if x.dtype.kind == "c" else operator, x, axis, or_default(keepdims, False))
    return found if initial is _NONE else pairwise(found, cast(tensor(initial), found.dtype))


@implements()
def ptp(a, axis=None, out=None, keepdims=_NONE):
    """The largest minus the smallest element."""
    return max(a, axis, None, keepdims) - min(a, axis, None, keepdims)


@implements("all")
def all_(a, axis=None, out=None, keepdims=_NONE, *, where=_NONE):
    """Whether every element is true."""
    return over(O.all, mask_elements(truth(a), where, True), axis, or_default(keepdims, False))


@implements("any")
def any_(a, axis=None, out=None, keepdims=_NONE, *, where=_NONE):
    """Whether some element is true."""
    return over(O.any, mask_elements(truth(a), where, False), axis, or_default(keepdims, False))


@implements()
def count_nonzero(a, axis=None, *, keepdims=False):
    """The number of nonzero elements."""
    return over(O.sum, truth(a), axis, keepdims, np.dtype(np.int64))


# ------------------------------------------------------------------------------------------------- moments


@implements()
def mean(a, axis=None, dtype=None, out=None, keepdims=_NONE, *, where=_NONE):
    """The arithmetic mean."""
    x = cast(as_floating(a), dtype)
    if where is _NONE:
        return over(O.mean, x, axis, or_default(keepdims, False))
    return over(O.sum, mask_elements(x, where, 0), axis, or_default(keepdims, False)) / _count(x, axis, keepdims, where)


def _count(x, axis, keepdims, where):
    """Return the number of elements that a mask selects, in the dtype of x."""
    chosen = O.broadcast_to(tensor(True if where is _NONE else where), x.shape)
    return over(O.sum, cast(chosen, x.real.dtype), axis, or_default(keepdims, False))


@implements()
def var(
    a, axis=None, dtype=None, out=None, ddof=0, keepdims=_NONE, *, where=_NONE, mean=_NONE, correction=_NONE
):  # fmt: skip
    """The mean squared distance from the mean, over n - ddof."""
    return _variance(a, axis, dtype, ddof, keepdims, where, mean, correction)


@implements()
def std(
    a, axis=None, dtype=None, out=None, ddof=0, keepdims=_NONE, *, where=_NONE, mean=_NONE, correction=_NONE
):  # fmt: skip
    """The square root of the variance; where that is 0, the derivative is defined as 0."""
    variance = _variance(a, axis, dtype, ddof, keepdims, where, mean, correction)
    zero = variance == 0
    return O.where(zero, 0, O.sqrt(O.where(zero, 1, variance)))


def _variance(a, axis, dtype, ddof, keepdims, where, known_mean, correction):
    x, ddof = cast(as_floating(a), dtype), or_default(correction, ddof)
    if where is known_mean is _NONE and axis != ():
        return O.var(x, axis, keepdim=or_default(keepdims, False), correction=ddof)
    middle = mean(x, axis, keepdims=True, where=where) if known_mean is _NONE else tensor(known_mean)
    distance = mask_elements(x - middle, where, 0)
    size = O.clamp(_count(x, axis, keepdims, where) - ddof, 0)
    return over(O.sum, abs_squared(distance), axis, or_default(keepdims, False)) / size


def abs_squared(x):
    """Return |x|^2, with all derivatives also at 0."""
    return O.square(x) if x.dtype.kind != "c" else O.real(x * O.conj(x))


@implements()
def average(a, axis=None, weights=None, returned=False, *, keepdims=_NONE):
    """The mean, or the weighted mean: weights have the shape of a, or are one per index along the axis."""
    x = as_floating(a)
    w = O.ones_like(x) if weights is None else _spread_weights(tensor(weights), x, axis)
    total = over(O.sum, O.broadcast_to(w, x.shape), axis, or_default(keepdims, False))
    found = over(O.sum, x * w, axis, or_default(keepdims, False)) / total
    return (found, total) if returned else found


def _spread_weights(w, x, axis):
    if w.shape == x.shape or axis is None:
        return w
    at = tuple(np.lib.array_utils.normalize_axis_tuple(axis, x.ndim))
    return O.reshape(w, tuple(x.shape[i] if i in at else 1 for i in range(x.ndim)))


# ------------------------------------------------------------------------------------- argmax, argmin and cumulative
# functions


@implements()
def argmax(a, axis=None, out=None, *, keepdims=_NONE):
    """The index of the largest element, the first of several."""
    return _where_extreme(O.argmax, O.amax, a, axis, keepdims)


@implements()
def argmin(a, axis=None, out=None, *, keepdims=_NONE):
    """The index of the smallest element, the first of several."""
    return _where_extreme(O.argmin, O.amin, a, axis, keepdims)


def _where_extreme(operator, extreme, a, axis, keepdims):
    x, keepdims = tensor(a), or_default(keepdims, False)
    return arg_extreme(extreme, x, axis, keepdims) if x.dtype.kind == "c" else operator(x, axis, keepdims)


def _cumulate(operator, a, axis, dtype):
    x = tensor(a)
    x = O.reshape(x, (-1,)) if axis is None else x
    return operator(x, 0 if axis is None else axis, **({} if dtype is None else {"dtype": dtype}))


@implements()
def cumsum(a, axis=None, dtype=None, out=None):
    """The cumulative sums along an axis, or of the flattened elements."""
    return _cumulate(O.cumsum, a, axis, dtype)


@implements()
def cumprod(a, axis=None, dtype=None, out=None):
    """The cumulative products along an axis, or of the flattened elements."""
    return _cumulate(O.cumprod, a, axis, dtype)


@implements()
def cumulative_sum(x, /, *, axis=None, dtype=None, out=None, include_initial=False):
    """`cumsum`, with a leading 0 if the initial value is to be included."""
    return _cumulative("cumulative_sum", O.cumsum, x, axis, dtype, include_initial, 0)


@implements()
def cumulative_prod(x, /, *, axis=None, dtype=None, out=None, include_initial=False):
    """`cumprod`, with a leading 1 if the initial value is to be included."""
    return _cumulative("cumulative_prod", O.cumprod, x, axis, dtype, include_initial, 1)


def _cumulative(name, operator, x, axis, dtype, include_initial, first):
    x = tensor(x)
    if axis is None and x.ndim > 1:
        refuse(name, "axis must be given for more than one dimension")
    made = _cumulate(operator, x, axis or 0, dtype)
    return prepend_number(made, axis or 0, first) if include_initial else made
