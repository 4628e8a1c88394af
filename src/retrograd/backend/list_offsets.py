"""Ragged arrays as nested lists, the form that Arrow and Awkward Array use."""

import math

import numpy as np

from retrograd.backend.ragged import Structure, pack, rows_of


def to_nested_lists(array, build):
    """Return an array as nested lists, constructed by `build` from the values outwards, one list for each row.

    `build.rows(array)` wraps a plain array; `build.fixed(content, size, count)` and `build.lists(offsets, content)`
    wrap content in lists of one size and of varying sizes; `build.pieces(starts, lengths, content)`, which is optional,
    in lists with holes between them.
    """
    if isinstance(array, np.ndarray):
        return build.rows(array)
    if array.lead:
        raise RuntimeError(f"a batch of nested tensors, of shape {array.shape}, is no list of components; see unbind()")
    structure = array.structure
    if structure.starts is not None and hasattr(build, "pieces") and structure.sizes.shape[1] == 1 and not array.axis:
        return build.pieces(structure.starts, structure.lengths, to_nested_lists(array.values, build))
    array = pack(array)
    content = to_nested_lists(_row_major(array), build)
    for column in reversed(range(array.structure.sizes.shape[1])):
        content = _wrap_in_lists(build, content, array, column)
    for place in reversed(range(array.axis)):
        size, count = array.values.shape[place], len(array.structure) * math.prod(array.values.shape[:place])
        content = build.fixed(content, size, count)
    return content


def _wrap_in_lists(build, content, array, column):
    """Return lists of the elements along a ragged dimension, for all components."""
    sizes = array.structure.sizes
    if sizes.shape[1] == 1 and not array.axis:
        return build.lists(array.structure.offsets, content)
    lists = math.prod(array.values.shape[: array.axis]) * np.prod(sizes[:, :column], axis=1)
    return build.lists(Structure(np.repeat(sizes[:, column], lists).reshape(-1, 1)).offsets, content)


def _row_major(array):
    """Return the rows of the buffer with each component in row-major order, leading dense dimensions included."""
    if not array.axis:
        return array.values
    behind = array.values.shape[array.axis + 1 :]
    parts = [rows_of(array.values, array.axis, *bounds) for bounds in array.structure.bounds()]
    flat = [part.reshape(math.prod(part.shape[: array.axis + 1]), *behind) for part in parts]
    return np.concatenate(flat) if flat else np.zeros((0, *behind), array.dtype)
