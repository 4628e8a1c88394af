"""All elements of a nested tensor in one plain tensor, and back."""

from collections.abc import Callable

from retrograd.backend.ragged import RaggedSizeError
from retrograd.core import Tensor
from retrograd.nested.buffer import remove_holes, values, wrap_buffer
from retrograd.nested.buffer_layout import get_layout, is_nested


def flat_buffer(x: Tensor) -> tuple[Tensor, Callable[[Tensor, int], Tensor]]:
    """Return the innermost buffer of a nested tensor, without holes, and the inverse for other buffers.

    The inverse takes a buffer with `n` more dimensions in front, which the result then has too.
    """
    if not is_nested(x):
        raise RaggedSizeError(f"an example of shape {x.shape} has no one number of elements: it is one of a batch")
    x = remove_holes(x)
    layout, rows = get_layout(x), values(x)
    rebuild_inner = None
    if is_nested(rows):
        rows, rebuild_inner = flat_buffer(rows)

    def rebuild(rows: Tensor, front: int) -> Tensor:
        inner = rows if rebuild_inner is None else rebuild_inner(rows, front)
        return wrap_buffer(inner, layout.structure, layout.axis, layout.lead + front)

    return rows, rebuild
