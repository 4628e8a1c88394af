"""Reverse mode: the level of `grad` and `vjp`, with an autograd graph of its own."""

from collections.abc import Callable, Sequence
from typing import Any

from retrograd.core import Op, Tensor, at, registry
from retrograd.core.dispatch import call_fast
from retrograd.core.engine import edge_of, pullback
from retrograd.core.level import values_at, wrap_result
from retrograd.core.tensor import make
from retrograd.levels.outer_grads import OuterGradLevel
from retrograd.levels.unwrap import value_at


class GradLevel(OuterGradLevel):
    """Runs operators unchanged; it exists to own an autograd graph, so that no `create_graph` is needed below."""

    wrapper = "GradTrackingTensor"

    def __init__(self, function: Callable | None = None) -> None:
        self.function = function

    def process(self, op: Op, args: tuple, params: dict) -> Any:
        """Run the operator on the values."""
        return wrap_result(self, call_fast(op, values_at(self, args), params), None)

    def vjp_below(self, pullback: Callable, roots: list, cotangents: list, inputs: list) -> list:
        """Return the cotangents from the graph of the values; for this level's own graph they are constants."""
        found = pullback(*[[value_at(self, t) for t in ts] for ts in (roots, cotangents, inputs)])
        return [g if g is None else make(g, self, None) for g in found]


def leaf_at(level: GradLevel, value: Tensor) -> Tensor:
    """Return a new leaf of the level's graph."""
    leaf = make(value, level, None)
    leaf.requires_grad = True
    return leaf


def pull_cotangents(level: GradLevel, outs: list, cotangents: Sequence[Tensor], leaves: list[Tensor]) -> list[Tensor]:
    """Return the cotangents of leaves from those of a level's outputs, both one level below."""
    # The level is entered again, since its graph can be walked only while it is active.
    with level:
        reached = [isinstance(o, Tensor) and o.level is level and o._requires_grad for o in outs]
        roots = [edge_of(o) for o, r in zip(outs, reached, strict=True) if r]
        seeds = [make(g, level, None) for g, r in zip(cotangents, reached, strict=True) if r]
        found: dict = {}
        if roots:
            inputs = [edge_of(leaf) for leaf in leaves]
            found = pullback(roots, seeds, level=level, inputs=inputs, retain_graph=True)
        with at(level, False):
            return [value_at(level, found[x] if x in found else registry["zeros_like"](x)) for x in leaves]
