"""Devices, layouts and memory formats by PyTorch's names; only those of the CPU are supported."""

import math
import operator
from threading import local

from retrograd.backend.devices import device_named
from retrograd.core import Tensor, current, registry
from retrograd.core.device import CPU, array_devices, device, is_device_type
from retrograd.core.errors import OperandValueError
from retrograd.core.memory_order import IMAGES
from retrograd.core.op import composite_arrays, compound
from retrograd.core.state import override_state
from retrograd.core.tensor import unwrap_all
from retrograd.core.views import requires_grad_synced
from retrograd.foundation.describe_value import describe
from retrograd.ops.functions import function


class _NamedConstant:
    """A constant that prints as its name."""

    __slots__ = ("_name",)

    def __init__(self, name):
        self._name = name

    def __repr__(self):
        return f"retrograd.{self._name}"

    def __reduce__(self):
        return self._name  # pickled by name: the same object again


class layout(_NamedConstant):
    """The way a tensor stores its elements."""

    __slots__ = ()


class memory_format(_NamedConstant):
    """The order of a tensor's dimensions in memory."""

    __slots__ = ()


strided, jagged = layout("strided"), layout("jagged")
sparse_coo, sparse_csr, sparse_csc = layout("sparse_coo"), layout("sparse_csr"), layout("sparse_csc")
sparse_bsr, sparse_bsc = layout("sparse_bsr"), layout("sparse_bsc")
sparse_layouts = (sparse_coo, sparse_csr, sparse_csc, sparse_bsr, sparse_bsc)
contiguous_format, preserve_format = memory_format("contiguous_format"), memory_format("preserve_format")
legacy_contiguous_format = contiguous_format
channels_last, channels_last_3d = memory_format("channels_last"), memory_format("channels_last_3d")

_ORDERS = {channels_last: IMAGES[4], channels_last_3d: IMAGES[5]}


_new, _item = tuple.__new__, tuple.__getitem__  # half the time of `x.shape[0]` is finding them by `super()`


class _SizeType(type):
    def __instancecheck__(cls, value):
        return isinstance(value, tuple) and all(isinstance(s, int) for s in value)


class Size(tuple, metaclass=_SizeType):
    """A shape with a method `numel`.  The shapes of tensors are plain tuples, and count as instances of it.

    >>> import retrograd as rg
    >>> rg.Size([2, 3]).numel(), isinstance(rg.ones(2, 3).shape, rg.Size)
    (6, True)
    """

    __slots__ = ()

    def __new__(cls, sizes=()):
        return super().__new__(cls, [_checked_size(i, s) for i, s in enumerate(sizes)])

    def numel(self):
        """Return the number of elements of a tensor of this shape."""
        return math.prod(self)

    def __getitem__(self, key):
        part = _item(self, key)
        return _new(Size, part) if type(key) is slice else part

    def __add__(self, other):
        return Size(super().__add__(other))

    def __radd__(self, other):
        return Size((*other, *self)) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, times):
        return Size(super().__mul__(times))

    __rmul__ = __mul__

    def __repr__(self):
        return f"Size({list(self)})"


def _checked_size(position, size):
    try:
        return operator.index(size)
    except TypeError:
        raise TypeError(f"Size: expected integers, got {describe(size)} at position {position}") from None


# --------------------------------------------------------------------------------------------------- checks


def is_device(value):
    """Whether a value is a device or its name."""
    return isinstance(value, device) or (isinstance(value, str) and is_device_type(value.partition(":")[0]))


def check_device(where):
    """Raise a RuntimeError for devices that have no tensors: all but the CPU and those that are registered."""
    find_device(where)


