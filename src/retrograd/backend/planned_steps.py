"""Steps of kernels for plans of calls: loops, copies and views on memory that is planned (docs/decisions/0036)."""

from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from operator import methodcaller
from typing import Any

import numpy as np

from retrograd import kernels
from retrograd.backend.array_programs import layout
from retrograd.backend.kernel_trace import constant_of
from retrograd.backend.traced_array import Number, UntraceableError, blank, type_of_number

_DTYPES = "?bBhHiIlLqQfdFD"
_CONVERSIONS = {*map("".join, product("?il", "fd")), "?l", "il", "fd", "df"}
_ZERO = {char: np.add.reduce(np.full(1, -0.0, char)) for char in "fdl"}  # to which NumPy adds the elements of a sum


@dataclass(frozen=True, slots=True)
class View:
    """A value that is in the memory of another one, at an offset in bytes."""

    source: int
    offset: int
    result: int


@dataclass(frozen=True, slots=True)
class New:
    """A value in new memory."""

    result: int


@dataclass(frozen=True, slots=True)
class Loop:
    """A ufunc, or None for a copy, that writes the values `outs`; operands are numbers of values, or constants.

    A conversion is a copy to another dtype. Where `checks`, the flags of the loop count in backward passes, too.
    """

    function: Any
    operands: tuple
    outs: tuple[int, ...]
    checks: bool = False


@lru_cache(4096)
def plan_steps(trace, count):
    """Return the steps of a kernel with some number of operands, and the layouts of all values by their numbers.

    Return None if the kernel does something else than views, loops of ufuncs, copies, and sums.
    """
    try:
        planner = _Planner(trace, count)
        for step in trace.steps:
            planner.add(step)
    except UntraceableError:
        return None
    return planner.steps, planner.layouts


