"""Plain values: immutable, compared by content, so that a program may contain them as constants."""

import enum
import math
from typing import Any

from retrograd.backend import array_programs
from retrograd.core.device import device
from retrograd.core.op import OpBase
from retrograd.ops.generator import Generator

_ATOMS = (int, str, bytes, bool, type(None), type(Ellipsis), type(NotImplemented), range, array_programs.DTYPE, device)
_COMPARED_BY_IDENTITY = (enum.Enum, OpBase, Generator)  # a generator changes, but is read only where it draws
_KINDS = (*_COMPARED_BY_IDENTITY, *_ATOMS, array_programs.IMMUTABLE_NUMBERS)


def is_plain_value(value: Any) -> bool:
    """Return whether a value is immutable, and compared by content."""
    kind = type(value)
    if kind is tuple or kind is frozenset:
        return all(map(is_plain_value, value))
    if kind is slice:
        return all(map(is_plain_value, (value.start, value.stop, value.step)))
    return kind in (float, complex) or issubclass(kind, _KINDS)


def is_same(a: Any, b: Any) -> bool:
    """Return whether one value may replace the other: the same object, or plain values with the same content.

    0.0 and -0.0 differ, and NaN is the same as NaN.

    >>> is_same(0.0, -0.0), is_same(float("nan"), float("nan")), is_same(1, True), is_same((1, "a"), (1, "a"))
    (False, True, False, True)
    """
    if a is b:
        return True
    kind = type(a)
    if kind is not type(b):
        return False
    if kind is float:
        return (a == b and math.copysign(1.0, a) == math.copysign(1.0, b)) or (a != a and b != b)
    if kind is complex:
        return is_same(a.real, b.real) and is_same(a.imag, b.imag)
    if kind is tuple:
        return len(a) == len(b) and all(map(is_same, a, b))
    if kind is slice:
        return is_same((a.start, a.stop, a.step), (b.start, b.stop, b.step))
    if isinstance(a, array_programs.IMMUTABLE_NUMBERS):
        return bool(a.dtype == b.dtype and a.tobytes() == b.tobytes())
    return (kind in _ATOMS or kind is frozenset) and bool(a == b)
