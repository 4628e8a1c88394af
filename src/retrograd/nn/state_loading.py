"""Load states; everything is checked before anything is written."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from retrograd.autograd import no_grad
from retrograd.core import Tensor
from retrograd.ops.create import as_tensor


class IncompatibleKeys(NamedTuple):
    """The names missing from a state, and those that the module does not have."""

    missing_keys: list[str]
    unexpected_keys: list[str]


def load_state(module: str, own: Mapping[str, Any], given: Mapping[str, Any], strict: bool) -> IncompatibleKeys:
    """Write values into a module's tensors by name, or raise one error that lists all faults."""
    if not isinstance(given, Mapping):
        raise TypeError(f"load_state_dict: expected a mapping of names to tensors, got {type(given).__name__}")
    keys = IncompatibleKeys([n for n in own if n not in given], [n for n in given if n not in own])
    values = {name: _as_tensor(name, given[name]) for name in own if name in given}
    problems = _describe_keys(keys) if strict else []
    problems += [
        f"size mismatch for {name}: the state has shape {value.shape}, the module {own[name].shape}."
        for name, value in values.items()
        if value.shape != own[name].shape
    ]
    problems += [
        f"{name} is complex in the state, {own[name].dtype} in the module."
        for name, value in values.items()
        if value.dtype.kind == "c" and own[name].dtype.kind != "c"
    ]
    if problems:
        raise RuntimeError("\n\t".join([f"Error(s) in loading state_dict for {module}:", *problems]))
    with no_grad():
        for name, value in values.items():
            own[name].copy_(value)
    return keys


def _as_tensor(name: str, value: Any) -> Tensor:
    try:
        return as_tensor(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"load_state_dict: {name} is no tensor or array but {type(value).__name__}") from error


def _describe_keys(keys: IncompatibleKeys) -> list[str]:
    """Return one line each for missing and for unexpected keys."""
    kinds = {"Missing": keys.missing_keys, "Unexpected": keys.unexpected_keys}
    return [
        f"{kind} key(s) in state_dict: {', '.join(repr(name) for name in names)}."
        for kind, names in kinds.items()
        if names
    ]
