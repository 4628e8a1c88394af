"""In-place resizing of tensors: another shape over the same memory, or over more."""

import math
import sys

from retrograd import backend
from retrograd.core import Tensor, current, registry
from retrograd.core.errors import OperandValueError
from retrograd.core.op import compound
from retrograd.core.tensor import bump_version, continue_version, make, preserve_snapshots, version_of
from retrograd.core.views import View, requires_grad_synced
from retrograd.ops.functions import check_tensor, function
from retrograd.ops.layout import (
    COULD_NOT_RUN,
    check_has_storage,
    contiguous_format,
    format_of,
    format_order,
    has_format,
    preserve_format,
)
from retrograd.ops.methods import lost_derivatives, method
from retrograd.ops.mutate import check_inference


@method
def resize_(x, *shape, size=None, memory_format=contiguous_format) -> Tensor:
    """Resize this tensor in place to another shape over its memory, in the order of a format; return it.

    Elements between and after the old ones are those of the memory.  If the memory is too small, the tensor gets new
    memory with zeros at the end, while its views and its base keep the old one; in PyTorch they share the new memory.
    Tensors that require grad are refused: use `reshape`, `narrow` or `nn.functional.pad`.

    >>> import retrograd as rg
    >>> x = rg.arange(6)
    >>> x.resize_(2, 2)
    tensor([[0, 1],
            [2, 3]])
    >>> x.resize_(7)
    tensor([0, 1, 2, 3, 4, 5, 0])
    """
    shape = _sizes(shape, size)
    _check(x, memory_format)
    if shape == x.shape and (memory_format is contiguous_format or has_format(x, memory_format)):
        return x
    order = format_order(memory_format, len(shape))
    if math.prod(shape) * x.itemsize > sys.maxsize:
        raise OperandValueError(f"resize_: Storage size calculation overflowed with sizes={list(shape)}")
    inverse = sorted(range(len(shape)), key=order.__getitem__)
    array = backend.resize_memory(x.value, [shape[d] for d in order]).transpose(inverse)
    preserve_snapshots(x)
    if backend.shares_memory(x.value, array):
        _set_resized_view(x, array)
    else:
        x.value, x._view, x.version = array, None, continue_version(version_of(x))
    bump_version(x)
    return x


def _set_resized_view(x, array):
    """Make x a view of its old value, or of its base, so that recorded writes reach that, and older views detect it."""
    if x._view is None:
        base = make(x.value, None, x.tag)
        base.version = version_of(x)
        creation, rebased = "", base.version.rebases
    else:
        base, creation, rebased = x._view.base, x._view.creation_meta, x._view.attr_version
    steps = [step // x.itemsize for step in array.strides]
    chain = registry["as_strided"](base, array.shape, steps, x.storage_offset())._view.chain
    x.value, x._view = array, View(base, chain, creation, rebased)


@function()
@method
def resize_as_(input, the_template, *, memory_format=contiguous_format) -> Tensor:
    """Resize this tensor in place to the shape of another one, as `resize_` does; `preserve_format` is that one's."""
    shape = check_tensor("resize_as_", the_template).shape
    if memory_format is preserve_format:
        memory_format = format_of(the_template)
    return resize_(input, shape, memory_format=memory_format)


def _sizes(shape, size):
    """Return the sizes, given one by one, as a sequence, or by the keyword `size`."""
    if shape and size is not None:
        raise TypeError(f"resize_() got multiple values for argument 'size': {shape} and {size}")
    shape = (size,) if size is not None else shape
    if not shape:
        raise TypeError("resize_: expected sizes")
    shape = tuple(shape[0]) if len(shape) == 1 and hasattr(shape[0], "__iter__") else shape
    if not all(isinstance(n, int) and n >= 0 for n in shape):
        raise TypeError(f"resize_: expected sizes from 0 on, got {shape}")
    return shape


def _check(x, memory_format):
    check_inference("resize_", x)
    check_has_storage("resize_", x, COULD_NOT_RUN.format(name="resize_"))
    if memory_format is preserve_format:
        raise RuntimeError("resize_: Unsupported memory format preserve_format: name one, or use resize_as_")
    if requires_grad_synced(x) and not current().inference:
        raise RuntimeError("resize_: cannot resize variables that require grad; use reshape, narrow or pad")
    if lost_derivatives(x) not in ("", "requires grad"):
        raise RuntimeError(
            "resize_: cannot resize variables that has a forward grad: write to unpack_dual(x).primal, or use reshape"
        )
    if x.level is not None or compound(x) is not None:
        raise RuntimeError(
            "resize_: only plain tensors outside of function transforms and traces can be resized; use reshape or pad"
        )
