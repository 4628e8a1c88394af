"""Copies of NumPy's arrays that keep what a plain copy loses: shared memory, and the order of the dimensions in it."""

import copy

import numpy as np

from retrograd import kernels
from retrograd.backend.stored_dtypes import as_strided


def deep_copy(array, memo):
    """Return a deep copy of an array; arrays that share memory share it again in the copies of one `memo`.

    So the whole memory that an array is part of is copied, as in PyTorch, except that of a mapped file.
    """
    whole = array
    while type(whole) is np.ndarray and type(whole.base) is np.ndarray:
        whole = whole.base
    if type(array) is not np.ndarray or not array.size or not _is_whole(whole):
        return copy.deepcopy(array, memo)
    copied = _in_memory_order(copy.deepcopy(whole, memo)).reshape(-1).view(np.uint8)
    return np.ndarray(array.shape, array.dtype, copied, kernels.address(array) - kernels.address(whole), array.strides)


def _is_whole(array):
    """Return whether an array is all of its memory, without gaps."""
    owner = array.flags.owndata or type(array.base) is bytearray
    return owner and array.dtype != object and _in_memory_order(array).flags.c_contiguous


def _in_memory_order(array):
    return array.transpose(_memory_order(array))


def _memory_order(array):
    """Return the dimensions in the order of their strides, the longest first."""
    return sorted(range(array.ndim), key=lambda dim: -abs(array.strides[dim]))


class KeptLayout:
    """An array whose pickled data keeps the order of its dimensions in memory, and repeated elements once.

    NumPy's own pickled data has an array in the order of its dimensions, if it is not contiguous.
    """

    __slots__ = ("array",)

    def __init__(self, array):
        self.array = array

    def __reduce__(self):
        distinct = self.array[tuple([slice(None if step else 1) for step in self.array.strides])]
        order = _memory_order(distinct)
        return _restore, (np.ascontiguousarray(distinct.transpose(order)), order, self.array.shape)


def keep_layout(array):
    """Return an object whose pickled data becomes the array, with its layout: the array itself, where that does it."""
    return KeptLayout(array) if type(array) is np.ndarray and not array.flags.forc else array


def kept_array(kept):
    """Return the array of a result of `keep_layout`, which copies have as it is."""
    return kept.array if type(kept) is KeptLayout else kept


def _restore(dense, order, shape):
    """Return an array of a shape whose dimensions are in this order in memory; those of size 1 are repeated."""
    distinct = dense.transpose(np.argsort(order))
    steps = [
        step if have == want else 0 for step, have, want in zip(distinct.strides, distinct.shape, shape, strict=True)
    ]
    return as_strided(distinct, shape, steps)
