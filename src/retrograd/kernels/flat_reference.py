"""Many small arrays in one buffer: the reference of the kernels by which optimizers update all of them at once."""

import itertools

import numpy as np
from numpy.lib.array_utils import byte_bounds


def are_disjoint(written, read):
    """Return whether no written array shares memory with another one, or with one of those that are read.

    Arrays of which the elements alternate count as sharing memory.
    """
    spans = sorted(byte_bounds(a) for a in written if a.size)
    apart = all(end <= begin for (_, end), (begin, _) in itertools.pairwise(spans))
    others = [byte_bounds(a) for a in read if a.size]
    return apart and not any(begin < high and low < end for begin, end in spans for low, high in others)


def read_flat(arrays):
    """Return the elements of arrays, one after the other, as a vector."""
    return np.concatenate(arrays, axis=None)


def write_flat(flat, arrays):
    """Write the elements of a vector to arrays, one after the other."""
    start = 0
    for a in arrays:
        np.copyto(a, flat[start : start + a.size].reshape(a.shape))
        start += a.size
