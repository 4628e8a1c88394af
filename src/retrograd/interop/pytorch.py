"""Read and write PyTorch checkpoints without PyTorch, and without running code from the file."""

import errno
import mmap as memory_map
import os
import struct
import zipfile
from collections import Counter, OrderedDict
from contextlib import nullcontext
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

import retrograd.ops  # noqa: F401  (tensors get their methods)
from retrograd.backend.stored_dtypes import as_strided
from retrograd.core import Tensor
from retrograd.core import dtype as dtypes
from retrograd.core.blocks import generator_block
from retrograd.core.device import device, is_device_type
from retrograd.interop import program_files, pytorch_sparse, stored_classes
from retrograd.interop.atomic_write import open_regular_file, shorten
from retrograd.interop.pickled_objects import allowed_globals, restorers
from retrograd.interop.pytorch_nested import (
    JAGGED,
    JAGGED_CLASS,
    MARKER,
    from_jagged,
    from_marker_entries,
    from_strided,
)
from retrograd.interop.pytorch_writer import save_file
from retrograd.interop.safe_unpickler import (
    AllowedGlobal,
    IgnoredObject,
    RefusedError,
    members_of_set,
    pairs_to_dict,
    read,
    short_repr,
)
from retrograd.ops.create import empty, from_numpy
from retrograd.ops.storage import TypedStorage, UntypedStorage

__all__ = ["load_file", "save_file"]

# Names of storages and dtypes.
STORAGES = dtypes.STORAGES
DTYPES = set(dtypes.TABLE)
_KINDS = ("tensor_v2", "tensor_v3", "nested_tensor", "sparse_tensor", "meta_tensor_no_storage")
_REBUILD = [f"torch._utils _rebuild_{kind}" for kind in _KINDS]
UNSUPPORTED_DTYPES = ("complex32", "qint8", "quint8", "qint32")
HEADER = struct.Struct("<26xHH")


def load_file(path: str | os.PathLike[str] | BinaryIO, *, mmap: bool = False):
    """Load a file of `torch.save` or `save_file`: tensors in dicts and lists, with numbers and text.

    A state dict becomes the dict that `Module.load_state_dict` takes. Views of one memory stay views, parameters stay
    parameters, and tensors keep `requires_grad` and the attributes that users have set. `torch.Size` becomes a tuple, a
    dtype NumPy's, a device a `device`.

    mmap: map the file into memory and read only what is used, for checkpoints larger than memory. Writes to tensors do
    not reach the file, which must not change meanwhile. Checksums are verified only without it.

    No code in the file is run: it may hold only the types named above, and memory use is proportional to its size.
    Raises FileNotFoundError if there is no file, and other OSErrors if it cannot be read; ValueError for a damaged
    file, one from before PyTorch 1.6, and unsupported content, which the message names; and TypeError for dtypes that
    NumPy lacks. All of them name the file.

    >>> from retrograd.interop.pytorch import load_file
    >>> state = load_file("model.pt")  # doctest: +SKIP
    >>> model.load_state_dict(state)  # doctest: +SKIP
    """
    if mmap and not _is_path(path):
        raise MappingError("mmap=True needs the path of a file, not an open one")
    if isinstance(path, (str, os.PathLike)) and program_files.is_folder(Path(path)):
        raise ValueError(f"{path}: {_PROGRAM}")
    with nullcontext(path) if hasattr(path, "read") else open_regular_file(path) as file, _name_in_errors(path):
        if not zipfile.is_zipfile(file):
            raise _other_file_error(cast(BinaryIO, file))
        with zipfile.ZipFile(file) as archive:
            return _Checkpoint(archive, file, mmap).read()


class MappingError(TypeError, ValueError):
    """The error for `mmap=True` with an open file; ValueError in PyTorch."""


class EmptyFileError(ValueError, EOFError):
    """The error for a file without content; EOFError in PyTorch."""


def _other_file_error(file: BinaryIO) -> ValueError:
    """Return the error that says what a file is that is no zip archive, and what to do about it."""
    file.seek(0)
    start = file.read(9)
    if not start:
        return EmptyFileError("no checkpoint: the file is empty, or an open one of which nothing was written")
    if start[8:] == b"{":  # behind the length of the header
        return ValueError("a safetensors file by its content: give it a name that ends with .safetensors")
    return ValueError("no checkpoint, or one of a PyTorch before 1.6; torch.save(torch.load(...), ...) renews it")


def _is_path(path):
    return isinstance(path, (str, os.PathLike))


_PROGRAM = "it is an exported program or a compiled function: export.load or compiler.load_compiled_function reads it"


