"""`scipy.linalg`: its functions with tensor support; the rest is SciPy's own."""

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
from retrograd.scipy._mirror import fallback_members, generate, on_tensors, scipy_member

_linalg = on_tensors("scipy.linalg")

globals().update(generate("linalg"))


def _defaults(name, check_finite=True, **given):
    """Ignore flags about overwriting and checks; refuse other non-default arguments."""
    given = {key: value for key, value in given.items() if not key.startswith("overwrite_")}
    only_default(f"linalg.{name}", **{key: (value, None) for key, value in given.items()})


@_linalg
def sqrtm(A, **kwargs):
    """Return the principal square root of a matrix, which is complex if no real one is."""
    _defaults("sqrtm", **kwargs)
    return _principal("sqrtm", as_floating(A))


@_linalg
def logm(A, **kwargs):
    """Return the principal logarithm of a matrix, which is complex if no real one is."""
    _defaults("logm", **kwargs)
    return _principal("logm", as_floating(A))


def _principal(name, x):
    """Return a function of a matrix that is complex where SciPy's is; assumed real under vmap."""
    return registry[name](cast(x, complex_of(x.dtype)) if _has_complex_value(name, x) else x)


def _has_complex_value(name, x):
    try:
        return is_floating(x.dtype) and getattr(scipy_member("scipy.linalg"), name)(values(x)).dtype.kind == "c"
    except ReadError:
        return False


@_linalg
def solve_triangular(a, b, trans=0, lower=False, unit_diagonal=False, **kwargs):
    """Return x with a x = b for a triangular matrix; trans=1 or 2 uses its transpose or adjoint."""
    _defaults("solve_triangular", **kwargs)
    a, b = promote_operands(as_floating(a), as_floating(b))
    if trans in (1, "T", 2, "C"):
        a = O.conj(a.mT) if trans in (2, "C") else a.mT
        lower = not lower
    columns = O.unsqueeze(b, -1) if b.ndim == 1 else b
    x = O.linalg.solve_triangular(a, columns, upper=not lower, unitriangular=unit_diagonal)
    return x[..., 0] if b.ndim == 1 else x


@_linalg
def solve_banded(l_and_u, ab, b, **kwargs):
    """Return x with a x = b for a banded matrix, whose diagonals are the rows of `ab`, the highest first."""
    _defaults("solve_banded", **kwargs)
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
def solve(a, b, lower=False, assume_a="gen", transposed=False, **kwargs):
    """Return x with a x = b; assumptions about a are ignored."""
    _defaults("solve", **kwargs)
    if assume_a not in (None, "gen", "general"):
        refuse("linalg.solve", f"assume_a={assume_a!r}, which reads one triangle, is not supported for tensors")
    return functions()["linalg.solve"](tensor(a).T if transposed else a, b)


@_linalg
def inv(a, **kwargs):
    """Return the inverse."""
    _defaults("inv", **kwargs)
    return O.linalg.inv(as_floating(a))


@_linalg
def det(a, **kwargs):
    """Return the determinant."""
    _defaults("det", **kwargs)
    return O.linalg.det(as_floating(a))


@_linalg
def cholesky(a, lower=False, **kwargs):
    """Return the triangular R with R^H R = a, or with lower=True the L with L L^H = a."""
    _defaults("cholesky", **kwargs)
    return O.linalg.cholesky(as_floating(a), upper=not lower)


@_linalg
def norm(a, ord=None, axis=None, keepdims=False, check_finite=True):
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
def funm(A, func, disp=True):
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
def expm_frechet(A, E, method=None, compute_expm=True, check_finite=True):
    """Return the exponential of A and its derivative along E; only the derivative with compute_expm=False."""
    A, E = promote_operands(as_floating(A), as_floating(E))
    found, along = jvp(O.linalg.matrix_exp, (A,), (E,))
    return (found, along) if compute_expm else along


@_linalg
def coshm(A):
    """Return the hyperbolic cosine of a matrix."""
    A = as_floating(A)
    return (O.linalg.matrix_exp(A) + O.linalg.matrix_exp(-A)) / 2


@_linalg
def sinhm(A):
    """Return the hyperbolic sine of a matrix."""
    A = as_floating(A)
    return (O.linalg.matrix_exp(A) - O.linalg.matrix_exp(-A)) / 2


@_linalg
def tanhm(A):
    """Return the hyperbolic tangent of a matrix."""
    return O.linalg.solve(coshm(A), sinhm(A))


@_linalg
def cosm(A):
    """Return the cosine of a matrix."""
    A = as_floating(A)
    turned = O.linalg.matrix_exp(1j * A)
    return O.real(turned) if is_floating(A.dtype) else (turned + O.linalg.matrix_exp(-1j * A)) / 2


@_linalg
def sinm(A):
    """Return the sine of a matrix."""
    A = as_floating(A)
    turned = O.linalg.matrix_exp(1j * A)
    return O.imag(turned) if is_floating(A.dtype) else (turned - O.linalg.matrix_exp(-1j * A)) / 2j


