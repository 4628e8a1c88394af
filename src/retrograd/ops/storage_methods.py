"""Storages of tensors: the memory that one views, and tensors of other memory."""

import math
from os import PathLike

from retrograd import backend
from retrograd.core import Tensor
from retrograd.core import dtype as dtypes
from retrograd.core.errors import OperandTypeError, OperandValueError
from retrograd.core.tensor import bump_version, preserve_snapshots
from retrograd.foundation.describe_value import describe
from retrograd.foundation.suggestions import suggest_keywords
from retrograd.ops.as_tensor import as_tensor
from retrograd.ops.functions import check_tensor, function
from retrograd.ops.layout import COULD_NOT_RUN, check_has_data_pointer, check_has_storage
from retrograd.ops.methods import concrete, method
from retrograd.ops.mutate import check_inference
from retrograd.ops.storage import TypedStorage, UntypedStorage, is_storage, storage_class


@method
def untyped_storage(x):
    """Return the bytes of the memory of the tensor, as a storage; a sparse tensor raises NotImplementedError."""
    check_has_storage("untyped_storage", x)
    return UntypedStorage._of(backend.whole_memory(concrete(x)))


@method
def storage(x):
    """Return the elements of the memory of the tensor, as a storage; a sparse tensor raises NotImplementedError."""
    check_has_storage("storage", x)
    return TypedStorage(wrap_storage=untyped_storage(x), dtype=x.dtype)


@method
def storage_type(x):
    """Return the class of the storages of the dtype of the tensor: `isinstance(x.storage(), x.storage_type())`."""
    check_has_storage("storage_type", x)
    return storage_class(x.dtype)


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
        raise OperandTypeError(f"set_: expected a tensor or storage of {x.dtype}, got {describe(source)}")
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
        raise OperandValueError(
            f"set_: a view of shape {shape} with stride {steps} at {offset} reaches over {count} elements"
        )
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
