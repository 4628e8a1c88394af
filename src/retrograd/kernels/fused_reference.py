"""The reference of groups of elementwise steps, which run tile by tile: see fused_group.cpp."""

import math

import numpy as np

TILE = 2048  # elements


def fused_group(shape, operands, constants, results, registers, steps, quiet, fallback):
    """Return a function of C-contiguous arrays that runs elementwise steps tile by tile; it returns a tuple of arrays.

    Values are numbered: operands, constants, results, registers. All but the constants are given by examples, arrays
    of that dtype; those of operands have the shape, too, which broadcasts to `shape`. A step is a tuple of a ufunc, or
    None for a copy, the numbers of its operands, and that of its result. Where a step would warn and is not `quiet`, or
    an array is not like its example, `fallback` is called.
    """

    def call(*arrays):
        if not _fit(operands, arrays):
            return fallback(*arrays)
        made = [np.empty(shape, like.dtype) for like in results]
        spare = [np.empty(TILE, like.dtype) for like in registers]
        sources = [a if a.size == 1 else np.broadcast_to(a, shape) if a.shape != shape else a for a in arrays]
        raised = []
        modes = dict.fromkeys(("divide", "over", "invalid"), "call")
        modes["under"] = "ignore" if np.geterr()["under"] == "ignore" else "call"
        with np.errstate(**dict.fromkeys(modes, "ignore") if quiet else modes, call=lambda *_: raised.append(True)):
            for begin in range(0, math.prod(shape), TILE):
                tiles = [*[_operand(a, begin) for a in sources], *constants, *[_flat(a, begin) for a in made], *spare]
                _run_tile(steps, tiles, min(TILE, math.prod(shape) - begin))
        return fallback(*arrays) if raised else tuple(made)

    return call


def _fit(examples, arrays):
    """Return whether arrays have the dtypes and shapes of the examples, and are C-contiguous."""
    return len(arrays) == len(examples) and all(
        type(a) is np.ndarray and a.dtype == like.dtype and a.shape == like.shape and a.flags.c_contiguous
        for a, like in zip(arrays, examples, strict=True)
    )


def _operand(a, begin):
    """Return a tile of an operand: of one that is broadcast a copy, and of a single number that."""
    if a.size == 1:
        return a.reshape(())
    return _flat(a, begin) if a.flags.c_contiguous else a.flat[begin : begin + TILE]


def _flat(a, begin):
    return a.reshape(-1)[begin : begin + TILE]


def _run_tile(steps, values, count):
    for ufunc, *where in steps:
        *operands, out = [v[:count] if (v := values[i]).ndim else v for i in where]
        if ufunc is None:
            out[...] = operands[0]
        else:
            ufunc(*operands, out=out)
