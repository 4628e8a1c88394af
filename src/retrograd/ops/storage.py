"""Storages: the memory that tensors view, as objects of PyTorch's classes."""

import math
from os import PathLike
from typing import Any

from retrograd import backend
from retrograd.core import Tensor
from retrograd.core import dtype as dtypes
from retrograd.core.tensor import bump_version, preserve_snapshots
from retrograd.foundation.suggestions import suggest_keywords
from retrograd.ops.as_tensor import as_tensor, tensor
from retrograd.ops.create import empty
from retrograd.ops.functions import check_tensor, function
from retrograd.ops.layout import COULD_NOT_RUN, CPU, check_has_data_pointer, check_has_storage
from retrograd.ops.methods import concrete, method
from retrograd.ops.mutate import check_inference


class _Storage:
    """The base class of storages of bytes and of elements, `_array`, an array of one dimension.

    Writes to a storage do not count as writes to the tensors that view it, so a backward pass does not find them, as in
    PyTorch.  Two storages are equal if they are the same memory.
    """

    __slots__ = ()
    _array: Any
    device = CPU
    is_cuda = is_sparse = is_sparse_csr = is_hpu = False

    def nbytes(self):
        """Return the number of bytes."""
        return self._array.nbytes

    def size(self):
        """Return the number of elements."""
        return len(self._array)

    __len__ = size

    def data_ptr(self):
        """Return the address of the first byte."""
        return backend.address(self._array)

    def element_size(self):
        """Return the number of bytes of an element."""
        return self._array.itemsize

    def tolist(self):
        """Return the elements as Python numbers."""
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

    def _check_writable(self):
        if not self._array.flags.writeable:
            raise RuntimeError(f"{type(self).__name__}: the memory is read-only; write to a clone()")

    def _source_of(self, source):
        """Return the array of a storage that can be copied to this one."""
        if not isinstance(source, _Storage):
            raise TypeError(f"copy_: expected a storage, got {type(source).__name__}")
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

    __slots__ = ("_array", "_viewed")

    def __init__(self, source=0, *, device=None):
        self._array = _bytes_of(source, device)
        self._viewed = False  # whether a tensor views the memory, so that it can't be replaced

    @classmethod
    def _of(cls, array):
        """Return the storage of existing memory, an array of bytes."""
        made = cls.__new__(cls)
        made._array, made._viewed = array, True
        return made

    @classmethod
    def from_file(cls, filename, shared=False, nbytes=0):
        """Return the first bytes of a file, mapped into memory; `shared` writes changes to the file."""
        return cls._of(backend.map_file(filename, dtypes.as_dtype("uint8"), nbytes, bool(shared)))

    def untyped(self):
        """Return the storage itself."""
        return self

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
            larger, kept = UntypedStorage(size), min(size, len(self))
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
        return memo.setdefault(id(self), self.clone())

    __copy__ = clone

    def _describe(self):
        return "device=cpu"


def _bytes_of(source, device):
    """Return new memory of a number of bytes, or a copy of a storage or a sequence of integers."""
    if isinstance(source, UntypedStorage):
        return source._array.copy()
    if isinstance(source, int):
        if source < 0:
            raise RuntimeError(f"UntypedStorage: the number of bytes is a negative number: {source}")
        tensor([], dtype="uint8", device=device)  # checks the device
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
        if wrap_storage is not None:
            if args or not isinstance(wrap_storage, UntypedStorage):
                raise TypeError("TypedStorage: wrap_storage is an UntypedStorage, and the only argument besides dtype")
            self._untyped = wrap_storage
        elif not args or isinstance(args[0], int):
            self._untyped = UntypedStorage(args[0] * self.dtype.itemsize if args else 0, device=device)
        else:
            made = tensor(list(args[0]), dtype=self.dtype, device=device)
            self._untyped = UntypedStorage._of(backend.whole_memory(made.value))

    def _elements(self):
        count = self._untyped.nbytes() // self.dtype.itemsize
        return backend.from_buffer(self._untyped._array, self.dtype, count, 0)

    _array = property(_elements)

    def untyped(self):
        """Return the storage of bytes."""
        return self._untyped

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
        self._array[index] = value

    def __reduce__(self):
        return _typed_of, (self._untyped, self.dtype)

    def __deepcopy__(self, memo):
        return memo.setdefault(id(self), self.clone())

    __copy__ = clone

    def _describe(self):
        return f"dtype={self.dtype}, device=cpu"


def _typed_of(untyped, dtype):
    return TypedStorage(wrap_storage=untyped, dtype=dtype)


