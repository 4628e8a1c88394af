"""The formulas of optimizer steps: each returns the new parameter and the new state.

They use arithmetic and NumPy functions that tensors support too.  So the same formula defines the kernel, runs without
a compiler, and makes the step of tensors that no kernel updates: of other dtypes, nested, recorded or transformed.
"""

import numpy as np


def descent(p, g, sign, decay, far):
    """Return (p,) after a step of gradient descent: p decreases by far d, with d = sign g + decay p."""
    return (p - far * _downhill(p, g, sign, decay),)


def momentum(p, g, b, sign, decay, kept, taken, far, further):
    """Return (p, b) after a step of gradient descent with momentum; b sums d = sign g + decay p.

    b becomes kept b + taken d, and p decreases by far d + further b.
    """
    d = _downhill(p, g, sign, decay)
    b = b * kept + d * taken
    return p - _plus(further * b, far, d), b


def adam(p, g, m, v, sign, decay, left, beta1, beta2, rest1, rest2, eps, step):
    """Return (p, m, v) after Adam's step: m and v are running means of d = sign g + decay p and of its square.

    p becomes left p - step m / (sqrt(v) + eps); rest1 and rest2 are the weights of d next to the betas.
    """
    m, v = moments(_downhill(p, g, sign, decay), m, v, beta1, beta2, rest1, rest2)
    return _towards(p, left, m, v, eps, step), m, v


def amsgrad(p, g, m, v, largest, sign, decay, left, beta1, beta2, rest1, rest2, eps, step):
    """Return (p, m, v, largest) after the step of `adam` with the largest v so far in the divisor."""
    m, v = moments(_downhill(p, g, sign, decay), m, v, beta1, beta2, rest1, rest2)
    largest = np.maximum(largest, v)
    return _towards(p, left, m, largest, eps, step), m, v, largest


def moments(d, m, v, beta1, beta2, rest1, rest2):
    """Return the running means of d and of its square."""
    return m * beta1 + d * rest1, v * beta2 + d * d * rest2


def _downhill(p, g, sign, decay):
    return _plus(g if sign == 1 else -g, decay, p)


def _plus(x, factor, y):
    """Return x + factor y; a factor of 0 adds 0 for infinities too."""
    return x + factor * y if factor else x


def _towards(p, left, m, divisor, eps, step):
    return (p if left == 1 else p * left) - step * (m / (np.sqrt(divisor) + eps))
