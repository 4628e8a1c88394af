"""Factors of matrices as `scipy.linalg` returns them, and functions that consist of these."""

import cmath
import math

from retrograd.core import registry
from retrograd.core.dtype import is_floating
from retrograd.core.level import ReadError
from retrograd.implicit.closures import example_of
from retrograd.interop.numpy_protocol import functions
from retrograd.interop.numpy_protocol.table import (
    O,
    as_floating,
    only_default,
    promote_operands,
    refuse,
    tensor,
    values,
)
from retrograd.scipy._array_like import ArrayLike, ArrayOrSequence
from retrograd.scipy._mirror import on_tensors, scipy_member
from retrograd.scipy.linalg.factor_rules import (
    Factorization,
    adjoint,
    factors_of,
    ldl_tangents,
    qz_tangents,
    riccati_tangents,
    schur_tangents,
)

_linalg = on_tensors("scipy.linalg")


def flags(name, check_finite=True, **given):
    """Ignore flags about overwriting and checks; refuse other non-default arguments."""
    given = {key: value for key, value in given.items() if not key.startswith("overwrite_") and key != "lwork"}
    only_default(f"linalg.{name}", **{key: (value, None) for key, value in given.items()})


def _own(name):
    return getattr(scipy_member("scipy.linalg"), name)


# ---------------------------------------------------------------------------------------- Schur, QZ and LDL


@_linalg
def schur(a: ArrayOrSequence, output="real", *, sort=None, **kwargs):
    """Return the triangular T and the unitary Z of a = Z T Z^H, with output="complex" in complex numbers.

    The result is differentiable to any order, where the eigenvalues are distinct.  A real matrix with complex
    eigenvalues is refused with output="real", because T is then only triangular in blocks; sort is refused.

    >>> import retrograd as rg
    >>> from retrograd.scipy import linalg
    >>> T, Z = linalg.schur(rg.tensor([[2.0, 1.0], [0.0, 3.0]]))
    >>> T.diagonal()
    tensor([2., 3.])
    """
    flags("schur", **kwargs)
    only_default("linalg.schur", sort=(sort, None))
    if output not in ("real", "complex", "r", "c"):
        raise ValueError(f"linalg.schur: output must be 'real' or 'complex', got {output!r}")
    a = _complex_if(output, as_floating(a))
    return factors_of(Factorization(_schur, schur_tangents), a)


def _complex_if(output, a):
    return a * O.ones((), dtype="complex64" if a.dtype == "float32" else "complex128") if output[0] == "c" else a


def _schur(a):
    T, Z = _own("schur")(a)
    _check_triangle("schur", T)
    return T, Z


def _check_triangle(name, T):
    if T.dtype.kind != "c" and (T.diagonal(-1) != 0).any():
        refuse(f"linalg.{name}", "the real form of a matrix with complex eigenvalues is triangular in blocks only, and "
               "has no derivative here; pass output='complex'")  # fmt: skip


@_linalg
def qz(A: ArrayOrSequence, B: ArrayOrSequence, output="real", lwork=None, sort=None, **kwargs):
    """Return S, T, Q and Z with A = Q S Z^H and B = Q T Z^H: S and T triangular, Q and Z unitary; see `schur`."""
    flags("qz", **kwargs)
    only_default("linalg.qz", sort=(sort, None))
    if output not in ("real", "complex", "r", "c"):
        raise ValueError(f"linalg.qz: output must be 'real' or 'complex', got {output!r}")
    A, B = promote_operands(as_floating(A), as_floating(B))
    return factors_of(Factorization(_qz, qz_tangents), _complex_if(output, A), _complex_if(output, B))


def _qz(a, b):
    found = _own("qz")(a, b)
    _check_triangle("qz", found[0])
    return found