@function()
def is_storage(obj) -> bool:
    """Return whether an object is a storage.

    >>> import retrograd as rg
    >>> rg.is_storage(rg.ones(2).untyped_storage()), rg.is_storage(rg.ones(2))
    (True, False)
    """
    return isinstance(obj, (UntypedStorage, TypedStorage))


@method
def untyped_storage(x):
    """Return the bytes of the memory of the tensor, as a storage; a sparse tensor raises NotImplementedError."""
    check_has_storage("untyped_storage", x)
    return UntypedStorage._of(backend.whole_memory(concrete(x)))


@method
def storage(x):
    """Return the elements of the memory of the tensor, as a storage; a sparse tensor raises NotImplementedError."""
    check_has_storage("storage", x)
    return _typed_of(untyped_storage(x), x.dtype)


@method
def storage_type(x):
    """Return the class of the result of `storage()`."""
    check_has_storage("storage_type", x)
    return TypedStorage


@method
def const_data_ptr(x) -> int:
    """Return the address of the first element, through which nobody may write."""
    check_has_data_pointer("const_data_ptr", x)
    return backend.address(concrete(x))


@method
def is_set_to(x, tensor) -> bool:
    """Return whether two tensors are the same view of the same memory.

    >>> import retrograd as rg
    >>> x = rg.zeros(3, 4)
    >>> x[1].is_set_to(x[1]), x[1].is_set_to(x[2])
    (True, False)
    """
    for operand in (x, check_tensor("is_set_to", tensor)):
        check_has_storage("is_set_to", operand, COULD_NOT_RUN.format(name="is_set_to"))
    one, other = concrete(x), concrete(tensor)
    same = (one.shape, one.strides, one.dtype) == (other.shape, other.strides, other.dtype)
    return same and backend.address(one) == backend.address(other)


@method
def set_(x, source=None, storage_offset=0, size=None, stride=None) -> Tensor:
    """Let the tensor view other memory: that of a tensor or storage, or none; return it.

    storage_offset, size, stride: of the view, in elements; by default a tensor's own, or all of a storage.

    Raises TypeError for another dtype; ValueError for a view that reaches over the end of the memory.

    >>> import retrograd as rg
    >>> x = rg.arange(6.0)
    >>> rg.empty(0).set_(x.untyped_storage(), 1, (2, 2), (1, 2))
    tensor([[1., 3.],
            [2., 4.]])
    """
    check_inference("set_", x)
    for operand in (x, source):
        check_has_storage("set_", operand, COULD_NOT_RUN.format(name="set_"))
    if source is None:
        new = as_tensor(backend.from_buffer(b"", x.dtype, 0, 0).copy())
    elif source.dtype != x.dtype if hasattr(source, "dtype") else not is_storage(source):
        raise TypeError(f"set_: expected a tensor or storage of {x.dtype}, got {source!r}")
    elif isinstance(source, Tensor) and size is None:
        new = source.detach()
    else:
        storage = source.untyped_storage() if isinstance(source, Tensor) else getattr(source, "_untyped", source)
        new = _view(storage, x.dtype, storage_offset, size, stride)
    preserve_snapshots(x)
    x.data = new
    bump_version(x)  # unlike `x.data = new`, this counts as a write
    return x


def _view(storage, dtype, offset, size, stride):
    """Return a tensor that views a storage."""
    count = storage.nbytes() // dtype.itemsize
    storage._viewed = True
    flat = as_tensor(backend.from_buffer(storage._array, dtype, count, 0))
    shape = (count - offset,) if size is None else tuple(size)
    steps = _row_major(shape) if stride is None else tuple(stride)
    last = offset + sum((n - 1) * step for n, step in zip(shape, steps, strict=True))
    if min(offset, *steps, 0) < 0 or (math.prod(shape) and last >= count):
        raise ValueError(f"set_: a view of shape {shape} with stride {steps} at {offset} reaches over {count} elements")
    return flat.as_strided(shape, steps, offset).detach()


def _row_major(shape):
    return tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))


@function()
@suggest_keywords
def from_file(
    filename: str | PathLike, shared=None, size=0, *, dtype=None, device=None, layout=None, pin_memory=False
) -> Tensor:
    """Return a vector of the first `size` elements of a file, which is mapped into memory.

    shared: write changes of the tensor to the file, which is made or made longer if needed; otherwise the file stays
    as it is, and must have these elements.  dtype: by default the default dtype.

    Raises OSError, as FileNotFoundError; ValueError for a file that is too short.

    >>> import tempfile
    >>> import retrograd as rg
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     x = rg.from_file(file.name, shared=True, size=2).fill_(3)
    ...     rg.from_file(file.name, size=2)
    tensor([3., 3.])
    """
    dtype = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
    return as_tensor(backend.map_file(filename, dtype, size, bool(shared)))
