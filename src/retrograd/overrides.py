"""Overriding operators: by classes with `__tensor_function__`, and by modes that see every call in a block.

The names are those of `torch.overrides`.  A class or mode may also define its method as `__torch_function__`.
"""

import functools
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import Any

from retrograd.core import Operator, Tensor, current, override_state, registry
from retrograd.core.op import is_foreign
from retrograd.core.overrides import disabled_override, function_result, override_result
from retrograd.levels.modes import FunctionModeLevel, Mode, entered_modes
from retrograd.ops import functions

__all__ = [
    "BaseTensorFunctionMode",
    "BaseTorchFunctionMode",
    "DisableTorchFunction",
    "DisableTorchFunctionSubclass",
    "TensorFunctionMode",
    "TorchFunctionMode",
    "disabled_override",
    "get_default_nowrap_functions",
    "get_ignored_functions",
    "get_overridable_functions",
    "handle_torch_function",
    "has_torch_function",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "redispatch_function",
    "resolve_name",
    "wrap_torch_function",
]


class TensorFunctionMode(Mode):
    """A mode that gets every call of an operator in its block: `__tensor_function__(self, func, types, args, kwargs)`.

    `types` are the classes of the operands that override operators; the method may return anything, and calls
    `func(*args, **kwargs)` to compute the usual result.  In it the mode is off, and the modes around it are on.  Calls
    within composite operators and backward passes are not intercepted.

    >>> import retrograd as rg
    >>> class Logging(TensorFunctionMode):
    ...     def __tensor_function__(self, func, types, args, kwargs):
    ...         print(func.__name__)
    ...         return func(*args, **kwargs)
    >>> with Logging():
    ...     x = rg.ones(2) * 3
    ones
    mul
    """

    level_type = FunctionModeLevel
    _method_name = "__tensor_function__"

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__torch_function__" in vars(cls) and "__tensor_function__" not in vars(cls):
            cls.__tensor_function__ = vars(cls)["__torch_function__"]  # type: ignore[method-assign]

    def __tensor_function__(self, func: Any, types: tuple, args: tuple = (), kwargs: Any = None) -> Any:
        """Return the result of a call; a mode defines this."""
        raise NotImplementedError(f"{type(self).__name__}: a mode defines __tensor_function__")


class BaseTensorFunctionMode(TensorFunctionMode):
    """A mode that runs every call as it is."""

    def __tensor_function__(self, func: Any, types: tuple, args: tuple = (), kwargs: Any = None) -> Any:
        """Return the usual result of a call."""
        return func(*args, **(kwargs or {}))


TorchFunctionMode = TensorFunctionMode
BaseTorchFunctionMode = BaseTensorFunctionMode


class DisableTorchFunctionSubclass(override_state):
    """A block in which subclasses of Tensor override nothing: operators on them return Tensors.

    >>> import retrograd as rg
    >>> class Mine(rg.Tensor): ...
    >>> x = rg.ones(2).as_subclass(Mine)
    >>> with DisableTorchFunctionSubclass():
    ...     type(x * 2) is rg.Tensor
    True
    """

    def __init__(self) -> None:
        super().__init__("overrides_off", 1)


class DisableTorchFunction(override_state):
    """A block in which neither subclasses of Tensor nor function modes override anything."""

    def __init__(self) -> None:
        super().__init__("overrides_off", 2)


def is_tensor_like(inp: Any) -> bool:
    """Return whether an object is a tensor, or of a class that overrides operators."""
    return isinstance(inp, Tensor) or is_foreign(inp)


