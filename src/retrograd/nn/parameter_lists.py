"""Lists of parameters, as optimizers and gradient clipping take them."""

from collections.abc import Iterable, Mapping
from typing import Any

from retrograd.core import Tensor
from retrograd.foundation.describe_value import describe
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
    if not isinstance(given, Iterable) or isinstance(given, str):
        hint = "; it can be called; pass its result" if callable(given) else ""
        raise TypeError(f"{name}: expected a Tensor or an iterable of Tensors, got {describe(given)}{hint}")
    return list(given)


def list_tensors(name: str, given: Any) -> list[Any]:
    """Return parameters, one or several, as a list; TypeError for a member without a gradient, too."""
    listed = list_parameters(name, given)
    for index, p in enumerate(listed):
        if not isinstance(p, Tensor) and not hasattr(p, "grad"):
            raise TypeError(f"{name}: expected a Tensor or an iterable of Tensors, got {describe(p)} at {index}")
    return listed
