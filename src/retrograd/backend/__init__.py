"""The kinds of arrays: each has a namespace of functions, registered under the array's type."""

import copy
import math
import os
import sys

import numpy as np

from retrograd import kernels
from retrograd.backend import dlpack
from retrograd.backend import numpy as numpy_namespace
from retrograd.backend.devices import cupy_device, device_named
from retrograd.backend.stored_dtypes import as_strided
from retrograd.backend.stored_dtypes import convert as convert
from retrograd.core import namespaces
from retrograd.core.device import array_devices
from retrograd.core.operand_errors import replace_numpy_words
from retrograd.core.views import memory_of
from retrograd.foundation.lazy_imports import lazy_module

namespaces[np.ndarray] = numpy_namespace

DLPACK_CUDA = 2  # the type of GPUs in DLPack


def indexed_shape(shape, index):
    """Return the shape of `array[index]` for an array of `shape`; tuples in `index` stand for integer arrays."""
    probe = np.broadcast_to(np.zeros((), bool), shape)
    try:
        return probe[tuple(np.zeros(i, int) if isinstance(i, tuple) else i for i in index)].shape
    except IndexError as error:
        raise IndexError(replace_numpy_words(str(error))) from None


def as_array(data):
    """Return a copy of numbers, nested lists or an array as a NumPy array in native byte order."""
    array = np.asarray(data)
    return np.array(array) if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def share_dtype(array):
    """Return an array whose dtype is the one object that `rg.float32` or another name has; the array, if it is.

    NumPy copies dtypes with pickled arrays, and scripts compare them by `is`.
    """
    own = np.dtype(array.dtype.type)
    if own is array.dtype:
        return array
    if hasattr(array, "view"):
        return array.view(own)
    composite = copy.copy(array)
    composite.values = share_dtype(array.values)
    return composite


def is_buffer(obj):
    """Return whether an object supports Python's buffer protocol."""
    try:
        memoryview(obj)
    except TypeError:
        return False
    return True


def share_memory(obj):
    """Return an array that shares the memory of an object with DLPack or the buffer protocol."""
    if isinstance(obj, np.ndarray):
        return obj
    return dlpack.from_dlpack(obj) if hasattr(obj, "__dlpack__") else np.asarray(memoryview(obj))


def from_buffer(buffer, dtype, count, offset):
    """Return the memory of an object as a one-dimensional array."""
    return np.frombuffer(buffer, dtype, count, offset)


def memory(size):
    """Return writable memory of that many bytes; large blocks use huge pages, which NumPy requests."""
    return memoryview(np.empty(size, np.uint8))


def from_dlpack(obj, copy):
    """Return an array that shares the memory of another library's array, or has a copy of it; on a GPU a CuPy array."""
    kind, _ = obj.__dlpack_device__() if hasattr(obj, "__dlpack_device__") else (1, 0)
    gpu = device_named("cuda") if kind == DLPACK_CUDA else None
    return dlpack.from_dlpack(obj, copy=copy) if gpu is None else gpu.from_dlpack(obj, copy)


def to_dlpack(array, **options):
    """Return a DLPack capsule for the memory of an array on any device, with the options of `__dlpack__`."""
    export = dlpack.to_dlpack if type(array) is np.ndarray else type(array).__dlpack__
    return export(array, **options)


def pinned_copy(array):
    """Return a copy of a NumPy array in pinned memory; RuntimeError without a GPU."""
    return cupy_device().pinned_copy(array)


def is_pinned(array):
    """Return whether a NumPy array is in pinned memory."""
    return cupy_device().is_pinned(array)


def shared_copy(array):
    """Return a copy of a NumPy array in memory that other processes can share."""
    return lazy_module("retrograd.backend.shared_memory").shared_copy(array)


def is_shared(array):
    """Return whether an array is in memory of `shared_copy`."""
    module = sys.modules.get("retrograd.backend.shared_memory")  # without it, nothing is
    return module is not None and module.mapping_of(array) is not None


def address(array):
    """Return the memory address of the first element."""
    array = memory_of(array)
    return array.data.ptr if type(array) in array_devices else kernels.address(array)


def _owner(array):
    """Return the array that owns the memory of one of NumPy's arrays: itself, or the last of its bases."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def distance(array):
    """Return the byte offset of an array's first element in the memory that the array is part of."""
    whole = memory_of(array)
    if type(whole) in array_devices:
        return whole.data.ptr - whole.data.mem.ptr
    owner = _owner(whole)
    return 0 if owner is whole else address(array) - np.lib.array_utils.byte_bounds(owner)[0]


