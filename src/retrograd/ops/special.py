"""Special functions: error functions, normal distribution, exponential integrals, entropies, sinc."""

import math

from retrograd.core import Internal, op, xp
from retrograd.ops.family import Composite, Pointwise, cast_to, pointwise
from retrograd.ops.floats import Real
from retrograd.ops.pointwise import POSITIVE, clamp, cos, eq, exp, log, logical_and, where

PROBABILITIES = (0.05, 0.95)


class Special(Real, promotion="float", opmath="x"):
    """Base of special functions of real values."""


def special(schema, impl, doc, **rules):
    """Define a special function without params, as `pointwise` does."""
    return pointwise(schema, impl, doc, family=Special, **rules)


# ------------------------------------------------------------------------- error functions, normal distribution

erfc = pointwise("erfc(Tensor x) -> Tensor", xp.erfc,
    "The complementary error function 1 - erf(x), accurate where erf(x) is near 1.",
    vjp=lambda g, x: g * (-2 / math.sqrt(math.pi) * exp(-x * x)),
    promotion="float", opmath="x", aliases="special.erfc",
    oracle=lambda np, x: np.vectorize(math.erfc, otypes=[float])(x))  # fmt: skip
erfcx = special("special.erfcx(Tensor x) -> Tensor", xp.erfcx,
    "The scaled complementary error function exp(x^2) erfc(x), which decays like 1 / x.",
    vjp=lambda g, x, out: g * (2 * x * out - 2 / math.sqrt(math.pi)),
    oracle=lambda np, x: np.vectorize(lambda x: math.exp(x * x) * math.erfc(x), otypes=[float])(x))  # fmt: skip
erfinv = special("erfinv(Tensor x) -> Tensor", xp.erfinv,
    "The inverse of `erf` on (-1, 1); infinite at the ends, NaN outside.",
    vjp=lambda g, out: g * (math.sqrt(math.pi) / 2 * exp(out * out)), aliases="special.erfinv", snapshots="out",
    domain=(-0.9, 0.9), oracle="retrograd.testing.references.special.erfinv")  # fmt: skip
erfcinv = special("special.erfcinv(Tensor x) -> Tensor", xp.erfcinv,
    "The inverse of `erfc` on (0, 2); infinite at the ends, NaN outside.",
    vjp=lambda g, out: g * (-math.sqrt(math.pi) / 2 * exp(out * out)), domain=(0.1, 1.9),
    oracle="retrograd.testing.references.special.erfcinv")  # fmt: skip
ndtr = special("special.ndtr(Tensor x) -> Tensor", xp.ndtr,
    "The CDF of the standard normal distribution.",
    vjp=lambda g, x: g * (exp(-x * x / 2) / math.sqrt(2 * math.pi)), snapshots="x",
    oracle="retrograd.testing.references.special.ndtr")  # fmt: skip
ndtri = special("special.ndtri(Tensor x) -> Tensor", xp.ndtri,
    "The inverse of `ndtr`, the standard normal CDF, on (0, 1); infinite at the ends, NaN outside.",
    vjp=lambda g, out: g * (math.sqrt(2 * math.pi) * exp(out * out / 2)), domain=PROBABILITIES,
    oracle="retrograd.testing.references.special.ndtri")  # fmt: skip
log_ndtr = special("special.log_ndtr(Tensor x) -> Tensor", xp.log_ndtr,
    "The logarithm of `ndtr`, the standard normal CDF, accurate far into the left tail.",
    vjp=lambda g, x: g * (math.sqrt(2 / math.pi) / erfcx(x * -math.sqrt(0.5))),
    oracle="retrograd.testing.references.special.log_ndtr")  # fmt: skip

# --------------------------------------------------------------------------------- logarithms and entropies


