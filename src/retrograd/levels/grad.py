"""Reverse mode: a level with a graph of its own."""

from collections.abc import Callable
from typing import Any

from retrograd.core import Level, Op, Tensor, call
from retrograd.core.tensor import make
from retrograd.levels.lift import outputs, value_at


class GradLevel(Level):
    """The identity: it exists to own an autograd graph, so that no `create_graph` is needed below."""

    def __init__(self, function: Callable | None = None) -> None:
        self.function = function

    def process(self, op: Op, args: tuple, params: dict) -> Any:
        """The operator on the values."""
        below = [a.value if isinstance(a, Tensor) and a.level is self else a for a in args]
        out = op(*below) if op.simple and op.simple == len(below) else call(op, tuple(below), params)
        return make(out, self, None) if isinstance(out, Tensor) else outputs(out, lambda o: make(o, self, None))

    def pulled_below(self, pull: Callable, roots: list, cotangents: list, inputs: list) -> list:
        """What the values' graph gives; for this level's own graph it is constant."""
        found = pull(*[[value_at(self, t) for t in ts] for ts in (roots, cotangents, inputs)])
        return [g if g is None else make(g, self, None) for g in found]
