"""The gamma function and its family: logarithms, derivatives, incomplete integrals, beta functions."""

import math

from retrograd.core import Internal, Tensor, op, xp
from retrograd.core.dtype import is_floating
from retrograd.foundation.lazy_imports import add_attribute
from retrograd.ops.create import arange, as_tensor
from retrograd.ops.family import Composite, Pointwise, cast_to, zero_cotangent
from retrograd.ops.pointwise import POSITIVE, exp, log, neg, where
from retrograd.ops.reduce import sum as sum_over
from retrograd.ops.special import Special, special, xlogy
from retrograd.ops.view import unsqueeze

# ---------------------------------------------------------------------------------- gamma and its logarithm

lgamma = special("lgamma(Tensor x) -> Tensor", xp.gammaln,
    "Logarithm of |gamma(x)|; infinite at 0 and the negative integers.",
    vjp=lambda g, x: g * digamma(x), domain=POSITIVE, aliases="special.gammaln",
    oracle=lambda np, x: np.vectorize(math.lgamma, otypes=[float])(x))  # fmt: skip
digamma = special("digamma(Tensor x) -> Tensor", xp.psi,
    "Derivative of `lgamma`; NaN at the negative integers, infinite at 0.",
    vjp=lambda g, x: g * polygamma(1, x), domain=POSITIVE, aliases="special.digamma special.psi",
    oracle="retrograd.testing.references.gamma.digamma")  # fmt: skip
gamma = special("special.gamma(Tensor x) -> Tensor", xp.gamma,
    "Gamma function: (x - 1)! for the integers, NaN at the negative ones.",
    vjp=lambda g, x, out: g * (out * digamma(x)), domain=POSITIVE,
    oracle=lambda np, x: np.vectorize(math.gamma, otypes=[float])(x))  # fmt: skip
rgamma = special("special.rgamma(Tensor x) -> Tensor", xp.rgamma,
    "1 / gamma(x), which is 0 at 0 and the negative integers, where the derivative is not defined here.",
    vjp=lambda g, x, out: g * (-out * digamma(x)), domain=POSITIVE,
    oracle=lambda np, x: np.vectorize(lambda x: 1 / math.gamma(x), otypes=[float])(x))  # fmt: skip
gammasgn = special("special.gammasgn(Tensor x) -> Tensor", xp.gammasgn,
    "Sign of gamma(x), -1 or 1; its derivative is 0.",
    vjp=zero_cotangent,
    oracle=lambda np, x: np.vectorize(lambda x: math.copysign(1, math.gamma(x)), otypes=[float])(x))  # fmt: skip


@op("polygamma(int n, Tensor x) -> Tensor")
class polygamma(Special, method=False, aliases="special.polygamma"):
    """Derivative of `digamma` of order n, at least 0.

    The method is `x.polygamma(n)`, as in PyTorch.

    >>> import retrograd as rg
    >>> round(rg.polygamma(1, rg.tensor([1.0])).item(), 4)  # pi^2 / 6
    1.6449
    """

    def impl(xp, x, *, n):
        if n < 0:
            raise RuntimeError(f"polygamma: n must be at least 0, got {n}")
        return xp.polygamma(x, n)

    def vjp_x(g, x, n):
        return g * polygamma(n + 1, x)

    oracle = "retrograd.testing.references.gamma.polygamma"

    def samples(r):
        yield (r(3, 2, within=(1.0, 3.0)),), {"n": 1}
        yield (r(4, within=(1.0, 3.0)),), {"n": 0}
        yield (r(4, within=(1.0, 3.0)),), {"n": 3}

    def errors(r):
        yield (r(2),), {"n": -1}, RuntimeError, "polygamma: n must be at least 0, got -1"


def _polygamma(x, n) -> Tensor:
    """The derivative of digamma of order n: `polygamma(n, x)`."""
    return polygamma(n, x)


add_attribute(Tensor, "polygamma", _polygamma)


@op("mvlgamma(Tensor x, int p) -> Tensor")
class mvlgamma(Composite, in_place=True, aliases="special.multigammaln"):
    """Logarithm of the multivariate gamma function of dimension p at x, which is (degrees of freedom) / 2.

    It is finite for x above (p - 1) / 2.
    """

    def compose(x, *, p):
        if p < 1:
            raise RuntimeError(f"mvlgamma: p must be at least 1, got {p}")
        halves = arange(p, dtype=(x + 0.0).dtype) / 2
        return sum_over(lgamma(unsqueeze(x, -1) - halves), -1) + p * (p - 1) / 4 * math.log(math.pi)

    def oracle(np, x, p):
        return p * (p - 1) / 4 * math.log(math.pi) + sum(np.vectorize(math.lgamma)(x - j / 2) for j in range(p))

    def samples(r):
        yield (r(3, 2, within=(2.0, 4.0)),), {"p": 3}
        yield (r(within=(0.5, 4.0)),), {"p": 1}

    def errors(r):
        yield (r(2),), {"p": 0}, RuntimeError, "mvlgamma: p must be at least 1, got 0"


