"""Hooks: functions that run before and after a module's forward, and may replace its arguments and result."""

from collections.abc import Callable
from typing import Any, NamedTuple

from retrograd.core.hooks import RemovableHandle


class Hook(NamedTuple):
    """A registered function, and whether it receives keyword arguments."""

    function: Callable[..., Any]
    with_kwargs: bool


Hooks = dict[int, Hook]


def register_hook(hooks: Hooks, hook: Hook, prepend: bool) -> RemovableHandle:
    """Register a hook, after or before the existing ones."""
    if not callable(hook.function):
        raise TypeError(f"a hook must be callable, got {type(hook.function).__name__}")
    others = dict(hooks) if prepend else {}
    if prepend:
        hooks.clear()
    handle = RemovableHandle(hooks, hook)
    hooks.update(others)
    return handle


def run_forward_pre_hooks(
    module: Any, hooks: Hooks, args: tuple, kwargs: dict[str, Any]
) -> tuple[tuple, dict[str, Any]]:
    """Run the forward pre-hooks, and return the arguments, which hooks may replace."""
    for hook in list(hooks.values()):
        if hook.with_kwargs:
            args, kwargs = _check_args_and_kwargs(hook.function(module, args, kwargs), args, kwargs)
        else:
            result = hook.function(module, args)
            if result is not None:
                args = result if isinstance(result, tuple) else (result,)
    return args, kwargs


def _check_args_and_kwargs(result: Any, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
    if result is None:
        return args, kwargs
    if not (isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], dict)):
        raise RuntimeError(f"a forward pre-hook with_kwargs must return None or (args, kwargs), got {result!r}")
    return result


def run_forward_hooks(module: Any, hooks: Hooks, args: tuple, kwargs: dict[str, Any], output: Any) -> Any:
    """Run the forward hooks, and return the output, which hooks may replace."""
    for hook in list(hooks.values()):
        given = (args, kwargs, output) if hook.with_kwargs else (args, output)
        result = hook.function(module, *given)
        output = output if result is None else result
    return output
