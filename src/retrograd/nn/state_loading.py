"""Load states; everything is checked before anything is written."""

import json
import os
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from retrograd.autograd import no_grad
from retrograd.core import Tensor, current
from retrograd.core.views import copy_plain
from retrograd.foundation.own_attributes import stored_attributes
from retrograd.foundation.source_location import warn_user
from retrograd.foundation.suggestions import suggest_entry
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


def empty_state() -> Any:
    """Return a state dict without entries, to which modules add theirs, and their versions to its metadata."""
    state: Any = OrderedDict()
    state._metadata = OrderedDict()
    return state


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Remove a prefix from the names of a state, in place, such as "module." of a state of `DataParallel`.

    >>> state = {"module.weight": 1, "bias": 2}
    >>> consume_prefix_in_state_dict_if_present(state, "module.")
    >>> state
    {'weight': 1, 'bias': 2}
    """
    _rename(state_dict, lambda name: name.removeprefix(prefix))
    inner = prefix.removesuffix(".")  # the name of the module whose metadata the outer one's are replaced by
    _rename(getattr(state_dict, "_metadata", {}), lambda name: "" if name == inner else name.removeprefix(prefix))


def _rename(named: dict[str, Any], rename: Callable[[str], str]) -> None:
    renamed = {rename(name): value for name, value in named.items()}
    named.clear()
    named.update(renamed)


ASSIGN = "assign_to_params_buffers"  # in the metadata of a module, as in PyTorch
EXTRA_STATE = "_extra_state"  # the last part of the name under which a module's `get_extra_state` is saved


def load_state(module: Any, state_dict: Mapping[str, Any], strict: bool, assign: bool) -> IncompatibleKeys:
    """Write values into a module's tensors by name, or raise one error that lists all faults.

    Keys are checked before anything changes, unless hooks may change the lists of keys after loading.
    """
    if not isinstance(state_dict, Mapping):
        way_out = "; read the file first: rg.load(path)" if isinstance(state_dict, str | os.PathLike) else ""
        kind = type(state_dict).__name__
        raise TypeError(
            f"load_state_dict: Expected state_dict to be dict-like, got {kind}; it maps names to tensors{way_out}"
        )
    given, keys = OrderedDict(state_dict), IncompatibleKeys([], [])
    versions = getattr(state_dict, "_metadata", None) or {}
    given._metadata = versions  # type: ignore[attr-defined]
    problems: list[str] = []
    lists = keys.missing_keys, keys.unexpected_keys, problems
    owners = list(module.named_modules(remove_duplicate=False))
    for path, owner in owners:
        prefix, metadata = f"{path}." if path else "", _metadata_of(versions, path, assign)
        for hook in of_kind(owner._state_hooks, LOAD_PRE) if owner._state_hooks else ():
            # True for strict, as in PyTorch, even unless it is
            _pass_entries(partial(hook.function, owner), given, prefix, metadata, True, *lists)
        if metadata.get("version", 0) < owner._version:
            owner._complete_state(given, prefix)
    loads_alone = {id(owner) for _, owner in owners if _loads_alone(owner)}
    for path, owner in owners if loads_alone else ():
        if id(owner) in loads_alone:
            prefix, metadata = f"{path}." if path else "", _metadata_of(versions, path, assign)
            _pass_entries(owner._load_from_state_dict, given, prefix, metadata, True, *lists)
    slots, writes = _slots(owners), _Writes([], [])
    others = {path: it for path, it in slots.items() if id(it[0]) not in loads_alone} if loads_alone else slots
    writes.add_all(others, given, assign, keys.missing_keys, problems)
    unknown, by_path = [name for name in given if name not in slots], dict(owners)
    keys.unexpected_keys.extend(name for name in unknown if id(_owner_of(name, by_path)) not in loads_alone)
    hooked = [owner for _, owner in reversed(owners) if owner._state_hooks]
    hooks = [(owner, hook) for owner in hooked for hook in of_kind(owner._state_hooks, LOAD)]
    _raise(module, problems, keys, strict and not hooks, given)
    writes.run()
    for owner, hook in hooks:
        if hook.function(owner, keys) is not None:
            raise RuntimeError(
                "Hooks registered with register_load_state_dict_post_hook are not expected to return new values"
            )
    _raise(module, [], keys, strict, given)
    return keys


def _pass_entries(function: Callable[..., Any], given: dict[str, Any], prefix: str, *rest: Any) -> None:
    """Call a function with the entries of a module and those in it, as PyTorch does; its changes change the state."""
    if not prefix:
        function(given, prefix, *rest)
        return
    entries = {name: value for name, value in given.items() if name.startswith(prefix)}
    before = list(entries)
    function(entries, prefix, *rest)
    for name in before:
        if name not in entries:
            del given[name]
    given.update({name: value for name, value in entries.items() if name.startswith(prefix)})


def _owner_of(name: str, by_path: dict[str, Any]) -> Any:
    """Return the innermost module whose path begins a name: the one that reports it if it does not know it."""
    path = name.rpartition(".")[0]
    while path not in by_path:
        path = path.rpartition(".")[0]
    return by_path[path]


def _metadata_of(versions: Mapping[str, Any], path: str, assign: bool) -> dict[str, Any]:
    """Return the metadata of a module in a state: the version of its class, and whether its tensors are assigned."""
    return {**versions.get(path, {}), **({ASSIGN: True} if assign else {})}


def _loads_alone(module: Any) -> bool:
    """Return whether a class overrides `_load_from_state_dict`, which then is called, as in PyTorch."""
    return type(module)._load_from_state_dict.__module__ != "retrograd.nn.module"


def load_own(
    module: Any,
    state_dict: dict[str, Any],
    prefix: str,
    local_metadata: dict[str, Any],
    missing_keys: list[str],
    unexpected_keys: list[str],
    error_msgs: list[str],
) -> None:
    """Write the values of one module's own tensors, without those of submodules, and report its keys that it lacks."""
    writes = _Writes([], [])
    slots = _slots([(prefix.removesuffix("."), module)])
    writes.add_all(slots, state_dict, local_metadata.get(ASSIGN, False), missing_keys, error_msgs)
    unknown = [name for name in state_dict if name.startswith(prefix) and name not in slots]
    unexpected_keys.extend(n for n in unknown if n.removeprefix(prefix).partition(".")[0] not in module._modules)
    writes.run()


