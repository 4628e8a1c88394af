"""Discrete Fourier transforms: NumPy's, or SciPy's where those are faster."""

from functools import cache

import numpy as np

from retrograd.kernels.host_values import on_host

__all__ = ["fftn", "hfft", "ifftn", "ihfft", "irfft", "rfft"]

MANY = 1024  # elements from which on the transforms of SciPy are worth its import


@cache
def scipy_fft():
    """Return the module scipy.fft, imported at the first call; None without SciPy."""
    try:
        import scipy.fft
    except ImportError:
        return None
    return scipy.fft


def _transform(name):
    """Return NumPy's transform of that name, or SciPy's of single precision: it transforms several rows at a time."""

    def transform(x, *args, **params):
        library = scipy_fft() if on_host and x.size >= MANY and x.dtype.char in "fF" else None
        return getattr(library or np.fft, name)(x, *args, **params)

    return transform


fftn, ifftn = _transform("fftn"), _transform("ifftn")
rfft, irfft, hfft, ihfft = _transform("rfft"), _transform("irfft"), _transform("hfft"), _transform("ihfft")
