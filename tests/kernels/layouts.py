"""Arrays in every memory layout that NumPy allows, surrounded by guard values."""

import numpy as np

GUARD = 64  # bytes on both sides
OTHERS = 77  # what each of them holds


def inside(x, offset=0):
    """Return a copy of x that many bytes past vector alignment, and the memory that contains it."""
    if x.dtype.hasobject:
        raise TypeError("objects do not lie just anywhere")
    memory = np.full(x.nbytes + 2 * GUARD, OTHERS, np.uint8)
    out = np.ndarray(x.shape, x.dtype, memory, GUARD + offset)
    out[...] = x
    return out, memory


def plain(x):
    """Return x without gaps, in native byte order."""
    return np.array(x, x.dtype.newbyteorder("="), order="C")


def offset_by_an_element(x):
    return inside(x, x.itemsize)[0]


def off_by_a_byte(x):
    return inside(x, 1)[0]


def every_second(x):
    """Return every second element of a row."""
    x = np.atleast_1d(x)
    wide = np.full((*x.shape[:-1], 2 * x.shape[-1] + 1), OTHERS, x.dtype)
    wide[..., 1::2] = x
    return wide[..., 1::2]


def backwards(x):
    turned = (..., *(slice(None, None, -1),) * x.ndim)
    return plain(x[turned])[turned]


def by_columns(x):
    return plain(x.T).T


def swapped(x):
    """Return x in the opposite byte order."""
    return x.astype(x.dtype.newbyteorder())


def repeated(x):
    """Return the first element of each row, repeated by a stride of zero."""
    return np.broadcast_to(x[..., :1], x.shape) if x.ndim else x


WRITABLE = (plain, offset_by_an_element, off_by_a_byte, every_second, backwards, by_columns, swapped)
LAYOUTS = (*WRITABLE, repeated)
