"""Custom differentiable functions: a forward and a backward written by the user, recorded as one node."""

from retrograd.autograd.function.base import Function, FunctionCtx, InplaceFunction, once_differentiable
from retrograd.core.lazy_imports import lazy_names

__all__ = ["Function", "FunctionCtx", "InplaceFunction", "NestedIOFunction", "once_differentiable"]

__getattr__, __dir__ = lazy_names(__name__, {"NestedIOFunction": "retrograd.autograd.function.nested_io"})
