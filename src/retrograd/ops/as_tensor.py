"""Tensors from data: numbers, nested lists, arrays, buffers, other libraries' arrays."""

import functools
from numbers import Number

from retrograd import backend
from retrograd.backend.type_info import check_element_fits, check_holds
from retrograd.core import Tensor, current, namespaces, registry
from retrograd.core import dtype as dtypes
from retrograd.core.device import array_devices
from retrograd.core.dispatch import mark_inference
from retrograd.core.errors import OperandTypeError
from retrograd.core.tensor import make
from retrograd.foundation.suggestions import suggest_keywords
from retrograd.ops.functions import function
from retrograd.ops.layout import check_device, check_keywords, find_device, making_on, place


@function()
def tensor(data, dtype=None, requires_grad=False, *, device=None, pin_memory=False) -> Tensor:
    """Return a tensor with a copy of the data: a number, nested lists of numbers, an array, a tensor or a storage.

    Python floats become the default dtype, arrays keep theirs.  Bytes of a storage are read in the dtype, or as int64.

    >>> import retrograd as rg
    >>> rg.tensor([[1.0, 2.0]], requires_grad=True)
    tensor([[1., 2.]], requires_grad=True)
    """
    check_keywords(device, pin_memory=pin_memory)
    if isinstance(data, Tensor):
        copy = registry["clone"](data.detach())
        out = copy if dtype is None or copy.dtype == dtype else registry["to"](copy, dtype)
        out = out if device is None else place(out, find_device(device))
    else:
        with making_on(find_device(device)):
            out = _constant_tensor(_to_array("tensor", data, dtype))
    if requires_grad:
        out.requires_grad = requires_grad
    return out


def operand(name, value, dtype):
    """Return the value to be written by the named function as a tensor; Python numbers get the given dtype at once."""
    if hasattr(value, "dtype"):
        return as_tensor(value)
    check_element_fits(name, value, dtype)
    kind = type(value)
    if dtype.char in "fd" and (kind is float or (kind is int and -128 <= value <= 127)):  # most numbers: rounded once
        return _constant_tensor(backend.as_array(dtype.type(value)))
    return _constant_tensor(_to_array(name, value, dtype))


def _to_array(name, data, dtype):
    if type(data) in array_devices:
        array = namespaces[type(data)].array(data)
        return array if dtype is None else array.astype(dtypes.as_dtype(dtype))
    if hasattr(type(data), "_read_numbers"):  # a storage; proxies have any attribute
        return data._read_numbers(None if dtype is None else dtypes.as_dtype(dtype))
    try:
        array = backend.as_array(data)
    except ValueError as error:
        way_out = str(error)
        if "inhomogeneous" in way_out:
            way_out = "for rows of different lengths there is rg.nested.nested_tensor, or nn.utils.rnn.pad_sequence"
        raise ValueError(f"{name}: {_describe_uneven(data)}; {way_out}") from error
    if array.dtype.kind == "O":
        array = _large_integers(name, array, dtype)
    elif array.ndim > 1 and type(data) in (list, tuple):
        array = _without_dims_of_entries(data, array)
    dtypes.category(array.dtype)  # raises for dtypes that are not numeric
    if hasattr(data, "dtype"):
        return array if dtype is None else backend.convert(array, dtypes.as_dtype(dtype))
    if dtype is None:
        return array.astype(_infer_dtype(data, array.dtype), copy=False)
    dtype = dtypes.as_dtype(dtype)
    check_holds(name, array, dtype)
    return backend.convert(array, dtype)


def _large_integers(name, array, dtype):
    """Return Python integers that no integer dtype holds as floats for a floating dtype; an error for other objects."""
    odd = [value for value in array.flat if not isinstance(value, Number)]
    if odd or not array.size:
        kind = type(odd[0] if odd else array).__name__
        raise OperandTypeError(f"{name}: Could not infer dtype of {kind}: expected numbers and lists of numbers")
    if dtype is None or not dtypes.is_differentiable(dtypes.as_dtype(dtype)):
        raise ValueError(f"{name}: Overflow: an integer has more than 64 bits; pass dtype='float64'")
    return array.astype(dtypes.float64)