@op("xlogy(Tensor a, Tensor b) -> Tensor")
class xlogy(Special, aliases="special.xlogy"):
    """a * log(b), and 0 where a is 0, unless b is NaN.

    The derivative by a is log(b), taken as 0 where a is 0 and b <= 0.

    >>> import retrograd as rg
    >>> rg.xlogy(rg.tensor([0.0, 2.0]), rg.tensor([0.0, 1.0])).tolist()
    [0.0, 0.0]
    """

    impl = xp.xlogy

    def vjp_a(g, a, b):
        nothing = logical_and(eq(a, 0), b <= 0)
        return where(nothing, 0, xlogy(g, cast_to(where(nothing, 1, b), g.dtype)))  # 0 where g is infinite too

    def vjp_b(g, a, b):
        return g * (a / b)

    def oracle(np, a, b):
        return a * np.log(b)

    def samples(r):
        yield (r(4, 1), r(3, within=POSITIVE)), {}
        yield (2.5, r(3, within=POSITIVE)), {}


@op("special.xlog1py(Tensor a, Tensor b) -> Tensor")
class xlog1py(Special):
    """a * log(1 + b), and 0 where a is 0, unless b is NaN.

    The derivative by a is log(1 + b), taken as 0 where a is 0 and b <= -1.
    """

    impl = xp.xlog1py

    def vjp_a(g, a, b):
        nothing = logical_and(eq(a, 0), b <= -1)
        return where(nothing, 0, xlog1py(g, cast_to(where(nothing, 0, b), g.dtype)))

    def vjp_b(g, a, b):
        return g * (a / (b + 1))

    def oracle(np, a, b):
        return a * np.log(1 + b)

    def samples(r):
        yield (r(4, 1), r(3, within=(-0.5, 2.0))), {}
        yield (2.5, r(3, within=(-0.5, 2.0))), {}


entr = special("special.entr(Tensor x) -> Tensor", xp.entr,
    "The elementwise entropy -x log(x); 0 at 0, -inf for negative x.",
    vjp=lambda g, x: g * (-log(x) - 1), domain=POSITIVE, oracle=lambda np, x: -x * np.log(x))  # fmt: skip


@op("special.rel_entr(Tensor a, Tensor b) -> Tensor")
class rel_entr(Composite):
    """The elementwise relative entropy a log(a / b); 0 where a is 0, inf where a or b is negative."""

    def compose(a, b):
        return where(logical_and(a >= 0, b >= 0), xlogy(a, a) - xlogy(a, b), math.inf)

    def oracle(np, a, b):
        return a * np.log(a / b)

    def samples(r):
        yield (r(4, 1, within=POSITIVE), r(3, within=POSITIVE)), {}


@op("special.kl_div(Tensor a, Tensor b) -> Tensor")
class special_kl_div(Composite):
    """The elementwise Kullback-Leibler divergence a log(a / b) - a + b, which is never negative."""

    def compose(a, b):
        return rel_entr(a, b) - a + b

    def oracle(np, a, b):
        return a * np.log(a / b) - a + b

    def samples(r):
        yield (r(4, 1, within=POSITIVE), r(3, within=POSITIVE)), {}


@op("log_odds(Tensor x) -> Tensor")
class log_odds(Internal, Special, node_name="LogitBackward0"):
    """log(x / (1 - x)); value and derivative are NaN outside [0, 1]."""

    impl = xp.logit

    def vjp_x(g, x):
        return g / where(logical_and(x >= 0, x <= 1), x * (1 - x), math.nan)

    oracle = "retrograd.testing.references.special.logit"

    def samples(r):
        yield (r(3, 2, within=PROBABILITIES),), {}


@op("logit(Tensor x, float? eps=None) -> Tensor")
class logit(Composite, in_place=True, aliases="special.logit"):
    """log(x / (1 - x)), the inverse of sigmoid; with eps, x is first clamped to [eps, 1 - eps].

    Without eps, x outside [0, 1] gives NaN.

    >>> import retrograd as rg
    >>> rg.logit(rg.tensor([0.5, 2.0]), eps=0.5).tolist()
    [0.0, 0.0]
    """

    def compose(x, *, eps):
        return log_odds(x if eps is None else clamp(x, eps, 1 - eps))

    oracle = "retrograd.testing.references.special.logit"

    def samples(r):
        yield (r(3, 2, within=PROBABILITIES),), {}
        yield (r(5, within=(-0.5, 1.5)),), {"eps": 0.3}


