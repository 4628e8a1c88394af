"""The class of the ctx of each `Function`, which PyTorch's graph has as the class of its nodes."""

from collections.abc import Callable
from typing import Any

from retrograd.autograd.function.context import FunctionCtx
from retrograd.core import GradFn
from retrograd.core.hooks import RemovableHandle, add_hook


class _ContextClass(type):
    """A class whose instances include the nodes that hold one as their ctx."""

    def __instancecheck__(cls, instance: Any) -> bool:
        if isinstance(instance, GradFn) and instance.rules is None:
            instance = instance.params.get("ctx")
        return super().__instancecheck__(instance)


class BackwardCFunction(FunctionCtx, metaclass=_ContextClass):
    """The base class of the ctx of every Function; nodes of Functions are instances too.

    In PyTorch the ctx is the node.  So a ctx has the members of a node; if the call is not recorded, it has no
    next_functions, and its hooks never run.

    >>> import retrograd as rg
    >>> class Double(rg.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return x * 2
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         return g * 2
    >>> y = Double.apply(rg.ones(2, requires_grad=True))
    >>> isinstance(y.grad_fn, rg.autograd.function.BackwardCFunction), Double._backward_cls.__name__
    (True, 'DoubleBackward')
    """

    _forward_cls: Any

    def apply(self, *args: Any) -> Any:
        """Run the Function's backward, or its vjp, with this ctx."""
        return self._forward_cls._backward_method()(self, *args)

    def apply_jvp(self, *args: Any) -> Any:
        """Run the Function's jvp with this ctx."""
        return self._forward_cls.jvp(self, *args)

    def name(self) -> str:
        """Return the name of the node: that of the Function with "Backward"."""
        return type(self).__name__

    def _graph_node(self) -> GradFn | None:
        return None if self._node is None else self._node()

    @property
    def next_functions(self) -> tuple:
        """Pairs (node that made an input, number of its output), as on the node."""
        node: Any = self._graph_node()
        return () if node is None else node.next_functions

    @property
    def metadata(self) -> dict:
        """The dict of the node for the user's own data."""
        node: Any = self._graph_node()
        return {} if node is None else node.metadata

    def register_hook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call `fn(grad_inputs, grad_outputs)` after the node has run."""
        node: Any = self._graph_node()
        return add_hook({}, fn) if node is None else node.register_hook(fn)

    def register_prehook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call `fn(grad_outputs)` before the node runs."""
        node: Any = self._graph_node()
        return add_hook({}, fn) if node is None else node.register_prehook(fn)


def make_backward_class(cls: Any) -> type[BackwardCFunction]:
    """Return the class of the ctx of a Function: MyFnBackward for MyFn."""
    made: Any = _ContextClass(f"{cls.__name__}Backward", (BackwardCFunction,), {"_forward_cls": cls})
    kind: type[BackwardCFunction] = made
    return kind
