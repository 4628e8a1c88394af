"""Further continuous distributions of `scipy.stats`, each from its functions in standard form."""

import math
from typing import Any

from retrograd.interop.numpy_protocol.table import O
from retrograd.scipy.stats._continuous import Continuous

_POSITIVE = (0.0, math.inf)
_LOG_2PI = math.log(2 * math.pi)


def _log_normal_density(z: Any) -> Any:
    return -z * z / 2 - _LOG_2PI / 2


expon = Continuous(
    "expon", logpdf=lambda z: -z, cdf=lambda z: -O.expm1(-z), sf=lambda z: O.exp(-z), logsf=lambda z: -z,
    support=_POSITIVE, middle=1.0,
)  # fmt: skip
uniform = Continuous(
    "uniform", logpdf=lambda z: z * 0.0, cdf=lambda z: z, sf=lambda z: 1 - z, support=(0.0, 1.0), middle=0.5
)
laplace = Continuous(
    "laplace",
    logpdf=lambda z: -O.abs(z) - math.log(2),
    cdf=lambda z: O.where(z > 0, 1 - O.exp(-O.abs(z)) / 2, O.exp(-O.abs(z)) / 2),
    sf=lambda z: O.where(z > 0, O.exp(-O.abs(z)) / 2, 1 - O.exp(-O.abs(z)) / 2),
)
logistic = Continuous(
    "logistic",
    logpdf=lambda z: -O.abs(z) - 2 * O.log1p(O.exp(-O.abs(z))),
    cdf=lambda z: O.sigmoid(z),
    sf=lambda z: O.sigmoid(-z),
    logcdf=lambda z: -O.logaddexp(-z, O.zeros_like(z)),
    logsf=lambda z: -O.logaddexp(z, O.zeros_like(z)),
)
cauchy = Continuous(
    "cauchy",
    logpdf=lambda z: -math.log(math.pi) - O.log1p(z * z),
    cdf=lambda z: O.atan2(O.ones_like(z), -z) / math.pi,
    sf=lambda z: O.atan2(O.ones_like(z), z) / math.pi,
)
lognorm = Continuous(
    "lognorm", "s",
    logpdf=lambda z, s: _log_normal_density(O.log(z) / s) - O.log(s * z),
    cdf=lambda z, s: O.special.ndtr(O.log(z) / s),
    sf=lambda z, s: O.special.ndtr(-O.log(z) / s),
    logcdf=lambda z, s: O.special.log_ndtr(O.log(z) / s),
    logsf=lambda z, s: O.special.log_ndtr(-O.log(z) / s),
    support=_POSITIVE, middle=1.0, open_ends=True,
)  # fmt: skip
weibull_min = Continuous(
    "weibull_min", "c",
    logpdf=lambda z, c: O.log(c) + O.special.xlogy(c - 1, z) - z**c,
    cdf=lambda z, c: -O.expm1(-(z**c)), sf=lambda z, c: O.exp(-(z**c)), logsf=lambda z, c: -(z**c),
    support=_POSITIVE, middle=1.0,
)  # fmt: skip
pareto = Continuous(
    "pareto", "b",
    logpdf=lambda z, b: O.log(b) - (b + 1) * O.log(z),
    cdf=lambda z, b: -O.expm1(-b * O.log(z)), sf=lambda z, b: O.exp(-b * O.log(z)), logsf=lambda z, b: -b * O.log(z),
    support=(1.0, math.inf), middle=2.0,
)  # fmt: skip
invgamma = Continuous(
    "invgamma", "a",
    logpdf=lambda z, a: -(a + 1) * O.log(z) - O.special.gammaln(a) - 1 / z,
    cdf=lambda z, a: O.special.gammaincc(a, 1 / z), sf=lambda z, a: O.special.gammainc(a, 1 / z),
    support=_POSITIVE, middle=1.0, open_ends=True,
)  # fmt: skip
gumbel_r = Continuous(
    "gumbel_r", logpdf=lambda z: -z - O.exp(-z), cdf=lambda z: O.exp(-O.exp(-z)), sf=lambda z: -O.expm1(-O.exp(-z)),
    logcdf=lambda z: -O.exp(-z),
)  # fmt: skip
gumbel_l = Continuous(
    "gumbel_l", logpdf=lambda z: z - O.exp(z), cdf=lambda z: -O.expm1(-O.exp(z)), sf=lambda z: O.exp(-O.exp(z)),
    logsf=lambda z: -O.exp(z),
)  # fmt: skip
halfnorm = Continuous(
    "halfnorm", logpdf=lambda z: math.log(2 / math.pi) / 2 - z * z / 2,
    cdf=lambda z: O.special.erf(z / math.sqrt(2)), sf=lambda z: O.special.erfc(z / math.sqrt(2)),
    support=_POSITIVE, middle=1.0,
)  # fmt: skip
halfcauchy = Continuous(
    "halfcauchy", logpdf=lambda z: math.log(2 / math.pi) - O.log1p(z * z), cdf=lambda z: 2 / math.pi * O.atan(z),
    sf=lambda z: 2 / math.pi * O.atan(1 / z), support=_POSITIVE, middle=1.0,
)  # fmt: skip
rayleigh = Continuous(
    "rayleigh", logpdf=lambda z: O.log(z) - z * z / 2, cdf=lambda z: -O.expm1(-z * z / 2),
    sf=lambda z: O.exp(-z * z / 2), logsf=lambda z: -z * z / 2, support=_POSITIVE, middle=1.0,
)  # fmt: skip
maxwell = Continuous(
    "maxwell", logpdf=lambda z: math.log(2 / math.pi) / 2 + 2 * O.log(z) - z * z / 2,
    cdf=lambda z: O.special.gammainc(1.5, z * z / 2), sf=lambda z: O.special.gammaincc(1.5, z * z / 2),
    support=_POSITIVE, middle=1.0,
)  # fmt: skip
chi = Continuous(
    "chi", "df",
    logpdf=lambda z, df: O.special.xlogy(df - 1, z) - z * z / 2 - df / 2 * math.log(2) + math.log(2)
    - O.special.gammaln(df / 2),
    cdf=lambda z, df: O.special.gammainc(df / 2, z * z / 2), sf=lambda z, df: O.special.gammaincc(df / 2, z * z / 2),
    support=_POSITIVE, middle=1.0,
)  # fmt: skip


