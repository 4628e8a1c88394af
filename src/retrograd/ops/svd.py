"""The singular value decomposition.  As in `eigen`, one operator factors, and one per result has derivatives.

J. Townsend, Differentiating the singular value decomposition (2016); Z.-Q. Wan and S.-X. Zhang, Automatic
differentiation for complex valued SVD, arXiv 1909.02659.
"""

import math

from retrograd.core import Aval, Internal, op, registry
from retrograd.core import dtype as dtypes
from retrograd.core.hooks import conjugate
from retrograd.ops.complex import complex, imag
from retrograd.ops.complex import conjugate_transpose as adjoint
from retrograd.ops.diagonal import diagonal, diagonal_backward
from retrograd.ops.eigen import as_column, as_row, diagonal_sample, needs_vectors, weighted_product
from retrograd.ops.family import Composite, CoreDims
from retrograd.ops.linalg import matmul
from retrograd.ops.matrix_functions import MatrixOperator, check_matrices, first_columns, first_rows
from retrograd.ops.pointwise import real_part, where
from retrograd.ops.reduce import sum as sum_over
from retrograd.ops.view import cat


@op("svd_factors(Tensor A, *, bool full_matrices) -> (Tensor U, Tensor S, Tensor Vh)")
class svd_factors(Internal, CoreDims, differentiable=False):
    """U, S and V^H; U and V have one column per singular value, or are square with full_matrices."""

    def impl(xp, A, *, full_matrices):
        return xp.singular_vectors(A, full_matrices)

    def shape(A, *, full_matrices):
        check_matrices("linalg.svd", A)
        *lead, m, n = A.shape
        k = min(m, n)
        U, Vh = ((m, m), (n, n)) if full_matrices else ((m, k), (k, n))
        return Aval((*lead, *U), A.dtype), Aval((*lead, k), dtypes.real_of(A.dtype)), Aval((*lead, *Vh), A.dtype)

    def observe(U, S, Vh):
        return _determined_part(U, S, Vh)

    def oracle(np, A, full_matrices):
        return np.linalg.svd(A, full_matrices)

    def samples(r):
        yield (r(2, 4, 3),), {"full_matrices": True}
        yield (r(2, 3),), {"full_matrices": False}


@op("singular_values_alone(Tensor A) -> Tensor")
class singular_values_alone(Internal, CoreDims, differentiable=False, memory="rows"):
    """The singular values, when no derivatives are needed."""

    def impl(xp, A):
        return xp.singular_values(A)

    def shape(A):
        return svd_factors.definition.shape(A, full_matrices=False)[1]

    def oracle(np, A):
        return np.linalg.svd(A)[1]

    def samples(r):
        yield (r(2, 4, 3),), {}


class SVDResult(Internal, MatrixOperator, snapshots="A"):
    """Base of the results of the SVD of matrices A with known factors."""

    @staticmethod
    def constrain(A, U, S, Vh):
        """Derive the factors' tangents from that of A."""
        return A, *svd_factors(A, full_matrices=U.shape[-1] != S.shape[-1] or Vh.shape[-2] != S.shape[-1])

    @staticmethod
    def samples(r):
        """Square, tall, wide and full matrices."""
        for A, full_matrices in ((r(3, 3), False), (r(2, 4, 3), False), (r(2, 3), False), (r(4, 2), True)):
            yield (A, *svd_factors(A, full_matrices=full_matrices)), {}


@op("svd_values(Tensor A, Tensor U, Tensor S, Tensor Vh) -> Tensor")
class svd_values(SVDResult, node_name="LinalgSvdBackward0"):
    """The singular values of matrices with known factors."""

    def impl(xp, A, U, S, Vh):
        return xp.copy_result(A, S)

    def shape(A, U, S, Vh):
        return Aval(S.shape, S.dtype)

    def vjp_A(g, A, U, S, Vh):
        U, Vh = _thin_vectors(A, U, S, Vh)
        return conjugate(matmul(U * as_row(g), Vh))

    def jvp_A(t, A, U, S, Vh):
        U, Vh = _thin_vectors(A, U, S, Vh)
        return real_part(sum_over(conjugate(U) * matmul(t, adjoint(Vh)), -2))

    def oracle(np, A, U, S, Vh):
        return np.linalg.svd(A)[1]