def find_device(where):
    """Return the `ArrayDevice` of a device or of its name, None for the CPU; that of new tensors for None.

    Raises RuntimeError for devices that have no tensors.
    """
    if where is None:
        return current().device
    where = where if isinstance(where, device) else device(where)
    kind = where.type
    if kind == "cpu":
        return None
    found = device_named(kind)
    if found is not None and not found.has_index(where.index):
        raise RuntimeError(
            f"device: tensors are on one device of a type, the first or that of rg.cuda.set_device, got {str(where)!r}"
        )
    if found is None:
        raise RuntimeError(
            f"device: tensors are NumPy's arrays and live on the CPU, got {str(where)!r}; leave out the device, "
            "or choose it by 'cuda' if rg.cuda.is_available() else 'cpu'"
        )
    return found


def array_device(x):
    """Return the `ArrayDevice` that a tensor is on, or the values of a nested or sparse one; None for host memory."""
    return array_devices.get(type(innermost_array(x)))


def innermost_array(x):
    """Return the array of a tensor, or of the values of a nested or sparse one."""
    array = unwrap_all(x)
    while type(array) in composite_arrays:
        array = array.values
    return array


def device_of_operands(args):
    """Return the `ArrayDevice` of the first operand that is on one; None if all are in host memory."""
    if not array_devices:
        return None
    found = (array_device(a) for a in args if isinstance(a, Tensor))
    return next((device for device in found if device is not None), None)


def place(x, target):
    """Return a tensor on an `ArrayDevice`, None being host memory; the tensor itself if it is there."""
    source = array_device(x)
    return x if source is target else registry["to_device"](x, target, source)


def making_on(target):
    """Return a block in which arrays are made on an `ArrayDevice`; None is host memory."""
    return override_state("device", target)


def has_sparse_layout(value):
    """Whether a value is a tensor in one of the sparse layouts."""
    parts = compound(value) if isinstance(value, Tensor) else None
    return parts is not None and parts.layout(value) in sparse_layouts


COULD_NOT_RUN = "Could not run 'aten::{name}' with arguments from the '{{kind}}CPU' backend"


def check_has_storage(name, x, words="Cannot access storage of {kind}TensorImpl"):
    """Raise NotImplementedError for a sparse tensor, whose values and indices have memory of their own."""
    if has_sparse_layout(x):
        kind = "Sparse" if x.layout is sparse_coo else "SparseCsr"
        raise NotImplementedError(
            f"{name}: {words.format(kind=kind)}; a sparse tensor of shape {x.shape} has several: those of its values "
            f"and its indices"
        )


def check_has_data_pointer(name, x):
    """Raise NotImplementedError for a sparse tensor, which has no first element in memory."""
    check_has_storage(name, x, "Cannot access data pointer of Tensor that doesn't have storage")


def check_keywords(device=None, storage=None, pin_memory=False):
    """Raise unless the keywords `device`, `layout` and `pin_memory` name what tensors here have."""
    check_device(device)
    if storage not in (None, strided):
        raise OperandValueError(f"layout: this function makes strided tensors, got {storage!r}")
    if pin_memory:
        raise RuntimeError("pin_memory: there is no accelerator that memory could be pinned for")


@function()
def get_default_device():
    """Return the device of new tensors: the CPU, unless `set_default_device` was called in this thread.

    >>> get_default_device()
    device(type='cpu')
    """
    return CPU if current().device is None else current().device.device


@function()
def set_default_device(device):
    """Set the device of new tensors in this thread; None is the CPU. RuntimeError for one that has no tensors."""
    current().device = None if device is None else find_device(device)


class _EnteredDevices(local):
    """The blocks `with device(...):` that a thread is in, innermost last."""

    def __init__(self):
        self.blocks = []


_entered = _EnteredDevices()


def _enter_device(self):
    """Make tensors on this device until the block ends, in this thread; RuntimeError for one that has no tensors."""
    block = making_on(find_device(self))
    _entered.blocks.append(block.__enter__())
    return self


def _leave_device(self, *exception):
    """Make tensors where they were made before the block."""
    _entered.blocks.pop().__exit__(*exception)


device.__enter__, device.__exit__ = _enter_device, _leave_device  # type: ignore[attr-defined]


# ----------------------------------------------------------------------------------------- memory formats


