"""Custom differentiable functions: a forward and a backward written by the user, recorded as one node."""

from retrograd.autograd.function.base import Function, InplaceFunction
from retrograd.autograd.function.context import FunctionCtx
from retrograd.autograd.function.once import once_differentiable
from retrograd.foundation.lazy_imports import lazy_names

__all__ = ["Function", "FunctionCtx", "InplaceFunction", "NestedIOFunction", "once_differentiable"]

__getattr__, __dir__ = lazy_names(__name__, {"NestedIOFunction": "retrograd.autograd.function.nested_io"})
