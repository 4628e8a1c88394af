"""Interpret a graph node by node, or rebuild it, with overridable steps."""

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

from retrograd.fx.graph import Graph
from retrograd.fx.graph_module import GraphModule, tensor_names
from retrograd.fx.node import Node, map_nodes
from retrograd.fx.proxy import Proxy
from retrograd.fx.symbolic_tracer import Tracer
from retrograd.fx.traceback import set_current_meta
from retrograd.nn.module import Module


class MissingArgumentError(RuntimeError, TypeError):
    """An argument without a default is missing: PyTorch raises RuntimeError, and Python functions raise TypeError."""


class MissingTargetError(RuntimeError, AttributeError):
    """A node names an attribute that the module lacks: RuntimeError in PyTorch, AttributeError in Python."""


def _add_to_message(error: Exception, note: str) -> None:
    """Add a line to the message of an error, or a note if its class makes the message of other parts."""
    if type(error).__str__ is BaseException.__str__ and all(isinstance(arg, str) for arg in error.args[:1]):
        error.args = (f"{error.args[0]}\n\n{note}" if error.args else note, *error.args[1:])
    else:
        error.add_note(note)


class Interpreter:
    """Runs a `GraphModule` one node after another; subclasses override steps.

    The steps are `run_node`, which calls the method named like the node's op: `placeholder`, `get_attr`,
    `call_function`, `call_module`, `call_method` or `output`, each with `(target, args, kwargs)`.  `env` maps nodes to
    the results that are still needed, at the end the output, or to all results if `garbage_collect_values` is False.
    `graph` replaces the module's own.  Errors name the node that was run and the line where it was created.

    >>> import retrograd as rg
    >>> from retrograd import fx
    >>> class Counting(fx.Interpreter):
    ...     calls = 0
    ...
    ...     def call_function(self, target, args, kwargs):
    ...         self.calls += 1
    ...         return super().call_function(target, args, kwargs)
    >>> counting = Counting(fx.trace(lambda x: (x + 1) * x, rg.ones(2)))
    >>> counting.run(rg.tensor([1.0, 2.0])), counting.calls
    (tensor([2., 6.]), 2)
    """

    def __init__(self, module: Module, garbage_collect_values: bool = True, graph: Graph | None = None) -> None:
        found = graph if graph is not None else getattr(module, "graph", None)
        if not isinstance(found, Graph):
            raise TypeError(f"Interpreter: {type(module).__name__} has no graph; see fx.trace and fx.symbolic_trace")
        self.module = module
        self.graph = found
        self.garbage_collect_values = garbage_collect_values
        self.env: dict[Node, Any] = {}
        self.args_iter: Iterator = iter(())

    @cached_property
    def submodules(self) -> dict[str, Module]:
        """Return the modules that `call_module` calls, by the targets of their nodes."""
        return dict(self.module.named_modules())

    def run(
        self,
        *args: Any,
        initial_env: Mapping[Node, Any] | None = None,
        enable_io_processing: bool = True,
        **kwargs: Any,
    ) -> Any:
        """Return the result for the arguments that the module itself takes.

        `initial_env` has values of nodes, which are then not run.  With all values that later nodes need, a run
        continues from the middle of the graph.  Without `enable_io_processing` the arguments are the values of the
        placeholders, and the result is the value of the output node: see `CodeGen`.
        """
        signature = self.graph.signature
        if not enable_io_processing:
            return self._run_all([*args, *_order_kwargs(self.graph, len(args), kwargs)], initial_env)
        if signature is None:
            inputs = self.graph.process_inputs(*args)
            return self.graph.process_outputs(
                self._run_all([*inputs, *_order_kwargs(self.graph, len(inputs), kwargs)], initial_env)
            )
        inputs = signature.flatten(args, kwargs)
        return signature.finish(self._run_all(inputs, initial_env), inputs, self.module)

    def boxed_run(self, args_list: list) -> Any:
        """Run on a list of arguments, which is emptied, so that each is freed after its last use.

        Raises RuntimeError, with the list unchanged, for too many or too few arguments.
        """
        if not isinstance(args_list, list):
            raise TypeError(f"boxed_run: expected the arguments in a list, got {type(args_list).__name__}")
        signature = self.graph.signature
        given = list(args_list) if signature is None else signature.flatten(tuple(args_list), {})
        if signature is None:
            self._check_count(len(given))
        args_list.clear()
        if signature is None:
            return self._run_all(_pop_in_order(given))
        kept = given.copy() if signature.mutations else []  # targets of writes are needed at the end
        return signature.finish(self._run_all(_pop_in_order(given)), kept, self.module)

    def _check_count(self, given: int) -> None:
        """Check that `given` values are enough for the placeholders without defaults, and not too many."""
        inputs = self.graph.find_nodes(op="placeholder")
        required = [str(n.target) for n in inputs[given:] if not n.args and not n.target.startswith("*")]
        if required:
            raise RuntimeError(f"boxed_run: missing arguments: {', '.join(required)}")
        if given > len(inputs) and not any(n.target.startswith("*") for n in inputs):
            raise RuntimeError(f"boxed_run: extra arguments: expected {len(inputs)}, got {given}")

    def _run_all(self, args: Iterable, initial_env: Mapping[Node, Any] | None = None) -> Any:
        nodes = list(self.graph.nodes)
        self.env, self.args_iter = dict(initial_env or {}), iter(args)
        remaining = {node: len(node.users) for node in nodes}
        result = None
        for node in nodes:
            if node not in self.env:
                self.env[node] = self._run_node_with_note(node)
            result = self.env[node] if node.op == "output" else None
            if self.garbage_collect_values:
                self._free_unused(node, remaining)
        return result

    def _free_unused(self, node: Node, remaining: dict[Node, int]) -> None:
        """Drop the values that are not used after a node."""
        for used in node.all_input_nodes:
            remaining[used] -= 1
        for done in (*node.all_input_nodes, node):
            if not remaining[done] and done.op != "output":
                self.env.pop(done, None)

    def _run_node_with_note(self, node: Node) -> Any:
        try:
            with set_current_meta(node):
                return self.run_node(node)
        except Exception as error:
            location = node.meta.get("stack_trace")
            note = f"While executing {node.format_node()}" + (f", made at {location}" if location else "")
            _add_to_message(error, note)
            raise

    def run_node(self, n: Node) -> Any:
        """Return the result of one node, whose inputs are in `env`."""
        return getattr(self, n.op)(n.target, *self.fetch_args_kwargs_from_env(n))

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple, dict[str, Any]]:
        """Return the arguments of a node, with nodes replaced by their values."""
        args, kwargs = self.map_nodes_to_values((n.args, n.kwargs), n)
        return args, kwargs

    def map_nodes_to_values(self, args: Any, n: Node) -> Any:
        """Return nested containers and slices with nodes replaced by values; `n` is the node that uses them.

        Raises RuntimeError for a node that has no value.
        """

        def value(node: Node) -> Any:
            if node not in self.env:
                raise RuntimeError(f"{n.name} uses {node.name}, which has no value; graph.lint() may say why")
            return self.env[node]

        return map_nodes(args, value)

    def fetch_attr(self, target: str) -> Any:
        """Return the module's parameter, buffer, constant or submodule of that qualified name.

        Raises MissingTargetError, a RuntimeError and AttributeError, if there is none.
        """
        value: Any = self.module
        path: list[str] = []
        for name in target.split("."):
            path.append(name)
            if not hasattr(value, name):
                raise MissingTargetError(f"Node referenced nonexistent target {'.'.join(path)}")
            value = getattr(value, name)
        return value

    def placeholder(self, target: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Return the next argument, or its default; `*name` returns all remaining ones.

        Raises MissingArgumentError, a RuntimeError and TypeError, if there is neither.
        """
        if target.startswith("**"):
            return dict(self.args_iter)
        if target.startswith("*"):
            return tuple(self.args_iter)
        for value in self.args_iter:
            if value is not MISSING:
                return value
            break
        if args:
            return args[0]
        raise MissingArgumentError(f"Expected positional argument for parameter {target}, but one was not passed in!")

    def get_attr(self, target: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Return the module's parameter, buffer or constant of that qualified name."""
        return self.fetch_attr(target)

    def call_function(self, target: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Return the result of an operator or a function."""
        return target(*args, **kwargs)

    def call_module(self, target: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Return the result of the submodule of that qualified name."""
        return self.fetch_attr(target)(*args, **kwargs)

    def call_method(self, target: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Return the result of a method of the first argument."""
        return getattr(args[0], target)(*args[1:], **kwargs)

    def output(self, target: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Return the result of the graph."""
        return args[0]


class Transformer(Interpreter):
    """An `Interpreter` whose values are proxies, so that running writes a new graph; see `transform()`.

    An overridden step may call any other step, and compute with proxies; its result replaces the node's result.  The
    metadata of the old node is copied to the new one.

    >>> import retrograd as rg
    >>> from retrograd import fx
    >>> class Negated(fx.Transformer):
    ...     def call_method(self, target, args, kwargs):
    ...         return -args[0] if target == "exp" else super().call_method(target, args, kwargs)
    >>> module = Negated(fx.symbolic_trace(lambda x: x.exp() + x.sin())).transform()
    >>> [node.name for node in module.graph.nodes]
    ['x', 'neg', 'sin', 'add', 'output']
    """

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.tracer = Tracer()

    def transform(self) -> GraphModule:
        """Return the module of the new graph; it shares parameters and submodules with the old one."""
        self.tracer.begin(self.module)
        self.tracer.end(self._run_all(()), self.module, self.graph.output_node().type)
        self.tracer.graph.signature = self.graph.signature
        self.tracer.graph.set_codegen(copy.deepcopy(self.graph._codegen))
        keep = tensor_names(self.module) if self.graph.signature is not None else []
        return GraphModule(self.tracer.home(self.module, keep), self.tracer.graph, keep=keep)

    def run_node(self, n: Node) -> Any:
        """Return the proxy of one node's result."""
        result = super().run_node(n)
        if isinstance(result, Proxy) and not result.node.meta.get("val"):
            result.node.meta = {**result.node.meta, **n.meta}
        return result

    def placeholder(self, target: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Return the proxy of an input of the new graph."""
        return self.tracer.create_proxy("placeholder", target, args, kwargs)

    def get_attr(self, target: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Return the proxy of an attribute of the module."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_function(self, target: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Return the proxy of a call of an operator or a function."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def call_module(self, target: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Return the proxy of a call of a submodule."""
        return self.tracer.create_proxy("call_module", target, args, kwargs)

    def call_method(self, target: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Return the proxy of a call of a method of the first argument."""
        return self.tracer.create_proxy("call_method", target, args, kwargs)


MISSING = object()  # marks an omitted argument


def _pop_in_order(values: list) -> Iterator:
    """Yield the values in order, removing each from the list."""
    values.reverse()
    while values:
        yield values.pop()


def _order_kwargs(graph: Graph, given: int, kwargs: dict[str, Any]) -> Iterator:
    """Return the arguments by name in the order of the placeholders, after those given by position."""
    rest = dict(kwargs)
    for node in graph.find_nodes(op="placeholder")[given:]:
        if node.target.startswith("**"):
            yield from rest.items()
            rest = {}
        elif not node.target.startswith("*") and kwargs:
            yield rest.pop(node.target, MISSING)
    if rest:
        raise TypeError(f"run: unexpected arguments {', '.join(map(repr, rest))}")
