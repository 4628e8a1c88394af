"""Conversion of arrays to the dtypes of `ml_dtypes` that only store numbers: floats of 8 bits, integers of 2 and 4."""

import numpy as np

from retrograd.core.dtype import stores_only


def convert(x, dtype):
    """Return an array in another dtype; x itself if it has that dtype."""
    if stores_only(dtype) and x.dtype != dtype:
        x = _LIMIT.get(dtype.name, np.asarray)(_computable(x))
    return x.astype(dtype, copy=False)


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
