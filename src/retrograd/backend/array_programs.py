"""NumPy's part in compiled programs: which arrays they contain, how one is described, and how warnings are switched."""

import itertools
import math
from functools import partial

import numpy as np

from retrograd import kernels
from retrograd.core.op import composite_arrays

quiet = partial(np.errstate, all="ignore")  # a backward pass ignores warnings: infinite slopes are legitimate
strict = partial(np.errstate, all="raise")
IMMUTABLE_NUMBERS = np.generic
DTYPE = np.dtype


def is_plain(array):
    """Return whether a value is an array of NumPy's own class."""
    return type(array) is np.ndarray


def is_recorded(array):
    """Return whether programs can contain an array: one of NumPy's own class, or one that consists of such arrays."""
    return type(array) is np.ndarray or type(array) in composite_arrays


def is_array(value):
    """Return whether a value is an array, of a subclass too, or one that consists of several."""
    return isinstance(value, np.ndarray) or type(value) in composite_arrays


def is_ufunc(function):
    """Return whether a kernel is a ufunc."""
    return isinstance(function, np.ufunc)


def layout(array):
    """Return what decides how a kernel walks over an array: shape, dtype and strides, None if it has none."""
    return array.shape, array.dtype, array.strides if type(array) is np.ndarray else None


def bytes_of(layout):
    """Return the size of an array of a layout; 0 for one that consists of several arrays."""
    shape, dtype, strides = layout
    return 0 if strides is None else math.prod(shape) * dtype.itemsize


def example(layout):
    """Return an array of a layout without memory for its elements, which nobody may read."""
    shape, dtype, strides = layout
    return np.lib.stride_tricks.as_strided(np.zeros((), dtype), shape, strides, writeable=False)


def in_layout(array, layout):
    """Return a copy of an array in which the dimensions have the order in memory that a layout has, if it has another.

    The strides are those of the layout only if that has no gaps.
    """
    if layout is None or array.strides == layout[2] or array.ndim != len(layout[2]):
        return array
    order = sorted(range(array.ndim), key=lambda d: -layout[2][d])
    return array.transpose(order).copy().transpose([order.index(d) for d in range(array.ndim)])


def overlapping(arrays):
    """Return the numbers of two arrays whose ranges in memory overlap; None if there are none."""
    ends = sorted((*np.lib.array_utils.byte_bounds(a), i) for i, a in enumerate(arrays) if a.size)
    for (_, end, i), (start, _, k) in itertools.pairwise(ends):
        if start < end:
            return i, k
    return None


def owner(array):
    """Return the array that owns the memory of another one; itself if it does, or if that is no array of NumPy's."""
    if type(array) in composite_arrays:
        array = array.memory
    while type(array.base) is np.ndarray:
        array = array.base
    return array


def is_alias(one, other):
    """Return whether two arrays have the same elements at the same addresses, as `x` and `x[...]` do."""
    if not (type(one) is type(other) is np.ndarray) or layout(one) != layout(other) or owner(one) is not owner(other):
        return False
    return kernels.address(one) == kernels.address(other)


def place_of(array):
    """Return what is equal for aliases, and only for these, among arrays that are alive; None for composite ones."""
    if type(array) is not np.ndarray:
        return None
    shape, dtype, strides = layout(array)
    return id(owner(array)), kernels.address(array), shape, dtype.str, strides


def pass_on(array):
    """Return the array itself."""
    return array


def assign(target, source):
    """Write an array into the memory of another one, which may be a part of an expanded one: NumPy locks all of it."""
    if type(target) is np.ndarray and not target.flags.writeable:
        target.flags.writeable = True  # NumPy refuses if the memory itself is read-only
    target[...] = source


def add_into(target, source):
    """Add an array to another one in place."""
    np.add(target, source, target)


def fill(array, shape):
    """Return a view of the one element of an array as an array of a shape."""
    return np.broadcast_to(array.reshape(()), shape)


def number(dtype, value):
    """Return a number as an array without dimensions."""
    return np.array(value, dtype)


def vector(numbers, dtype):
    """Return numbers as an array."""
    return np.array(numbers, dtype)


def copy(array):
    """Return a copy with the same order of the dimensions in memory."""
    return array.copy(order="K")
