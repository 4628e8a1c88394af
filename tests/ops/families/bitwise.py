"""Reference implementations of integer operators: Python's own."""

import math

import numpy as np

ORACLES = {
    "bitwise_left_shift": lambda a, b: a * 2**b,
    "bitwise_right_shift": lambda a, b: np.floor(a / 2**b),
    "gcd": np.vectorize(math.gcd),
    "lcm": np.vectorize(math.lcm),
    "bitwise_count": np.vectorize(lambda x: abs(int(x)).bit_count()),
}