@op("svd_vectors(Tensor A, Tensor U, Tensor S, Tensor Vh) -> (Tensor U, Tensor Vh)")
class svd_vectors(SVDResult, node_name="LinalgSvdBackward0"):
    """The singular vectors of matrices with known factors; those beyond the singular values have no derivative."""

    def impl(xp, A, U, S, Vh):
        return xp.copy_result(A, U), xp.copy_result(A, Vh)

    def shape(A, U, S, Vh):
        return Aval(U.shape, U.dtype), Aval(Vh.shape, Vh.dtype)

    def vjp_A(g, A, out, U, S, Vh):
        s, k = svd_values(A, U, S, Vh), S.shape[-1]
        u, vh = first_columns(out[0], k), first_rows(out[1], k)
        gu, gvh = conjugate(first_columns(g[0], k)), conjugate(first_rows(g[1], k))
        p, q = matmul(adjoint(u), gu), matmul(vh, adjoint(gvh))
        left = matmul(u, _cotangent_core(p, q, s))
        if u.shape[-2] > k:
            left = left + (gu - matmul(u, p)) / as_row(s)
        g_A = matmul(left, vh)
        if vh.shape[-1] > k:
            g_A = g_A + matmul(u / as_row(s), gvh - matmul(adjoint(q), vh))
        return conjugate(g_A)

    def jvp_A(t, A, out, U, S, Vh):
        s, k = svd_values(A, U, S, Vh), S.shape[-1]
        u, vh = first_columns(out[0], k), first_rows(out[1], k)
        right, left = matmul(t, adjoint(vh)), matmul(adjoint(u), t)
        x = matmul(left, adjoint(vh))
        turn_u, turn_v = _rotations(x, s)
        du = matmul(u, turn_u) + (right - matmul(u, x)) / as_row(s)
        dvh = matmul(adjoint(turn_v), vh) + (left - matmul(x, vh)) / as_column(s)
        return _pad_zeros(du, out[0], -1), _pad_zeros(dvh, out[1], -2)

    def observe(U, Vh):
        k = min(U.shape[-1], Vh.shape[-2])
        return (weighted_product(first_columns(U, k), first_rows(Vh, k)),)

    def oracle(np, A, U, S, Vh):
        return np.linalg.svd(A, U.shape[-1] != S.shape[-1] or Vh.shape[-2] != S.shape[-1])[::2]


def _thin_vectors(A, U, S, Vh):
    """The differentiable singular vectors, one per singular value."""
    U, Vh = svd_vectors(A, U, S, Vh)
    return first_columns(U, S.shape[-1]), first_rows(Vh, S.shape[-1])


def _pad_zeros(x, size, dim):
    missing = list(size.shape)
    missing[dim] -= x.shape[dim]
    return cat([x, registry["zeros"](tuple(missing), dtype=x.dtype)], dim) if missing[dim] else x


def _inverse_gaps_of_squares(s):
    """The matrix 1 / (s_j^2 - s_i^2), 0 on the diagonal; infinite where singular values are equal."""
    gaps = (as_row(s) - as_column(s)) * (as_row(s) + as_column(s))
    return 1 / where(registry["eye"](s.shape[-1], dtype=dtypes.bool_), math.inf, gaps)


def _cotangent_core(p, q, s):
    """The matrix between U and V^H in the cotangent of A, from U^H gU and V^H gV."""
    gaps = _inverse_gaps_of_squares(s)
    core = (p - adjoint(p)) * (gaps * as_row(s)) + (q - adjoint(q)) * (gaps * as_column(s))
    if p.dtype.kind != "c":
        return core
    return core + _imaginary_diagonal(imag(_diagonal(p)) - imag(_diagonal(q)), s)


def _rotations(x, s):
    """The rotations of U and V when U^H A V changes by x."""
    gaps, xh = _inverse_gaps_of_squares(s), adjoint(x)
    turn_u = (x * as_row(s) + xh * as_column(s)) * gaps
    turn_v = (x * as_column(s) + xh * as_row(s)) * gaps
    if x.dtype.kind != "c":
        return turn_u, turn_v
    phases = _imaginary_diagonal(imag(_diagonal(x)), s)
    return turn_u + phases, turn_v - phases


