"""Storages: the memory that tensors view, as objects of PyTorch's classes."""

import math

from retrograd import backend
from retrograd.core import Tensor
from retrograd.core import dtype as dtypes
from retrograd.core.tensor import bump_version, preserve_snapshots
from retrograd.ops.as_tensor import as_tensor
from retrograd.ops.functions import check_tensor, function
from retrograd.ops.layout import CPU
from retrograd.ops.methods import concrete, method


class UntypedStorage:
    """The bytes of a memory that tensors view.

    >>> import retrograd as rg
    >>> x = rg.zeros(3, 4)
    >>> x[1].untyped_storage().nbytes(), x[1].untyped_storage().data_ptr() == x.data_ptr()
    (48, True)
    """

    __slots__ = ("_bytes",)
    device = CPU

    def __init__(self, array):
        self._bytes = array

    def nbytes(self):
        """Return the number of bytes."""
        return len(self._bytes)

    __len__ = size = nbytes

    def data_ptr(self):
        """Return the address of the first byte."""
        return backend.address(self._bytes)

    def element_size(self):
        """Return 1, the size of a byte."""
        return 1

    def __getitem__(self, index):
        return self._bytes[index].item() if isinstance(index, int) else UntypedStorage(self._bytes[index])

    def tolist(self):
        """Return the bytes as integers."""
        return self._bytes.tolist()

    def __repr__(self):
        return f"<UntypedStorage of {self.nbytes()} bytes>"


class TypedStorage:
    """The elements of a memory that tensors of one dtype view."""

    __slots__ = ("_untyped", "dtype")
    device = CPU

    def __init__(self, untyped, dtype):
        self._untyped, self.dtype = untyped, dtype

    def untyped(self):
        """Return the storage of bytes."""
        return self._untyped

    def nbytes(self):
        """Return the number of bytes."""
        return self._untyped.nbytes()

    def data_ptr(self):
        """Return the address of the first element."""
        return self._untyped.data_ptr()

    def element_size(self):
        """Return the number of bytes of an element."""
        return self.dtype.itemsize

    def size(self):
        """Return the number of elements."""
        return self._untyped.nbytes() // self.dtype.itemsize

    __len__ = size

    def _elements(self):
        return backend.from_buffer(self._untyped._bytes, self.dtype, self.size(), 0)

    def __getitem__(self, index):
        found = self._elements()[index]
        return found.item() if isinstance(index, int) else found.tolist()

    def tolist(self):
        """Return the elements as Python numbers."""
        return self._elements().tolist()

    def __repr__(self):
        return f"<TypedStorage of {self.size()} elements of {self.dtype}>"


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
    """Return the bytes of the memory that the tensor views, as a storage, which shares them."""
    return UntypedStorage(backend.whole_memory(concrete(x)))


@method
def storage(x):
    """Return the elements of the memory that the tensor views, as a storage, which shares them."""
    return TypedStorage(untyped_storage(x), x.dtype)


@method
def storage_type(x):
    """Return the class of the result of `storage()`."""
    return TypedStorage


@method
def const_data_ptr(x) -> int:
    """Return the address of the first element, through which nobody may write."""
    return backend.address(concrete(x))


@method
def is_set_to(x, tensor) -> bool:
    """Return whether two tensors are the same view of the same memory.

    >>> import retrograd as rg
    >>> x = rg.zeros(3, 4)
    >>> x[1].is_set_to(x[1]), x[1].is_set_to(x[2])
    (True, False)
    """
    one, other = concrete(x), concrete(check_tensor("is_set_to", tensor))
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
    flat = as_tensor(backend.from_buffer(storage._bytes, dtype, count, 0))
    shape = (count - offset,) if size is None else tuple(size)
    steps = _row_major(shape) if stride is None else tuple(stride)
    last = offset + sum((n - 1) * step for n, step in zip(shape, steps, strict=True))
    if min(offset, *steps, 0) < 0 or (math.prod(shape) and last >= count):
        raise ValueError(f"set_: a view of shape {shape} with stride {steps} at {offset} reaches over {count} elements")
    return flat.as_strided(shape, steps, offset).detach()


def _row_major(shape):
    return tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))


@function()
def from_file(filename, shared=None, size=0, *, dtype=None, device=None, layout=None, pin_memory=False) -> Tensor:
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
