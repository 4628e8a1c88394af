# Made from the registry of operators by tools/stubs.py: change those, then run `make stubs`.
# ruff: noqa
# fmt: off
from builtins import bool as _bool, complex as _complex, float as _float, int as _int, str as _str
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, Self, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from retrograd import return_types as return_types
from retrograd.core.tensor_class import Tensor as Tensor

_Number = _bool | _int | _float | _complex
_Operand = Tensor | NDArray[Any] | np.generic | _Number
_Ints = _int | Sequence[_int]

from retrograd.backend.linalg import LinAlgError as LinAlgError

def cholesky(A: _Operand, upper: _bool = False) -> Tensor:
    """Cholesky factor: lower triangular L with A = L L^H, or upper U with A = U^H U, of positive definite matrices."""

def cholesky_ex(A: _Operand, *, upper: _bool = False, check_errors: _bool = False) -> return_types.linalg_cholesky_ex:
    """Return `linalg.cholesky` and, in `info`, the order of the leading minor that is not positive definite, or 0."""

def cond(A: _Operand, p: Any = None) -> Tensor:
    """The condition numbers of matrices: norm(A) * norm(inv(A)), infinite for singular matrices."""

def cross(x: _Operand, other: _Operand, *, dim: _int = -1) -> Tensor:
    """The cross product of 3-vectors along `dim`; the other dimensions broadcast."""

def det(A: _Operand) -> Tensor:
    """The determinants of square matrices; the derivative holds for singular ones, too."""

def diagonal(A: _Operand, *, offset: _int = 0, dim1: _int = -2, dim2: _int = -1) -> Tensor:
    """A view of the diagonals of matrices, the last two dimensions."""

def eig(A: _Operand) -> return_types.linalg_eig:
    """Eigenvalues, and eigenvectors as columns of length 1, of square matrices: both complex."""

def eigh(A: _Operand, UPLO: _str = 'L') -> return_types.linalg_eigh:
    """Eigenvalues, real and ascending, and orthonormal eigenvectors, as columns, of Hermitian matrices."""

def eigvals(A: _Operand) -> Tensor:
    """Eigenvalues of square matrices, complex, in no particular order."""

def eigvalsh(A: _Operand, UPLO: _str = 'L') -> Tensor:
    """Eigenvalues of Hermitian matrices, ascending; their gradient is finite even where they are equal."""

def householder_product(A: _Operand, tau: _Operand) -> Tensor:
    """First n columns of the product of reflections 1 - tau_i v_i v_i^H, with v_i stored below the diagonal of A."""

def inv(A: _Operand) -> Tensor:
    """The inverse of square matrices; LinAlgError if one is singular.  To solve A X = B, prefer `linalg.solve`."""

def inv_ex(A: _Operand, *, check_errors: _bool = False) -> return_types.linalg_inv_ex:
    """The inverse, and `info`: the first zero pivot, from 1, in int32; 0 if A is not singular."""

def ldl_factor(A: _Operand, *, hermitian: _bool = False) -> return_types.linalg_ldl_factor:
    """LDL factorisation A = L D L^T, with `hermitian` L D L^H, of matrices (..., n, n), read from the lower triangle."""

def ldl_factor_ex(A: _Operand, *, hermitian: _bool = False, check_errors: _bool = False) -> return_types.linalg_ldl_factor_ex:
    """Return `linalg.ldl_factor` and, in `info`, which block of D is 0, counted from 1; 0 if none is."""

def ldl_solve(LD: _Operand, pivots: _Operand, B: _Operand, *, hermitian: _bool = False) -> Tensor:
    """Solve A X = B from A's `linalg.ldl_factor`: LD (..., n, n) and pivots (..., n); B is (..., n, k)."""

def lstsq(A: _Operand, B: _Operand, rcond: _Number | None = None, *, driver: _str | None = None) -> return_types.linalg_lstsq:
    """Least squares solution: the shortest X that minimises |A X - B|, with A (..., m, n), B (..., m, k) or (..., m)."""

def lu(A: _Operand, *, pivot: _bool = True) -> return_types.linalg_lu:
    """LU factorisation A = P L U: a permutation, a lower triangle with unit diagonal, an upper triangle."""

def lu_factor(A: _Operand, *, pivot: _bool = True) -> return_types.linalg_lu_factor:
    """LU factorisation in packed form: L and U in one matrix; per step the row swapped in, counted from 1, in int32."""

def lu_factor_ex(A: _Operand, *, pivot: _bool = True, check_errors: _bool = False) -> return_types.linalg_lu_factor_ex:
    """Return `linalg.lu_factor` and, in `info`, which pivot is 0, counted from 1; 0 if none is."""

