"""Reorder the dimensions of nested tensors, and change which of them are ragged."""

from collections.abc import Callable, Sequence
from typing import Any

from retrograd.backend import ragged_reshape
from retrograd.backend.ragged import Structure
from retrograd.core import Tensor, registry
from retrograd.nested.buffer import over, packed, values
from retrograd.nested.buffer_layout import Layout, layout
from retrograd.ops.create import as_tensor
from retrograd.ops.view import permute, reshape


def permute_ragged(name: str, x: Tensor, order: Sequence[int], first: int, last: int) -> Tensor:
    """Permute the dimensions of a nested tensor, so that those from index `first` to before `last` are ragged.

    A view, unless the order of the ragged dimensions changes, or dense ones among them become ragged.
    """
    known = layout(x)
    ragged, block, at = known.ragged, order[first:last], list(order).index(known.lead)
    dense = [d for d in block if d not in ragged]
    if at > first:
        raise RuntimeError(
            f"{name}: the components of a nested tensor, dimension {known.lead}, can't come behind a ragged dimension; "
            f"see to_padded_tensor()"
        )
    x = packed(x) if dense else x
    front = [known.in_buffer(d) for d in order[:first] if d != known.lead]
    back = [known.in_buffer(d) for d in (*dense, *order[last:])]
    rows = _rows_in(values(x), [*front, known.row, *back], len(front), len(dense))
    columns = [*ragged, *dense]
    sizes = [known.structure.sizes[:, i] for i in range(known.several)] + [x.shape[d] for d in dense]
    moved = [columns.index(d) for d in block]
    matter = [m for m in moved if columns[m] in ragged or sizes[m] != 1]
    in_place = matter == sorted(matter)
    chosen = [sizes[m] for m in moved] if in_place else sizes
    structure = ragged_reshape.structure_with(chosen, layout(x).structure, keep_starts=not dense)
    out = over(rows, structure, first - 1 - at, at)
    return out if in_place else _reordered(out, moved)


def _rows_in(buffer: Tensor, order: list, row: int, merged: int) -> Tensor:
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


def _reordered(x: Tensor, order: list[int]) -> Tensor:
    """Permute the ragged dimensions: the rows of the components are moved."""
    known = layout(x)
    columns = [known.structure.sizes[:, c] for c in order]
    structure = ragged_reshape.structure_with(columns, known.structure.packed)
    return restructured(x, structure, lambda s: ragged_reshape.transpose_rows(s, order))


def restructured(x: Tensor, structure: Structure, places: Callable[[Structure], Any]) -> Tensor:
    """Return a nested tensor of another structure, whose rows are rows of x at indices computed from its structure."""
    x = packed(x)
    known = layout(x)
    rows = registry["index_select"](values(x), known.row, as_tensor(places(known.structure)))
    return over(rows, structure, known.axis, known.lead)


def with_ragged(name: str, x: Tensor, first: int, last: int) -> Tensor:
    """Return the same components with the dimensions from `first` to before `last`, which include all ragged,
    ragged."""
    known = layout(x)
    if known.ragged == range(first, last):
        return x
    return permute_ragged(name, x, range(x.ndim), first, last)


def as_components(x: Tensor, lead: int, first: int, last: int) -> Tensor:
    """Convert a plain tensor to a nested one: dimension `lead` becomes the components, those given the ragged ones."""
    count, sizes = x.shape[lead], x.shape[first:last]
    each = (*range(lead), *range(lead + 1, first), lead, *range(first, x.ndim))
    x = permute(x, each)
    structure = ragged_reshape.same_size(count, sizes)
    rows = reshape(x, (*x.shape[: first - 1], structure.rows, *x.shape[last:]))
    return over(rows, structure, first - 1 - lead, lead)


def in_buffers(known: Layout, dims: Sequence[int]) -> list[int] | None:
    """Return the buffer dimensions of dimensions; None if some are ragged, or that of the components."""
    places = [known.in_buffer(d) for d in dims]
    return None if None in places else [p for p in places if p is not None]
