"""Function transforms: each runs a function at a level of its own, so they nest in any order."""

from retrograd.func.forward import DualLevel, jvp
from retrograd.func.reverse import GradLevel, grad, vjp

__all__ = ["DualLevel", "GradLevel", "grad", "jvp", "vjp"]
