"""Tracing: running code on example values while every operator that it calls is written down."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import takewhile
from typing import Any

import optree

from retrograd.core import Aval, Level, Op, Tensor, at, call, current, operator_named
from retrograd.core.aval import SymbolicSize
from retrograd.core.op import Aside
from retrograd.core.schema import REQUIRED, Parameter
from retrograd.core.source import user_line
from retrograd.core.tensor import make
from retrograd.fx.graph import Graph
from retrograd.fx.graph_module import GraphModule, extract, tensor_names
from retrograd.fx.node import Node, map_leaves
from retrograd.fx.operators import GUARD, PICK
from retrograd.fx.signature import Signature
from retrograd.levels.settle import settled
from retrograd.nn.module import Module
from retrograd.ops.create import as_tensor

_detach = operator_named("detach")


def trace(root: Callable | Module, *args: Any, **kwargs: Any) -> GraphModule:
    """Run a function or module on example arguments, and return what it did as a `GraphModule`.

    Arguments and results are pytrees (nested tuples, lists, dicts and what is registered with optree) of
    tensors and constants.  The graph holds every operator that ran, random ones included, with the example's
    shapes and constants, and the parameters, buffers and other tensors that it met.  Where the code reads a
    value, in `if x.sum() > 0`, `int(x)`, `x.item()`, the graph checks that later inputs give the same one.

    Nothing is recorded for autograd, and the module stays as it is; its parameters are shared.  Raises
    TypeError for arrays among the arguments, and whatever the code itself raises.

    >>> import retrograd as rg
    >>> from retrograd import fx
    >>> def f(x, y):
    ...     return {"sum": x + y, "product": x * y}
    >>> print(fx.trace(f, rg.ones(2), rg.ones(2)).code)
    def forward(self, x, y):
        # x: float32[2], y: float32[2]
        # <doctest ... in f
        add = ops.add(x, y)  # float32[2]
        mul = ops.mul(x, y)  # float32[2]
        return (mul, add)
    """
    graph = Graph()
    graph.signature = Signature(_with_parameters(root))
    examples = graph.signature.learn(args, kwargs)
    names = tensor_names(root) if isinstance(root, Module) else []
    home = extract(root, names) if isinstance(root, Module) else Module()
    level = TraceLevel(graph, home, names)
    level.function = root
    with at(current().level, False), _buffers_kept(root), level:
        named = zip(graph.signature.inputs, examples, strict=True)
        arguments = graph.signature.rebuild([level.input(known.name, x) for known, x in named])
        level.output(settled(root(*arguments.args, **arguments.kwargs)))
    return GraphModule(home, graph, keep=names)


@contextmanager
def _buffers_kept(root: Callable | Module) -> Iterator[None]:
    """Put back every buffer that the block replaces, and refuse it: the graph would not hold the change."""
    modules = list(root.modules()) if isinstance(root, Module) else []
    before = [(module, name, b) for module in modules for name, b in module.named_buffers(recurse=False)]
    replaced = []
    try:
        yield
    finally:
        for module, name, buffer in before:
            if getattr(module, name) is not buffer:
                replaced.append(f"{type(module).__name__}.{name}")
                setattr(module, name, buffer)
    if replaced:
        raise NotImplementedError(
            f"trace: the code replaced buffers ({', '.join(replaced)}), which is not supported yet"
        )


def _with_parameters(root: Callable | Module) -> Callable:
    """The function whose parameters name the inputs: a module's `forward`, unless the module has its say."""
    return root.forward if isinstance(root, Module) and not hasattr(root, "__signature__") else root


