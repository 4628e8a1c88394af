"""The zeta functions of Hurwitz and of Riemann."""

# NIST Handbook of Mathematical Functions (2010), 25.4.1 and 25.11.5.

import math
from typing import Any

from retrograd.core import Tensor, op, xp
from retrograd.ops.create import arange, as_tensor
from retrograd.ops.gamma import _cast_parameter as cast_parameter
from retrograd.ops.gamma import gamma
from retrograd.ops.pointwise import POSITIVE, exp, log, logical_and, sin, where
from retrograd.ops.reduce import sum as sum_over
from retrograd.ops.special import Special
from retrograd.ops.view import unsqueeze

TERMS = 20
# B(2j) / (2j)! of Bernoulli's numbers, from j = 1 on.
_BERNOULLI = [
    1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000, 1 / 74724249600,
    -3617 / 10670622842880000,
]  # fmt: skip


@op("special.zeta(Tensor x, Tensor q) -> Tensor")
class zeta(Special):
    """Hurwitz zeta function: the sum of (k + q)^-x over k from 0, for x above 1.

    The derivative by x is the sum of Euler and Maclaurin, with some 13 digits, for q above 0 and NaN elsewhere.
    """

    impl = xp.zeta

    def vjp_x(g, x, q):
        return g * zeta_by_x(x, cast_parameter(x, q))

    def vjp_q(g, x, q):
        return g * (-x * zeta(x + 1, q))

    oracle = "retrograd.testing.references.gamma.zeta"

    def samples(r):
        yield (r.ints(3, (4, 1)) + 2, r(3, within=POSITIVE)), {}
        yield (2.5, r(3, within=POSITIVE)), {}
        yield (r(4, 1, within=(1.2, 6.0)), r(3, within=POSITIVE)), {}


def zeta_by_x(x: Tensor, q: Tensor) -> Tensor:
    """Return the derivative of `zeta` by x, for x above 1 and q above 0."""
    valid = logical_and(x > 1, q > 0)
    one = 0 * (x + q) + 1
    x, q = where(valid, x * one, 2.0), where(valid, q * one, 1.0)
    return where(valid, _euler_maclaurin(x, q, derivative=True), math.nan)


def riemann_zeta(x: Tensor) -> Tensor:
    """Return Riemann's zeta function, also below 1, where it continues the sum; infinite at 1."""
    right = zeta(where(x > 1, x, 2.0), as_tensor(1.0, dtype=x.dtype))
    inner = logical_and(x >= -0.5, x < 1)
    middle = _euler_maclaurin(where(inner, x, 0.5), as_tensor(1.0, dtype=x.dtype), derivative=False)
    y = where(x < -0.5, x, -1.0)
    factor = 2 * (2 * math.pi) ** (y - 1) * sin(math.pi / 2 * y) * gamma(1 - y)
    left = factor * zeta(1 - y, as_tensor(1.0, dtype=x.dtype))
    below = where(inner, middle, where(x < -0.5, left, where(x == 1, math.inf, math.nan)))
    return where(x > 1, right, below)


def _euler_maclaurin(x: Tensor, q: Tensor, derivative: bool) -> Tensor:
    """Return `zeta` or its derivative by x: terms, and the rest as an integral with corrections."""
    k = arange(TERMS, dtype=x.dtype)
    logarithms, end = log(unsqueeze(q, -1) + k), log(q + TERMS)
    powers = exp(-unsqueeze(x, -1) * logarithms)
    rest = exp(-x * end)
    integral = rest * (q + TERMS) / (x - 1)
    if derivative:
        total = -sum_over(powers * logarithms, -1) - integral * (end + 1 / (x - 1)) - rest * end / 2
    else:
        total = sum_over(powers, -1) + integral + rest / 2
    growth = rest * (x / (q + TERMS))
    slope: Any = 1 / x if derivative else None
    for j, factor in enumerate(_BERNOULLI):
        total = total + factor * (growth * (slope - end) if derivative else growth)
        for i in (2 * j + 1, 2 * j + 2):
            growth = growth * ((x + i) / (q + TERMS))
            slope = slope + 1 / (x + i) if derivative else None
    return total
