"""Reference implementations of windows, strided views of memory, and scatter into views."""

import numpy as np


def read_strided(x, size, stride, offset):
    out = np.zeros(size)
    for place in np.ndindex(size):
        out[place] = x.ravel()[offset + sum(i * n for i, n in zip(place, stride, strict=True))]
    return out


def write_to(x, src, spec):
    out = x.copy()
    out[spec] = src
    return out


def as_strided(x, size, stride, storage_offset):
    return read_strided(x, size, stride, storage_offset or 0)


def select_scatter(x, src, dim, index):
    return write_to(x, src, (*[slice(None)] * dim, index))


def slice_scatter(x, src, dim, start, end, step):
    return write_to(x, src, (*[slice(None)] * dim, slice(start, end, step)))
