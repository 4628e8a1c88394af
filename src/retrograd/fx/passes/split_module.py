"""Split a graph into submodules."""

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any, NamedTuple

from retrograd.foundation.suggestions import suggest_in_module
from retrograd.fx.graph import Graph
from retrograd.fx.graph_module import GraphModule, extract
from retrograd.fx.node import CALLS, Node, map_nodes, nodes_in
from retrograd.fx.traced_writes import mutated_tensors
from retrograd.nn.module import Module

__all__ = ["split_module", "split_module_simple"]


def split_module(
    m: GraphModule,
    root_m: Module | None,
    split_callback: Callable[[Node], Any],
    qualname_map: dict[str, str] | None = None,
    keep_original_order: bool = False,
    keep_original_node_name: bool = False,
    keep_original_input_name: bool = True,
    *,
    partition_affix: str | None = None,
    tuple_return: bool = False,
) -> GraphModule:
    """Return a module that computes the same by submodules `submod_0`, `submod_1`, ..., each a graph module.

    `split_callback(node)` returns the part of each call; the submodule's name ends with it.  Parts run in topological
    order, as near to the graph's order as possible, or in the graph's order with `keep_original_order`.  Attributes
    and submodules that a part uses become its own; a parameter that several use is shared between them.  Values pass
    between parts as arguments, several results as a tuple.

    Nodes in the parts are named by their targets, or as they were with `keep_original_node_name`.  The arguments of
    parts are named like the values, or `arg_0`, `arg_1`, ... without `keep_original_input_name`.  With `tuple_return`
    each part returns a tuple, of one result too.

    `root_m` has the parameters and submodules; None means `m`.  `qualname_map` is filled with the qualified name in
    `root_m` of each in the result.  `partition_affix` gives names `submod_<affix>_0`.  Raises RuntimeError if parts
    depend on each other cyclically.

    >>> from retrograd import fx
    >>> module = fx.symbolic_trace(lambda x: (x.exp() + 1).log())
    >>> parts = fx.split_module(module, None, lambda node: int(node.name == "log"))
    >>> print(parts.graph)
    graph():
        %x : [num_users=1] = placeholder[target=x]
        %submod_0 : [num_users=1] = call_module[target=submod_0](args = (%x,), kwargs = {})
        %submod_1 : [num_users=1] = call_module[target=submod_1](args = (%submod_0,), kwargs = {})
        return submod_1
    """
    prefix = "submod_" if partition_affix is None else f"submod_{partition_affix}_"
    parts = _parts(m.graph, split_callback, prefix)
    ordered = list(parts.values()) if keep_original_order else _topological_order(parts)
    options = _SplitOptions(keep_original_node_name, keep_original_input_name, tuple_return)
    root = m if root_m is None else root_m
    return _Splitter(m.graph, root, ordered, options).module(qualname_map if qualname_map is not None else {})


def split_module_simple(
    m: GraphModule, node_to_partition: Mapping[Node, int], *, partition_affix: str | None = None
) -> GraphModule:
    """Return a module split by a mapping from calls to parts, like `split_module`.

    >>> from retrograd import fx
    >>> module = fx.symbolic_trace(lambda x: x.exp() + 1)
    >>> parts = split_module_simple(module, {node: int(node.name == "add") for node in module.graph.nodes})
    >>> [name for name, _ in parts.named_children()]
    ['submod_0', 'submod_1']
    """
    return split_module(m, None, node_to_partition.__getitem__, partition_affix=partition_affix)


def split_by_names(
    m: GraphModule, home: Mapping[Node, str], order: Iterable[str], names: dict[str, str], tuple_return: bool
) -> GraphModule:
    """Return a module with a submodule for each name, in this order; `home` has the submodule's name of each call.

    `names` is filled as `qualname_map` of `split_module` is.
    """
    parts = _parts(m.graph, home.__getitem__, "")
    ordered = [parts[name] for name in order if name in parts]
    return _Splitter(m.graph, m, ordered, _SplitOptions(returns_tuples=tuple_return)).module(names)


class _SplitOptions(NamedTuple):
    """The names in the parts, and whether one result is a tuple too."""

    keeps_names: bool = True
    keeps_input_names: bool = True
    returns_tuples: bool = False


