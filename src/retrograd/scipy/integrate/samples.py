"""Integrals of samples: `trapezoid`, `simpson`, `romb` and the cumulative ones."""

from retrograd.foundation.suggestions import suggest_in_module
from retrograd.interop.numpy_protocol.table import O, as_floating, holds_tensor
from retrograd.scipy._array_like import ArrayOrSequence
from retrograd.scipy._mirror import on_tensors, scipy_member


@on_tensors("scipy.integrate")
def trapezoid(y: ArrayOrSequence, x=None, dx=1.0, axis=-1):
    """Return the integral of samples by the trapezoidal rule; see `simpson`.

    >>> import retrograd as rg
    >>> trapezoid(rg.tensor([0.0, 1.0, 4.0])).item()
    3.0
    """
    y = O.movedim(as_floating(y), axis, -1)
    return O.sum(_distances("trapezoid", y, x, dx, axis) * (y[..., 1:] + y[..., :-1]) / 2, -1)


def simpson(y: ArrayOrSequence, x=None, *, dx=1.0, axis=-1):
    """Return the integral of samples y at points x, or at a distance dx, along an axis, by Simpson's rule.

    For an even number of samples the last interval is that of the parabola through the last three (K. V. Cartwright,
    Simpson's rule cumulative integration with MS Excel, J. Math. Sci. Math. Educ. 12 (2017)).  Differentiable in y
    and x.  After `scipy.integrate.simpson`.

    >>> import retrograd as rg
    >>> simpson(rg.tensor([0.0, 1.0, 4.0])).item()
    2.6666667461395264
    """
    if not holds_tensor((y, x)):
        return scipy_member("scipy.integrate").simpson(y, x, dx=dx, axis=axis)
    y = O.movedim(as_floating(y), axis, -1)
    h = _distances("simpson", y, x, dx, axis)
    count = y.shape[-1]
    if count < 3:
        return O.sum(h * (y[..., 1:] + y[..., :-1]) / 2, -1)
    odd = count - 1 + count % 2
    total = _parabolas(y[..., :odd], h[..., : odd - 1])
    return total if count % 2 else total + _last_interval(y[..., -3:], h[..., -2:])


def _distances(name, y, x, dx, axis):
    """Return the distances of the samples, which broadcast against them."""
    if x is None:
        return O.full((y.shape[-1] - 1,), dx, dtype=y.dtype)
    x = as_floating(x)
    if x.ndim == 1 and x.shape[0] != y.shape[-1]:
        raise ValueError(f"integrate.{name}: {x.shape[0]} points for {y.shape[-1]} samples")
    return O.diff(x if x.ndim == 1 else O.movedim(x, axis, -1), dim=-1)


def _parabolas(y, h):
    """Return the sum over pairs of intervals."""
    a, b, c = y[..., :-2:2], y[..., 1:-1:2], y[..., 2::2]
    left, right = h[..., ::2], h[..., 1::2]
    both = left + right
    middle = both * both / (left * right) * b
    return O.sum(both / 6 * (a * (2 - right / left) + middle + c * (2 - left / right)), -1)


def _last_interval(y, h):
    """Return the integral over the last interval of the parabola through three samples."""
    left, right = h[..., 0], h[..., 1]
    end = (2 * right**2 + 3 * left * right) / (6 * (left + right))
    middle = (right**2 + 3 * left * right) / (6 * left)
    start = right**3 / (6 * left * (left + right))
    return end * y[..., 2] + middle * y[..., 1] - start * y[..., 0]


@on_tensors("scipy.integrate")
def cumulative_trapezoid(y: ArrayOrSequence, x=None, dx=1.0, axis=-1, initial=None):
    """Return the integrals of samples up to each of them, but the first, by the trapezoidal rule; see `simpson`.

    initial: None, or 0 for a first integral of 0.  After `scipy.integrate.cumulative_trapezoid`.

    >>> import retrograd as rg
    >>> cumulative_trapezoid(rg.tensor([0.0, 1.0, 4.0]), initial=0).tolist()
    [0.0, 0.5, 3.0]
    """
    if initial not in (None, 0):
        raise ValueError(f"integrate.cumulative_trapezoid: initial must be None or 0, got {initial!r}")
    y = O.movedim(as_floating(y), axis, -1)
    found = O.cumsum(_distances("cumulative_trapezoid", y, x, dx, axis) * (y[..., 1:] + y[..., :-1]) / 2, -1)
    if initial is not None:
        found = O.cat([O.zeros_like(found[..., :1]), found], -1)
    return O.movedim(found, -1, axis)


@on_tensors("scipy.integrate")
def cumulative_simpson(y: ArrayOrSequence, *, x=None, dx=1.0, axis=-1, initial=None):
    """Return the integrals of samples up to each of them, except the first, by Simpson's rule; see `simpson`.

    An interval is integrated by the parabola through its ends and the next sample, the last one through the sample
    before.  At least 3 samples; after `scipy.integrate.cumulative_simpson`.

    >>> import retrograd as rg
    >>> cumulative_simpson(rg.tensor([0.0, 1.0, 4.0]), initial=0).tolist()
    [0.0, 0.3333333432674408, 2.6666667461395264]
    """
    y = O.movedim(as_floating(y), axis, -1)
    if y.shape[-1] < 3:
        return cumulative_trapezoid(O.movedim(y, -1, axis), x, dx, axis, initial)
    h = O.expand(_distances("cumulative_simpson", y, x, dx, axis), (*y.shape[:-1], y.shape[-1] - 1))
    ahead = _first_interval(y[..., :-2], y[..., 1:-1], y[..., 2:], h[..., :-1], h[..., 1:])
    behind = _first_interval(y[..., 2:], y[..., 1:-1], y[..., :-2], h[..., 1:], h[..., :-1])
    first = O.cat([ahead, behind[..., -1:]], -1)
    second = O.cat([ahead[..., :1], behind], -1)
    even = O.arange(h.shape[-1]) % 2 == 0
    found = O.cumsum(O.where(even, first, second), -1)
    if initial is not None:
        start = O.zeros_like(found[..., :1]) + O.unsqueeze(as_floating(initial), -1)
        found = O.cat([start, found + start], -1)
    return O.movedim(found, -1, axis)


def _first_interval(a, b, c, near, far):
    """Return the integral from a to b of the parabola through a, b and c, at distances `near` and `far`."""
    ratio, both = near / far, near / (near + far)
    return near / 6 * ((3 - both) * a + (3 + ratio * both + both) * b - ratio * both * c)


@on_tensors("scipy.integrate")
def romb(y: ArrayOrSequence, dx=1.0, axis=-1, show=False):
    """Return the integral of 2^k + 1 samples at a distance dx by Romberg's method.

    >>> import retrograd as rg
    >>> romb(rg.tensor([0.0, 1.0, 4.0])).item()
    2.6666667461395264
    """
    if show:
        raise TypeError("integrate.romb: show=True is not supported for tensors")
    y = O.movedim(as_floating(y), axis, -1)
    count = y.shape[-1] - 1
    if count < 1 or count & (count - 1):
        raise ValueError(f"integrate.romb: expected one more sample than a power of two, got {count + 1}")
    row: list = []
    step = count
    while step:
        part = y[..., ::step]
        new = [O.sum(part[..., 1:] + part[..., :-1], -1) * (dx * step / 2)]
        for k, before in enumerate(row, 1):
            new.append(new[-1] + (new[-1] - before) / (4**k - 1))
        row, step = new, step // 2
    return row[-1]


suggest_in_module(globals())
