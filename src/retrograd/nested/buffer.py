"""The two operators between nested tensors and their buffers.

Only these take ragged arrays.  Every other operator on a nested tensor is composed of them and of operators on
buffers, which are plain tensors with all rules.
"""

from typing import Any

from retrograd.backend import ragged
from retrograd.backend.ragged import Ragged, Structure
from retrograd.backend.ragged_slicing import rows_needed
from retrograd.core import Aval, Internal, Tensor, call, namespaces, op, registry
from retrograd.nested.buffer_layout import Layout, get_layout, is_nested, layout_of_shape
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
        return Aval(buffer_shape(layout_of_shape(x.shape), x.shape), x.dtype)

    def vjp_x(g, x_aval):
        layout = layout_of_shape(x_aval.shape)
        return from_values(g, structure=layout.structure, axis=layout.axis, lead=layout.lead)

    def batched_views(batch_shape):
        return (("nested.values", {}),)

    def samples(r):
        yield (wrap_buffer(r(5, 2), ragged.structure_of([(3, 2), (2, 2)])[0]),), {}


@op("nested.from_values(Tensor buffer, *, any structure, int axis=0, int lead=0) -> Tensor")
class from_values(Internal, View, linear="buffer", accepts_nested=True):
    """The nested tensor over a buffer, as a view; if the structure has holes, the buffer has additional rows."""

    def impl(xp, buffer, *, structure, axis, lead):
        return Ragged(buffer, structure, axis, lead)

    def shape(buffer, *, structure, axis, lead):
        return Aval(ragged.shape_over(buffer.shape, structure, axis, lead), buffer.dtype)

    def vjp_buffer(g, buffer_aval, structure, axis, lead):
        its, row = get_layout(g).structure, lead + axis
        if its is structure or its == structure:
            return values(g)  # including the rows in holes, because `values` exposes them
        rows = values(remove_holes(g))
        if structure.starts is None:
            return rows
        return _scatter_rows(rows, structure.row_indices(), buffer_aval.shape, row)

    def batched_views(batch_shape, *, structure, axis, lead):
        return (("nested.from_values", {"structure": structure, "axis": axis, "lead": lead + 1}),)

    def samples(r):
        yield (r(5, 2),), {"structure": ragged.structure_of([(3, 2), (2, 2)])[0], "axis": 0, "lead": 0}


def _scatter_rows(rows: Tensor, indices: Any, shape: tuple, row: int) -> Tensor:
    """Return zeros of a buffer's shape with rows added at indices; nested rows stay nested."""
    if not is_nested(rows):
        out: Tensor = registry["index_sum"](rows, as_tensor(indices), dim=row, size=shape[row])
        return out
    layout = layout_of_shape(shape)
    inner = _scatter_rows(
        values(remove_holes(rows)), layout.structure.of(indices).row_indices(), buffer_shape(layout, shape), layout.row
    )
    return wrap_buffer_like(layout, inner)


def buffer_shape(layout: Layout, shape: tuple) -> tuple:
    """Return the shape of the buffer of a nested tensor; with holes, it ends with the last component's last row."""
    lead, first, last = layout.lead, layout.ragged.start, layout.ragged.stop
    return (*shape[:lead], *shape[lead + 1 : first], rows_needed(layout.structure), *shape[last:])


def wrap_buffer(buffer: Tensor, structure: Structure, axis: int = 0, lead: int = 0) -> Tensor:
    """Return the nested tensor over a buffer."""
    return from_values(buffer, structure=structure, axis=axis, lead=lead)


def wrap_buffer_like(layout: Layout, buffer: Tensor) -> Tensor:
    """Return a nested tensor of a layout over another buffer with the same row dimension."""
    return call(from_values, (buffer,), {"structure": layout.structure, "axis": layout.axis, "lead": layout.lead})


def remove_holes(x: Tensor) -> Tensor:
    """Return a nested tensor without holes in its buffer; itself if it has none."""
    layout = get_layout(x)
    if not layout.has_holes:
        return x
    rows = registry["index_select"](values(x), layout.row, as_tensor(layout.structure.row_indices()))
    return wrap_buffer(rows, layout.structure.packed, layout.axis, layout.lead)


def to_layout(x: Tensor, strided: bool) -> Tensor:
    """Return a nested tensor in the strided or the jagged layout, over the same buffer."""
    layout = get_layout(x)
    if layout.structure.strided == strided:
        return x
    return wrap_buffer(call(values, (x,), {}), layout.structure.in_layout(strided), layout.axis, layout.lead)
