"""Dtypes: listing, limits, and promotion."""

from typing import Any, NamedTuple

import numpy as np

from retrograd.backend import type_info
from retrograd.core import Tensor
from retrograd.core import dtype as dtypes
from retrograd.interop.array_api.promotion import dtype_of
from retrograd.interop.array_api.promotion import result_type as result_type
from retrograd.ops.create import as_tensor
from retrograd.ops.family import cast_to
from retrograd.ops.layout import check_device

_LACKING = ("float16", *dtypes.EXTENSIONS)  # in the standard
DTYPES = {name: facts.dtype for name, facts in dtypes.TABLE.items() if name not in _LACKING}
KINDS = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "f",
    "complex floating": "c",
    "numeric": "iufc",
}


class FloatInfo(NamedTuple):
    """The limits of a floating dtype, or of the parts of a complex one."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: Any


class IntegerInfo(NamedTuple):
    """The limits of an integer dtype."""

    bits: int
    max: int
    min: int
    dtype: Any


def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """Convert x to a dtype; returns a copy unless copy is False and x has that dtype."""
    check_device(device)
    if np.dtype(dtype).kind != "c" and x.dtype.kind == "c":
        raise TypeError(f"astype: complex numbers do not become {dtype}; choose real(x) or abs(x)")
    out = cast_to(x, np.dtype(dtype))
    return out.clone() if copy and out is x else out


def can_cast(from_: Any, to: Any, /) -> bool:
    """Whether the standard's promotion rules lead from one dtype (or an array's) to another."""
    own, wanted = dtype_of(from_), np.dtype(to)
    both = [min(dtypes.category(d), 2) for d in (own, wanted)]  # a complex dtype counts as floating
    if both[0] != both[1]:  # the standard has no rules across these kinds
        return False
    try:
        return dtypes.promote(own, wanted) == wanted
    except TypeError:  # uint64 with signed integers: no integer dtype represents both
        return False


def finfo(type: Any, /) -> FloatInfo:
    """Bits and limits of a floating dtype, or of the parts of a complex one."""
    found = type_info.finfo(dtype_of(type))
    return FloatInfo(found.bits, found.eps, found.max, found.min, found.smallest_normal, np.dtype(found.dtype))


def iinfo(type: Any, /) -> IntegerInfo:
    """Bits and limits of an integer dtype."""
    found = type_info.iinfo(dtype_of(type))
    return IntegerInfo(found.bits, found.max, found.min, np.dtype(found.dtype))


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a dtype equals another, or is of a kind such as "real floating", or of one of several kinds."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    if isinstance(kind, str) and kind not in KINDS:
        raise ValueError(f"isdtype: expected one of {', '.join(KINDS)}, got {kind!r}")
    return np.dtype(dtype).kind in KINDS[kind] if isinstance(kind, str) else np.dtype(dtype) == kind


class Info:
    """The description of the namespace that the standard requires."""

    def capabilities(self) -> dict:
        """Return the library-dependent capabilities: all are supported."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Any:
        """Return the only device."""
        return as_tensor(0).device

    def devices(self) -> list:
        """Return all devices."""
        return [self.default_device()]

    def default_dtypes(self, *, device: Any = None) -> dict:
        """Return the default dtypes."""
        check_device(device)
        real = dtypes.get_default_dtype()
        return {
            "real floating": real,
            "complex floating": dtypes.complex_of(real),
            "integral": dtypes.int64,
            "indexing": dtypes.int64,
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict:
        """The dtypes by name, all or those of a kind."""
        check_device(device)
        return {name: dtype for name, dtype in DTYPES.items() if kind is None or isdtype(dtype, kind)}