def _without_dims_of_entries(data, array):
    """Return the array of nested lists; tensors of one element among them are numbers, as in PyTorch."""
    depth, entry = 0, data
    while type(entry) in (list, tuple) and entry:
        depth, entry = depth + 1, entry[0]
    if array.ndim > depth and array.size and isinstance(entry, Tensor) and entry.size == 1:
        return array.reshape(array.shape[:depth])
    return array


def _describe_uneven(data, dim=0):
    """Return PyTorch's words for the first of nested lists that differs in length from the first at its depth."""
    rows = [row for row in data if isinstance(row, (list, tuple))]
    for row in rows:
        if len(row) != len(rows[0]):
            return f"expected sequence of length {len(rows[0])} at dim {dim + 1} (got {len(row)})"
    found = [_describe_uneven(row, dim + 1) for row in rows]
    return next((words for words in found if words.startswith("expected")), "the lists differ in length or depth")


_PYTHON_NUMBERS = {bool, int, float, complex}


def _infer_dtype(data, found):
    """Return the dtype to which the entries of nested lists promote, given the one that NumPy infers."""
    if found.kind not in "fc":  # which NumPy infers like PyTorch, where no Python float has a dtype of its own
        return found
    return functools.reduce(dtypes.promote, _dtypes_in(data) or {dtypes.get_default_dtype()})


def _dtypes_in(data):
    """Return the dtypes of the entries of nested lists, those of Python numbers after the default one."""
    if not isinstance(data, (list, tuple)):
        kind = next((kind for kind in (bool, int, complex) if isinstance(data, kind)), float)
        return {data.dtype if hasattr(data, "dtype") else dtypes.of_scalar(kind())}
    kinds = set(map(type, data))
    if kinds <= _PYTHON_NUMBERS:
        return {dtypes.of_scalar(kind()) for kind in kinds}
    return set().union(*map(_dtypes_in, data))


def _constant_tensor(array, *, moves=True):
    """Return a tensor of an array at the current level, so that it can become a leaf there.

    moves: whether the array is copied to the current device.
    """
    dtypes.category(array.dtype)
    if not array.dtype.isnative:
        raise ValueError(f"numbers of dtype {array.dtype.str} are in another order of bytes: rg.tensor copies them")
    device = current().device
    there = device is None or not moves or type(array) in array_devices
    array = backend.share_dtype(array)
    out = make(array if there else device.from_host(array), None, None)
    if current().inference:
        mark_inference(out)
    return out if current().level is None else registry["detach"](out)


@function()
def from_numpy(array) -> Tensor:
    """Return a tensor that shares the array's memory, on any current device: writes to one change the other.

    ValueError unless the array has the byte order of this processor.

    >>> import numpy as np
    >>> import retrograd as rg
    >>> rg.from_numpy(np.zeros(2))
    tensor([0., 0.], dtype=float64)
    """
    if type(array) not in namespaces:
        raise TypeError(f"from_numpy: expected np.ndarray (got {type(array).__name__}); rg.tensor takes other values")
    return _constant_tensor(backend.read_only(array) if _has_zero_stride(array) else array, moves=False)


def _has_zero_stride(array):
    """Whether more than one element of an array has the same memory, by a stride of 0."""
    if 0 not in getattr(array, "strides", ()) or 0 in array.shape:  # NumPy gives empty arrays strides of 0
        return False
    return any(size > 1 and stride == 0 for size, stride in zip(array.shape, array.strides, strict=True))


