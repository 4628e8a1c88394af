"""The sizes in traced code: numbers that record their uses, and the lines that convert them to plain numbers."""

import math
import operator
import sys
from collections.abc import Callable
from functools import partialmethod
from typing import Any, NamedTuple

from retrograd.backend import as_array
from retrograd.foundation.source_location import LINES, PACKAGE, user_line
from retrograd.foundation.symbolic_expr import Quotient

COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


class Comparison(NamedTuple):
    """A comparison with a size: `left op right` at a line of the user's code; `instruction` is the byte code."""

    op: str
    left: int
    right: int
    line: str
    instruction: tuple

    @property
    def outcome(self) -> bool:
        """Return the result that the program got."""
        return COMPARISONS[self.op](self.left, self.right)


class Floor(NamedTuple):
    """A floor division, or its remainder, at a line of the user's code."""

    left: int
    right: int
    line: str
    instruction: tuple

    @property
    def op(self) -> str:
        """Return the operator as text."""
        return "//"

    @property
    def outcome(self) -> int:
        """Return the quotient, rounded down."""
        return self.left // self.right


class Conversion(NamedTuple):
    """A conversion of a size to a plain number, whose further use is not recorded, and its cause."""

    op: str
    value: Any
    line: str
    instruction: tuple


class TracedNumber:
    """A number derived from sizes: it supports arithmetic, and records in a log how the program uses it.

    `isinstance` returns True for int or float, but the object is neither. Python calls `__index__` and similar methods
    only for other types, when its own code needs a plain number, as in `range(n)` and `table[n]`.
    """

    __slots__ = ("_log", "_read_at", "_value")

    def __init__(self, value: Any, log: list, read_at: tuple | None = None) -> None:
        self._value = value
        self._log = log
        self._read_at = read_at

    def __repr__(self) -> str:
        return repr(self._value)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._value, name)
        self._note_conversion(name)
        return found

    def __copy__(self) -> "TracedNumber":
        return self

    def __deepcopy__(self, memo: dict) -> "TracedNumber":
        return self

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        self._note_conversion("array")
        return as_array(self._value) if dtype is None else as_array(self._value).astype(dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        self._note_conversion(f"numpy.{ufunc.__name__}")
        return getattr(ufunc, method)(*map(untraced, inputs), **kwargs)

    def _note_conversion(self, how: str) -> None:
        """Record a conversion to a plain number, except by this package, whose rules pass sizes on to operators.

        Its compiled code has no frames: then a shape is read and used in a single instruction of the user's code.
        """
        frame = sys._getframe(2)
        is_users = LINES in frame.f_globals or not frame.f_code.co_filename.startswith(PACKAGE)
        if is_users and self._read_at != instruction_of(frame):
            self._log.append(Conversion(how, self._value, user_line(), instruction_of(frame)))

    def _convert(self, function: Callable, *args: Any) -> Any:
        self._note_conversion(function.__name__)
        return function(self._value, *args)

    def _compute(self, function: Callable, *others: Any) -> Any:
        if not all(isinstance(other, (int, float)) for other in others):
            return NotImplemented
        return traced(function(self._value, *map(untraced, others)), self._log)

    def _reflect(self, function: Callable, other: Any) -> Any:
        if not isinstance(other, (int, float)):
            return NotImplemented
        return traced(function(untraced(other), self._value), self._log)

    def __truediv__(self, other: Any) -> Any:
        return self._divide(self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._divide(other, self)

    def _divide(self, left: Any, right: Any) -> Any:
        if not (isinstance(left, (int, float)) and isinstance(right, (int, float))):
            return NotImplemented
        left, right = untraced(left), untraced(right)
        if type(left) is int or type(right) is int:
            self._log.append(Quotient(left, right))
        return traced(left / right, self._log)


class TracedInt(TracedNumber):
    """A size of a traced tensor, or an integer derived from it."""

    __slots__ = ()
    __class__ = property(lambda self: int)

    def __bool__(self) -> bool:
        return self._compare("!=", 0)

    def _compare(self, op: str, other: Any) -> Any:
        if type(other) is float and math.isfinite(other) and op not in ("==", "!="):
            other = math.ceil(other) if op in ("<", ">=") else math.floor(other)
        if type(other) is float and not other.is_integer():  # infinite, nan, or equal to no size
            return COMPARISONS[op](self._value, other)
        if type(other) is TracedFloat or not isinstance(other, (int, float)):
            return NotImplemented
        comparison = Comparison(op, self._value, int(untraced(other)), user_line(), instruction_of(sys._getframe(1)))
        self._log.append(comparison)
        return comparison.outcome

    def _floor(self, function: Callable, other: Any) -> Any:
        self._note_floor(function, self, other)
        return self._compute(function, other)

    def _rfloor(self, function: Callable, other: Any) -> Any:
        self._note_floor(function, other, self)
        return self._reflect(function, other)

    def _note_floor(self, function: Callable, left: Any, right: Any) -> None:
        """Record a //, %, divmod or >>, which must give the same quotient in the trace's other runs."""
        left, right = untraced(left), untraced(right)
        if type(left) is int and type(right) is int:
            divisor = 2**right if function is operator.rshift and right >= 0 else right
            if divisor:  # otherwise the operation raises by itself
                self._log.append(Floor(left, divisor, user_line(), instruction_of(sys._getframe(2))))

    def _bits(self, function: Callable, other: Any) -> Any:
        self._note_conversion(function.__name__)
        return self._compute(function, other)

    def _rbits(self, function: Callable, other: Any) -> Any:
        self._note_conversion(function.__name__)
        return self._reflect(function, other)

    def _round(self, digits: Any = None) -> Any:
        return self


class TracedFloat(TracedNumber):
    """A float derived from sizes.  It supports the operations of a plain number."""

    __slots__ = ()
    __class__ = property(lambda self: float)

    def _compare(self, op: str, other: Any) -> Any:
        if not isinstance(other, (int, float)):
            return NotImplemented
        self._note_conversion(op)
        return COMPARISONS[op](self._value, untraced(other))


def traced(value: Any, log: list, read_at: tuple | None = None) -> Any:
    """Return a number that records its uses in `log`; for a tuple, all members."""
    if isinstance(value, tuple):
        return tuple([traced(v, log, read_at) for v in value])
    kind = {int: TracedInt, float: TracedFloat}.get(type(value))
    return value if kind is None else kind(value, log, read_at)


def untraced(value: Any) -> Any:
    """Return a number without its log."""
    return value._value if isinstance(value, TracedNumber) else value


def instruction_of(frame: Any) -> tuple:
    """Return the current instruction of a frame: the same in every trace."""
    return frame.f_code.co_filename, frame.f_code.co_firstlineno, frame.f_lasti


# -------------------------------------------------------------------------------------- Python's number protocol

_METHODS = {"==": "__eq__", "!=": "__ne__", "<": "__lt__", "<=": "__le__", ">": "__gt__", ">=": "__ge__"}
_ROUNDED = {"floordiv": operator.floordiv, "mod": operator.mod, "divmod": divmod, "rshift": operator.rshift}
_CONVERSIONS: tuple[Callable, ...] = (int, float, complex, hash, str, format, operator.index)


def _define(kind: type[TracedNumber], name: str, method: Callable, reflected: Callable, *args: Any) -> None:
    setattr(kind, f"__{name}__", partialmethod(method, *args))
    setattr(kind, f"__r{name}__", partialmethod(reflected, *args))


for _op, _name in _METHODS.items():
    for _kind in (TracedInt, TracedFloat):
        setattr(_kind, _name, partialmethod(_kind._compare, _op))
for _name in ("add", "sub", "mul", "pow"):
    _define(TracedNumber, _name, TracedNumber._compute, TracedNumber._reflect, getattr(operator, _name))
for _name in ("neg", "pos", "abs"):
    setattr(TracedNumber, f"__{_name}__", partialmethod(TracedNumber._compute, getattr(operator, _name)))
for _function in _CONVERSIONS:
    setattr(TracedNumber, f"__{_function.__name__}__", partialmethod(TracedNumber._convert, _function))
for _name, _function in _ROUNDED.items():
    _define(TracedInt, _name, TracedInt._floor, TracedInt._rfloor, _function)
    _define(TracedFloat, _name, TracedFloat._compute, TracedFloat._reflect, _function)
for _name in ("and", "or", "xor", "lshift"):
    _define(TracedInt, _name, TracedInt._bits, TracedInt._rbits, getattr(operator, f"__{_name}__"))
for _name in ("round", "floor", "ceil", "trunc"):
    setattr(TracedInt, f"__{_name}__", TracedInt._round)
    _function = round if _name == "round" else getattr(math, _name)
    setattr(TracedFloat, f"__{_name}__", partialmethod(TracedFloat._convert, _function))
for _kind in (TracedInt, TracedFloat):
    setattr(_kind, "__hash__", vars(TracedNumber)["__hash__"])  # noqa: B010
