"""Unwrapping of tensors at a level."""

from typing import Any

from retrograd.core import Level, Tensor


def value_at(level: Level, x: Any) -> Any:
    """Return an operand one level below: the value of a tensor of this level, anything else as it is."""
    return x.value if isinstance(x, Tensor) and x.level is level else x


def outputs(result: object, wrap: object) -> object:
    """Apply `wrap` to each tensor in an operator's result, one or a tuple or list; other objects stay as they are."""
    if isinstance(result, tuple):
        return tuple(outputs(r, wrap) for r in result)
    if isinstance(result, list):  # only a user's Function returns lists
        return [outputs(r, wrap) for r in result]
    return wrap(result) if isinstance(result, Tensor) else result  # type: ignore[operator]
