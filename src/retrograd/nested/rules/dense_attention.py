"""The dense attention operators on nested tensors: on stacks of components of equal shape, or on buffers."""

from typing import Any

from retrograd.backend.ragged_attention import Plan
from retrograd.core import Op, Tensor, call
from retrograd.nested.buffer import remove_holes, values, wrap_buffer
from retrograd.nested.buffer_layout import get_layout, is_nested
from retrograd.nested.dispatch import rule_for
from retrograd.nested.ragged_dims import nest_dense
from retrograd.nested.rules import ragged_attention as on_buffers
from retrograd.nested.rules.reduce import stack_components


@rule_for("attend")
def attend(op: Op, args: tuple, params: dict) -> Any:
    """Return the results, (n, ..., l, d), and the sums, (n, ..., l)."""
    found = _run_on_stacks(op, args, params, [args[1], args[1]])
    rows = None if found is not NotImplemented else _structures_and_rows(args)
    if rows is None:
        return found
    plan = _plan(rows, params)
    out, sums = call(on_buffers.attend, (None, *(x for _, x in rows)), {"plan": plan})
    return wrap_buffer(out, plan.queries, out.ndim - 2), wrap_buffer(sums, plan.queries, sums.ndim - 1)  # type: ignore[arg-type]


@rule_for("attend_backward")
def attend_backward(op: Op, args: tuple, params: dict) -> Any:
    """Return the cotangents of queries, keys and values."""
    found = _run_on_stacks(op, args, params, args[5:])
    rows = (
        None if found is not NotImplemented or params["output_mask"][3] else _structures_and_rows((args[0], *args[5:]))
    )
    if rows is None or not all(is_nested(x) for x in args[1:5]):
        return found
    plan, cotangents = _plan(rows, params), [values(remove_holes(x)) for x in args[1:5]]
    how = {"plan": plan, "output_mask": params["output_mask"]}
    found = call(on_buffers.attend_backward, (None, *cotangents, *(x for _, x in rows)), how)
    each = zip(found, [own for own, _ in rows], params["output_mask"], strict=False)
    return *(wrap_buffer(x, own, x.ndim - 2) if w else x for x, own, w in each), found[3]


def _run_on_stacks(op: Op, args: tuple, params: dict, like: list | tuple) -> Any:
    """Run the operator on stacks, and nest the results as the tensors in `like`; results of size 0 stay plain."""
    layout = [get_layout(a) for a in args if is_nested(a)]
    if any(k.lead or k.ragged.stop > min(k.ndim, 3) for k in layout):
        return NotImplemented
    stacks = [stack_components(a) if is_nested(a) else a for a in args]
    if any(x is None and a is not None for x, a in zip(stacks, args, strict=True)):
        return NotImplemented
    found = call(op, tuple(stacks), params)
    return (*(_nest_like(x, of) for x, of in zip(found, like, strict=False)), *found[len(like) :])


def _nest_like(x: Tensor, of: Any) -> Tensor:
    if not is_nested(of) or x.ndim < 2:
        return x
    layout = get_layout(of)
    return nest_dense(x, layout.lead, layout.ragged.start, layout.ragged.stop)


def _structures_and_rows(args: tuple) -> list | None:
    """Return structures and rows of queries, keys and values; None with masks or plain tensors."""
    attn_mask, *tensors = args
    if attn_mask is not None or len([x for x in tensors if x is not None]) > 3 or not all(map(is_nested, tensors[:3])):
        return None
    found = [(get_layout(x), x) for x in map(remove_holes, tensors[:3])]
    fit = all(k.num_ragged == 1 and not k.lead and k.ragged.stop == k.ndim - 1 for k, _ in found)
    return [(layout.structure, values(x)) for layout, x in found] if fit else None


def _plan(rows: list[tuple[Any, Tensor]], params: dict) -> Plan:
    return Plan(rows[0][0], rows[1][0], params["scale"], params["causal"])
