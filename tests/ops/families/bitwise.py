"""Reference implementations of integer operators: Python's own."""

import math

import numpy as np

ORACLES = {
    "gcd": np.vectorize(math.gcd),
    "lcm": np.vectorize(math.lcm),
    "bitwise_count": np.vectorize(lambda x: abs(int(x)).bit_count()),
}
