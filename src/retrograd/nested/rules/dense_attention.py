"""The dense attention operators on nested tensors: on stacks of components of equal shape, or on buffers."""

from typing import Any

from retrograd.backend.ragged_attention import Plan
from retrograd.core import Op, Tensor, call
from retrograd.nested.buffer import over, packed, values
from retrograd.nested.buffer_layout import is_nested, layout
from retrograd.nested.dispatch import composed
from retrograd.nested.ragged_dims import as_components
from retrograd.nested.rules import ragged_attention as on_buffers
from retrograd.nested.rules.reduce import stacked


@composed("attend")
def attend(op: Op, args: tuple, params: dict) -> Any:
    """Return the results, (n, ..., l, d), and the sums, (n, ..., l)."""
    found = _of_stacks(op, args, params, [args[1], args[1]])
    rows = None if found is not NotImplemented else _buffers(args)
    if rows is None:
        return found
    plan = _plan(rows, params)
    out, sums = call(on_buffers.attend, (None, *(x for _, x in rows)), {"plan": plan})
    return over(out, plan.queries, out.ndim - 2), over(sums, plan.queries, sums.ndim - 1)  # type: ignore[arg-type]


@composed("attend_backward")
def attend_backward(op: Op, args: tuple, params: dict) -> Any:
    """Return the cotangents of queries, keys and values."""
    found = _of_stacks(op, args, params, args[5:])
    rows = None if found is not NotImplemented or params["output_mask"][3] else _buffers((args[0], *args[5:]))
    if rows is None or not all(is_nested(x) for x in args[1:5]):
        return found
    plan, cotangents = _plan(rows, params), [values(packed(x)) for x in args[1:5]]
    how = {"plan": plan, "output_mask": params["output_mask"]}
    found = call(on_buffers.attend_backward, (None, *cotangents, *(x for _, x in rows)), how)
    each = zip(found, [own for own, _ in rows], params["output_mask"], strict=False)
    return *(over(x, own, x.ndim - 2) if w else x for x, own, w in each), found[3]


def _of_stacks(op: Op, args: tuple, params: dict, like: list | tuple) -> Any:
    """Run the operator on stacks, and nest the results as the tensors in `like`; results of size 0 stay plain."""
    known = [layout(a) for a in args if is_nested(a)]
    if any(k.lead or k.ragged.stop > min(k.ndim, 3) for k in known):
        return NotImplemented
    stacks = [stacked(a) if is_nested(a) else a for a in args]
    if any(x is None and a is not None for x, a in zip(stacks, args, strict=True)):
        return NotImplemented
    found = call(op, tuple(stacks), params)
    return (*(_nested_as(x, of) for x, of in zip(found, like, strict=False)), *found[len(like) :])


def _nested_as(x: Tensor, of: Any) -> Tensor:
    if not is_nested(of) or x.ndim < 2:
        return x
    known = layout(of)
    return as_components(x, known.lead, known.ragged.start, known.ragged.stop)


def _buffers(args: tuple) -> list | None:
    """Return structures and rows of queries, keys and values; None with masks or plain tensors."""
    attn_mask, *tensors = args
    if attn_mask is not None or len([x for x in tensors if x is not None]) > 3 or not all(map(is_nested, tensors[:3])):
        return None
    found = [(layout(x), x) for x in map(packed, tensors[:3])]
    fit = all(k.several == 1 and not k.lead and k.ragged.stop == k.ndim - 1 for k, _ in found)
    return [(known.structure, values(x)) for known, x in found] if fit else None


def _plan(rows: list[tuple[Any, Tensor]], params: dict) -> Plan:
    return Plan(rows[0][0], rows[1][0], params["scale"], params["causal"])
