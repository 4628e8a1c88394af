"""Rebuild a graph node by node; subclasses override the steps."""

from collections.abc import Callable
from typing import Any

from retrograd.fx.graph_module import GraphModule, tensor_names
from retrograd.fx.interpreter import Interpreter
from retrograd.fx.node import Node
from retrograd.fx.proxy import Proxy
from retrograd.fx.symbolic_tracer import Tracer


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
        self.tracer.end(self._run_all(()), self.module)
        self.tracer.graph.signature = self.graph.signature
        keep = tensor_names(self.module) if self.graph.signature is not None else []
        return GraphModule(self.tracer.home(self.module, keep), self.tracer.graph, keep)

    def run_node(self, node: Node) -> Any:
        """Return the proxy of one node's result."""
        result = super().run_node(node)
        if isinstance(result, Proxy) and not result.node.meta.get("val"):
            result.node.meta = {**result.node.meta, **node.meta}
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