@_linalg
def ldl(A: ArrayOrSequence, lower=True, hermitian=True, **kwargs):
    """Return L, D and the rows that make L triangular: A = L D L^H, D diagonal in blocks of one or two rows.

    One triangle of A is read.  The pivots are constants; under `vmap` they are those of the first example.
    """
    flags("ldl", **kwargs)
    A = as_floating(A)
    part = O.tril(A, -1) if lower else O.triu(A, 1)
    whole = part + (adjoint(part) if hermitian else part.mT) + O.diag(O.diagonal(A))
    _, D, order = _own("ldl")(values(example_of(O.detach(whole))), lower, hermitian)
    blocks = tensor(((D != 0) | (D.T != 0) | values(O.eye(len(D), dtype=bool))).astype(D.real.dtype))

    def compute(a):
        found = _own("ldl")(a, lower, hermitian)
        if (found[2] != order).any():
            refuse("linalg.ldl", "the pivots of the examples of vmap differ; factor each by itself, in a loop")
        return found[:2]

    L, D = factors_of(Factorization(compute, ldl_tangents(order.tolist(), blocks, lower, hermitian)), whole)
    return L, D, tensor(order)


# ----------------------------------------------------------------------------------------- orthogonal factors


@_linalg
def svd(a: ArrayOrSequence, full_matrices=True, compute_uv=True, *, lapack_driver="gesdd", **kwargs):
    """Return U, s and V^H; only s with compute_uv=False."""
    flags("svd", **kwargs)
    a = as_floating(a)
    return O.linalg.svd(a, full_matrices=full_matrices) if compute_uv else O.linalg.svdvals(a)


@_linalg
def svdvals(a: ArrayOrSequence, **kwargs):
    """Return the singular values."""
    flags("svdvals", **kwargs)
    return O.linalg.svdvals(as_floating(a))


@_linalg
def qr(a: ArrayOrSequence, *, mode="full", pivoting=False, **kwargs):
    """Return Q and R; only R with mode="r". Derivatives need as many columns as rows, or mode="economic"."""
    flags("qr", **kwargs)
    only_default("linalg.qr", pivoting=(pivoting, False))
    modes = {"full": "complete", "economic": "reduced", "r": "r"}
    if mode not in modes:
        refuse("linalg.qr", f"mode={mode!r} is not supported for tensors; use one of {', '.join(modes)}")
    Q, R = O.linalg.qr(as_floating(a), modes[mode])
    return (R,) if mode == "r" else (Q, R)


@_linalg
def rq(a: ArrayOrSequence, *, mode="full", **kwargs):
    """Return R and Q with a = R Q, for a square matrix."""
    flags("rq", **kwargs)
    a = as_floating(a)
    if a.shape[-1] != a.shape[-2] or mode not in ("full", "economic"):
        refuse(
            "linalg.rq", f"only square matrices are supported for tensors, got shape {tuple(a.shape)}, mode={mode!r}"
        )
    Q, R = O.linalg.qr(O.flip(adjoint(a), (-1,)))
    Q, R = O.flip(adjoint(Q), (-2,)), O.flip(adjoint(R), (-1, -2))
    expected = _own("rq")(values(example_of(O.detach(a))), mode="r")
    signs = tensor(expected.diagonal()) / example_of(O.diagonal(O.detach(R)))  # LAPACK's, 1 or -1
    return R * signs, O.unsqueeze(signs, 1) * Q


@_linalg
def polar(a: ArrayOrSequence, side="right"):
    """Return the unitary U and the positive P with a = U P, or with side="left" a = P U."""
    if side not in ("right", "left"):
        raise ValueError(f"linalg.polar: side must be 'right' or 'left', got {side!r}")
    a = as_floating(a)
    W, s, Vh = O.linalg.svd(a, full_matrices=False)
    P = adjoint(Vh) @ (O.unsqueeze(s, 1) * Vh) if side == "right" else (W * s) @ adjoint(W)
    return W @ Vh, P


@_linalg
def pinv(a: ArrayOrSequence, *, atol=None, rtol=None, return_rank=False, check_finite=True):
    """Return the pseudoinverse; SciPy's default tolerance depends on the size of the matrix."""
    only_default("linalg.pinv", return_rank=(return_rank, False))
    return O.linalg.pinv(as_floating(a), **_tolerances(a, atol, rtol))


@_linalg
def pinvh(a: ArrayOrSequence, atol=None, rtol=None, lower=True, return_rank=False, check_finite=True):
    """Return the pseudoinverse of a Hermitian matrix, of which one triangle is read."""
    only_default("linalg.pinvh", return_rank=(return_rank, False))
    a = as_floating(a)
    part = O.tril(a, -1) if lower else O.triu(a, 1)
    whole = part + adjoint(part) + O.diag(O.diagonal(a))
    return O.linalg.pinv(whole, hermitian=True, **_tolerances(a, atol, rtol))


