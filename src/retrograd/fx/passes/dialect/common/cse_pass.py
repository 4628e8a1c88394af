"""Elimination of common subexpressions."""

from collections.abc import Hashable, Iterable
from typing import Any

from retrograd.core import Op
from retrograd.fx.graph_module import GraphModule
from retrograd.fx.node import CALLS, Node, freeze
from retrograd.fx.passes.infra.pass_base import PassBase, PassResult

__all__ = ["CSEPass"]


class CSEPass(PassBase):
    """Replaces calls of functions that repeat an earlier call with equal arguments.

    Random operators and those in `banned_ops` are not replaced.  A graph that writes to tensors is left as it is,
    because equal calls before and after a write differ.

    >>> from retrograd import fx
    >>> module = fx.symbolic_trace(lambda x: (x + 1) * (x + 1))
    >>> result = CSEPass()(module)
    >>> [node.name for node in result.graph_module.graph.nodes], result.modified
    (['x', 'add', 'mul', 'output'], True)
    """

    def __init__(self, banned_ops: Iterable[Any] | None = None) -> None:
        self.banned_ops = set(banned_ops or ())

    def call(self, graph_module: GraphModule) -> PassResult:
        """Replace the repetitions, and recompile the module."""
        nodes = list(graph_module.graph.nodes)
        if any(node.op in CALLS and node.is_impure() and not _is_random(node) for node in nodes):
            return PassResult(graph_module, False)
        known: dict[Any, Node] = {}
        repeated = []
        for node in nodes:
            if node.op == "call_function" and node.target not in self.banned_ops and not _is_random(node):
                first = known.setdefault(_key(node), node)
                if first is not node:
                    node.replace_all_uses_with(first)  # so that later keys have the first call
                    repeated.append(node)
        for node in repeated:
            graph_module.graph.erase_node(node)
        graph_module.recompile()
        return PassResult(graph_module, bool(repeated))


def _is_random(node: Node) -> bool:
    return isinstance(node.target, Op) and node.target.random


def _key(node: Node) -> Any:
    """Return a key that equal calls share: 1, 1.0 and True differ, and so do values that cannot be hashed."""
    return node.target, _hashable(freeze(node.args)), _hashable(freeze(node.kwargs))


def _hashable(value: Any) -> Hashable:
    if isinstance(value, tuple | list):
        return type(value), *map(_hashable, value)
    if isinstance(value, dict):
        return type(value), *[(name, _hashable(member)) for name, member in sorted(value.items())]
    if isinstance(value, slice):
        return slice, *map(_hashable, (value.start, value.stop, value.step))
    if isinstance(value, float):  # 0.0 and -0.0 are equal, nan differs from itself
        return float, repr(value)
    return type(value), value if _is_hashable(value) else id(value)


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True