@generator_block
def _name_in_errors(path):
    """Name the file in every error, and unify zipfile's various errors for a damaged archive."""
    name = os.fspath(path) if _is_path(path) else repr(path)
    try:
        yield
    except MemoryError:
        raise
    except RefusedError as error:
        raise TypeError(f"{name}: {error}") from error
    except OSError as error:
        if error.errno not in (None, errno.EINVAL):  # EINVAL: the archive refers to an offset before its beginning
            raise type(error)(error.errno, error.strerror, name) from error
        raise ValueError(f"{name} is damaged: {error}") from error
    except EmptyFileError as error:
        raise EmptyFileError(f"{name}: {error}") from error
    except ValueError as error:
        raise ValueError(f"{name}: {shorten(str(error))}") from error
    except Exception as error:
        raise ValueError(f"{name} is damaged: {shorten(str(error)) or type(error).__name__}") from error


def _entries(infos, length):
    """Return the entries of an archive by name, without the common folder; check for duplicates and bounds."""
    if {*program_files.NAMES} <= {info.filename for info in infos}:
        raise ValueError(_PROGRAM)
    entries = {info.filename.partition("/")[2]: info for info in infos}
    if len(entries) != len(infos):
        raise ValueError("damaged: a name is in the archive twice")
    if sum(info.file_size for info in infos if info.compress_type == zipfile.ZIP_STORED) > length:
        raise ValueError(f"damaged: its entries say that they are longer than the file, which has {length} bytes")
    return entries


class _Memory:
    """The memory of a storage: bytes, or values of a dtype."""

    def __init__(self, array, dtype, count):
        self.array = array
        self.dtype = dtype
        self.count = count


