"""Elementwise functions other than ufuncs, differences, interpolation, polynomials, convolution."""

import numpy as np

from retrograd.core.dtype import is_differentiable
from retrograd.interop.numpy_protocol import complex_order
from retrograd.interop.numpy_protocol.complex_order import real_or_complex
from retrograd.interop.numpy_protocol.joins import concatenate
from retrograd.interop.numpy_protocol.shapes import atleast_1d
from retrograd.interop.numpy_protocol.table import (
    O,
    as_floating,
    axes,
    cast,
    implements,
    only_default,
    operand,
    promote_operands,
    tensor,
    values,
)
from retrograd.ops.create import as_tensor

_NONE = np._NoValue


@implements()
def clip(a, a_min=_NONE, a_max=_NONE, out=None, *, min=_NONE, max=_NONE, **kwargs):
    """Clip to bounds, each of which may be None, a number or a tensor."""
    only_default("clip", **{name: (value, None) for name, value in kwargs.items()})
    bounds = (min if a_min is _NONE else a_min, max if a_max is _NONE else a_max)
    low, high = (None if b is _NONE else b for b in bounds)
    x = tensor(a)
    if x.dtype.kind != "c" and all(b is None or isinstance(b, (int, float, np.generic)) for b in (low, high)):
        return x if low is high is None else O.clamp(x, low, high)
    x = x if low is None else real_or_complex(O.maximum, complex_order.maximum)(x, operand(low))
    return x if high is None else real_or_complex(O.minimum, complex_order.minimum)(x, operand(high))


@implements("round", "around")
def round_(a, decimals=0, out=None):
    """Round to a number of decimals; the derivative is 0."""
    x, scale = tensor(a), 10.0 ** abs(decimals)
    if decimals == 0 or (x.dtype.kind in "iub" and decimals > 0):
        return O.round(x)
    scaled = O.round(x * scale if decimals > 0 else x / scale)
    return cast(scaled / scale if decimals > 0 else scaled * scale, x.dtype)


@implements()
def sinc(x):
    """sin(pi x) / (pi x), and 1 at 0."""
    x = as_floating(x)
    zero = x == 0
    scaled = O.where(zero, 1, x) * np.pi
    return O.where(zero, 1 - (x * np.pi) ** 2 / 6, O.sin(scaled) / scaled)  # the series has the derivatives at 0


@implements()
def nan_to_num(x, copy=True, nan=0.0, posinf=None, neginf=None):
    """Replace NaN and infinities by numbers, with derivative 0 there."""
    x = tensor(x)
    if not is_differentiable(x.dtype):
        return x
    if x.dtype.kind == "c":
        return O.complex(*[nan_to_num(part, copy, nan, posinf, neginf) for part in (O.real(x), O.imag(x))])
    limits = np.finfo(x.dtype)
    high, low = (float(d) if v is None else v for v, d in ((posinf, limits.max), (neginf, limits.min)))
    return O.where(O.isnan(x), nan, O.where(x == np.inf, high, O.where(x == -np.inf, low, x)))


@implements()
def angle(z, deg=False):
    """The argument of complex numbers, in radians or degrees."""
    found = O.angle(as_floating(z))
    return found * (180 / np.pi) if deg else found


@implements()
def imag(val):
    """The imaginary part; 0 for a real tensor."""
    x = tensor(val)
    return O.imag(x) if x.dtype.kind == "c" else O.zeros_like(x)


@implements()
def real_if_close(a, tol=100):
    """The real part, if all imaginary parts are below `tol` (times the precision, if it is above 1)."""
    x = tensor(a)
    if x.dtype.kind != "c":
        return x
    limit = tol * np.finfo(x.dtype).eps if tol > 1 else tol
    return O.real(x) if np.all(np.abs(values(x).imag) < limit) else x


# ------------------------------------------------------------------------------------------------- differences


def _slice_axis(x, axis, part):
    """Return a slice of x along an axis."""
    return x[(*(slice(None),) * axis, part)]


