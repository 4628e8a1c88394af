"""Hooks that run around `state_dict` and `load_state_dict` of an optimizer."""

from collections.abc import Callable, Mapping
from typing import Any

from retrograd.core.hooks import RemovableHandle
from retrograd.nn.hooks import LOAD, LOAD_PRE, SAVE, SAVE_PRE, Hook, Hooks, of_kind, register_hook


class StateDictHooks:
    """The hooks of one optimizer's state dicts, each kind in its order."""

    _state_hooks: Hooks | None = None

    def register_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Run `hook(optimizer)` before `state_dict`; `prepend`: before the hooks that are there."""
        return self._register_state_hook(Hook(hook, SAVE_PRE), prepend)

    def register_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Run `hook(optimizer, state_dict)` after `state_dict`; it may change the dict, or return another.

        >>> import retrograd as rg
        >>> optimizer = rg.optim.SGD([rg.ones(1, requires_grad=True)], lr=0.1)
        >>> def add_epoch(optimizer, state_dict):
        ...     return {**state_dict, "epoch": 3}
        >>> handle = optimizer.register_state_dict_post_hook(add_epoch)
        >>> optimizer.state_dict()["epoch"]
        3
        >>> handle.remove()
        """
        return self._register_state_hook(Hook(hook, SAVE), prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Run `hook(optimizer, state_dict)` before a dict is loaded, on a shallow copy; it may return another dict."""
        return self._register_state_hook(Hook(hook, LOAD_PRE), prepend)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Run `hook(optimizer)` after a dict has been loaded."""
        return self._register_state_hook(Hook(hook, LOAD), prepend)

    def _register_state_hook(self, hook: Hook, prepend: bool) -> RemovableHandle:
        if self._state_hooks is None:
            self._state_hooks = {}
        return register_hook(self._state_hooks, hook, prepend)

    def _hooks_of_state(self, kind: str) -> list[Hook]:
        return of_kind(self._state_hooks or {}, kind)

    def _run_state_hooks(self, kind: str) -> None:
        for hook in self._hooks_of_state(kind):
            hook.function(self)

    def _state_dict_by_hooks(self, kind: str, state_dict: Mapping[str, Any]) -> Any:
        """Return the state dict as the hooks of a kind leave it."""
        for hook in self._hooks_of_state(kind):
            changed = hook.function(self, state_dict)
            state_dict = state_dict if changed is None else changed
        return state_dict
