"""Derivatives of special functions by their orders and shapes, from series and integrals that consist of operators.

So derivatives of second and higher order, by all arguments, follow from the first ones. Where the formulas lose their
accuracy the result is NaN: each function says where they hold.
"""

# NIST Handbook of Mathematical Functions (2010), 8.17, 10.2, 10.9, 10.25, 10.32; nodes after H. Takahasi and
# M. Mori, Double exponential formulas for numerical integration, Publ. RIMS 9 (1974).

import functools
import math

from retrograd.core import Tensor
from retrograd.ops.create import arange, as_tensor
from retrograd.ops.family import cast_to
from retrograd.ops.gamma import digamma, lgamma
from retrograd.ops.pointwise import abs as absolute
from retrograd.ops.pointwise import (
    asinh,
    cos,
    cosh,
    detach,
    exp,
    log,
    log1p,
    logical_and,
    logical_not,
    logical_or,
    sin,
    sinh,
    sqrt,
    where,
)
from retrograd.ops.reduce import sum as sum_over
from retrograd.ops.view import unsqueeze

NODES = 400
TERMS = 300


@functools.cache
def _double_exponential() -> tuple[list[float], list[float]]:
    """Return nodes in (0, 1) and weights of Takahasi and Mori's formula."""
    step, nodes, weights = 6.8 / (NODES - 1), [], []
    for k in range(NODES):
        u = -3.4 + k * step
        s = math.pi / 2 * math.sinh(u)
        nodes.append(1 / (1 + math.exp(-2 * s)))
        weights.append(step * math.pi / 4 * math.cosh(u) / math.cosh(s) ** 2)
    return nodes, weights


def _integral(function, end, like: Tensor) -> Tensor:
    """Return the integral of a function from 0 to `end`, a number or a tensor of the shape of `like`."""
    nodes, weights = (as_tensor(part, dtype=like.dtype) for part in _double_exponential())
    ends = unsqueeze(end, -1) if isinstance(end, Tensor) else end
    return sum_over(function(nodes * ends) * weights * ends, -1)


def _last_point(v: Tensor, x: Tensor) -> Tensor:
    """Return a constant t from which on exp(v t - x (cosh t - 1)) is below 1e-19."""
    v, x = absolute(detach(v)), detach(x)
    t = 0 * x
    for _ in range(8):
        energy = (45 + v * t) / x
        t = asinh(sqrt(energy * (energy + 2)))
    return t


