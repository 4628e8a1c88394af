"""Constant folding: nodes that depend on parameters, buffers and constants only are computed once."""

from collections.abc import Callable, Sequence
from typing import Any

from retrograd.autograd import no_grad
from retrograd.core import Tensor
from retrograd.fx.graph import Graph
from retrograd.fx.graph_module import GraphModule
from retrograd.fx.node import Node
from retrograd.fx.symbolic_tracer import symbolic_trace
from retrograd.nn.module import Module
from retrograd.nn.parameter import Parameter

__all__ = ["FoldedGraphModule", "get_unique_attr_name_in_module", "split_const_subgraphs"]

FOLDED = "_FX_CONST_FOLDED_ATTRS"  # the beginning of the names of folded values


class FoldedGraphModule(GraphModule):
    """A graph module whose constant part is run on its first call; the results are attributes from then on.

    `const_subgraph_module` is that part, None if nothing is constant, and `run_folding()` runs it.
    """

    def __init__(
        self,
        root: Module,
        graph: Graph,
        const_subgraph: Graph | None = None,
        fx_const_folded_attrs_name: str | None = None,
        device_for_folded_attrs: str = "cpu",
        *,
        folded_attributes: Sequence[str] = (),
    ) -> None:
        super().__init__(root, graph)
        self.const_subgraph_module = None if const_subgraph is None else GraphModule(root, const_subgraph)
        self.fx_const_folded_attrs_name = fx_const_folded_attrs_name
        self.device_for_folded_attrs = device_for_folded_attrs
        self.has_folding_been_run = False
        self._folded_attributes = tuple(folded_attributes)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the result; the first call runs the constant part."""
        if not self.has_folding_been_run:
            self.run_folding()
        return super().__call__(*args, **kwargs)

    def run_folding(self) -> None:
        """Run the constant part, and set the attributes that the graph reads; a second run changes nothing.

        Raises AssertionError after the first run.
        """
        if self.has_folding_been_run:
            raise AssertionError("run_folding: the constant part has been folded already")
        self.has_folding_been_run = True
        if self.const_subgraph_module is None:
            return
        with no_grad():
            values = self.const_subgraph_module()
        for name, value in zip(self._folded_attributes, values, strict=True):
            setattr(self, name, _as_attribute(value))


def _as_attribute(value: Any) -> Any:
    """Return a folded value as a parameter without gradient, if it is a tensor."""
    return Parameter(value.detach().clone(), requires_grad=False) if isinstance(value, Tensor) else value


def get_unique_attr_name_in_module(mod_traced: GraphModule, name: str) -> str:
    """Return a name like `name` that a module has no attribute of: with a number at its end if it is taken.

    >>> from retrograd import fx
    >>> module = fx.symbolic_trace(lambda x: x)
    >>> module.scale, module.scale_1 = 1, 2
    >>> get_unique_attr_name_in_module(module, "scale")
    'scale_2'
    """
    number, found = 0, name
    while hasattr(mod_traced, found):
        number += 1
        found = f"{name}_{number}"
    return found


def split_const_subgraphs(
    module: Module | GraphModule,
    skip_folding_node_fn: Callable[[Node], bool] | None = None,
    device_for_folded_attrs: str = "cpu",
) -> FoldedGraphModule:
    """Return a module that computes the same, with the nodes that depend on no input in a part that runs once.

    A module without graph is traced by `fx.symbolic_trace`.  Nodes with side effects, and those for which
    `skip_folding_node_fn` returns True, are not folded.  The folded values have no gradients: they are those of
    parameters and buffers at the first call.

    >>> import retrograd as rg
    >>> class Shifted(rg.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.a, self.b = rg.nn.Parameter(rg.ones(2)), rg.nn.Parameter(rg.ones(2))
    ...
    ...     def forward(self, x):
    ...         return x + self.a * self.b.exp()
    >>> folded = split_const_subgraphs(Shifted())
    >>> [node.name for node in folded.graph.nodes]
    ['x', '_fx_const_folded_attrs', 'add', 'output']
    >>> folded(rg.zeros(2))
    tensor([2.7183, 2.7183])
    """
    traced = module if isinstance(module, GraphModule) else symbolic_trace(module)
    constant = _constant_nodes(traced.graph, skip_folding_node_fn)
    results = [n for n in constant if n.op != "get_attr" and any(user not in constant for user in n.users)]
    if not results:
        return FoldedGraphModule(traced, traced.graph, device_for_folded_attrs=device_for_folded_attrs)
    subgraph = Graph()
    copies: dict[Node, Node] = {}
    for node in constant:
        copies[node] = subgraph.node_copy(node, copies.__getitem__)
    subgraph.output(tuple([copies[node] for node in results]))
    return _without_constants(traced, list(constant), results, subgraph, device_for_folded_attrs)


def _constant_nodes(graph: Graph, skip: Callable[[Node], bool] | None) -> dict[Node, None]:
    """Return the nodes whose values depend on no input, in their order."""
    found: dict[Node, None] = {}
    for node in graph.nodes:
        given = node.op == "get_attr" or (node.op != "placeholder" and set(node.all_input_nodes) <= found.keys())
        if given and node.op != "output" and not node.is_impure() and not (skip is not None and skip(node)):
            found[node] = None
    return found


def _without_constants(
    traced: GraphModule, constant: list[Node], results: list[Node], subgraph: Graph, device: str
) -> FoldedGraphModule:
    """Return the module whose graph reads the constant results as attributes."""
    graph = Graph()
    copies: dict[Node, Node] = {}
    names: list[str] = []
    home = GraphModule(traced, traced.graph)
    base = get_unique_attr_name_in_module(home, FOLDED)
    for node in traced.graph.nodes:
        if node in results:
            name = get_unique_attr_name_in_module(home, base)
            setattr(home, name, None)
            names.append(name)
            copies[node] = graph.get_attr(name)
            copies[node].meta = dict(node.meta)
        elif node not in constant or node.op == "get_attr":
            copies[node] = graph.node_copy(node, copies.__getitem__)
    for node in reversed(list(graph.find_nodes(op="get_attr"))):
        if not node.users:
            graph.erase_node(node)
    folded = FoldedGraphModule(home, graph, subgraph, base, device, folded_attributes=names)
    folded.meta = dict(traced.meta)
    return folded
