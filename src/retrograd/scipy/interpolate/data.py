"""The data of interpolants: checks, the interval of each point, and systems for coefficients."""

from typing import Any

from retrograd.core import Tensor
from retrograd.core.tensor import unwrap_all
from retrograd.interop.numpy_protocol.table import O, as_floating, promote_operands
from retrograd.scipy._mirror import on_tensors
from retrograd.scipy.sparse.linalg import spsolve

interpolate = on_tensors("scipy.interpolate")


def checked_data(name: str, x: Any, y: Any, axis: int = 0, least: int = 2) -> tuple[Tensor, Tensor]:
    """Return abscissae, strictly increasing, and values with their axis in front, in one dtype."""
    x, y = promote_operands(as_floating(x), as_floating(y))
    y = O.moveaxis(y, axis, 0)
    if x.ndim != 1 or y.ndim < 1 or x.shape[0] != y.shape[0]:
        raise ValueError(f"{name}: x {tuple(x.shape)} must be a vector as long as axis {axis} of y {tuple(y.shape)}")
    if x.shape[0] < least:
        raise ValueError(f"{name}: expected at least {least} points, got {x.shape[0]}")
    if not is_increasing(x):
        raise ValueError(f"{name}: `x` must be strictly increasing sequence.")
    return x, y


def is_increasing(x: Tensor) -> bool:
    """Whether each element of a vector is greater than the one before, in every example."""
    array = unwrap_all(x)
    return bool((array[..., 1:] > array[..., :-1]).all())


def intervals(x: Tensor, points: Tensor) -> Tensor:
    """Return the number of the interval of each point, the first and the last for those outside."""
    inner = x.detach()[1:-1]
    return O.searchsorted(inner, points.detach(), right=True)


def solve_system(matrix: Tensor, right: Tensor) -> Tensor:
    """Return the solution of a system with a sparse matrix, for right-hand sides (n, ...)."""
    flat = O.reshape(right, (right.shape[0], -1))
    return O.reshape(spsolve(matrix, flat), right.shape)
