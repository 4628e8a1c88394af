"""The entries of an optimizer's states, and how saved ones are checked and converted."""

import math
from collections.abc import Callable, Mapping
from copy import deepcopy
from numbers import Number
from types import MappingProxyType
from typing import Any

from retrograd.core import Tensor, operator_named
from retrograd.core.dtype import float64, is_differentiable, real_of
from retrograd.foundation.describe_value import describe
from retrograd.ops.create import as_tensor, tensor
from retrograd.ops.layout import array_device, place

_clone = operator_named("clone")
_detach = operator_named("detach")
_to = operator_named("to")

# Returns the entry to load from a saved one, for a list of parameters with one state; TypeError or ValueError says what
# it must be.
Entry = Callable[[Any, list[Any]], Any]


def like_parameter(value: Any, params: list[Any]) -> Any:
    """Return a tensor with the shape and dtype of the parameter."""
    return _tensor(value, params[0].shape, params[0].dtype)


def mean_of(dim: int) -> Entry:
    """Return the entry for a mean of the parameter along a dimension, which keeps size 1."""

    def mean(value: Any, params: list[Any]) -> Any:
        shape = list(params[0].shape)
        shape[dim] = 1
        return _tensor(value, tuple(shape), params[0].dtype)

    return mean


def vector(value: Any, params: list[Any]) -> Any:
    """Return a vector with an element for each of all parameters, two for each complex one."""
    size = sum(math.prod(p.shape) * (1 + (p.dtype.kind == "c")) for p in params)
    return _tensor(value, (size,), real_of(params[0].dtype))


def number(value: Any, params: list[Any]) -> float:
    """Return a number, which may be saved as a tensor or array with one element."""
    if isinstance(value, str | bytes):
        raise TypeError(f"must be a number, got {describe(value)}")
    try:
        return float(value if isinstance(value, Number) else as_tensor(value))  # type: ignore[arg-type]
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(f"must be a number, got {describe(value)}") from error


def count(value: Any, params: list[Any]) -> int:
    """Return a number of steps."""
    found = number(value, params)
    if not found.is_integer():
        raise ValueError(f"must be an integer, got {found}")
    return int(found)


def step_count(value: Any, params: list[Any]) -> int:
    """Return a number of steps, which state dicts have as a tensor."""
    return count(value, params)


def scalar(value: Any, params: list[Any]) -> float:
    """Return a number that state dicts have as a tensor."""
    return number(value, params)


def save_scalars(state: Mapping[str, Any], entries: Mapping[str, Entry]) -> dict[str, Any]:
    """Return a state whose numbers of steps, and other numbers, are tensors where PyTorch has such."""
    found = dict(state)
    for name, value in state.items():
        if entries.get(name) in _SCALARS and isinstance(value, Number):
            dtype = None if entries[name] is step_count else float64  # so that a loaded state continues with the bits
            found[name] = tensor(float(value), dtype=dtype, device="cpu")  # type: ignore[arg-type]
    return found


def load_scalars(state: Mapping[str, Any], entries: Mapping[str, Entry]) -> dict[str, Any]:
    """Return a state as the optimizer has it, given one that `save_scalars` returned."""
    return {name: entries[name](v, []) if entries.get(name) in _SCALARS else v for name, v in state.items()}


_SCALARS = (step_count, scalar)


def list_of(entry: Entry) -> Entry:
    """Return the entry for a list of entries."""

    def list_entries(value: Any, params: list[Any]) -> list[Any]:
        if not isinstance(value, list | tuple):
            raise TypeError(f"must be a list, got {type(value).__name__}")
        return [entry(one, params) for one in value]

    return list_entries


def declare_entries(*like: str, **others: Entry) -> Mapping[str, Entry]:
    """Return the entries of a state: by name those like the parameter, the others by keyword."""
    return MappingProxyType(dict.fromkeys(like, like_parameter) | others)


def any_value(value: Any, params: list[Any]) -> Any:
    """Return a copy of an entry that the optimizer does not declare; a floating tensor takes the parameter's dtype."""
    if not isinstance(value, Tensor):
        return deepcopy(value)
    copied = _clone(_detach(value))
    return _to(copied, params[0].dtype) if is_differentiable(copied.dtype) else copied


def _tensor(value: Any, shape: tuple[int, ...], dtype: Any) -> Tensor:
    try:
        found = _detach(as_tensor(value))
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(f"must be a tensor or array, got {type(value).__name__}") from error
    if found.shape != shape:
        raise ValueError(f"must have shape {shape}, got {found.shape}")
    if found.dtype.kind == "c" and dtype.kind != "c":
        raise TypeError(f"must be real, as its parameter is, got {found.dtype}")
    return _to(_clone(found), dtype)


def load_entries(
    where: str, saved: Mapping[str, Any], entries: Mapping[str, Entry], params: list[Any]
) -> dict[str, Any]:
    """Return the state to load; errors name the entry.

    A None for a declared entry counts as missing: the next step initializes it, as a first step does.
    """
    if not isinstance(saved, Mapping):
        raise TypeError(f"load_state_dict: the state of {where} must be a mapping, got {type(saved).__name__}")
    state = {}
    for name, value in saved.items():
        if value is None and name in entries:
            continue
        try:
            entry = entries.get(name, any_value)(value, params)
            state[name] = place(entry, array_device(params[0])) if isinstance(entry, Tensor) and entry.ndim else entry
        except (TypeError, ValueError) as error:
            raise type(error)(f"load_state_dict: {name} of {where} {error}") from error
    return state
