"""Hooks that run before and after the steps of an optimizer."""

import functools
from collections.abc import Callable
from typing import Any

from retrograd.autograd.profiler import record_function
from retrograd.core import current
from retrograd.core.hooks import RemovableHandle, add_hook, check_callable
from retrograd.foundation.describe_value import describe
from retrograd.foundation.suggestions import suggests_keywords

# The hooks of the steps of all optimizers, which run around an optimizer's own.
_ALL_PRE_HOOKS: dict[int, Callable[..., Any]] = {}
_ALL_POST_HOOKS: dict[int, Callable[..., Any]] = {}


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Run `hook(optimizer, args, kwargs)` before each step of every optimizer, before the optimizer's own hooks.

    >>> import retrograd as rg
    >>> with register_optimizer_step_pre_hook(lambda optimizer, args, kwargs: print(type(optimizer).__name__)):
    ...     rg.optim.SGD([rg.ones(1, requires_grad=True)], lr=0.1).step()
    SGD
    """
    return add_hook(_ALL_PRE_HOOKS, check_callable(hook))


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Run `hook(optimizer, args, kwargs)` after each step of every optimizer, after the optimizer's own hooks."""
    return add_hook(_ALL_POST_HOOKS, check_callable(hook))


def hooks_around_steps(optimizer: Any) -> tuple[dict[int, Any], dict[int, Any]]:
    """Return the hooks before and after an optimizer's steps by the ids of their handles, in their order."""
    own = vars(optimizer)
    return {**_ALL_PRE_HOOKS, **own.get("_pre_hooks", {})}, {**own.get("_post_hooks", {}), **_ALL_POST_HOOKS}


@suggests_keywords
class StepHooks:
    """The hooks of one optimizer's steps; `step` of every subclass runs them."""

    _pre_hooks: dict[int, Callable[..., Any]]
    _post_hooks: dict[int, Callable[..., Any]]
    _is_stepping = False
    _opt_called = False  # whether a step has begun: PyTorch's name, which scripts set to silence its schedulers

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "step" in vars(cls):
            cls.step = _with_hooks(vars(cls)["step"])  # type: ignore[attr-defined]

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Run `hook(optimizer, args, kwargs)` before each step; it may return other (args, kwargs).

        `args` begins with the optimizer, as in PyTorch. RuntimeError in the step, which then changes nothing, if the
        hook returns anything else.

        >>> import retrograd as rg
        >>> optimizer = rg.optim.SGD([rg.ones(1, requires_grad=True)], lr=0.1)
        >>> handle = optimizer.register_step_pre_hook(lambda optimizer, args, kwargs: print("step"))
        >>> optimizer.step()
        step
        >>> handle.remove()
        """
        return add_hook(self.__dict__.setdefault("_pre_hooks", {}), check_callable(hook))

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Run `hook(optimizer, args, kwargs)` after each step."""
        return add_hook(self.__dict__.setdefault("_post_hooks", {}), check_callable(hook))


def _with_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    """Return the step with its hooks; a step that calls that of the base runs them once."""

    @functools.wraps(step)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not self._opt_called:
            self._opt_called = True
        if not current().watchers:
            return _run_hooks(self, step, args, kwargs)
        with record_function(f"Optimizer.step#{type(self).__name__}.step"):
            return _run_hooks(self, step, args, kwargs)

    return run


def _run_hooks(optimizer: Any, step: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run a step between its hooks."""
    pre_hooks, post_hooks = hooks_around_steps(optimizer)
    if not (pre_hooks or post_hooks) or optimizer._is_stepping:
        return step(optimizer, *args, **kwargs)
    optimizer._is_stepping = True
    try:
        given: tuple[tuple, dict[str, Any]] = ((optimizer, *args), kwargs)
        for hook in pre_hooks.values():
            changed = hook(optimizer, *given)
            if changed is not None and not (isinstance(changed, tuple) and len(changed) == 2):
                raise RuntimeError(f"a step's pre-hook must return None or (args, kwargs), got {describe(changed)}")
            given = changed or given
        result = step(*given[0], **given[1])
        for hook in post_hooks.values():
            hook(optimizer, *given)
        return result
    finally:
        optimizer._is_stepping = False
