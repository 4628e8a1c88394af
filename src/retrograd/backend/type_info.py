"""The limits of numeric dtypes: `rg.finfo`, `rg.iinfo`, and the check of a conversion."""

import math
from functools import lru_cache

import numpy as np

from retrograd.core.dtype import as_dtype, category, get_default_dtype, is_differentiable, is_extension
from retrograd.core.errors import OperandTypeError
from retrograd.foundation.lazy_imports import lazy_module

_IN_REPR = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")


class finfo:
    """The limits of a floating dtype (by default the default dtype) as Python numbers; of a complex one, its parts'.

    >>> finfo("float32").bits, finfo("float32").eps == 2.0**-23, finfo("float64").max
    (32, True, 1.7976931348623157e+308)
    """

    __slots__ = ("bits", "dtype", "eps", "max", "min", "resolution", "smallest_normal", "tiny")

    def __init__(self, dtype=None):
        dtype = get_default_dtype() if dtype is None else as_dtype(dtype)
        if not is_differentiable(dtype):
            raise TypeError(f"finfo: expected a floating or complex dtype, got {dtype}; for integers there is iinfo")
        known = _limits("finfo", dtype)
        self.bits, self.dtype = known.bits, str(known.dtype)
        self.eps = float(known.eps)
        self.resolution = 10.0 ** -int(-math.log10(self.eps))  # by the number of decimal digits it holds
        self.max, self.min = float(known.max), float(known.min)
        self.smallest_normal = self.tiny = float(known.smallest_normal)

    def __eq__(self, other):
        return isinstance(other, finfo) and self.dtype == other.dtype

    def __hash__(self):
        return hash(self.dtype)

    def __repr__(self):
        shown = [f"{name}={getattr(self, name):g}" for name in _IN_REPR]
        return f"finfo({', '.join(shown)}, dtype={self.dtype})"


class iinfo:
    """The limits of an integer dtype.

    >>> iinfo("uint8")
    iinfo(min=0, max=255, dtype=uint8)
    """

    __slots__ = ("bits", "dtype", "max", "min")

    def __init__(self, dtype):
        dtype = as_dtype(dtype)
        if category(dtype) != 1:
            raise TypeError(f"iinfo: expected an integer dtype, got {dtype}; for others there is finfo")
        known = _limits("iinfo", dtype)
        self.bits, self.dtype, self.max, self.min = known.bits, str(dtype), int(known.max), int(known.min)

    def __eq__(self, other):
        return isinstance(other, iinfo) and self.dtype == other.dtype

    def __hash__(self):
        return hash(self.dtype)

    def __repr__(self):
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"


def _limits(name, dtype):
    """Return what NumPy or `ml_dtypes` knows about a dtype."""
    return getattr(lazy_module("ml_dtypes") if is_extension(dtype) else np, name)(dtype)


def check_number_fits(name, value, dtype):
    """Raise RuntimeError for a Python float or complex number that a dtype cannot hold; other values are not checked.

    For complex numbers it is a TypeError too. Fractions are truncated, and numbers too large for float16 become
    infinite, as in PyTorch.
    """
    if (type(value) is float or type(value) is complex) and not _holds(dtype, value):
        words = f"{value}: value cannot be converted to type {dtype} without overflow"
        if value.imag and dtype.kind != "c":
            raise OperandTypeError(f"{name}: the value is complex, which {dtype} can't hold: {words}")
        raise RuntimeError(f"{name}: {words}")


def _holds(dtype, number):
    """Return whether a dtype can hold a number."""
    if dtype.kind in "iu":
        low, high = _integer_range(dtype)
        return number.imag == 0 and low <= number.real <= high
    if dtype.kind == "c":
        return dtype.itemsize > 8 or (_holds(_FLOAT32, number.real) and _holds(_FLOAT32, number.imag))
    return dtype.kind == "b" or (
        number.imag == 0 and (dtype != _FLOAT32 or abs(number.real) <= _MAX_FLOAT32 or not math.isfinite(number.real))
    )


_FLOAT32 = np.dtype("float32")
_MAX_FLOAT32 = float(np.finfo(_FLOAT32).max)


@lru_cache
def _integer_range(dtype):
    limits = np.iinfo(dtype)
    return limits.min, limits.max


def check_holds(name, array, dtype):
    """Raise if a dtype cannot hold values: complex ones if it is real, too large ones if it is an integer dtype.

    Fractions are truncated, and unsigned dtypes wrap negative values, as in PyTorch.
    """
    if array.dtype.kind == "c" and dtype.kind not in "bc":
        raise OperandTypeError(f"{name}: the value is complex, which {dtype} can't hold")
    if category(dtype) == 1 and array.size and array.dtype.kind in "iuf":
        limits = _limits("iinfo", dtype)
        low, high = int(limits.min) or -int(limits.max), int(limits.max)
        if not (array.min() >= low and array.max() <= high):  # also true of NaN
            raise RuntimeError(f"{name}: {array.min()} to {array.max()} can't be converted to {dtype} without overflow")
