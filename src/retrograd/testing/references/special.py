"""Reference implementations of error functions, entropies and exponential integrals: Python's, series, integrals."""

import math
from statistics import NormalDist

import numpy as np

from retrograd.testing.references.common import each, integral


def exponential_series(x):
    """Return the sum of x^k / (k k!) over k from 1."""
    return sum(x**k / (k * math.factorial(k)) for k in range(1, 60))


def exp1(x):
    return -np.euler_gamma - np.log(x) - exponential_series(-x)


def expn(x, n):
    if n == 0:
        return np.exp(-x) / x
    return exp1(x) if n == 1 else (np.exp(-x) - x * expn(x, n - 1)) / (n - 1)


def sine_integral(x):
    return integral(lambda t: np.sin(x[..., None] * t) / t, 0, 1)


def cosine_integral(x):
    return np.euler_gamma + np.log(x) + integral(lambda t: (np.cos(x[..., None] * t) - 1) / t, 0, 1)


def sinc_derivative(x, order):
    """Return the derivative of sinc, the integral of cos(pi x t) over t from 0 to 1."""
    return integral(lambda t: (math.pi * t) ** order * np.cos(math.pi * x[..., None] * t + order * math.pi / 2), 0, 1)


def logit(x, eps=None):
    x = x if eps is None else np.minimum(np.maximum(x, eps), 1 - eps)
    return 2 * np.arctanh(2 * x - 1)


erfinv = each(lambda x: NormalDist().inv_cdf((x + 1) / 2) / math.sqrt(2))


erfcinv = each(lambda x: -NormalDist().inv_cdf(x / 2) / math.sqrt(2))


ndtr = each(NormalDist().cdf)


ndtri = each(NormalDist().inv_cdf)


log_ndtr = each(lambda x: math.log(NormalDist().cdf(x)))


def expi(x):
    return np.euler_gamma + np.log(x) + exponential_series(x)


def sici(x):
    return (sine_integral(x), cosine_integral(x))
