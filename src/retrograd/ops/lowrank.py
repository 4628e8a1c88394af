"""Singular values and principal components of matrices of low rank, by random projections.

N. Halko, P.-G. Martinsson and J. A. Tropp, Finding structure with randomness, SIAM Review 53 (2011), algorithms 4.4
and 5.1.
"""

from retrograd.core import op, registry
from retrograd.ops.complex import adjoint
from retrograd.ops.decompose import linalg_qr
from retrograd.ops.family import Composite
from retrograd.ops.layout import contiguous_format, to_format
from retrograd.ops.linalg import matmul
from retrograd.ops.matrix_functions import check_matrices
from retrograd.ops.reduce import mean
from retrograd.ops.svd import linalg_svd
from retrograd.ops.view import expand


def _approximate_basis(A, q, niter):
    """Return q orthonormal columns that approximately span the columns of A, by `niter` subspace iterations."""
    Q = linalg_qr(matmul(A, registry["randn"]((A.shape[-1], q), dtype=A.dtype))).Q
    for _ in range(niter):
        Q = linalg_qr(matmul(adjoint(A), Q)).Q
        Q = linalg_qr(matmul(A, Q)).Q
    return Q


def _low_rank(A, q, niter):
    """Return U, S and V of the projection of A on q random directions."""
    if A.shape[-2] < A.shape[-1]:
        U, S, V = _low_rank(adjoint(A), q, niter)
        return V, S, U
    Q = _approximate_basis(A, q, niter)
    U, S, Vh = linalg_svd(matmul(adjoint(Q), A), full_matrices=False)
    return matmul(Q, U), S, to_format(adjoint(Vh), contiguous_format)


def _determined_part(U, S, V):
    """Return what does not depend on the random directions if q is the rank: the product and the singular values."""
    return matmul(U * registry["unsqueeze"](S, -2), adjoint(V)), S


@op("svd_lowrank(Tensor A, int? q=6, int? niter=2, Tensor? M=None) -> (Tensor, Tensor, Tensor)")
class svd_lowrank(Composite, method=False):
    """Approximate the SVD of rank q: U, S, V with A - M about U diag(S) V^H; A (..., m, n), M (None: 0) a mean.

    U is (..., m, q), S (..., q) and V (..., n, q), with q at most min(m, n).  The result is exact if the rank of A - M
    is at most q; else take q a little larger than the number of singular values that are needed.  `niter` subspace
    iterations improve it.  Random numbers are drawn from the generator that `manual_seed` seeds.

    >>> import retrograd as rg
    >>> A = rg.tensor([[3.0, 0.0], [4.0, 0.0], [0.0, 0.0]])
    >>> U, S, V = rg.svd_lowrank(A, q=1)
    >>> rg.allclose(S, rg.tensor([5.0])), rg.allclose(U * S @ V.mH, A, atol=1e-5)
    (True, True)
    """

    def compose(A, M, *, q, niter):
        check_matrices("svd_lowrank", A, *([] if M is None else [M]))
        A = A if M is None else A - expand(M, A.shape)
        return _low_rank(A, 6 if q is None else q, 2 if niter is None else niter)

    observe = _determined_part

    exempt = {
        "float32 complex": "the signs of the factors depend on random numbers, which differ between dtypes",
        "oracle": "the signs of the factors are random: test_lowrank.py looks at their product",
    }

    def samples(r):
        yield (r(4, 3), None), {"q": 3}
        yield (r(2, 3, 4), r(1, 4)), {"q": 3, "niter": 1}

    def errors(r):
        yield (r(3), None), {}, ValueError, r"svd_lowrank: .*expected matrices, got shape \(3,\)"
        yield (r.ints(3, (3, 2)), None), {}, TypeError, "svd_lowrank: expected a floating or complex dtype"


@op("pca_lowrank(Tensor A, int? q=None, bool center=True, int niter=2) -> (Tensor, Tensor, Tensor)")
class pca_lowrank(Composite, method=False):
    """Principal components: `svd_lowrank` of A (..., m, n), m samples of n features, minus their mean if `center`.

    The columns of V are the principal directions, A V[..., :k] the first k components, S^2 / (m - 1) the variances.
    q, at most min(m, n), is by default 6, or min(m, n) if that is less.

    >>> import retrograd as rg
    >>> A = rg.tensor([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
    >>> [round(v, 4) for v in rg.pca_lowrank(A)[1].tolist()]
    [2.0, 0.0]
    """

    def compose(A, *, q, center, niter):
        check_matrices("pca_lowrank", A)
        least = min(A.shape[-2:])
        q = min(6, least) if q is None else q
        if not 0 <= q <= least:
            raise ValueError(f"pca_lowrank: q must be from 0 to {least}, the smaller size of the matrices, got {q}")
        if niter < 0:
            raise ValueError(f"pca_lowrank: niter must not be negative, got {niter}")
        return _low_rank(A - mean(A, -2, keepdim=True) if center else A, q, niter)

    observe = _determined_part

    exempt = {
        "complex": "the signs of the factors depend on random numbers, which differ between dtypes",
        "oracle": "the signs of the factors are random: test_lowrank.py looks at their product",
    }

    def samples(r):
        yield (r(5, 3),), {}
        yield (r(2, 3, 4),), {"q": 3, "center": False, "niter": 1}

    def errors(r):
        yield (r(3, 2),), {"q": 3}, ValueError, "pca_lowrank: q must be from 0 to 2, .* got 3"
        yield (r(3, 2),), {"niter": -1}, ValueError, "pca_lowrank: niter must not be negative, got -1"
        yield (r.ints(3, (3, 2)),), {}, TypeError, "pca_lowrank: expected a floating or complex dtype"
