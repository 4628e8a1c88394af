"""Kinds of arrays: each has a namespace of functions, registered by the array's type."""

import math

import numpy as np

from retrograd.backend import numpy as numpy_namespace
from retrograd.core import namespaces
from retrograd.core.tensor import memory_of

namespaces[np.ndarray] = numpy_namespace


def indexed_shape(shape, index):
    """The shape of an array of `shape` at `index`, where tuples stand for integer arrays of that shape."""
    probe = np.broadcast_to(np.zeros((), bool), shape)
    return probe[tuple(np.zeros(i, int) if isinstance(i, tuple) else i for i in index)].shape


def as_array(data):
    """A copy of numbers, nested lists or an array as a NumPy array, in this processor's order of bytes."""
    array = np.asarray(data)
    return np.array(array) if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def is_buffer(obj):
    """Whether an object shows its memory, by Python's buffer protocol."""
    try:
        memoryview(obj)
    except TypeError:
        return False
    return True


def as_shared(obj):
    """What knows DLPack, or shows its memory, as an array of the same memory."""
    if isinstance(obj, np.ndarray):
        return obj
    return np.from_dlpack(obj) if hasattr(obj, "__dlpack__") else np.asarray(memoryview(obj))


def from_buffer(buffer, dtype, count, offset):
    """The memory of an object as an array of one dimension."""
    return np.frombuffer(buffer, dtype, count, offset)


def memory(size):
    """So many bytes for others to write to; in huge pages if they are many, since NumPy asks the system for those."""
    return memoryview(np.empty(size, np.uint8))


def from_dlpack(obj, copy):
    """Another library's array as an array of the same memory, or of a copy."""
    return np.from_dlpack(obj, copy=copy)


def address(array):
    """Where the first element lies in memory."""
    return memory_of(array).__array_interface__["data"][0]


def distance(array):
    """How many bytes of the memory that an array is part of lie before its first element."""
    whole = memory_of(array)
    while isinstance(whole.base, np.ndarray):
        whole = whole.base
    return address(array) - np.lib.array_utils.byte_bounds(whole)[0]


def resized(array, shape):
    """Return the memory from the first element on in another shape, in row-major order.

    Where it ends too early, the result is a copy, with zeros behind what was there.
    """
    if type(array) is not np.ndarray:
        raise RuntimeError(f"resize_: the memory of arrays of {type(array).__name__} can't be resized")
    whole = array
    while isinstance(whole.base, np.ndarray):
        whole = whole.base
    if not whole.flags.forc:  # memory of others, with gaps
        array = whole = np.ascontiguousarray(array)
    memory = whole.ravel(order="K").view(np.uint8)[address(array) - np.lib.array_utils.byte_bounds(whole)[0] :]
    needed = math.prod(shape) * array.itemsize
    if needed > memory.size:
        grown = np.zeros(needed, np.uint8)
        grown[: memory.size] = memory
        memory = grown
    return memory[:needed].view(array.dtype).reshape(shape)


def read_only(array):
    """The same memory as an array that refuses writes; of another kind than NumPy's, the array itself."""
    if type(array) is not np.ndarray:
        return array
    view = array.view()
    view.flags.writeable = False
    return view


def shares_memory(a, b):
    """Whether two arrays show a common part of memory."""
    return type(a) is np.ndarray and type(b) is np.ndarray and np.may_share_memory(a, b)


def text(array, **options):
    """An array as the code that makes a tensor of it, but for the closing bracket; options are array2string's."""
    if type(array) is not np.ndarray:
        return namespaces[type(array)].text(array, **options)
    return "tensor(" + np.array2string(array, separator=", ", prefix="tensor(", **options)


def as_numpy(array):
    """An array of any kind as NumPy's, of the same memory; kinds that are none refuse."""
    return array if type(array) is np.ndarray else np.asarray(array)
