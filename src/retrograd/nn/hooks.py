"""Hooks: functions that run before and after a module's forward, and may replace its arguments and result."""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any, NamedTuple

from retrograd.core.hooks import RemovableHandle, add_hook, check_callable
from retrograd.foundation.describe_value import describe
from retrograd.foundation.source_location import warn_user

FORWARD_PRE, FORWARD, BACKWARD_PRE, BACKWARD = "forward pre", "forward", "backward pre", "backward"
COMPILED = "compiled"  # the compiled call of a module, which replaces all the others: see `Module.compile`
SAVE_PRE, SAVE, LOAD_PRE, LOAD = "state_dict pre", "state_dict", "load_state_dict pre", "load_state_dict"

HOOK_DICTS = {  # PyTorch's dicts of hooks: the attribute of a module that has them, and their kind
    "_backward_pre_hooks": ("_call_hooks", BACKWARD_PRE),
    "_backward_hooks": ("_call_hooks", BACKWARD),
    "_forward_hooks": ("_call_hooks", FORWARD),
    "_forward_pre_hooks": ("_call_hooks", FORWARD_PRE),
    "_state_dict_hooks": ("_state_hooks", SAVE),
    "_state_dict_pre_hooks": ("_state_hooks", SAVE_PRE),
    "_load_state_dict_pre_hooks": ("_state_hooks", LOAD_PRE),
    "_load_state_dict_post_hooks": ("_state_hooks", LOAD),
}


class Hook(NamedTuple):
    """A registered function, its kind, and its options.

    It may receive keyword arguments, run after exceptions too, and replace the state dict that it is called with.
    """

    function: Callable[..., Any]
    kind: str
    with_kwargs: bool = False
    always_call: bool = False
    replaces: bool = False


Hooks = dict[int, Hook]
GLOBAL_HOOKS: Hooks = {}  # the hooks of the calls of all modules, which run before a module's own: see `global_hooks`
# Functions of a module, a name and the member that is registered by this name.
Registrations = dict[int, Callable[[Any, str, Any], Any]]
PARAMETER_HOOKS: Registrations = {}
BUFFER_HOOKS: Registrations = {}
MODULE_HOOKS: Registrations = {}


def of_kind(hooks: Hooks, kind: str) -> list[Hook]:
    """Return the hooks of a kind, in their order."""
    return [hook for hook in hooks.values() if hook.kind == kind]


class HooksOfKind(MutableMapping[int, Callable[..., Any]]):
    """The functions of the hooks of one kind by their handles' ids; removing one here unregisters it.

    >>> from retrograd import nn
    >>> layer = nn.ReLU()
    >>> handle = layer.register_forward_hook(print)
    >>> list(layer._forward_hooks) == [handle.id], len(layer._forward_pre_hooks)
    (True, 0)
    >>> layer._forward_hooks.clear()
    >>> len(layer._forward_hooks)
    0
    """

    def __new__(cls, hooks: Any = (), kind: str | None = None) -> Any:
        """Return the hooks of a kind; without one a dict, for programs that make one by `type(hooks)()`."""
        return OrderedDict(hooks) if kind is None else super().__new__(cls)

    def __init__(self, hooks: Hooks, kind: str) -> None:
        self._hooks, self._kind = hooks, kind

    def __getitem__(self, key: int) -> Callable[..., Any]:
        hook = self._hooks[key]
        if hook.kind != self._kind:
            raise KeyError(key)
        return hook.function

    def __setitem__(self, key: int, function: Callable[..., Any]) -> None:
        check_callable(function)
        self._hooks[key] = Hook(function, self._kind)

    def __delitem__(self, key: int) -> None:
        self[key]  # raises KeyError for a hook of another kind
        del self._hooks[key]

    def __iter__(self) -> Iterator[int]:
        return iter([key for key, hook in self._hooks.items() if hook.kind == self._kind])

    def __len__(self) -> int:
        return len(of_kind(self._hooks, self._kind))

    def replace(self, functions: Mapping[int, Callable[..., Any]]) -> None:
        """Let these be all hooks of the kind; those of a module keep their options."""
        if isinstance(functions, HooksOfKind):
            hooks = {key: functions._hooks[key]._replace(kind=self._kind) for key in functions}
        else:
            hooks = {key: Hook(check_callable(function), self._kind) for key, function in functions.items()}
        self.clear()
        self._hooks.update(hooks)

    def __repr__(self) -> str:
        return repr(dict(self))


def register_hook(hooks: Hooks, hook: Hook, prepend: bool = False) -> RemovableHandle:
    """Register a hook, after or before the existing ones."""
    check_callable(hook.function)
    others = dict(hooks) if prepend else {}
    if prepend:
        hooks.clear()
    handle = add_hook(hooks, hook)
    hooks.update(others)
    return handle


def registered_member(hooks: Registrations, module: Any, name: str, value: Any) -> Any:
    """Return the member that is registered by a name, which the hooks of registrations may replace."""
    for hook in hooks.values():
        result = hook(module, name, value)
        value = value if result is None else result
    return value


def run_forward_pre_hooks(
    module: Any, hooks: Hooks, args: tuple, kwargs: dict[str, Any]
) -> tuple[tuple, dict[str, Any]]:
    """Run the forward pre-hooks, and return the arguments, which hooks may replace."""
    for hook in of_kind(hooks, FORWARD_PRE):
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
        raise RuntimeError(f"a forward pre-hook with_kwargs must return None or (args, kwargs), got {describe(result)}")
    return result


def run_forward_hooks(
    module: Any, hooks: Hooks, args: tuple, kwargs: dict[str, Any], output: Any, called: list[Hook]
) -> Any:
    """Run the forward hooks, add each to `called`, and return the output, which hooks may replace."""
    for hook in of_kind(hooks, FORWARD):
        called.append(hook)
        given = (args, kwargs, output) if hook.with_kwargs else (args, output)
        result = hook.function(module, *given)
        output = output if result is None else result
    return output


def run_hooks_after_exception(
    module: Any, hooks: Hooks, args: tuple, kwargs: dict[str, Any], called: list[Hook]
) -> None:
    """Run the hooks that are always called and were not yet, after a call raised; their exceptions become warnings."""
    for hook in [hook for hook in hooks.values() if hook.always_call and hook not in called]:
        try:
            hook.function(module, *((args, kwargs, None) if hook.with_kwargs else (args, None)))
        except Exception as error:
            warn_user(f"a forward hook with always_call=True raised {error!r}; it was ignored")


def run_state_hooks(module: Any, state: Any, prefix: str, metadata: dict[str, Any]) -> Any:
    """Run the hooks of a module's state dict, and return the dict, which those of the older name may replace."""
    for hook in of_kind(module._state_hooks, SAVE):
        result = hook.function(module, state, prefix, metadata)
        if result is not None and not hook.replaces:
            raise RuntimeError(f"state_dict post-hook must return None, got {describe(result)}")
        state = state if result is None else result
    return state
