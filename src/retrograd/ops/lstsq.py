"""Least squares: overdetermined and underdetermined linear systems.

G. H. Golub and V. Pereyra, The differentiation of pseudo-inverses, SIAM J. Numer. Anal. 10 (1973).
"""

from retrograd.core import Aval, Internal, NotBatchedError, op, registry
from retrograd.core import dtype as dtypes
from retrograd.ops.constants import constant_without_gradient
from retrograd.ops.family import Composite
from retrograd.ops.linalg import matmul
from retrograd.ops.matrix_functions import (
    MatrixOperator,
    check_matrices,
    linalg_pinv,
    machine_epsilon,
    mT,
    pinv_vjp,
    pseudo_inverse,
)
from retrograd.ops.pointwise import conj, eq, real_part
from retrograd.ops.reduce import all as all_of
from retrograd.ops.reduce import sum as sum_over
from retrograd.ops.solve import broadcast_stacks
from retrograd.ops.view import squeeze, unsqueeze


@op("least_squares(Tensor A, Tensor B, *, number rcond) -> (Tensor solution, Tensor rank)")
class least_squares(Internal, MatrixOperator, differentiable=False):
    """The shortest X that minimises |A X - B|, and the rank of A."""

    def impl(xp, A, B, *, rcond):
        return xp.least_squares(A, B, rcond)

    def shape(A, B, *, rcond):
        check_matrices("linalg.lstsq", A, B)
        return Aval((*A.shape[:-2], A.shape[-1], B.shape[-1]), B.dtype), Aval(A.shape[:-2], dtypes.int64)

    oracle = "retrograd.testing.references.solve.least_squares"

    def samples(r):
        yield (r(4, 3), r(4, 2)), {"rcond": 1e-10}


@op("minimizer(Tensor A, Tensor B, Tensor X) -> Tensor")
class minimizer(Internal, MatrixOperator, node_name="LinalgLstsqBackward0"):
    """X, a given minimiser of |A X - B|, with its derivative as pinv(A) B."""

    def impl(xp, A, B, X):
        return xp.copy_result(A, X)

    def shape(A, B, X):
        if not A.shape[:-2] == B.shape[:-2] == X.shape[:-2]:
            raise ValueError(f"minimizer: shapes {A.shape}, {B.shape} and {X.shape} differ in front")
        return Aval(X.shape, X.dtype)

    def vjp_A(g, A, B):
        return pinv_vjp(A, linalg_pinv(A), matmul(g, mT(B)))

    def vjp_B(g, A):
        return matmul(mT(linalg_pinv(A)), g)

    def jvp_A(t, A, B):
        return matmul(pseudo_inverse.definition.jvp_A(t, A, linalg_pinv(A)), B)

    def jvp_B(t, A):
        return matmul(linalg_pinv(A), t)

    def constrain(A, B, X):
        return A, B, least_squares(A, B, rcond=1e-10)[0]

    def oracle(np, A, B, X):
        return np.linalg.pinv(A) @ B

    def samples(r):
        A, B = r(4, 3), r(4, 2)
        yield (A, B, least_squares(A, B, rcond=1e-10)[0]), {}
        A, B = r(2, 2, 3), r(2, 2, 2)
        yield (A, B, least_squares(A, B, rcond=1e-10)[0]), {}



@op(
    "linalg.lstsq(Tensor A, Tensor B, number? rcond=None, *, str? driver=None) "
    "-> (Tensor solution, Tensor residuals, Tensor rank, Tensor singular_values)"
)
class linalg_lstsq(Composite):
    """Least squares solution: the shortest X that minimises |A X - B|, with A (..., m, n), B (..., m, k) or (..., m).

    Singular values below rcond times the largest (None: the precision times max(m, n)) count as 0.  All is computed
    from singular values, but which results are returned depends on the driver as in PyTorch: residuals, the squared
    distances, if m > n ("gels"), and every rank is n ("gelsd", "gelss"), the rank (all but "gels"), the singular values
    ("gelsd", "gelss"); the rest is empty.  Examples of `vmap` all get residuals, for any ranks.  The derivative
    is valid where the rank does not change.

    >>> import retrograd as rg
    >>> A = rg.tensor([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    >>> [round(v, 3) for v in rg.linalg.lstsq(A, rg.tensor([1.0, 3.0, 5.0])).solution.tolist()]
    [1.0, 2.0]
    """

    def compose(A, B, *, rcond, driver):
        if driver not in (None, "gels", "gelsy", "gelsd", "gelss"):
            raise ValueError(f"linalg.lstsq: driver must be gels, gelsy, gelsd or gelss, got {driver!r}")
        vector = B.shape == A.shape[:-1]
        A, B = _broadcast_sides(A, unsqueeze(B, -1) if vector else B)
        rcond = max(A.shape[-2:]) * machine_epsilon(A.dtype) if rcond is None else rcond
        X, rank = least_squares(A, B, rcond=rcond)
        X = minimizer(A, B, X)
        residuals = _residuals(A, B, X, rank, driver)
        nothing = registry["zeros"](0, dtype=dtypes.real_of(A.dtype))
        rank = registry["zeros"](0, dtype=dtypes.int64) if driver == "gels" else rank
        values = registry["linalg.svdvals"](A) if driver in ("gelsd", "gelss") else nothing
        residuals = constant_without_gradient(nothing, X) if residuals is None else residuals
        return squeeze(X, -1) if vector else X, residuals, rank, values

    oracle = "retrograd.testing.references.solve.linalg_lstsq"

    def samples(r):
        yield (r(4, 3), r(4, 2)), {}
        yield (r(4, 3) * registry["eye"](4, 3, dtype=dtypes.float64), r(4, 2)), {"driver": "gelsd"}
        yield (r(2, 4, 3), r(2, 4)), {"driver": "gels"}
        yield (r(2, 3) * registry["eye"](2, 3, dtype=dtypes.float64), r(2, 2)), {"driver": "gelss"}

    def errors(r):
        yield (r(3, 3), r(2, 3)), {}, ValueError, r"linalg.lstsq: shapes \(3, 3\) and \(2, 3\) do not fit"
        yield (r(3, 3), r(3, 3)), {"driver": "qr"}, ValueError, "linalg.lstsq: driver must be gels.*got 'qr'"


def _broadcast_sides(A, B):
    check_matrices("linalg.lstsq", A, B)
    if A.shape[-2] != B.shape[-2]:
        raise ValueError(f"linalg.lstsq: shapes {A.shape} and {B.shape} do not fit: A X = B")
    return broadcast_stacks("linalg.lstsq", A, B)


def _is_full_rank(rank, n):
    """Whether every rank is n; True where examples of a batch differ, since they must get one shape."""
    try:
        return all_of(eq(rank, n)).item()
    except NotBatchedError:
        return True


def _residuals(A, B, X, rank, driver):
    """Return |A X - B|^2 per column, where PyTorch's driver returns it."""
    if A.shape[-2] <= A.shape[-1] or driver in (None, "gelsy"):
        return None
    if driver != "gels" and not _is_full_rank(rank, A.shape[-1]):
        return None
    residual = matmul(A, X) - B
    return sum_over(real_part(residual * conj(residual)), -2)
