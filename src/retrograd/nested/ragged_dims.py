"""Reorder the dimensions of nested tensors, and change which of them are ragged."""

from collections.abc import Callable, Sequence
from typing import Any

from retrograd.backend import ragged_reshape
from retrograd.backend.ragged import Structure
from retrograd.core import Tensor, registry
from retrograd.nested.buffer import remove_holes, values, wrap_buffer
from retrograd.nested.buffer_layout import Layout, get_layout
from retrograd.ops.create import as_tensor
from retrograd.ops.view import permute, reshape


def permute_ragged(name: str, x: Tensor, order: Sequence[int], first: int, last: int) -> Tensor:
    """Permute the dimensions of a nested tensor, so that those from index `first` to before `last` are ragged.

    A view, unless the order of the ragged dimensions changes, or dense ones among them become ragged.
    """
    layout = get_layout(x)
    ragged, block, at = layout.ragged, order[first:last], list(order).index(layout.lead)
    dense = [d for d in block if d not in ragged]
    if at > first:
        raise RuntimeError(
            f"{name}: the components of a nested tensor, dimension {layout.lead}, can't come behind a ragged "
            f"dimension; see to_padded_tensor()"
        )
    # Dense dimensions that become ragged are merged with the rows, and holes would be merged too.
    x = remove_holes(x) if dense else x
    front = [layout.buffer_dim(d) for d in order[:first] if d != layout.lead]
    back = [layout.buffer_dim(d) for d in (*dense, *order[last:])]
    rows = _permute_buffer(values(x), [*front, layout.row, *back], len(front), len(dense))
    columns = [*ragged, *dense]
    sizes = [layout.structure.sizes[:, i] for i in range(layout.num_ragged)] + [x.shape[d] for d in dense]
    moved = [columns.index(d) for d in block]
    # The rows stay where they are if the ragged dimensions keep their order; those of size 1 may be anywhere.
    matter = [m for m in moved if columns[m] in ragged or sizes[m] != 1]
    in_place = matter == sorted(matter)
    chosen = [sizes[m] for m in moved] if in_place else sizes
    structure = ragged_reshape.structure_with(chosen, get_layout(x).structure, keep_starts=not dense)
    out = wrap_buffer(rows, structure, first - 1 - at, at)
    return out if in_place else _permute_rows(out, moved)


def _permute_buffer(buffer: Tensor, order: list, row: int, merged: int) -> Tensor:
    """Permute the buffer's dimensions, and merge `merged` dimensions after the rows with them."""
    if order != list(range(buffer.ndim)):
        buffer = permute(buffer, tuple(order))
    if not merged:
        return buffer
    shape = buffer.shape
    count = 1
    for size in shape[row : row + merged + 1]:
        count *= size
    return reshape(buffer, (*shape[:row], count, *shape[row + merged + 1 :]))


def _permute_rows(x: Tensor, order: list[int]) -> Tensor:
    """Permute the ragged dimensions: the rows of the components are moved."""
    layout = get_layout(x)
    columns = [layout.structure.sizes[:, c] for c in order]
    structure = ragged_reshape.structure_with(columns, layout.structure.packed)
    return gather_rows(x, structure, lambda s: ragged_reshape.transpose_rows(s, order))


def gather_rows(x: Tensor, structure: Structure, indices: Callable[[Structure], Any]) -> Tensor:
    """Return a nested tensor of another structure, whose rows are rows of x at indices computed from its structure."""
    x = remove_holes(x)
    layout = get_layout(x)
    rows = registry["index_select"](values(x), layout.row, as_tensor(indices(layout.structure)))
    return wrap_buffer(rows, structure, layout.axis, layout.lead)


def make_ragged(name: str, x: Tensor, first: int, last: int) -> Tensor:
    """Return the same components with the dimensions from `first` to before `last`, which include all ragged,
    ragged."""
    layout = get_layout(x)
    if layout.ragged == range(first, last):
        return x
    return permute_ragged(name, x, range(x.ndim), first, last)


def nest_dense(x: Tensor, lead: int, first: int, last: int) -> Tensor:
    """Convert a plain tensor to a nested one: dimension `lead` becomes the components, those given the ragged ones."""
    count, sizes = x.shape[lead], x.shape[first:last]
    each = (*range(lead), *range(lead + 1, first), lead, *range(first, x.ndim))
    x = permute(x, each)
    structure = ragged_reshape.same_size(count, sizes)
    rows = reshape(x, (*x.shape[: first - 1], structure.rows, *x.shape[last:]))
    return wrap_buffer(rows, structure, first - 1 - lead, lead)


def buffer_dims(layout: Layout, dims: Sequence[int]) -> list[int] | None:
    """Return the buffer dimensions of dimensions; None if some are ragged, or that of the components."""
    indices = [layout.buffer_dim(d) for d in dims]
    return None if None in indices else [p for p in indices if p is not None]
