"""The extension for linear algebra."""

from typing import Any

from retrograd.core import Tensor, operator_named
from retrograd.interop.array_api.promotion import promoted
from retrograd.interop.array_api.reductions import sum as _sum
from retrograd.interop.numpy_protocol.linalg import EighResult, QRResult, SlogdetResult, SVDResult, pinv_of_each
from retrograd.interop.numpy_protocol.shapes import matrix_transpose as matrix_transpose
from retrograd.ops.family import broadcast_shapes, cast_to

_op = operator_named


def cholesky(x: Any, /, *, upper: bool = False) -> Tensor:
    """The triangular factor of a positive definite matrix."""
    return _op("linalg.cholesky")(x, upper=upper)


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Tensor:
    """The vector product along an axis of size 3."""
    return _op("linalg.cross")(*promoted(x1, x2), dim=axis)


def det(x: Any, /) -> Tensor:
    """The determinant."""
    return _op("linalg.det")(x)


def diagonal(x: Any, /, *, offset: int = 0) -> Tensor:
    """A diagonal of the last two axes."""
    return _op("diagonal")(x, offset, -2, -1)


def eigh(x: Any, /) -> EighResult:
    """Eigenvalues and eigenvectors of a Hermitian matrix."""
    return EighResult(*_op("linalg.eigh")(x))


def eigvalsh(x: Any, /) -> Tensor:
    """Eigenvalues of a Hermitian matrix."""
    return _op("linalg.eigvalsh")(x)


def inv(x: Any, /) -> Tensor:
    """The inverse."""
    return _op("linalg.inv")(x)


def matmul(x1: Any, x2: Any, /) -> Tensor:
    """The matrix product."""
    return _op("matmul")(*promoted(x1, x2))


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """A norm of the matrices in the last two axes."""
    return _op("linalg.matrix_norm")(x, ord, keepdim=keepdims)


def matrix_power(x: Any, n: int, /) -> Tensor:
    """A square matrix to an integer power."""
    return _op("linalg.matrix_power")(x, n)


def matrix_rank(x: Any, /, *, rtol: Any = None) -> Tensor:
    """Return the number of singular values above rtol, a number or one per matrix, times the largest."""
    if not isinstance(rtol, Tensor):
        return _op("linalg.matrix_rank")(x, rtol=rtol)
    values = svdvals(x)
    least = _op("amax")(values, -1, True) * rtol[..., None]
    return _sum(values > least, axis=-1)


def outer(x1: Any, x2: Any, /) -> Tensor:
    """All products of the elements of two vectors."""
    return _op("outer")(*promoted(x1, x2))


def pinv(x: Any, /, *, rtol: Any = None) -> Tensor:
    """Return the pseudo-inverse.

    Singular values up to rtol, a number or one for each matrix, times the largest count as 0.
    """
    if not isinstance(rtol, Tensor):
        return _op("linalg.pinv")(x, rtol=rtol)
    return pinv_of_each(x, rtol)


def qr(x: Any, /, *, mode: str = "reduced") -> QRResult:
    """An orthogonal times an upper triangular matrix."""
    return QRResult(*_op("linalg.qr")(x, mode=mode))


def slogdet(x: Any, /) -> SlogdetResult:
    """The sign of the determinant and the logarithm of its absolute value."""
    return SlogdetResult(*_op("linalg.slogdet")(x))


def solve(x1: Any, x2: Any, /) -> Tensor:
    """The solution of x1 @ x = x2; x2 is a vector only if it has one axis, else matrices."""
    x1, x2 = promoted(x1, x2)
    columns = x2[:, None] if x2.ndim == 1 else x2
    lead = broadcast_shapes("solve", [x1.shape[:-2], columns.shape[:-2]])
    found = _op("linalg.solve")(x1, _op("expand")(columns, (*lead, *columns.shape[-2:])))
    return _op("squeeze")(found, -1) if x2.ndim == 1 else found


def svd(x: Any, /, *, full_matrices: bool = True) -> SVDResult:
    """The singular value decomposition."""
    return SVDResult(*_op("linalg.svd")(x, full_matrices=full_matrices))


def svdvals(x: Any, /) -> Tensor:
    """The singular values, in descending order."""
    return _op("linalg.svdvals")(x)


def tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> Tensor:
    """The sum of products over the given axes, or over the last of x1 and the first of x2."""
    return _op("tensordot")(*promoted(x1, x2), dims=axes)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """The sum of a diagonal of the last two axes."""
    return _sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Tensor:
    """The sum of products along an axis, the first factor conjugated."""
    x1, x2 = promoted(x1, x2)
    return cast_to(_op("linalg.vecdot")(x1, x2, dim=axis), x1.dtype)


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: float = 2) -> Tensor:
    """A norm of the vectors along the axes (None: of everything)."""
    if axis == ():
        return cast_to(_op("abs")(x) if ord else x != 0, _op("abs")(x).dtype)
    return _op("linalg.vector_norm")(x, ord, dim=axis, keepdim=keepdims)
