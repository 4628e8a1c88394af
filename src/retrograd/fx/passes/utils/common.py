"""Parts of graphs as modules, and equality of graphs."""

from retrograd.fx.graph import Graph
from retrograd.fx.graph_module import GraphModule
from retrograd.fx.subgraph_matching import Matcher
from retrograd.nn.module import Module

__all__ = ["HolderModule", "compare_graphs", "lift_subgraph_as_module"]


class HolderModule(Module):
    """A module that has these submodules, and runs nothing."""

    def __init__(self, d: dict[str, Module]) -> None:
        super().__init__()
        for name, module in d.items():
            self.add_module(name, module)


def lift_subgraph_as_module(
    gm: GraphModule, subgraph: Graph, comp_name: str = "", class_name: str = "GraphModule"
) -> tuple[GraphModule, dict[str, str]]:
    """Return a module that runs a graph with the attributes of `gm`; and the names in `gm` of those by name in it.

    The names in it begin with `comp_name`, if it is given, as below the module's place.
    """
    prefix = f"{comp_name}." if comp_name else ""
    read = [str(node.target) for node in subgraph.nodes if node.op in ("get_attr", "call_module")]
    return GraphModule(gm, subgraph, class_name), {f"{prefix}{name}": name for name in dict.fromkeys(read)}


def compare_graphs(left: Graph, right: Graph) -> bool:
    """Return whether two graphs compute the same by equal calls, whatever their names are.

    >>> from retrograd import fx
    >>> left, right = (fx.symbolic_trace(f).graph for f in (lambda x: x + 1, lambda y: y + 1))
    >>> compare_graphs(left, right)
    True
    """
    return len(left.nodes) == len(right.nodes) and Matcher(right, left).is_equal()