def _raise(module: Any, problems: list[str], keys: IncompatibleKeys, strict: bool, given: dict[str, Any]) -> None:
    problems = [*(_describe_keys(keys, given) if strict else []), *problems]
    if problems:
        raise RuntimeError("\n\t".join([f"Error(s) in loading state_dict for {type(module).__name__}:", *problems]))


class _Writes(NamedTuple):
    """The writes of a state to a module: pairs of tensors, the second to be copied into the first, and calls."""

    copies: list[tuple[Tensor, Tensor]]
    calls: list[Callable[[], Any]]

    def add_all(
        self,
        slots: dict[str, tuple[Any, str]],
        given: dict[str, Any],
        assign: bool,
        missing: list[str],
        wrong: list[str],
    ) -> None:
        """Add the writes of all values that are given; name those missing, and say what is wrong with the others."""
        missing.extend(name for name in slots if name not in given)
        for path, (owner, name) in slots.items():
            if path in given:
                problem = self.add(path, owner, name, given[path], assign)
                if problem:
                    wrong.append(problem)

    def add(self, path: str, owner: Any, name: str, value: Any, assign: bool) -> str:
        """Add the write of a value to a parameter, a buffer or the extra state of a module; return what is wrong."""
        if name == EXTRA_STATE:
            self.calls.append(partial(owner.set_extra_state, value))
            return ""
        own, tensor = stored_attributes(owner)[name], value if isinstance(value, Tensor) else _as_tensor(path, value)
        if is_lazy(own) and is_lazy(tensor):
            return ""
        if tensor.shape == (1,) and own.shape == ():  # of a state from before tensors without dimensions
            tensor = tensor[0]
        if tensor.shape != own.shape:
            return (
                f"size mismatch for {path}: copying a param with shape {tensor.shape} from checkpoint, the shape in "
                f"current model is {own.shape}."
            )
        if assign:
            self.calls.append(partial(_assign, owner, name, own, tensor))
        elif tensor.dtype is not own.dtype and tensor.dtype.kind == "c" and own.dtype.kind != "c":
            warn_user(f"Casting complex values to real discards the imaginary part: {path} is complex in the state")
            self.copies.append((own, tensor.real))
        else:
            if own.device.type == "meta" and tensor.device.type != "meta":
                warn_user(
                    f"for {path}: copying from a non-meta parameter in the checkpoint to a meta parameter in the "
                    f"current model, which is a no-op. (Did you mean to pass `assign=True`?)"
                )
            self.copies.append((own, tensor))
        return ""

    def run(self) -> None:
        """Write everything; what needs no conversion in one loop."""
        with no_grad():
            for own, tensor in copy_plain(Tensor, self.copies) if current().level is None else self.copies:
                own.copy_(tensor)
            for call in self.calls:
                call()


def _assign(owner: Any, name: str, own: Tensor, tensor: Tensor) -> None:
    """Make a tensor a parameter or a buffer of a module in place of another one."""
    if isinstance(own, Parameter) and not isinstance(tensor, Parameter):
        tensor = Parameter(tensor, own.requires_grad)
    elif isinstance(own, Parameter):
        tensor.requires_grad = own.requires_grad
    setattr(owner, name, tensor)


def _slots(owners: list[tuple[str, Any]]) -> dict[str, tuple[Any, str]]:
    """Return the modules that save something and its name there, by its name in the state dict, in its order."""
    found = {}
    for path, owner in owners:
        prefix = f"{path}." if path else ""
        for name in owner._saved_tensors():
            found[prefix + name] = owner, name
        if owner._loads_extra_state():
            found[prefix + EXTRA_STATE] = owner, EXTRA_STATE
    return found


def _as_tensor(name: str, value: Any) -> Tensor:
    try:
        return as_tensor(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"load_state_dict: {name} is no tensor or array but {type(value).__name__}") from error


def _describe_keys(keys: IncompatibleKeys, given: dict[str, Any]) -> list[str]:
    """Return one line each for missing and for unexpected keys."""
    kinds = {"Missing": keys.missing_keys, "Unexpected": keys.unexpected_keys}
    lines = [
        f"{kind} key(s) in state_dict: {', '.join(json.dumps(name, ensure_ascii=False) for name in names)}."
        for kind, names in kinds.items()
        if names
    ]
    return [*lines, *_explain_keys(keys, given)]


def _explain_keys(keys: IncompatibleKeys, given: dict[str, Any]) -> list[str]:
    """Return a line that says which entry is the state, or how to remove a prefix that all keys have."""
    missing = set(keys.missing_keys)
    entry = suggest_entry(given, lambda value: not missing.isdisjoint(value)) if missing else ""
    if entry:
        return [entry]
    prefix, dot, _ = (keys.unexpected_keys or [""])[0].partition(".")
    renamed = {name.removeprefix(prefix + dot) for name in keys.unexpected_keys}
    if not dot or renamed != missing:
        return []
    before = prefix + dot
    return [f"The keys begin with {before!r}: load {{k.removeprefix({before!r}): v for k, v in state_dict.items()}}."]
