"""Pointwise operators: on the buffers, whose structures must agree."""

from collections.abc import Sequence
from typing import Any

from retrograd.backend.ragged_reshape import equal_sizes
from retrograd.core import Op, Tensor, call
from retrograd.nested.buffer import remove_holes, values, wrap_buffer_like
from retrograd.nested.buffer_layout import Layout, component_shapes, get_layout, is_nested
from retrograd.nested.dispatch import rule_for, rule_for_family
from retrograd.nested.rules.segment_reduce import repeat_rows
from retrograd.ops.family import Pointwise, broadcast_shapes
from retrograd.ops.view import expand, movedim, reshape


@rule_for_family(Pointwise)
def elementwise(op: Op, args: tuple, params: dict) -> Any:
    """Run the operator on the buffers; plain operands broadcast against every component."""
    layout = layout_with_holes(op, args) or result_layout(args)
    operands = [values(a) if layout.has_holes else buffer_operand(a, layout) for a in args]
    if any(o is NotImplemented for o in operands):
        # The fallback runs the components one by one; shapes that do not fit are refused here, with their component.
        nested = [a for a in args if is_nested(a)]
        for a in nested[1:]:
            check_broadcast(op.name, nested[0], a)
        return NotImplemented
    return wrap_each_like(layout, call(op, tuple(operands), params))


def wrap_each_like(layout: Layout, out: Any) -> Any:
    """Return a nested tensor of a layout over a buffer, or over each of several."""
    return (
        tuple([wrap_buffer_like(layout, o) for o in out]) if isinstance(out, tuple) else wrap_buffer_like(layout, out)
    )


@rule_for("masked_scatter")
def _masked_scatter(op: Op, args: tuple, params: dict) -> Any:
    """Run on the buffers, if their elements are in component order, in which the source is consumed."""
    x, mask, source = args
    nested = [a for a in args if is_nested(a)]
    layout = result_layout(nested)
    rows = [buffer_operand(x, layout), buffer_operand(mask, layout)]
    if any(get_layout(a).row or get_layout(a).num_ragged > 1 for a in nested) or any(r is NotImplemented for r in rows):
        check_broadcast(op.name, x, mask)
        raise RuntimeError(
            f"masked_scatter: x of shape {x.shape} and mask of shape {mask.shape}: expected nested tensors that are "
            f"alike, with one ragged dimension, the first of the components"
        )
    return wrap_buffer_like(
        layout, call(op, (*rows, values(remove_holes(source)) if is_nested(source) else source), params)
    )


def layout_with_holes(op: Op, args: tuple) -> Layout | None:
    """Return the layout of operands that all have the same holes, if the operator is linear in them jointly.

    Used to sum cotangents: in holes, buffers hold the cotangents of rows that belong to no component.
    """
    if "," not in op.definition.linear or not all(map(is_nested, args)):
        return None
    first, *others = [get_layout(a) for a in args]
    return first if first.has_holes and all(other == first for other in others) else None


def result_layout(args: Sequence) -> Layout:
    """Return the layout of the result of operands that broadcast: that of the nested one with most leading
    dimensions."""
    nested = [get_layout(a) for a in args if is_nested(a)]
    layout = nested[0] if len(nested) == 1 else max(nested, key=lambda k: (k.ndim, k.lead))
    return layout if layout.structure.starts is None else layout._replace(structure=layout.structure.packed)


def buffer_operand(a: Any, layout: Layout) -> Any:
    """Return the operand that corresponds to an argument when a nested tensor of this layout is replaced by its
    buffer.

    NotImplemented if its structure differs.
    """
    if is_nested(a):
        a = remove_holes(a)
        its = get_layout(a)
        same_dims = its.axis == layout.axis and its.ndim - its.lead == layout.ndim - layout.lead
        return values(a) if same_dims and its.structure == layout.structure else NotImplemented
    trailing = layout.ndim - layout.ragged.stop
    if getattr(a, "ndim", 0) <= trailing:
        return a
    return _reshape_for_rows(a, layout)


def _reshape_for_rows(a: Tensor, layout: Layout) -> Any:
    """Reshape a plain tensor that broadcasts against a nested one, so that it broadcasts against the buffer."""
    shape = (*(1,) * (layout.ndim - a.ndim), *a.shape)
    first, last, lead = layout.ragged.start, layout.ragged.stop, layout.lead
    if len(shape) > layout.ndim or shape[lead] not in (1, len(layout.structure)):
        return NotImplemented
    front, middle, end = shape[:lead], shape[lead + 1 : first], shape[last:]
    # A plain tensor has one size where the nested one has several, so it fits only if all components have that size.
    if any(size != 1 for size in shape[first:last]):
        sizes = equal_sizes(layout.structure)
        if sizes is None or any(size not in (1, s) for size, s in zip(shape[first:last], sizes, strict=True)):
            return NotImplemented
        a = expand(reshape(a, shape), (*front, len(layout.structure), *middle, *sizes, *end))
        return reshape(movedim(a, lead, layout.row), (*front, *middle, layout.structure.rows, *end))
    if shape[lead] == 1:
        return reshape(a, (*front, *middle, 1, *end))
    each = movedim(reshape(a, (*front, shape[lead], *middle, *end)), lead, layout.row)
    return repeat_rows(each, structure=layout.structure, row=layout.row)


def check_broadcast(name: str, x: Any, other: Any) -> None:
    """Raise ValueError that names the first component of two nested tensors whose shapes do not broadcast."""
    if not (is_nested(x) and is_nested(other)):
        return
    pairs = list(zip(component_shapes(x), component_shapes(other), strict=False))
    for i, shapes in enumerate(pairs):
        try:
            broadcast_shapes(name, list(shapes))
        except ValueError:
            raise ValueError(
                f"{name}: the nested tensors differ in structure: component {i} has shapes {shapes[0]} and "
                f"{shapes[1]}, which do not broadcast"
            ) from None
    mine, its = len(get_layout(x).structure), len(get_layout(other).structure)
    if mine != its:
        raise ValueError(f"{name}: the nested tensors have {mine} and {its} components")
