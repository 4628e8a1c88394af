"""Taking tensors into a level and out of it."""

from retrograd.core import Level, Tensor
from retrograd.core.tensor import make


def value_at(level: Level, x: object) -> object:
    """What an operand is one level below: a tensor of this level its value, anything else itself."""
    return x.value if isinstance(x, Tensor) and x.level is level else x


def outputs(result: object, wrap: object) -> object:
    """`wrap` over an operator's result: one tensor, or a tuple of them; what else a user's function returns stays."""
    if isinstance(result, tuple):
        return tuple(outputs(r, wrap) for r in result)
    return wrap(result) if isinstance(result, Tensor) else result  # type: ignore[operator]


def lift(level: Level, x: Tensor, tag: object = None) -> Tensor:
    """A tensor of the level around a tensor from below; one that is there already stays."""
    if not isinstance(x, Tensor):
        raise TypeError(f"the function that is transformed must return a tensor, got {type(x).__name__}")
    return x if x.level is level else make(x, level, tag)
