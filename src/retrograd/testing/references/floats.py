"""Reference implementations of rounding, signs, scaled sums and comparison within tolerances."""

import math

import numpy as np


def rounded_quotient(a, b, rounding_mode):
    return np.floor(a / b) if rounding_mode == "floor" else np.trunc(a / b)


def clamp(x, min, max):
    x = x if min is None else np.where(x < min, min, x)
    return x if max is None else np.where(x > max, max, x)


frexp = np.vectorize(math.frexp, otypes=[float, int])


def divide(a, b, rounding_mode):
    return a / b if rounding_mode is None else rounded_quotient(a, b, rounding_mode)


def frexp_mantissa(x):
    return frexp(x)[0]


def frexp_exponent(x):
    return frexp(x)[1]
