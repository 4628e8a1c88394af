"""Reference implementations of windows, strided views of memory, and scatter into views."""

import numpy as np


def strided(x, size, stride, offset):
    out = np.zeros(size)
    for place in np.ndindex(size):
        out[place] = x.ravel()[offset + sum(i * n for i, n in zip(place, stride, strict=True))]
    return out


def written(x, src, spec):
    out = x.copy()
    out[spec] = src
    return out


ORACLES = {
    "strided": strided,
    "as_strided": lambda x, size, stride, storage_offset: strided(x, size, stride, storage_offset or 0),
    "select_scatter": lambda x, src, dim, index: written(x, src, (*[slice(None)] * dim, index)),
    "slice_scatter": lambda x, src, dim, start, end, step: written(
        x, src, (*[slice(None)] * dim, slice(start, end, step))
    ),
}
