"""Operators that act on each element: on the buffers, whose rows must lie alike."""

from typing import Any

from retrograd.core import Op, Tensor, call
from retrograd.nested.apart import family
from retrograd.nested.buffer import like, packed, values
from retrograd.nested.layout import Layout, component_shapes, is_nested, layout
from retrograd.nested.segments import repeat_rows
from retrograd.ops.family import Pointwise, broadcast_shapes
from retrograd.ops.view import movedim, reshape


@family(Pointwise)
def elementwise(op: Op, args: tuple, params: dict) -> Any:
    """The operator on the buffers; plain operands broadcast against every component."""
    known = leading(args)
    operands = [beside(a, known) for a in args]
    if any(o is NotImplemented for o in operands):
        nested = [a for a in args if is_nested(a)]
        for a in nested[1:]:
            check_alike(op.name, nested[0], a)
        return NotImplemented
    out = call(op, tuple(operands), params)
    return tuple([like(known, o) for o in out]) if isinstance(out, tuple) else like(known, out)


def leading(args: tuple) -> Layout:
    """The layout of the result of operands that broadcast: that of the nested one with most dimensions in front."""
    nested = [layout(a) for a in args if is_nested(a)]
    known = nested[0] if len(nested) == 1 else max(nested, key=lambda k: (k.ndim, k.lead))
    return known if known.structure.starts is None else known._replace(structure=known.structure.packed)


def beside(a: Any, known: Layout) -> Any:
    """What stands for an operand where the buffer of a nested tensor of this layout is another.

    NotImplemented if its rows do not lie alike.
    """
    if is_nested(a):
        a = packed(a)
        its = layout(a)
        alike = its.axis == known.axis and its.ndim - its.lead == known.ndim - known.lead
        return values(a) if alike and its.structure == known.structure else NotImplemented
    behind = known.ndim - known.ragged.stop
    if getattr(a, "ndim", 0) <= behind:
        return a
    return _in_rows(a, known)


def _in_rows(a: Tensor, known: Layout) -> Any:
    """A plain tensor that broadcasts against a nested one, so that it does against the buffer."""
    shape = (*(1,) * (known.ndim - a.ndim), *a.shape)
    first, last, lead = known.ragged.start, known.ragged.stop, known.lead
    if len(shape) > known.ndim or any(size != 1 for size in shape[first:last]):
        return NotImplemented
    front, middle, end = shape[:lead], shape[lead + 1 : first], shape[last:]
    if shape[lead] == 1:
        return reshape(a, (*front, *middle, 1, *end))
    if shape[lead] != len(known.structure):
        return NotImplemented
    each = movedim(reshape(a, (*front, shape[lead], *middle, *end)), lead, known.row)
    return repeat_rows(each, structure=known.structure, row=known.row)


def check_alike(name: str, x: Tensor, other: Any) -> None:
    """A ValueError names the first component of two nested tensors whose shapes do not broadcast, and both shapes."""
    if not is_nested(other):
        return
    pairs = list(zip(component_shapes(x), component_shapes(other), strict=False))
    for i, shapes in enumerate(pairs):
        try:
            broadcast_shapes(name, list(shapes))
        except ValueError:
            raise ValueError(
                f"{name}: the nested tensors differ in structure: component {i} has shapes {shapes[0]} and {shapes[1]}, "
                f"which do not broadcast"
            ) from None
    mine, its = len(layout(x).structure), len(layout(other).structure)
    if mine != its:
        raise ValueError(f"{name}: the nested tensors have {mine} and {its} components")
