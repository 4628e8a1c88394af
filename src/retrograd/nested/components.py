"""Split nested tensors into their components, and join components."""

from collections.abc import Sequence

from retrograd.backend.ragged import Structure, structure_of
from retrograd.core import Tensor, registry
from retrograd.nested.buffer import values, wrap_buffer
from retrograd.nested.buffer_layout import get_layout, is_nested
from retrograd.ops.view import cat, narrow, reshape


def components(x: Tensor) -> tuple[Tensor, ...]:
    """Return the components of a nested tensor, as views; one graph node serves all of them.

    Components that are nested themselves are nested tensors.
    """
    layout = get_layout(x)
    row = layout.row
    parts = _split_rows(values(x), layout.structure, row)
    if layout.num_ragged == 1:
        return tuple(parts)
    sizes = layout.structure.sizes.tolist()
    return tuple([reshape(p, (*p.shape[:row], *s, *p.shape[row + 1 :])) for p, s in zip(parts, sizes, strict=True)])


def _split_rows(buffer: Tensor, structure: Structure, row: int) -> Sequence[Tensor]:
    """Return the rows of each component."""
    bounds = structure.bounds()
    if structure.starts is None:
        return registry["split"](buffer, [last - first for first, last in bounds], dim=row) if bounds else ()
    gaps, sizes, end = [], [], 0
    for first, last in bounds:
        gaps.append(first - end)
        sizes += [first - end, last - first]
        end = last
    if min(gaps, default=0) < 0:  # not in order
        return [narrow(buffer, row, first, last - first) for first, last in bounds]
    return registry["split"](buffer, [*sizes, buffer.shape[row] - end], dim=row)[1:-1:2]


def nest(parts: Sequence[Tensor], lead: int = 0) -> Tensor:
    """Return the nested tensor of copies of components, at least one; sizes that differ become ragged.

    For nested components, the ragged size is their number of components.
    """
    inner = [get_layout(p).lead for p in parts if is_nested(p)]
    if inner:
        row = inner[0]
        structure, axis = structure_of([(p.shape[row],) for p in parts])[0], row - lead
    else:
        structure, axis = structure_of([p.shape[lead:] for p in parts])
        row = lead + axis
    several = structure.sizes.shape[1]
    if several != 1:
        pairs = zip(parts, structure.lengths.tolist(), strict=True)
        parts = [reshape(p, (*p.shape[:row], n, *p.shape[row + several :])) for p, n in pairs]
    return wrap_buffer(cat(parts, dim=row), structure, axis, lead)
