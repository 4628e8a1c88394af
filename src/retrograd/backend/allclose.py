"""Comparison of arrays up to rounding."""

import numpy as np


def repeats(whole, part):
    """Return whether an array equals another one, broadcast to its shape, up to rounding."""
    if part.dtype.kind not in "fc":
        return bool((whole == part).all())
    largest = np.abs(part[np.isfinite(part)]).max(initial=0)
    with np.errstate(invalid="ignore", over="ignore"):
        return bool(np.isclose(whole, part, rtol=0.0, atol=0.01 * largest, equal_nan=True).all())