class _Planner:
    """The steps so far, and stand-ins for the values, whose memory shows what is a view of what."""

    def __init__(self, trace, count):
        self.steps = []
        self.layouts = dict(enumerate(trace.layouts))
        self._likes = {number: self._check(blank(*trace.layouts[number])) for number in range(count)}

    def _check(self, array):
        if array.dtype.char not in _DTYPES or array.size == 0:
            raise UntraceableError
        return array

    def add(self, step):
        """Append a step of a trace."""
        function = step.function
        if isinstance(function, np.ufunc):
            self._add_ufunc(step)
        elif isinstance(getattr(function, "__self__", None), np.ufunc) and function.__name__ == "reduce":
            self._add_sum(step)
        elif getattr(function, "does", None) == "nothing":
            self._new(step.results[0])
        elif getattr(function, "does", None) == "fill":
            self._new(step.results[0])
            self.steps.append(Loop(None, (self._view(step.operands[0], lambda x: x.reshape(())),), step.results))
        elif getattr(function, "does", None) == "concatenate":
            self._add_concatenation(step)
        elif getattr(function, "does", None) == "check classes":
            target, *numbers = step.operands
            self._add_check(kernels.flag_classes, target, *[np.array(n, np.int64) for n in numbers])
        elif getattr(function, "does", None) in ("divide", "divide or zero"):
            self._add_quotient(step)
        elif type(function) is methodcaller and function.__reduce__()[1][0] == "astype":
            self._add_conversion(step)
        else:
            self._add_view(step)

    def _add_concatenation(self, step):
        """Append copies to the parts of the result."""
        (number,), axis, begin = step.results, step.function.axis, 0
        self._new(number)
        for operand in step.operands:
            shape, dtype, _ = self.layouts[operand]
            end = begin + shape[axis]
            if dtype != self.layouts[number][1]:
                raise UntraceableError
            index = (*[slice(None)] * (axis % len(shape)), slice(begin, end))
            part = self._view(number, lambda x, index=index: x[index])
            self.steps.append(Loop(None, (int(operand),), (part,)))
            begin = end

    def _add_check(self, ufunc, value, *constants):
        """Append a loop that raises the flag of invalid operations where a kernel does not compute as usual."""
        if not isinstance(ufunc, np.ufunc):
            raise UntraceableError  # a plain Python build
        number = len(self.layouts)
        self.layouts[number] = layout(np.empty(self.layouts[value][0], np.bool_))
        self._new(number)
        self.steps.append(Loop(ufunc, (int(value), *constants), (number,), checks=True))

    def _add_quotient(self, step):
        """Append a division, which is no division where the denominator is 0."""
        if step.function.does == "divide or zero":
            self._add_check(kernels.flag_zeros, step.operands[1])
        self._add_ufunc(step._replace(function=np.true_divide))

    def _add_conversion(self, step):
        (source,), (number,) = step.operands, step.results
        own, made = self.layouts[source][1], self.layouts[number][1]
        if own == made or own.char + made.char not in _CONVERSIONS:
            raise UntraceableError
        self._new(number)
        self.steps.append(Loop(None, (int(source),), (int(number),)))

    def _converted(self, source, dtype):
        """Return the number of an array converted to another dtype."""
        number = len(self.layouts)
        self.layouts[number] = layout(np.empty(self.layouts[source][0], dtype))
        self._new(number)
        self.steps.append(Loop(None, (int(source),), (number,)))
        return number

    def _new(self, number):
        self._likes[number] = self._check(blank(*self.layouts[number]))
        self.steps.append(New(number))

    def _view(self, source, function):
        """Return the number of a view."""
        number = len(self.layouts)
        self._add_made(source, function(self._likes[source]), number)
        return number

    def _add_made(self, source, made, number):
        like = self._likes[source]
        self._likes[number] = self._check(made)
        self.layouts[number] = made.shape, made.dtype, made.strides
        offset = kernels.address(made) - kernels.address(like)
        self.steps.append(View(int(source), offset, int(number)))

    def _add_view(self, step):
        """Append a function that returns a view, or a reshape that copies."""
        if len(step.operands) != 1 or step.params or len(step.results) != 1:
            raise UntraceableError
        (source,), (number,) = step.operands, step.results
        like = self._likes[source]
        made = step.function(like)
        if not isinstance(made, np.ndarray):
            raise UntraceableError
        if np.may_share_memory(made, like):
            self._add_made(source, made, number)
        elif type(step.function) is methodcaller and step.function.__reduce__()[1][0] == "reshape":
            copied = len(self.layouts)
            self.layouts[copied] = like.shape, like.dtype, np.empty(like.shape, like.dtype).strides
            self._new(copied)
            self.steps.append(Loop(None, (int(source),), (copied,)))
            self._add_made(copied, self._likes[copied].reshape(made.shape), number)
        else:
            raise UntraceableError

    def _add_ufunc(self, step):
        ufunc, operands, outs = step.function, step.operands, step.results
        if not set(step.params) <= {"order"}:
            raise UntraceableError
        if not outs:
            operands, outs = operands[: ufunc.nin], operands[ufunc.nin :]
            self._check_writes(ufunc, operands, outs)
        else:
            for number in outs:
                self._new(number)
        given = [self.layouts[a][1] if type(a) is Number else type_of_number(a) for a in operands]
        dtypes = ufunc.resolve_dtypes((*given, *[None] * ufunc.nout))
        chars = "".join([dtype.char for dtype in dtypes])
        if chars not in {types.replace("->", "") for types in ufunc.types}:
            raise UntraceableError
        if any(self.layouts[number][1] != dtype for number, dtype in zip(outs, dtypes[ufunc.nin :], strict=True)):
            raise UntraceableError
        found = tuple([self._operand(a, dtype) for a, dtype in zip(operands, dtypes, strict=False)])
        self.steps.append(Loop(ufunc, found, tuple(map(int, outs))))

    def _operand(self, value, dtype):
        return constant_of(value, self.layouts, dtype)

    def _check_writes(self, ufunc, operands, outs):
        """Refuse writes to memory that operands have at other positions, or that two results have."""
        arrays = [self._likes[number] for number in outs]
        for i, out in enumerate(arrays):
            for other in arrays[:i]:
                if np.shares_memory(out, other):
                    raise UntraceableError
            for number in operands:
                same = type(number) is Number and number == outs[i] and ufunc.signature is None
                if type(number) is Number and not same and np.shares_memory(out, self._likes[number]):
                    raise UntraceableError

    def _add_sum(self, step):
        """Append a sum as NumPy computes it: an addition to an array that repeats its elements."""
        x, axis, _, _, keepdims = step.operands
        (number,) = step.results
        shape, own, _ = self.layouts[x]
        made = self.layouts[number][1]
        if step.function.__self__ is not np.add or made.char not in _ZERO:
            raise UntraceableError
        if own != made:
            if made.char != "l" or own.char + "l" not in _CONVERSIONS:
                raise UntraceableError
            x, own = self._converted(x, made), made
        axes = range(len(shape)) if axis is None else np.lib.array_utils.normalize_axis_tuple(axis, len(shape))
        made = self.layouts[number]
        self._new(number)
        kept = iter(made[2]) if not keepdims else None
        own_strides = made[2] if keepdims else [0 if d in axes else next(kept) for d in range(len(shape))]
        repeated = len(self.layouts)
        self.layouts[repeated] = shape, own, tuple([0 if d in axes else s for d, s in enumerate(own_strides)])
        self.steps.append(Loop(None, (np.array(_ZERO[own.char]),), (int(number),)))
        self.steps.append(View(int(number), 0, repeated))
        self.steps.append(Loop(np.add, (repeated, int(x)), (repeated,)))
