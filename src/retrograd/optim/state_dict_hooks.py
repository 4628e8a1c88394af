"""Hooks that run around `state_dict` and `load_state_dict` of an optimizer."""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

from retrograd.core.hooks import RemovableHandle, add_hook, check_callable

SAVE_PRE, SAVE, LOAD_PRE, LOAD = "_save_pre_hooks", "_save_hooks", "_load_pre_hooks", "_load_hooks"


class StateDictHooks:
    """The hooks of one optimizer's state dicts, each kind in its order."""

    def register_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Run `hook(optimizer)` before `state_dict`; `prepend`: before the hooks that are there."""
        return self._add_state_hook(SAVE_PRE, hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Run `hook(optimizer, state_dict)` after `state_dict`; it may change the dict, or return another.

        >>> import retrograd as rg
        >>> optimizer = rg.optim.SGD([rg.ones(1, requires_grad=True)], lr=0.1)
        >>> handle = optimizer.register_state_dict_post_hook(lambda optimizer, state_dict: {**state_dict, "epoch": 3})
        >>> optimizer.state_dict()["epoch"]
        3
        >>> handle.remove()
        """
        return self._add_state_hook(SAVE, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Run `hook(optimizer, state_dict)` before a dict is loaded, on a shallow copy; it may return another dict."""
        return self._add_state_hook(LOAD_PRE, hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Run `hook(optimizer)` after a dict has been loaded."""
        return self._add_state_hook(LOAD, hook, prepend)

    def _add_state_hook(self, kind: str, hook: Callable[..., Any], prepend: bool) -> RemovableHandle:
        hooks = self.__dict__.setdefault(kind, OrderedDict())
        handle = add_hook(hooks, check_callable(hook))
        if prepend:
            hooks.move_to_end(handle.id, last=False)
        return handle

    def _run_state_hooks(self, kind: str) -> None:
        for hook in list(self.__dict__.get(kind, {}).values()):
            hook(self)

    def _state_dict_by_hooks(self, kind: str, state_dict: Mapping[str, Any]) -> Any:
        """Return the state dict as the hooks of a kind leave it."""
        for hook in list(self.__dict__.get(kind, {}).values()):
            changed = hook(self, state_dict)
            state_dict = state_dict if changed is None else changed
        return state_dict