class _Checkpoint:
    """An open archive, and its storages that have been read."""

    def __init__(self, archive, file, mmap):
        self._archive = archive
        self._entries = _entries(archive.infolist(), file.seek(0, os.SEEK_END))
        self._mapping = _map_file(file) if mmap else None
        self._storages = {}  # by their keys in the file
        self._memories = {}  # what they consist of, by id() of the storage
        self._order = self._byte_order()

    def read(self):
        """Return the saved object."""
        if "constants.pkl" in self._entries:
            raise ValueError("a TorchScript program, not a checkpoint; save its state_dict()")
        return read(self._bytes("data.pkl"), self._allowed_globals(), self._storage, restorers())

    def _byte_order(self):
        order = self._bytes("byteorder").decode() if "byteorder" in self._entries else "little"
        if order not in ("little", "big"):
            raise ValueError(f"damaged: the byte order is {order!r}")
        return "<" if order == "little" else ">"

    def _bytes(self, name):
        return self._archive.read(self._entry(name))

    def _entry(self, name):
        if name not in self._entries:
            raise ValueError(f"no checkpoint of PyTorch, or a damaged one: it lacks {name}")
        info = self._entries[name]
        if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
            raise ValueError(f"damaged: {name} is compressed, which torch.save never does")
        if info.compress_size != info.file_size:
            raise ValueError(f"damaged: {name} is of {info.file_size} bytes and of {info.compress_size}")
        return info

    # ---------------------------------------------------------------------------------------------- names

    def _allowed_globals(self):
        calls = {
            "torch._utils._rebuild_tensor": self._tensor,
            "torch._utils._rebuild_tensor_v2": self._tensor,
            "torch._utils._rebuild_tensor_v3": self._tensor_of_dtype,
            "torch._utils._rebuild_parameter": stored_classes.rebuild_parameter,
            "torch._utils._rebuild_parameter_with_state": stored_classes.rebuild_parameter,
            "torch._utils._rebuild_nested_tensor": self._nested_tensor,
            "torch._utils._rebuild_sparse_tensor": pytorch_sparse.rebuild,
            "torch._utils._rebuild_meta_tensor_no_storage": _meta_tensor,
            "torch.serialization._get_layout": pytorch_sparse.layout_named,
            "torch._tensor._rebuild_from_type_v2": self._tensor_subclass,
            "torch._dynamo.decorators._DimRange": IgnoredObject,
            "torch.Size": tuple,
            "torch.device": _device,
            "collections.OrderedDict": _ordered_dict,
            "collections.Counter": _counter,
            **dict.fromkeys(("builtins.set", "__builtin__.set"), members_of_set),
            **dict.fromkeys(("builtins.bytearray", "__builtin__.bytearray"), _bytearray),
            **dict.fromkeys(("builtins.complex", "__builtin__.complex"), complex),
            "_codecs.encode": _encode,
        }
        known = {name: AllowedGlobal(name, call) for name, call in calls.items()}
        for name in (JAGGED, JAGGED_CLASS, stored_classes.TENSOR, *_REBUILD):
            dotted = name.replace(" ", ".")
            known[dotted] = AllowedGlobal(dotted, calls.get(dotted), value=name)
        for storage, dtype in STORAGES.items():
            known[f"torch.{storage}Storage"] = AllowedGlobal(storage, value=dtype)
        known["torch.storage.UntypedStorage"] = AllowedGlobal("UntypedStorage", value="uint8")
        known |= allowed_globals()
        return known | {f"torch.{dtype}": _dtype(dtype) for dtype in (*DTYPES, *UNSUPPORTED_DTYPES)}

    # -------------------------------------------------------------------------------------------- tensors

    def _storage(self, saved):
        """Return the storage that the pickled data refers to, read once."""
        kind, stored, key, _device, count = saved
        if (
            kind != "storage"
            or not isinstance(stored, AllowedGlobal)
            or not isinstance(key, str)
            or not _is_size(count)
        ):
            raise ValueError(f"damaged: a storage is {short_repr(saved)}")
        if stored.value not in DTYPES:
            raise ValueError(f"damaged: a storage of {stored.name}")
        if key not in self._storages:
            memory = _Memory(self._memory(f"data/{key}"), stored.value, count)
            untyped = UntypedStorage._of(self._numbers(memory, stored.value)[:count].view(np.uint8))
            self._storages[key] = typed = TypedStorage(wrap_storage=untyped, dtype=stored.value)
            self._memories[id(typed)] = memory
        memory = self._memories[id(self._storages[key])]
        if memory.dtype != stored.value or memory.count != count:
            raise ValueError(f"damaged: storage {key} is both {memory.dtype} and {stored.value}")
        return self._storages[key]

    def _memory(self, name):
        """Return the bytes of an entry, writable."""
        info = self._entry(name)
        if self._mapping is None:
            return np.frombuffer(bytearray(self._archive.read(info)), np.uint8)
        names, extra = HEADER.unpack(self._mapping[info.header_offset : info.header_offset + HEADER.size].tobytes())
        start = info.header_offset + HEADER.size + names + extra
        found = self._mapping[start : start + info.file_size]
        if found.size != info.file_size:
            raise ValueError(f"damaged: {name} is cut off")
        return found

    def _tensor(self, storage, offset, size, stride, requires_grad=False, hooks=None, metadata=None):
        return self._view(storage, None, offset, size, stride, metadata, requires_grad)

    def _tensor_of_dtype(self, storage, offset, size, stride, requires_grad, hooks, dtype, metadata=None):
        return self._view(storage, str(dtype), offset, size, stride, metadata, requires_grad)

    def _view(self, storage, dtype, offset, size, stride, metadata, requires_grad):
        if not isinstance(storage, TypedStorage) or (dtype := dtype or storage.dtype.name) not in DTYPES:
            raise RefusedError(f"a tensor of {dtype}, which NumPy does not have")
        array = self._numbers(self._memories[id(storage)], dtype)
        _check_view(array.size, offset, size, stride)
        for name in [name for name, flag in (metadata or {}).items() if flag]:
            array = _FLAGS[name](array)  # before the view, which may repeat one element very often
        strides = [step * array.itemsize for step in stride]
        view = np.ndarray(size, array.dtype, array, offset * array.itemsize, strides)  # its base is the storage
        return from_numpy(view).requires_grad_(requires_grad is True)

    def _tensor_subclass(self, func, kind, arguments, state):
        """Return a tensor with the attributes that users have set, maybe of a subclass that is allowed."""
        is_jagged = func == JAGGED and kind == JAGGED_CLASS and len(arguments) == 1 and isinstance(arguments[0], dict)
        if is_jagged:
            return stored_classes.rebuild_of_class(from_jagged(**arguments[0]), stored_classes.TENSOR, state)
        is_tensor = kind == stored_classes.TENSOR or (isinstance(kind, type) and issubclass(kind, Tensor))
        if func in _REBUILD and is_tensor:
            return stored_classes.rebuild_of_class(self._rebuild(func)(*arguments), kind, state)
        raise ValueError(f"it makes a {short_repr(kind)} by {short_repr(func)}, which is no tensor here")

    def _rebuild(self, name):
        made = (self._tensor, self._tensor_of_dtype, self._nested_tensor, pytorch_sparse.rebuild, _meta_tensor)
        return dict(zip(_REBUILD, made, strict=True))[name]

    def _nested_tensor(self, buffer, sizes, strides, offsets):
        return from_strided(_component, buffer, sizes, strides, offsets)

    def _numbers(self, memory, dtype):
        """Return a memory as an array; all views share it if its bytes can be used directly."""
        if not isinstance(memory.array, dict):
            memory.array = {"bytes": memory.array}
        arrays = memory.array
        if dtype not in arrays:
            arrays[dtype] = _decode(arrays["bytes"], dtype, self._order)
        if dtype == memory.dtype and arrays[dtype].size < memory.count:
            raise ValueError(f"damaged: a storage has {arrays[dtype].size} numbers, not {memory.count}")
        return arrays[dtype]


