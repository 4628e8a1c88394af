"""Names of targets, and graphs in topological order."""

import heapq
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from retrograd.core import Op, Tensor
from retrograd.fx.graph_module import GraphModule
from retrograd.fx.node import CALLS, Node
from retrograd.nn.module import Module

__all__ = ["get_node_target", "is_node_output_tensor", "legalize_graph", "stable_topological_sort"]


def get_node_target(submodules: Mapping[str, Module], node: Node) -> str:
    """Return the target of a call as text: a method's name, else the module and name of a function or class.

    >>> from retrograd import fx, nn
    >>> module = fx.symbolic_trace(nn.Sequential(nn.ReLU(), nn.Flatten()))
    >>> [get_node_target(dict(module.named_modules()), node) for node in module.graph.find_nodes(op="call_module")]
    ['retrograd.nn.activation.ReLU', 'retrograd.nn.linear.Flatten']
    """
    if node.op not in CALLS:
        raise ValueError(f"Expect op types of {', '.join(CALLS)}, but found {node.op}")
    if node.op == "call_method":
        return node.target
    if isinstance(node.target, Op):
        return f"retrograd.{node.target.name}"
    called: Any = type(submodules[node.target]) if node.op == "call_module" else node.target
    return f"{called.__module__}.{called.__name__}"


def is_node_output_tensor(node: Node) -> bool:
    """Return whether a node's result was a tensor, when `ShapeProp` ran the graph."""
    return issubclass(node.meta.get("type", type(None)), Tensor)


def stable_topological_sort(gm: GraphModule) -> GraphModule:
    """Move nodes after their inputs, inputs of the graph first, in the present order as far as possible.

    Raises RuntimeError if nodes depend on each other cyclically; then nothing changes.
    """
    nodes = list(gm.graph.nodes)
    position = {node: index - len(nodes) * (node.op == "placeholder") for index, node in enumerate(nodes)}
    missing_inputs = {node: len(node.all_input_nodes) for node in nodes}
    ready = [(position[node], node) for node in nodes if not missing_inputs[node]]
    heapq.heapify(ready)
    found: list[Node] = []
    while ready:
        _, node = heapq.heappop(ready)
        found.append(node)
        for user in node.users:
            missing_inputs[user] -= 1
            if not missing_inputs[user]:
                heapq.heappush(ready, (position[user], user))
    if len(found) < len(nodes):
        cyclic = [node.name for node in nodes if missing_inputs[node]]
        raise RuntimeError(f"Input graph has cycles, unable to order {cyclic}")
    for before, node in pairwise(found):
        before.append(node)
    return gm


def legalize_graph(gm: GraphModule) -> GraphModule:
    """Put the nodes in a topological order, like `stable_topological_sort`."""
    return stable_topological_sort(gm)
