"""Sets of nodes as submodules."""

import copy
import operator
from collections.abc import Iterable

from retrograd.fx.graph import Graph
from retrograd.fx.graph_module import GraphModule
from retrograd.fx.node import Node
from retrograd.fx.passes.tools_common import stable_topological_sort
from retrograd.fx.passes.utils.common import lift_subgraph_as_module

__all__ = [
    "erase_nodes",
    "fuse_as_graphmodule",
    "fuse_by_partitions",
    "insert_subgm",
    "topo_sort",
    "validate_partition",
]


def topo_sort(nodes: list[Node]) -> list[Node]:
    """Return nodes of one graph in the graph's order."""
    members = set(nodes)
    return [node for node in nodes[0].graph.nodes if node in members] if nodes else []


def validate_partition(partition: list[Node], others: Iterable[set[Node]] = ()) -> bool:
    """Return whether no value leaves the partition and comes back to it, so that it can be one call.

    `others` are further partitions: what reaches one of their nodes reaches all that they compute.

    >>> from retrograd import fx
    >>> graph = fx.symbolic_trace(lambda x: x.exp() + x.exp().sin()).graph
    >>> nodes = {node.name: node for node in graph.nodes}
    >>> validate_partition([nodes["exp"], nodes["sin"]]), validate_partition([nodes["exp_1"], nodes["add"]])
    (True, False)
    """
    inside = set(partition)
    partition_of = {node: other for other in others for node in other}
    stack = [user for node in partition for user in node.users if user not in inside]
    visited: set[Node] = set()
    while stack:
        node = stack.pop()
        if node in inside:
            return False
        if node not in visited:
            group = partition_of.get(node, {node})
            visited |= group
            stack += [user for one in group for user in one.users if user not in group]
    return True


def fuse_as_graphmodule(
    gm: GraphModule,
    nodes: list[Node],
    module_name: str,
    partition_lookup_table: dict[Node, int | None] | None = None,
    *,
    always_return_tuple: bool = False,
) -> tuple[GraphModule, tuple[Node, ...], tuple[Node, ...]]:
    """Return a module that computes some nodes, in this order; with their inputs from outside, and their results.

    With `always_return_tuple` one result is a tuple too.  `partition_lookup_table` has the nodes as keys, if it is
    given.  Raises ValueError if a result comes back to the nodes.
    """
    if not validate_partition(nodes):
        raise ValueError("Invalid partition, found dependency cycles")
    inside = partition_lookup_table or dict.fromkeys(nodes)
    graph = Graph()
    values: dict[Node, Node] = {}
    for node in nodes:
        for used in node.all_input_nodes:
            if used not in inside and used not in values:
                values[used] = graph.placeholder(used.name, used.type)
                values[used].meta = copy.copy(used.meta)
    inputs = tuple(values)
    for node in nodes:
        values[node] = graph.node_copy(node, values.__getitem__)
    outputs = tuple(node for node in nodes if any(user not in inside for user in node.users))
    results = tuple(values[node] for node in outputs)
    graph.output(results[0] if len(results) == 1 and not always_return_tuple else results)
    module, _ = lift_subgraph_as_module(gm, graph, class_name=module_name)
    return module, inputs, outputs


def insert_subgm(
    gm: GraphModule,
    sub_gm: GraphModule,
    orig_inputs: tuple[Node, ...],
    orig_outputs: tuple[Node, ...],
    insertion_point: Node | None = None,
) -> GraphModule:
    """Add a module under its class name, and let its call replace the results; the replaced nodes remain.

    The call is inserted after `insertion_point`, by default after the last of the results.
    """
    name = sub_gm._get_name()
    gm.add_submodule(name, sub_gm)
    with gm.graph.inserting_after(insertion_point or topo_sort(list(orig_outputs))[-1]):
        call = gm.graph.call_module(name, orig_inputs)
        if len(orig_outputs) == 1 and not isinstance(sub_gm.graph.output_node().args[0], tuple):
            orig_outputs[0].replace_all_uses_with(call, propagate_meta=True)
            return gm
        for index, old in enumerate(orig_outputs):
            picked = gm.graph.call_function(operator.getitem, (call, index))
            old.replace_all_uses_with(picked, propagate_meta=True)
    return gm


def erase_nodes(gm: GraphModule, nodes: list[Node]) -> None:
    """Remove nodes, the last first."""
    for node in reversed(nodes):
        gm.graph.erase_node(node)


def fuse_by_partitions(
    gm: GraphModule,
    partitions: list[dict[Node, int | None]],
    prefix: str = "fused_",
    always_return_tuple: bool = False,
) -> GraphModule:
    """Return the module, changed: the nodes of each partition are a submodule, `fused_0`, `fused_1`, ..."""
    for number, partition in enumerate(partitions):
        nodes = topo_sort(list(partition))
        name = f"{prefix}{number}"
        fused = fuse_as_graphmodule(gm, nodes, name, partition, always_return_tuple=always_return_tuple)
        insert_subgm(gm, *fused, nodes[-1])
        erase_nodes(gm, nodes)
    stable_topological_sort(gm)
    gm.recompile()
    return gm
