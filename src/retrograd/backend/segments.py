"""Kernels along the rows of a ragged array's buffer, component by component."""

import numpy as np


def segment_sum(x, structure, row):
    """The sum of the rows of each component; of one without rows, 0."""
    dtype = np.int64 if x.dtype.kind in "biu" else x.dtype
    return _reduced(np.add, x, structure, row, dtype, 0)


def _reduced(ufunc, x, structure, row, dtype, nothing):
    """A ufunc's reduction of the rows of each component; of one without rows, `nothing`."""
    lengths = structure.lengths
    if not (lengths == 0).any():
        if not len(lengths):
            return np.zeros((*x.shape[:row], 0, *x.shape[row + 1 :]), dtype)
        return ufunc.reduceat(x, structure.offsets[:-1], axis=row, dtype=dtype)
    out = np.full((*x.shape[:row], len(lengths), *x.shape[row + 1 :]), nothing, dtype)
    there = lengths > 0
    if there.any():
        at = (*(slice(None),) * row, there)
        out[at] = ufunc.reduceat(x, structure.offsets[:-1][there], axis=row, dtype=dtype)
    return out


def repeat_rows(x, structure, row):
    """Each component's row as often as the component has rows."""
    return np.repeat(x, structure.lengths, axis=row)
