"""Storages: the memory that tensors view, as objects of PyTorch's classes."""

import copy
import os
import sys
from typing import Any

from retrograd import backend
from retrograd.backend.memory_layout import deep_copy
from retrograd.core import Tensor
from retrograd.core import dtype as dtypes
from retrograd.core.device import array_devices
from retrograd.foundation.describe_value import describe
from retrograd.ops.as_tensor import tensor
from retrograd.ops.create import empty
from retrograd.ops.functions import function
from retrograd.ops.layout import CPU, find_device, making_on
from retrograd.ops.legacy import DtypeClassMeta


class _Storage:
    """The base class of storages of bytes and of elements, `_array`, an array of one dimension.

    Writes to a storage do not count as writes to the tensors that view it, so a backward pass does not find them, as in
    PyTorch.  Two storages are equal if they are the same memory.
    """

    __slots__ = ()
    _array: Any
    is_cuda = is_sparse = is_sparse_csr = is_hpu = False

    @property
    def device(self):
        """The device of the memory."""
        found = array_devices.get(type(self._array))
        return CPU if found is None else found.device

    def nbytes(self):
        """Return the number of bytes."""
        return self._array.nbytes

    def size(self):
        """Return the number of elements."""
        return self._array.size

    __len__ = size

    def data_ptr(self):
        """Return the address of the first byte."""
        return backend.address(self._array)

    def element_size(self):
        """Return the number of bytes of an element."""
        return self._array.itemsize

    def tolist(self):
        """Return the elements as Python numbers."""
        self._check_elements()
        return self._array.tolist()

    def is_shared(self):
        """Return whether other processes can share the memory, by `Tensor.share_memory_`."""
        return backend.is_shared(self._array)

    def is_pinned(self, device=None):
        """Return whether the memory is locked for a GPU: never."""
        return False

    def get_device(self):
        """Return None, the index of the CPU."""
        return None

    def cpu(self):
        """Return the storage itself."""
        self._check_elements("Cannot copy out of meta tensor; no data!")
        return self

    def __iter__(self):
        return iter(self.tolist())

    def __eq__(self, other):
        if type(other) is not type(self):
            return NotImplemented
        return (self.data_ptr(), self.nbytes()) == (other.data_ptr(), other.nbytes())

    def __hash__(self):
        return hash((self.data_ptr(), self.nbytes()))

    def fill_(self, value):
        """Write one number to all elements; return the storage."""
        self[:] = value
        return self

    def __setitem__(self, index, value):
        raise NotImplementedError

    def _describe(self):
        raise NotImplementedError

    def __sizeof__(self):
        return object.__sizeof__(self) + self.nbytes()

    def _check_elements(self, words="Not available for 'meta' device type"):
        if self.device.type == "meta":
            raise NotImplementedError(f"{type(self).__name__}: {words}")

    def _check_writable(self):
        if not self._array.flags.writeable:
            raise RuntimeError(f"{type(self).__name__}: the memory is read-only; write to a clone()")

    def _source_of(self, source):
        """Return the array of a storage that can be copied to this one."""
        if not isinstance(source, _Storage):
            raise TypeError(f"copy_: expected a storage, got {type(source).__name__}")
        source._check_elements("Cannot copy out of meta tensor; no data!")
        if len(source) != len(self):
            raise RuntimeError(
                f"copy_: size does not match, self was {self.nbytes()} bytes but src was {source.nbytes()} bytes"
            )
        return source._array

    def copy_(self, source, non_blocking=None):
        """Write the elements of a storage of the same size to this one; return it."""
        source = self._source_of(source)
        self._check_writable()
        self._array[:] = source
        return self

    def __repr__(self):
        rows = "".join(f" {value}\n" for value in self.tolist())
        return f"{rows}[retrograd.storage.{type(self).__name__}({self._describe()}) of size {len(self)}]"

    def _check_index(self, index):
        """Raise the error for an index that no storage has."""
        self._check_elements()
        if isinstance(index, slice):
            if index.step not in (None, 1):
                raise RuntimeError(f"Trying to slice with a step of {index.step}, but only a step of 1 is supported")
        elif not isinstance(index, int):
            raise TypeError(f"can't index a {type(self).__name__} with {type(index).__name__}")
        elif not -len(self) <= index < len(self):
            raise IndexError(f"index {index} out of range for storage of size {len(self)}")


