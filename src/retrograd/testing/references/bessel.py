"""Reference implementations of Bessel functions: their power series and integrals."""

import math

import numpy as np

from retrograd.testing.references.common import each, integral


def series(v, x, sign):
    """Return the sum of sign^k (x/2)^(2k + v) / (k! gamma(k + v + 1)); negative x only with integer v."""
    gamma = each(math.gamma)
    return sum(sign**k * (x / 2) ** (2 * k + v) / (math.factorial(k) * gamma(k + v + 1.0)) for k in range(40))


def jv(v, x):
    return series(v, x, -1)


def iv(v, x):
    return series(v, x, 1)


def yv(v, x):
    """Return Schlaefli's integral."""
    v, x = np.broadcast_arrays(v, x)
    v, x = v[..., None], x[..., None]
    near = integral(lambda t: np.sin(x * np.sin(t) - v * t), 0, math.pi)
    far = integral(lambda t: (np.exp(v * t) + np.exp(-v * t) * np.cos(v * math.pi)) * np.exp(-x * np.sinh(t)), 0, 7)
    return (near - far) / math.pi


def kv(v, x):
    v, x = np.broadcast_arrays(v, x)
    v, x = v[..., None], x[..., None]
    return integral(lambda t: np.exp(-x * np.cosh(t)) * np.cosh(v * t), 0, 7)


def spherical_jn(x, n):
    return np.sign(x) ** n * np.sqrt(math.pi / 2 / np.abs(x)) * jv(n + 0.5, np.abs(x))


AT_0 = (3 ** (-2 / 3) / math.gamma(2 / 3), -(3 ** (-1 / 3)) / math.gamma(1 / 3))  # of Ai and its derivative


def airy_ai(x, derivative=0):
    """Return the power series that solves y'' = x y."""
    coefficients = [*AT_0, 0.0]
    for k in range(3, 90):
        coefficients.append(coefficients[k - 3] / (k * (k - 1)))
    series = np.polynomial.Polynomial(coefficients)
    return series.deriv(derivative)(x) if derivative else series(x)


def bessel_j0(x):
    return jv(0, x)


def bessel_j1(x):
    return jv(1, x)


def bessel_y0(x):
    return yv(0, x)


def bessel_y1(x):
    return yv(1, x)


def ive(v, x):
    return np.exp(-np.abs(x)) * iv(v, x)


def kve(v, x):
    return np.exp(x) * kv(v, x)


def i0(x):
    return iv(0, x)


def i1(x):
    return iv(1, x)


def i0e(x):
    return np.exp(-np.abs(x)) * iv(0, x)


def i1e(x):
    return np.exp(-np.abs(x)) * iv(1, x)


def modified_bessel_k0(x):
    return kv(0, x)


def modified_bessel_k1(x):
    return kv(1, x)


def scaled_modified_bessel_k0(x):
    return np.exp(x) * kv(0, x)


def scaled_modified_bessel_k1(x):
    return np.exp(x) * kv(1, x)


def airy_ai_derivative(x):
    return airy_ai(x, 1)
