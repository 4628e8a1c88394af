"""Stand-ins for arrays, which note the functions that a kernel calls on them.

A kernel decides by shapes, dtypes and strides what it calls. For arrays of the same layouts it calls the same functions
again. A kernel that looks at the values of its operands raises an error when it gets stand-ins.
"""

from collections.abc import Callable
from operator import attrgetter, itemgetter, methodcaller
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

_DTYPES = "?bBhHiIlLqQefdFD"


class UntraceableError(Exception):
    """The kernel does something that depends on values, or that the trace does not see."""


class Number(int):
    """The number of an array in a trace; other operands are constants."""

    __slots__ = ()


class Step(NamedTuple):
    """One function that a kernel calls: `results = function(*operands, **params)`."""

    function: Callable[..., Any]
    operands: tuple
    params: dict[str, Any]
    results: tuple[Number, ...]


def _view_method(name):
    """Return a method that notes the call of NumPy's method of that name, which returns a view."""
    return lambda self, *args: self.trace.note_view(methodcaller(name, *args), self)


class TracedArray(NDArrayOperatorsMixin):
    """A stand-in for an array. `like` has the same layout, and its elements are never read.

    `memory` is the number of the array that the memory belongs to.
    """

    def __init__(self, trace, like, number, memory):
        self.trace, self.like, self.number, self.memory = trace, like, number, memory

    shape = property(lambda self: self.like.shape)
    dtype = property(lambda self: self.like.dtype)
    strides = property(lambda self: self.like.strides)
    flags = property(lambda self: self.like.flags)
    ndim = property(lambda self: self.like.ndim)
    size = property(lambda self: self.like.size)
    T = property(lambda self: self.trace.note_view(attrgetter("T"), self))
    transpose, swapaxes, squeeze = map(_view_method, ("transpose", "swapaxes", "squeeze"))

    def __len__(self):
        return len(self.like)

    def __getitem__(self, key):
        parts = key if type(key) is tuple else (key,)
        if not all(p is None or p is Ellipsis or type(p) in (int, slice) for p in parts):
            raise UntraceableError  # a copy
        return self.trace.note_view(itemgetter(key), self)

    def reshape(self, *shape):
        """Note a reshape, which copies if no view has that shape."""
        function = methodcaller("reshape", *shape)
        made = np.empty(self.size, self.dtype).reshape(*shape)
        try:
            like, memory = np.reshape(self.like, made.shape, copy=False), self.memory
        except ValueError:
            like, memory = made, None
        return self.trace.note(function, (self,), [like], memory=memory)[0]

    def astype(self, dtype, copy=True):
        """Note a conversion."""
        if not copy and np.dtype(dtype) == self.dtype:
            return self
        return self.trace.note(methodcaller("astype", np.dtype(dtype)), (self,), [np.empty_like(self.like, dtype)])[0]

    def __array_ufunc__(self, ufunc, method, *inputs, **params):
        if method == "reduce":
            return self.trace.note_reduction(ufunc, *inputs, **params)
        if method != "__call__":
            raise UntraceableError
        return self.trace.note_ufunc(ufunc, inputs, **params)

    def __array_function__(self, function, types, args, params):
        if function not in _FUNCTIONS:
            raise UntraceableError
        return _FUNCTIONS[function](*args, **params)

    def __array__(self, *args, **kwargs):
        raise UntraceableError

    def __bool__(self):
        raise UntraceableError

    def __iter__(self):
        raise UntraceableError


def _concatenate(arrays, axis=0, dtype=None):
    if not all(isinstance(a, TracedArray) for a in arrays) or not all(a.flags.c_contiguous for a in arrays):
        raise UntraceableError
    like = np.concatenate([a.like for a in arrays], axis=axis, dtype=dtype)
    return arrays[0].trace.note(_Concatenation(axis, dtype), tuple(arrays), [like])[0]


class _Concatenation:
    """The concatenation of its arguments."""

    __slots__ = ("axis", "dtype")
    does = "concatenate"  # as in `visible`

    def __init__(self, axis, dtype):
        self.axis, self.dtype = axis, dtype

    def __call__(self, *arrays):
        return np.concatenate(arrays, self.axis, dtype=self.dtype)


_FUNCTIONS = {
    np.concatenate: _concatenate,
    np.reshape: lambda x, shape: x.reshape(shape),
    np.squeeze: lambda x, axis=None: x.squeeze(axis),
    np.swapaxes: lambda x, axis1, axis2: x.swapaxes(axis1, axis2),
    np.transpose: lambda x, axes=None: x.transpose(axes),
}