@implements()
def diff(a, n=1, axis=-1, prepend=_NONE, append=_NONE):
    """The n-th differences of neighbours."""
    x = tensor(a)
    if n < 0:
        raise ValueError(f"np.diff: n must not be negative, got {n}")
    if n == 0:
        return x
    (axis,) = axes(axis, x.ndim)
    ends = [None if end is _NONE else _end(end, x, axis) for end in (prepend, append)]
    parts = [part for part in (ends[0], x, ends[1]) if part is not None]
    x = concatenate(parts, axis) if len(parts) > 1 else x
    for _ in range(n):
        after, before = _slice_axis(x, axis, slice(1, None)), _slice_axis(x, axis, slice(None, -1))
        x = after != before if x.dtype == np.bool_ else after - before
    return x


def _end(value, x, axis):
    """Return an extension before or after x; a number becomes one slice of it."""
    value = tensor(value)
    shape = tuple(1 if i == axis else n for i, n in enumerate(x.shape))
    return value if value.ndim else O.broadcast_to(value, shape)


@implements()
def ediff1d(ary, to_end=None, to_begin=None):
    """The differences of neighbours of the flattened elements, with values before and after."""
    parts = [to_begin, diff(O.reshape(tensor(ary), (-1,))), to_end]
    return concatenate([O.reshape(tensor(part), (-1,)) for part in parts if part is not None])


@implements()
def gradient(f, *varargs, axis=None, edge_order=1):
    """The gradient by central differences; one-sided at the ends."""
    x = as_floating(f)
    over = axes(axis, x.ndim)
    steps = varargs * len(over) if len(varargs) == 1 else varargs or (1.0,) * len(over)
    if len(steps) != len(over):
        raise TypeError("np.gradient: expected one distance, or one for each axis")
    slopes = [_slope(O.movedim(x, at, -1), step, edge_order) for at, step in zip(over, steps, strict=True)]
    made = tuple(O.movedim(s, -1, at) for s, at in zip(slopes, over, strict=True))
    return made[0] if len(made) == 1 else made


def _slope(x, step, edge_order):
    """The slopes along the last axis; `step` is one distance, or the coordinates."""
    if x.shape[-1] < edge_order + 1:
        raise ValueError("np.gradient: shape too small to calculate a numerical gradient")
    h = tensor(step)
    h = diff(h) if h.ndim else O.broadcast_to(h, (x.shape[-1] - 1,))
    rise = (x[..., 1:] - x[..., :-1]) / h
    left, right = h[:-1], h[1:]
    inner = (right * rise[..., :-1] + left * rise[..., 1:]) / (left + right)
    first, last = rise[..., :1], rise[..., -1:]
    if edge_order == 2:
        first = first + (first - rise[..., 1:2]) * h[0] / (h[0] + h[1])
        last = last + (last - rise[..., -2:-1]) * h[-1] / (h[-1] + h[-2])
    return O.cat([first, inner, last], -1)


@implements()
def trapezoid(y, x=None, dx=1.0, axis=-1):
    """The integral by the trapezoidal rule, over coordinates or one distance."""
    y = tensor(y)
    (axis,) = axes(axis, y.ndim)
    steps = operand(dx)
    if x is not None:
        steps = diff(x, axis=-1 if tensor(x).ndim == 1 else axis)
        steps = O.reshape(steps, (-1,) + (1,) * (y.ndim - axis - 1)) if steps.ndim == 1 else steps
    pairs = _slice_axis(y, axis, slice(1, None)) + _slice_axis(y, axis, slice(None, -1))
    return O.sum(steps * pairs / 2, axis)


@implements()
def unwrap(p, discont=None, axis=-1, *, period=2 * np.pi):
    """Unwrap by multiples of the period, so that neighbours are close; the multiples have no derivative."""
    x = tensor(p)
    return x + as_tensor(np.unwrap(values(x), discont, axis, period=period) - values(x))


# ------------------------------------------------------------------------------- interpolation and polynomials


