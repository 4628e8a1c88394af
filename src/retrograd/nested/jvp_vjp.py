"""Derivatives of functions composed of operators, for operators whose kernels are faster than the composition."""

from collections.abc import Callable, Sequence

from retrograd.core import Tensor
from retrograd.core.tensor import make
from retrograd.levels.dual import DualLevel, tangent_of
from retrograd.levels.grad import GradLevel, leaf_at, pull_cotangents

Function = Callable[..., Sequence[Tensor]]


def jvp(function: Function, primals: Sequence[Tensor], tangents: Sequence[Tensor | None]) -> tuple[Tensor, ...]:
    """Return the tangents of a function's results, given those of its arguments; None is zero."""
    with DualLevel() as level:
        outs = function(*[make(p, level, t) for p, t in zip(primals, tangents, strict=True)])
    return tuple([tangent_of(level, out) for out in outs])


def vjp(function: Function, primals: Sequence[Tensor], cotangents: Sequence[Tensor]) -> list[Tensor]:
    """Return the cotangents of a function's arguments, given those of its results."""
    with GradLevel() as level:
        leaves = [leaf_at(level, p) for p in primals]
        outs = list(function(*leaves))
    return pull_cotangents(level, outs, cotangents, leaves)
