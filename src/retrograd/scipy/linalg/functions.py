"""Solvers, functions of matrices and factors as `scipy.linalg` has them."""

from collections.abc import Callable

from retrograd.core import registry
from retrograd.core.dtype import complex_of, is_floating
from retrograd.core.level import ReadError
from retrograd.func import jvp
from retrograd.interop.numpy_protocol import functions
from retrograd.interop.numpy_protocol.table import (
    O,
    as_floating,
    cast,
    only_default,
    promote_operands,
    refuse,
    tensor,
    values,
)
from retrograd.scipy._array_like import ArrayLike, ArrayOrSequence
from retrograd.scipy._mirror import on_tensors, scipy_member
from retrograd.scipy.linalg.decompositions import flags, logarithm

_linalg = on_tensors("scipy.linalg")


@_linalg
def sqrtm(A: ArrayOrSequence, **kwargs):
    """Return the principal square root of a matrix, which is complex if no real one is."""
    flags("sqrtm", **kwargs)
    A = as_floating(A)
    return registry["sqrtm"](cast(A, complex_of(A.dtype)) if _has_complex_root(A) else A)


@_linalg
def logm(A: ArrayOrSequence, **kwargs):
    """Return the principal logarithm of a matrix, which is complex if no real one is."""
    flags("logm", **kwargs)
    return logarithm(as_floating(A))


def _has_complex_root(x):
    """Return whether SciPy's square root is complex; assumed real under vmap, where values are unknown."""
    try:
        return is_floating(x.dtype) and scipy_member("scipy.linalg").sqrtm(values(x)).dtype.kind == "c"
    except ReadError:
        return False


@_linalg
def solve_triangular(a: ArrayOrSequence, b: ArrayOrSequence, trans=0, lower=False, unit_diagonal=False, **kwargs):
    """Return x with a x = b for a triangular matrix; trans=1 or 2 uses its transpose or adjoint."""
    flags("solve_triangular", **kwargs)
    a, b = promote_operands(as_floating(a), as_floating(b))
    if trans in (1, "T", 2, "C"):
        a = O.conj(a.mT) if trans in (2, "C") else a.mT
        lower = not lower
    columns = O.unsqueeze(b, -1) if b.ndim == 1 else b
    x = O.linalg.solve_triangular(a, columns, upper=not lower, unitriangular=unit_diagonal)
    return x[..., 0] if b.ndim == 1 else x


@_linalg
def solve_banded(l_and_u, ab: ArrayOrSequence, b: ArrayOrSequence, **kwargs):
    """Return x with a x = b for a banded matrix, whose diagonals are the rows of `ab`, the highest first."""
    flags("solve_banded", **kwargs)
    below, above = l_and_u
    ab = as_floating(ab)
    size = ab.shape[1]
    if ab.shape[0] != below + above + 1:
        raise ValueError(f"solve_banded: {l_and_u} bands need {below + above + 1} rows, got {ab.shape[0]}")
    diagonals = [O.diag(_band(ab[row], above - row, size), above - row) for row in range(ab.shape[0])]
    return functions()["linalg.solve"](sum(diagonals[1:], diagonals[0]), b)


def _band(row, offset, size):
    """Return the part of a row of `ab` that is inside the matrix."""
    return row[offset:] if offset > 0 else row[: size + offset]


@_linalg
def solve(a: ArrayOrSequence, b: ArrayOrSequence, lower=False, *, assume_a="gen", transposed=False, **kwargs):
    """Return x with a x = b; assumptions about a are ignored."""
    flags("solve", **kwargs)
    if assume_a not in (None, "gen", "general"):
        refuse("linalg.solve", f"assume_a={assume_a!r}, which reads one triangle, is not supported for tensors")
    return functions()["linalg.solve"](tensor(a).T if transposed else a, b)


@_linalg
def inv(a: ArrayOrSequence, **kwargs):
    """Return the inverse."""
    flags("inv", **kwargs)
    return O.linalg.inv(as_floating(a))


@_linalg
def det(a: ArrayOrSequence, **kwargs):
    """Return the determinant."""
    flags("det", **kwargs)
    return O.linalg.det(as_floating(a))


@_linalg
def cholesky(a: ArrayOrSequence, lower=False, **kwargs):
    """Return the triangular R with R^H R = a, or with lower=True the L with L L^H = a."""
    flags("cholesky", **kwargs)
    return O.linalg.cholesky(as_floating(a), upper=not lower)


@_linalg
def norm(a: ArrayLike, ord=None, axis=None, keepdims=False, check_finite=True):
    """Return the norm of vectors or matrices, as `numpy.linalg.norm` does."""
    return functions()["linalg.norm"](a, ord, axis, keepdims)


@_linalg
def block_diag(*arrs):
    """Return the matrix with these blocks on its diagonal."""
    blocks = promote_operands(*[functions()["atleast_2d"](tensor(x)) for x in arrs])
    width, rows, start = sum(x.shape[1] for x in blocks), [], 0
    for x in blocks:
        rows.append(functions()["pad"](x, ((0, 0), (start, width - start - x.shape[1]))))
        start += x.shape[1]
    return O.cat(rows, 0)


