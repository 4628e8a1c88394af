"""The autograd graph, for those who look at it: nodes and edges."""

from typing import Any, NamedTuple

from retrograd.core import Tensor
from retrograd.core.engine import edge_of
from retrograd.core.gradfn import as_node


class GradientEdge(NamedTuple):
    """A place in the graph: a node and the number of one of its outputs."""

    node: Any
    output_nr: int


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The edge at which the gradient of a tensor arrives.

    >>> import retrograd as rg
    >>> rg.autograd.get_gradient_edge(rg.ones(2, requires_grad=True) * 2).node.name()
    'MulBackward0'
    """
    if not tensor.requires_grad:
        raise RuntimeError("get_gradient_edge: this tensor does not require grad, so no gradient arrives at it")
    edge, number = edge_of(tensor)
    return GradientEdge(as_node(edge), number)
