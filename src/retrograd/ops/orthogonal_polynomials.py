"""Orthogonal polynomials by degree: Chebyshev, Legendre, Hermite, Laguerre.

Degrees n are integers: a number, or a tensor that broadcasts.  Polynomials of negative degree are 0.  Values come from
the three-term recurrence, in max(n) steps.  The derivative by x is composed of polynomials of lower degree, so that
derivatives of every order hold everywhere; there is no derivative by n.
"""

# The rules are in M. Abramowitz and I. A. Stegun, Handbook of Mathematical Functions (1964), 22.5, 22.7 and 22.8.

from retrograd.core import Internal, op
from retrograd.core import dtype as dtypes
from retrograd.ops.family import Composite, cast_to
from retrograd.ops.special import Special, special


def _samples(r):
    yield (r(3, 2, within=(-1.5, 1.5)), 4), {}
    yield (r(4, 1, within=(-1.5, 1.5)), r.ints(6, (3,)) - 1), {}
    yield (r(3), 0), {}


def _signed_degree(n):
    """Degrees in a signed dtype: subtracting 1 would wrap around in an unsigned one."""
    return cast_to(n, dtypes.int64) if hasattr(n, "dtype") and n.dtype.kind in "bu" else n


def _define_polynomial(name, first, step, slope, doc):
    """The operator of polynomials with the recurrence `first`, `step`; `slope(x, n)` is the derivative."""

    def impl(xp, x, n):
        return xp.recurrence(x, n, first, step)

    def vjp_x(g, x, n):
        return g * slope(x, _signed_degree(n))

    oracle = f"retrograd.testing.references.orthogonal_polynomials.{name}"
    schema = f"special.{name}(Tensor x, Tensor n) -> Tensor"
    return special(schema, impl, doc, vjp_x=vjp_x, oracle=oracle, samples=_samples)


# ------------------------------------------------------------------------------------------- families by a parameter


@op("gegenbauer_polynomial(Tensor x, Tensor n, *, float order) -> Tensor")
class gegenbauer(Internal, Special):
    """The Gegenbauer polynomial of degree n and given order; order 1 is `chebyshev_polynomial_u`."""

    def impl(xp, x, n, *, order):
        def step(k, x, now, before):
            return (2 * (k + order) * x * now - (k + 2 * order - 1) * before) / (k + 1)

        return xp.recurrence(x, n, lambda x: 2 * order * x, step)

    def vjp_x(g, x, n, order):
        return g * (2 * order * gegenbauer(x, _signed_degree(n) - 1, order=order + 1))

    oracle = "retrograd.testing.references.orthogonal_polynomials.gegenbauer_polynomial"

    def samples(r):
        yield (r(3, 2), 4), {"order": 2.0}
        yield (r(4, 1), r.ints(5, (3,))), {"order": 1.5}


@op("associated_laguerre_polynomial(Tensor x, Tensor n, *, float order) -> Tensor")
class associated_laguerre(Internal, Special):
    """The associated Laguerre polynomial of degree n and given order; order 0 is `laguerre_polynomial_l`."""

    def impl(xp, x, n, *, order):
        def step(k, x, now, before):
            return ((2 * k + 1 + order - x) * now - (k + order) * before) / (k + 1)

        return xp.recurrence(x, n, lambda x: 1 + order - x, step)

    def vjp_x(g, x, n, order):
        return g * -associated_laguerre(x, _signed_degree(n) - 1, order=order + 1)

    oracle = "retrograd.testing.references.orthogonal_polynomials.associated_laguerre_polynomial"

    def samples(r):
        yield (r(3, 2), 4), {"order": 2.0}
        yield (r(4, 1), r.ints(5, (3,))), {"order": 1.0}


# ---------------------------------------------------------------------------------------------------- Chebyshev's


def _chebyshev_step(k, x, now, before):
    return 2 * x * now - before


chebyshev_polynomial_t = _define_polynomial("chebyshev_polynomial_t", lambda x: x, _chebyshev_step,
    lambda x, n: n * chebyshev_polynomial_u(x, n - 1),
    "The Chebyshev polynomial of the first kind: cos(n a) where x is cos(a).")  # fmt: skip
