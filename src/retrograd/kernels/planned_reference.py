"""The reference of plans of calls, which run loops one after the other: see planned_calls.cpp."""

import numpy as np


def planned_calls(operands, constants, sizes, values, steps, results, fallback):
    """Return a function of arrays that runs loops one after the other; it returns a tuple of arrays.

    Memories are numbered: those of operands, given by their layouts, of constants, which are arrays, and new ones,
    given by their sizes in bytes. A layout is a tuple of shape, dtype and strides. A value is a tuple of the number of
    a memory, an offset in bytes, and a layout; `results` are the numbers of the values to return. A step is a tuple of
    a ufunc, None for a copy, or a fused group; whether it ignores warnings; the number of its results; and the numbers
    of its values, with the results at the end. Where a step would warn, or an array is not like its layout, `fallback`
    is called.
    """

    def call(*arrays):
        if not _fit(operands, arrays):
            return fallback(*arrays)
        memories = [*arrays, *constants, *[np.empty(size, np.uint8) for size in sizes]]
        made = [_value(memories[memory], offset, *layout) for memory, offset, layout in values]
        raised = []
        modes = dict.fromkeys(("divide", "over", "invalid"), "call")
        modes["under"] = "ignore" if np.geterr()["under"] == "ignore" else "call"
        for function, quiet, count, *numbers in steps:
            given = [made[number] for number in numbers]
            with np.errstate(**dict.fromkeys(modes, "ignore") if quiet else modes, call=lambda *_: raised.append(True)):
                _run(function, given[: len(given) - count], given[len(given) - count :])
            if raised:
                return fallback(*arrays)
        return tuple([made[number] for number in results])

    return call


def _run(function, operands, outs):
    """Run one step; its results are written to existing arrays."""
    if function is None:
        outs[0][...] = operands[0]
    elif isinstance(function, np.ufunc) or hasattr(function, "nargs"):
        # Sums write to an array that repeats its elements, in the order of its own elements.
        if 0 in outs[0].strides and operands[0].strides == outs[0].strides and outs[0].size > 1:
            _accumulate(function, operands[1], outs[0])
        else:
            function(*operands, out=tuple(outs))
    else:
        for out, found in zip(outs, function(*operands), strict=True):
            out[...] = found


def _accumulate(function, x, repeated):
    """Reduce an array to one whose repeated dimensions have the stride 0."""
    axes = tuple(
        [d for d, (n, stride) in enumerate(zip(repeated.shape, repeated.strides, strict=True)) if n > 1 and not stride]
    )
    kept = repeated[tuple([slice(0, 1) if d in axes else slice(None) for d in range(x.ndim)])]
    kept[...] = function.reduce(x, axes, keepdims=True)


def _fit(layouts, arrays):
    """Return whether arrays have the given layouts."""
    return len(arrays) == len(layouts) and all(
        type(a) is np.ndarray and a.flags.aligned and a.dtype == dtype and a.shape == shape
        and all(n < 2 or have == want for n, have, want in zip(shape, a.strides, strides, strict=True))
        for a, (shape, dtype, strides) in zip(arrays, layouts, strict=True)
    )  # fmt: skip


def _value(memory, offset, shape, dtype, strides):
    """Return the array at an offset of a memory."""
    if memory.dtype != np.uint8 or memory.ndim != 1:
        start = memory.__array_interface__["data"][0]
        memory = _Bytes(start + offset, shape, dtype, strides, memory)
        return np.asarray(memory)
    return np.ndarray(shape, dtype, memory, offset, strides)


class _Bytes:
    """The memory of an array with another layout."""

    def __init__(self, start, shape, dtype, strides, owner):
        self._owner = owner
        while type(owner.base) is np.ndarray:  # parts of an expanded array may be written to, which is itself read-only
            owner = owner.base
        self.__array_interface__ = {"version": 3, "data": (start, not owner.flags.writeable), "shape": shape,
                                    "typestr": dtype.str, "strides": strides}  # fmt: skip
