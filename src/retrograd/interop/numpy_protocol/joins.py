"""Joining tensors, and taking them apart."""

import numpy as np

from retrograd.interop.numpy_protocol.shapes import atleast_1d, atleast_2d, atleast_3d
from retrograd.interop.numpy_protocol.table import (
    O,
    agreeing,
    axes,
    cast,
    holds_tensor,
    implements,
    only_default,
    rearranged,
    refuse,
    tensor,
)


def joined(tensors, axis, dtype=None):
    """One after the other along an axis, in the dtype that they are promoted to or the one that is given."""
    return cast(O.cat(list(agreeing(*tensors)), axis), dtype)


def listed(arrays):
    """The members of a sequence; a tensor's are its rows."""
    return list(arrays)


@implements()
def concatenate(arrays, /, axis=0, out=None, *, dtype=None, casting="same_kind"):
    """One after the other along an axis (None: all elements in a row)."""
    parts = [tensor(x) for x in listed(arrays)]
    if axis is None:
        parts, axis = [O.reshape(x, (-1,)) for x in parts], 0
    return joined(parts, axis, dtype)


@implements()
def stack(arrays, axis=0, out=None, *, dtype=None, casting="same_kind"):
    """Side by side along a new axis."""
    return cast(O.stack(list(agreeing(*listed(arrays))), axis), dtype)


def _at_least(deepen, arrays):
    return [deepen(x) for x in listed(arrays)]


@implements()
def vstack(tup, *, dtype=None, casting="same_kind"):
    """One below the other, vectors being rows."""
    return joined(_at_least(atleast_2d, tup), 0, dtype)


@implements()
def hstack(tup, *, dtype=None, casting="same_kind"):
    """One beside the other; vectors one after the other."""
    parts = _at_least(atleast_1d, tup)
    return joined(parts, 0 if parts and parts[0].ndim == 1 else 1, dtype)


@implements()
def dstack(tup):
    """One behind the other, along the third axis."""
    return joined(_at_least(atleast_3d, tup), 2)


@implements()
def column_stack(tup):
    """One beside the other, vectors being columns."""
    parts = [tensor(x) for x in listed(tup)]
    return joined([x if x.ndim >= 2 else O.reshape(x, (-1, 1)) for x in parts], 1)


@implements()
def block(arrays):
    """A matrix of nested lists of blocks: the innermost lists are joined along the last axis."""
    depth = _depth(arrays)
    return _assembled(arrays, depth, max([depth, *_dimensions(arrays)]))


def _depth(value):
    return 1 + _depth(value[0]) if isinstance(value, list) else 0


def _dimensions(value):
    """How many axes each innermost member has."""
    if isinstance(value, list):
        return [n for member in value for n in _dimensions(member)]
    return [np.ndim(value)]


def _assembled(value, depth, ndim):
    if depth == 0:
        x = tensor(value)
        return O.reshape(x, (1,) * (ndim - x.ndim) + x.shape)
    return joined([_assembled(member, depth - 1, ndim) for member in value], -depth)


@implements()
def append(arr, values, axis=None):
    """Values at the end, along an axis or of all elements in a row."""
    return concatenate((arr, values), axis)


@implements()
def insert(arr, obj, values, axis=None):
    """Values before the places that are named, along an axis or of all elements in a row."""
    x, added = agreeing(arr, values)
    if axis is None:
        x, axis = O.reshape(x, (-1,)), 0
    spots = np.full(x.shape, -1)
    into = np.insert(spots, obj, _numbered(added.shape), axis)
    both = O.cat([O.reshape(x, (-1,)), O.reshape(added, (-1,))], 0)
    fresh = into >= 0
    into[fresh] += x.numel()
    into[~fresh] = np.arange(x.numel())
    return both[into]


def _numbered(shape):
    return np.arange(int(np.prod(shape, dtype=int))).reshape(shape)


# -------------------------------------------------------------------------------------------------------- parts


@implements()
def array_split(ary, indices_or_sections, axis=0):
    """Parts along an axis: so many of nearly one size, or cut at the places that are named."""
    x = tensor(ary)
    (axis,) = axes(axis, x.ndim)
    parts = np.array_split(np.arange(x.shape[axis]), indices_or_sections)
    starts = np.cumsum([0, *map(len, parts)])
    return [O.narrow(x, axis, int(start), len(part)) for start, part in zip(starts, parts, strict=False)]


@implements()
def split(ary, indices_or_sections, axis=0):
    """Parts along an axis: so many of one size, or cut at the places that are named."""
    x = tensor(ary)
    if isinstance(indices_or_sections, (int, np.integer)) and x.shape[axis] % indices_or_sections:
        raise ValueError(f"np.split: axis of size {x.shape[axis]} does not divide into {indices_or_sections} parts")
    return array_split(x, indices_or_sections, axis)


@implements()
def hsplit(ary, indices_or_sections):
    """Parts side by side; of a vector, one after the other."""
    x = tensor(ary)
    return split(x, indices_or_sections, 1 if x.ndim > 1 else 0)


@implements()
def vsplit(ary, indices_or_sections):
    """Parts one below the other."""
    return split(ary, indices_or_sections, 0)


@implements()
def dsplit(ary, indices_or_sections):
    """Parts one behind the other, along the third axis."""
    return split(ary, indices_or_sections, 2)


@implements()
def unstack(x, /, *, axis=0):
    """The members along an axis, without that."""
    return O.unbind(tensor(x), axis)


@implements()
def meshgrid(*xi, copy=True, sparse=False, indexing="xy"):
    """The coordinates of a grid, one tensor per axis."""
    vectors = [O.reshape(tensor(x), (-1,)) for x in xi]
    order = list(range(len(vectors)))
    if indexing == "xy" and len(order) > 1:
        order[:2] = 1, 0
    grids = [O.reshape(x, tuple(-1 if order[d] == i else 1 for d in range(len(order)))) for i, x in enumerate(vectors)]
    return tuple(grids) if sparse else tuple(O.broadcast_tensors(grids))


# ------------------------------------------------------------------------------------------------------ padding

_MOVING = ("edge", "reflect", "symmetric", "wrap")


@implements()
def pad(array, pad_width, mode="constant", **kwargs):
    """More elements at both ends of each axis: constants, or elements again."""
    x = tensor(array)
    if mode == "constant":
        return _padded(x, pad_width, **kwargs)
    if mode not in _MOVING:
        refuse("pad", f"mode {mode!r} is not supported for tensors; there are 'constant', {', '.join(_MOVING)}")
    return rearranged(np.pad, x, pad_width, mode, **kwargs)


def _padded(x, pad_width, constant_values=0):
    if holds_tensor(constant_values):
        only_default("pad", constant_values=(np.ndim(constant_values), 0))
        filled = constant_values
    else:
        filled = cast(tensor(np.pad(np.zeros(x.shape), pad_width, constant_values=constant_values)), x.dtype)
    if not x.numel():
        return filled
    places = np.pad(_numbered(x.shape), pad_width, constant_values=-1)
    return O.where(tensor(places >= 0), O.reshape(x, (-1,))[np.maximum(places, 0)], filled)