def _tolerances(a, atol, rtol):
    return {key: value for key, value in (("atol", atol), ("rtol", rtol)) if value is not None}


# ------------------------------------------------------------------------------------------------ eigenvalues


@_linalg
def eig(a: ArrayOrSequence, b=None, left=False, right=True, *, homogeneous_eigvals=False, **kwargs):
    """Return the eigenvalues and right eigenvectors of a, or of the pencil (a, b) for an invertible b."""
    flags("eig", **kwargs)
    only_default("linalg.eig", left=(left, False), homogeneous_eigvals=(homogeneous_eigvals, False))
    w, v = O.linalg.eig(_pencil(a, b))
    return (w, v) if right else w


@_linalg
def eigvals(a: ArrayOrSequence, b=None, *, homogeneous_eigvals=False, **kwargs):
    """Return the eigenvalues of a, or of the pencil (a, b) for an invertible b."""
    flags("eigvals", **kwargs)
    only_default("linalg.eigvals", homogeneous_eigvals=(homogeneous_eigvals, False))
    return O.linalg.eigvals(_pencil(a, b))


def _pencil(a, b):
    if b is None:
        return as_floating(a)
    a, b = promote_operands(as_floating(a), as_floating(b))
    return O.linalg.solve(b, a)


@_linalg
def eigh_tridiagonal(
    d: ArrayOrSequence, e: ArrayOrSequence, eigvals_only=False, select="a", select_range=None, **kwargs
):
    """Return eigenvalues and eigenvectors of the symmetric matrix with diagonal d and first off-diagonal e."""
    flags("eigh_tridiagonal", **{k: v for k, v in kwargs.items() if k not in ("tol", "lapack_driver")})
    only_default("linalg.eigh_tridiagonal", select=(select, "a"), select_range=(select_range, None))
    d, e = promote_operands(as_floating(d), as_floating(e))
    w, v = O.linalg.eigh(O.diag(d) + O.diag(e, 1) + O.diag(e, -1))
    return w if eigvals_only else (w, v)


@_linalg
def eig_banded(
    a_band: ArrayOrSequence, lower=False, eigvals_only=False, *, select="a", select_range=None, max_ev=0, **kwargs
):
    """Return eigenvalues and eigenvectors of a Hermitian matrix from the rows of its band."""
    flags("eig_banded", **kwargs)
    only_default("linalg.eig_banded", select=(select, "a"), select_range=(select_range, None), max_ev=(max_ev, 0))
    w, v = O.linalg.eigh(hermitian_band(as_floating(a_band), lower))
    return w if eigvals_only else (w, v)


def hermitian_band(ab, lower):
    """Return the Hermitian matrix of the rows of a band, of which the first, or the last one, is the diagonal."""
    count, size = ab.shape
    rows = [ab[k if lower else count - 1 - k][: size - k] if lower else ab[count - 1 - k][k:] for k in range(count)]
    matrix = O.diag(rows[0])
    for k in range(1, count):
        one = O.diag(rows[k], -k if lower else k)
        matrix = matrix + one + adjoint(one)
    return matrix


@_linalg
def solveh_banded(ab: ArrayOrSequence, b: ArrayOrSequence, *, lower=False, **kwargs):
    """Return x with a x = b for a Hermitian positive definite matrix, from the rows of its band."""
    flags("solveh_banded", **kwargs)
    return functions()["linalg.solve"](hermitian_band(as_floating(ab), lower), as_floating(b))


@_linalg
def cholesky_banded(ab: ArrayOrSequence, *, lower=False, **kwargs):
    """Return the rows of the band of the Cholesky factor."""
    flags("cholesky_banded", **kwargs)
    ab = as_floating(ab)
    count, size = ab.shape
    factor = O.linalg.cholesky(hermitian_band(ab, lower), upper=not lower)
    rows = []
    for k in range(count):
        offset = -k if lower else count - 1 - k
        row = O.diagonal(factor, offset)
        gap = O.zeros((size - row.shape[0],), dtype=ab.dtype)
        rows.append(O.cat([row, gap] if lower else [gap, row], 0))
    return O.stack(rows)


