"""`numpy.random` unchanged: draws have no derivative, and refuse tensors that require grad."""

import numpy.random as _np_random

from retrograd.numpy._mirror import names

__all__ = names(_np_random)


def __getattr__(name: str) -> object:
    """Return NumPy's member of that name."""
    return getattr(_np_random, name)


def __dir__() -> list[str]:
    return dir(_np_random)