def format_order(fmt, ndim):
    """Return the dimensions in the order of a format, slowest first; RuntimeError if their number does not fit."""
    if not isinstance(fmt, memory_format):
        raise TypeError(f"memory_format: expected e.g. rg.contiguous_format, got {fmt!r}")
    order = _ORDERS.get(fmt, tuple(range(ndim)))
    if len(order) != ndim:
        raise RuntimeError(f"memory_format: {fmt!r} is for {len(order)} dimensions, got {ndim}")
    return order


def copy_in_format(x, memory_format=preserve_format):
    """Return a differentiable copy of x in a memory format; strides are preserved by default."""
    if memory_format is None or memory_format is preserve_format:
        return registry["clone"](x)
    order = format_order(memory_format, x.ndim)
    return registry["row_major"](x) if memory_format is contiguous_format else registry["copy_in_order"](x, order)


def memory_of(x):
    """Return (number of batch dimensions, array): the array on the ground that holds x; it is None in a trace.

    Under `vmap` the array holds all examples, along its first dimensions.
    """
    below = x
    while below is not None and below.level is not None:
        requires_grad_synced(below)  # sync a view whose base was written to
        below = below.level.read_memory(below)
    return (0, None) if below is None else (below.ndim - x.ndim, below.value)


def strides_in_elements(array):
    """Return strides in elements; NumPy gives 0 along new dimensions, and along all of an array without elements."""
    if array.size and 0 not in array.strides:  # most arrays: none is made up
        return tuple([step // array.itemsize for step in array.strides])
    steps, following = [], 1
    for size, step in zip(reversed(array.shape), reversed(array.strides), strict=True):
        made_up = array.size == 0 or (size == 1 and step == 0)
        steps.append(following if made_up else step // array.itemsize)
        following = steps[-1] * max(size, 1)
    return tuple(reversed(steps))


def example_strides(x):
    """Return the strides, in elements, of one example's memory under function transforms; None where it is unknown."""
    examples, array = memory_of(x)
    return None if array is None else strides_in_elements(array)[examples:]


def is_row_major(shape, strides):
    """Return whether elements with these strides are in row-major order without gaps."""
    expected = 1
    for size, step in zip(reversed(shape), reversed(strides), strict=True):
        if size == 0:
            return True
        if size > 1:
            if step != expected:
                return False
            expected *= size
    return True


def has_format(x, fmt):
    """Whether the memory of x has the format; in a trace it is not known, and the answer is False."""
    if x.level is not None:
        strides = example_strides(x) if fmt is contiguous_format and compound(x) is None else None
        return strides is not None and (0 in x.shape or is_row_major(x.shape, strides))
    if fmt is contiguous_format:
        return bool(x.value.flags.c_contiguous)
    if x.ndim != len(_ORDERS.get(fmt, x.shape)):  # a tensor of other dimensions has no such format
        return False
    order = format_order(fmt, x.ndim)
    if compound(x) is not None:
        raise RuntimeError(f"memory_format: a tensor of shape {x.shape} has components, which {fmt!r} can't order")
    return bool(x.value.transpose(order).flags.c_contiguous)


def format_of(x):
    """Return the format of the memory of x: row-major if it has several, or none."""
    return next((fmt for fmt in (contiguous_format, *_ORDERS) if has_format(x, fmt)), contiguous_format)


def arrange_like(out, x):
    """Return a tensor of the shape of x in the order of its memory, if that has no gaps: itself if it is row-major."""
    array = x.value if x.level is None and compound(x) is None else None
    if array is None or array.flags.c_contiguous or out.level is not None:
        return out
    order = tuple(sorted(range(x.ndim), key=lambda dim: -array.strides[dim]))
    return registry["copy_in_order"](out, order) if array.transpose(order).flags.c_contiguous else out


def to_format(x, fmt):
    """Return x in a memory format: x itself if it has that already, or if none is given."""
    if fmt is None or fmt is preserve_format or has_format(x, fmt):
        return x
    return copy_in_format(x, fmt)