def lu_solve(LU: _Operand, pivots: _Operand, B: _Operand, *, left: _bool = True, adjoint: _bool = False) -> Tensor:
    """X with A X = B, A^H X = B (adjoint), X A = B (left=False), from `linalg.lu_factor` of A: LU and pivots."""

def matmul(a: _Operand, b: _Operand) -> Tensor:
    """Matrix product: (..., m, k) times (..., k, n) is (..., m, n); the leading dimensions broadcast."""

def matrix_exp(A: _Operand) -> Tensor:
    """The matrix exponential, the sum of A^n / n!, of square matrices.  Needs SciPy."""

def matrix_norm(A: _Operand, ord: Any = 'fro', dim: _Ints = (-2, -1), keepdim: _bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
    """The matrix norm over the two dimensions `dim`."""

def matrix_power(A: _Operand, n: _int) -> Tensor:
    """The n-th power of square matrices, by repeated squaring; of the inverses for negative n."""

def matrix_rank(A: _Operand, tol: _Operand | None = None, hermitian: _bool = False, *, atol: _Operand | None = None, rtol: _Operand | None = None) -> Tensor:
    """The ranks of matrices: the number of singular values above max(atol, rtol * the largest), in int64."""

def matrix_transpose(A: _Operand) -> Tensor:
    """A view of matrices, the last two dimensions, with rows and columns swapped, as in NumPy."""

def multi_dot(tensors: Sequence[_Operand]) -> Tensor:
    """The product of several matrices, in the order with the fewest multiplications."""

def norm(A: _Operand, ord: Any = None, dim: _Ints | None = None, keepdim: _bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
    """The vector norm along one dimension, or the matrix norm over two."""

def outer(a: _Operand, b: _Operand) -> Tensor:
    """Outer product of two vectors, (m,) and (n,) to (m, n)."""

def pinv(A: _Operand, rcond: _Operand | None = None, hermitian: _bool = False, *, atol: _Operand | None = None, rtol: _Operand | None = None) -> Tensor:
    """The Moore-Penrose pseudo-inverse of matrices of any shape."""

def qr(A: _Operand, mode: _str = 'reduced') -> return_types.linalg_qr:
    """QR factorisation A = Q R with orthonormal columns in Q and an upper triangular R with real diagonal."""

def slogdet(A: _Operand) -> return_types.linalg_slogdet:
    """The sign, and the log of the absolute value, of determinants of square matrices, which can't overflow."""

def solve(A: _Operand, B: _Operand, *, left: _bool = True) -> Tensor:
    """The solution X of A X = B (left=False: X A = B) for square matrices A; LinAlgError if one is singular."""

def solve_ex(A: _Operand, B: _Operand, *, left: _bool = True, check_errors: _bool = False) -> return_types.linalg_solve_ex:
    """The result of `linalg.solve`, and `info`: the first zero pivot, from 1, in int32; 0 if A is not singular."""

def solve_triangular(A: _Operand, B: _Operand, *, upper: _bool, left: _bool = True, unitriangular: _bool = False) -> Tensor:
    """The solution X of A X = B (left=False: X A = B), reading only the upper or the lower triangle of A."""

def svd(A: _Operand, full_matrices: _bool = True, *, driver: _str | None = None) -> return_types.linalg_svd:
    """The SVD A = U diag(S) Vh: orthonormal columns in U, singular values S descending, orthonormal rows in Vh."""

def svdvals(A: _Operand, *, driver: _str | None = None) -> Tensor:
    """The singular values of matrices, descending; their gradient is finite even where they are equal."""

def tensordot(a: _Operand, b: _Operand, dims: Any = 2) -> Tensor:
    """The contraction of a and b: the sum of products over some dimensions of a and as many of b."""

def tensorinv(A: _Operand, ind: _int = 2) -> Tensor:
    """The inverse of A as a linear map: the first `ind` dimensions are rows, the others columns."""

def tensorsolve(A: _Operand, B: _Operand, dims: _Ints | None = None) -> Tensor:
    """X with tensordot(A, X, X.ndim) = B, for A of shape B.shape + X.shape after `dims` of A are moved to its end."""

def trace(A: _Operand, *, offset: _int = 0) -> Tensor:
    """The sum of the diagonal of each matrix, the last two dimensions, as in NumPy."""

def vander(x: _Operand, N: _int | None = None) -> Tensor:
    """The Vandermonde matrix: powers 0 to N - 1 (N: the size of x) of each element, in a new last dimension."""

def vecdot(x: _Operand, y: _Operand, *, dim: _int = -1) -> Tensor:
    """The dot product of vectors, the sum of conj(x) * y along `dim`; x and y broadcast."""

def vector_norm(x: _Operand, ord: _Number = 2, dim: _Ints | None = None, keepdim: _bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
    """The vector norm sum(abs(x)^ord)^(1/ord) over `dim` (None: all elements as one vector)."""
