"""`scipy.stats.poisson`, the Poisson distribution with mean mu."""

import math

from retrograd.interop.numpy_protocol.table import O, agreeing, floating
from retrograd.scipy._mirror import on_tensors, rest_of

_poisson = on_tensors("scipy.stats.poisson")


def _counted(k, mu, loc):
    """Return k - loc, and the mean, NaN if negative; both floating."""
    k, mu, loc = agreeing(floating(k), floating(mu), floating(loc))
    return k - loc, O.where(mu >= 0, mu, math.nan)


def _known(value, k, mu):
    """Return a value, or NaN if k or the mean is NaN."""
    return O.where(O.isnan(k + mu), math.nan, value)


@_poisson
def logpmf(k, mu, loc=0):
    """Return the log-probability of k; -inf unless k is a count."""
    k, mu = _counted(k, mu, loc)
    possible = O.logical_and(k >= 0, k == O.floor(k))
    known = O.where(possible, k, 0.0)
    value = O.special.xlogy(known, mu) - O.special.gammaln(known + 1) - mu
    return _known(O.where(possible, value, -math.inf), k, mu)


@_poisson
def pmf(k, mu, loc=0):
    """Return the probability of k."""
    return O.exp(logpmf(k, mu, loc))


@_poisson
def cdf(k, mu, loc=0):
    """Return the probability of k or less."""
    k, mu = _counted(k, mu, loc)
    known = O.where(k >= 0, O.floor(k), 0.0)
    return _known(O.where(k >= 0, O.special.gammaincc(known + 1, mu), 0.0), k, mu)


@_poisson
def sf(k, mu, loc=0):
    """Return the probability of more than k."""
    k, mu = _counted(k, mu, loc)
    known = O.where(k >= 0, O.floor(k), 0.0)
    return _known(O.where(k >= 0, O.special.gammainc(known + 1, mu), 1.0), k, mu)


@_poisson
def logcdf(k, mu, loc=0):
    """Return the logarithm of `cdf`."""
    return O.log(cdf(k, mu, loc))


@_poisson
def logsf(k, mu, loc=0):
    """Return the logarithm of `sf`."""
    return O.log(sf(k, mu, loc))


__getattr__, __dir__ = rest_of("scipy.stats.poisson")