@implements()
def interp(x, xp, fp, left=None, right=None, period=None):
    """Linear interpolation between the points (xp, fp), xp ascending; `left` and `right` outside, or periodic."""
    x, xp = promote_operands(as_floating(x), as_floating(xp))
    fp = as_floating(fp)
    if not xp.numel():
        if x.numel():
            raise ValueError(f"interp: xp is empty, so there is no value at the {x.numel()} points of x")
        return O.zeros_like(promote_operands(x, fp)[0])
    if period is not None:
        x, xp, fp = _over_a_period(x, xp, fp, abs(period))
    right_of = np.clip(np.searchsorted(values(xp), values(x), "right"), 1, xp.shape[0] - 1)
    start, end = xp[right_of - 1], xp[right_of]
    low, high = fp[right_of - 1], fp[right_of]
    made = low + (high - low) * (x - start) / (end - start)
    made = O.where(x < xp[0], operand(fp[0] if left is None else left), made)
    return O.where(x > xp[-1], operand(fp[-1] if right is None else right), made)


def _over_a_period(x, xp, fp, period):
    """Return points within one period and their neighbours on both sides; rounding down has no derivative."""
    x, xp = x % period, xp % period
    order = np.argsort(values(xp))
    xp, fp = xp[order], fp[order]
    return x, O.cat([xp[-1:] - period, xp, xp[:1] + period], 0), O.cat([fp[-1:], fp, fp[:1]], 0)


@implements()
def polyval(p, x):
    """The value of the polynomial with coefficients p, the highest power first."""
    x = tensor(x)
    total = O.zeros_like(x)
    for coefficient in p:
        total = total * x + operand(coefficient)
    return total


def _pad_coefficients(a, b):
    """Return two lists of coefficients, the shorter one padded with leading zeros."""
    a, b = promote_operands(*atleast_1d(a, b))
    size = max(a.shape[0], b.shape[0])
    return [concatenate([np.zeros(size - x.shape[0], x.dtype), x]) for x in (a, b)]


@implements()
def polyadd(a1, a2):
    """The sum of two polynomials."""
    a, b = _pad_coefficients(a1, a2)
    return a + b


@implements()
def polysub(a1, a2):
    """The difference of two polynomials."""
    a, b = _pad_coefficients(a1, a2)
    return a - b


@implements()
def polyder(p, m=1):
    """The m-th derivative of a polynomial."""
    x = tensor(p)
    for _ in range(m):
        x = x[:-1] * np.arange(x.shape[0] - 1, 0, -1)
    return x


@implements()
def polyint(p, m=1, k=None):
    """The m-th integral of a polynomial, with constants k."""
    x, constants = as_floating(p), np.broadcast_to(0 if k is None else k, (m,))
    for constant in constants:
        x = concatenate([x / np.arange(x.shape[0], 0, -1), np.array([constant], x.dtype)])
    return x


# -------------------------------------------------------------------------------------------------- convolution


@implements()
def convolve(a, v, mode="full"):
    """The sums of a[i] v[j] over i + j = n, for every n ("full"), or fewer of them ("same", "valid")."""
    a, v = promote_operands(*atleast_1d(a, v))
    if a.ndim != 1 or v.ndim != 1:
        raise ValueError("np.convolve: object too deep for desired array")
    a, v = (a, v) if a.shape[0] >= v.shape[0] else (v, a)
    n, m = a.shape[0], v.shape[0]
    if not m:
        raise ValueError("np.convolve: neither operand may be empty")
    turned = O.reshape(O.flip(v, 0), (1, 1, m))
    return _part(O.reshape(O.nn.conv1d(O.reshape(a, (1, 1, n)), turned, None, 1, m - 1), (-1,)), n, m, mode)


def _part(whole, n, m, mode):
    """Return the part of a full convolution of n and m elements that the mode selects."""
    if mode == "full":
        return whole
    if mode == "same":
        return whole[(m - 1) // 2 : (m - 1) // 2 + n]
    if mode == "valid":
        return whole[m - 1 : n]
    raise ValueError(f"np.convolve: mode must be 'full', 'same' or 'valid', got {mode!r}")


@implements()
def correlate(a, v, mode="valid"):
    """The sums of a[n + k] conj(v[n]), for every k ("full"), or fewer of them."""
    a, v = promote_operands(a, v)
    turned = O.conj(O.flip(v, 0))
    if a.shape[0] >= v.shape[0] or mode != "same":
        return convolve(a, turned, mode)
    n, m = v.shape[0], a.shape[0]
    return convolve(a, turned, "full")[m // 2 : m // 2 + n]
