"""Tracing: run code on example values and record every operator that it calls."""

from collections.abc import Callable
from typing import Any, NamedTuple

import optree

from retrograd.core import Aval, Level, Op, Tensor, at, call, current, operator_named
from retrograd.core.aval import SymbolicSize
from retrograd.core.dtype import is_differentiable
from retrograd.core.op import AuxOutput
from retrograd.core.tensor import count_of, make
from retrograd.foundation.source_location import user_line
from retrograd.foundation.suggestions import suggest_keywords
from retrograd.fx.call_format import normalized_args
from retrograd.fx.graph import Graph
from retrograd.fx.graph_module import GraphModule, extract, tensor_names
from retrograd.fx.module_stack import ModuleCalls
from retrograd.fx.node import Node, map_leaves
from retrograd.fx.operators import GUARD, OVERWRITTEN, PICK
from retrograd.fx.signature import Signature
from retrograd.fx.traceback import copied_meta
from retrograd.fx.traced_writes import (
    CONSTANT_NAME,
    AttributeAssignment,
    ProxiedAttributes,
    attribute_mutations,
    input_mutations,
    insert_copies,
    written_value,
)
from retrograd.levels.sync_views import sync_views
from retrograd.nn.module import Module
from retrograd.nn.parameter import Parameter
from retrograd.ops.create import as_tensor
from retrograd.ops.mutate import copy_

_detach, _clone = operator_named("detach"), operator_named("clone")
REMOVABLE = (PICK, OVERWRITTEN, _detach, operator_named("view_scatter"))  # removed if unused


@suggest_keywords
def trace(root: Callable | Module, *args: Any, **kwargs: Any) -> GraphModule:
    """Run a function or module on example arguments, and return the recorded operators as a `GraphModule`.

    Arguments and results are pytrees (nested tuples, lists, dicts and types registered with optree) of
    tensors and constants.  The graph holds every operator that ran, random ones included, with the example's
    shapes and constants, and the parameters, buffers and other tensors that the code used.  If the code reads
    a value, as `if x.sum() > 0`, `int(x)` and `x.item()` do, a guard checks that later inputs give the same one.

    A call of an `autograd.Function` or of a custom operator is one node, which keeps the derivatives of its author.

    Where the code writes to its arguments, to parameters or buffers, or assigns tensors to the module's attributes,
    running the graph does so too, in place and at the end: see `Signature.mutations`.  That holds for the traced
    module, or modules that a traced function names; other tensors from outside can't be written to.

    Nothing is recorded for autograd.  Arguments and module are unchanged; the parameters are shared.  Raises
    TypeError for arrays among the arguments, ValueError if an argument that is written to shares memory with
    another, NotImplementedError for attributes that change shape or dtype, RuntimeError for an `autograd.Function`
    whose forward takes ctx under a transform inside the code (its derivative would be lost), and any error of the code.

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
    return capture(TraceLevel, root, args, kwargs).module()


class Recording(NamedTuple):
    """A traced graph, the bare module that has the tensors it reads, and the names of the root's tensors."""

    graph: Graph
    home: Module
    names: list[str]

    def module(self) -> GraphModule:
        """Return the module that runs the graph, whose code is generated here."""
        return GraphModule(self.home, self.graph, keep=self.names)


def capture(
    kind: Callable[..., "TraceLevel"], root: Callable | Module, args: tuple, kwargs: dict[str, Any]
) -> Recording:
    """Trace like `trace`, with the level that `kind(graph, home, names)` returns."""
    graph = Graph()
    graph.signature = Signature(_with_parameters(root))
    examples = graph.signature.learn(args, kwargs)
    names = tensor_names(root) if isinstance(root, Module) else []
    home = extract(root, names) if isinstance(root, Module) else Module()
    level = kind(graph, home, names)
    level.function = root
    # Autograd records nothing here: a run of the graph records its own gradients.
    with at(current().level, False):
        with ProxiedAttributes(level, root) as attributes, ModuleCalls(root) as level.calls, level:
            named = zip(graph.signature.inputs, examples, strict=True)
            given = [level.input(known.name, x) for known, x in named]
            arguments = graph.signature.rebuild(given)
            result = sync_views(root(*arguments.args, **arguments.kwargs))
        # The assignments to attributes are known only after they have been restored.
        with level:
            level.output(result, given, attributes.changes)
    # Only inputs that are written to must not share memory, and these are known at the end.
    graph.signature.check_no_shared_memory(examples)
    return Recording(graph, home, names)


