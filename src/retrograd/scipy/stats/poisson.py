"""`scipy.stats.poisson`, the Poisson distribution with mean mu."""

import math

from retrograd.interop.numpy_protocol.table import O, as_floating, promote_operands
from retrograd.scipy._mirror import fallback_members, on_tensors

_poisson = on_tensors("scipy.stats.poisson")


def _standardize(k, mu, loc):
    """Return k - loc, and the mean, NaN if negative; both floating."""
    k, mu, loc = promote_operands(as_floating(k), as_floating(mu), as_floating(loc))
    return k - loc, O.where(mu >= 0, mu, math.nan)


def _propagate_nan(value, k, mu):
    """Return a value, or NaN if k or the mean is NaN."""
    return O.where(O.isnan(k + mu), math.nan, value)


@_poisson
def logpmf(k, mu, loc=0):
    """Return the log-probability of k; -inf unless k is a count."""
    k, mu = _standardize(k, mu, loc)
    possible = O.logical_and(k >= 0, k == O.floor(k))
    known = O.where(possible, k, 0.0)
    value = O.special.xlogy(known, mu) - O.special.gammaln(known + 1) - mu
    return _propagate_nan(O.where(possible, value, -math.inf), k, mu)


@_poisson
def pmf(k, mu, loc=0):
    """Return the probability of k."""
    return O.exp(logpmf(k, mu, loc))


@_poisson
def cdf(k, mu, loc=0):
    """Return the probability of k or less."""
    k, mu = _standardize(k, mu, loc)
    known = O.where(k >= 0, O.floor(k), 0.0)
    return _propagate_nan(O.where(k >= 0, O.special.gammaincc(known + 1, mu), 0.0), k, mu)


@_poisson
def sf(k, mu, loc=0):
    """Return the probability of more than k."""
    k, mu = _standardize(k, mu, loc)
    known = O.where(k >= 0, O.floor(k), 0.0)
    return _propagate_nan(O.where(k >= 0, O.special.gammainc(known + 1, mu), 1.0), k, mu)


@_poisson
def logcdf(k, mu, loc=0):
    """Return the logarithm of `cdf`."""
    return O.log(cdf(k, mu, loc))


@_poisson
def logsf(k, mu, loc=0):
    """Return the logarithm of `sf`."""
    return O.log(sf(k, mu, loc))


__getattr__, __dir__ = fallback_members("scipy.stats.poisson")
