"""Writing to nested tensors in place: into their buffers."""

from typing import Any

from retrograd.core import Tensor
from retrograd.nested.buffer import values
from retrograd.nested.elementwise import beside, check_alike
from retrograd.nested.layout import Layout, is_nested, layout
from retrograd.ops.mutate import write_into
from retrograd.ops.view import narrow


def write(name: str, x: Tensor, src: Any) -> Tensor:
    """Write a tensor, which broadcasts to the components of x, into its memory, for the function of that name."""
    if not is_nested(x):
        raise RuntimeError(f"{name}: an example of a batch that is nested can't be written to; clone it")
    known = layout(x)
    buffer, rows = values(x), beside(src, known._replace(structure=known.structure.packed))
    if rows is NotImplemented:
        check_alike(name, x, src)
        raise RuntimeError(f"{name}: a value of shape {src.shape} does not fit into a nested tensor of shape {x.shape}")
    if known.holes:
        _between_holes(name, buffer, rows, known)
    else:
        write_into(name, buffer, rows)
    return x


def _between_holes(name: str, buffer: Tensor, rows: Any, known: Layout) -> None:
    """Write rows to where the components lie in a buffer that has more."""
    at = 0
    for first, last in known.structure.bounds():
        whole = getattr(rows, "ndim", 0) > known.row and rows.shape[known.row] != 1
        src = narrow(rows, known.row, at, last - first) if whole else rows
        write_into(name, narrow(buffer, known.row, first, last - first), src)
        at += last - first
