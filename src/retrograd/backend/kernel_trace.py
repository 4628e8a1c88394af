"""Traces of kernels: the functions that a kernel calls on arrays of given layouts."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from retrograd import kernels
from retrograd.backend.array_programs import layout
from retrograd.backend.numpy import UFUNCS, kernel_of
from retrograd.backend.traced_array import Number, Step, Trace, TracedArray, UntraceableError, type_of_number
from retrograd.core.engine import copy_in_layout

# Computing one of these again takes less time than writing a large result and reading it.
CHEAP_UFUNCS = frozenset((np.add, np.subtract, np.multiply, np.negative, np.square))
_KINDS = "?bBhHiIlLqQfd"  # the dtypes of elements in groups
_EXACT = 1 << 24  # up to here, integers are floating-point numbers in every precision


@dataclass(frozen=True, eq=False, slots=True)
class KernelTrace:
    """The steps of a kernel, the layouts of its values, and the numbers of the results.

    The operands that are arrays have the first numbers.
    """

    steps: tuple[Step, ...]
    layouts: list[tuple[tuple[int, ...], Any, tuple[int, ...]]]  # shape, dtype and strides
    results: tuple[Number, ...]


def trace_kernel(function, operands, params):
    """Return the trace of a kernel; None if it depends on values, or calls something that traces do not see.

    Operands that are arrays are given as tuples of shape, dtype and strides.
    """
    given = tuple([a if type(a) is tuple else Constant(a) for a in operands])
    try:
        params = tuple([(name, Constant(value)) for name, value in params.items()])
        return _trace(function, given, params, kernels.get_vector_bytes())
    except TypeError:  # an operand, or the kernel, is not hashable
        return None


class Constant:
    """A constant operand; equal to those that a kernel cannot tell from it."""

    __slots__ = ("_key", "value")

    def __init__(self, value):
        self.value = value
        self._key = (type(value), repr(value) if isinstance(value, float | complex | tuple | list) else value)

    def __hash__(self):
        return hash(self._key)

    def __eq__(self, other):
        return type(other) is Constant and self._key == other._key


@lru_cache(4096)
def _trace(function, operands, params, vector_bytes):
    """Return the trace for the kernels of one vector width, by which some choose."""
    trace = Trace()
    try:
        given = [trace.operand(*a) if type(a) is tuple else a.value for a in operands]
        out = UFUNCS.get(function, function)(*given, **{name: constant.value for name, constant in params})
    except Exception:  # a kernel may call anything on its operands
        return None
    outs = out if type(out) is tuple else (out,)
    if not trace.steps or not all(isinstance(o, TracedArray) and o.trace is trace for o in outs):
        return None
    return KernelTrace(tuple(trace.steps), [layout(a) for a in trace.likes], tuple([o.number for o in outs]))


def direct_function(step):
    """Return the fastest function for a step."""
    function = step.function
    if not isinstance(function, np.ufunc) or not step.results:
        return function  # what writes to arrays makes none
    return kernel_of(function)


# ------------------------------------------------------------------------------------------ elementwise kernels


def elementwise_steps(function, operands, params, shape):
    """Return the steps of a kernel that calls ufuncs on arrays of one shape only; None if it does anything else.

    A step is `(ufunc, operands, result)`, with numbers for arrays, and 0-d arrays for constants. Also returned are the
    number and the dtype of the result. Operands that are arrays are given as tuples of shape and dtype.
    """
    if function is copy_in_layout:
        return [(None, (0,), len(operands))], len(operands), operands[0][1]
    given = [(*a, _row_major_strides(*a)) if type(a) is tuple else a for a in operands]
    trace = trace_kernel(function, given, params)
    if trace is None or len(trace.results) != 1 or trace.layouts[trace.results[0]][0] != shape:
        return None
    try:
        steps = [_elementwise(step, trace.layouts, shape) for step in trace.steps]
    except UntraceableError:
        return None
    return steps, trace.results[0], trace.layouts[trace.results[0]][1]


def _elementwise(step, layouts, shape):
    """Return a step as one of a group."""
    ufunc, result = step.function, step.results[0] if len(step.results) == 1 else None
    if not isinstance(ufunc, np.ufunc) or ufunc.signature is not None or step.params or result is None:
        raise UntraceableError
    if layouts[result][0] != shape:
        raise UntraceableError  # a part of smaller shape, which would be computed again for each row
    given = [layouts[a][1] if type(a) is Number else type_of_number(a) for a in step.operands]
    needed = ufunc.resolve_dtypes((*given, None))[:-1]
    return ufunc, tuple([constant_of(a, layouts, dt) for a, dt in zip(step.operands, needed, strict=True)]), result


def constant_of(value, layouts, dtype):
    """Return the number of an array, or a constant in the dtype of a loop, if that is what NumPy converts it to.

    Raise UntraceableError if NumPy would convert the array, or might warn about the constant.
    """
    if type(value) is Number:
        if layouts[value][1] != dtype or dtype.char not in _KINDS:
            raise UntraceableError  # a conversion
        return int(value)
    if isinstance(value, np.generic):
        if value.dtype != dtype:
            raise UntraceableError
        return np.array(value)
    limit = _EXACT if type(value) is int else np.finfo(dtype).max if dtype.kind == "f" else -1
    if not abs(value) <= limit:
        raise UntraceableError  # it overflows, or is NaN, about which NumPy may warn
    return np.array(value).astype(dtype)


def _row_major_strides(shape, dtype):
    """Return the strides of a C-contiguous array."""
    strides = [dtype.itemsize]
    for n in reversed(shape[1:]):
        strides.append(strides[-1] * max(n, 1))
    return tuple(reversed(strides)) if shape else ()


def example(shape, dtype):
    """Return an array of the given shape and dtype, whose elements do not matter."""
    return np.broadcast_to(np.zeros((), dtype), shape)


def is_row_major(layout):
    """Return whether a layout, as `array_programs.layout` returns it, is that of a C-contiguous array."""
    shape, dtype, strides = layout
    if strides is None:
        return False
    expected = dtype.itemsize
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size > 1 and stride != expected:
            return False
        expected *= size
    return True


def is_like(one, other):
    """Return whether two layouts are the same; the strides of dimensions with one element do not matter."""
    return one[:2] == other[:2] and all(n < 2 or a == b for n, a, b in zip(one[0], one[2], other[2], strict=True))
