"""Convert a flat program to a hierarchy of modules, each with the part of the graph that its calls ran."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from retrograd.core import Tensor
from retrograd.export.dynamic_shapes import InputDim, Sizes
from retrograd.export.program import ExportedProgram
from retrograd.export.size_operators import OVER, PLUS, RATIO, SIZE, TIMES
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.fx.graph import Graph
from retrograd.fx.graph_module import GraphModule
from retrograd.fx.node import Node, map_leaves, map_nodes
from retrograd.fx.operators import PICK
from retrograd.fx.traced_writes import get_or_add_submodule
from retrograd.nn.members import all_attributes
from retrograd.nn.module import Module

SIZES = (SIZE, PLUS, TIMES, OVER, RATIO)


def unflatten(module: ExportedProgram) -> GraphModule:
    """Return the program as modules under the original paths, with the parameters and buffers of the program.

    Each submodule runs the operators of the original's calls. Its inputs are the outside tensors they use, in the
    order of use, and its results are those used elsewhere: one tensor, or a tuple of several. So one with a single
    input and output can be replaced by any similar module. If several calls of a module ran different operators,
    those of the later calls are placed in the parent module.

    >>> import retrograd as rg
    >>> from retrograd import export, nn
    >>> program = export.export(nn.Sequential(nn.Linear(2, 2), nn.ReLU()), (rg.ones(3, 2),))
    >>> net = export.unflatten(program)
    >>> [node.target for node in net.graph.find_nodes(op="call_module")]
    ['0', '1']
    >>> setattr(net, "1", nn.Tanh())
    >>> net(rg.zeros(3, 2)).shape
    (3, 2)
    """
    flat = module.module()
    graph, home = flat.graph, module.home()
    writer = _Writer(home, _aliases(flat), getattr(module.call_spec, "sizes", Sizes({}, {})))
    return writer.root(graph)


class _Call:
    """One call of a module: its path, and its steps in order, including nested calls."""

    def __init__(self, key: str, path: str) -> None:
        self.key = key
        self.path = path
        self.steps: list[Node | _Call] = []

    def nodes(self) -> Iterator[Node]:
        """Yield all steps, including those of nested calls."""
        for step in self.steps:
            yield from step.nodes() if isinstance(step, _Call) else (step,)

    def inline_foreign_calls(self) -> None:
        """Inline the steps of nested calls of modules that are not below this one."""
        steps: list[Node | _Call] = []
        for step in self.steps:
            if isinstance(step, _Call):
                step.inline_foreign_calls()
            if isinstance(step, _Call) and not _is_below(step.path, self.path):
                steps += step.steps
            else:
                steps.append(step)
        self.steps = steps


def _is_below(path: str, other: str) -> bool:
    return path != other and (not other or path.startswith(f"{other}."))


def _calls(graph: Graph) -> _Call:
    """Return the graph as a tree of calls; sizes and attributes belong to none, and go where they are used."""
    root = _Call("", "")
    active = [root]
    for node in graph.find_nodes(op="call_function"):
        if node.target in SIZES:
            continue
        if "nn_module_stack" not in node.meta:  # inserted during tracing, for the node that ran before it
            active[-1].steps.append(node)
            continue
        stack = [(key, path) for key, (path, _) in node.meta["nn_module_stack"].items() if key]
        # The calls that are still running are those with which both stacks begin.
        keep = 1
        while keep < len(active) and keep <= len(stack) and active[keep].key == stack[keep - 1][0]:
            keep += 1
        del active[keep:]
        for key, path in stack[keep - 1 :]:
            call = _Call(key, path)
            active[-1].steps.append(call)
            active.append(call)
        active[-1].steps.append(node)
    root.inline_foreign_calls()
    return root


def _aliases(module: Module) -> dict[str, list[str]]:
    """Return all names of each parameter and buffer, by every one of them."""
    named = [*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)]
    by_tensor: dict[int, list[str]] = {}
    for name, tensor in named:
        by_tensor.setdefault(id(tensor), []).append(name)
    return {name: by_tensor[id(tensor)] for name, tensor in named}


class _Writer:
    """Creates a module with its own graph at each path that was called."""

    def __init__(self, home: Module, aliases: Mapping[str, list[str]], sizes: Sizes) -> None:
        self._home = home
        self._sizes = sizes
        self._aliases = aliases
        self._graphs: dict[str, Graph] = {}  # by path, the graph of the module

    def root(self, graph: Graph) -> GraphModule:
        """Return the root module, which runs the whole graph."""
        body = _Body("", self._aliases, self._sizes)
        for node in graph.find_nodes(op="placeholder"):
            body.env[node] = body.graph.node_copy(node, body.value)
        self._write_steps(_calls(graph), body)
        body.graph.output(map_nodes(graph.output_node().args[0], body.value))
        body.graph.signature = graph.signature
        return GraphModule(self._home, body.graph, keep=_members(self._home))

    def _write_steps(self, call: _Call, body: "_Body") -> None:
        for step in call.steps:
            if isinstance(step, Node):
                body.env[step] = body.graph.node_copy(step, body.value)
            else:
                self._write_call(step, body)

    def _write_call(self, call: _Call, body: "_Body") -> None:
        """Write the call of a module, or inline its steps if the module's graph differs."""
        inner = _Body(call.path, self._aliases, self._sizes)
        self._write_steps(call, inner)
        results = _used_outside(list(call.nodes()))
        inner.graph.output(map_nodes(results[0] if len(results) == 1 else tuple(results), inner.value))
        if call.path not in self._graphs:
            self._graphs[call.path] = inner.graph
            self._install(call.path, inner.graph)
        elif not _same(self._graphs[call.path], inner.graph):
            self._write_steps(call, body)
            return
        body.call(call.path, inner.inputs, results)

    def _install(self, path: str, graph: Graph) -> None:
        before = get_or_add_submodule(self._home, path)  # created if it has no tensors
        owner, _, name = path.rpartition(".")
        setattr(self._home.get_submodule(owner), name, GraphModule(before, graph, keep=_members(before)))


