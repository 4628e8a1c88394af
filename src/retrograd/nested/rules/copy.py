"""In-place writes to nested tensors: into their buffers."""

import math
from typing import Any

from retrograd.core import Op, Tensor, registry
from retrograd.nested.buffer import remove_holes, values, wrap_buffer_like
from retrograd.nested.buffer_layout import Layout, get_layout, is_nested
from retrograd.nested.dispatch import rule_for
from retrograd.nested.error_words import copy_words, raise_with_words
from retrograd.nested.linked_views import is_view_of
from retrograd.nested.rules.pointwise import buffer_operand, check_broadcast
from retrograd.ops.as_tensor import operand
from retrograd.ops.create import as_tensor
from retrograd.ops.family import broadcast_shapes
from retrograd.ops.index import T, apply_index, static_index
from retrograd.ops.mutate import (
    check_write,
    index_put,
    is_mask,
    set_item,
    strip_leading_ones,
    unsqueeze_mask,
    write_into,
)
from retrograd.ops.pointwise import where
from retrograd.ops.view import reshape

ITEM = "x[...] = value"


def write(name: str, x: Tensor, src: Any) -> Tensor:
    """Write a tensor, which broadcasts to the components of x, into its memory, for the function `name`."""
    if not is_nested(x):
        raise RuntimeError(f"{name}: an example of a batch that is nested can't be written to; clone it")
    layout = get_layout(x)
    buffer, rows = values(x), buffer_operand(src, layout._replace(structure=layout.structure.packed))
    if rows is NotImplemented:
        raise_mismatch(name, x, src)
    if layout.has_holes:
        _write_between_holes(name, x, buffer, rows, layout)
    else:
        write_into(name, buffer, rows)
    return x


def raise_mismatch(name: str, x: Tensor, src: Any) -> None:
    """Raise an error that says why a value does not fit."""
    try:
        check_broadcast(name, x, src)
        raise RuntimeError(f"{name}: a value of shape {src.shape} does not fit into a nested tensor of shape {x.shape}")
    except (RuntimeError, ValueError) as error:
        raise_with_words(copy_words(x, src) if name == "copy_" else None, error)
        raise


def _write_between_holes(name: str, x: Tensor, buffer: Tensor, rows: Any, layout: Layout) -> None:
    """Write rows of the components into a buffer with holes; one node is recorded for all of them."""
    shape = (*buffer.shape[: layout.row], layout.structure.rows, *x.shape[layout.ragged.stop :])
    if broadcast_shapes(name, [shape, rows.shape]) != shape:
        raise_mismatch(name, x, rows)
    set_item(buffer, (*(slice(None),) * layout.row, as_tensor(layout.structure.row_indices())), rows)


# ----------------------------------------------------------------------------------------------- x[...] = value


def write_item(x: Tensor, key: Any, value: Any) -> None:
    """Assign x[key] = value: write to the view x[key], or else to the indices of its elements."""
    if not is_nested(x):
        raise RuntimeError(f"{ITEM}: an example of a batch that is nested can't be written to; clone it")
    value = operand(ITEM, value, x.dtype)
    if is_mask(key) and not value.ndim:
        write(ITEM, x, where(unsqueeze_mask(key, x), value, x))  # independent of which elements are selected
        return
    spec, ids = static_index(x, key if isinstance(key, tuple) else (key,))
    window = None if ids else apply_index(x, ids, spec)
    if window is not None and is_view_of(window, x):
        _check_not_nested(window, value)
        write_into(ITEM, window, strip_leading_ones(value, window.ndim))
        return
    check_write(ITEM, x, value)
    _write_at_indices(x, apply_index(_element_indices(x), ids, spec), value)


@rule_for("index_put")
def _index_put(op: Op, args: tuple, params: dict) -> Any:
    """Return a copy of x with values written at the indices of elements that index tensors give."""
    x, value, *ids = args
    if not is_nested(x):
        return NotImplemented
    copied = registry["clone"](x)
    _write_at_indices(copied, apply_index(_element_indices(x), ids, params["spec"]), value)
    return copied


def _check_not_nested(window: Tensor, value: Tensor) -> None:
    """Refuse to write a nested tensor into a plain one."""
    if is_nested(value) and not is_nested(window):
        raise RuntimeError(f"{ITEM}: a nested tensor of shape {value.shape} does not fit into shape {window.shape}")


def _element_indices(x: Tensor) -> Tensor:
    """Return a tensor of indices into the innermost buffer, in the structure of x."""
    if is_nested(x):
        return wrap_buffer_like(get_layout(x), _element_indices(values(x)))
    return reshape(registry["arange"](0, math.prod(x.shape), 1), x.shape)


def _write_at_indices(x: Tensor, indices: Tensor, value: Tensor) -> None:
    """Write a value, which broadcasts to the shape of `row_indices`, to these indices of the innermost buffer."""
    while is_nested(indices):
        indices = remove_holes(indices)
        rows = buffer_operand(value, get_layout(indices))
        if rows is NotImplemented:
            raise_mismatch(ITEM, indices, value)
        indices, value = values(indices), rows
    _check_not_nested(indices, value)
    buffer = x
    while is_nested(buffer):
        buffer = values(buffer)
    flat = reshape(buffer, (-1,))
    if is_view_of(flat, x):
        set_item(flat, indices, value)
    else:
        write_into(ITEM, buffer, reshape(index_put(flat, value, [indices], spec=(T,)), buffer.shape))