# --------------------------------------------------------------------------------------- incomplete integrals


def _gamma_density(a, x):
    """Return x^(a - 1) exp(-x) / gamma(a)."""
    return exp(xlogy(a - 1, x) - x - lgamma(_cast_parameter(x, a)))


def _cast_parameter(x, a):
    """Return a parameter, which may be integers or a number, in the precision of x."""
    if not hasattr(a, "dtype"):
        return as_tensor(a, dtype=x.dtype)
    return a if is_floating(a.dtype) else cast_to(a, x.dtype)


@op("gamma_cdf_derivative(Tensor alpha, Tensor x, int order=1) -> Tensor")
class gamma_cdf_derivative(Internal, Pointwise, promotion="float", in_place=False):
    """The derivative of an order, by alpha, of the gamma distribution function at x, over the density at x.

    Minus that of order 1 is the derivative of a sample by alpha, with its value of the distribution function fixed.
    NaN where x is so improbable that the tail beyond it underflows.
    """

    def impl(xp, alpha, x, *, order):
        if x.dtype.kind == "c":
            raise TypeError("gamma_cdf_derivative: complex numbers are not supported")
        return xp.gamma_cdf_derivative(alpha, x, order)

    def vjp_alpha(g, alpha, x, out, order):
        return g * (gamma_cdf_derivative(alpha, x, order + 1) - out * (log(x) - digamma(alpha)))

    def vjp_x(g, alpha, x, out, order):
        return g * (_density_derivative(alpha, x, order) - out * ((alpha - 1) / x - 1))

    oracle = "retrograd.testing.references.distributions.gamma_cdf_derivative"

    def samples(r):
        yield (r(3, within=(0.3, 4.0)), r(3, within=(0.2, 3.0))), {}
        yield (r(2, 1, within=(0.5, 9.0)), r(3, within=(0.5, 9.0))), {}


def _density_derivative(alpha, x, order):
    """Return the derivative of an order, by alpha, of the gamma density at x, over the density itself."""
    slopes = [log(x) - digamma(alpha), *(neg(polygamma(k, alpha)) for k in range(1, order))]  # of its logarithm
    derivatives = [1.0]
    for n in range(order):
        derivatives.append(sum(math.comb(n, k) * derivatives[n - k] * slopes[k] for k in range(n + 1)))
    return derivatives[-1]


def _distribution_slope(a, x):
    """Return the derivative of `igamma` by a; 0 where the density underflows, in the tails."""
    density = _gamma_density(a, x)
    slope = gamma_cdf_derivative(_cast_parameter(x, a), x) * density
    return where(density == 0, density, slope)


def _incomplete_samples(r):
    yield (r(2, 1, within=(0.3, 4.0)), r(3, within=POSITIVE)), {}
    yield (r.ints(4, (4, 1)) + 1, r(3, within=POSITIVE)), {}
    yield (0.5, r(3, within=POSITIVE)), {}


igamma = special("igamma(Tensor a, Tensor x) -> Tensor", xp.gammainc,
    "Regularized lower incomplete gamma function: the gamma distribution function of shape a at x.",
    vjp_a=lambda g, a, x: g * _distribution_slope(a, x), vjp_x=lambda g, a, x: g * _gamma_density(a, x),
    samples=_incomplete_samples,
    aliases="special.gammainc", snapshots="a", oracle="retrograd.testing.references.gamma.igamma")  # fmt: skip
igammac = special("igammac(Tensor a, Tensor x) -> Tensor", xp.gammaincc,
    "Regularized upper incomplete gamma function: 1 - igamma(a, x), accurate where that is small.",
    vjp_a=lambda g, a, x: g * -_distribution_slope(a, x), vjp_x=lambda g, a, x: g * -_gamma_density(a, x),
    samples=_incomplete_samples,
    aliases="special.gammaincc", snapshots="a", oracle="retrograd.testing.references.gamma.igammac")  # fmt: skip


# --------------------------------------------------------------------------------------------------- beta

betaln = special("special.betaln(Tensor a, Tensor b) -> Tensor", xp.betaln,
    "Logarithm of |beta(a, b)|.",
    vjp_a=lambda g, a, b: g * (digamma(a) - digamma(a + b)),
    vjp_b=lambda g, a, b: g * (digamma(b) - digamma(a + b)), domain=POSITIVE,
    oracle="retrograd.testing.references.gamma.betaln")  # fmt: skip
beta = special("special.beta(Tensor a, Tensor b) -> Tensor", xp.beta,
    "Beta function: gamma(a) gamma(b) / gamma(a + b).",
    vjp_a=lambda g, a, b, out: g * (out * (digamma(a) - digamma(a + b))),
    vjp_b=lambda g, a, b, out: g * (out * (digamma(b) - digamma(a + b))), domain=POSITIVE,
    oracle="retrograd.testing.references.gamma.beta")  # fmt: skip