class _Body:
    """The graph of one module under construction, with a map from nodes of the flat graph."""

    def __init__(self, path: str, aliases: Mapping[str, list[str]], sizes: Sizes) -> None:
        self.path = path
        self.graph = Graph()
        self.env: dict[Node, Node] = {}
        self.inputs: list[Node] = []  # values from outside
        self._aliases = aliases
        self._sizes = sizes

    def value(self, node: Node) -> Node:
        """Return the node for a node of the flat graph."""
        if node not in self.env:
            self.env[node] = self._size(node) or self._attribute(node) or self._input(node)
        return self.env[node]

    def call(self, path: str, inputs: Iterable[Node], results: list[Node]) -> None:
        """Call the module of that path; its results replace these nodes."""
        target = path[len(self.path) + 1 :] if self.path else path
        new_node = self.graph.call_module(target, tuple(map(self.value, inputs)))
        if len(results) == 1:
            new_node.meta = dict(results[0].meta)
            self.env[results[0]] = new_node
            return
        new_node.meta["val"] = tuple([node.meta.get("val") for node in results])
        for number, node in enumerate(results):
            self.env[node] = self.graph.call_function(PICK, (new_node, number))
            self.env[node].meta = dict(node.meta)

    def _attribute(self, node: Node) -> Node | None:
        """Return a read of an attribute below this module."""
        if node.op != "get_attr":
            return None
        prefix = f"{self.path}." if self.path else ""
        name = next((n for n in self._aliases.get(node.target, [node.target]) if n.startswith(prefix)), None)
        if name is None:
            return None
        new_node = self.graph.get_attr(name[len(prefix) :])
        new_node.meta = dict(node.meta)
        return new_node

    def _size(self, node: Node) -> Node | None:
        """Return a size computed from the shapes that are available here."""
        if node.op != "call_function" or node.target not in SIZES:
            return None
        if node.target is not SIZE:
            return self.graph.node_copy(node, self.value)
        if node.args[0] in self.env:
            return self.graph.node_copy(node, self.value)
        expected_size = self._sizes.places.get(InputDim(node.args[0].target, node.kwargs["dim"]))
        for flat_node, node_here in self.env.items():
            if expected_size in flat_node.meta.get("shape", ()):
                dim = flat_node.meta["shape"].index(expected_size)
                return self.graph.create_node("call_function", SIZE, (node_here,), {"dim": dim}, name=node.name)
        return None

    def _input(self, node: Node) -> Node:
        self.inputs.append(node)
        first = next((n for n in self.graph.nodes if n.op != "placeholder"), None)
        if first is None:
            new_node = self.graph.placeholder(node.name)
        else:
            with self.graph.inserting_before(first):
                new_node = self.graph.placeholder(node.name)
        new_node.meta = dict(node.meta)
        return new_node


def _used_outside(nodes: list[Node]) -> list[Node]:
    inside = set(nodes)
    return [node for node in nodes if any(user not in inside for user in node.users)]


def _members(module: Module) -> list[str]:
    """Return the names of a module's parameters, buffers and constants, then submodules, as in state dicts."""
    tensors = [name for name, value in all_attributes(module).items() if isinstance(value, Tensor)]
    return [*tensors, *[name for name, _ in module.named_children()]]


def _same(a: Graph, b: Graph) -> bool:
    """Return whether two graphs are equal except for node names."""
    return _rows(a) == _rows(b)


def _rows(graph: Graph) -> list[tuple]:
    places = {node: place for place, node in enumerate(graph.nodes)}

    def leaf(value: Any) -> Any:
        return ("node", places[value]) if isinstance(value, Node) else (type(value), repr(value), _identity(value))

    return [
        (n.op, "" if n.op == "placeholder" else n.target, map_leaves((n.args, n.kwargs), leaf)) for n in graph.nodes
    ]


def _identity(value: Any) -> int | None:
    """Return the identity of a tensor, which its text does not determine."""
    return id(value) if isinstance(value, Tensor) else None


suggest_in_module(globals())
