"""`numpy.random` as it is: drawing has no derivative, and refuses tensors that require one."""

import numpy.random as _np_random

from retrograd.numpy._mirror import names

__all__ = names(_np_random)


def __getattr__(name: str) -> object:
    """NumPy's member of that name."""
    return getattr(_np_random, name)


def __dir__() -> list[str]:
    return dir(_np_random)
