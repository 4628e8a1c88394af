"""Stages on devices: what a graph makes or holds is where its stage is."""

from typing import Any

import optree

from retrograd.core import Tensor
from retrograd.fx import Graph, GraphModule
from retrograd.ops.layout import check_device
from retrograd.ops.layout import device as Device


def place(module: GraphModule, device: Any) -> GraphModule:
    """Move a stage to a device: its parameters, buffers and constants; returns it.

    A captured graph names no device, whatever the traced code says: `ones`, `rand` and their like make their
    tensors where they run.  Raises RuntimeError for a device that there is not, and for a graph that does name one,
    which an operator of your own may do.
    """
    check_device(device)
    burnt_in = naming_devices(module.graph)
    if burnt_in:
        raise RuntimeError(f"place: {', '.join(burnt_in)} would stay on a device that the graph names; leave it out")
    for part in module.modules():
        moving = part.state_dict()
        for name, value in list(vars(part).items()):
            if isinstance(value, Tensor) and name not in moving:
                setattr(part, name, value.to(device))
    module.to(device)
    return module


def naming_devices(graph: Graph) -> list[str]:
    """The nodes that have a device among their arguments."""
    return [node.name for node in graph.nodes if any(isinstance(leaf, Device) for leaf in _leaves(node))]


def _leaves(node: Any) -> list[Any]:
    arguments: Any = (node.args, node.kwargs)
    return optree.tree_leaves(arguments, none_is_leaf=True)
