"""`while_loop`: a function repeated until a condition fails."""

from collections.abc import Callable, Sequence
from typing import Any

import optree

from retrograd.core import Internal, Tensor, op, operator_named
from retrograd.fx.subgraph import record_call, subgraph_of, trace_functions
from retrograd.fx.tracer import TraceLevel
from retrograd.higher_order.operands import (
    call_without_writes,
    check_functions,
    check_same_avals,
    copy_aliases,
    flatten,
    is_batched,
    read_examples,
    select,
    trace_level,
)
from retrograd.ops.create import as_tensor
from retrograd.ops.family import Composite


def while_loop(cond_fn: Callable, body_fn: Callable, carried_inputs: tuple | list) -> tuple:
    """Repeat `carried = body_fn(*carried)` while `cond_fn(*carried)` is true; return the last carried values.

    cond_fn: a function of the carried values that returns a bool, or a tensor of one element.
    body_fn: a function that returns new carried values of the same structure, shapes and dtypes.
    carried_inputs: a tuple or list of pytrees of tensors and ints.

    Both functions may use tensors from around them, which get gradients.  Reverse mode saves the values of every
    iteration, so its memory grows with their number; forward mode saves nothing.  Under `vmap` the loop runs until
    the condition fails for all examples, and the values of examples that have ended stay as they are.  A trace records
    one node with both functions; ints are tensors there.

    Raises RuntimeError for carried values of another structure, shape or dtype, for conditions of several elements,
    for inputs that are no tensors or ints, and for functions that write to carried values.

    After `torch._higher_order_ops.while_loop`.

    >>> import retrograd as rg
    >>> from retrograd.higher_order import while_loop
    >>> x = rg.tensor(3.0, requires_grad=True)
    >>> n, y = while_loop(lambda n, y: y < 100, lambda n, y: (n + 1, y * y), (0, x))
    >>> n, y, rg.autograd.grad(y, x)
    (3, tensor(6561., grad_fn=<MulBackward0>), (tensor(17496.),))
    """
    _check(cond_fn, body_fn, carried_inputs)
    leaves, spec = flatten(tuple(carried_inputs))
    level = trace_level()
    if level is not None:
        return _record(level, cond_fn, body_fn, leaves, spec)
    carried = leaves
    while True:
        given: Any = optree.tree_unflatten(spec, carried)
        pred = _check_pred(call_without_writes("while_loop: cond_fn", cond_fn, given))
        batched = is_batched(pred)
        running = read_examples(pred) != 0 if batched else None
        if not (bool(pred) if running is None else running.any()):
            break
        new = _check_carried(call_without_writes("while_loop: body_fn", body_fn, given), carried, spec)
        carried = new if running is None or running.all() else select(pred, new, carried)
    last: Any = optree.tree_unflatten(spec, carried if carried is leaves else copy_aliases(carried, leaves))
    return tuple(last)


def _check(cond_fn: Any, body_fn: Any, carried_inputs: Any) -> None:
    check_functions("cond_fn and body_fn", cond_fn, body_fn)
    if not isinstance(carried_inputs, (tuple, list)):
        raise RuntimeError(f"carried_inputs must be a tuple or list, got {type(carried_inputs)}")
    if not all(isinstance(x, (Tensor, int)) for x in flatten(carried_inputs)[0]):
        raise RuntimeError(
            "Expect carried_inputs to be a tuple of possibly nested dict/list/tuple that only consists of tensor or "
            f"int leaves, but got {carried_inputs}."
        )


def _check_pred(pred: Any) -> Any:
    if not isinstance(pred, (bool, int)) and not (isinstance(pred, Tensor) and pred.numel() == 1):
        raise RuntimeError(f"cond_fn must return a boolean scalar tensor or a boolean but got {pred}")
    return pred


def _check_carried(new: Any, carried: Sequence[Any], spec: Any) -> list:
    """Return the leaves of new carried values, which must be like the old ones."""
    leaves, tree = flatten(tuple(new) if isinstance(new, (tuple, list)) else (new,))
    check_same_avals(("body_fn_output", "carried_inputs"), leaves, carried)
    if tree != spec:
        raise RuntimeError(
            f"Expected body_fn_output and carried_inputs to have same structure but got lhs:{tree} and rhs:{spec}"
        )
    return leaves


def _record(level: TraceLevel, cond_fn: Callable, body_fn: Callable, leaves: list, spec: Any) -> tuple:
    """Record one node with condition and body as sub-graphs."""
    leaves = [x if isinstance(x, Tensor) else as_tensor(x) for x in leaves]

    def condition(*carried: Any) -> Any:
        return _check_pred(cond_fn(*optree.tree_unflatten(spec, carried)))

    def body(*carried: Any) -> Any:
        return tuple(_check_carried(body_fn(*optree.tree_unflatten(spec, carried)), carried, spec))

    functions = {"cond_fn": condition, "body_fn": body}
    graphs, captured, _ = trace_functions(level, "while_loop", functions, (leaves, leaves))
    params = {**dict(zip(functions, graphs, strict=True)), "carried": len(leaves)}
    results = record_call(level, operator_named("higher_order.while_loop"), (*leaves, *captured), params)
    last: Any = optree.tree_unflatten(spec, results)
    return tuple(last)


@op("higher_order.while_loop(Tensor[] operands, *, any cond_fn, any body_fn, int carried) -> Tensor[]")
class while_loop_node(Internal, Composite):
    """Return the carried values after a loop over sub-graphs: the node that a trace of `while_loop` records.

    Operands after the first `carried` ones are the same in every iteration.
    """

    def compose(*operands: Any, cond_fn: Callable, body_fn: Callable, carried: int) -> tuple:
        rest = operands[carried:]
        return while_loop(lambda *c: cond_fn(*c, *rest)[0], lambda *c: body_fn(*c, *rest), operands[:carried])

    def oracle(np: Any, *operands: Any, cond_fn: Callable, body_fn: Callable, carried: int) -> Any:
        state, rest = operands[:carried], operands[carried:]
        while cond_fn(*state, *rest)[0]:
            state = body_fn(*state, *rest)
        return state

    def samples(r: Any) -> Any:
        limits = r(3), r(3), r(3)
        cond_fn = subgraph_of("cond_fn", lambda n, x, w: ((x * x).sum() + n < 9,), *limits)
        body_fn = subgraph_of("body_fn", lambda n, x, w: (n + 1, x * w + x + 0.5), *limits)
        yield (r(), r(3), r(3)), {"cond_fn": cond_fn, "body_fn": body_fn, "carried": 2}