class Trace:
    """The steps of one kernel, and examples of the arrays that it was given and has made, by their numbers."""

    def __init__(self):
        self.steps = []
        self.likes = []
        self._operands = 0
        self._errors = np.geterr()

    def operand(self, shape, dtype, strides):
        """Return the stand-in for an operand."""
        self._operands += 1
        return self._array(blank(shape, dtype, strides), None)

    def _array(self, like, memory):
        if type(like) is not np.ndarray or like.dtype.char not in _DTYPES or not like.dtype.isnative:
            raise UntraceableError  # one element of an array, or a dtype that NumPy does not know
        number = Number(len(self.likes))
        self.likes.append(like)
        return TracedArray(self, like, number, number if memory is None else memory)

    def note(self, function, operands, likes, params=None, memory=None):
        """Note the call of a function, and return stand-ins for its results, which are like some arrays."""
        if np.geterr() != self._errors:
            raise UntraceableError  # within `errstate`
        numbers = tuple([a.number if isinstance(a, TracedArray) else a for a in operands])
        results = tuple([self._array(like, memory) for like in likes])
        self.steps.append(Step(function, numbers, params or {}, tuple([r.number for r in results])))
        return results

    def note_view(self, function, x):
        """Note a function that returns a view of an array."""
        return self.note(function, (x,), [function(x.like)], memory=x.memory)[0]

    def note_ufunc(self, ufunc, inputs, out=None, order="K", dtype=None, **params):
        """Note the call of a ufunc. It may write to arrays that the kernel has made, not to its operands."""
        if params or order not in ("K", "C"):
            raise UntraceableError
        given = [a.dtype if isinstance(a, TracedArray) else type_of_number(a) for a in inputs]
        dtypes = ufunc.resolve_dtypes((*given, *[None] * ufunc.nout))[ufunc.nin :]
        if dtype is not None and any(dtype != d for d in (*dtypes, *given)):
            raise UntraceableError  # a conversion of operands
        shapes = _result_shapes(ufunc, [getattr(a, "shape", ()) for a in inputs])
        if out is not None:
            return self._note_writing(ufunc, inputs, out, list(zip(shapes, dtypes, strict=True)))
        likes = [_result_like(inputs, s, d, order, ufunc.signature) for s, d in zip(shapes, dtypes, strict=True)]
        results = self.note(ufunc, inputs, likes, {} if order == "K" else {"order": order})
        return results[0] if ufunc.nout == 1 else results

    def _note_writing(self, ufunc, inputs, out, expected):
        """Note the call of a ufunc that writes to arrays; a step makes no array then."""
        for target, (shape, dtype) in zip(out, expected, strict=True):
            if not isinstance(target, TracedArray) or target.memory < self._operands:
                raise UntraceableError
            if target.shape != shape or target.dtype != dtype:
                raise UntraceableError
        self.note(ufunc, (*inputs, *out), [])
        return out[0] if len(out) == 1 else tuple(out)

    def note_reduction(self, ufunc, x, axis=0, dtype=None, out=None, keepdims=False):
        """Note a reduction."""
        if not x.flags.c_contiguous or out not in (None, (None,)):
            raise UntraceableError
        made = ufunc.reduce(np.ones(1, x.dtype), dtype=dtype).dtype
        kept = np.add.reduce(np.broadcast_to(np.int8(0), x.shape), axis, np.int8, None, keepdims)
        function = ufunc.reduce
        return self.note(function, (x, axis, dtype, None, keepdims), [blank(np.shape(kept), made)])[0]


def blank(shape, dtype, strides=None):
    """Return an array whose elements do not matter."""
    if strides is None:
        return np.empty(shape, dtype)
    steps = [(n - 1) * s for n, s in zip(shape, strides, strict=True) if n]
    before = -sum([s for s in steps if s < 0])
    memory = np.empty(before + sum([s for s in steps if s > 0]) + dtype.itemsize, np.uint8)
    return np.ndarray(shape, dtype, memory, before, strides)


def _result_shapes(ufunc, shapes):
    """Return the shapes of a ufunc's results."""
    if ufunc.signature is None:
        return [np.broadcast_shapes(*shapes)] * ufunc.nout
    cores = [part.strip("()").split(",") if part != "()" else [] for part in _parts_of(ufunc.signature)]
    sizes, loops = {}, []
    for core, shape in zip(cores, shapes, strict=False):
        names = [n for n in core if len(core) <= len(shape) or not n.endswith("?")]  # a vector has no such dimension
        sizes.update(zip(names, shape[len(shape) - len(names) :], strict=True))
        loops.append(shape[: len(shape) - len(names)])
    loop = np.broadcast_shapes(*loops)
    return [(*loop, *[sizes[n] for n in core if n in sizes]) for core in cores[ufunc.nin :]]


def _parts_of(signature):
    """Return the parts of a signature like "(n),(n)->()"."""
    return signature.replace("->", ",").replace("),(", ")|(").split("|")


def _result_like(inputs, shape, dtype, order, signature):
    """Return an array with the layout that NumPy gives to a result."""
    likes = [a.like for a in inputs if isinstance(a, TracedArray)]
    if order == "C" or all(a.flags.c_contiguous for a in likes) or (signature is not None and len(shape) < 3):
        return blank(shape, dtype)  # of a matrix per call too, whatever the order of the operands
    if signature is not None:
        raise UntraceableError
    flags = [["readonly"]] * len(likes) + [["writeonly", "allocate"]]
    return np.nditer([*likes, None], ["zerosize_ok"], flags, [*[a.dtype for a in likes], dtype]).operands[-1]


def type_of_number(value):
    """Return the type of a number as NumPy's promotion sees it."""
    if type(value) in (int, float):
        return type(value)
    if isinstance(value, np.generic):
        return value.dtype
    raise UntraceableError


def visible(like, does):
    """Let traces see the calls of a function of an array and constants; `like` returns an array like its result.

    `does` says what happens to the result's memory: "fill" with the one element of the array, or "nothing"; or what the
    function computes, or checks. A check has no result, and `like` is None.
    """

    def decorate(function):
        function.does = does

        def call(x, *others):
            if type(x) is TracedArray:
                likes = [] if like is None else [like(x.like, *others)]
                return next(iter(x.trace.note(function, (x, *others), likes)), None)
            return function(x, *others)

        return call

    return decorate


def like_quotient(x, y):
    """Return an array like the quotient of one in row-major order and a single number of its dtype."""
    if type(y) is not TracedArray or y.ndim > 0 or y.dtype != x.dtype or not x.flags.c_contiguous:
        raise UntraceableError
    return blank(x.shape, x.dtype)