def _with_parameters(root: Callable | Module) -> Callable:
    """Return the function whose parameters name the inputs: a module's `forward`, unless it is overridden."""
    return root.forward if isinstance(root, Module) and not hasattr(root, "__signature__") else root


class TraceLevel(Level):
    """The level that records a graph: a tensor's tag is its node, and its value is the example's.

    The tag of a proxy of a tensor from outside is that tensor, until it is written to.
    """

    traces = True

    def __init__(self, graph: Graph, home: Module, names: list[str]) -> None:
        self.graph = graph
        self._home = home  # holds the constants that the code uses
        self._attributes: dict[int, str] = {}  # id of a tensor -> its qualified name
        self._nodes: dict[str, Node] = {}  # qualified name -> the node that reads it
        self._guarded: set[Node] = set()
        self._outside_proxies: dict[int, tuple[Tensor, Tensor]] = {}  # id of a tensor -> the tensor and its proxy
        self.calls = ModuleCalls(None)
        # Reversed, so that a tensor with several names gets the first one.
        for name in reversed(names):
            path, _, last = name.rpartition(".")
            self._attributes[id(getattr(home.get_submodule(path), last))] = name

    def process(self, op: Op, args: tuple, params: dict) -> Any:
        """Run the operator on the example's values, and record it."""
        # A result under no_grad is detached in the graph, too, so that a run of the graph has the same gradients.
        detached = op.differentiable and not self.recording
        args = tuple(map(self._lift_outside, args))
        # A traced tensor among the params, such as the bound of a slice, is read: a guard checks its value.
        params = map_leaves(params, self._constant)
        # The caller has entered the level below, so this computes with the values of the example.
        out = call(op, tuple(self._value_below(a) for a in args), params)
        written = normalized_args(op, op.schema.named([self.operand(a) for a in args], params))
        node = self.graph.call_function(op, *written)
        if isinstance(out, tuple):
            path = out[-1].path if out and isinstance(out[-1], AuxOutput) else AuxOutput().path
            tensors = {path(i): o for i, o in enumerate(out) if isinstance(o, Tensor)}
            found = iter(self._results(node, tensors, detached))
            return tuple([next(found) if isinstance(o, Tensor) else o for o in out])
        [result] = self._results(node, {(): out}, detached)
        return result

    def record_call(self, op: Op, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Run a user's Function on copies of the example's values, and record it as one node.

        The node gets a clone of each argument that the Function writes to, so that running the graph changes its own
        values only; the argument becomes the result.  Raises RuntimeError if the Function does not return it.
        """
        detached = not current().grad_enabled
        args, kwargs = map_leaves((args, kwargs), self._lift_outside)
        copies: dict[int, tuple[Tensor, Tensor]] = {}
        with self.below():
            out = call(op, *map_leaves((args, kwargs), lambda a: _copy_once(copies, self._value_below(a), a)))
        written = {id(a): self._clone_node(a) for a, copy in copies.values() if count_of(copy)}
        node = self.graph.call_function(op, *map_leaves((args, kwargs), lambda a: self._argument(a, written)))
        paths, leaves, spec = optree.tree_flatten_with_path(out, none_is_leaf=True)
        tensors = {p: leaf for p, leaf in zip(paths, leaves, strict=True) if isinstance(leaf, Tensor)}
        proxies = dict(zip(map(id, tensors.values()), self._results(node, tensors, detached), strict=True))
        for a, copy in copies.values():
            if id(a) in written:
                _check_returned(op, copy, proxies)
                copy_(a, proxies[id(copy)])
                proxies[id(copy)] = a
        return optree.tree_unflatten(spec, [proxies.get(id(leaf), leaf) for leaf in leaves])

    def read(self, tensor: Any) -> Any:
        """Return the example's value, and add a guard for it to the graph."""
        _check_not_escaped(tensor)
        read = self.operand(tensor)
        # One guard for each value, however often the code reads it.
        if read not in self._guarded:
            self._guarded.add(read)
            with self.below():
                expected = tensor.value.item() if tensor.numel() == 1 else _detach(tensor.value)
            node = self.graph.call_function(GUARD, (read, self.operand(expected)), {"source": user_line()})
            self._set_meta(node, Aval((), "bool"))
        return tensor.value

    def on_write(self, x: Tensor, merged: Tensor) -> None:
        """Record that x becomes `merged` by a write outside the graph, so that later uses have the derivatives of x."""
        if is_differentiable(merged.dtype):
            node = self.graph.call_function(OVERWRITTEN, (self.operand(x), written_value(self.operand(merged))))
            self._describe(node, merged)
            merged.tag = node

    # -------------------------------------------------------------------------------------- ends of the graph

    def input(self, name: str, example: Tensor) -> Tensor:
        """Add an input to the graph, and return its proxy."""
        node = self.graph.placeholder(name)
        node.meta["val"] = example.aval
        return make(example, self, node)

    def proxy_of(self, tensor: Tensor) -> Tensor:
        """Return the proxy of a tensor from outside, which the code may write to."""
        if id(tensor) not in self._outside_proxies:
            proxy = make(tensor, self, tensor)
            proxy = Parameter(proxy, requires_grad=False) if isinstance(tensor, Parameter) else proxy
            self._outside_proxies[id(tensor)] = tensor, proxy
        return self._outside_proxies[id(tensor)][1]

    def output(self, result: Any, given: list[Tensor], changes: list[AttributeAssignment]) -> None:
        """End the graph with the values written and returned."""
        signature = self.graph.signature
        assert signature is not None
        names = [known.name for known in signature.inputs]
        written = input_mutations(self.operand, names, self.graph.find_nodes(op="placeholder"), given)
        written += attribute_mutations(self, list(self._outside_proxies.values()), changes)
        leaves = signature.learn_result(result)
        proxy_index = {id(w.proxy): number for number, w in enumerate(written) if w.proxy is not None}
        same = {i: proxy_index[id(leaf)] for i, leaf in enumerate(leaves) if id(leaf) in proxy_index}
        signature.learn_mutations([w.mutation for w in written], same)
        results = [self.operand(leaf) if isinstance(leaf, Tensor) else leaf for leaf in leaves]
        outputs = (*[w.new for w in written], *results)
        self.graph.output(outputs[0] if signature.single else outputs)
        signature.knows_sizes = any(map(_depends_on_sizes, self.graph.nodes))
        insert_copies(self.graph, [w.old for w in written if w.old is not None])
        # Backwards, so that a chain of unused steps disappears from its end.
        for node in reversed(self.graph.nodes):
            if not node.users and node.target in REMOVABLE:
                self.graph.erase_node(node)

    # ------------------------------------------------------------------------------------------ operands

    def operand(self, a: Any) -> Any:
        """Return an operand's form in the graph: the node of a tensor, or a constant."""
        if isinstance(a, Tensor):
            a = self._lift_outside(a)
            source = a.tag if a.level is self else a  # a node, or a tensor from outside
            return source if isinstance(source, Node) else self.attribute(source)
        return self.attribute(as_tensor(a)) if hasattr(a, "__array__") else a

    def _constant(self, leaf: Any) -> Any:
        """Return a leaf of the params as a constant; a tensor, as in `x[t:]`, is read."""
        return self.read(leaf).item() if isinstance(leaf, Tensor) and leaf.level is self else leaf

    def _lift_outside(self, a: Any) -> Any:
        """Return the proxy of an operand that is a tensor from outside, which the code may write to."""
        outside = isinstance(a, Tensor) and a.level is not self and id(a) in self._outside_proxies
        return self._outside_proxies[id(a)][1] if outside else a

    def _argument(self, a: Any, written: dict[int, Node]) -> Any:
        """Return an argument's form in the node of a Function; `written` has the clones of those written to."""
        if not isinstance(a, Tensor):
            return a
        return written[id(a)] if id(a) in written else self.operand(a)

    def _clone_node(self, a: Tensor) -> Node:
        node = self.graph.call_function(_clone, (self.operand(a),))
        self._set_meta(node, a.aval)
        return node

    def _results(self, node: Node, tensors: dict[tuple, Tensor], detached: bool) -> list[Tensor]:
        """Return the proxies of a node's results, given by their paths in the whole result."""
        self._describe(node, tensors[()] if () in tensors else tuple(tensors.values()))
        picks = self._pick_nodes(node, tensors)
        return [self._wrap(picks[path], out, detached) for path, out in tensors.items()]

    def _value_below(self, a: Any) -> Any:
        return a.value if isinstance(a, Tensor) and a.level is self else a

    def attribute(self, tensor: Tensor) -> Node:
        """Return the node that reads a tensor from outside the trace."""
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
        while hasattr(self._home, f"{CONSTANT_NAME}{number}"):
            number += 1
        setattr(self._home, f"{CONSTANT_NAME}{number}", tensor)
        return f"{CONSTANT_NAME}{number}"

    def _pick_nodes(self, node: Node, outs: dict[tuple, Tensor]) -> dict[tuple, Node]:
        """Return the nodes of tensors by their paths in a result, through the nodes of the lists around them."""
        picks = {(): node}
        for path, out in outs.items():
            for depth in range(1, len(path) + 1):
                prefix, source = path[:depth], picks[path[: depth - 1]]
                if prefix not in picks:
                    name = f"{source.name}_{prefix[-1]}"
                    picks[prefix] = self.graph.create_node("call_function", PICK, (source, prefix[-1]), name=name)
                    members = tuple([o for p, o in outs.items() if p[:depth] == prefix])
                    self._describe(picks[prefix], out if prefix == path else members)
        return picks

    def _wrap(self, node: Node, out: Tensor, detached: bool) -> Tensor:
        """Return the result's proxy; a result computed under `no_grad` is detached in the graph too."""
        if detached and is_differentiable(out.dtype):
            node = self.graph.call_function(_detach, (node,))
            self._describe(node, out)
        return make(out, self, node)

    def _describe(self, node: Node, out: Any) -> None:
        tensors = [o for o in out if isinstance(o, Tensor)] if isinstance(out, tuple) else []
        self._set_meta(node, tuple(o.aval for o in tensors) if isinstance(out, tuple) else out.aval)

    def _set_meta(self, node: Node, val: Any) -> None:
        """Record the type of a node's result, and the current source location."""
        node.meta["val"] = val
        node.meta["stack_trace"] = user_line()
        stack = self.calls.current_stack()
        if stack:
            node.meta["nn_module_stack"] = stack
        node.meta.update(copied_meta())


def _copy_once(copies: dict[int, tuple[Tensor, Tensor]], value: Any, a: Any) -> Any:
    """Return a copy of a tensor's value, the same for each use of the tensor, and add both to `copies`."""
    if not isinstance(a, Tensor):
        return a
    if id(a) not in copies:
        copies[id(a)] = a, _clone(value)
    return copies[id(a)][1]


def _check_returned(op: Op, copy: Tensor, proxies: dict[int, Tensor]) -> None:
    if id(copy) not in proxies:
        raise RuntimeError(
            f"{op.name}: forward writes to an argument of shape {copy.shape} that it does not return, which a graph "
            f"can't record; return it, and mark it by ctx.mark_dirty"
        )


def _depends_on_sizes(node: Node) -> bool:
    """Return whether a node depends on ragged sizes: its operator accepts nested arrays, or it has such a size."""
    if isinstance(node.target, Op) and node.target.definition.accepts_nested:
        return True
    inputs: Any = (node.args, node.kwargs)
    return any(isinstance(leaf, SymbolicSize) for leaf in optree.tree_leaves(inputs))


def _check_not_escaped(tensor: Tensor) -> None:
    if tensor.level is not None and not tensor.level.active:
        raise tensor.level.escape_error(tensor)
