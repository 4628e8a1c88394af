"""Graph passes: compute sizes by nodes, and lift parameters, buffers and constants to inputs and back."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from retrograd.export.size_operators import OVER, PLUS, RATIO, SIZE, TIMES
from retrograd.foundation.symbolic_expr import Expression, Quotient
from retrograd.fx.graph import Graph
from retrograd.fx.node import Node, map_leaves

Source = tuple[tuple[str, int], Expression]  # an input and one of its dimensions, and what that is of the size


class SizeNodes:
    """Nodes that compute sizes from the sizes of the inputs, each inserted before its first use."""

    def __init__(self, graph: Graph, sources: Mapping[str, Source], inputs: Mapping[str, Node]) -> None:
        self._graph = graph
        self._sources = sources
        self._inputs = inputs
        self._cache: dict[Any, Node] = {}

    def of(self, value: Any) -> Any:
        """Replace an expression or a quotient in the arguments of a node by a node or a number."""
        if isinstance(value, Quotient):
            return self._call(RATIO, self.of(value.left), self.of(value.right))
        return self._integer(value) if isinstance(value, Expression) else value

    def _integer(self, expression: Expression) -> Any:
        total: Any = None
        for c, monomial in expression.terms:
            value: Any = None
            for d in monomial:
                value = self._dim(d) if value is None else self._call(TIMES, value, self._dim(d))
            value = c if value is None else value if c == 1 else self._call(TIMES, value, c)
            total = value if total is None else self._call(PLUS, total, value)
        total = 0 if total is None else total
        return total if expression.over == 1 else self._call(OVER, total, expression.over)

    def _dim(self, name: str) -> Node:
        if name not in self._cache:
            (source, dim), size = self._sources[name]
            factor, offset = size.terms[0][0], size.at({name: 0})
            is_plain = (factor, offset) == (1, 0)
            arguments = (self._inputs[source],), {"dim": dim}
            node = self._graph.create_node("call_function", SIZE, *arguments, name=name if is_plain else None)
            # The input has the size factor * n + offset; solve it for n.
            node = self._call(PLUS, node, -offset) if offset else node
            self._cache[name] = self._call(OVER, node, factor) if factor > 1 else node
        return self._cache[name]

    def _call(self, op: Any, a: Any, b: Any) -> Node:
        if (op, a, b) not in self._cache:
            self._cache[op, a, b] = self._graph.call_function(op, (), {"a": a, "b": b})
        return self._cache[op, a, b]


def substitute_sizes(graph: Graph, sources: Mapping[str, Source], found: Mapping[Node, Sequence[Any]]) -> Graph:
    """Return a copy of a graph in which integers are computed: per node, an expression for each such leaf.

    The leaves of a node's arguments are numbered in the order of `map_leaves`.
    """
    copied_graph = Graph()
    copied_graph.signature = graph.signature
    nodes: dict[Node, Node] = {}
    inputs: dict[str, Node] = {}
    sizes = SizeNodes(copied_graph, sources, inputs)
    for node in graph.nodes:
        expressions = iter(found.get(node, ()))

        def value(leaf: Any, expressions: Any = expressions) -> Any:
            expression = next(expressions, None)
            if expression is not None:
                return sizes.of(expression)
            return nodes[leaf] if isinstance(leaf, Node) else leaf

        args, kwargs = map_leaves((node.args, node.kwargs), value)
        nodes[node] = copy = copied_graph.create_node(node.op, node.target, args, kwargs, node.name)
        copy.meta = dict(node.meta)
        if node.op == "placeholder":
            inputs[node.target] = copy
    return copied_graph


def lift(graph: Graph, names: Mapping[str, str]) -> Graph:
    """Return a copy of a graph in which attributes of its module become inputs, before its own.

    `names` maps each qualified name to the input's name, in order.  The copy returns a tuple.
    """
    copied_graph = Graph()
    lifted = {target: copied_graph.create_node("placeholder", name) for target, name in names.items()}
    nodes: dict[Node, Any] = {}
    for node in graph.nodes:
        if node.op == "get_attr":
            nodes[node] = lifted[node.target]
            lifted[node.target].meta = dict(node.meta)
    results = copied_graph.graph_copy(graph, _copy_placeholders(copied_graph, graph, nodes))
    copied_graph.output(results if isinstance(results, tuple) else (results,))
    return copied_graph


def unlift(graph: Graph, targets: Mapping[str, str], single: bool) -> Graph:
    """Return a copy of a graph in which the inputs in `targets` become attributes of its module.

    With `single` it returns the only item of the tuple that the graph returns.
    """
    copied_graph = Graph()
    nodes: dict[Node, Any] = {}
    _copy_placeholders(copied_graph, graph, nodes, lambda node: node.name not in targets)
    for node in graph.find_nodes(op="placeholder"):
        if node.name in targets and node.users:
            nodes[node] = copied_graph.get_attr(targets[node.name])
            nodes[node].meta = dict(node.meta)
        elif node.name in targets:
            nodes[node] = None  # it has no users
    results = copied_graph.graph_copy(graph, nodes)
    copied_graph.output(results[0] if single else results)
    return copied_graph


def _copy_placeholders(
    copied_graph: Graph, graph: Graph, nodes: dict[Node, Any], is_copied: Callable[[Node], bool] = lambda node: True
) -> dict[Node, Any]:
    """Copy the inputs first, so that they stay before all other nodes."""
    for node in graph.find_nodes(op="placeholder"):
        if is_copied(node):
            nodes[node] = copied_graph.node_copy(node, nodes.__getitem__)
    return nodes