# --------------------------------------------------------------------------------- functions of matrices, equations


@_linalg
def fractional_matrix_power(A: ArrayOrSequence, t):
    """Return A to a real power t, exp(t log A); integer powers are products."""
    A = as_floating(A)
    if isinstance(t, (int, float)) and float(t).is_integer():
        return O.linalg.matrix_power(A, int(t))
    return O.linalg.matrix_exp(t * logarithm(A))


def logarithm(A):
    """Return the principal logarithm of a matrix, which is complex if no real one is; assumed real under vmap.

    A real matrix with negative eigenvalues is turned by a small angle first: they are at the branch cut, where rounding
    would choose their side in the derivative.
    """
    try:
        plain = values(O.detach(A))
    except ReadError:
        return registry["logm"](A)
    if not is_floating(A.dtype) or _own("logm")(plain).dtype.kind != "c":
        return registry["logm"](A)
    angles = O.angle(O.linalg.eigvals(tensor(plain)))
    gap = math.pi + min([angle for angle in angles.tolist() if angle < 0], default=0.0)
    turned = registry["logm"](A * cmath.exp(-0.5j * gap))
    return turned + 0.5j * gap * O.eye(A.shape[-1], dtype=turned.dtype)


@_linalg
def signm(A: ArrayOrSequence, **kwargs):
    """Return the sign of a matrix without imaginary eigenvalues, A (A²)^(-1/2)."""
    flags("signm", **kwargs)
    A = as_floating(A)
    return O.linalg.solve(registry["sqrtm"](A @ A), A)


@_linalg
def solve_continuous_are(
    a: ArrayOrSequence, b: ArrayOrSequence, q: ArrayOrSequence, r: ArrayOrSequence, e=None, s=None, balanced=True
):
    """Return the stabilizing X with a^H X + X a - X b r⁻¹ b^H X + q = 0; e and s are refused."""
    only_default("linalg.solve_continuous_are", e=(e, None), s=(s, None))

    def residual(X, a, b, q, r):
        return adjoint(a) @ X + X @ a - X @ b @ O.linalg.solve(r, adjoint(b) @ X) + q

    def solve(X, given, right):
        a, b, _, r = given
        closed = a - b @ O.linalg.solve(r, adjoint(b) @ X)
        return registry["solve_sylvester"](adjoint(closed), closed, right)

    return _riccati("solve_continuous_are", residual, solve, (a, b, q, r), balanced)


@_linalg
def solve_discrete_are(
    a: ArrayOrSequence, b: ArrayOrSequence, q: ArrayOrSequence, r: ArrayOrSequence, e=None, s=None, balanced=True
):
    """Return the stabilizing X with a^H X a - X - a^H X b (r + b^H X b)⁻¹ b^H X a + q = 0; e and s are refused."""
    only_default("linalg.solve_discrete_are", e=(e, None), s=(s, None))

    def residual(X, a, b, q, r):
        across = adjoint(b) @ X @ a
        return adjoint(a) @ X @ a - X - adjoint(across) @ O.linalg.solve(r + adjoint(b) @ X @ b, across) + q

    def solve(X, given, right):
        a, b, _, r = given
        closed = adjoint(a - b @ O.linalg.solve(r + adjoint(b) @ X @ b, adjoint(b) @ X @ a))
        size = a.shape[0]
        system = O.eye(size * size, dtype=a.dtype) - O.kron(closed, O.conj(closed))
        return O.reshape(O.linalg.solve(system, O.reshape(-right, (-1,))), right.shape)

    return _riccati("solve_discrete_are", residual, solve, (a, b, q, r), balanced)


def _riccati(name, residual, solve, given, balanced):
    rule = Factorization(lambda *plain: (_own(name)(*plain, balanced=balanced),), riccati_tangents(residual, solve))
    return factors_of(rule, *promote_operands(*[as_floating(x) for x in given]))[0]


