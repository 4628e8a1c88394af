"""Custom differentiable functions: a forward and a backward written by the user, recorded as one node."""

import importlib
from typing import Any

from retrograd.autograd.function.base import Function, FunctionCtx, InplaceFunction, once_differentiable

__all__ = ["Function", "FunctionCtx", "InplaceFunction", "NestedIOFunction", "once_differentiable"]


def __getattr__(name: str) -> Any:
    """Import NestedIOFunction on first access, because it loads optree."""
    if name == "NestedIOFunction":
        return importlib.import_module("retrograd.autograd.function.nested_io").NestedIOFunction
    raise AttributeError(f"module 'retrograd.autograd.function' has no attribute {name!r}")