class UntypedStorage(_Storage):
    """The bytes of a memory that tensors view, or new bytes: `UntypedStorage(size)`, `UntypedStorage(integers)`.

    Raises RuntimeError for a negative size and for items that are no integers, TypeError for other arguments.

    >>> import retrograd as rg
    >>> x = rg.zeros(3, 4)
    >>> x[1].untyped_storage().nbytes(), x[1].untyped_storage().data_ptr() == x.data_ptr()
    (48, True)
    >>> rg.UntypedStorage([1, 2]).fill_(7).tolist()
    [7, 7]
    """

    __slots__ = ("_array", "_viewed", "filename")

    def __init__(self, source=0, *, device=None):
        self._array, self.filename = _bytes_of(source, device), None
        self._viewed = False  # whether a tensor views the memory, so that it can't be replaced

    @classmethod
    def _of(cls, array):
        """Return the storage of existing memory, an array of bytes."""
        made = cls.__new__(cls)
        made._array, made._viewed, made.filename = array, True, None
        return made

    @classmethod
    def from_file(cls, filename, shared=False, nbytes=0):
        """Return the first bytes of a file, mapped into memory; `shared` writes changes to the file."""
        made = cls._of(backend.map_file(filename, dtypes.as_dtype("uint8"), nbytes, bool(shared)))
        made.filename = os.fspath(filename)
        return made

    def byteswap(self, dtype):
        """Reverse the bytes of each number of a dtype, in place; of complex numbers, those of both parts."""
        size = dtypes.as_dtype(dtype).itemsize // (2 if dtypes.as_dtype(dtype).kind == "c" else 1)
        self._check_writable()
        numbers = self._array[: len(self) // size * size].reshape(-1, size)
        numbers[:] = numbers[:, ::-1].copy()

    def untyped(self):
        """Return the storage itself."""
        return self

    def _read_numbers(self, dtype):
        """Return a new array of the numbers of a dtype, by default int64, whose bytes these are; a rest is left."""
        return TypedStorage(wrap_storage=self, dtype=dtype or dtypes.int64)._array.copy()

    def clone(self):
        """Return a copy with memory of its own."""
        return UntypedStorage(self)

    def new(self):
        """Return an empty storage."""
        return UntypedStorage(0)

    def resizable(self):
        """Return whether `resize_` may change the size: while no tensor views the memory."""
        return not self._viewed

    def resize_(self, size):
        """Change the number of bytes of a storage that no tensor views; return it.

        The first bytes stay, new ones are arbitrary.  Raises RuntimeError if a tensor views the memory, since NumPy's
        arrays can't follow it to other memory.
        """
        if self._viewed and size != len(self):
            raise RuntimeError(
                f"resize_: Trying to resize storage that is not resizable: tensors view these {len(self)} bytes; "
                f"resize the tensor, by x.resize_(...), or let it view a larger storage, by x.set_(...)"
            )
        if size != len(self):
            larger, kept = UntypedStorage(size, device=self.device), min(size, len(self))
            larger._array[:kept] = self._array[:kept]
            self._array = larger._array
        return self

    def __getitem__(self, index):
        self._check_index(index)
        return self._array[index].item() if isinstance(index, int) else UntypedStorage._of(self._array[index])

    def __setitem__(self, index, value):
        self._check_index(index)
        self._check_writable()
        if not isinstance(value, int):
            raise TypeError(f"UntypedStorage: can only set a byte to an int, not to {type(value).__name__}")
        self._array[index] = value % 256

    def __reduce__(self):
        return UntypedStorage, (self.tolist(),)

    def __deepcopy__(self, memo):
        copied = UntypedStorage._of(deep_copy(self._array, memo))
        copied._viewed = self._viewed
        return memo.setdefault(id(self), copied)

    __copy__ = clone

    def _describe(self):
        return f"device={self.device}"


def _bytes_of(source, device):
    """Return new memory of a number of bytes, or a copy of a storage or a sequence of integers."""
    if isinstance(source, UntypedStorage):
        return source._array.copy()
    if isinstance(source, int):
        if source < 0:
            raise RuntimeError(f"UntypedStorage: the number of bytes is a negative number: {source}")
        with making_on(find_device("cpu" if device is None else device)):
            return empty(source, dtype="uint8").value
    try:
        items = list(source)
    except TypeError:
        raise TypeError(f"UntypedStorage: expected a size or integers, got {type(source).__name__}") from None
    for item in items:
        if not isinstance(item, int):
            raise RuntimeError(
                f"UntypedStorage(): tried to construct a storage from a sequence ({type(source).__name__}), but one of "
                f"the items was of type {type(item).__name__} instead of int"
            )
    return tensor([item % 256 for item in items], dtype="uint8", device=device).value


class TypedStorage(_Storage):
    """The elements of a memory that tensors of one dtype view; PyTorch deprecates it in favor of UntypedStorage.

    `TypedStorage(size_or_elements, dtype=...)` has new memory, `TypedStorage(wrap_storage=bytes, dtype=...)` that of an
    UntypedStorage.

    >>> import retrograd as rg
    >>> rg.TypedStorage([1, 2], dtype=rg.float64).tolist()
    [1.0, 2.0]
    """

    __slots__ = ("_untyped", "dtype")

    def __init__(self, *args, wrap_storage=None, dtype=None, device=None):
        self.dtype = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
        if len(args) > 1:
            raise RuntimeError(f"TypedStorage: Too many positional arguments: a size or elements, got {len(args)}")
        if wrap_storage is not None:
            if args or device is not None or dtype is None:
                raise RuntimeError("TypedStorage: wrap_storage needs a dtype, and takes no other arguments")
            if not isinstance(wrap_storage, UntypedStorage):
                raise TypeError(f"TypedStorage: wrap_storage must be UntypedStorage, got {type(wrap_storage).__name__}")
            self._untyped = wrap_storage
        elif args and isinstance(args[0], Tensor):
            raise TypeError("TypedStorage: Argument type not recognized: a tensor; see Tensor.storage()")
        elif not args or isinstance(args[0], int):
            self._untyped = UntypedStorage(args[0] * self.dtype.itemsize if args else 0, device=device)
        else:
            made = tensor(list(args[0]), dtype=self.dtype, device=device)
            self._untyped = UntypedStorage._of(backend.whole_memory(made.value))

    @property
    def _array(self):
        count = self._untyped.nbytes() // self.dtype.itemsize
        return self._untyped._array[: count * self.dtype.itemsize].view(self.dtype)

    _untyped_storage = property(lambda self: self._untyped)  # PyTorch's name

    def type(self, dtype=None):
        """Return the name of the class of storages of this dtype; or the elements in another dtype."""
        return f"retrograd.{storage_class(self.dtype).__name__}" if dtype is None else _typed_of_elements(self, dtype)

    def untyped(self):
        """Return the storage of bytes."""
        return self._untyped

    def _read_numbers(self, dtype):
        """Return a new array of the elements; RuntimeError for another dtype than theirs."""
        if dtype not in (None, self.dtype):
            expected, got = (dtypes.TABLE[kind.name].storage for kind in (dtype, self.dtype))
            raise RuntimeError(f"Expected a Storage of type {expected} or an UntypedStorage, but got {got}")
        return self._array.copy()

    def clone(self):
        """Return a copy with memory of its own."""
        return TypedStorage(wrap_storage=self._untyped.clone(), dtype=self.dtype)

    def resize_(self, size):
        """Change the number of elements, as `UntypedStorage.resize_`; return the storage."""
        self._untyped.resize_(size * self.dtype.itemsize)
        return self

    def __getitem__(self, index):
        if isinstance(index, slice):
            return self._array[index].tolist()
        self._check_index(index)
        return self._array[index].item()

    def __setitem__(self, index, value):
        self._check_index(index)
        self._check_writable()
        if isinstance(value, _Storage):
            raise RuntimeError(f"TypedStorage: cannot set item with value type {type(value).__name__}; see copy_")
        self._array[index] = value

    def __reduce__(self):
        return _typed_of, (self._untyped, self.dtype)

    def __deepcopy__(self, memo):
        return memo.setdefault(id(self), _typed_of(copy.deepcopy(self._untyped, memo), self.dtype))

    __copy__ = clone

    def _describe(self):
        return f"dtype={self.dtype}, device={self.device}"


def _typed_of(untyped, dtype):
    return TypedStorage(wrap_storage=untyped, dtype=dtype)


def _typed_of_elements(storage, dtype):
    """Return a storage with the elements of another one in a dtype."""
    dtype = dtypes.as_dtype(dtype)
    untyped = UntypedStorage._of(storage._array.astype(dtype).view("uint8"))
    untyped._viewed = False
    return _typed_of(untyped, dtype)


def _conversion(name, dtype):
    def convert(self):
        return _typed_of_elements(self, dtype)

    convert.__name__, convert.__qualname__ = name, f"TypedStorage.{name}"
    convert.__doc__ = f"Return the elements as {dtype}, in memory of their own."
    return convert


for _name, _dtype in dtypes.STORAGES.items():
    _method = _name.lower().replace("complex", "complex_")  # float, bfloat16, complex_double
    setattr(TypedStorage, _method, _conversion(_method, _dtype))


@function()
def is_storage(obj) -> bool:
    """Return whether an object is a storage.

    >>> import retrograd as rg
    >>> rg.is_storage(rg.ones(2).untyped_storage()), rg.is_storage(rg.ones(2))
    (True, False)
    """
    return isinstance(obj, (UntypedStorage, TypedStorage))


# ----------------------------------------------------------------------------------------- a class for each dtype


class StorageClassMeta(DtypeClassMeta):
    """The metaclass of classes whose instances are the storages of one dtype."""

    def __instancecheck__(cls, value):
        return isinstance(value, TypedStorage) and value.dtype == cls.dtype

    def __call__(cls, *args, wrap_storage=None):
        return TypedStorage(*args, wrap_storage=wrap_storage, dtype=cls.dtype)

    def __repr__(cls):
        return f"<class 'retrograd.{cls.__name__}'>"

    def from_buffer(cls, buffer, byte_order="native", count=-1, offset=0):
        """Return a storage of a copy of the bytes of an object, whose numbers have a byte order, "little" or "big"."""
        if byte_order not in ("native", "little", "big"):
            raise ValueError(f"from_buffer: byte_order is 'native', 'little' or 'big', got {describe(byte_order)}")
        numbers = backend.from_buffer(buffer, cls.dtype, count, offset)
        untyped = UntypedStorage(numbers.view("uint8").tolist())
        if byte_order not in ("native", sys.byteorder):
            untyped.byteswap(cls.dtype)
        return cls(wrap_storage=untyped)

    def from_file(cls, filename, shared=False, size=0):
        """Return the first elements of a file, mapped into memory; `shared` writes changes to the file."""
        return cls(wrap_storage=UntypedStorage.from_file(filename, shared, size * cls.dtype.itemsize))


def _storage_class(name):
    dtype = dtypes.STORAGES[name]
    doc = f"The storages of {dtype}: `{name}Storage(2)` makes one of a size, `{name}Storage([1, 2])` one of elements."
    return StorageClassMeta(f"{name}Storage", (), {"storage": name, "__doc__": doc})


FloatStorage, DoubleStorage, HalfStorage = map(_storage_class, ("Float", "Double", "Half"))
BoolStorage, ByteStorage, CharStorage = map(_storage_class, ("Bool", "Byte", "Char"))
ShortStorage, IntStorage, LongStorage = map(_storage_class, ("Short", "Int", "Long"))
BFloat16Storage = _storage_class("BFloat16")
ComplexFloatStorage, ComplexDoubleStorage = map(_storage_class, ("ComplexFloat", "ComplexDouble"))


def storage_class(dtype):
    """Return the class of the storages of a dtype: TypedStorage for one that PyTorch has no class for."""
    return globals().get(f"{dtypes.TABLE[dtype.name].storage}Storage", TypedStorage)
