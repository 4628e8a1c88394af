"""Padding of components to boxes of one size, and back.  Structures here are without holes.

A loop that copies components is faster than indexing all rows, unless components have only a few elements.
"""

import numpy as np

from retrograd.backend.ragged import RaggedSize, Structure


def pad_rows(x, structure, row, sizes, padding):
    """Return (components, *sizes): the rows of each component in the corner of a box, `padding` elsewhere."""
    shape = (*x.shape[:row], len(structure), *sizes, *x.shape[row + 1 :])
    out = np.zeros(shape, x.dtype) if padding == 0 else np.full(shape, padding, x.dtype)
    front = (slice(None),) * row
    for i, (corner, (first, last)) in enumerate(_corners(structure)):
        rows = x[(*front, slice(first, last))]
        out[(*front, i, *corner)] = rows if len(corner) == 1 else _unflatten(rows, structure, i, row)
    return out


def unpad_rows(x, structure, row):
    """Return the rows of components in the corners of boxes, concatenated."""
    front, several = (slice(None),) * row, structure.sizes.shape[1]
    check_boxes(x.shape[row : row + 1 + several], structure)
    if not len(structure):
        return np.zeros((*x.shape[:row], 0, *x.shape[row + 1 + several :]), x.dtype)
    parts = [x[(*front, i, *corner)] for i, (corner, _) in enumerate(_corners(structure))]
    if several != 1:
        lengths = structure.lengths.tolist()
        parts = [p.reshape(*p.shape[:row], n, *p.shape[row + several :]) for p, n in zip(parts, lengths, strict=True)]
    return np.concatenate(parts, axis=row)


def check_boxes(shape, structure):
    """Raise unless the components fit into boxes (components, *sizes)."""
    if shape[0] != len(structure) or (structure.sizes > list(shape[1:])).any():
        raise ValueError(f"unpad_rows: boxes of shape {tuple(shape)} are too few or too small for the components")


def _corners(structure):
    """Yield for each component its slices in its box, and the start and end of its rows."""
    corners = [tuple([slice(size) for size in sizes]) for sizes in structure.sizes.tolist()]
    return zip(corners, structure.bounds(), strict=True)


def _unflatten(rows, structure, number, row):
    """Return the rows of a component with its ragged dimensions unflattened."""
    return rows.reshape(*rows.shape[:row], *structure.sizes[number].tolist(), *rows.shape[row + 1 :])


def largest(size):
    """Return the maximum over the components of a size, which is an int or a ragged size."""
    return int(size.sizes.max(initial=0)) if isinstance(size, RaggedSize) else size


def structure_of_lengths(name, lengths, box):
    """Return the structure of components of these lengths in boxes of a shape (components, *sizes).

    `lengths` has one entry for each component, or a row with one for each ragged dimension.  Errors name the first
    that does not fit.
    """
    lengths = np.asarray(lengths)
    if lengths.dtype.kind not in "iu" and lengths.size:
        raise TypeError(f"{name}: lengths must be integers, got {lengths.dtype}")
    if lengths.ndim not in (1, 2) or len(lengths) != box[0]:
        raise ValueError(
            f"{name}: lengths must have shape ({box[0]},), or ({box[0]}, ragged dimensions), got {lengths.shape}"
        )
    sizes = lengths.reshape(box[0], lengths.shape[1] if lengths.ndim == 2 else 1).astype(np.int64)
    limits = np.array(box[1:], np.int64)
    if not 1 <= sizes.shape[1] <= len(limits):
        raise ValueError(
            f"{name}: lengths for {sizes.shape[1]} ragged dimensions do not fit a tensor of shape {tuple(box)}"
        )
    bad = ((sizes < 0) | (sizes > limits[: sizes.shape[1]])).any(axis=1)
    if bad.any():
        first = int(np.argmax(bad))
        listed = " x ".join(map(str, sizes[first]))
        raise ValueError(
            f"{name}: length {listed} of component {first} does not fit into its box, of shape {tuple(box[1:])}"
        )
    return Structure(sizes)
