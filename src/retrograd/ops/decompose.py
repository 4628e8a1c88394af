"""Matrix factorisations: Cholesky and QR.

Sources: S. F. Walter and L. Lehmann, Algorithmic differentiation of linear algebra functions (2010); I. Murray,
Differentiation of the Cholesky decomposition, arXiv 1602.07527.
"""

from retrograd.core import Aval, Internal, op, registry
from retrograd.core import dtype as dtypes
from retrograd.core.hooks import conjugate
from retrograd.ops.complex import conjugate_transpose as adjoint
from retrograd.ops.family import Composite, CoreDims, Gufunc
from retrograd.ops.linalg import matmul
from retrograd.ops.matrix_functions import check_matrices, check_square, dominant_matrix, mT
from retrograd.ops.pointwise import clone
from retrograd.ops.solve import check_info, triangular, triangular_right
from retrograd.ops.view import cat, narrow, tril, triu


def hermitian(A):
    """Return the Hermitian matrix with the lower triangle of A."""
    below, middle = tril(A, -1), tril(triu(A))
    return below + adjoint(below) + (middle + adjoint(middle)) * 0.5


def _halve_diagonal(triangle, x):
    """Return one triangle of x, with its diagonal halved."""
    strict = tril(x, -1) if triangle is tril else triu(x, 1)
    return (triangle(x) + strict) * 0.5


def _definite_samples(r):
    for A in (dominant_matrix(r, 3), dominant_matrix(r, 2, 2)):
        yield (hermitian(A),), {}



# ----------------------------------------------------------------------------------------------------- Cholesky


@op("cholesky_factor(Tensor A, *, bool check) -> Tensor")
class cholesky_factor(Internal, Gufunc, fit=None):
    """The lower Cholesky factor; of matrices that are not positive definite its first columns, or an error."""

    core = "(m,m)->(m,m)"

    def impl(xp, A, *, check):
        return xp.cholesky_lower(A) if check else xp.cholesky_partial(A)

    def vjp_A(g, out):
        inner = _halve_diagonal(tril, matmul(mT(out), g))
        inner = (inner + adjoint(inner)) * 0.5
        left = triangular(mT(out), inner, upper=True, unit=False)
        return triangular_right(conjugate(out), left, upper=False)

    def jvp_A(t, out):
        t = (t + adjoint(t)) * 0.5
        inner = triangular_right(adjoint(out), triangular(out, t, upper=False, unit=False), upper=True)
        return matmul(out, _halve_diagonal(tril, inner))

    def constrain(A):
        return (hermitian(A),)

    oracle = "retrograd.testing.references.decompose.cholesky"

    def samples(r):
        for args, _ in _definite_samples(r):
            yield args, {"check": True}
            yield args, {"check": False}


@op("cholesky_info(Tensor A) -> Tensor")
class cholesky_info(Internal, CoreDims, differentiable=False):
    """The order of the first leading minor that is not positive definite, 0 if all are."""

    def impl(xp, A):
        check_square("linalg.cholesky_ex", A)
        return xp.first_indefinite_minor(A)

    def shape(A):
        check_square("linalg.cholesky_ex", A)
        return Aval(A.shape[:-2], dtypes.int32)

    def oracle(np, A):
        out = np.zeros(A.shape[:-2])
        for index in np.ndindex(out.shape):
            signs = [np.linalg.det(A[index][:k, :k]) > 0 for k in range(1, A.shape[-1] + 1)]
            out[index] = 0 if all(signs) else signs.index(False) + 1
        return out

    def samples(r):
        yield (dominant_matrix(r, 3, 2) * registry["where"](r.booleans(2, 1, 1), 1, -1),), {}
        yield (hermitian(r(4, 4)),), {}


def _cholesky(A, upper, check):
    """Return the Cholesky factor; the upper one is computed from the upper triangle."""
    return adjoint(cholesky_factor(adjoint(A), check=check)) if upper else cholesky_factor(A, check=check)


@op("linalg.cholesky(Tensor A, bool upper=False) -> Tensor")
class linalg_cholesky(Composite, aliases="cholesky"):
    """Cholesky factor: lower triangular L with A = L L^H, or upper U with A = U^H U, of positive definite matrices.

    One triangle of the Hermitian A is read; the derivative is Hermitian.  LinAlgError if A is not positive definite.

    >>> import retrograd as rg
    >>> rg.linalg.cholesky(rg.tensor([[4.0, 2.0], [2.0, 10.0]])).tolist()
    [[2.0, 0.0], [1.0, 3.0]]
    """

    def compose(A, *, upper):
        check_square("linalg.cholesky", A)
        return _cholesky(A, upper, True)

    def constrain(A):
        return (hermitian(A),)

    oracle = "retrograd.testing.references.decompose.cholesky"

    def samples(r):
        yield from _definite_samples(r)
        yield (hermitian(dominant_matrix(r, 3)),), {"upper": True}

    def errors(r):
        yield (r(2, 3),), {}, ValueError, r"linalg.cholesky: .*expected square matrices, got shape \(2, 3\)"
        yield (-dominant_matrix(r, 2),), {}, RuntimeError, "linalg.cholesky: .*the matrix is not positive definite"



