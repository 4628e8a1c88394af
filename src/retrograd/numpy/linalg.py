"""`numpy.linalg`, for arrays and tensors."""

import numpy.linalg as _np_linalg

from retrograd.numpy._mirror import names, reflected

__all__ = names(_np_linalg)


def __getattr__(name: str) -> object:
    """NumPy's member of that name, looked up once."""
    member = reflected(_np_linalg, name)
    globals()[name] = member
    return member


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(_np_linalg)})