_skip_next: ContextVar[bool] = ContextVar("skip_next", default=False)


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Return whether a function has to call `handle_torch_function`: an argument or a mode overrides it."""
    if _skip_next.get():
        _skip_next.set(False)
        return False
    mode = current().overrides_off < 2 and bool(entered_modes(FunctionModeLevel))
    return mode or any(is_foreign(a) for a in relevant_args)


def has_torch_function_unary(arg: Any) -> bool:
    """Return `has_torch_function` of one argument."""
    return has_torch_function((arg,))


def has_torch_function_variadic(*relevant_args: Any) -> bool:
    """Return `has_torch_function` of the arguments."""
    return has_torch_function(relevant_args)


def handle_torch_function(public_api: Callable, relevant_args: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
    """Return what the innermost mode, or the classes of the relevant arguments, compute for a function of one's own.

    Modes come first; the mode is off while it computes.  A TypeError if all return NotImplemented.

    >>> import retrograd as rg
    >>> def double(x):
    ...     if has_torch_function((x,)):
    ...         return handle_torch_function(double, (x,), x)
    ...     return x * 2
    >>> class Mine(rg.Tensor): ...
    >>> type(double(rg.ones(2).as_subclass(Mine)))
    <class 'retrograd.overrides.Mine'>
    """
    result = function_result(public_api, relevant_args, args, kwargs)
    return override_result(public_api, [], args, kwargs) if result is NotImplemented else result


def redispatch_function(func: Callable, types: tuple, args: tuple = (), kwargs: dict[str, Any] | None = None) -> Any:
    """Return what a function computes itself: nothing overrides this call, but calls that the function makes.

    For use in `__torch_function__` with its own arguments.  An operator makes no such calls.

    >>> import retrograd as rg
    >>> def double(x):
    ...     return handle_torch_function(double, (x,), x) if has_torch_function((x,)) else x * 2
    >>> class Logging(rg.Tensor):
    ...     @classmethod
    ...     def __torch_function__(cls, func, types, args=(), kwargs=None):
    ...         print(func.__name__)
    ...         return redispatch_function(func, types, args, kwargs)
    >>> double(rg.ones(2).as_subclass(Logging))
    double
    mul
    tensor([2., 2.])
    """
    if isinstance(func, Operator):
        with override_state("overrides_off", 2):
            return func(*args, **(kwargs or {}))
    token = _skip_next.set(True)
    try:
        return func(*args, **(kwargs or {}))
    finally:
        _skip_next.reset(token)


def wrap_torch_function(dispatcher: Callable) -> Callable:
    """Decorator: let classes and modes override a function; `dispatcher` returns its relevant arguments."""

    def decorate(function: Callable) -> Callable:
        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            relevant = tuple(dispatcher(*args, **kwargs))
            if has_torch_function(relevant):
                return handle_torch_function(run, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return run

    return decorate


def get_overridable_functions() -> dict[str, list[Callable]]:
    """Return the operators and functions that classes and modes override, by namespace: "", "linalg", "Tensor" ..."""
    found: dict[str, list[Callable]] = {}
    for name, function in functions.functions.items():
        if hasattr(function, "without_override"):
            found.setdefault(name.rpartition(".")[0], []).append(function)
    for operator in registry.values():
        for name in operator.public_names:
            found.setdefault(name.rpartition(".")[0], []).append(operator)
        if operator.method_names:
            found.setdefault("Tensor", []).append(operator)
    return found


def get_ignored_functions() -> set[Callable]:
    """Return the public functions that are not overridden themselves; the operators that they call are."""
    return {function for function in functions.functions.values() if not hasattr(function, "without_override")}


def get_default_nowrap_functions() -> set[Callable]:
    """Return the functions whose results an overriding class does not wrap: those that read `.grad` of a tensor."""
    return {Tensor.grad.__get__}


def resolve_name(f: Any) -> str | None:
    """Return the dotted name of an operator or public function; None for others.

    >>> import retrograd as rg
    >>> resolve_name(rg.mul), resolve_name(rg.linalg.det)
    ('retrograd.mul', 'retrograd.linalg.det')
    """
    if isinstance(f, Operator) and f.public_names:
        return f"retrograd.{f.public_names[0]}"
    known = next((name for name, function in functions.functions.items() if function is f), None)
    if known is None and callable(f) and is_tensor_method_or_property(f):
        known = f"Tensor.{f.__name__}"
    return known and f"retrograd.{known}"


def is_tensor_method_or_property(func: Callable) -> bool:
    """Return whether a function is a method of tensors, or reads an attribute of theirs (`Tensor.grad.__get__`).

    Operators that are methods are the same objects.
    """
    name = getattr(func, "__name__", "")
    if name == "__get__":
        return any(getattr(func, "__self__", None) is value for base in Tensor.__mro__ for value in vars(base).values())
    return getattr(Tensor, name, None) is func


def _get_current_function_mode() -> Any:
    """Return the innermost function mode, or None."""
    return next(iter(_get_current_function_mode_stack()[::-1]), None)


def _get_current_function_mode_stack() -> list[Any]:
    """Return the function modes that are entered, the innermost last."""
    return entered_modes(FunctionModeLevel)


def _enable_torch_function() -> override_state:
    """Return a block in which classes and modes override functions again."""
    return override_state("overrides_off", 0)
