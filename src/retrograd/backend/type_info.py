"""The limits of numeric dtypes: `rg.finfo`, `rg.iinfo`, and the check of a conversion."""

import math
from functools import lru_cache

import numpy as np

from retrograd.core.dtype import (
    as_dtype,
    category,
    float32,
    get_default_dtype,
    is_differentiable,
    is_extension,
    is_half,
    real_of,
    stores_only,
)
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
    """Raise RuntimeError for a Python number beyond the range of a dtype; values of other types are not checked.

    For complex numbers it is a TypeError too. Fractions are truncated, unsigned dtypes wrap negative integers, and
    infinities fit floating dtypes, as in PyTorch.
    """
    kind = type(value)
    if (kind is float or kind is int) and 0 <= value <= 127:
        return  # most numbers: all dtypes hold them
    if (kind is float or kind is int or kind is complex) and not _holds(dtype, value):
        words = f"{value}: value cannot be converted to type {dtype} without overflow"
        if value.imag and dtype.kind != "c":
            raise OperandTypeError(f"{name}: the value is complex, which {dtype} can't hold: {words}")
        raise RuntimeError(f"{name}: {words}")


def check_factor_fits(name, value, dtype):
    """Raise as `check_number_fits` for a number that operators on half precision use in float32."""
    check_number_fits(name, value, float32 if is_half(dtype) else dtype)


def check_element_fits(name, value, dtype):
    """Raise as `check_number_fits` for a number that becomes one element: infinite if too large for half precision."""
    if not is_half(dtype):
        check_number_fits(name, value, dtype)


def _holds(dtype, number):
    """Return whether a dtype can hold a number."""
    kind = dtype.kind
    if kind == "b":
        return True
    if kind == "c":
        parts = _limits_of_numbers(real_of(dtype))
        return _is_within(parts, number.real) and _is_within(parts, number.imag)
    return number.imag == 0 and _is_within(_limits_of_numbers(dtype, wraps=type(number) is int), number.real)


def _is_within(limits, number):
    low, high, has_infinity = limits
    return low <= number <= high or (has_infinity and number - number != 0)  # infinite or NaN


@lru_cache
def _limits_of_numbers(dtype, wraps=True):
    """Return the range of a dtype, and whether it has infinities; wraps: whether unsigned ones wrap negative values."""
    if category(dtype) == 1:
        known = _limits("iinfo", dtype)
        low = -int(known.max) if wraps and known.min == 0 else int(known.min)
        return low, int(known.max), False
    if stores_only(dtype):
        return -math.inf, math.inf, True
    known = _limits("finfo", dtype)
    return float(known.min), float(known.max), True


def holds_integers(dtype, low, high):
    """Return whether a dtype is floating or complex, or holds the integers from low to high."""
    if category(dtype) > 1:
        return True
    least, most, _ = (0, 1, False) if dtype.kind == "b" else _limits_of_numbers(dtype, wraps=False)
    return least <= low and high <= most


def check_holds(name, array, dtype):
    """Raise if a dtype cannot hold values: complex ones if it is real, too large ones if it is an integer dtype.

    Fractions are truncated, and unsigned dtypes wrap negative values, as in PyTorch.
    """
    if array.dtype.kind == "c" and dtype.kind not in "bc":
        raise OperandTypeError(f"{name}: the value is complex, which {dtype} can't hold")
    if category(dtype) == 1 and array.size and array.dtype.kind in "iuf":
        low, high, _ = _limits_of_numbers(dtype)
        if not (array.min() >= low and array.max() <= high):  # also true of NaN
            raise RuntimeError(f"{name}: {array.min()} to {array.max()} can't be converted to {dtype} without overflow")
