"""Tracing as a function of a function."""

from collections.abc import Callable
from typing import Any

from retrograd.foundation.suggestions import suggest_in_module
from retrograd.fx.graph_module import GraphModule
from retrograd.fx.tracer import trace

__all__ = ["make_fx"]


def make_fx(f: Callable, decomposition_table: dict | None = None, tracing_mode: str = "real") -> Callable:
    """Return a function that traces `f` on its arguments, and returns the `GraphModule`: see `fx.trace`.

    Operators are recorded as they are, so a decomposition table is refused, and only the mode "real" exists: the code
    runs on the examples.  `retrograd.export` has symbolic sizes.

    >>> import retrograd as rg
    >>> module = make_fx(lambda x: x.exp() + 1)(rg.ones(2))
    >>> [node.name for node in module.graph.nodes]
    ['x', 'exp', 'add', 'output']
    """
    if decomposition_table:
        raise NotImplementedError("make_fx: operators are recorded as they are; decomposition tables are not supported")
    if tracing_mode != "real":
        raise NotImplementedError(f"make_fx: tracing_mode {tracing_mode!r} is not supported; see retrograd.export")

    def traced(*args: Any) -> GraphModule:
        return trace(f, *args)

    return traced


suggest_in_module(globals())
