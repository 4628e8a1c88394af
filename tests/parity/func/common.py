"""Helpers of the parity cases of transforms: each case is a function of m, which is retrograd or PyTorch."""

import numpy as np


def x(m, *shape, seed=1, dtype="float64"):
    """Return random values between -1 and 1."""
    values = np.random.default_rng(seed).uniform(-1, 1, shape)
    if dtype.startswith("complex"):
        values = values + 1j * np.random.default_rng(seed + 100).uniform(-1, 1, shape)
    return m.tensor(values.tolist(), dtype=getattr(m, dtype))


def integers(m, *shape, dtype="int64"):
    """Return integers from 0."""
    return m.arange(int(np.prod(shape)), dtype=getattr(m, dtype)).reshape(shape)


def cube(v):
    """Compute a scalar function."""
    return (v**3).sum()


def mixing(m):
    """Compute a function of a vector that mixes its elements."""
    return lambda v: m.sin(v) * v.sum() + v[0] * v