chebyshev_polynomial_u = _define_polynomial("chebyshev_polynomial_u", lambda x: 2 * x, _chebyshev_step,
    lambda x, n: 2 * gegenbauer(x, n - 1, order=2.0),
    "The Chebyshev polynomial of the second kind: sin((n + 1) a) / sin(a) where x is cos(a).")  # fmt: skip
chebyshev_polynomial_v = _define_polynomial("chebyshev_polynomial_v", lambda x: 2 * x - 1, _chebyshev_step,
    lambda x, n: 2 * (gegenbauer(x, n - 1, order=2.0) - gegenbauer(x, n - 2, order=2.0)),
    "The Chebyshev polynomial of the third kind: cos((n + 1/2) a) / cos(a / 2) where x is cos(a).")  # fmt: skip
chebyshev_polynomial_w = _define_polynomial("chebyshev_polynomial_w", lambda x: 2 * x + 1, _chebyshev_step,
    lambda x, n: 2 * (gegenbauer(x, n - 1, order=2.0) + gegenbauer(x, n - 2, order=2.0)),
    "The Chebyshev polynomial of the fourth kind: sin((n + 1/2) a) / sin(a / 2) where x is cos(a).")  # fmt: skip


def _define_shifted(polynomial):
    """The operator of a polynomial shifted from [-1, 1] to [0, 1]."""
    kind = polynomial.name.rpartition("_")[2]

    class ShiftedPolynomial(Composite):
        compose = staticmethod(lambda x, n: polynomial(2 * cast_to(x, dtypes.float_of(x.dtype)) - 1, n))
        samples = staticmethod(_samples)
        oracle = f"retrograd.testing.references.orthogonal_polynomials.shifted_chebyshev_polynomial_{kind}"

    ShiftedPolynomial.__doc__ = f"`chebyshev_polynomial_{kind}` at 2 x - 1: orthogonal on [0, 1]."
    return op(f"special.shifted_chebyshev_polynomial_{kind}(Tensor x, Tensor n) -> Tensor")(ShiftedPolynomial)


shifted_chebyshev_polynomial_t = _define_shifted(chebyshev_polynomial_t)
shifted_chebyshev_polynomial_u = _define_shifted(chebyshev_polynomial_u)
shifted_chebyshev_polynomial_v = _define_shifted(chebyshev_polynomial_v)
shifted_chebyshev_polynomial_w = _define_shifted(chebyshev_polynomial_w)

# ------------------------------------------------------------------------------------------------------ the others

legendre_polynomial_p = _define_polynomial("legendre_polynomial_p", lambda x: x,
    lambda k, x, now, before: ((2 * k + 1) * x * now - k * before) / (k + 1),
    lambda x, n: gegenbauer(x, n - 1, order=1.5),
    "The Legendre polynomial: orthogonal on [-1, 1] with weight 1, and 1 at 1.")  # fmt: skip
hermite_polynomial_h = _define_polynomial("hermite_polynomial_h", lambda x: 2 * x,
    lambda k, x, now, before: 2 * (x * now - k * before),
    lambda x, n: 2 * n * hermite_polynomial_h(x, n - 1),
    "The physicists' Hermite polynomial: orthogonal with weight exp(-x^2).")  # fmt: skip
hermite_polynomial_he = _define_polynomial("hermite_polynomial_he", lambda x: x,
    lambda k, x, now, before: x * now - k * before,
    lambda x, n: n * hermite_polynomial_he(x, n - 1),
    "The probabilists' Hermite polynomial: orthogonal with weight exp(-x^2 / 2).")  # fmt: skip
laguerre_polynomial_l = _define_polynomial("laguerre_polynomial_l", lambda x: 1 - x,
    lambda k, x, now, before: ((2 * k + 1 - x) * now - k * before) / (k + 1),
    lambda x, n: -associated_laguerre(x, n - 1, order=1.0),
    "The Laguerre polynomial: orthogonal on [0, inf) with weight exp(-x).")  # fmt: skip
