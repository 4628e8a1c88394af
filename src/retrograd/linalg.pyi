# Made from the registry of operators by tools/stubs.py: change those, then run `python tools/stubs.py`.
# ruff: noqa
# fmt: off
from builtins import bool as _bool, complex as _complex, float as _float, int as _int, str as _str
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from retrograd.core.tensor_class import Tensor as Tensor

_Number = _bool | _int | _float | _complex
_Operand = Tensor | NDArray[Any] | np.generic | _Number
_Ints = _int | Sequence[_int]

from retrograd.backend.linalg import LinAlgError as LinAlgError

def cholesky(A: _Operand, upper: _bool = False) -> Tensor:
    """The lower triangular L with A = L L^H, or the upper with A = U^H U, of Hermitian positive definite matrices."""

def cholesky_ex(A: _Operand, *, upper: _bool = False, check_errors: _bool = False) -> tuple[Tensor, Tensor]:
    """`linalg.cholesky` and, in `info`, the order of the leading minor that is not positive definite, 0 if all are."""

def cond(A: _Operand, p: Any = None) -> Tensor:
    """The condition numbers of matrices: their norm times that of their inverses, infinite for singular ones."""

def cross(x: _Operand, other: _Operand, *, dim: _int = -1) -> Tensor:
    """The cross product of vectors of 3 along `dim`; the other dimensions broadcast."""

def det(A: _Operand) -> Tensor:
    """The determinants of square matrices; the derivative holds for singular ones too."""

def diagonal(A: _Operand, *, offset: _int = 0, dim1: _int = -2, dim2: _int = -1) -> Tensor:
    """`diagonal` of matrices, the last two dimensions: a view."""

def eig(A: _Operand) -> tuple[Tensor, Tensor]:
    """Eigenvalues and eigenvectors, as columns of length 1, of square matrices: both complex."""

def eigh(A: _Operand, UPLO: _str = 'L') -> tuple[Tensor, Tensor]:
    """Eigenvalues, real and ascending, and orthonormal eigenvectors, as columns, of Hermitian matrices."""

def eigvals(A: _Operand) -> Tensor:
    """The eigenvalues of square matrices, complex, in no particular order."""

def eigvalsh(A: _Operand, UPLO: _str = 'L') -> Tensor:
    """The eigenvalues of Hermitian matrices, ascending; their gradient is finite where they are equal, too."""

def householder_product(A: _Operand, tau: _Operand) -> Tensor:
    """The first n columns of the product of reflections 1 - tau_i v_i v_i^H, v_i being below the diagonal in A."""

def inv(A: _Operand) -> Tensor:
    """The inverse of square matrices; LinAlgError if one is singular.  To solve A X = B, `linalg.solve` does better."""

def inv_ex(A: _Operand, *, check_errors: _bool = False) -> tuple[Tensor, Tensor]:
    """`linalg.inv` and, in `info`, which pivot was 0, counted from 1, in int32; 0 means that A is not singular."""

def ldl_factor(A: _Operand, *, hermitian: _bool = False) -> tuple[Tensor, Tensor]:
    """Return A = L D L^T, with `hermitian` L D L^H, of symmetric matrices (..., n, n), read from the lower triangle."""

def ldl_factor_ex(A: _Operand, *, hermitian: _bool = False, check_errors: _bool = False) -> tuple[Tensor, Tensor, Tensor]:
    """Return `linalg.ldl_factor` and, in `info`, which block of D is 0, counted from 1; 0 if none is."""

def ldl_solve(LD: _Operand, pivots: _Operand, B: _Operand, *, hermitian: _bool = False) -> Tensor:
    """Return X with A X = B, of A's `linalg.ldl_factor`: LD (..., n, n) and pivots (..., n); B is (..., n, k)."""