# ------------------------------------------------------------------------------------------- functions of a matrix


@_linalg
def funm(A: ArrayOrSequence, func: Callable, disp=True):
    """Return func of a matrix: func of its eigenvalues, in the basis of its eigenvectors.

    `func` gets a vector of complex tensors.  The result is real if A is and SciPy's is.  The matrix must have a basis
    of eigenvectors; SciPy's function accepts others too.
    """
    A = as_floating(A)
    only_default("linalg.funm", disp=(disp, True))
    eigenvalues, vectors = O.linalg.eig(A)
    found = O.linalg.solve(vectors, O.unsqueeze(func(eigenvalues), -2) * vectors, left=False)
    return O.real(found) if is_floating(A.dtype) and not _is_complex(found) else found


def _is_complex(found):
    """Return whether a matrix is complex beyond rounding; assumed real under vmap, where values are unknown."""
    try:
        plain = values(O.detach(found))
    except ReadError:
        return False
    return abs(plain.imag).max(initial=0) > 1e-10 * abs(plain).max(initial=1)


@_linalg
def expm_frechet(A: ArrayOrSequence, E: ArrayOrSequence, method=None, compute_expm=True, check_finite=True):
    """Return the exponential of A and its derivative along E; only the derivative with compute_expm=False."""
    A, E = promote_operands(as_floating(A), as_floating(E))
    found, along = jvp(O.linalg.matrix_exp, (A,), (E,))
    return (found, along) if compute_expm else along


@_linalg
def coshm(A: ArrayOrSequence):
    """Return the hyperbolic cosine of a matrix."""
    A = as_floating(A)
    return (O.linalg.matrix_exp(A) + O.linalg.matrix_exp(-A)) / 2


@_linalg
def sinhm(A: ArrayOrSequence):
    """Return the hyperbolic sine of a matrix."""
    A = as_floating(A)
    return (O.linalg.matrix_exp(A) - O.linalg.matrix_exp(-A)) / 2


@_linalg
def tanhm(A: ArrayOrSequence):
    """Return the hyperbolic tangent of a matrix."""
    return O.linalg.solve(coshm(A), sinhm(A))


@_linalg
def cosm(A: ArrayOrSequence):
    """Return the cosine of a matrix."""
    A = as_floating(A)
    turned = O.linalg.matrix_exp(1j * A)
    return O.real(turned) if is_floating(A.dtype) else (turned + O.linalg.matrix_exp(-1j * A)) / 2


@_linalg
def sinm(A: ArrayOrSequence):
    """Return the sine of a matrix."""
    A = as_floating(A)
    turned = O.linalg.matrix_exp(1j * A)
    return O.imag(turned) if is_floating(A.dtype) else (turned - O.linalg.matrix_exp(-1j * A)) / 2j


@_linalg
def tanm(A: ArrayOrSequence):
    """Return the tangent of a matrix."""
    return O.linalg.solve(cosm(A), sinm(A))


# ------------------------------------------------------------------------------------------------ matrix equations


@_linalg
def solve_continuous_lyapunov(a: ArrayOrSequence, q: ArrayOrSequence):
    """Return X with a X + X a^H = q."""
    a, q = promote_operands(as_floating(a), as_floating(q))
    return registry["solve_sylvester"](a, O.conj(a.mT), q)


solve_lyapunov = solve_continuous_lyapunov


@_linalg
def solve_discrete_lyapunov(a: ArrayOrSequence, q: ArrayOrSequence, method=None):
    """Return X with a X a^H - X + q = 0; method "direct", as by default up to 9 rows, or "bilinear"."""
    a, q = promote_operands(as_floating(a), as_floating(q))
    size = a.shape[0]
    method = method or ("direct" if size < 10 else "bilinear")
    if method not in ("direct", "bilinear"):
        raise ValueError(f"linalg.solve_discrete_lyapunov: method must be 'direct' or 'bilinear', got {method!r}")
    unit, adjoint = O.eye(size, dtype=a.dtype), O.conj(a.mT)
    if method == "direct":
        system = O.eye(size * size, dtype=a.dtype) - O.kron(a, O.conj(a))
        return O.reshape(O.linalg.solve(system, O.reshape(q, (-1,))), q.shape)
    inverse = O.linalg.inv(adjoint + unit)
    turned = (adjoint - unit) @ inverse
    return solve_continuous_lyapunov(O.conj(turned.mT), -2 * O.linalg.inv(a + unit) @ q @ inverse)


@_linalg
def toeplitz(c: ArrayLike, r=None):
    """Return the matrix with constant diagonals: c is its first column, r its first row, by default conj(c)."""
    c = O.reshape(tensor(c), (-1,))
    c, r = promote_operands(c, O.conj(c) if r is None else O.reshape(tensor(r), (-1,)))
    entries = O.cat([O.flip(r[1:], (0,)), c], 0)
    rows = O.unsqueeze(O.arange(c.shape[0]), 1) - O.arange(r.shape[0]) + (r.shape[0] - 1)
    return entries[rows]


