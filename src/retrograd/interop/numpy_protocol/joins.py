"""Join and split tensors."""

import numpy as np

from retrograd.core import Tensor
from retrograd.interop.numpy_protocol.shapes import atleast_1d, atleast_2d, atleast_3d
from retrograd.interop.numpy_protocol.table import (
    O,
    axes,
    cast,
    cast_safely,
    holds_tensor,
    implements,
    only_default,
    promote_operands,
    rearrange,
    refuse,
    tensor,
)
from retrograd.interop.numpy_protocol.table import values as values_of


def cat_promoted(tensors, axis, dtype=None, casting="same_kind"):
    """Concatenate along an axis, in the promoted dtype or the given one."""
    return cast_safely("concatenate", O.cat(list(promote_operands(*tensors)), axis), dtype, casting)


def members(arrays):
    """Return the members of a sequence; those of a tensor are its rows."""
    return list(arrays)


@implements()
def concatenate(arrays, /, axis=0, out=None, *, dtype=None, casting="same_kind"):
    """Concatenate along an axis (None: flattened)."""
    parts = [tensor(x) for x in members(arrays)]
    if axis is None:
        parts, axis = [O.reshape(x, (-1,)) for x in parts], 0
    return cat_promoted(parts, axis, dtype, casting)


@implements()
def stack(arrays, axis=0, out=None, *, dtype=None, casting="same_kind"):
    """Stack along a new axis."""
    return cast_safely("stack", O.stack(list(promote_operands(*members(arrays))), axis), dtype, casting)


def _map_members(deepen, arrays):
    return [deepen(x) for x in members(arrays)]


@implements()
def vstack(tup, *, dtype=None, casting="same_kind"):
    """Concatenate along the first axis; vectors become rows."""
    return cat_promoted(_map_members(atleast_2d, tup), 0, dtype, casting)


@implements()
def hstack(tup, *, dtype=None, casting="same_kind"):
    """Join arrays along their second dimension; vectors along their only one."""
    parts = _map_members(atleast_1d, tup)
    return cat_promoted(parts, 0 if parts and parts[0].ndim == 1 else 1, dtype, casting)


@implements()
def dstack(tup):
    """Concatenate along the third axis."""
    return cat_promoted(_map_members(atleast_3d, tup), 2)


@implements()
def column_stack(tup):
    """Join arrays along their second dimension; vectors become columns."""
    parts = [tensor(x) for x in members(tup)]
    return cat_promoted([x if x.ndim >= 2 else O.reshape(x, (-1, 1)) for x in parts], 1)


@implements()
def block(arrays):
    """Assemble a matrix from nested lists of blocks: the innermost lists are joined along the last axis."""
    depth = _depth(arrays)
    return _assemble(arrays, depth, max([depth, *_dimensions(arrays)]))


def _depth(value):
    return 1 + _depth(value[0]) if isinstance(value, list) else 0


def _dimensions(value):
    """Return the number of axes of each innermost member."""
    if isinstance(value, list):
        return [n for member in value for n in _dimensions(member)]
    return [np.ndim(value)]


def _assemble(value, depth, ndim):
    if depth == 0:
        x = tensor(value)
        return O.reshape(x, (1,) * (ndim - x.ndim) + x.shape)
    return cat_promoted([_assemble(member, depth - 1, ndim) for member in value], -depth)


@implements()
def append(arr, values, axis=None):
    """Append values along an axis, or to the flattened elements."""
    return concatenate((arr, values), axis)


@implements()
def insert(arr, obj, values, axis=None):
    """Insert values before the given indices, in the promoted dtype."""
    x, added = promote_operands(arr, values)
    if axis is None:
        x, axis = O.reshape(x, (-1,)), 0
    spots = np.full(x.shape, -1)
    into = np.insert(spots, values_of(obj), _flat_indices(added.shape), axis)
    both = O.cat([O.reshape(x, (-1,)), O.reshape(added, (-1,))], 0)
    fresh = into >= 0
    into[fresh] += x.numel()
    into[~fresh] = np.arange(x.numel())
    return both[into]


def _flat_indices(shape):
    return np.arange(int(np.prod(shape, dtype=int))).reshape(shape)


# -------------------------------------------------------------------------------------------------------- parts


@implements()
def array_split(ary, indices_or_sections, axis=0):
    """Split along an axis: into parts of nearly one size, or at the given indices."""
    x = tensor(ary)
    (axis,) = axes(axis, x.ndim)
    parts = np.array_split(np.arange(x.shape[axis]), values_of(indices_or_sections))
    if sum(map(len, parts)) == x.shape[axis]:
        return list(O.split(x, [len(part) for part in parts], axis))
    return [_narrow(x, axis, part) for part in parts]  # the indices are not in ascending order


def _narrow(x, axis, part):
    return O.narrow(x, axis, int(part[0]) if len(part) else 0, len(part))


@implements()
def split(ary, indices_or_sections, axis=0):
    """Split along an axis: into parts of one size, or at the given indices."""
    x = tensor(ary)
    indices_or_sections = values_of(indices_or_sections)
    if isinstance(indices_or_sections, (int, np.integer)) and x.shape[axis] % indices_or_sections:
        raise ValueError(f"np.split: axis of size {x.shape[axis]} does not divide into {indices_or_sections} parts")
    return array_split(x, indices_or_sections, axis)


@implements()
def hsplit(ary, indices_or_sections):
    """Split along the second axis; a vector along its only one."""
    x = tensor(ary)
    return split(x, indices_or_sections, 1 if x.ndim > 1 else 0)


@implements()
def meshgrid(*xi, copy=True, sparse=False, indexing="xy"):
    """The coordinates of a grid, one tensor per axis."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f"np.meshgrid: indexing must be 'xy' or 'ij', got {indexing!r}")
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
    """Pad both ends of each axis, with constants or with elements of x."""
    x = tensor(array)
    if mode == "constant":
        return _pad_constant(x, pad_width, **kwargs)
    if mode not in _MOVING:
        refuse("pad", f"mode {mode!r} is not supported for tensors; there are 'constant', {', '.join(_MOVING)}")
    only_default("pad", reflect_type=(kwargs.get("reflect_type", "even"), "even"))
    return rearrange(np.pad, x, pad_width, mode, **kwargs)


def _pad_constant(x, pad_width, constant_values=0):
    if isinstance(constant_values, (list, tuple)) and holds_tensor(constant_values):
        refuse("pad", "constant_values may be one tensor, but no list of tensors")
    if isinstance(constant_values, (int, float, complex)):
        return O.nn.pad(x, _widths(pad_width, x.ndim), "constant", constant_values)
    inside = O.nn.pad(O.ones_like(x, dtype=np.dtype(bool)), _widths(pad_width, x.ndim))
    filled = constant_values
    if not isinstance(filled, Tensor):
        filled = cast(tensor(np.pad(np.zeros(x.shape), pad_width, constant_values=filled)), x.dtype)
    return O.where(inside, O.nn.pad(x, _widths(pad_width, x.ndim)), filled)


def _widths(pad_width, ndim):
    """Return the padding before and after in the operator's order: from the last axis on."""
    if isinstance(pad_width, dict):
        at = {axes(axis, ndim)[0]: width for axis, width in pad_width.items()}
        pad_width = [np.broadcast_to(at.get(i, 0), (2,)) for i in range(ndim)]
    widths = np.broadcast_to(values_of(pad_width), (ndim, 2))
    if np.any(widths < 0):
        raise ValueError("np.pad: index can't contain negative values")
    return tuple(map(int, np.ravel(widths[::-1])))
