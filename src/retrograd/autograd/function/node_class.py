"""The class of the ctx of each `Function`, which PyTorch's graph has as the class of its nodes."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Self, cast

from retrograd.autograd.function.context import FunctionCtx
from retrograd.autograd.function.cotangents import align_with_outputs
from retrograd.autograd.node_views import Node, NodeMembers, named_class
from retrograd.core import GradFn
from retrograd.core.graph import node
from retrograd.core.hooks import RemovableHandle


class ContextNode(FunctionCtx, NodeMembers):
    """A ctx that has the members of a node.

    In PyTorch the ctx is the node. Here the graph holds the ctx; the node that users get from the graph is another
    instance with the same attributes, which holds the engine's record as well. If a call is not recorded, its ctx has
    no next_functions, and its hooks never run.
    """

    __slots__ = ("_held",)

    def _as_node(self, fn: GradFn) -> Self:
        """Return the node of a call as users see it: with this ctx's attributes."""
        view: Any = object.__new__(self._class_of_node(fn))
        view.__dict__ = self.__dict__
        view._held = fn
        found: Self = view
        return found

    def _class_of_node(self, fn: GradFn) -> type[Self]:
        kind: type[Self] = named_class(cast(Any, type(self)), fn.name())
        return kind

    @property
    def _record(self) -> GradFn:
        held: GradFn | None = getattr(self, "_held", None) or (self._node and self._node())
        return _unrecorded(self) if held is None else held


class BackwardCFunction(ContextNode):
    """The base class of the ctx of every Function, and of the nodes of Functions.

    >>> import retrograd as rg
    >>> class Double(rg.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return x * 2
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         return g * 2
    >>> y = Double.apply(rg.ones(2, requires_grad=True))
    >>> isinstance(y.grad_fn, rg.autograd.function.BackwardCFunction), type(y.grad_fn) is Double._backward_cls
    (True, True)
    """

    _forward_cls: Any

    def apply(self, *args: Any) -> Any:
        """Run the Function's backward, or its vjp, with this ctx."""
        return self._forward_cls._run_backward(self, args)

    def apply_jvp(self, *args: Any) -> Any:
        """Run the Function's jvp with this ctx."""
        return self._forward_cls.jvp(self, *args)

    def name(self) -> str:
        """Return the name of the node: that of the Function with "Backward"."""
        return type(self).__name__

    def register_hook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call `fn(grad_inputs, grad_outputs)` after backward; a tuple that it returns replaces grad_inputs."""
        ctx = self._attributes()

        @wraps(fn)
        def hook(grad_inputs: tuple, grad_outputs: tuple) -> Any:
            return fn(grad_inputs, tuple(align_with_outputs(grad_outputs, ctx)))

        return super().register_hook(hook)

    def register_prehook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call `fn(grad_outputs)` before backward; a tuple that it returns replaces grad_outputs.

        grad_outputs has None in the place of results that are no tensors, here and in `register_hook`.
        """
        ctx = self._attributes()

        @wraps(fn)
        def hook(grad_outputs: tuple) -> Any:
            result = fn(tuple(align_with_outputs(grad_outputs, ctx)))
            if not isinstance(result, tuple) or len(ctx._outputs) == ctx._num_returned:
                return result
            if len(result) != ctx._num_returned:
                counts = f"(got {len(result)}, but expected {ctx._num_returned})"
                raise RuntimeError(f"hook {fn!r} has returned an incorrect number of values {counts}")
            return tuple([result[index] for index, _, _ in ctx._outputs])

        return super().register_prehook(hook)

    def _attributes(self) -> FunctionCtx:
        """Return a ctx with this one's attributes, which does not hold the engine's record, as a node does."""
        ctx = FunctionCtx()
        ctx.__dict__ = self.__dict__
        return ctx

    def _class_of_node(self, fn: GradFn) -> type[Self]:
        return type(self)


Node.register(ContextNode)


def _unrecorded(ctx: ContextNode) -> GradFn:
    """Return a record without inputs and outputs, for the ctx of a call that is not recorded."""
    fn = node(None, None, {"ctx": ctx}, (), False)
    fn.out_avals = ()
    return fn


def make_backward_class(cls: Any) -> type[BackwardCFunction]:
    """Return the class of the ctx of a Function: MyFnBackward for MyFn."""
    made: Any = type(f"{cls.__name__}Backward", (BackwardCFunction,), {"_forward_cls": cls})
    kind: type[BackwardCFunction] = made
    return kind