class TraceLevel(Level):
    """A tensor's tag is the node that made it; its value is that of the example."""

    keeps_whole = True
    holds_functions = False  # a graph holds registered operators only

    def __init__(self, graph: Graph, home: Module, names: list[str]) -> None:
        self.graph = graph
        self._home = home  # keeps the constants that the code meets
        self._recording = True
        self._attributes: dict[int, str] = {}  # id of a tensor -> its qualified name
        self._nodes: dict[str, Node] = {}  # qualified name -> the node that reads it
        self._guarded: set[Node] = set()
        for name in reversed(names):
            path, _, last = name.rpartition(".")
            self._attributes[id(getattr(home.get_submodule(path), last))] = name

    def below(self) -> at:
        """A block one level below, remembering whether the code was under `no_grad` when it was entered."""
        self._recording = current().grad_enabled
        return super().below()

    def process(self, op: Op, args: tuple, params: dict) -> Any:
        """Run the operator on the example's values, and write it down."""
        stopped = op.differentiable and not self._recording
        params = map_leaves(params, self._constant)
        out = call(op, tuple(self._lower(a) for a in args), params)
        node = self.graph.call_function(op, *_arguments(op, [self.operand(a) for a in args], params))
        self._describe(node, out)
        if isinstance(out, tuple):
            path = out[-1].path if out and isinstance(out[-1], Aside) else Aside().path
            picks = self._picked(node, {path(i): o for i, o in enumerate(out) if isinstance(o, Tensor)})
            return tuple(
                self._wrap(picks[path(i)], o, stopped) if isinstance(o, Tensor) else o for i, o in enumerate(out)
            )
        return self._wrap(node, out, stopped)

    def read(self, tensor: Any) -> Any:
        """The example's value, which the graph from now on checks."""
        _check_not_escaped(tensor)
        if tensor.tag not in self._guarded:
            self._guarded.add(tensor.tag)
            with super().below():
                expected = tensor.value.item() if tensor.numel() == 1 else _detach(tensor.value)
            line = user_line()
            node = self.graph.call_function(GUARD, (tensor.tag, self.operand(expected)), {"source": line})
            node.meta = {"val": Aval((), "bool"), "stack_trace": line}
        return tensor.value

    # -------------------------------------------------------------------------------------- ends of the graph

    def input(self, name: str, example: Tensor) -> Tensor:
        """A new input of the graph, as the code sees it."""
        node = self.graph.placeholder(name)
        node.meta["val"] = example.aval
        return make(example, self, node)

    def output(self, result: Any) -> None:
        """End the graph with what the code returned."""
        assert self.graph.signature is not None
        leaves = self.graph.signature.learn_result(result)
        results = tuple(self.operand(leaf) if isinstance(leaf, Tensor) else leaf for leaf in leaves)
        self.graph.output(results[0] if self.graph.signature.single else results)
        self.graph.signature.knows_sizes = any(map(_knows_sizes, self.graph.nodes))
        for node in reversed(list(self.graph.find_nodes(op="call_function", target=PICK))):
            if not node.users:
                self.graph.erase_node(node)

    # ------------------------------------------------------------------------------------------ what it meets

    def operand(self, a: Any) -> Any:
        """What stands for an operand in the graph: the node of a tensor, or a constant."""
        if isinstance(a, Tensor):
            return a.tag if a.level is self else self._attribute(a)
        return self._attribute(as_tensor(a)) if hasattr(a, "__array__") else a

    def _constant(self, leaf: Any) -> Any:
        """A leaf of the params; a tensor there, as in `x[t:]`, is read."""
        return self.read(leaf).item() if isinstance(leaf, Tensor) and leaf.level is self else leaf

    def _lower(self, a: Any) -> Any:
        return a.value if isinstance(a, Tensor) and a.level is self else a

    def _attribute(self, tensor: Tensor) -> Node:
        """The node that reads a tensor from outside the trace."""
        _check_not_escaped(tensor)
        if id(tensor) not in self._attributes:
            self._attributes[id(tensor)] = self._new_constant(tensor)
        name = self._attributes[id(tensor)]
        if name not in self._nodes:
            self._nodes[name] = node = self.graph.get_attr(name)
            node.meta["val"] = tensor.aval
        return self._nodes[name]

    def _new_constant(self, tensor: Tensor) -> str:
        number = 0
        while hasattr(self._home, f"_tensor_constant{number}"):
            number += 1
        setattr(self._home, f"_tensor_constant{number}", tensor)
        return f"_tensor_constant{number}"

    def _picked(self, node: Node, outs: dict[tuple, Tensor]) -> dict[tuple, Node]:
        """The nodes of tensors by their places in a result, by way of the nodes of the lists that these stand in."""
        picks = {(): node}
        for path, out in outs.items():
            for depth in range(1, len(path) + 1):
                place, source = path[:depth], picks[path[: depth - 1]]
                if place not in picks:
                    name = f"{source.name}_{place[-1]}"
                    picks[place] = self.graph.create_node("call_function", PICK, (source, place[-1]), name=name)
                    members = tuple([o for p, o in outs.items() if p[:depth] == place])
                    self._describe(picks[place], out if place == path else members)
        return picks

    def _wrap(self, node: Node, out: Tensor, stopped: bool) -> Tensor:
        """The result as the code sees it; what was made under `no_grad` is detached in the graph too."""
        if stopped and out.dtype.kind in "fc":
            node = self.graph.call_function(_detach, (node,))
            self._describe(node, out)
        return make(out, self, node)

    def _describe(self, node: Node, out: Any) -> None:
        tensors = [o for o in out if isinstance(o, Tensor)] if isinstance(out, tuple) else []
        node.meta["val"] = tuple(o.aval for o in tensors) if isinstance(out, tuple) else out.aval
        node.meta["stack_trace"] = user_line()


def _knows_sizes(node: Node) -> bool:
    """Whether a node depends on sizes that are no numbers: it takes arrays apart, or it has such a size."""
    if isinstance(node.target, Op) and node.target.definition.whole:
        return True
    inputs: Any = (node.args, node.kwargs)
    return any(isinstance(leaf, SymbolicSize) for leaf in optree.tree_leaves(inputs))


def _check_not_escaped(tensor: Tensor) -> None:
    if tensor.level is not None and not tensor.level.active:
        raise tensor.level.escape(tensor)


def _arguments(op: Op, inputs: list, params: dict) -> tuple[tuple, dict[str, Any]]:
    """A call's flat inputs and params as a user would write them: inputs first, defaults left out."""
    values = op.schema.named(inputs, params)
    parameters = op.schema.parameters
    leading = list(takewhile(lambda p: p.is_tensor and not p.keyword_only, parameters))
    while leading and _is_default(leading[-1], values):
        leading.pop()
    rest = [p for p in parameters if p not in leading and not _is_default(p, values)]
    return tuple(values[p.name] for p in leading), {p.name: values[p.name] for p in rest}


def _is_default(parameter: Parameter, values: dict[str, Any]) -> bool:
    value, default = values[parameter.name], parameter.default
    return default is not REQUIRED and type(value) is type(default) and value == default
