"""Load states; everything is checked before anything is written."""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

from retrograd.autograd import no_grad
from retrograd.core import Tensor
from retrograd.nn.hooks import LOAD, LOAD_PRE, of_kind
from retrograd.nn.parameter import Parameter, is_lazy
from retrograd.ops.create import as_tensor


class IncompatibleKeys(NamedTuple):
    """The names missing from a state, and those that the module does not have."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


EXTRA_STATE = "_extra_state"  # the last part of the name under which a module's `get_extra_state` is saved


def load_state(module: Any, state_dict: Mapping[str, Any], strict: bool, assign: bool) -> IncompatibleKeys:
    """Write values into a module's tensors by name, or raise one error that lists all faults.

    Keys are checked before anything changes, unless hooks may change the lists of keys after loading.
    """
    if not isinstance(state_dict, Mapping):
        raise TypeError(f"load_state_dict: expected a mapping of names to tensors, got {type(state_dict).__name__}")
    given, keys = dict(state_dict), IncompatibleKeys([], [])
    problems: list[str] = []
    owners = list(module.named_modules(remove_duplicate=False))
    for path, owner in owners:
        for hook in of_kind(owner._state_hooks, LOAD_PRE):
            prefix = f"{path}." if path else ""
            hook.function(owner, given, prefix, {}, True, keys.missing_keys, keys.unexpected_keys, problems)
    slots = {slot.path: slot for slot in _slots(owners)}
    keys.missing_keys.extend(name for name in slots if name not in given)
    keys.unexpected_keys.extend(name for name in given if name not in slots)
    entries = [slots[name].entry(given[name], assign) for name in slots if name in given]
    problems += [entry.problem for entry in entries if entry.problem]
    hooks = [(owner, hook) for _, owner in reversed(owners) for hook in of_kind(owner._state_hooks, LOAD)]
    _raise(module, problems, keys, strict and not hooks)
    with no_grad():
        for entry in entries:
            entry.write()
    for owner, hook in hooks:
        if hook.function(owner, keys) is not None:
            raise RuntimeError(
                "Hooks registered with register_load_state_dict_post_hook are not expected to return new values"
            )
    _raise(module, [], keys, strict)
    return keys


def _raise(module: Any, problems: list[str], keys: IncompatibleKeys, strict: bool) -> None:
    problems = [*(_describe_keys(keys) if strict else []), *problems]
    if problems:
        raise RuntimeError("\n\t".join([f"Error(s) in loading state_dict for {type(module).__name__}:", *problems]))


class _Entry(NamedTuple):
    """A value of a state: what is wrong with it, and the function that stores it in the module."""

    problem: str
    write: Callable[[], Any]


class _Slot(NamedTuple):
    """A parameter, a buffer or the extra state of a module."""

    path: str
    owner: Any
    name: str

    def entry(self, value: Any, assign: bool) -> _Entry:
        """Return how a value is stored here."""
        if self.name == EXTRA_STATE:
            return _Entry("", partial(self.owner.set_extra_state, value))
        own, tensor = vars(self.owner)[self.name], _as_tensor(self.path, value)
        problem = ""
        if is_lazy(own) and is_lazy(tensor):
            return _Entry("", lambda: None)
        if tensor.shape != own.shape:
            problem = (
                f"size mismatch for {self.path}: copying a param with shape {tensor.shape} from checkpoint, the shape "
                f"in "
                f"current model is {own.shape}."
            )
        elif assign:
            return _Entry("", partial(self._assign, own, tensor))
        elif tensor.dtype.kind == "c" and own.dtype.kind != "c":
            problem = f"{self.path} is complex in the state, {own.dtype} in the module."
        return _Entry(problem, partial(own.copy_, tensor))

    def _assign(self, own: Tensor, tensor: Tensor) -> None:
        if isinstance(own, Parameter) and not isinstance(tensor, Parameter):
            tensor = Parameter(tensor.detach(), own.requires_grad)
        elif isinstance(own, Parameter):
            tensor.requires_grad = own.requires_grad
        setattr(self.owner, self.name, tensor)


def _slots(owners: list[tuple[str, Any]]) -> Iterator[_Slot]:
    """Yield what the modules save, in the order of their state dict."""
    for path, owner in owners:
        names = [*owner._saved_tensors()]
        if owner._has_extra_state():
            names.append(EXTRA_STATE)
        for name in names:
            yield _Slot(f"{path}.{name}" if path else name, owner, name)


def _as_tensor(name: str, value: Any) -> Tensor:
    try:
        return as_tensor(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"load_state_dict: {name} is no tensor or array but {type(value).__name__}") from error


def _describe_keys(keys: IncompatibleKeys) -> list[str]:
    """Return one line each for missing and for unexpected keys."""
    kinds = {"Missing": keys.missing_keys, "Unexpected": keys.unexpected_keys}
    return [
        f"{kind} key(s) in state_dict: {', '.join(json.dumps(name, ensure_ascii=False) for name in names)}."
        for kind, names in kinds.items()
        if names
    ]
