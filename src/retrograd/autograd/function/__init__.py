"""Custom differentiable functions: a forward and a backward written by the user, recorded as one node."""

from retrograd.autograd.function.base import Function, FunctionMeta, InplaceFunction
from retrograd.autograd.function.context import FunctionCtx
from retrograd.autograd.function.node_class import BackwardCFunction
from retrograd.autograd.function.once import once_differentiable
from retrograd.foundation.lazy_imports import lazy_names

__all__ = [
    "BackwardCFunction",
    "Function",
    "FunctionCtx",
    "FunctionMeta",
    "InplaceFunction",
    "NestedIOFunction",
    "once_differentiable",
]

__getattr__, __dir__ = lazy_names(__name__, {"NestedIOFunction": "retrograd.autograd.function.nested_io"})
