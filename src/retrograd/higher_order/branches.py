"""`cond`: one of two functions, chosen by a value."""

from collections.abc import Callable, Sequence
from typing import Any

import optree

from retrograd.autograd.grad_mode import is_grad_enabled
from retrograd.core import Aval, Internal, Tensor, op, operator_named
from retrograd.core.dispatch import call
from retrograd.core.dtype import is_differentiable
from retrograd.fx.subgraph import record_call, subgraph_of, trace_functions
from retrograd.fx.tracer import TraceLevel
from retrograd.higher_order.operands import (
    call_without_writes,
    check_functions,
    check_same_avals,
    copy_aliases,
    flatten,
    is_batched,
    is_traced,
    read_examples,
    select,
    trace_level,
)
from retrograd.ops.batching import broadcast_batch
from retrograd.ops.create import zeros
from retrograd.ops.family import Composite

MERGING = "When merging two branches' output in torch.cond, "


def cond(pred: Any, true_fn: Callable, false_fn: Callable, operands: tuple | list = ()) -> Any:
    """Return `true_fn(*operands)` if `pred` is true, else `false_fn(*operands)`.

    pred: a bool, a number, or a tensor of one element.
    true_fn, false_fn: functions of the operands that return pytrees of tensors of the same structure, shapes and
        dtypes.  They may use tensors from around them, which get gradients, and may not write to operands.
    operands: a tuple or list of pytrees of tensors.

    In eager code only the chosen function runs, so its result may differ from the other's.  An operand that it does
    not use gets a gradient of zeros; a tensor that only the other function uses, and that is no operand, gets none, and
    nor does either when a recorded graph runs.
    A trace records one node with both functions, and nothing is fixed by the example's value.  Under `vmap`, if
    `pred` differs between the examples, both functions run on all examples and the results are selected: as with
    `where`, a nan or an infinity in the derivative of a function not chosen can reach the gradient.  Results that
    share memory with an operand are copied.

    Raises RuntimeError for a `pred` of several elements, for operands that are no tensors, for functions that write to
    operands, and, where both run, for results that differ in structure, shape or dtype.

    After `torch.cond`.

    >>> import retrograd as rg
    >>> x = rg.tensor([1.0, 2.0], requires_grad=True)
    >>> y = rg.cond(x.sum() > 0, lambda x: x * x, lambda x: -x, (x,))
    >>> rg.autograd.grad(y.sum(), x)
    (tensor([2., 4.]),)
    """
    if isinstance(pred, (bool, int, float)):
        return (true_fn if pred else false_fn)(*operands)
    return _run(pred, true_fn, false_fn, operands, _link_operands)


def _run(pred: Any, true_fn: Callable, false_fn: Callable, operands: tuple | list, finish: Callable) -> Any:
    """Run or record the functions; `finish` takes the results and the operands, and returns the results."""
    _check(pred, true_fn, false_fn, operands)
    functions = {"true_fn": true_fn, "false_fn": false_fn}
    leaves, spec = flatten(tuple(operands))
    level = trace_level()
    if level is not None:
        return _record(level, pred, functions, leaves, spec)
    results = [
        flatten(call_without_writes(f"cond: {name}", functions[name], operands)) for name in _select_branches(pred)
    ]
    outs, tree = results[0]
    if len(results) == 2:
        _check_structures(tree, results[1][1])
        check_same_avals(("true_fn_output", "false_fn_output"), outs, results[1][0], MERGING)
        outs = select(pred, outs, results[1][0])
    return optree.tree_unflatten(tree, finish(copy_aliases(outs, leaves), leaves))


def _link_operands(outs: list, operands: list) -> list:
    """Return the results with edges to all operands that require grad, so that unused ones get zeros."""
    linked = [x for x in operands if x.requires_grad] if is_grad_enabled() else []
    if not linked:
        return outs
    return [call(linked_result, (x, *linked), {}) if _is_differentiable(x) else x for x in outs]


def _is_differentiable(x: Any) -> bool:
    return isinstance(x, Tensor) and is_differentiable(x.dtype)


def _check(pred: Any, true_fn: Any, false_fn: Any, operands: Any) -> None:
    if not isinstance(pred, Tensor):
        raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
    if pred.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    check_functions("both branches", true_fn, false_fn)
    if not isinstance(operands, (tuple, list)) or not all(isinstance(x, Tensor) for x in flatten(operands)[0]):
        raise RuntimeError(
            "Expect operands to be a tuple of possibly nested dict/list/tuple that only consists of tensor leaves, "
            f"but got {operands}."
        )


