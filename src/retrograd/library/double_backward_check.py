"""Checks against silent zeros when gradients that left the graph in a formula are differentiated again."""

from collections.abc import Callable, Sequence
from typing import Any

from retrograd.core import GradFn, Level, Tensor, at, current, override_state, registry
from retrograd.core.engine import edge_of
from retrograd.core.graph import node, note_output
from retrograd.core.state import is_recording
from retrograd.core.tensor import alias
from retrograd.core.views import requires_grad_synced
from retrograd.levels import GradLevel, value_at
from retrograd.levels.grad import leaf_at


class _ErrorOperator:
    """The operator of a gradient that can't be differentiated; its backward pass raises."""

    name = "Error"

    def __init__(self, message: str) -> None:
        self.message = message

    def gradients(self, fn: GradFn, cotangents: tuple, needs_input_grad: list[bool]) -> list:
        """Raise."""
        raise NotImplementedError(self.message)


def check_differentiable(name: str, formula: Callable, cotangents: Sequence, saved: Sequence, found: list) -> list:
    """Return a formula's gradients after checking that they are differentiable where that may be needed.

    A formula is linear in the cotangents.  If these have derivatives and its results have none, it has left the graph.
    If only saved values have derivatives, those may be zero: then the formula is in the graph if its results depend on
    cotangents in a graph.  A gradient that has left the graph raises an error immediately; at the ground, only if it is
    differentiated.
    """
    given = [g for g in cotangents if g is not None]
    saved = [x for x in saved if isinstance(x, Tensor)]
    cotangent_levels, saved_levels = _levels_with_derivatives(given), _levels_with_derivatives(saved)
    if not cotangent_levels and not saved_levels:
        return found
    result = list(found)
    connected: list[bool] = []
    for i, g in enumerate(found):
        if g is None:
            continue
        gradient_levels = _levels_with_derivatives([g])
        if cotangent_levels <= gradient_levels and not saved_levels <= gradient_levels and not connected:
            connected = _depend_on_cotangents(formula, cotangents)
        if not (
            cotangent_levels <= gradient_levels and (saved_levels <= gradient_levels or connected[i])
        ) and _is_nonzero(g):
            result[i] = _attach_error_node(name, g, [*given, *saved])
    return result


def _levels_with_derivatives(tensors: list) -> set[Level | None]:
    """Return the levels, from the current one down to the ground (None), at which some tensors have derivatives."""
    level = current().level
    found = {level} if any(_has_derivative(level, x) for x in tensors) else set()
    if level is None:
        return found
    with level.below():
        return found | _levels_with_derivatives([value_at(level, x) for x in tensors])


def _has_derivative(level: Any, x: Tensor) -> bool:
    if level is not None and level.transparent:
        return level.on_write is not None and level.tangent(x) is not None
    if x.level is not level:
        return False
    return (is_recording() and requires_grad_synced(x)) or (
        level is not None and level.forward_mode and x.tag is not None
    )


def _depend_on_cotangents(formula: Callable, cotangents: Sequence) -> list[bool]:
    """Return for each result of the formula whether it depends on the cotangents, after these enter a graph."""
    with override_state("saving", None), GradLevel() as level:
        found = formula([None if g is None else leaf_at(level, g) for g in cotangents])
    return [g is not None and g.level is level and g._requires_grad for g in found]


def _is_nonzero(g: Tensor) -> bool:
    while g.level is not None:
        g = g.value
    with at(None, False):
        return bool(registry["any"](g != 0))


def _attach_error_node(name: str, g: Tensor, sources: list) -> Tensor:
    level = current().level
    message = (
        f"{name}: the gradient by its formula is differentiated again, but the formula leaves the graph (it goes "
        f"through NumPy, or detaches); make it of differentiable operators, your own with a formula among them"
    )
    if level is not None:
        raise NotImplementedError(message)
    edges = tuple([edge_of(x)[0] for x in sources if requires_grad_synced(x)])
    out = alias(g, note_output(node(_ErrorOperator(message), None, {}, edges, False), g))
    out._output_nr = 0
    return out
