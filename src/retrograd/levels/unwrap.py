"""Taking tensors out of a level."""

from typing import Any

from retrograd.core import Level, Tensor


def value_at(level: Level, x: Any) -> Any:
    """What an operand is one level below: a tensor of this level its value, anything else itself."""
    return x.value if isinstance(x, Tensor) and x.level is level else x


def outputs(result: object, wrap: object) -> object:
    """`wrap` over an operator's result: one tensor, or a tuple of them; what else a user's function returns stays."""
    if isinstance(result, tuple):
        return tuple(outputs(r, wrap) for r in result)
    return wrap(result) if isinstance(result, Tensor) else result  # type: ignore[operator]
