"""The two operators between nested tensors and their buffers.

Only these take ragged arrays.  Every other operator on a nested tensor is composed of them and of operators on
buffers, which are plain tensors with all rules.
"""

from typing import Any

from retrograd.backend import ragged
from retrograd.backend.ragged import Ragged, Structure
from retrograd.backend.ragged_slicing import rows_needed
from retrograd.core import Aval, Internal, Tensor, call, namespaces, op, registry
from retrograd.nested.buffer_layout import Layout, is_nested, layout, layout_of
from retrograd.ops.create import as_tensor
from retrograd.ops.family import View

namespaces[Ragged] = ragged


@op("nested.values(Tensor x) -> Tensor")
class values(Internal, View, linear="x", accepts_nested=True):
    """The buffer of a nested tensor: the rows of its components, one after the other, as a view.

    >>> import retrograd as rg
    >>> rg.nested.nested_tensor([[1.0, 2.0], [3.0]]).values()
    tensor([1., 2., 3.])
    """

    def impl(xp, x):
        if not isinstance(x, Ragged):
            raise RuntimeError(f"values: only nested tensors have a buffer, got a tensor of shape {x.shape}")
        return x.values

    def shape(x):
        return Aval(buffer_shape(layout_of(x.shape), x.shape), x.dtype)

    def vjp_x(g, x_aval):
        known = layout_of(x_aval.shape)
        return from_values(g, structure=known.structure, axis=known.axis, lead=known.lead)

    def batched_views(batch_shape):
        return (("nested.values", {}),)

    def samples(r):
        yield (over(r(5, 2), ragged.structure_of([(3, 2), (2, 2)])[0]),), {}


@op("nested.from_values(Tensor buffer, *, any structure, int axis=0, int lead=0) -> Tensor")
class from_values(Internal, View, linear="buffer", accepts_nested=True):
    """The nested tensor over a buffer, as a view; if the structure has holes, the buffer has additional rows."""

    def impl(xp, buffer, *, structure, axis, lead):
        return Ragged(buffer, structure, axis, lead)

    def shape(buffer, *, structure, axis, lead):
        return Aval(ragged.shape_over(buffer.shape, structure, axis, lead), buffer.dtype)

    def vjp_buffer(g, buffer_aval, structure, axis, lead):
        its, row = layout(g).structure, lead + axis
        if its is structure or its == structure:
            return values(g)  # including the rows in holes, because `values` exposes them
        rows = values(packed(g))
        if structure.starts is None:
            return rows
        return _added(rows, structure.row_indices(), buffer_aval.shape, row)

    def batched_views(batch_shape, *, structure, axis, lead):
        return (("nested.from_values", {"structure": structure, "axis": axis, "lead": lead + 1}),)

    def samples(r):
        yield (r(5, 2),), {"structure": ragged.structure_of([(3, 2), (2, 2)])[0], "axis": 0, "lead": 0}


def _added(rows: Tensor, places: Any, shape: tuple, row: int) -> Tensor:
    """Return zeros of a buffer's shape with rows added at indices; nested rows stay nested."""
    if not is_nested(rows):
        out: Tensor = registry["index_sum"](rows, as_tensor(places), dim=row, size=shape[row])
        return out
    known = layout_of(shape)
    inner = _added(
        values(packed(rows)), known.structure.of(places).row_indices(), buffer_shape(known, shape), known.row
    )
    return like(known, inner)


def buffer_shape(known: Layout, shape: tuple) -> tuple:
    """Return the shape of the buffer of a nested tensor; with holes, it ends with the last component's last row."""
    lead, first, last = known.lead, known.ragged.start, known.ragged.stop
    return (*shape[:lead], *shape[lead + 1 : first], rows_needed(known.structure), *shape[last:])


def over(buffer: Tensor, structure: Structure, axis: int = 0, lead: int = 0) -> Tensor:
    """Return the nested tensor over a buffer."""
    return from_values(buffer, structure=structure, axis=axis, lead=lead)


def like(known: Layout, buffer: Tensor) -> Tensor:
    """Return a nested tensor of a layout over another buffer with the same row dimension."""
    return call(from_values, (buffer,), {"structure": known.structure, "axis": known.axis, "lead": known.lead})


def packed(x: Tensor) -> Tensor:
    """Return a nested tensor without holes in its buffer; itself if it has none."""
    known = layout(x)
    if not known.holes:
        return x
    rows = registry["index_select"](values(x), known.row, as_tensor(known.structure.row_indices()))
    return over(rows, known.structure.packed, known.axis, known.lead)


def in_layout(x: Tensor, strided: bool) -> Tensor:
    """Return a nested tensor in the strided or the jagged layout, over the same buffer."""
    known = layout(x)
    if known.structure.strided == strided:
        return x
    return over(call(values, (x,), {}), known.structure.in_layout(strided), known.axis, known.lead)
