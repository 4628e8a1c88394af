"""Replace the targets of nodes, and measure the memory of values."""

from typing import Any, NamedTuple

import optree

from retrograd.core import Tensor
from retrograd.fx.graph import Graph
from retrograd.fx.graph_module import GraphModule
from retrograd.fx.node import Node
from retrograd.fx.passes.shape_prop import ShapeProp, TensorMetadata

__all__ = ["get_size_of_all_nodes", "get_size_of_node", "get_tensor_meta", "replace_target_nodes_with", "size_bytes"]


class size_bytes(NamedTuple):
    """The bytes of a node's result, and with the parameters and buffers that it uses."""

    output_size: int
    total_size: int


def replace_target_nodes_with(
    fx_module: GraphModule, old_op: str, old_target: Any, new_op: str, new_target: Any
) -> None:
    """Change the kind and target of all nodes with `old_op` and `old_target`, and recompile the module.

    >>> import operator
    >>> from retrograd import fx
    >>> module = fx.symbolic_trace(lambda x: x + 2)
    >>> replace_target_nodes_with(module, "call_function", operator.add, "call_function", operator.mul)
    >>> module(3)
    6
    """
    graph = Graph()
    values: dict[Node, Any] = {}
    for node in fx_module.graph.nodes:
        values[node] = graph.node_copy(node, values.__getitem__)
        if (node.op, node.target) == (old_op, old_target):
            values[node].op, values[node].target = new_op, new_target
    graph.signature = fx_module.graph.signature
    fx_module.graph = graph


def get_size_of_all_nodes(fx_module: GraphModule, args: list[Tensor] | None = None) -> None:
    """Store the `size_bytes` of every node except the output as its attribute `size_bytes`.

    `args` are examples, on which `ShapeProp` runs first.
    """
    if args is not None:
        ShapeProp(fx_module).propagate(*args)
    for node in fx_module.graph.nodes:
        if node.op != "output":
            vars(node)["size_bytes"] = get_size_of_node(fx_module, node)


def get_tensor_meta(node: Node) -> Any:
    """Return the `meta["tensor_meta"]` of a node; raise RuntimeError if `ShapeProp` has not run."""
    found = node.meta.get("tensor_meta")
    if found is None:
        raise RuntimeError(f"Node {node.name} has no tensor metadata associated with it! Run ShapeProp before.")
    return found


def get_size_of_node(fx_module: GraphModule, node: Node) -> size_bytes:
    """Return the bytes of a node's result, and with the parameters and buffers of the module that it calls or reads."""
    total = 0
    if node.op == "call_module":
        module = fx_module.get_submodule(node.target)
        total = sum(x.numel() * x.itemsize for x in (*module.parameters(), *module.buffers()))
    is_type = lambda leaf: isinstance(leaf, TensorMetadata)  # noqa: E731
    types: list[Any] = optree.tree_leaves(get_tensor_meta(node), is_leaf=is_type)
    output = sum(_bytes(t) for t in types if isinstance(t, TensorMetadata))
    return size_bytes(output, total + output)


def _bytes(kind: TensorMetadata) -> int:
    count = kind.dtype.itemsize
    for size in kind.shape:
        count *= size
    return count
