"""Conversion of arrays, also to the dtypes of `ml_dtypes` that only store numbers: floats of 8, integers of 4 bits."""

import numpy as np

from retrograd import kernels
from retrograd.core.dtype import stores_only

_LARGE = 1024  # elements, from which on a kernel converts faster than NumPy
# Kernels by the characters of two dtypes, and those of the dtypes that they read and write: bfloat16, "E", as its bits.
_CASTS = {
    "fe": (kernels.float_to_half, "f", "e"),
    "ef": (kernels.half_to_float, "e", "f"),
    "fE": (kernels.float_to_bfloat16, "f", "H"),
    "Ef": (kernels.bfloat16_to_float, "H", "f"),
}


def convert(x, dtype):
    """Return an array in another dtype; x itself if it has that dtype."""
    if type(x) is np.ndarray and x.size >= _LARGE and x.itemsize + dtype.itemsize == 6:
        out = _convert_halves(x, dtype)
        if out is not None:
            return out
    if stores_only(dtype) and x.dtype != dtype:
        x = _LIMIT.get(dtype.name, np.asarray)(_computable(x))
    return x.astype(dtype, copy=False)


def _convert_halves(x, dtype):
    """Return float32 as a format of 16 bits, or the reverse, by a kernel; None if there is none for the dtypes."""
    kernel, read, written = _CASTS.get(x.dtype.char + dtype.char, (None, "", ""))
    if kernel is None or not (x.dtype.isnative and dtype.isnative):
        return None
    out = kernel(x if x.dtype.char == read else x.view(read))
    return out if dtype.char == written else out.view(dtype)


def _computable(x):
    """Return x, in float32 if it has a dtype that NumPy cannot compute with."""
    return x.astype(np.float32) if stores_only(x.dtype) else x


def _saturate(x):
    return np.clip(x, -448.0, 448.0)


def _drop_sign(x):
    return np.maximum(np.abs(x), np.float32(2.0**-127))


# PyTorch rounds numbers beyond the largest one to it, where `ml_dtypes` gives NaN; and it ignores the sign where the
# format has none.
_LIMIT = {"float8_e4m3fn": _saturate, "float8_e8m0fnu": _drop_sign}


def as_strided(x, shape, strides, writeable=True):
    """Return a view of an array by shape and strides in bytes; NumPy's function fails for float8_e5m2."""
    if not stores_only(x.dtype):
        return np.lib.stride_tricks.as_strided(x, shape, strides, writeable=writeable)
    return np.lib.stride_tricks.as_strided(x.view(np.uint8), shape, strides, writeable=writeable).view(x.dtype)
