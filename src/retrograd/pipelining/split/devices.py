"""Place stages on devices: all tensors of a graph are on its stage's device."""

from typing import Any

import optree

from retrograd.core import Tensor
from retrograd.core.device import device as Device
from retrograd.fx import Graph, GraphModule
from retrograd.nn.members import all_attributes
from retrograd.ops.layout import check_device


def move_to_device(module: GraphModule, device: Any) -> GraphModule:
    """Move the parameters, buffers and constants of a stage to a device; return the stage.

    A captured graph names no device, even if the traced code does: `ones`, `rand` and the like create tensors on
    the stage's device.  Raises RuntimeError for a missing device, and for a graph that names one, as a custom operator
    may.
    """
    check_device(device)
    fixed_nodes = nodes_with_device(module.graph)
    if fixed_nodes:
        raise RuntimeError(
            f"build_stage: {', '.join(fixed_nodes)} would stay on a device that the graph names; leave it out"
        )
    for part in module.modules():
        moved_names = part.state_dict()
        for name, value in all_attributes(part).items():
            if isinstance(value, Tensor) and name not in moved_names:
                setattr(part, name, value.to(device))
    module.to(device)
    return module


def nodes_with_device(graph: Graph) -> list[str]:
    """Return the nodes that have a device among their arguments."""
    return [node.name for node in graph.nodes if any(isinstance(leaf, Device) for leaf in _leaves(node))]


def _leaves(node: Any) -> list[Any]:
    arguments: Any = (node.args, node.kwargs)
    return optree.tree_leaves(arguments, none_is_leaf=True)
