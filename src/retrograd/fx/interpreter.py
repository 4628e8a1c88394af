"""Running a graph node by node, with every step open to change."""

from collections.abc import Iterator
from typing import Any

from retrograd.core import Op
from retrograd.fx.graph_module import GraphModule
from retrograd.fx.node import Node, map_nodes


class Interpreter:
    """Runs a `GraphModule` one node after another; subclasses override the steps that they do otherwise.

    The steps are `run_node`, which calls the method that is named as the node's op: `placeholder`,
    `get_attr`, `call_function` or `output`.  `env` holds the results that are still needed, by node.  Errors
    say which node was run and where it was made.

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

    def __init__(self, module: GraphModule) -> None:
        self.module = module
        self.env: dict[Node, Any] = {}
        self.args_iter: Iterator = iter(())

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """The result for the arguments that the module itself takes."""
        signature = self.module.graph.signature
        if signature is None:
            return self._run_all(args)
        return signature.restore(self._run_all(signature.flatten(args, kwargs)))

    def _run_all(self, args: Any) -> Any:
        nodes = list(self.module.graph.nodes)
        self.env, self.args_iter = {}, iter(args)
        remaining = {node: len(node.users) for node in nodes}
        for node in nodes:
            self.env[node] = result = self._noting(node)
            for used in node.all_input_nodes:
                remaining[used] -= 1
            for done in (*node.all_input_nodes, node):
                if not remaining[done]:
                    del self.env[done]
        return result

    def _noting(self, node: Node) -> Any:
        try:
            return self.run_node(node)
        except Exception as error:
            place = node.meta.get("stack_trace")
            error.add_note(f"while running {node.format_node()}" + (f", made at {place}" if place else ""))
            raise

    def run_node(self, node: Node) -> Any:
        """The result of one node, whose inputs are in `env`."""
        args, kwargs = map_nodes((node.args, node.kwargs), self.env.__getitem__)
        return getattr(self, node.op)(node.target, args, kwargs)

    def placeholder(self, target: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The next argument; a TypeError if there is none."""
        for value in self.args_iter:
            return value
        raise TypeError(f"run: missing an argument for {target!r}")

    def get_attr(self, target: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The module's parameter, buffer or constant of that qualified name."""
        path, _, name = target.rpartition(".")
        return getattr(self.module.get_submodule(path), name)

    def call_function(self, target: Op, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The result of an operator."""
        return target(*args, **kwargs)

    def output(self, target: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        """What the graph returns."""
        return args[0]
