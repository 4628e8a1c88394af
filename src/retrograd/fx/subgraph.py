"""Sub-graphs: the functions that control-flow operators take, as graphs in the arguments of a node."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import optree

from retrograd.core import Op, Tensor, at, current
from retrograd.core.tensor import count_of
from retrograd.fx.graph import Graph
from retrograd.fx.node import Node
from retrograd.fx.tracer import TraceLevel, trace
from retrograd.levels.sync_views import sync_views
from retrograd.nn.module import Module
from retrograd.ops.create import as_tensor


class SubGraph:
    """A function of tensors as a value: a graph that reads no attributes; calling it returns a tuple of tensors.

    Equal sub-graphs have the same nodes.  `graph` is read-only, because the compiled function is cached.

    >>> from retrograd.core import operator_named
    >>> graph = Graph()
    >>> x = graph.placeholder("x")
    >>> _ = graph.output((graph.call_function(operator_named("neg"), (x,)),))
    >>> SubGraph("body_fn", graph)(as_tensor(2.0))
    (tensor(-2.),)
    """

    def __init__(self, name: str, graph: Graph) -> None:
        self.name = name
        self.graph = graph

    def __call__(self, *args: Any) -> tuple:
        results: tuple = self._function(None, *args)
        return results

    @cached_property
    def _function(self) -> Callable:
        return self.graph.python_code().compile()

    @property
    def code(self) -> str:
        """The source of the generated function."""
        return self.graph.python_code().src

    def __repr__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SubGraph) and str(self.graph) == str(other.graph)

    def __hash__(self) -> int:
        return hash(str(self.graph))

    def __reduce__(self) -> tuple:
        return SubGraph, (self.name, self.graph)


def subgraph_of(name: str, function: Callable, *examples: Any) -> SubGraph:
    """Return a function, which returns a tuple of tensors and uses no tensors from around it, as a sub-graph."""
    graph = trace(function, *map(as_tensor, examples)).graph
    graph.signature = None
    return SubGraph(name, graph)


class SubGraphLevel(TraceLevel):
    """Records one function of a control-flow operator, instead of the trace around it.

    Tensors from outside the function, constants and those of the outer trace, become inputs of the sub-graph.
    """

    def __init__(self, outer: TraceLevel, function: Callable) -> None:
        super().__init__(Graph(), Module(), [])
        self.function = function
        self.calls = outer.calls
        self.captured: dict[int, tuple[Tensor, Tensor]] = {}  # id of a tensor from outside -> the tensor and its proxy
        self._outer = outer

    def capture(self, tensor: Tensor) -> Tensor:
        """Return the proxy of a tensor from outside, an input of the sub-graph."""
        if id(tensor) not in self.captured:
            value = tensor.value if tensor.level is self._outer else tensor
            self.captured[id(tensor)] = tensor, self.input(f"captured_{len(self.captured)}", value)
        return self.captured[id(tensor)][1]

    def attribute(self, tensor: Tensor) -> Node:
        """Return the node of a tensor from outside."""
        node: Node = self.capture(tensor).tag
        return node

    def _lift_outside(self, a: Any) -> Any:
        return self.capture(a) if isinstance(a, Tensor) and a.level is not self else a


def trace_functions(
    outer: TraceLevel, name: str, functions: dict[str, Callable], operands: Sequence[Sequence[Tensor]]
) -> tuple[list[SubGraph], list[Tensor], list[Any]]:
    """Return the sub-graphs of functions of flat operands, the tensors that they capture, and their result trees.

    Each sub-graph takes its operands, then the captured tensors of all functions.  Raises RuntimeError for functions
    that write to operands or to captured tensors.
    """
    levels, trees = [], []
    for (label, function), given in zip(functions.items(), operands, strict=True):
        level, tree = _trace_one(outer, f"{name}: {label}", function, given)
        levels.append(level)
        trees.append(tree)
    captured = {key: tensor for level in levels for key, (tensor, _) in level.captured.items()}
    for level, given in zip(levels, operands, strict=True):
        inputs = [level.attribute(tensor) for tensor in captured.values()]
        _order_inputs(level.graph, len(given), inputs)
    graphs = [SubGraph(label, level.graph) for label, level in zip(functions, levels, strict=True)]
    return graphs, list(captured.values()), trees


def record_call(level: TraceLevel, operator: Op, tensors: Sequence[Tensor], params: dict[str, Any]) -> tuple:
    """Add a call of an operator with sub-graphs to a trace as one node, though it is composed of others."""
    with level.below():
        results: tuple = level.process(operator, tuple(tensors), params)
    return results


def _trace_one(
    outer: TraceLevel, label: str, function: Callable, operands: Sequence[Tensor]
) -> tuple[SubGraphLevel, Any]:
    """Record a function on the values of its operands one level below the outer trace."""
    level = SubGraphLevel(outer, function)
    with outer.below(), at(current().level, False), level:
        examples = [x.value if x.level is outer else x for x in operands]
        given = [level.input(f"operand_{i}", x) for i, x in enumerate(examples)]
        versions = [count_of(x) for x in given]
        leaves, spec = optree.tree_flatten(sync_views(function(*given)), none_is_leaf=True)
        proxies = [_make_proxy(level, leaf) for leaf in leaves]
        written = any(count_of(x) != version for x, version in zip(given, versions, strict=True))
        if written or any(count_of(proxy) for _, proxy in level.captured.values()):
            raise RuntimeError(
                f"{label} might be modifying the input! It writes to an operand, or to a tensor from around it; write "
                f"to a clone."
            )
        level.graph.output(tuple(level.operand(proxy) for proxy in proxies))
        level.graph.eliminate_dead_code()
    avals = [proxy.value.aval for proxy in proxies]
    return level, optree.tree_unflatten(spec, avals)


def _make_proxy(level: SubGraphLevel, leaf: Any) -> Tensor:
    """Return a result of a function as a tensor of its level; Python numbers become constants."""
    proxy = level._lift_outside(leaf if isinstance(leaf, Tensor) else as_tensor(leaf))
    assert isinstance(proxy, Tensor)
    return proxy


def _order_inputs(graph: Graph, count: int, captured: list[Node]) -> None:
    """Move the placeholders to the front: operands in order, then the captured tensors in the order given."""
    inputs = [*graph.find_nodes(op="placeholder")[:count], *captured]
    for node in reversed(inputs):
        first = next(iter(graph.nodes))
        if node is not first:
            first.prepend(node)