def _in_range(v: Tensor, x: Tensor, limit: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return where |v| <= limit and 0 < x <= limit, and both arguments, harmless elsewhere, of one shape."""
    v, x = cast_to(v, x.dtype) + 0 * x, x + 0 * cast_to(v, x.dtype)
    valid = logical_and(absolute(v) <= limit, logical_and(x > 0, x <= limit))
    return valid, where(valid, v, 1.0), where(valid, x, 1.0)


def jv_by_order(v: Tensor, x: Tensor) -> Tensor:
    """Return the derivative of `jv` by v, for |v| <= 50 and 0 < x <= 50."""
    valid, v, x = _in_range(v, x, 50.0)
    small = logical_and(x * x < 12 * (v + 1), v > -0.5)
    series = _series_by_order(where(small, v, 1.0), where(small, x, 1.0), -1.0, 0.0)
    return where(valid, where(small, series, _jv_integral(v, x)), math.nan)


def _jv_integral(v: Tensor, x: Tensor) -> Tensor:
    w, z = unsqueeze(v, -1), unsqueeze(x, -1)
    end = _last_point(v, x)
    wave = _integral(lambda u: u * sin(w * u - z * sin(u)), math.pi, x)
    tail = _integral(lambda t: exp(-z * sinh(t) - w * t), end, x)
    moment = _integral(lambda t: t * exp(-z * sinh(t) - w * t), end, x)
    return -wave / math.pi - cos(math.pi * v) * tail + sin(math.pi * v) / math.pi * moment


def yv_by_order(v: Tensor, x: Tensor) -> Tensor:
    """Return the derivative of `yv` by v, for |v| <= 50 and 0 < x <= 50."""
    valid, v, x = _in_range(v, x, 50.0)
    w, z = unsqueeze(v, -1), unsqueeze(x, -1)
    turn, quarter = unsqueeze(cos(math.pi * v), -1), unsqueeze(sin(math.pi * v), -1)
    wave = _integral(lambda u: u * cos(z * sin(u) - w * u), math.pi, x)

    def tails(t):
        low = exp(-z * sinh(t) - w * t)
        return t * exp(w * t - z * sinh(t)) - (t * turn + math.pi * quarter) * low

    return where(valid, -(wave + _integral(tails, _last_point(v, x), x)) / math.pi, math.nan)


def kv_by_order(v: Tensor, x: Tensor, scale: float = 0.0) -> Tensor:
    """Return exp(scale x) times the derivative of `kv` by v, for |v| <= 100 and 0 < x <= 100."""
    valid, v, x = _in_range(v, x, 100.0)
    return where(valid, _kv_moment(v, x, scale, 1), math.nan)


def _kv_moment(v: Tensor, x: Tensor, scale: float, order: int) -> Tensor:
    """Return exp(scale x) times `kv`, or its derivative by v for order 1."""
    w, z = unsqueeze(v, -1), unsqueeze(x, -1)

    def density(t):
        up, down = exp(z * (scale - cosh(t)) + w * t), exp(z * (scale - cosh(t)) - w * t)
        return t * (up - down) / 2 if order else (up + down) / 2

    return _integral(density, _last_point(v, x), x)


def iv_by_order(v: Tensor, x: Tensor, scale: float = 0.0) -> Tensor:
    """Return exp(-scale x) times the derivative of `iv` by v, for |v| <= 100 and 0 < x <= 100."""
    valid, v, x = _in_range(v, x, 100.0)
    reflected = v < -0.5
    u = where(reflected, -v, v)
    slope = _series_by_order(u, x, 1.0, scale)
    w = where(reflected, u, 1.0)
    value, by_order = (_kv_moment(w, x, -scale, order) for order in (0, 1))
    other = -slope - 2 * cos(math.pi * w) * value - 2 / math.pi * sin(math.pi * w) * by_order
    return where(valid, where(reflected, other, slope), math.nan)


def _series_by_order(v: Tensor, x: Tensor, sign: float, scale: float) -> Tensor:
    """Return the derivative by v of the sum over k of sign^k (x / 2)^(2k + v) / (k! gamma(k + v + 1)) exp(-scale x)."""
    k = arange(TERMS, dtype=x.dtype)
    w, half = unsqueeze(v, -1), log(unsqueeze(x, -1) / 2)
    terms = exp((2 * k + w) * half - lgamma(k + 1) - lgamma(k + w + 1) - scale * unsqueeze(x, -1))
    signs = as_tensor([sign**i for i in range(TERMS)], dtype=x.dtype)
    return sum_over(signs * terms * (half - digamma(k + w + 1)), -1)


def betainc_by_shapes(a: Tensor, b: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the derivatives of `betainc` by a and by b, for a + b <= 2000.

    Absolute errors are below 1e-13.
    """
    valid = logical_and(logical_and(a > 0, b > 0), logical_and(a + b <= 2000, logical_and(x >= 0, x <= 1)))
    inside = logical_and(valid, logical_and(x > 0, x < 1))
    one = 0 * (a + b + x) + 1
    a, b, x = (where(inside, value * one, other) for value, other in ((a, 1.0), (b, 1.0), (x, 0.5)))
    swapped = _is_swapped(detach(a), detach(b), detach(x))
    first, second = where(swapped, b, a), where(swapped, a, b)
    by_first, by_second = _beta_series(first, second, where(swapped, 1 - x, x))
    by_a, by_b = where(swapped, -by_second, by_first), where(swapped, -by_first, by_second)
    edge = where(valid, 0.0, math.nan)
    return where(inside, by_a, edge), where(inside, by_b, edge)


def _is_swapped(a: Tensor, b: Tensor, x: Tensor) -> Tensor:
    """Return whether the series is that of 1 - x: above the mean, unless only the other one converges quickly.

    The terms of a series grow up to some k, and shrink by a factor of x afterwards.
    """
    grow, grow_other = (a + b) * x - a - 1, (a + b) * (1 - x) - b - 1
    slow, slow_other = x > 0.95, 1 - x > 0.95
    above = logical_and(x > a / (a + b), logical_or(logical_not(slow_other), grow > 100 * (1 - x)))
    return logical_or(above, logical_and(x <= a / (a + b), logical_and(slow, grow_other <= 100 * x)))


def _beta_series(a: Tensor, b: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the derivatives of x^a (1 - x)^b / gamma(b) times the sum of gamma(a + b + k) / gamma(a + 1 + k) x^k."""
    k = arange(2 * TERMS, dtype=x.dtype)
    p, q, logarithm = (unsqueeze(part, -1) for part in (a, b, log(x)))
    both, own = p + q + k, p + 1 + k
    factor = unsqueeze(b * log1p(-x) - lgamma(b), -1)
    terms = exp(lgamma(both) - lgamma(own) + (p + k) * logarithm + factor)
    by_a = sum_over(terms * (logarithm + digamma(both) - digamma(own)), -1)
    by_b = sum_over(terms * (unsqueeze(log1p(-x) - digamma(b), -1) + digamma(both)), -1)
    return by_a, by_b
