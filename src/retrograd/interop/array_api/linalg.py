"""The extension for linear algebra."""

from typing import Any

from retrograd.core import Tensor, operator_named
from retrograd.interop.array_api.generated import GENERATED
from retrograd.interop.array_api.promotion import promote
from retrograd.interop.array_api.reductions import sum as _sum
from retrograd.interop.numpy_protocol.linalg import pinv_of_each
from retrograd.ops.family import broadcast_shapes, cast_to

_op = operator_named

globals().update(GENERATED["linalg"])


def matrix_rank(x: Any, /, *, rtol: Any = None) -> Tensor:
    """Return the number of singular values above rtol, a number or one per matrix, times the largest."""
    if not isinstance(rtol, Tensor):
        return _op("linalg.matrix_rank")(x, rtol=rtol)
    values = _op("linalg.svdvals")(x)
    least = _op("amax")(values, -1, True) * rtol[..., None]
    return _sum(values > least, axis=-1)


def pinv(x: Any, /, *, rtol: Any = None) -> Tensor:
    """Return the pseudo-inverse.

    Singular values up to rtol, a number or one for each matrix, times the largest count as 0.
    """
    if not isinstance(rtol, Tensor):
        return _op("linalg.pinv")(x, rtol=rtol)
    return pinv_of_each(x, rtol)


def solve(x1: Any, x2: Any, /) -> Tensor:
    """The solution of x1 @ x = x2; x2 is a vector only if it has one axis, else matrices."""
    x1, x2 = promote(x1, x2)
    columns = x2[:, None] if x2.ndim == 1 else x2
    lead = broadcast_shapes("solve", [x1.shape[:-2], columns.shape[:-2]])
    found = _op("linalg.solve")(x1, _op("expand")(columns, (*lead, *columns.shape[-2:])))
    return _op("squeeze")(found, -1) if x2.ndim == 1 else found


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """The sum of a diagonal of the last two axes."""
    return _sum(_op("diagonal")(x, offset, -2, -1), axis=-1, dtype=dtype)


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Tensor:
    """The sum of products along an axis, the first factor conjugated."""
    x1, x2 = promote(x1, x2)
    return cast_to(_op("linalg.vecdot")(x1, x2, dim=axis), x1.dtype)


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: float = 2) -> Tensor:
    """A norm of the vectors along the axes (None: of everything)."""
    if axis == ():
        return cast_to(_op("abs")(x) if ord else x != 0, _op("abs")(x).dtype)
    return _op("linalg.vector_norm")(x, ord, dim=axis, keepdim=keepdims)
