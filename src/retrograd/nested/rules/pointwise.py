"""Pointwise operators: on the buffers, whose structures must agree."""

from collections.abc import Sequence
from typing import Any

from retrograd.backend.ragged_reshape import equal_sizes
from retrograd.core import Op, Tensor, call
from retrograd.nested.buffer import like, packed, values
from retrograd.nested.buffer_layout import Layout, component_shapes, is_nested, layout
from retrograd.nested.dispatch import composed, family
from retrograd.nested.rules.segment_reduce import repeat_rows
from retrograd.ops.family import Pointwise, broadcast_shapes
from retrograd.ops.view import expand, movedim, reshape


@family(Pointwise)
def elementwise(op: Op, args: tuple, params: dict) -> Any:
    """Run the operator on the buffers; plain operands broadcast against every component."""
    known = layout_with_holes(op, args) or result_layout(args)
    operands = [values(a) if known.holes else buffer_operand(a, known) for a in args]
    if any(o is NotImplemented for o in operands):
        nested = [a for a in args if is_nested(a)]
        for a in nested[1:]:
            check_alike(op.name, nested[0], a)
        return NotImplemented
    return like_each(known, call(op, tuple(operands), params))


def like_each(known: Layout, out: Any) -> Any:
    """Return a nested tensor of a layout over a buffer, or over each of several."""
    return tuple([like(known, o) for o in out]) if isinstance(out, tuple) else like(known, out)


@composed("masked_scatter")
def _masked_scatter(op: Op, args: tuple, params: dict) -> Any:
    """Run on the buffers, if their elements are in component order, in which the source is consumed."""
    x, mask, source = args
    nested = [a for a in args if is_nested(a)]
    known = result_layout(nested)
    rows = [buffer_operand(x, known), buffer_operand(mask, known)]
    if any(layout(a).row or layout(a).several > 1 for a in nested) or any(r is NotImplemented for r in rows):
        check_alike(op.name, x, mask)
        raise RuntimeError(
            f"masked_scatter: x of shape {x.shape} and mask of shape {mask.shape}: expected nested tensors that are "
            f"alike, with one ragged dimension, the first of the components"
        )
    return like(known, call(op, (*rows, values(packed(source)) if is_nested(source) else source), params))


def layout_with_holes(op: Op, args: tuple) -> Layout | None:
    """Return the layout of operands that all have the same holes, if the operator is linear in them jointly.

    Used to sum cotangents: in holes, buffers hold the cotangents of rows that belong to no component.
    """
    if "," not in op.definition.linear or not all(map(is_nested, args)):
        return None
    first, *others = [layout(a) for a in args]
    return first if first.holes and all(other == first for other in others) else None


def result_layout(args: Sequence) -> Layout:
    """Return the layout of the result of operands that broadcast: that of the nested one with most leading
    dimensions."""
    nested = [layout(a) for a in args if is_nested(a)]
    known = nested[0] if len(nested) == 1 else max(nested, key=lambda k: (k.ndim, k.lead))
    return known if known.structure.starts is None else known._replace(structure=known.structure.packed)


def buffer_operand(a: Any, known: Layout) -> Any:
    """Return the operand that corresponds to an argument when a nested tensor of this layout is replaced by its
    buffer.

    NotImplemented if its structure differs.
    """
    if is_nested(a):
        a = packed(a)
        its = layout(a)
        alike = its.axis == known.axis and its.ndim - its.lead == known.ndim - known.lead
        return values(a) if alike and its.structure == known.structure else NotImplemented
    behind = known.ndim - known.ragged.stop
    if getattr(a, "ndim", 0) <= behind:
        return a
    return _reshape_for_rows(a, known)


def _reshape_for_rows(a: Tensor, known: Layout) -> Any:
    """Reshape a plain tensor that broadcasts against a nested one, so that it broadcasts against the buffer."""
    shape = (*(1,) * (known.ndim - a.ndim), *a.shape)
    first, last, lead = known.ragged.start, known.ragged.stop, known.lead
    if len(shape) > known.ndim or shape[lead] not in (1, len(known.structure)):
        return NotImplemented
    front, middle, end = shape[:lead], shape[lead + 1 : first], shape[last:]
    if any(size != 1 for size in shape[first:last]):
        sizes = equal_sizes(known.structure)
        if sizes is None or any(size not in (1, s) for size, s in zip(shape[first:last], sizes, strict=True)):
            return NotImplemented
        a = expand(reshape(a, shape), (*front, len(known.structure), *middle, *sizes, *end))
        return reshape(movedim(a, lead, known.row), (*front, *middle, known.structure.rows, *end))
    if shape[lead] == 1:
        return reshape(a, (*front, *middle, 1, *end))
    each = movedim(reshape(a, (*front, shape[lead], *middle, *end)), lead, known.row)
    return repeat_rows(each, structure=known.structure, row=known.row)


def check_alike(name: str, x: Any, other: Any) -> None:
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
    mine, its = len(layout(x).structure), len(layout(other).structure)
    if mine != its:
        raise ValueError(f"{name}: the nested tensors have {mine} and {its} components")
