"""Lists of parameters, as optimizers and gradient clipping take them."""

from collections.abc import Mapping
from typing import Any

from retrograd.core import Tensor
from retrograd.nn.containers import ParameterList


def list_parameters(name: str, given: Any) -> list[Any]:
    """Return parameters, one or several, as a list; TypeError with the way out for a module and a mapping."""
    if isinstance(given, Tensor):
        return [given]
    if isinstance(given, ParameterList):
        return list(given.parameters())
    if hasattr(given, "parameters") or isinstance(given, Mapping):
        method = "parameters" if hasattr(given, "parameters") else "values"
        raise TypeError(f"{name}: expected parameters, got {type(given).__name__}; pass its .{method}()")
    return list(given)