def resize_memory(array, shape):
    """Return an array of another shape over the memory from the first element on, in row-major order.

    If the memory is too short, the result is a copy, padded with zeros.
    """
    if type(array) is not np.ndarray:
        raise RuntimeError(f"resize_: the memory of arrays of {type(array).__name__} can't be resized")
    whole = _owner(array)
    if not whole.flags.forc:  # the owner's memory is not contiguous
        array = whole = np.ascontiguousarray(array)
    memory = whole.ravel(order="K").view(np.uint8)[address(array) - np.lib.array_utils.byte_bounds(whole)[0] :]
    needed = math.prod(shape) * array.itemsize
    if needed > memory.size:
        grown = np.zeros(needed, np.uint8)
        grown[: memory.size] = memory
        memory = grown
    return memory[:needed].view(array.dtype).reshape(shape)


def read_only(array):
    """Return a read-only view of the same memory; arrays that are not NumPy's are returned as they are."""
    if type(array) is not np.ndarray:
        return array
    view = array.view()
    view.flags.writeable = False
    return view


def shares_memory(a, b):
    """Return whether two arrays share memory."""
    if type(a) in array_devices:
        return type(a) is type(b) and array_devices[type(a)].share_memory(a, b)
    return type(a) is np.ndarray and type(b) is np.ndarray and np.may_share_memory(a, b)


def writes_over(ufunc, array):
    """Return whether a ufunc is right if its result is written over its operand.

    NumPy's `negative` takes some strides, of 16 bytes and of 64, for contiguous memory there (2.4.6, with AVX-512).
    """
    return ufunc.__name__ != "negative" or array.flags.c_contiguous


def text(array, options, *, name="", notes=(), part_notes=()):
    """Return the code that creates the tensor: `array_text.text` of any kind of array.

    `name` is that of a subclass.  An array that consists of several has `part_notes` in the text of each.
    """
    if type(array) is np.ndarray:
        return lazy_module("retrograd.backend.array_text").text(array, options, name=name or "tensor", notes=notes)
    if type(array) in array_devices:
        found = array_devices[type(array)]
        if not found.has_elements:
            described = f"..., device='{found.device}', size={tuple(array.shape)}"
            return f"{name or 'tensor'}({', '.join([described, f'dtype={array.dtype}', *notes])})"
        return text(found.to_host(array), options, name=name, notes=(f"device='{found.device}'", *notes))
    given = {"name": name} if name else {}
    return namespaces[type(array)].text(array, options, notes=notes, part_notes=part_notes, **given)


def as_numpy(array, copied=False):
    """Return an array of any kind as a NumPy array of the same memory; raise for kinds without one.

    copied: return a copy of an array that is on a device.
    """
    if type(array) in array_devices:
        found = array_devices[type(array)]
        if copied and found.has_elements:
            return found.to_host(array)
        raise TypeError(
            f"can't convert {found.device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host "
            f"memory first; its shape is {array.shape}"
        )
    return array if type(array) is np.ndarray else np.asarray(array)


def whole_memory(array):
    """Return the bytes of the memory that an array is part of, as an array that shares them."""
    if type(array) in array_devices and not array_devices[type(array)].has_elements:
        return type(array)((array.nbytes,), np.uint8, array.memory_id)
    whole = _owner(memory_of(array))
    if whole.size and whole.flags.forc:
        return whole.ravel(order="K").view(np.uint8)
    low, high = np.lib.array_utils.byte_bounds(whole)
    first = as_strided(whole, (min(whole.size, 1),), (whole.itemsize,)).view(np.uint8)
    return as_strided(first, (high - low if whole.size else 0,), (1,))


def map_file(path, dtype, count, shared):
    """Return the first `count` elements of a file as an array; changes reach the file if it is shared."""
    needed = count * dtype.itemsize
    if not count:
        return np.empty(0, dtype)
    if shared:
        with open(path, "ab") as file:
            if file.tell() < needed:
                file.truncate(needed)
    elif os.stat(path).st_size < needed:
        raise ValueError(f"from_file: {os.fspath(path)} is shorter than {needed} bytes, {count} elements of {dtype}")
    return np.memmap(path, dtype, "r+" if shared else "c", shape=(count,)).view(np.ndarray)


def stack_arrays(arrays):
    """Return NumPy's arrays of one numeric dtype and shape, stacked along a new first dimension; None for others."""
    first = arrays[0]
    if type(first) is not np.ndarray or first.dtype.kind not in "biufc" or not first.dtype.isnative or not first.ndim:
        return None
    shape, dtype = first.shape, first.dtype
    for a in arrays:
        if type(a) is not np.ndarray or a.shape != shape or a.dtype != dtype:
            return None
    return np.concatenate(arrays).reshape(len(arrays), *shape)
