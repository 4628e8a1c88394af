"""Modes: blocks in which an object sees the calls of the program, or the operators below automatic differentiation."""

from inspect import getattr_static
from typing import Any

from retrograd.core import Operator, Tensor, at, call, current
from retrograd.core.blocks import Blocks
from retrograd.core.errors import OperandTypeError
from retrograd.core.level import TransparentLevel, graph_level
from retrograd.core.op import AuxOutput, is_foreign
from retrograd.core.overrides import no_implementation, overriding_types
from retrograd.core.record import record
from retrograd.core.state import is_recording
from retrograd.core.tensor import alias
from retrograd.core.views import is_view_of, requires_grad_synced, track_view
from retrograd.foundation.describe_value import describe


class ModeLevel(TransparentLevel):
    """The level of one entered mode.  Its handlers run one level below, so what they call reaches the outer modes."""

    paused = True  # it has no tangents, which a user's Function would have to compute

    def __init__(self, mode: Any) -> None:
        self.mode = mode

    def __enter__(self) -> Any:
        super().__enter__()
        return self.mode

    def on_write(self, x: Tensor, src: Tensor | None) -> None:
        """Do nothing: that a level has this method makes in-place methods call their operators, which modes see."""


class FunctionModeLevel(ModeLevel):
    """The level of a function mode, which gets calls before anything else does."""

    def intercept(self, op: Operator, args: tuple, params: dict[str, Any]) -> Any:
        """Return what the mode computes; it overrides nothing in backward passes, which are no calls of the program."""
        if current().overrides_off == 2:  # 1 disables subclasses only, 2 the modes too
            return NotImplemented
        types = overriding_types([a for a in args if is_foreign(a)])
        given, named = op.call_arguments(args, params)
        rule = op.override_for_class(type(self.mode))
        if rule is not None:
            return rule(self.mode, op, types, given, named)
        return call_mode(self.mode, op, types, given, named)

    def intercept_function(self, func: Any, types: tuple, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Return what the mode computes for a function that is no operator, or NotImplemented."""
        return call_mode(self.mode, func, types, args, kwargs)

    def process(self, op: Operator, args: tuple, params: dict[str, Any]) -> Any:
        """Run an operator that is no call of the program, as in a backward pass."""
        return call(op, args, params)


def call_mode(mode: Any, func: Any, types: tuple, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Return what a function mode computes for a call, or NotImplemented, which leaves it to the classes of operands.

    Raises TypeError if it returns NotImplemented and no operand's class overrides operators.
    """
    result = mode.__tensor_function__(func, types, args, kwargs)
    if result is NotImplemented and not types:
        raise no_implementation(func, [f"the mode {type(mode).__name__}"])
    return result


class DispatchModeLevel(ModeLevel):
    """The level of a dispatch mode, which gets operators below the graph: it computes, the level below records."""

    def process(self, op: Operator, args: tuple, params: dict[str, Any]) -> Any:
        """Return what the mode computes, recorded as the operator's own result."""
        given, named = op.call_arguments(args, params)
        # The graph is recorded from the mode's result below, so nothing inside the handler is recorded.
        with at(self.parent, False):
            rule = op.override_for_class(type(self.mode))
            if rule is None:
                result = self.mode.__tensor_dispatch__(op, (), given, named)
            else:
                result = rule(self.mode, op, (), given, named)
            if result is NotImplemented:
                raise no_implementation(op, [f"the mode {type(self.mode).__name__}"])
            out = _without_history(op, op.flat_result(result))
        level = graph_level()
        requires_grad = [isinstance(a, Tensor) and requires_grad_synced(a) and a.level is level for a in args]
        if op.view and isinstance(args[0], Tensor) and is_view_of(out.value, args[0].value):
            track_view(op, out, args[0], params, current())
        if any(requires_grad) and is_recording() and op.differentiable:
            record(op, args, params, out, level)
        return out


def _without_history(op: Operator, out: Any) -> Any:
    """Return the tensors of a flat result as new ones, which the level below can record."""
    if type(out) is tuple:
        return tuple([o if isinstance(o, AuxOutput) else _without_history(op, o) for o in out])
    if not isinstance(out, Tensor):
        raise OperandTypeError(
            f"{op.name}: Unable to cast {describe(out)} to Tensor; a dispatch mode must return tensors like the "
            f"operator, got {type(out).__name__}"
        )
    fresh = alias(out, None)
    if fresh.level is None:
        fresh.tag = None  # on the ground the tag says where a value left its graph; this one is recorded below
    return fresh


class Mode(Blocks):
    """A mode that a `with` statement enters, any number of times and nested."""

    level_type: type[ModeLevel]
    _method_name: str  # of the method that a subclass defines

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        self = super().__new__(cls)
        Blocks.__init__(self)
        return self

    def __init__(self) -> None:
        pass

    def _block(self) -> ModeLevel:
        if isinstance(getattr_static(type(self), self._method_name), classmethod):
            torch_name = self._method_name.replace("tensor", "torch")
            raise RuntimeError(
                f"{type(self).__name__}: Defining your mode's `{torch_name}` as a classmethod is not supported, please "
                f"make it a plain method"
            )
        return self.level_type(self)

    @classmethod
    def is_infra_mode(cls) -> bool:
        """Return whether the mode is a part of a tool, which `is_in_torch_dispatch_mode(False)` leaves out."""
        return False

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Any:
        """Return a new mode: PyTorch's older way to write `with Mode():`."""
        return cls(*args, **kwargs)


def entered_modes(level_type: type[ModeLevel]) -> list[Any]:
    """Return the modes of one kind that are entered, the innermost last."""
    found, level = [], current().level
    while level is not None:
        if isinstance(level, level_type):
            found.append(level.mode)
        level = level.parent
    return found[::-1]