@dataclass
class _Part:
    """A future submodule: its nodes, its inputs and outputs, and the parts that it depends on."""

    name: str
    nodes: list[Node] = field(default_factory=list)
    inputs: dict[Node, None] = field(default_factory=dict)
    outputs: dict[Node, None] = field(default_factory=dict)
    dependencies: set[str] = field(default_factory=set)

    def graph(self, options: _SplitOptions) -> Graph:
        """Return the part's own graph."""
        graph = Graph()
        inside: dict[Node, Any] = {}
        for index, node in enumerate(self.inputs):
            name = node.name if options.keeps_input_names else f"arg_{index}"
            inside[node] = graph.create_node("placeholder", name, name=name, type_expr=node.type)
            inside[node].meta = dict(node.meta)
        for node in self.nodes:
            for used in node.all_input_nodes:
                if used not in inside:  # an attribute
                    inside[used] = graph.node_copy(used)
            args, kwargs = map_nodes((node.args, node.kwargs), inside.__getitem__)
            new_name = node.name if options.keeps_names else None
            inside[node] = graph.create_node(node.op, node.target, args, kwargs, new_name, node.type)
            inside[node].meta = dict(node.meta)
        results = tuple(inside[node] for node in self.outputs)
        graph.output(results[0] if len(results) == 1 and not options.returns_tuples else results)
        return graph


def _parts(graph: Graph, split_callback: Callable[[Node], Any], prefix: str) -> dict[str, _Part]:
    """Return the parts by name, in the order of their first nodes."""
    parts: dict[str, _Part] = {}
    home: dict[Node, _Part] = {}
    for node in graph.nodes:
        if node.op in CALLS:
            name = f"{prefix}{split_callback(node)}"
            home[node] = part = parts.setdefault(name, _Part(name))
            part.nodes.append(node)
        for used in node.all_input_nodes:
            source, user = home.get(used), home.get(node)
            # Attributes are not passed between parts: each part reads its own.
            if used.op == "get_attr" or (source is user and source is not None):
                continue
            if user is not None:
                user.inputs[used] = None
            if source is not None:
                source.outputs[used] = None
                if user is not None:
                    user.dependencies.add(source.name)
    for part in parts.values():  # in the order of the part's nodes
        part.outputs = {node: None for node in part.nodes if node in part.outputs}
    return parts


def _topological_order(parts: dict[str, _Part]) -> list[_Part]:
    """Return the parts in a topological order, as near to the given order as possible."""
    sorter = TopologicalSorter({name: part.dependencies for name, part in parts.items()})
    position = {name: index for index, name in enumerate(parts)}
    try:
        sorter.prepare()
    except CycleError as error:
        cycle = " -> ".join(reversed(error.args[1]))
        raise RuntimeError(
            f"split_module: cycle exists between partitions! The parts need each other's values: {cycle}"
        ) from None
    ready: list[str] = []
    found: list[_Part] = []
    while sorter.is_active():
        ready = sorted([*ready, *sorter.get_ready()], key=position.__getitem__)
        found.append(parts[ready[0]])
        sorter.done(ready.pop(0))
    return found


class _Splitter:
    """Builds the graph that calls the parts."""

    def __init__(self, graph: Graph, root: Module, parts: Iterable[_Part], options: _SplitOptions) -> None:
        self.old = graph
        self.options = options
        self.root = root
        self.parts = list(parts)
        self.graph = Graph()
        self.values: dict[Node, Any] = {}

    def module(self, names: dict[str, str]) -> GraphModule:
        """Return the split module; fill `names` with the origins of its parameters and submodules."""
        for node in self.old.find_nodes(op="placeholder"):
            self.values[node] = self.graph.node_copy(node)
        modules = {part.name: GraphModule(self.root, part.graph(self.options)) for part in self.parts}
        for part in self.parts:
            self._call(part)
        result = self.old.output_node().args[0]
        read = [node for node in nodes_in(result) if node.op == "get_attr"]
        for node in dict.fromkeys(read):
            self.values[node] = self.graph.node_copy(node)
        self.graph.output(map_nodes(result, self.values.__getitem__))
        self.graph.signature = self.old.signature
        home = extract(self.root, [*[node.target for node in read], *mutated_tensors(self.old.signature)])
        for name, module in modules.items():
            home.add_module(name, module)
            for node in module.graph.nodes:
                if node.op in ("get_attr", "call_module"):
                    names[f"{name}.{node.target}"] = node.target
        return GraphModule(home, self.graph)

    def _call(self, part: _Part) -> None:
        missing = [node.name for node in part.inputs if node not in self.values]
        if missing:
            raise RuntimeError(f"split_module: {part.name} needs {', '.join(missing)} of a part that comes later")
        call = self.graph.call_module(part.name, tuple(self.values[node] for node in part.inputs))
        if len(part.outputs) == 1 and not self.options.returns_tuples:
            [only] = part.outputs
            self.values[only] = call
            call.meta = dict(only.meta)
            return
        for index, node in enumerate(part.outputs):
            self.values[node] = self.graph.call_function(operator.getitem, (call, index))
            self.values[node].meta = dict(node.meta)


suggest_in_module(globals())
