"""`once_differentiable`: a backward that runs unrecorded, whose results refuse a double backward."""

import functools
from collections.abc import Callable
from typing import Any

from retrograd.autograd.function.context import FunctionCtx
from retrograd.core import GradFn, Tensor, at, current
from retrograd.core.engine import edge_of
from retrograd.core.graph import node, note_output
from retrograd.core.tensor import alias
from retrograd.core.views import requires_grad_synced
from retrograd.foundation.suggestions import suggest_keywords


class _OnceDifferentiable:
    """The operator of the results of a once_differentiable backward: it has no derivative."""

    name = "Error"

    @staticmethod
    def gradients(fn: GradFn, cotangents: tuple, needs_input_grad: list[bool]) -> list:
        """Raise."""
        raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")


@suggest_keywords
def once_differentiable(fn: Callable) -> Callable:
    """Mark a backward as not differentiable: it runs unrecorded, and a double backward raises RuntimeError."""

    @functools.wraps(fn)
    def backward(ctx: FunctionCtx, *args: Any) -> Any:
        state = current()
        gs = args[0] if args and isinstance(args[0], list) else args  # see Function.boxed_grads_call
        recorded = [g for g in gs if isinstance(g, Tensor) and requires_grad_synced(g)] if state.grad_enabled else []
        with at(state.level, False):
            results = fn(ctx, *args)
        if not recorded:
            return results
        edges = tuple([edge_of(g)[0] for g in recorded])
        if isinstance(results, tuple):
            return tuple([_attach_error_node(r, edges) for r in results])
        return _attach_error_node(results, edges)

    return backward


def _attach_error_node(result: Any, edges: tuple) -> Any:
    if not isinstance(result, Tensor):
        return result
    out = alias(result, note_output(node(_OnceDifferentiable, None, {}, edges, False), result))
    out._output_nr = 0
    return out