@_linalg
def solve_toeplitz(c_or_cr: ArrayOrSequence, b: ArrayOrSequence, check_finite=True):
    """Return x with T x = b for the Toeplitz matrix T of a column c, or of (c, r); T is formed."""
    given = c_or_cr if isinstance(c_or_cr, tuple) else (c_or_cr,)
    return functions()["linalg.solve"](toeplitz(*map(tensor, given)), as_floating(b))


# --------------------------------------------------------------------------------------------- factors, and their use


@_linalg
def cho_factor(a: ArrayOrSequence, lower=False, **kwargs):
    """Return the triangular factor of `cholesky`, with zeros in the other triangle, and `lower`."""
    return cholesky(a, lower=lower, **kwargs), lower


@_linalg
def cho_solve(c_and_lower, b: ArrayOrSequence, **kwargs):
    """Return x with a x = b from the factor of `cho_factor`."""
    flags("cho_solve", **kwargs)
    c, lower = c_and_lower
    first, second = ("N", "C") if lower else ("C", "N")
    return solve_triangular(c, solve_triangular(c, b, first, lower=lower), second, lower=lower)


@_linalg
def lu_factor(a: ArrayOrSequence, **kwargs):
    """Return the packed triangular factors, and the rows that were swapped, from 0."""
    flags("lu_factor", **kwargs)
    factors, pivots = O.linalg.lu_factor(as_floating(a))
    return factors, pivots - 1


@_linalg
def lu_solve(lu_and_piv, b: ArrayOrSequence, trans=0, **kwargs):
    """Return x with a x = b from the factors of `lu_factor`; trans=1 or 2 uses the transpose or adjoint."""
    flags("lu_solve", **kwargs)
    factors, b = promote_operands(as_floating(lu_and_piv[0]), as_floating(b))
    pivots = tensor(lu_and_piv[1]) + 1
    columns = O.unsqueeze(b, -1) if b.ndim == 1 else b
    columns = O.conj(columns) if trans == 1 else columns
    x = O.linalg.lu_solve(factors, cast(pivots, "int32"), columns, adjoint=trans in (1, 2))
    x = O.conj(x) if trans == 1 else x
    return x[..., 0] if b.ndim == 1 else x


@_linalg
def lu(a: ArrayOrSequence, permute_l=False, **kwargs):
    """Return P, L and U with a = P L U; with permute_l P L and U."""
    flags("lu", **kwargs)
    P, L, U = O.linalg.lu(as_floating(a))
    return (P @ L, U) if permute_l else (P, L, U)


@_linalg
def eigh(a: ArrayOrSequence, b=None, *, lower=True, eigvals_only=False, type=1, subset_by_index=None, **kwargs):
    """Return eigenvalues and eigenvectors of a Hermitian matrix, or with a positive definite b of a pencil.

    type=1 solves a v = w b v with v^H b v = 1, type=2 a b v = w v with the same, and type=3 b a v = w v with
    v^H b⁻¹ v = 1.  `subset_by_index` is the first and the last eigenvalue, of the ascending ones.
    """
    flags("eigh", **{k: v for k, v in kwargs.items() if k != "driver"})
    a = _hermitian(as_floating(a), lower)
    if b is None:
        w, v = O.linalg.eigh(a)
    else:
        a, b = promote_operands(a, _hermitian(as_floating(b), lower))
        w, v = _generalized(a, O.linalg.cholesky(b), type)
    if subset_by_index is not None:
        first, last = subset_by_index
        w, v = w[first : last + 1], v[:, first : last + 1]
    return w if eigvals_only else (w, v)


def _generalized(a, factor, type):
    """Return the eigenvalues and eigenvectors of a pencil, whose b has this Cholesky factor."""
    if type not in (1, 2, 3):
        raise ValueError(f"linalg.eigh: type must be 1, 2 or 3, got {type!r}")
    if type == 1:
        left = O.linalg.solve_triangular(factor, a, upper=False)
        reduced = O.linalg.solve_triangular(factor, O.conj(left.mT), upper=False)
    else:
        reduced = O.conj(factor.mT) @ a @ factor
    w, v = O.linalg.eigh(reduced)
    v = factor @ v if type == 3 else O.linalg.solve_triangular(O.conj(factor.mT), v, upper=True)
    return w, v


def _hermitian(a, lower):
    """Return the Hermitian matrix of one triangle."""
    part = O.tril(a, -1) if lower else O.triu(a, 1)
    return part + O.conj(part.mT) + O.diag(O.diagonal(a))


@_linalg
def eigvalsh(a: ArrayOrSequence, b=None, **kwargs):
    """Return the eigenvalues of `eigh`."""
    return eigh(a, b, eigvals_only=True, **kwargs)
