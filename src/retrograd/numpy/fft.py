"""`numpy.fft`, for arrays and tensors."""

import numpy.fft as _np_fft

from retrograd.numpy._mirror import names, reflected

__all__ = names(_np_fft)


def __getattr__(name: str) -> object:
    """NumPy's member of that name, looked up once."""
    member = reflected(_np_fft, name)
    globals()[name] = member
    return member


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(_np_fft)})
