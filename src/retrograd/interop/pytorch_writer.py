"""Write PyTorch checkpoints without PyTorch."""

import os
import sys
import zipfile
from collections import OrderedDict
from typing import Any, BinaryIO

import numpy as np

import retrograd.ops  # noqa: F401  (tensors get their methods)
from retrograd.backend.stored_dtypes import as_strided
from retrograd.core import Tensor
from retrograd.core.device import device
from retrograd.core.dtype import TABLE
from retrograd.foundation.describe_value import describe
from retrograd.interop import pytorch_nested, pytorch_sparse, stored_classes
from retrograd.interop.atomic_write import atomic_replace
from retrograd.interop.pickle_writer import Call, Name, PersistentId, Write, Writer
from retrograd.interop.pickled_objects import writers
from retrograd.ops.layout import layout as Layout
from retrograd.ops.storage import TypedStorage, UntypedStorage

ALIGNMENT = 64
META = "torch._utils _rebuild_meta_tensor_no_storage"  # the function that rebuilds a tensor of the device "meta"


def save_file(obj: Any, f: str | os.PathLike[str] | BinaryIO) -> None:
    """Write tensors, and dicts, lists, tuples, sets, numbers and text around them, as `torch.save` writes them.

    `load_file` and PyTorch's `torch.load(..., weights_only=True)` read the file. Tensors that share memory share it
    again when they are read; the memory from the first to the last element in use is written. `requires_grad`,
    parameters, buffers and the attributes of tensors are written; gradients, hooks and graphs are not. NumPy scalars
    are written as Python's.

    An existing file is replaced atomically; `f` may also be an open binary file. Raises TypeError, before anything is
    written, for values that are not plain data, with their path.

    >>> import io, retrograd as rg
    >>> from retrograd.interop.pytorch import load_file
    >>> save_file({"epoch": 3, "weight": rg.ones(2)}, file := io.BytesIO())
    >>> load_file(file)
    {'epoch': 3, 'weight': tensor([1., 1.])}
    """
    if not isinstance(f, (str, os.PathLike)) and not hasattr(f, "write"):
        raise TypeError(
            f"save: expected a path or an open file, got {describe(f)}; the object comes first: save(obj, f)"
        )
    checkpoint = _Checkpoint(obj)
    if not isinstance(f, (str, os.PathLike)):
        checkpoint.write(f)
        return
    with atomic_replace(f) as unfinished, open(unfinished, "wb") as file:
        checkpoint.write(file)


class _Storage:
    """A range of memory that tensors view: from the first byte to the last that one of them uses."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.arrays: list[np.ndarray] = []

    def bounds(self) -> tuple[int, int]:
        """Return the addresses of the first byte, and after the last one."""
        both = [np.lib.array_utils.byte_bounds(array) for array in self.arrays]
        return min(low for low, _ in both), max(high for _, high in both)

    def contents(self) -> np.ndarray:
        """Return the bytes."""
        low, high = self.bounds()
        one = min(self.arrays, key=lambda array: np.lib.array_utils.byte_bounds(array)[0])
        first = as_strided(one, (min(one.size, 1),), (one.itemsize,))
        return as_strided(first.view(np.uint8), (high - low,), (1,))


class _Checkpoint:
    """The pickled data of an object, and the storages of its tensors."""

    def __init__(self, obj: Any) -> None:
        self._storages: dict[tuple, _Storage] = {}
        self._tensors: dict[int, tuple[Tensor, np.ndarray, _Storage]] = {}
        self._composite: dict[int, tuple[Tensor, Call | None]] = {}  # None for dense tensors
        self._states: dict[int, Any] = {}
        collect, put = (self._collect_tensor, self._collect_storage), (self._tensor, self._typed_storage)
        Writer(_object_writers(*collect)).put(obj, "save: obj")  # the storages and their sizes
        writer = Writer(_object_writers(*put))
        writer.put(obj, "save: obj")
        self._pickled = writer.data()

    def write(self, file: BinaryIO) -> None:
        """Write the archive."""
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            _add(archive, "data.pkl", self._pickled)
            _add(archive, ".format_version", b"1")
            _add(archive, ".storage_alignment", b"%d" % ALIGNMENT)
            _add(archive, "byteorder", sys.byteorder.encode())
            for storage in self._storages.values():
                _add(archive, f"data/{storage.number}", storage.contents().data)
            _add(archive, "version", b"3\n")

    def _collect_tensor(self, writer: Writer, tensor: Tensor, where: str) -> None:
        composite = self._composite_call(tensor)
        if composite is not None:
            writer.put(composite, where)
        elif not tensor.is_meta:
            array = _array(tensor, where)
            self._tensors[id(tensor)] = (tensor, array, self._storage_of(array))
        self._states[id(tensor)] = state = stored_classes.stored_state(tensor)
        writer.put(state, f"{where} (its attributes)")
        writer.keep(tensor)

    def _storage_of(self, array: np.ndarray, *of_its_own: int) -> _Storage:
        """Return the range of memory that an array belongs to, which becomes larger if it must."""
        key = (id(_root(array)), array.dtype, _address(array) % array.itemsize, *of_its_own)
        storage = self._storages.setdefault(key, _Storage(len(self._storages)))
        storage.arrays.append(array)
        return storage

    def _collect_storage(self, writer: Writer, storage: TypedStorage | UntypedStorage, where: str) -> None:
        self._storage_of(_elements(storage, where))

    def _typed_storage(self, writer: Writer, storage: TypedStorage | UntypedStorage, where: str) -> None:
        array = _elements(storage, where)
        start = _address(array)
        written = self._storage_of(array)
        if written.bounds() != (start, start + array.nbytes):  # storages of parts of one memory
            written = self._storage_of(array, start, array.nbytes)
        writer.put(_storage_id(written, array), where)

    def _composite_call(self, tensor: Tensor) -> Call | None:
        """Return the call that builds a tensor which is nested or sparse; None for others."""
        if id(tensor) not in self._composite:
            made = pytorch_nested.rebuild_call(tensor) or pytorch_sparse.rebuild_call(tensor)
            self._composite[id(tensor)] = (tensor, None if made is None else Call(*made))
        return self._composite[id(tensor)][1]

    def _tensor(self, writer: Writer, tensor: Tensor, where: str) -> None:
        def plain(requires_grad: bool) -> Call:
            return self._composite_call(tensor) or self._dense_call(tensor, requires_grad)

        writer.put(stored_classes.rebuild_call(tensor, self._states[id(tensor)], plain, where), where)
        writer.keep(tensor)

    def _dense_call(self, tensor: Tensor, requires_grad: bool) -> Call:
        if tensor.is_meta:
            dtype = Name(f"torch {tensor.dtype.name}")
            return Call(META, (dtype, tuple(tensor.shape), tensor.stride(), requires_grad))
        _, array, storage = self._tensors[id(tensor)]
        offset = (_address(array) - storage.bounds()[0]) // array.itemsize
        steps = tuple([step // array.itemsize for step in array.strides]) if array.size else tensor.stride()
        arguments: tuple = (_storage_id(storage, array), offset, array.shape, steps, requires_grad, OrderedDict())
        if TABLE[array.dtype.name].storage:
            return Call("torch._utils _rebuild_tensor_v2", arguments)
        return Call("torch._utils _rebuild_tensor_v3", (*arguments, Name(f"torch {array.dtype.name}")))


def _storage_id(storage: _Storage, array: np.ndarray) -> PersistentId:
    """Return the reference to a storage whose elements are of an array's dtype."""
    low, high = storage.bounds()
    typed = TABLE[array.dtype.name].storage  # None for some that have no typed storage in PyTorch
    kind = f"torch {typed}Storage" if typed else "torch.storage UntypedStorage"
    size = (high - low) // array.itemsize if typed else high - low
    return PersistentId(("storage", Name(kind), str(storage.number), "cpu", size))