def lstsq(A: _Operand, B: _Operand, rcond: _Number | None = None, *, driver: _str | None = None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The shortest X that minimises |A X - B|: A is (..., m, n), B (..., m, k), or (..., m) for vectors."""

def lu(A: _Operand, *, pivot: _bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """A = P L U: a permutation, a lower triangular matrix with ones on its diagonal, an upper triangular one."""

def lu_factor(A: _Operand, *, pivot: _bool = True) -> tuple[Tensor, Tensor]:
    """`linalg.lu` in short: L and U in one matrix; for each step which row it brought up, counted from 1, in int32."""

def lu_factor_ex(A: _Operand, *, pivot: _bool = True, check_errors: _bool = False) -> tuple[Tensor, Tensor, Tensor]:
    """`linalg.lu_factor` and, in `info`, which pivot is 0, counted from 1; 0 if none is."""

def lu_solve(LU: _Operand, pivots: _Operand, B: _Operand, *, left: _bool = True, adjoint: _bool = False) -> Tensor:
    """X with A X = B, A^H X = B (adjoint), X A = B (left=False), of A's `linalg.lu_factor`: LU and pivots."""

def matmul(a: _Operand, b: _Operand) -> Tensor:
    """The matrix product: (..., m, k) times (..., k, n) is (..., m, n); the dimensions in front broadcast."""

def matrix_exp(A: _Operand) -> Tensor:
    """The exponential of square matrices, the sum of A^n / n!.  Needs SciPy."""

def matrix_norm(A: _Operand, ord: Any = 'fro', dim: _Ints = (-2, -1), keepdim: _bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
    """A norm of matrices, which the two dimensions `dim` make up."""

def matrix_power(A: _Operand, n: _int) -> Tensor:
    """Square matrices to the power n, by squaring; of a negative n, their inverses."""

def matrix_rank(A: _Operand, tol: _Operand | None = None, hermitian: _bool = False, *, atol: _Operand | None = None, rtol: _Operand | None = None) -> Tensor:
    """How many singular values of matrices are above max(atol, rtol * the largest), in int64."""

def matrix_transpose(A: _Operand) -> Tensor:
    """Matrices, the last two dimensions, with rows and columns exchanged, as in NumPy: a view."""

def multi_dot(tensors: Sequence[_Operand]) -> Tensor:
    """The product of several matrices in the order that takes the fewest multiplications."""

def norm(A: _Operand, ord: Any = None, dim: _Ints | None = None, keepdim: _bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
    """A norm of vectors along one dimension, or of matrices, which two dimensions make up."""

def outer(a: _Operand, b: _Operand) -> Tensor:
    """Every product of an element of one vector and one of another: (m,) and (n,) to (m, n)."""

def pinv(A: _Operand, rcond: _Operand | None = None, hermitian: _bool = False, *, atol: _Operand | None = None, rtol: _Operand | None = None) -> Tensor:
    """The pseudo-inverse by E. H. Moore and R. Penrose, of matrices of any shape."""

def qr(A: _Operand, mode: _str = 'reduced') -> tuple[Tensor, Tensor]:
    """A = Q R with orthonormal columns in Q and an upper triangular R with real diagonal."""

def slogdet(A: _Operand) -> tuple[Tensor, Tensor]:
    """The determinants of square matrices as sign and logarithm of the absolute value, which can't overflow."""

def solve(A: _Operand, B: _Operand, *, left: _bool = True) -> Tensor:
    """X with A X = B (left=False: X A = B) for square matrices A; LinAlgError if one is singular."""

def solve_ex(A: _Operand, B: _Operand, *, left: _bool = True, check_errors: _bool = False) -> tuple[Tensor, Tensor]:
    """`linalg.solve` and, in `info`, which pivot was 0, counted from 1, in int32; 0 means that A is not singular."""

def solve_triangular(A: _Operand, B: _Operand, *, upper: _bool, left: _bool = True, unitriangular: _bool = False) -> Tensor:
    """X with A X = B (left=False: X A = B), reading only the upper or only the lower triangle of A."""

def svd(A: _Operand, full_matrices: _bool = True, *, driver: _str | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """A = U diag(S) Vh: orthonormal columns in U, singular values S, descending, orthonormal rows in Vh."""

def svdvals(A: _Operand, *, driver: _str | None = None) -> Tensor:
    """The singular values of matrices, descending; their gradient is finite where they are equal, too."""

def tensordot(a: _Operand, b: _Operand, dims: Any = 2) -> Tensor:
    """The sum of products over some dimensions of a and as many of b; those that are left come in order."""

def tensorinv(A: _Operand, ind: _int = 2) -> Tensor:
    """The inverse of A as a map: the first `ind` dimensions of A are rows, the others columns."""

def tensorsolve(A: _Operand, B: _Operand, dims: _Ints | None = None) -> Tensor:
    """X with tensordot(A, X, X.ndim) = B: A of shape B.shape + X.shape; `dims` of A are moved to its end first."""

def trace(A: _Operand, *, offset: _int = 0) -> Tensor:
    """The sums of the diagonals of matrices, the last two dimensions, as in NumPy."""

def vander(x: _Operand, N: _int | None = None) -> Tensor:
    """The powers 0 to N - 1 (N: the size of x) of each element of x, in a new last dimension."""

def vecdot(x: _Operand, y: _Operand, *, dim: _int = -1) -> Tensor:
    """The sum of conj(x) * y along `dim`; the two broadcast."""

def vector_norm(x: _Operand, ord: _Number = 2, dim: _Ints | None = None, keepdim: _bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
    """sum(abs(x)^ord)^(1/ord) over `dim` (None: all elements as one vector)."""