# ------------------------------------------------------------------------------------------------ sin(x) / x


@op("sinc(Tensor x) -> Tensor")
class sinc(Pointwise, promotion="float", aliases="special.sinc", opmath="x"):
    """The normalized sinc sin(pi x) / (pi x), 1 at 0; derivatives of every order hold there, too.

    >>> import retrograd as rg
    >>> rg.sinc(rg.tensor([0.0, 0.5])).tolist()
    [1.0, 0.6366197466850281]
    """

    impl = xp.sinc

    def vjp_x(g, x):
        return g * sinc_derivative(x, order=1)

    def oracle(np, x):
        return np.sin(math.pi * x) / (math.pi * x)

    def samples(r):
        yield (r(3, 2),), {}
        yield (r(4) * 0.1,), {}


@op("sinc_derivative(Tensor x, *, int order) -> Tensor")
class sinc_derivative(Internal, Pointwise, promotion="float"):
    """The derivative of `sinc` of the given order."""

    def impl(xp, x, *, order):
        return xp.sinc_derivative(x, order)

    def vjp_x(g, x, order):
        return g * sinc_derivative(x, order=order + 1)

    oracle = "retrograd.testing.references.special.sinc_derivative"

    def samples(r):
        yield (r(3, 2),), {"order": 1}
        yield (r(5) * 0.5,), {"order": 2}


# ------------------------------------------------------------------------------------- exponential integrals

exp1 = special("special.exp1(Tensor x) -> Tensor", xp.exp1,
    "The exponential integral E1, of exp(-t) / t over t from x to infinity; NaN for negative x.",
    vjp=lambda g, x: g * (-exp(-x) / x), domain=POSITIVE,
    oracle="retrograd.testing.references.special.exp1")  # fmt: skip
expi = special("special.expi(Tensor x) -> Tensor", xp.expi,
    "The exponential integral Ei, of exp(t) / t over t from -infinity to x, as principal value.",
    vjp=lambda g, x: g * (exp(x) / x), domain=POSITIVE, oracle="retrograd.testing.references.special.expi")  # fmt: skip


@op("special.expn(int n, Tensor x) -> Tensor")
class expn(Special):
    """The exponential integral of order n >= 0, of exp(-x t) / t**n over t from 1 to infinity."""

    def impl(xp, x, *, n):
        if n < 0:
            raise ValueError(f"special.expn: n must be at least 0, got {n}")
        return xp.expn(n, x)

    def vjp_x(g, x, n):
        return g * (-expn(n - 1, x) if n else -exp(-x) * (1 + 1 / x) / x)

    oracle = "retrograd.testing.references.special.expn"

    def samples(r):
        yield (r(3, 2, within=POSITIVE),), {"n": 3}
        yield (r(4, within=POSITIVE),), {"n": 1}
        yield (r(4, within=POSITIVE),), {"n": 0}

    def errors(r):
        yield (r(2),), {"n": -1}, ValueError, "special.expn: n must be at least 0, got -1"


sine_integral = special("sine_integral(Tensor x) -> Tensor", lambda xp, x: xp.sici(x)[0],
    "The sine integral, of sin(t) / t over t from 0 to x.",
    vjp=lambda g, x: g * sinc(x / math.pi), internal=True,
    oracle="retrograd.testing.references.special.sine_integral")  # fmt: skip
cosine_integral = special("cosine_integral(Tensor x) -> Tensor", lambda xp, x: xp.sici(x)[1],
    "The cosine integral, minus that of cos(t) / t over t from x to infinity; NaN for negative x.",
    vjp=lambda g, x: g * (cos(x) / x), domain=POSITIVE, internal=True,
    oracle="retrograd.testing.references.special.cosine_integral")  # fmt: skip



@op("special.sici(Tensor x) -> (Tensor si, Tensor ci)")
class sici(Composite):
    """The sine and the cosine integral, as a named tuple (si, ci)."""

    def compose(x):
        return sine_integral(x), cosine_integral(x)

    oracle = "retrograd.testing.references.special.sici"

    def samples(r):
        yield (r(3, 2, within=POSITIVE),), {}
