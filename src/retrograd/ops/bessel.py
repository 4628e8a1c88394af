"""Bessel functions: ordinary, modified, exponentially scaled, spherical, and Airy's.

Each derivative combines two functions of neighbouring order, which holds at 0 too, so that derivatives of all orders
exist.  Derivatives by the order are integrals and series, in the ranges that `parameter_slopes` states.
"""

# The rules are from M. Abramowitz and I. A. Stegun, Handbook of Mathematical Functions (1964), 9.1.27, 9.6.26, 10.1.20.

from retrograd.core import op, xp
from retrograd.ops.family import Composite
from retrograd.ops.parameter_slopes import iv_by_order, jv_by_order, kv_by_order, yv_by_order
from retrograd.ops.pointwise import POSITIVE, sign
from retrograd.ops.special import Special, special


def _samples(r):
    yield (2, r(4, within=POSITIVE)), {}
    yield (r.ints(3, (4, 1)), r(3, within=POSITIVE)), {}
    yield (0.5, r(within=POSITIVE)), {}
    yield (r(2, 1, within=(0.3, 4.0)), r(3, within=(0.3, 4.0))), {}


# ------------------------------------------------------------------------------------- of the first and second kind

jv = special("special.jv(Tensor v, Tensor x) -> Tensor", xp.jv,
    "The Bessel function of the first kind, of order v.",
    vjp_v=lambda g, v, x: g * jv_by_order(v, x),
    vjp_x=lambda g, v, x: g * ((jv(v - 1, x) - jv(v + 1, x)) / 2), samples=_samples, aliases="special.jn",
    oracle="retrograd.testing.references.bessel.jv")  # fmt: skip
yv = special("special.yv(Tensor v, Tensor x) -> Tensor", xp.yv,
    "The Bessel function of the second kind, of order v: -inf at 0, NaN below.",
    vjp_v=lambda g, v, x: g * yv_by_order(v, x),
    vjp_x=lambda g, v, x: g * ((yv(v - 1, x) - yv(v + 1, x)) / 2), samples=_samples, aliases="special.yn",
    oracle="retrograd.testing.references.bessel.yv")  # fmt: skip
bessel_j0 = special("special.bessel_j0(Tensor x) -> Tensor", xp.j0,
    "The Bessel function of the first kind, of order 0.",
    vjp=lambda g, x: g * -bessel_j1(x), aliases="special.j0",
    oracle="retrograd.testing.references.bessel.bessel_j0")  # fmt: skip
bessel_j1 = special("special.bessel_j1(Tensor x) -> Tensor", xp.j1,
    "The Bessel function of the first kind, of order 1.",
    vjp=lambda g, x: g * ((bessel_j0(x) - jv(2, x)) / 2), aliases="special.j1",
    oracle="retrograd.testing.references.bessel.bessel_j1")  # fmt: skip
bessel_y0 = special("special.bessel_y0(Tensor x) -> Tensor", xp.y0,
    "The Bessel function of the second kind, of order 0: -inf at 0, NaN below.",
    vjp=lambda g, x: g * -bessel_y1(x), domain=POSITIVE, aliases="special.y0",
    oracle="retrograd.testing.references.bessel.bessel_y0")  # fmt: skip
bessel_y1 = special("special.bessel_y1(Tensor x) -> Tensor", xp.y1,
    "The Bessel function of the second kind, of order 1: -inf at 0, NaN below.",
    vjp=lambda g, x: g * ((bessel_y0(x) - yv(2, x)) / 2), domain=POSITIVE, aliases="special.y1",
    oracle="retrograd.testing.references.bessel.bessel_y1")  # fmt: skip

# -------------------------------------------------------------------------------------------------------- modified

iv = special("special.iv(Tensor v, Tensor x) -> Tensor", xp.iv,
    "The modified Bessel function of the first kind, of order v.",
    vjp_v=lambda g, v, x: g * iv_by_order(v, x),
    vjp_x=lambda g, v, x: g * ((iv(v - 1, x) + iv(v + 1, x)) / 2), samples=_samples,
    oracle="retrograd.testing.references.bessel.iv")  # fmt: skip
ive = special("special.ive(Tensor v, Tensor x) -> Tensor", xp.ive,
    "exp(-|x|) times the modified Bessel function of the first kind, of order v.",
    vjp_v=lambda g, v, x: g * iv_by_order(v, x, 1.0),
    vjp_x=lambda g, v, x, out: g * ((ive(v - 1, x) + ive(v + 1, x)) / 2 - sign(x) * out), samples=_samples,
    oracle="retrograd.testing.references.bessel.ive")  # fmt: skip
kv = special("special.kv(Tensor v, Tensor x) -> Tensor", xp.kv,
    "The modified Bessel function of the second kind, of order v: inf at 0, NaN below.",
    vjp_v=lambda g, v, x: g * kv_by_order(v, x),
    vjp_x=lambda g, v, x: g * ((kv(v - 1, x) + kv(v + 1, x)) / -2), samples=_samples,
    oracle="retrograd.testing.references.bessel.kv")  # fmt: skip
kve = special("special.kve(Tensor v, Tensor x) -> Tensor", xp.kve,
    "exp(x) times the modified Bessel function of the second kind, of order v.",
    vjp_v=lambda g, v, x: g * kv_by_order(v, x, 1.0),
    vjp_x=lambda g, v, x, out: g * (out - (kve(v - 1, x) + kve(v + 1, x)) / 2), samples=_samples,
    oracle="retrograd.testing.references.bessel.kve")  # fmt: skip
