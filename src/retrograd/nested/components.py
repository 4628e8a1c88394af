"""Taking nested tensors apart into their components, and putting components together."""

from collections.abc import Sequence

from retrograd.backend.ragged import structure_of
from retrograd.core import Tensor, registry
from retrograd.nested.buffer import over, packed, values
from retrograd.nested.layout import layout
from retrograd.ops.view import cat, reshape


def components(x: Tensor) -> tuple[Tensor, ...]:
    """The components of a nested tensor, as views; where they are recorded, one node serves all of them."""
    x = packed(x)
    known = layout(x)
    row, lengths = known.row, known.structure.lengths.tolist()
    parts = registry["split"](values(x), lengths, dim=row)
    if known.several == 1:
        return tuple(parts)
    sizes = known.structure.sizes.tolist()
    return tuple([reshape(p, (*p.shape[:row], *s, *p.shape[row + 1 :])) for p, s in zip(parts, sizes, strict=True)])


def joined(parts: Sequence[Tensor], lead: int = 0) -> Tensor:
    """The nested tensor of copies of components, of which there must be one; ragged are those sizes that differ."""
    structure, axis = structure_of([p.shape[lead:] for p in parts])
    row, several = lead + axis, structure.sizes.shape[1]
    if several != 1:
        pairs = zip(parts, structure.lengths.tolist(), strict=True)
        parts = [reshape(p, (*p.shape[:row], n, *p.shape[row + several :])) for p, n in pairs]
    return over(cat(parts, dim=row), structure, axis, lead)
