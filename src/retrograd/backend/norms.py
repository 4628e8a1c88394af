"""Kernels of norms and distances, accurate over the whole range of a dtype.

A sum of powers that overflows, or is so small that digits are lost, is computed again from scaled elements.  Only the
results are checked, so that the check costs no pass over the elements.
"""

import math

import numpy as np

from retrograd.kernels.host_values import on_host

__all__ = ["euclidean_norm", "power_norm", "row_distances"]

# The range of totals within which a sum of powers has all its digits and is finite.
_TOTALS = {d: (float(np.finfo(d).smallest_normal / np.finfo(d).eps), float(np.finfo(d).max)) for d in "fd"}
_ROOTS = {d: (math.sqrt(low), high) for d, (low, high) in _TOTALS.items()}
_REAL = {"F": "f", "D": "d"}


def _all_within(x, bounds):
    """Return whether it is known that all elements are within the bounds; NaN is not."""
    if not on_host:
        return False
    low, high = bounds
    if x.ndim == 0:
        return low <= x <= high
    if x.size <= 32:  # two reductions take longer than a loop
        return all(low <= number <= high for number in x.ravel().tolist())
    return bool(low <= np.minimum.reduce(x, None) and np.maximum.reduce(x, None) <= high)


def euclidean_norm(x, axis, keepdims):
    """Return the square root of the sum of squared absolute values."""
    if on_host and axis is None and x.dtype.char in "fdFD" and x.size:
        total = _sum_of_squares(x)  # BLAS gives no warnings, and a block that ignores them takes microseconds
        low, high = _TOTALS[_REAL.get(x.dtype.char, x.dtype.char)]
        if low <= total <= high:
            out = np.sqrt(total)
            return out.reshape((1,) * x.ndim) if keepdims else out
    with np.errstate(over="ignore", under="ignore"):
        out = _root_of_squares(x, axis, keepdims)
        if x.size == 0 or _all_within(out, _ROOTS[_REAL.get(x.dtype.char, x.dtype.char)]):
            return out
        return _root_of_scaled_squares(x, axis, keepdims)


def _sum_of_squares(x):
    """Return the sum of all squared absolute values, by one product of vectors."""
    flat = x.reshape(-1)
    if x.dtype.kind == "c":  # if only one part is infinite, the complex product is NaN
        flat = np.ascontiguousarray(flat).view(_REAL[x.dtype.char])
    return np.vdot(flat, flat)


def _root_of_squares(x, axis, keepdims):
    if axis is None and x.dtype.char in "fdFD":
        out = np.sqrt(_sum_of_squares(x))
        return out.reshape((1,) * x.ndim) if keepdims else out
    if axis in (-1, x.ndim - 1, (-1,), (x.ndim - 1,)) and x.dtype.char in "fd":
        out = np.sqrt(np.vecdot(x, x))
        return out[..., None] if keepdims else out
    squares = np.square(x) if x.dtype.kind == "f" else np.square(x.real) + np.square(x.imag)
    return np.sqrt(np.add.reduce(squares, axis=axis, keepdims=keepdims))


def _root_of_scaled_squares(x, axis, keepdims):
    """Return the norm of elements scaled by a power of 2: without rounding, so the same for vectors that need none."""
    size = np.abs(x) if x.dtype.kind == "f" else np.maximum(np.abs(x.real), np.abs(x.imag))
    exponent = np.frexp(np.max(size, axis=axis, keepdims=True))[1]
    if x.dtype.kind == "f":
        scaled = np.ldexp(x, -exponent)
    else:
        scaled = np.empty_like(x)
        scaled.real, scaled.imag = np.ldexp(x.real, -exponent), np.ldexp(x.imag, -exponent)
    out = np.ldexp(_root_of_squares(scaled, axis, True), exponent)
    return out if keepdims else np.squeeze(out, axis)


def power_norm(x, p, axis, keepdims):
    """Return sum(x^p)^(1/p) of numbers that are not negative, for a p that is neither 0 nor infinite."""
    with np.errstate(all="ignore"):
        total = np.add.reduce(x**p, axis=axis, keepdims=keepdims)
        if x.size == 0 or _all_within(total, _TOTALS[x.dtype.char]):
            return total ** (1 / p)
        return _scaled_power_norm(x, p, axis, keepdims)


def _scaled_power_norm(x, p, axis, keepdims):
    """Return the norm of elements scaled by the one with the largest power."""
    top = (np.max if p > 0 else np.min)(x, axis=axis, keepdims=True)
    scale = np.where((top == 0) | (top == np.inf), x.dtype.type(1), top)
    out = scale * np.add.reduce((x / scale) ** p, axis=axis, keepdims=True) ** (1 / p)
    return out if keepdims else np.squeeze(out, axis)


# ------------------------------------------------------------------------------------------------- distances

BLOCK = 2**22  # elements of a table of differences
CANCELLED = 1 / 16  # fraction of the sum of squares: below, subtracting the product has lost digits


FEW = 512  # elements of a table of differences up to which it is faster than a product, which has to be checked


def row_distances(x, y):
    """Return the Euclidean distance of each row of x from each row of y.

    Computed as |x|^2 + |y|^2 - 2 x.y, by one matrix product; from the differences if that cancels or is out of range,
    or of few points.
    """
    if x.size * y.shape[-2] <= FEW and y.size <= FEW:
        return _norm_of_few(x[..., :, None, :], y[..., None, :, :])
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        squares, close = _squared_distances(*_center(x, y))
        out = np.sqrt(squares, out=squares)
        lead = out.shape[:-2]
        x, y = np.broadcast_to(x, (*lead, *x.shape[-2:])), np.broadcast_to(y, (*lead, *y.shape[-2:]))
        step = max(BLOCK // max(x.shape[-1], 1), 1)
        for start in range(0, len(close[0]), step):
            *batch, i, j = (indices[start : start + step] for indices in close)
            out[*batch, i, j] = euclidean_norm(x[*batch, i] - y[*batch, j], -1, False)
    return out


def _norm_of_few(x, y):
    """Return the norms of the rows of x - y, for float32 by double precision, in which no square leaves the range."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        differences = x - y
        if differences.dtype.char != "f":
            return euclidean_norm(differences, -1, False)
        wide = differences.astype(np.float64)
        return np.sqrt(np.vecdot(wide, wide)).astype(np.float32)


def _center(x, y):
    """Return both operands minus the mean row of x, so that less cancels."""
    rows = x.reshape(math.prod(x.shape[:-1]), x.shape[-1])
    centre = rows.mean(axis=0) if len(rows) else np.zeros(rows.shape[1], x.dtype)
    if not on_host:
        centre = np.where(np.isfinite(centre).all(), centre, np.zeros((), x.dtype))
    elif not np.isfinite(centre).all():
        return x, y
    return x - centre, y - centre


def _squared_distances(x, y):
    """Return the squared distances, and the indices of those that lost digits or left the range."""
    of_x, of_y = np.vecdot(x, x), np.vecdot(y, y)
    size = of_x[..., :, None] + of_y[..., None, :]
    squares = np.matmul(x, np.swapaxes(y, -1, -2))
    squares *= -2
    squares += size
    least = _TOTALS[x.dtype.char][0]
    in_range = on_host and of_x.size and of_y.size and of_x.min() + of_y.min() > least
    kept = size > least if not in_range else None
    size *= CANCELLED
    kept = squares > size if kept is None else kept & (squares > size)
    return squares, np.unravel_index(np.flatnonzero(~kept), kept.shape)  # faster than `nonzero` of several dimensions
