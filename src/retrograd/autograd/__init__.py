"""Automatic differentiation as its users know it: `backward`, `grad`, and what goes with them."""

from retrograd.autograd import function as function
from retrograd.autograd import graph as graph
from retrograd.autograd.backward import backward, grad
from retrograd.autograd.function import Function, NestedIOFunction
from retrograd.autograd.graph import GradientEdge, get_gradient_edge
from retrograd.autograd.modes import (
    _force_original_view_tracking,
    _unsafe_preserve_version_counter,
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    is_multithreading_enabled,
    is_view_replay_enabled,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from retrograd.autograd.variable import Variable, _is_checkpoint_valid, variable

__all__ = [
    "Function",
    "GradientEdge",
    "NestedIOFunction",
    "Variable",
    "_force_original_view_tracking",
    "_is_checkpoint_valid",
    "_unsafe_preserve_version_counter",
    "backward",
    "enable_grad",
    "function",
    "get_gradient_edge",
    "grad",
    "graph",
    "inference_mode",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "is_multithreading_enabled",
    "is_view_replay_enabled",
    "no_grad",
    "set_grad_enabled",
    "set_multithreading_enabled",
    "variable",
]