def _select_branches(pred: Tensor) -> Sequence[str]:
    """Return the names of the functions to run: both if the examples of a batch differ."""
    if not is_batched(pred):
        return ("true_fn",) if pred else ("false_fn",)
    if is_traced(pred):  # reading values would fix them in the trace
        return ("true_fn", "false_fn")
    values = read_examples(pred) != 0
    return ("true_fn",) if values.all() else ("true_fn", "false_fn") if values.any() else ("false_fn",)


def _check_structures(true_tree: Any, false_tree: Any) -> None:
    if true_tree != false_tree:
        raise RuntimeError(
            f"Unmatched output spec from torch.cond branches: true branch tree_spec {true_tree} vs false branch "
            f"tree_spec {false_tree}."
        )


def _record(level: TraceLevel, pred: Tensor, functions: dict[str, Callable], leaves: list, spec: Any) -> Any:
    """Record one node with both functions as sub-graphs."""
    flat = {name: _flat_function(function, spec) for name, function in functions.items()}
    graphs, captured, (true_out, false_out) = trace_functions(level, "cond", flat, (leaves, leaves))
    (true_avals, tree), (false_avals, other) = flatten(true_out), flatten(false_out)
    _check_structures(tree, other)
    check_same_avals(("true_fn_output", "false_fn_output"), true_avals, false_avals, MERGING)
    params = dict(zip(functions, graphs, strict=True))
    return optree.tree_unflatten(
        tree, record_call(level, operator_named("higher_order.cond"), (pred, *leaves, *captured), params)
    )


def _flat_function(function: Callable, spec: Any) -> Callable:
    return lambda *leaves: function(*optree.tree_unflatten(spec, leaves))


@op("higher_order.linked_result(Tensor x, Tensor[] operands) -> Tensor")
class linked_result(Internal, linear="x,operands"):
    """A copy of x that depends on operands too, with derivatives of zero."""

    node_name = "CondAutogradOpBackward"

    def impl(xp: Any, x: Any, *operands: Any) -> Any:
        return xp.array(x, copy=True)

    def shape(x: Aval, *operands: Aval) -> Aval:
        return Aval(x.shape, x.dtype)

    def vjp_x(g: Tensor) -> Tensor:
        return g

    def vjp_operands(g: Tensor, operands_aval: Sequence[Aval]) -> list:
        return [zeros(aval.shape, dtype=aval.dtype) for aval in operands_aval]

    def dependence(i: int, out: Aval, x: Aval, *operands: Aval) -> dict:
        return {d: d for d in range(x.ndim)} if i == 0 else {}

    def batch(batched: Sequence[bool], n: int, x: Tensor, *operands: Tensor) -> Tensor:
        out: Tensor = linked_result(x if batched[0] else broadcast_batch(x, n), operands)
        return out

    def oracle(np: Any, x: Any, *operands: Any) -> Any:
        return x

    def samples(r: Any) -> Any:
        yield (r(3), r(2, 2), r()), {}
        yield (r(2, 3), r(2, 3)), {}


@op("higher_order.cond(Tensor pred, Tensor[] operands, *, any true_fn, any false_fn) -> Tensor[]")
class cond_node(Internal, Composite):
    """Return the results of one of two sub-graphs: the node that a trace of `cond` records, or of an `if`.

    As after an `if`, what the chosen one does not use gets no gradient.
    """

    def compose(pred: Tensor, *operands: Any, true_fn: Callable, false_fn: Callable) -> tuple:
        results: tuple = _run(pred, true_fn, false_fn, operands, lambda outs, operands: outs)
        return results

    def oracle(np: Any, pred: Any, *operands: Any, true_fn: Callable, false_fn: Callable) -> Any:
        return (true_fn if pred else false_fn)(*operands)

    def samples(r: Any) -> Any:
        true_fn = subgraph_of("true_fn", lambda x, y: (x * y, x.sin()), r(3), r(3))
        false_fn = subgraph_of("false_fn", lambda x, y: (y - x, y * y * x), r(3), r(3))
        yield (r.booleans(), r(3), r(3)), {"true_fn": true_fn, "false_fn": false_fn}
        yield (r(1), r(3), r(3)), {"true_fn": true_fn, "false_fn": false_fn}
