"""Hooks that run before and after the steps of an optimizer."""

import functools
from collections.abc import Callable
from typing import Any

from retrograd.core.hooks import RemovableHandle, add_hook, check_callable
from retrograd.foundation.describe_value import describe
from retrograd.foundation.suggestions import SuggestsKeywords


class StepHooks(SuggestsKeywords):
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
        pre_hooks, post_hooks = self.__dict__.get("_pre_hooks"), self.__dict__.get("_post_hooks")
        if (not pre_hooks and not post_hooks) or self._is_stepping:
            return step(self, *args, **kwargs)
        self._is_stepping = True
        try:
            given: tuple[tuple, dict[str, Any]] = ((self, *args), kwargs)
            for hook in list((pre_hooks or {}).values()):
                changed = hook(self, *given)
                if changed is None:
                    continue
                if not (isinstance(changed, tuple) and len(changed) == 2):
                    raise RuntimeError(f"a step's pre-hook must return None or (args, kwargs), got {describe(changed)}")
                given = changed
            result = step(*given[0], **given[1])
            for hook in list((post_hooks or {}).values()):
                hook(self, *given)
            return result
        finally:
            self._is_stepping = False

    return run
