"""Reference implementations of rounding, signs, scaled sums and comparison within tolerances."""

import math

import numpy as np


def rounded_quotient(a, b, rounding_mode):
    return np.floor(a / b) if rounding_mode == "floor" else np.fix(a / b)


def clamped(x, min, max):
    x = x if min is None else np.where(x < min, min, x)
    return x if max is None else np.where(x > max, max, x)


frexp = np.vectorize(math.frexp, otypes=[float, int])

ORACLES = {
    "rounded_quotient": rounded_quotient,
    "divide": lambda a, b, rounding_mode: a / b if rounding_mode is None else rounded_quotient(a, b, rounding_mode),
    "frexp": frexp,
    "frexp_mantissa": lambda x: frexp(x)[0],
    "frexp_exponent": lambda x: frexp(x)[1],
    "nextafter": np.vectorize(math.nextafter),
    "clamp_numbers": clamped,
    "clamp_tensors": clamped,
}
