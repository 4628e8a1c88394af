"""Traces of kernels: the ufuncs that an elementwise kernel calls on its operands, found by calling it on stand-ins."""

import math

import numpy as np

from retrograd import kernels
from retrograd.core.engine import copy_in_layout

_UFUNCS = {
    kernels.add: np.add,
    kernels.subtract: np.subtract,
    kernels.multiply: np.multiply,
    kernels.true_divide: np.true_divide,
}
_KINDS = "?bBhHiIlLqQfd"  # the dtypes of elements that are traced
_EXACT = 1 << 24  # up to here, integers are floating-point numbers in every precision


class UntraceableError(Exception):
    """The kernel does something else than call ufuncs on arrays of one shape."""


class TracedArray(np.lib.mixins.NDArrayOperatorsMixin):
    """A stand-in for an array: it has a shape and a dtype, and notes the ufuncs that are called on it."""

    def __init__(self, trace, shape, dtype, number):
        self.trace, self.shape, self.dtype, self.number = trace, shape, dtype, number

    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: math.prod(self.shape))

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        dtype = kwargs.pop("dtype", None)
        if method != "__call__" or kwargs:
            raise UntraceableError
        out = self.trace.apply(ufunc, inputs)
        if dtype is not None and out.dtype != dtype:
            raise UntraceableError
        return out

    def __array__(self, *args, **kwargs):
        raise UntraceableError

    def __array_function__(self, *args, **kwargs):
        raise UntraceableError

    def __bool__(self):
        raise UntraceableError


class Trace:
    """The steps of a kernel: `(ufunc, operands, result)`, with numbers for arrays, and 0-d arrays for constants."""

    def __init__(self, shape):
        self.shape = shape
        self.steps = []
        self.count = 0

    def operand(self, shape, dtype):
        """Return the stand-in for an array that exists."""
        if dtype.char not in _KINDS or not dtype.isnative:
            raise UntraceableError
        self.count += 1
        return TracedArray(self, shape, dtype, self.count - 1)

    def apply(self, ufunc, inputs):
        """Note the call of a ufunc, and return its result."""
        if ufunc.nout != 1 or ufunc.signature is not None:
            raise UntraceableError
        given = [a.dtype if isinstance(a, TracedArray) else _type_of_number(a) for a in inputs]
        *needed, dtype = ufunc.resolve_dtypes((*given, None))
        shape = np.broadcast_shapes(*[a.shape for a in inputs if isinstance(a, TracedArray)])
        if shape != self.shape:
            raise UntraceableError  # a part of smaller shape, which would be computed again for each row
        operands = tuple([_operand(a, dt) for a, dt in zip(inputs, needed, strict=True)])
        out = self.operand(shape, dtype)
        self.steps.append((ufunc, operands, out.number))
        return out


def _type_of_number(value):
    """Return the type of a number as NumPy's promotion sees it."""
    if type(value) in (int, float):
        return type(value)
    if isinstance(value, np.generic):
        return value.dtype
    raise UntraceableError


def _operand(value, dtype):
    """Return the number of an array, or a constant in the dtype of a loop, if that is what NumPy converts it to."""
    if isinstance(value, TracedArray):
        if value.dtype != dtype:
            raise UntraceableError  # a conversion
        return value.number
    if isinstance(value, np.generic):
        if value.dtype != dtype:
            raise UntraceableError
        return np.array(value)
    limit = _EXACT if type(value) is int else np.finfo(dtype).max if dtype.kind == "f" else -1
    if not abs(value) <= limit:
        raise UntraceableError  # it overflows, or is NaN, about which NumPy may warn
    return np.array(value).astype(dtype)


def trace_kernel(function, operands, params, shape):
    """Return the steps of a kernel and the number of its result; None if it is no composition of ufuncs.

    Operands that are arrays are given as pairs of a shape and a dtype. `shape` is that of the result.
    """
    trace = Trace(shape)
    try:
        given = [trace.operand(*a) if type(a) is tuple else a for a in operands]
        if function is copy_in_layout:
            trace.steps.append((None, (given[0].number,), trace.operand(shape, given[0].dtype).number))
            return trace.steps, trace.count - 1, given[0].dtype
        found = _UFUNCS.get(function, function)
        out = found(*given, **params)
    except Exception:  # a kernel may call anything on its operands
        return None
    if not isinstance(out, TracedArray) or out.shape != shape or not trace.steps:
        return None
    return trace.steps, out.number, out.dtype


def example(shape, dtype):
    """Return an array of the given shape and dtype, whose elements do not matter."""
    return np.broadcast_to(np.zeros((), dtype), shape)


def is_row_major(layout):
    """Return whether a layout, as `array_programs.layout` returns it, is that of a C-contiguous array."""
    shape, dtype, strides = layout
    expected = dtype.itemsize
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size > 1 and stride != expected:
            return False
        expected *= size
    return True