@op("linalg.cholesky_ex(Tensor A, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)")
class linalg_cholesky_ex(Composite):
    """Return `linalg.cholesky` and, in `info`, the order of the leading minor that is not positive definite, or 0.

    Matrices without a factor give its columns before that order, and the Schur complement after them; or with
    check_errors a LinAlgError.
    """

    def compose(A, *, upper, check_errors):
        check_square("linalg.cholesky_ex", A)
        info = cholesky_info(adjoint(A) if upper else A)
        check_info("linalg.cholesky_ex", info, check_errors, "the leading minor of order {} is not positive definite")
        return _cholesky(A, upper, False), info

    def constrain(A):
        return (hermitian(A),)

    oracle = "retrograd.testing.references.decompose.linalg_cholesky_ex"

    samples = _definite_samples

    def errors(r):
        message = "linalg.cholesky_ex: .* order 1 is not positive"
        yield (-dominant_matrix(r, 2),), {"check_errors": True}, RuntimeError, message


# ----------------------------------------------------------------------------------------------------------- QR


@op("qr_factors(Tensor A, *, str mode) -> (Tensor Q, Tensor R)")
class qr_factors(Internal, CoreDims, node_name="LinalgQrBackward0"):
    """Q and R of matrices with at least as many rows as columns; mode "complete" has no derivative if more."""

    def impl(xp, A, *, mode):
        return xp.orthogonal_triangular(A, mode)

    def shape(A, *, mode):
        check_matrices("linalg.qr", A)
        *lead, m, n = A.shape
        if m < n:
            raise ValueError(f"linalg.qr: expected matrices that are not wide, got shape {A.shape}")
        k = m if mode == "complete" else n
        return Aval((*lead, m, k), A.dtype), Aval((*lead, k, n), A.dtype)

    def vjp_A(g, out, mode):
        (gQ, gR), (Q, R) = g, out
        _check_mode(Q, R)
        inner = _halve_diagonal(triu, matmul(gR, mT(R)) - matmul(mT(Q), gQ))
        return triangular_right(mT(R), gQ + matmul(conjugate(Q), inner + adjoint(inner)), upper=False)

    def jvp_A(t, out):
        Q, R = out
        _check_mode(Q, R)
        turn = triangular_right(R, t, upper=True)
        inner = matmul(adjoint(Q), turn)
        inner = _halve_diagonal(triu, inner + adjoint(inner))
        return turn - matmul(Q, inner), matmul(inner, R)

    oracle = "retrograd.testing.references.decompose.linalg_qr"

    def samples(r):
        yield (r(4, 3),), {"mode": "reduced"}
        yield (r(2, 3, 3),), {"mode": "reduced"}


def _check_mode(Q, R):
    if R.shape[-2] > R.shape[-1]:
        raise NotImplementedError(
            f"linalg.qr: mode 'complete' has no derivative for matrices with more rows than columns, here "
            f"{Q.shape[-2]} and {R.shape[-1]}: the last columns of Q are arbitrary; use mode 'reduced'"
        )



def _qr(A, mode):
    *_, m, n = A.shape
    if m >= n:
        return qr_factors(A, mode=mode)
    Q, R = qr_factors(narrow(A, -1, 0, m), mode="reduced")
    rest = clone(narrow(A, -1, m, n - m))  # so that A may be written to later
    return Q, cat([R, matmul(adjoint(Q), rest)], dim=-1)


@op("linalg.qr(Tensor A, str mode='reduced') -> (Tensor Q, Tensor R)")
class linalg_qr(Composite):
    """QR factorisation A = Q R with orthonormal columns in Q and an upper triangular R with real diagonal.

    mode: "reduced", Q (..., m, min(m, n)); "complete", Q (..., m, m), for which there is no derivative if m > n; "r",
    Q is empty.  The derivative needs linearly independent columns.

    >>> import retrograd as rg
    >>> Q, R = rg.linalg.qr(rg.tensor([[3.0, 1.0], [4.0, 2.0]]))
    >>> rg.allclose(Q @ R, rg.tensor([[3.0, 1.0], [4.0, 2.0]]), atol=1e-6)
    True
    """

    def compose(A, *, mode):
        check_matrices("linalg.qr", A)
        if mode not in ("reduced", "complete", "r"):
            raise ValueError(f"linalg.qr: mode must be reduced, complete or r, got {mode!r}")
        if mode != "r":
            return _qr(A, mode)
        return registry["zeros"](0, dtype=A.dtype), _qr(A, "reduced")[1]

    oracle = "retrograd.testing.references.decompose.linalg_qr"

    def samples(r):
        yield (r(4, 3),), {}
        yield (r(2, 2, 4),), {}
        yield (r(3, 3),), {"mode": "complete"}
        yield (r(3, 2),), {"mode": "r"}

    def errors(r):
        yield (r(3),), {}, ValueError, r"linalg.qr: .*expected matrices, got shape \(3,\)"
        yield (r(3, 3),), {"mode": "full"}, ValueError, "linalg.qr: mode must be reduced, complete or r, got 'full'"


@op("qr(Tensor x, bool some=True) -> (Tensor Q, Tensor R)")
class qr(Composite):
    """QR factorisation: `linalg.qr`, with mode "complete" if not `some`."""

    def compose(x, *, some):
        return linalg_qr(x, "reduced" if some else "complete")

    oracle = "retrograd.testing.references.decompose.qr"

    def samples(r):
        yield (r(4, 3),), {}