@_linalg
def tanm(A):
    """Return the tangent of a matrix."""
    return O.linalg.solve(cosm(A), sinm(A))


# ------------------------------------------------------------------------------------------------ matrix equations


@_linalg
def solve_continuous_lyapunov(a, q):
    """Return X with a X + X a^H = q."""
    a, q = promote_operands(as_floating(a), as_floating(q))
    return registry["solve_sylvester"](a, O.conj(a.mT), q)


solve_lyapunov = solve_continuous_lyapunov


@_linalg
def solve_discrete_lyapunov(a, q, method=None):
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
def toeplitz(c, r=None):
    """Return the matrix with constant diagonals: c is its first column, r its first row, by default conj(c)."""
    c = O.reshape(tensor(c), (-1,))
    c, r = promote_operands(c, O.conj(c) if r is None else O.reshape(tensor(r), (-1,)))
    entries = O.cat([O.flip(r[1:], (0,)), c], 0)
    rows = O.unsqueeze(O.arange(c.shape[0]), 1) - O.arange(r.shape[0]) + (r.shape[0] - 1)
    return entries[rows]


@_linalg
def solve_toeplitz(c_or_cr, b, check_finite=True):
    """Return x with T x = b for the Toeplitz matrix T of a column c, or of (c, r); T is formed."""
    given = c_or_cr if isinstance(c_or_cr, tuple) else (c_or_cr,)
    return functions()["linalg.solve"](toeplitz(*map(tensor, given)), as_floating(b))


# --------------------------------------------------------------------------------------------- factors, and their use


@_linalg
def cho_factor(a, lower=False, **kwargs):
    """Return the triangular factor of `cholesky`, with zeros in the other triangle, and `lower`."""
    return cholesky(a, lower=lower, **kwargs), lower


@_linalg
def cho_solve(c_and_lower, b, **kwargs):
    """Return x with a x = b from the factor of `cho_factor`."""
    _defaults("cho_solve", **kwargs)
    c, lower = c_and_lower
    first, second = ("N", "C") if lower else ("C", "N")
    return solve_triangular(c, solve_triangular(c, b, first, lower=lower), second, lower=lower)


@_linalg
def lu_factor(a, **kwargs):
    """Return the packed triangular factors, and the rows that were swapped, from 0."""
    _defaults("lu_factor", **kwargs)
    factors, pivots = O.linalg.lu_factor(as_floating(a))
    return factors, pivots - 1


@_linalg
def lu_solve(lu_and_piv, b, trans=0, **kwargs):
    """Return x with a x = b from the factors of `lu_factor`; trans=1 or 2 uses the transpose or adjoint."""
    _defaults("lu_solve", **kwargs)
    factors, b = promote_operands(as_floating(lu_and_piv[0]), as_floating(b))
    pivots = tensor(lu_and_piv[1]) + 1
    columns = O.unsqueeze(b, -1) if b.ndim == 1 else b
    columns = O.conj(columns) if trans == 1 else columns
    x = O.linalg.lu_solve(factors, cast(pivots, "int32"), columns, adjoint=trans in (1, 2))
    x = O.conj(x) if trans == 1 else x
    return x[..., 0] if b.ndim == 1 else x


@_linalg
def lu(a, permute_l=False, **kwargs):
    """Return P, L and U with a = P L U; with permute_l P L and U."""
    _defaults("lu", **kwargs)
    P, L, U = O.linalg.lu(as_floating(a))
    return (P @ L, U) if permute_l else (P, L, U)


@_linalg
def eigh(a, b=None, *, lower=True, eigvals_only=False, type=1, **kwargs):
    """Return eigenvalues and eigenvectors of a v = w v, or of a v = w b v for Hermitian a and positive definite b.

    The vectors satisfy v^H b v = 1.  Only type 1 is available for tensors.
    """
    only_default("linalg.eigh", type=(type, 1))
    _defaults("eigh", **kwargs)
    if b is None:
        w, v = O.linalg.eigh(_hermitian(as_floating(a), lower))
        return w if eigvals_only else (w, v)
    a, b = promote_operands(as_floating(a), as_floating(b))
    factor = O.linalg.cholesky(_hermitian(b, lower))
    left = O.linalg.solve_triangular(factor, _hermitian(a, lower), upper=False)
    reduced = O.linalg.solve_triangular(factor, O.conj(left.mT), upper=False)
    w, v = O.linalg.eigh(reduced)
    return w if eigvals_only else (w, O.linalg.solve_triangular(O.conj(factor.mT), v, upper=True))


def _hermitian(a, lower):
    """Return the Hermitian matrix of one triangle."""
    part = O.tril(a, -1) if lower else O.triu(a, 1)
    return part + O.conj(part.mT) + O.diag(O.diagonal(a))


@_linalg
def eigvalsh(a, b=None, **kwargs):
    """Return the eigenvalues of `eigh`."""
    return eigh(a, b, eigvals_only=True, **kwargs)


__getattr__, __dir__ = fallback_members("scipy.linalg")
