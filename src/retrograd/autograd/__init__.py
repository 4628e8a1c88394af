"""Automatic differentiation as its users know it: `backward`, `grad`, and the modes that switch recording."""

from retrograd.autograd.backward import backward, grad
from retrograd.autograd.graph import GradientEdge, get_gradient_edge
from retrograd.autograd.modes import enable_grad, is_grad_enabled, no_grad, set_grad_enabled

__all__ = [
    "GradientEdge",
    "backward",
    "enable_grad",
    "get_gradient_edge",
    "grad",
    "is_grad_enabled",
    "no_grad",
    "set_grad_enabled",
]
