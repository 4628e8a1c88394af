"""Modes that see operators below automatic differentiation; the names are those of `torch.utils._python_dispatch`."""

from collections.abc import Iterator
from typing import Any

from retrograd.core import current, override_state
from retrograd.core.blocks import generator_block
from retrograd.levels.modes import DispatchModeLevel, Mode, entered_modes


class TensorDispatchMode(Mode):
    """A mode that gets every operator that runs in its block: `__tensor_dispatch__(self, func, types, args, kwargs)`.

    Composite operators and overrides have been resolved, and nothing is recorded in the method: it returns tensors like
    the operator's results, which then join the graph as if the operator had made them.  Backward passes in the block
    are included.  In the method the mode is off, and the modes around it are on.  `types` is empty.

    The method may be named `__torch_dispatch__`, and the class `TorchDispatchMode`, as in PyTorch.

    >>> import retrograd as rg
    >>> class Count(TensorDispatchMode):
    ...     names = []
    ...     def __tensor_dispatch__(self, func, types, args, kwargs):
    ...         self.names.append(func.__name__)
    ...         return func(*args, **kwargs)
    >>> x = rg.ones(2, requires_grad=True)
    >>> with Count() as mode:
    ...     y = (x * 3).sum()
    >>> mode.names, y.requires_grad
    (['mul', 'sum'], True)
    """

    level_type = DispatchModeLevel
    _method_name = "__tensor_dispatch__"

    def __init__(self, _dispatch_key: Any = None) -> None:
        super().__init__()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__torch_dispatch__" in vars(cls) and "__tensor_dispatch__" not in vars(cls):
            cls.__tensor_dispatch__ = vars(cls)["__torch_dispatch__"]  # type: ignore[method-assign]

    def __tensor_dispatch__(self, func: Any, types: tuple, args: tuple = (), kwargs: Any = None) -> Any:
        """Return the result of an operator; a mode defines this."""
        raise NotImplementedError(f"{type(self).__name__}: a mode defines __tensor_dispatch__")


class BaseTensorDispatchMode(TensorDispatchMode):
    """A mode that runs every operator as it is."""

    def __tensor_dispatch__(self, func: Any, types: tuple, args: tuple = (), kwargs: Any = None) -> Any:
        """Return the usual result of an operator."""
        return func(*args, **(kwargs or {}))


TorchDispatchMode = TensorDispatchMode
BaseTorchDispatchMode = BaseTensorDispatchMode


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Return whether a dispatch mode is entered; if not `include_infra_modes`, one that is no infra mode."""
    return any(include_infra_modes or not mode.is_infra_mode() for mode in entered_modes(DispatchModeLevel))


def any_torch_dispatch_mode_on_stack() -> bool:
    """Return whether a dispatch mode is entered."""
    return is_in_torch_dispatch_mode()


def _get_current_dispatch_mode() -> Any:
    """Return the innermost dispatch mode, or None."""
    modes = entered_modes(DispatchModeLevel)
    return modes[-1] if modes else None


def _get_current_dispatch_mode_stack() -> list[Any]:
    """Return the dispatch modes that are entered, the innermost last."""
    return entered_modes(DispatchModeLevel)


@generator_block
def _disable_current_modes() -> Iterator[list[Any]]:
    """Return a block in which no dispatch mode is entered, and which gives the list of those that are."""
    modes, level = _get_current_dispatch_mode_stack(), current().level
    while isinstance(level, DispatchModeLevel):
        level = level.parent
    with override_state("level", level):
        if _get_current_dispatch_mode() is not None:
            raise RuntimeError("_disable_current_modes: a transform is active inside of a dispatch mode")
        yield modes


@generator_block
def _pop_mode_temporarily() -> Iterator[Any]:
    """Return a block in which the innermost dispatch mode is off, and which gives this mode.

    Raises RuntimeError if none is entered, or if another level is inside of it.
    """
    level = current().level
    if not isinstance(level, DispatchModeLevel):
        raise RuntimeError("_pop_mode_temporarily: trying to pop from empty mode stack: no dispatch mode is innermost")
    with override_state("level", level.parent):
        yield level.mode


def return_and_correct_aliasing(func: Any, args: tuple, kwargs: Any, out: Any) -> Any:
    """Return `out`: what a mode returns for a view operator is tracked as a view already."""
    return out
