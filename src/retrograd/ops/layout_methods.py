"""Memory layout of tensors: strides, formats, sizes in bytes, and devices."""

from retrograd import backend
from retrograd.core import Tensor
from retrograd.core.device import CPU
from retrograd.core.dtype import is_extension
from retrograd.core.op import compound, is_foreign
from retrograd.core.overrides import override_result
from retrograd.core.tensor import continue_version, make, preserve_snapshots, version_of
from retrograd.ops.as_tensor import tensor
from retrograd.ops.functions import check_callable, check_tensor, function, overridable
from retrograd.ops.layout import (
    array_device,
    check_has_data_pointer,
    check_has_storage,
    contiguous_format,
    copy_in_format,
    example_strides,
    find_device,
    has_format,
    innermost_array,
    is_device,
    memory_of,
    place,
    preserve_format,
    sparse_coo,
    sparse_csr,
    strided,
    strides_in_elements,
    to_format,
)
from retrograd.ops.methods import attribute, check_complete, concrete, lost_derivatives, method
from retrograd.ops.mutate import check_inference


@function()
def clone(input, *, memory_format=preserve_format) -> Tensor:
    """Return a differentiable copy, with the same strides unless a memory format is given.

    >>> import retrograd as rg
    >>> x = rg.ones(2, requires_grad=True)
    >>> x.clone().sum().backward()
    >>> x.grad
    tensor([1., 1.])
    """
    if type(input) is not Tensor and is_foreign(input):
        given = {} if memory_format is preserve_format else {"memory_format": memory_format}
        return override_result(clone, [input], (input,), given)
    return copy_in_format(input, memory_format)


clone.without_override = copy_in_format
Tensor.clone = clone


@method
def contiguous(x, memory_format=contiguous_format) -> Tensor:
    """Return the tensor itself if it is contiguous in that format (default: row-major), else a contiguous copy."""
    return to_format(x, memory_format)


@method
def is_contiguous(x, memory_format=contiguous_format) -> bool:
    """Whether the tensor is contiguous in that format, row-major unless another is given."""
    return has_format(x, memory_format)


@method
def stride(x, dim=None):
    """Return the stride in elements along each dimension, or along one.

    >>> import retrograd as rg
    >>> rg.arange(3)[None].stride(), rg.zeros(0, 3).stride()
    ((3, 1), (3, 1))
    """
    steps = example_strides(x) if x.level is not None else None
    if steps is None:
        steps = strides_in_elements(concrete(x))
    return steps if dim is None else steps[dim]


@method
def storage_offset(x) -> int:
    """Return the offset, in elements, of the first element in the memory of the base."""
    array = memory_of(x)[1] if x.level is not None else None
    return backend.distance(concrete(x) if array is None else array) // x.itemsize


@method
def data_ptr(x) -> int:
    """Return the address of the first element; NotImplementedError for a sparse tensor."""
    check_has_data_pointer("data_ptr", x)
    return backend.address(concrete(x))


@method
def element_size(x) -> int:
    """Return the size of one element in bytes."""
    return x.dtype.itemsize


@attribute
def itemsize(x):
    """The size of one element in bytes."""
    return x.dtype.itemsize


@attribute
def nbytes(x):
    """The size of all elements in bytes."""
    return x.numel() * x.dtype.itemsize


# ------------------------------------------------------------------------------------------------- devices


@attribute
def device(x):
    """The device.  It equals its name, such as "cpu"."""
    there = array_device(x)
    return CPU if there is None else there.device


@attribute
def layout(x):
    """The layout: `rg.strided`, that of sparse tensors, or `rg.jagged` of nested ones."""
    parts = compound(x)
    return strided if parts is None else parts.layout(x)


@attribute
def is_sparse(x):
    """Whether the tensor is sparse, in the layout `rg.sparse_coo`."""
    return x.layout is sparse_coo


@attribute
def is_sparse_csr(x):
    """Whether the tensor is sparse, in the layout `rg.sparse_csr`."""
    return x.layout is sparse_csr


def _constant_attribute(name, value, doc):
    def fact(x):
        return value

    fact.__name__, fact.__doc__ = name, doc
    attribute(fact)


