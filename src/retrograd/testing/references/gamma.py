"""Reference implementations of gamma functions: Python's own, series, and the Euler-Maclaurin formula."""

import math

import numpy as np

from retrograd.testing.references.common import each, integral


def digamma(x):
    """Return digamma by Gauss's integral at x + 5, where it is smooth, and the recurrence back."""
    far = integral(lambda t: (1 - t ** (x[..., None] + 4)) / (1 - t), 0, 1) - np.euler_gamma
    return far - sum(1 / (x + k) for k in range(5))


def zeta(x, q):
    """Return the first 20 terms, and the rest as an integral with corrections."""
    end = q + 20
    rest = end ** (1 - x) / (x - 1) + end**-x / 2 + x * end ** (-x - 1) / 12
    rest -= x * (x + 1) * (x + 2) * end ** (-x - 3) / 720
    rest += x * (x + 1) * (x + 2) * (x + 3) * (x + 4) * end ** (-x - 5) / 30240
    return sum((q + k) ** -x for k in range(20)) + rest


def polygamma(x, n):
    return digamma(x) if n == 0 else (-1) ** (n + 1) * math.factorial(n) * zeta(n + 1, x)


def igamma(a, x):
    """Return x^a exp(-x) times the sum of x^k / gamma(a + k + 1)."""
    term, total = np.exp(a * np.log(x) - x) / each(math.gamma)(a + 1), 0.0
    for k in range(1, 100):
        total, term = total + term, term * x / (a + k)
    return total


def beta(a, b):
    gamma = each(math.gamma)
    return gamma(a) * gamma(b) / gamma(a + b)


def betainc(a, b, x):
    """Return the hypergeometric series."""
    term, total = x**a * (1 - x) ** b / (a * beta(a, b)), 0.0
    for k in range(1500):
        total, term = total + term, term * x * (a + b + k) / (a + 1 + k)
    return total


def igammac(a, x):
    return 1 - igamma(a, x)


def betaln(a, b):
    return np.log(beta(a, b))