i0 = special("i0(Tensor x) -> Tensor", xp.i0,
    "The modified Bessel function of the first kind, of order 0.",
    vjp=lambda g, x: g * i1(x), aliases="special.i0 special.modified_bessel_i0",
    oracle="retrograd.testing.references.bessel.i0")  # fmt: skip
i1 = special("special.i1(Tensor x) -> Tensor", xp.i1,
    "The modified Bessel function of the first kind, of order 1.",
    vjp=lambda g, x: g * ((i0(x) + iv(2, x)) / 2), aliases="special.modified_bessel_i1",
    oracle="retrograd.testing.references.bessel.i1")  # fmt: skip
i0e = special("special.i0e(Tensor x) -> Tensor", xp.i0e,
    "exp(-|x|) times `i0`; its derivative at 0 is 0.",
    vjp=lambda g, x, out: g * (i1e(x) - sign(x) * out), oracle="retrograd.testing.references.bessel.i0e")  # fmt: skip
i1e = special("special.i1e(Tensor x) -> Tensor", xp.i1e,
    "exp(-|x|) times `i1`.",
    vjp=lambda g, x, out: g * ((i0e(x) + ive(2, x)) / 2 - sign(x) * out),
    oracle="retrograd.testing.references.bessel.i1e")  # fmt: skip
modified_bessel_k0 = special("special.modified_bessel_k0(Tensor x) -> Tensor", xp.k0,
    "The modified Bessel function of the second kind, of order 0: inf at 0, NaN below.",
    vjp=lambda g, x: g * -modified_bessel_k1(x), domain=POSITIVE, aliases="special.k0",
    oracle="retrograd.testing.references.bessel.modified_bessel_k0")  # fmt: skip
modified_bessel_k1 = special("special.modified_bessel_k1(Tensor x) -> Tensor", xp.k1,
    "The modified Bessel function of the second kind, of order 1: inf at 0, NaN below.",
    vjp=lambda g, x: g * ((modified_bessel_k0(x) + kv(2, x)) / -2),
    domain=POSITIVE, aliases="special.k1", oracle="retrograd.testing.references.bessel.modified_bessel_k1")  # fmt: skip
scaled_modified_bessel_k0 = special("special.scaled_modified_bessel_k0(Tensor x) -> Tensor", xp.k0e,
    "exp(x) times `modified_bessel_k0`.",
    vjp=lambda g, x, out: g * (out - scaled_modified_bessel_k1(x)),
    domain=POSITIVE, aliases="special.k0e",
    oracle="retrograd.testing.references.bessel.scaled_modified_bessel_k0")  # fmt: skip
scaled_modified_bessel_k1 = special("special.scaled_modified_bessel_k1(Tensor x) -> Tensor", xp.k1e,
    "exp(x) times `modified_bessel_k1`.",
    vjp=lambda g, x, out: g * (out - (scaled_modified_bessel_k0(x) + kve(2, x)) / 2),
    domain=POSITIVE, aliases="special.k1e",
    oracle="retrograd.testing.references.bessel.scaled_modified_bessel_k1")  # fmt: skip

# ------------------------------------------------------------------------------------------------ spherical, Airy


@op("special.spherical_jn(int n, Tensor x) -> Tensor")
class spherical_jn(Special):
    """The spherical Bessel function of the first kind, of integer order n, at least 0."""

    def impl(xp, x, *, n):
        if n < 0:
            raise ValueError(f"special.spherical_jn: n must be at least 0, got {n}")
        return xp.spherical_jn(n, x)

    def vjp_x(g, x, n):
        if n == 0:
            return g * -spherical_jn(1, x)
        return g * ((n * spherical_jn(n - 1, x) - (n + 1) * spherical_jn(n + 1, x)) / (2 * n + 1))

    oracle = "retrograd.testing.references.bessel.spherical_jn"

    def samples(r):
        yield (r(3, 2),), {"n": 0}
        yield (r(4),), {"n": 2}

    def errors(r):
        yield (r(2),), {"n": -1}, ValueError, "special.spherical_jn: n must be at least 0, got -1"


@op("special.spherical_bessel_j0(Tensor x) -> Tensor")
class spherical_bessel_j0(Composite):
    """The spherical Bessel function of order 0: sin(x) / x, and 1 at 0."""

    def compose(x):
        return spherical_jn(0, x)

    def oracle(np, x):
        return np.sin(x) / x

    def samples(r):
        yield (r(3, 2),), {}


airy_ai = special("special.airy_ai(Tensor x) -> Tensor", lambda xp, x: xp.airy(x)[0],
    "Airy's function Ai, a solution of y'' = x y: it falls for positive x and swings for negative.",
    vjp=lambda g, x: g * airy_ai_derivative(x), oracle="retrograd.testing.references.bessel.airy_ai")  # fmt: skip
airy_ai_derivative = special("airy_ai_derivative(Tensor x) -> Tensor", lambda xp, x: xp.airy(x)[1],
    "The derivative of `airy_ai`.",
    vjp=lambda g, x: g * (x * airy_ai(x)), internal=True,
    oracle="retrograd.testing.references.bessel.airy_ai_derivative")  # fmt: skip