def _device_attribute(kind):
    def fact(x):
        return x.device.type == kind

    fact.__name__, fact.__doc__ = f"is_{kind}", f"Whether the tensor is on a device of the type {kind}."
    attribute(fact)


for _kind in ("cpu", "cuda", "mps", "xpu", "xla", "meta", "ipu", "maia", "mtia"):
    _device_attribute(_kind)
for _kind in ("mkldnn", "vulkan"):
    _constant_attribute(f"is_{_kind}", False, f"Whether the array is one of the device {_kind}: never.")
for _kind in ("quantized", "nested"):
    _constant_attribute(f"is_{_kind}", False, f"Whether the tensor is {_kind}: never.")


@function()
@method
@overridable
def get_device(input) -> int:
    """Return the index of the accelerator with the tensor; -1 means the CPU."""
    there = array_device(check_tensor("get_device", input))
    return -1 if there is None else there.device.index or 0


@method
def cpu(x, memory_format=preserve_format) -> Tensor:
    """Return the tensor in host memory: itself if it is there."""
    return to_format(place(x, None), memory_format)


@method
def cuda(x, device=None, non_blocking=False, memory_format=preserve_format) -> Tensor:
    """Return the tensor on a CUDA device; RuntimeError without one.

    Raises RuntimeError without CuPy or a device.
    """
    return to_format(place(x, find_device(device if is_device(device) else "cuda")), memory_format)


def _refused_device(kind):
    def refuse(x, device=None, non_blocking=False, memory_format=preserve_format) -> Tensor:
        raise RuntimeError(f"{kind}: tensors are NumPy's arrays and live on the CPU")

    refuse.__name__, refuse.__doc__ = kind, "Raise a RuntimeError: tensors are on the CPU."
    method(refuse)


for _kind in ("ipu", "mtia", "xpu"):
    _refused_device(_kind)


@method
def record_stream(x, stream) -> None:
    """Do nothing on a device, whose memory pool keeps blocks by stream. RuntimeError for the CPU, without streams.

    CuPy's pool gives freed memory to the stream that allocated it: let that one wait for `stream` before it is freed.
    """
    if array_device(x) is None:
        raise RuntimeError("record_stream: tensors are on the CPU, which has no streams")


@method
def to_dense(x, dtype=None, *, masked_grad=True) -> Tensor:
    """Return the tensor itself, or in another dtype if it is dense; the dense tensor of a sparse one.

    The gradient of a sparse tensor is sparse, with its entries: masked_grad=True.  masked_grad=False makes it dense.
    """
    parts = compound(x)
    if parts is None:
        return x if dtype is None else x.to(dtype)
    return parts.to_dense(x, dtype, masked_grad)


@method
def dense_dim(x) -> int:
    """Return the number of dimensions that are dense: all but those of entries of a sparse tensor."""
    return x.ndim - sparse_dim(x)


@method
def sparse_dim(x) -> int:
    """Return the number of sparse dimensions, 0 of a dense tensor."""
    parts = compound(x)
    return 0 if parts is None else parts.sparse_dim(x)


@method
def values(x) -> Tensor:
    """Return the stored elements as a view with gradients: of a nested tensor its buffer, of a sparse one its values.

    The buffer of a nested tensor has the rows of all components, one after the other.  If there are holes between
    components, their rows are included: see `offsets` and `lengths`.  A sparse tensor in the layout `rg.sparse_coo`
    must be coalesced.

    >>> import retrograd as rg
    >>> rg.nested.nested_tensor([[1.0, 2.0], [3.0]]).values()
    tensor([1., 2., 3.])
    >>> rg.eye(2).to_sparse().values()
    tensor([1., 1.])
    """
    parts = compound(x)
    if parts is None:
        raise RuntimeError(
            f"values expected sparse tensor layout but got Strided: a tensor of shape {x.shape} is neither sparse nor "
            f"nested; see x.to_sparse()"
        )
    return parts.values(x)


