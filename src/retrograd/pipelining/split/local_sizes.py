"""Sizes in stages: read from the stage's own tensors, so that stages need not send each other numbers."""

from retrograd.export.size_operators import NAMES, SIZE
from retrograd.fx import Graph, Node

OPERATORS = tuple(f"export::{name}" for name in NAMES)


def read_sizes_locally(graph: Graph, stage_of: dict[Node, int]) -> None:
    """Compute every size in each stage that uses it, from a tensor that this stage has anyway.

    A size for which a stage has no tensor is still sent to it.  `stage_of` gets the stages of the new nodes.
    """
    position = {node: i for i, node in enumerate(graph.nodes)}
    for node in [node for node in graph.nodes if _is_size(node)]:
        for stage in sorted({stage_of[user] for user in node.users if stage_of.get(user, 0) > stage_of[node]}):
            users = sorted([user for user in node.users if stage_of.get(user) == stage], key=position.__getitem__)
            local_size = _compute_size_before(users[0], node, stage, stage_of)
            if local_size is not None:
                for user in users:
                    user.replace_input_with(node, local_size)
    for node in reversed([node for node in graph.nodes if _is_size(node)]):
        if not node.users:
            graph.erase_node(node)
            del stage_of[node]


def _is_size(node: Node) -> bool:
    return node.op == "call_function" and node.target.name in OPERATORS


def _compute_size_before(user: Node, size: Node, stage: int, stage_of: dict[Node, int]) -> Node | None:
    """Return a new node before `user` that computes a size in its stage; None if that has no tensor of this size."""
    graph = user.graph
    if size.target is SIZE:
        found = _find_tensor_of_size(size, user, stage, stage_of)
        if found is None:
            return None
        with graph.inserting_before(user):
            node_here = graph.call_function(SIZE, (found[0],), {"dim": found[1]})
    else:
        parts = {used: _compute_size_before(user, used, stage, stage_of) for used in size.all_input_nodes}
        if None in parts.values():
            return None
        with graph.inserting_before(user):
            node_here = graph.node_copy(size, lambda used: parts[used])
    stage_of[node_here] = stage
    return node_here


def _find_tensor_of_size(size: Node, user: Node, stage: int, stage_of: dict[Node, int]) -> tuple[Node, int] | None:
    """Return a tensor before `user` that its stage takes from others, and its dimension of this size."""
    [x], dim = size.args, size.kwargs["dim"]
    expression_wanted = x.meta["shape"][dim]
    for node in size.graph.nodes:
        if node is user:
            return None
        enters = node.op == "placeholder" or stage_of.get(node, stage) < stage
        if enters and any(stage_of.get(reader) == stage for reader in node.users):
            for dim_index, expression in enumerate(node.meta.get("shape", ())):
                if expression == expression_wanted:
                    return node, dim_index
    return None