@_linalg
def lstsq(a: ArrayOrSequence, b: ArrayOrSequence, cond=None, *, lapack_driver=None, **kwargs):
    """Return the least-squares solution, the residues, the rank and the singular values, for a of full rank."""
    flags("lstsq", **kwargs)
    only_default("linalg.lstsq", cond=(cond, None))
    a, b = promote_operands(as_floating(a), as_floating(b))
    x = O.linalg.pinv(a) @ b
    s = O.linalg.svdvals(a)
    rank = int((values(example_of(O.detach(s))) > 0).sum())
    rows, columns = a.shape
    difference = b - a @ x
    residues = O.sum(O.real(difference * O.conj(difference)), 0) if rows > columns else O.zeros((0,), dtype=s.dtype)
    return x, residues, rank, s


# ---------------------------------------------------------------------------------------- special matrices


def _toeplitz_of(entries, rows, columns, offset, sign):
    """Return the matrix whose element (i, j) is entry sign·i + j + offset."""
    index = sign * O.unsqueeze(O.arange(rows), 1) + O.arange(columns) + offset
    return entries[index]


@_linalg
def circulant(c: ArrayOrSequence):
    """Return the matrix whose columns are c, shifted cyclically."""
    c = tensor(c)
    size = c.shape[0]
    return c[(O.unsqueeze(O.arange(size), 1) - O.arange(size)) % size]


@_linalg
def hankel(c: ArrayLike, r=None):
    """Return the matrix with constant antidiagonals: c is its first column, r its last row, by default zeros."""
    c = O.reshape(tensor(c), (-1,))
    c, r = promote_operands(c, O.zeros_like(c) if r is None else O.reshape(tensor(r), (-1,)))
    return _toeplitz_of(O.cat([c, r[1:]], 0), c.shape[0], r.shape[0], 0, 1)


@_linalg
def companion(a: ArrayOrSequence):
    """Return the companion matrix of the polynomial with coefficients a, the highest first."""
    a = as_floating(a)
    size = a.shape[0] - 1
    below = O.cat([O.eye(size - 1, dtype=a.dtype), O.zeros((size - 1, 1), dtype=a.dtype)], 1)
    return O.cat([O.unsqueeze(-a[1:] / a[0], 0), below], 0)


@_linalg
def solve_circulant(c: ArrayOrSequence, b: ArrayOrSequence, singular="raise", tol=None, caxis=-1, baxis=0, outaxis=0):
    """Return x with C x = b for the circulant matrix of a vector c, by Fourier transforms."""
    only_default("linalg.solve_circulant", singular=(singular, "raise"), tol=(tol, None), caxis=(caxis, -1))
    only_default("linalg.solve_circulant", baxis=(baxis, 0), outaxis=(outaxis, 0))
    c, b = promote_operands(as_floating(c), as_floating(b))
    column = O.reshape(O.fft.fft(c), (-1,) + (1,) * (b.ndim - 1))
    x = O.fft.ifft(O.fft.fft(b, dim=0) / column, dim=0)
    return O.real(x) if is_floating(b.dtype) else x


@_linalg
def matmul_toeplitz(c_or_cr: ArrayOrSequence, x: ArrayOrSequence, check_finite=False, workers=None):
    """Return the product of the Toeplitz matrix of a column c, or of (c, r), with x, by Fourier transforms."""
    c, r = c_or_cr if isinstance(c_or_cr, tuple) else (c_or_cr, O.conj(tensor(c_or_cr)))
    c, r, x = promote_operands(as_floating(c), as_floating(r), as_floating(x))
    rows, columns = c.shape[0], r.shape[0]
    size = rows + columns - 1
    embedded = O.cat([c, O.flip(r[1:], (0,))], 0)
    columns_of_x = O.unsqueeze(x, 1) if x.ndim == 1 else x
    product = O.unsqueeze(O.fft.fft(embedded), 1) * O.fft.fft(columns_of_x, n=size, dim=0)
    found = O.fft.ifft(product, dim=0)[:rows]
    found = O.real(found) if is_floating(x.dtype) else found
    return found[:, 0] if x.ndim == 1 else found


@_linalg
def khatri_rao(a: ArrayOrSequence, b: ArrayOrSequence):
    """Return the Kronecker products of the columns of two matrices."""
    a, b = promote_operands(tensor(a), tensor(b))
    both = O.unsqueeze(a, 1) * O.unsqueeze(b, 0)
    return O.reshape(both, (-1, a.shape[1]))