@function()
def as_tensor(data, dtype=None, device=None) -> Tensor:
    """Return the data as a tensor, without a copy if its memory can be shared.

    >>> import retrograd as rg
    >>> rg.as_tensor(3)
    tensor(3)
    """
    target = find_device(device)
    if isinstance(data, Tensor):
        out = data if dtype is None or data.dtype == dtype else registry["to"](data, dtype)
        return out if device is None else place(out, target)
    there = target is array_devices.get(type(data)) or (device is None and type(data) in array_devices)
    if there and type(data) in namespaces and (dtype is None or data.dtype == dtype) and data.dtype.isnative:
        return from_numpy(data)
    return tensor(data, dtype, device=device)


@function()
def asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=None) -> Tensor:
    """Convert numeric data to a tensor: data as for `tensor`, an object with DLPack, or a Python buffer.

    Memory is shared if possible; with copy=True never, and with copy=False a ValueError says if it can't be.  A
    tensor stays in its graph, unless `requires_grad` says otherwise.

    >>> import retrograd as rg
    >>> rg.asarray(memoryview(bytearray(b"ab")))
    tensor([97, 98], dtype=uint8)
    """
    check_device(device)
    native = getattr(getattr(obj, "dtype", None), "isnative", True)
    shares = native and (isinstance(obj, Tensor) or hasattr(obj, "__dlpack__") or backend.is_buffer(obj))
    source = obj if isinstance(obj, Tensor) or not shares else _constant_tensor(backend.share_memory(obj))
    out = as_tensor(source, dtype, device)
    if copy is False and (not shares or out.dtype != source.dtype):
        raise ValueError(f"asarray: {type(obj).__name__} can't become a tensor of dtype {out.dtype} without a copy")
    if copy and out is source:
        out = registry["clone"](out)
    if requires_grad in (None, out.requires_grad):
        return out
    return out.detach().requires_grad_(requires_grad)


@function()
def frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False) -> Tensor:
    """Return the memory of a Python object as a 1-d tensor, without a copy; read-only if the object is.

    It has `count` values of the dtype (-1: as many as fit), from byte `offset` on.

    >>> import retrograd as rg
    >>> rg.frombuffer(b"abcd", dtype=rg.uint8, offset=2)
    tensor([ 99, 100], dtype=uint8)
    """
    out = _constant_tensor(backend.from_buffer(buffer, dtypes.as_dtype(dtype), count, offset))
    if requires_grad:
        out.requires_grad = requires_grad
    return out


@function()
def from_dlpack(ext_tensor, *, device=None, copy=None) -> Tensor:
    """Return the memory of another library's array, or of a capsule of `to_dlpack`, as a tensor, by DLPack.

    >>> import numpy as np
    >>> import retrograd as rg
    >>> rg.from_dlpack(np.arange(3))
    tensor([0, 1, 2])
    """
    check_device(device)
    if type(ext_tensor).__name__ == "PyCapsule":
        ext_tensor = _Capsule(ext_tensor)
    if not hasattr(ext_tensor, "__dlpack__"):
        raise TypeError(f"from_dlpack: expected an array that knows DLPack, got {type(ext_tensor).__name__}")
    return _constant_tensor(backend.from_dlpack(ext_tensor, copy))


class _Capsule:
    """The exporter of memory on the CPU that a capsule describes."""

    def __init__(self, capsule):
        self._capsule = capsule

    def __dlpack__(self, **_):
        return self._capsule

    def __dlpack_device__(self):
        return (1, 0)


@function()
@suggest_keywords
def to_dlpack(tensor: Tensor):
    """Return a capsule for the memory of a tensor on the CPU, which `from_dlpack` of any library takes once.

    >>> import retrograd as rg
    >>> x = rg.arange(3)
    >>> rg.from_dlpack(rg.to_dlpack(x)).add_(1)
    tensor([1, 2, 3])
    >>> x
    tensor([1, 2, 3])
    """
    return tensor.__dlpack__(max_version=(1, 0))  # memory of older capsules is read-only for NumPy
