"""Nested tensors in checkpoints: PyTorch's jagged and strided layouts, and a mapping for those that it lacks.

PyTorch reads the first two as its own nested tensors, and the third, such as nested components, as an OrderedDict with
the entry MARKER.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from retrograd.backend.ragged import Ragged, Structure, pack, structure_of
from retrograd.core import Tensor
from retrograd.foundation.lazy_imports import lazy_module
from retrograd.interop.pickle_writer import Name
from retrograd.interop.safe_unpickler import short_repr
from retrograd.ops.create import from_numpy
from retrograd.ops.methods import concrete

MARKER = "retrograd.nested"
JAGGED = "torch.nested._internal.nested_tensor _rebuild_njt"
JAGGED_CLASS = "torch.nested._internal.nested_tensor NestedTensor"
FIELDS = (MARKER, "values", "sizes", "axis", "lead")

# ------------------------------------------------------------------------------------------------------ writing


def rebuild_call(tensor: Tensor) -> tuple[str, tuple] | None:
    """Return PyTorch's name of the function that rebuilds a nested tensor, and its arguments; None if not nested."""
    array = concrete(tensor.detach())
    if not isinstance(array, Ragged):
        return None
    array = pack(array)
    if isinstance(array.values, Ragged) or array.lead or not array.structure.sizes.shape[1]:
        return _marker_entries(array, tensor.requires_grad)
    several = array.structure.sizes.shape[1]
    if several == 1 and not array.structure.strided:
        return _jagged(array, tensor.requires_grad)
    parts = array.components()
    structure, axis = structure_of([part.shape for part in parts]) if parts else (None, 0)
    if (structure, axis) == (array.structure, array.axis):
        return _strided(parts, tensor.requires_grad)
    describe = _jagged if several == 1 else _marker_entries
    return describe(array, tensor.requires_grad)


def _jagged(array: Ragged, requires_grad: bool) -> tuple[str, tuple]:
    fields = {
        "values": from_numpy(array.values),
        "offsets": from_numpy(array.structure.offsets),
        "lengths": None,
        "_ragged_idx": array.axis + 1,
        "_metadata_cache": {},
        "requires_grad": requires_grad,
    }
    return "torch._tensor _rebuild_from_type_v2", (Name(JAGGED), Name(JAGGED_CLASS), (fields,), {})


def _strided(parts: list[np.ndarray], requires_grad: bool) -> tuple[str, tuple]:
    """Return the elements of all components, and the sizes, strides and first offset of each."""
    flat = np.concatenate([part.reshape(-1) for part in parts])
    sizes = np.array([part.shape for part in parts], np.int64)
    strides = np.array([_row_major(part.shape) for part in parts], np.int64)
    counts = np.cumsum([0, *[part.size for part in parts[:-1]]])
    buffer = from_numpy(flat).requires_grad_(requires_grad)
    return "torch._utils _rebuild_nested_tensor", (buffer, *map(from_numpy, (sizes, strides, counts)))


def _row_major(shape: tuple) -> list[int]:
    return [int(np.prod(shape[d + 1 :])) for d in range(len(shape))]


def _marker_entries(array: Ragged, requires_grad: bool) -> tuple[str, tuple]:
    values = Tensor(array.values) if isinstance(array.values, Ragged) else from_numpy(array.values)
    values.requires_grad_(requires_grad)
    fields = (1, values, from_numpy(array.structure.sizes), array.axis, array.lead)
    return "collections OrderedDict", (list(map(list, zip(FIELDS, fields, strict=True))),)


# ------------------------------------------------------------------------------------------------------ reading


def from_jagged(
    values: Any, offsets: Any, lengths: Any = None, _ragged_idx: int = 1, requires_grad: Any = False, **others: Any
) -> Tensor:
    """Return the result of `_rebuild_njt` for these arguments; ValueError if they do not describe a nested tensor."""
    for part in (values, offsets, *([] if lengths is None else [lengths])):
        _check_dense("a jagged tensor", part)
    made: Tensor = _nested().nested_tensor_from_jagged(values, offsets, lengths, _ragged_idx)
    return made.detach().requires_grad_(requires_grad is True)


def from_strided(view: Callable, buffer: Any, sizes: Any, strides: Any, offsets: Any) -> Tensor:
    """Return the nested tensor of the components in a buffer; `view(array, offset, size, stride)` checks each."""
    for part in (buffer, sizes, strides, offsets):
        _check_dense("a nested tensor", part)
    rows = [np.asarray(part.numpy(), np.int64).tolist() for part in (offsets, sizes, strides)]
    flat = buffer.detach().numpy().reshape(-1)
    if len({len(part) for part in rows}) != 1:
        raise ValueError(f"damaged: a nested tensor of {' and '.join(str(len(part)) for part in rows)} components")
    _check_count(sum(math.prod(size) for size in rows[1]), flat.size)
    parts = [view(flat, first, tuple(size), tuple(stride)) for first, size, stride in zip(*rows, strict=True)]
    made: Tensor = _nested().nested_tensor(parts, dtype=buffer.dtype)
    return made.requires_grad_(buffer.requires_grad)


def from_marker_entries(fields: dict) -> Tensor:
    """Return the nested tensor that `_marker_entries` wrote."""
    values, axis, lead = fields.get("values"), fields.get("axis"), fields.get("lead")
    if tuple(fields) != FIELDS or not isinstance(values, Tensor) or type(axis) is not int or type(lead) is not int:
        raise ValueError(f"damaged: a nested tensor of {short_repr(list(fields))}")
    _check_dense("a nested tensor", fields["sizes"])
    sizes = fields["sizes"].numpy()
    if sizes.ndim != 2 or sizes.dtype != np.int64 or min(axis, lead) < 0 or lead + axis >= len(values.shape):
        raise ValueError(f"damaged: a nested tensor with sizes of shape {sizes.shape}, axis {axis}, lead {lead}")
    structure = Structure(sizes)
    if sizes.min(initial=0) < 0:
        raise ValueError("damaged: a nested tensor with sizes below 0")
    _check_count(sum(map(math.prod, sizes.tolist())), values.shape[lead + axis])
    _nested()
    return Tensor(Ragged(values.value, structure, axis, lead)).requires_grad_(values.requires_grad)


def _check_dense(what: str, part: Any) -> None:
    if not isinstance(part, Tensor) or isinstance(part.value, Ragged):
        raise ValueError(f"damaged: {what} with {short_repr(type(part).__name__)} for a tensor")


def _check_count(count: int, most: Any) -> None:
    """Refuse components with more rows or elements than stored, which would allocate memory for copies."""
    if count > most:
        raise ValueError(f"damaged: a nested tensor with {count} rows or elements in a buffer of {most}")


def _nested() -> Any:
    """Import the nested package, which makes operators support such arrays; only files that contain some need it."""
    return lazy_module("retrograd.nested")
