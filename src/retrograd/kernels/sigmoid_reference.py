"""The reference implementation of the sigmoid."""

import numpy as np


def sigmoid(x):
    """Return 1 / (1 + exp(-x)) without overflow, by exponentials whose real parts are never positive."""
    if x.dtype.kind == "c":
        low = x.real < 0
        e = np.exp(np.where(low, x, -x))
        return np.where(low, e, np.ones((), x.dtype)) / (1 + e)
    with np.errstate(under="ignore"):
        e = np.exp(-np.abs(x))
    return np.maximum(e, x >= 0) / (1 + e)  # the larger is 1 or e