@method
def pin_memory(x, device=None) -> Tensor:
    """Return a copy in memory that is not paged out, from which copies to the GPU need no staging; itself if it is.

    Raises RuntimeError without a GPU, and for a tensor that is there.
    """
    if array_device(x) is not None:
        raise RuntimeError(f"pin_memory: cannot pin a tensor on {x.device}, only those of the CPU can be pinned")
    array = backend.as_numpy(concrete(x))
    return x if backend.is_pinned(array) else make(backend.pinned_copy(array), None, None)


@method
def is_pinned(x, device=None) -> bool:
    """Whether the memory is pinned for a GPU, as that of `pin_memory` is."""
    return array_device(x) is None and backend.is_pinned(backend.as_numpy(innermost_array(x)))


@method
def share_memory_(x) -> Tensor:
    """Move the memory of this tensor to where other processes can share it; return the tensor.

    Forked processes, and those that get the tensor as an argument of `multiprocessing.Process` or from a queue of
    `multiprocessing`, read and write the same numbers.  Other pickled data has a copy.  Views of this tensor, and its
    base, keep the old memory; in PyTorch they move too.  OSError if there is not enough memory.

    >>> import retrograd as rg
    >>> x = rg.ones(3).share_memory_()
    >>> x.is_shared()
    True
    """
    check_has_storage("share_memory_", x)
    check_inference("share_memory_", x)
    if x.level is not None or compound(x) is not None:
        raise RuntimeError("share_memory_: only plain tensors outside of function transforms can be shared")
    if array_device(x) is None and not is_shared(x):
        array = backend.shared_copy(concrete(x))
        preserve_snapshots(x)
        x.value, x._view, x.version = array, None, continue_version(version_of(x))
    return x


@method
def is_shared(x) -> bool:
    """Whether other processes can share the memory, by `share_memory_`; that of a GPU always is."""
    check_has_storage("is_shared", x)
    return array_device(x) is not None or backend.is_shared(concrete(x))


# ------------------------------------------------------------------------------------- to and from Python


def _dlpack(x, *, stream=None, max_version=None, dl_device=None, copy=None):
    why = lost_derivatives(x)
    if why:
        raise BufferError(f"__dlpack__: this tensor {why}; export x.detach()")
    array = concrete(x) if array_device(x) is not None else backend.as_numpy(concrete(x))
    if is_extension(x.dtype):
        raise BufferError(
            f"__dlpack__: NumPy exports no {x.dtype.name}; x.view(rg.uint{8 * x.dtype.itemsize}) is the same memory, "
            f"which PyTorch reads by torch.from_dlpack(...).view(torch.{x.dtype.name})"
        )
    return backend.to_dlpack(array, stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)


def _dlpack_device(x):
    array = concrete(x) if array_device(x) is not None else backend.as_numpy(concrete(x))
    return array.__dlpack_device__()


Tensor.__dlpack__, Tensor.__dlpack_device__ = _dlpack, _dlpack_device


@method
def apply_(x, callable) -> Tensor:
    """Replace each element by the result of a Python function; slow, and only for tensors outside graphs."""
    _check_outside_graphs("apply_", x)
    check_callable("apply_", callable)
    return _write_values(x, [callable(v) for v in _flat_values(x)])


@method
def map_(x, tensor, callable) -> Tensor:
    """Replace each element by a Python function of it and of the other tensor's element, which broadcasts."""
    _check_outside_graphs("map_", x, check_tensor("map_", tensor))
    check_callable("map_", callable)
    pairs = zip(_flat_values(x), _flat_values(tensor.expand(x.shape)), strict=True)
    return _write_values(x, [callable(a, b) for a, b in pairs])


def _flat_values(x):
    composite = compound(x)
    check_complete("apply_", x, composite)
    return concrete(x if composite is None else composite.plain(x)[0]).ravel().tolist()


def _check_outside_graphs(name, *tensors):
    if any(lost_derivatives(x) for x in tensors):
        raise RuntimeError(f"{name}: gradients can't pass through a Python function; use x.detach().{name}(...)")


def _write_values(x, numbers):
    composite = compound(x)
    if composite is None:
        return x.copy_(tensor(numbers, x.dtype).reshape(x.shape))
    plain, rebuilt = composite.plain(x)
    return x.copy_(rebuilt(tensor(numbers, x.dtype).reshape(plain.shape), 0))
