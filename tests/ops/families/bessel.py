"""Reference implementations of Bessel functions: their power series and integrals."""

import math

import numpy as np

from .special import each, integral


def series(v, x, sign):
    """Return the sum of sign^k (x/2)^(2k + v) / (k! gamma(k + v + 1)); negative x only with integer v."""
    gamma = each(math.gamma)
    return sum(sign**k * (x / 2) ** (2 * k + v) / (math.factorial(k) * gamma(k + v + 1.0)) for k in range(40))


def first(v, x):
    return series(v, x, -1)


def modified(v, x):
    return series(v, x, 1)


def second(v, x):
    """Return Schlaefli's integral."""
    v, x = np.broadcast_arrays(v, x)
    v, x = v[..., None], x[..., None]
    near = integral(lambda t: np.sin(x * np.sin(t) - v * t), 0, math.pi)
    far = integral(lambda t: (np.exp(v * t) + np.exp(-v * t) * np.cos(v * math.pi)) * np.exp(-x * np.sinh(t)), 0, 7)
    return (near - far) / math.pi


def modified_second(v, x):
    v, x = np.broadcast_arrays(v, x)
    v, x = v[..., None], x[..., None]
    return integral(lambda t: np.exp(-x * np.cosh(t)) * np.cosh(v * t), 0, 7)


def spherical(x, n):
    return np.sign(x) ** n * np.sqrt(math.pi / 2 / np.abs(x)) * first(n + 0.5, np.abs(x))


AT_0 = (3 ** (-2 / 3) / math.gamma(2 / 3), -(3 ** (-1 / 3)) / math.gamma(1 / 3))  # of Ai and its derivative


def airy(x, derivative=0):
    """Return the power series that solves y'' = x y."""
    coefficients = [*AT_0, 0.0]
    for k in range(3, 90):
        coefficients.append(coefficients[k - 3] / (k * (k - 1)))
    series = np.polynomial.Polynomial(coefficients)
    return series.deriv(derivative)(x) if derivative else series(x)


ORACLES = {
    "special.jv": first,
    "special.yv": second,
    "special.bessel_j0": lambda x: first(0, x),
    "special.bessel_j1": lambda x: first(1, x),
    "special.bessel_y0": lambda x: second(0, x),
    "special.bessel_y1": lambda x: second(1, x),
    "special.iv": modified,
    "special.ive": lambda v, x: np.exp(-np.abs(x)) * modified(v, x),
    "special.kv": modified_second,
    "special.kve": lambda v, x: np.exp(x) * modified_second(v, x),
    "i0": lambda x: modified(0, x),
    "special.i1": lambda x: modified(1, x),
    "special.i0e": lambda x: np.exp(-np.abs(x)) * modified(0, x),
    "special.i1e": lambda x: np.exp(-np.abs(x)) * modified(1, x),
    "special.modified_bessel_k0": lambda x: modified_second(0, x),
    "special.modified_bessel_k1": lambda x: modified_second(1, x),
    "special.scaled_modified_bessel_k0": lambda x: np.exp(x) * modified_second(0, x),
    "special.scaled_modified_bessel_k1": lambda x: np.exp(x) * modified_second(1, x),
    "special.spherical_jn": spherical,
    "special.airy_ai": airy,
    "airy_ai_slope": lambda x: airy(x, 1),
}
