"""Parts of a graph that a backend supports, as large as possible."""

from collections.abc import Iterable, Sequence

from retrograd.foundation.suggestions import suggest_in_module
from retrograd.fx.graph_module import GraphModule
from retrograd.fx.node import CALLS, Node
from retrograd.fx.passes.operator_support import OperatorSupportBase
from retrograd.fx.passes.tools_common import get_node_target
from retrograd.fx.passes.utils.fuser_utils import fuse_by_partitions, validate_partition

__all__ = ["CapabilityBasedPartitioner", "Partition"]

NON_COMPUTE = ("_operator.getitem", "retrograd.pick")  # calls that select from results


class Partition:
    """Nodes that become one module; `nodes` maps them to their order, if that is known."""

    def __init__(
        self,
        id: int | None = None,
        nodes: Iterable[Node] | None = None,
        node_orders: Iterable[int] | None = None,
    ) -> None:
        self.id = id
        wanted = list(nodes or ())
        orders = [None] * len(wanted) if node_orders is None else list(node_orders)
        self.nodes: dict[Node, int | None] = dict(zip(wanted, orders, strict=True))

    def __repr__(self) -> str:
        return str(list(self.nodes))

    def add_node(self, node: Node, node_order: int | None = None) -> None:
        """Add a node."""
        self.nodes[node] = node_order

    def remove_node(self, node: Node) -> None:
        """Remove a node."""
        del self.nodes[node]

    def size(self) -> int:
        """Return the number of nodes."""
        return len(self.nodes)


class CapabilityBasedPartitioner:
    """Groups the supported calls of a graph into partitions, and makes each a submodule.

    No partition depends on its own results through other nodes.  Partitions of a single call are dropped unless
    `allows_single_node_partition`, or its target is in `allowed_single_node_partition_ops`; calls with targets in
    `non_compute_ops` do not count.  With `skip_horizontal_fusion` calls are grouped with their users only.  Targets are
    named as by `tools_common.get_node_target`.

    >>> import retrograd as rg
    >>> from retrograd import fx
    >>> from retrograd.fx.passes.operator_support import create_op_support
    >>> module = fx.symbolic_trace(lambda x: ((x + 1) * 2).exp())
    >>> support = create_op_support(lambda submodules, node: node.name in ("add", "mul"))
    >>> fused = CapabilityBasedPartitioner(module, support).partition_and_fuse()
    >>> [node.name for node in fused.graph.nodes]
    ['x', 'fused_0', 'exp', 'output']
    """

    def __init__(
        self,
        graph_module: GraphModule,
        operator_support: OperatorSupportBase,
        allows_single_node_partition: bool = False,
        non_compute_ops: Sequence[str] | None = None,
        allowed_single_node_partition_ops: Sequence[str] | None = None,
        skip_horizontal_fusion: bool = False,
    ) -> None:
        self.graph_module = graph_module
        self.operator_support = operator_support
        self.allows_single_node_partition = allows_single_node_partition
        self.non_compute_ops = non_compute_ops or ()
        self.allowed_single_node_partition_ops = allowed_single_node_partition_ops or ()
        self.skip_horizontal_fusion = skip_horizontal_fusion
        self._submodules = dict(graph_module.named_modules())

    def propose_partitions(self) -> list[Partition]:
        """Return the partitions; the nodes of each are in the order of the graph."""
        order = {node: index for index, node in enumerate(self.graph_module.graph.nodes)}
        groups: list[set[Node]] = []
        for node in reversed(order):
            if node.op in CALLS and self.operator_support.is_node_supported(self._submodules, node):
                groups = self._merge_into(node, groups)
        kept = [sorted(group, key=order.__getitem__) for group in groups if self._is_large_enough(group)]
        return [Partition(number, nodes, map(order.__getitem__, nodes)) for number, nodes in enumerate(kept)]

    def _merge_into(self, node: Node, groups: list[set[Node]]) -> list[set[Node]]:
        """Return the groups with a new one at the end: a node, which merges all that it can join without a cycle."""
        merged, separate = {node}, []
        for group in groups:
            near = not self.skip_horizontal_fusion or any(user in group for user in node.users)
            if near and _is_convex(merged | group, [*groups, merged]):
                merged |= group
            else:
                separate.append(group)
        return [*separate, merged]

    def _is_large_enough(self, group: set[Node]) -> bool:
        if self.allows_single_node_partition:
            return True
        names = [get_node_target(self._submodules, node) for node in group]
        single = any(name in self.allowed_single_node_partition_ops for name in names)
        return single or sum(name not in (*NON_COMPUTE, *self.non_compute_ops) for name in names) > 1

    def remove_bookend_non_compute_ops(self, partitions: list[Partition]) -> None:
        """Remove calls of `non_compute_ops` that only such calls separate from the inputs or results of a partition."""
        for partition in partitions:
            for node in list(partition.nodes):
                self._remove_non_compute(partition, node, node.all_input_nodes)
            for node in reversed(list(partition.nodes)):
                self._remove_non_compute(partition, node, list(node.users))

    def _remove_non_compute(self, partition: Partition, node: Node, neighbors: list[Node]) -> None:
        """Remove a call that computes nothing, if none of its neighbors on one side is in the partition."""
        idle = get_node_target(self._submodules, node) in self.non_compute_ops
        if idle and not any(near in partition.nodes for near in neighbors):
            partition.remove_node(node)

    def fuse_partitions(self, partitions: list[Partition], prefix: str = "fused_") -> GraphModule:
        """Return the module, changed: each partition is a submodule, `fused_0`, `fused_1`, ..."""
        return fuse_by_partitions(self.graph_module, [partition.nodes for partition in partitions], prefix)

    def partition_and_fuse(self, prefix: str = "fused_") -> GraphModule:
        """Return the module with all proposed partitions as submodules."""
        return self.fuse_partitions(self.propose_partitions(), prefix)


def _is_convex(group: set[Node], others: Iterable[set[Node]]) -> bool:
    """Return whether no path of values leaves a group and returns to it; other groups count as single nodes."""
    return validate_partition(list(group), [other for other in others if not other <= group])


suggest_in_module(globals())