def _log_f_density(z: Any, m: Any, n: Any) -> Any:
    sizes = m / 2 * O.log(m) + n / 2 * O.log(n) - O.special.betaln(m / 2, n / 2)
    return sizes + O.special.xlogy(m / 2 - 1, z) - (m + n) / 2 * O.log(n + m * z)


f = Continuous(
    "f", "dfn dfd",
    logpdf=_log_f_density,
    cdf=lambda z, m, n: O.special.betainc(m / 2, n / 2, m * z / (n + m * z)),
    sf=lambda z, m, n: O.special.betainc(n / 2, m / 2, n / (n + m * z)),
    support=_POSITIVE, middle=1.0,
)  # fmt: skip
vonmises = Continuous(
    "vonmises", "kappa",
    logpdf=lambda z, kappa: kappa * (O.cos(z) - 1) - _LOG_2PI - O.log(O.special.i0e(kappa)),
)  # fmt: skip
skewnorm = Continuous(
    "skewnorm", "a", logpdf=lambda z, a: math.log(2) + _log_normal_density(z) + O.special.log_ndtr(a * z)
)


def _inverse_gaussian_tails(z: Any, mu: Any) -> tuple[Any, Any]:
    """Return the two terms of the distribution function."""
    root = 1 / O.sqrt(z)
    return root * (z / mu - 1), 2 / mu + O.special.log_ndtr(-root * (z + mu) / mu)


def _inverse_gaussian_cdf(z: Any, mu: Any) -> Any:
    first, second = _inverse_gaussian_tails(z, mu)
    return O.special.ndtr(first) + O.exp(second)


def _inverse_gaussian_sf(z: Any, mu: Any) -> Any:
    first, second = _inverse_gaussian_tails(z, mu)
    return O.special.ndtr(-first) - O.exp(second)


invgauss = Continuous(
    "invgauss", "mu",
    logpdf=lambda z, mu: -_LOG_2PI / 2 - 1.5 * O.log(z) - ((z - mu) / mu) ** 2 / (2 * z),
    cdf=_inverse_gaussian_cdf, sf=_inverse_gaussian_sf, support=_POSITIVE, middle=1.0, open_ends=True,
)  # fmt: skip


def _gennorm_tail(z: Any, beta: Any) -> Any:
    """Return half of the probability beyond |z|."""
    return O.special.gammaincc(1 / beta, O.abs(z) ** beta) / 2


gennorm = Continuous(
    "gennorm", "beta",
    logpdf=lambda z, beta: O.log(beta / 2) - O.special.gammaln(1 / beta) - O.abs(z) ** beta,
    cdf=lambda z, beta: O.where(z > 0, 1 - _gennorm_tail(z, beta), _gennorm_tail(z, beta)),
    sf=lambda z, beta: O.where(z > 0, _gennorm_tail(z, beta), 1 - _gennorm_tail(z, beta)),
)  # fmt: skip


def _log_mass(a: Any, b: Any) -> Any:
    """Return the logarithm of the normal probability between a and b, from the tail that is nearer."""
    right = a > 0
    low, high = O.where(right, -b, a), O.where(right, -a, b)
    top, bottom = O.special.log_ndtr(high), O.special.log_ndtr(low)
    return top + O.log1p(-O.exp(bottom - top))


def _truncated(function: Any, below: float, above: float) -> Any:
    """Return a function of (z, a, b) with its values on both sides of the support from a to b."""

    def of_z(z: Any, a: Any, b: Any) -> Any:
        inside = O.logical_and(z >= a, z <= b)
        middle = O.where(inside, z, (O.clamp(a, -1e3, 1e3) + O.clamp(b, -1e3, 1e3)) / 2)
        return O.where(inside, function(middle, a, b), O.where(z < a, below, above))

    return of_z


truncnorm = Continuous(
    "truncnorm", "a b",
    logpdf=_truncated(lambda z, a, b: _log_normal_density(z) - _log_mass(a, b), -math.inf, -math.inf),
    cdf=_truncated(lambda z, a, b: O.exp(_log_mass(a, z) - _log_mass(a, b)), 0.0, 1.0),
    sf=_truncated(lambda z, a, b: O.exp(_log_mass(z, b) - _log_mass(a, b)), 1.0, 0.0),
)  # fmt: skip