def _object_writers(tensor: Write, storage: Write) -> dict[type, Write]:
    """Return the functions that write supported objects which are not plain data."""
    return {
        **writers(),
        Tensor: tensor,
        TypedStorage: storage,
        UntypedStorage: storage,
        np.dtype: _dtype,
        Layout: _layout,
        device: _device,
        np.generic: lambda writer, value, where: writer.put(value.item(), where),
        tuple: lambda writer, value, where: writer.row(tuple(value), where),
        dict: lambda writer, value, where: writer.pairs(value, where),
    }


def _check_dtype(dtype: np.dtype, where: str) -> None:
    if dtype.name not in TABLE:
        raise TypeError(f"{where} has the dtype {dtype}, which PyTorch lacks")


def _layout(writer: Writer, value: Layout, where: str) -> None:
    writer.call("torch.serialization _get_layout", ("torch" + repr(value).removeprefix("retrograd"),), where)


def _device(writer: Writer, value: device, where: str) -> None:
    writer.call("torch device", (value.type,) if value.index is None else (value.type, value.index), where)


def _dtype(writer: Writer, value: np.dtype, where: str) -> None:
    _check_dtype(value, where)
    writer.put(Name(f"torch {value.name}"), where)


def _array(tensor: Tensor, where: str) -> np.ndarray:
    """Return the array of a tensor, in a layout that the format supports: no negative strides."""
    array = tensor.detach().cpu().numpy()
    _check_dtype(array.dtype, where)
    regular = array.dtype.isnative and all(s >= 0 and s % array.itemsize == 0 for s in array.strides)
    return array if regular else np.array(array, array.dtype.newbyteorder("="), order="C")


def _elements(storage: TypedStorage | UntypedStorage, where: str) -> np.ndarray:
    """Return the elements of a storage, bytes if it is untyped."""
    array = storage._array
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{where} is a storage on the device {storage.device}, which a file can't hold")
    _check_dtype(array.dtype, where)
    return array


def _address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def _root(array: np.ndarray) -> Any:
    """Return the object that owns the memory of an array."""
    found: Any = array
    while isinstance(found, np.ndarray) and found.base is not None:
        found = found.base
    return found


def _add(archive: zipfile.ZipFile, name: str, content: Any) -> None:
    """Write an entry at a multiple of the alignment, so that the file can be mapped into memory."""
    entry = zipfile.ZipInfo(f"archive/{name}")
    start = archive.fp.tell() + 30 + len(entry.filename) + 4  # type: ignore[union-attr]
    padding = -start % ALIGNMENT
    entry.extra = b"FB" + padding.to_bytes(2, "little") + b"Z" * padding
    archive.writestr(entry, content)