def _component(flat, offset, size, stride):
    """Return a component of a nested tensor, in the common buffer."""
    _check_view(flat.size, offset, size, stride)
    strides = [step * flat.itemsize for step in stride]
    return from_numpy(as_strided(flat[offset:], size, strides))


def _meta_tensor(dtype, size, stride, requires_grad):
    """Return a tensor of the device "meta", which has no memory; here its strides are row-major."""
    if str(dtype) not in DTYPES:
        raise RefusedError(f"a tensor of {short_repr(dtype)}, which NumPy does not have")
    _check_view(2**62, 0, size, stride)
    return empty(size, dtype=dtype, device="meta").requires_grad_(requires_grad is True)


_FLAGS = {"conj": np.conj, "neg": np.negative}


def _decode(data, dtype, order):
    if dtype == "bool":
        return data.view(np.bool_) if data.max(initial=0) <= 1 else data != 0
    raw = _raw_dtype(dtype).newbyteorder(order)
    if data.size % raw.itemsize:
        raise ValueError(f"damaged: {data.size} bytes of {dtype}")
    if data.ctypes.data % raw.alignment:
        data = data.copy()
    numbers = data.view(raw)
    numbers = numbers if raw.isnative else numbers.astype(raw.newbyteorder("="))
    return numbers.view(dtypes.as_dtype(dtype))


def _raw_dtype(name):
    """Return the dtype of a storage's bytes: unsigned integers for dtypes of `ml_dtypes`, which have one byte order."""
    return np.dtype({2: "uint16", 1: "uint8"}[dtypes.as_dtype(name).itemsize] if name in dtypes.EXTENSIONS else name)


def _check_view(count, offset, size, stride):
    """Refuse a view that reaches beyond its memory."""
    shape = (type(size) is tuple) and (type(stride) is tuple) and len(size) == len(stride)
    if not shape or not all(map(_is_size, (offset, *size, *stride))):
        raise ValueError(
            f"damaged: a tensor of size {short_repr(size)}, stride {short_repr(stride)}, offset {short_repr(offset)}"
        )
    last = offset + sum((length - 1) * step for length, step in zip(size, stride, strict=True))
    if (0 not in size and last >= count) or offset > count:
        raise ValueError(f"damaged: a tensor of size {short_repr(size)} reaches beyond its storage of {count} numbers")


def _is_size(value):
    return type(value) is int and 0 <= value < 2**62


def _map_file(file):
    return np.frombuffer(memory_map.mmap(file.fileno(), 0, access=memory_map.ACCESS_COPY), np.uint8)


def _dtype(name):
    """Return a saved dtype: NumPy's, or its name if NumPy lacks it."""
    return name if name in UNSUPPORTED_DTYPES else dtypes.as_dtype(name)


def _device(kind, index=None):
    if type(kind) is not str or type(index) not in (int, type(None)):
        raise ValueError(f"damaged: a device {short_repr(kind)}, {short_repr(index)}")
    return device(kind, index) if is_device_type(kind) else kind if index is None else f"{kind}:{index}"


def _ordered_dict(items=()):
    """Return the OrderedDict of pairs; a nested tensor if they describe one."""
    made = OrderedDict(pairs_to_dict([part for pair in items for part in _pair(pair)]))
    return from_marker_entries(made) if MARKER in made else made


def _counter(counts=None):
    if type(counts) not in (dict, type(None)):
        raise ValueError(f"damaged: the counts of a Counter are {short_repr(counts)}")
    return Counter(counts)


def _bytearray(data=b""):
    if type(data) is not bytes:
        raise ValueError(f"damaged: a bytearray of {short_repr(data)}")
    return bytearray(data)


def _pair(value):
    key, member = value
    return key, member


def _encode(text, encoding="latin1"):
    """Return bytes, as encoded in protocol 2 pickles."""
    if encoding not in ("latin1", "latin-1", "utf-8"):
        raise ValueError(f"damaged: the encoding {encoding!r}")
    return str.encode(text, encoding)
