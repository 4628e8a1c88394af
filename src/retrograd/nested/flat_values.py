"""All elements of a nested tensor in one plain tensor, and back."""

from collections.abc import Callable

from retrograd.backend.ragged import RaggedSizeError
from retrograd.core import Tensor
from retrograd.nested.buffer import over, packed, values
from retrograd.nested.buffer_layout import is_nested, layout


def flat_buffer(x: Tensor) -> tuple[Tensor, Callable[[Tensor, int], Tensor]]:
    """Return the innermost buffer of a nested tensor, without holes, and the inverse for other buffers.

    The inverse takes a buffer with `n` more dimensions in front, which the result then has too.
    """
    if not is_nested(x):
        raise RaggedSizeError(f"an example of shape {x.shape} has no one number of elements: it is one of a batch")
    x = packed(x)
    known, rows = layout(x), values(x)
    within = None
    if is_nested(rows):
        rows, within = flat_buffer(rows)

    def rebuilt(rows: Tensor, front: int) -> Tensor:
        inner = rows if within is None else within(rows, front)
        return over(inner, known.structure, known.axis, known.lead + front)

    return rows, rebuilt