def _imaginary_diagonal(values, s):
    """The matrix with i values / (2 s) on the diagonal: half of a phase goes to each of U and V."""
    half = values / (2 * s)
    shape = (*s.shape, s.shape[-1])
    phases = complex(registry["zeros_like"](half), half)
    return diagonal_backward(phases, shape=shape, offset=0, dim1=-2, dim2=-1)


def _diagonal(x):
    return diagonal(x, 0, -2, -1)




_DRIVERS = ("gesvd", "gesvdj", "gesvda")


def _determined_part(U, S, Vh):
    k = S.shape[-1]
    return S, weighted_product(first_columns(U, k), first_rows(Vh, k))


def _check_driver(name, driver):
    if driver not in (None, *_DRIVERS):
        raise ValueError(f"{name}: driver must be None, {' or '.join(_DRIVERS)}, got {driver!r}")


@op("linalg.svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)")
class linalg_svd(Composite):
    """The SVD A = U diag(S) Vh: orthonormal columns in U, singular values S descending, orthonormal rows in Vh.

    A matrix m x n has k = min(m, n) singular values.  U is (m, m) and Vh (n, n), or without full_matrices (m, k) and
    (k, n).  Vectors beyond k are arbitrary, and their gradient is taken as 0.  The gradient of U and Vh is infinite or
    NaN where singular values are equal, and, if m and n differ, where one is 0; that of S is finite.

    driver: None, "gesvd", "gesvdj" or "gesvda", accepted for compatibility with PyTorch; LAPACK's gesdd is used.

    >>> import retrograd as rg
    >>> rg.linalg.svd(rg.tensor([[0.0, 3.0], [2.0, 0.0]])).S.tolist()
    [3.0, 2.0]
    """

    def compose(A, *, full_matrices, driver):
        _check_driver("linalg.svd", driver)
        check_matrices("linalg.svd", A)
        factors = svd_factors(A, full_matrices=full_matrices)
        U, Vh = svd_vectors(A, *factors)
        return U, svd_values(A, *factors), Vh

    observe = _determined_part

    def oracle(np, A, full_matrices=True, driver=None):
        return np.linalg.svd(A, full_matrices)

    def samples(r):
        yield (r(3, 3),), {}
        yield (r(4, 3),), {}
        yield (r(2, 4, 3),), {"full_matrices": False}
        yield (r(2, 4),), {"full_matrices": False}

    def errors(r):
        yield (r(3),), {}, ValueError, r"linalg.svd: .*expected matrices, got shape \(3,\)"
        yield (r.ints(3, (2, 2)),), {}, TypeError, "linalg.svd: expected a floating or complex dtype"
        yield (r(2, 2),), {"driver": "gesdd"}, ValueError, "linalg.svd: driver must be None, gesvd .*, got 'gesdd'"
        yield (r(2, 2) * float("nan"),), {}, RuntimeError, "linalg.svd: the iteration did not converge"


@op("linalg.svdvals(Tensor A, *, str? driver=None) -> Tensor")
class linalg_svdvals(Composite):
    """The singular values of matrices, descending; their gradient is finite even where they are equal."""

    def compose(A, *, driver):
        _check_driver("linalg.svdvals", driver)
        check_matrices("linalg.svdvals", A)
        if needs_vectors(A):
            return svd_values(A, *svd_factors(A, full_matrices=False))
        return singular_values_alone(A)

    oracle = "retrograd.testing.references.decompose.linalg_svdvals"

    def samples(r):
        yield (diagonal_sample(r, 3, 3),), {}
        yield (diagonal_sample(r, 3, 4, 2),), {}


@op("svd(Tensor x, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)")
class svd(Composite):
    """The SVD x = U diag(S) V^H: `linalg.svd` with V in place of V^H; zeros for U and V without compute_uv."""

    def compose(x, *, some, compute_uv):
        check_matrices("svd", x)
        if compute_uv:
            U, S, Vh = linalg_svd(x, not some)
            return U, S, adjoint(Vh).contiguous()
        zeros = [registry["zeros"]((*x.shape[:-2], size, size), dtype=x.dtype) for size in x.shape[-2:]]
        return zeros[0], linalg_svdvals(x), zeros[1]

    def observe(U, S, V):
        return _determined_part(U, S, adjoint(V))

    oracle = "retrograd.testing.references.decompose.svd"

    def samples(r):
        yield (r(4, 3),), {}
        yield (r(2, 3),), {"some": False}
