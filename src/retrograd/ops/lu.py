"""LU factorisation: matrices as products of a permutation and two triangular matrices."""

from retrograd.core import Aval, Internal, op, registry
from retrograd.core import dtype as dtypes
from retrograd.ops.family import Composite, cast_to
from retrograd.ops.functions import check_tensor
from retrograd.ops.linalg import matmul
from retrograd.ops.matrix_functions import (
    MatrixOperator,
    check_matrices,
    dominant_matrix,
    first_columns,
    first_rows,
    mT,
)
from retrograd.ops.pointwise import eq
from retrograd.ops.solve import check_info, lu_parts, order_of_rows, take_rows, triangular, triangular_right
from retrograd.ops.view import cat, narrow, tril, triu, unsqueeze


def _eye(n, dtype):
    """Return the identity matrix of size n."""
    return registry["eye"](n, dtype=dtype)


@op("lu_of(Tensor A, Tensor LU) -> Tensor")
class lu_of(Internal, MatrixOperator, node_name="LinalgLuFactorExBackward0"):
    """LU, the given L and U with A = L U in one matrix, with its derivative."""

    def impl(xp, A, LU):
        return xp.copy_result(A, LU)

    def shape(A, LU):
        return Aval(LU.shape, LU.dtype)

    def vjp_A(g, out):
        k = min(out.shape[-2:])
        square, right, below = _split_blocks(out, k)
        g_square, g_right, g_below = _split_blocks(g, k)
        L = tril(square, -1) + _eye(k, out.dtype)
        inner_L = matmul(mT(L), tril(g_square, -1)) - matmul(g_right, mT(right))
        inner_U = matmul(triu(g_square), mT(triu(square))) - matmul(mT(below), g_below)
        inner = tril(inner_L, -1) + triu(inner_U)
        g_factors = cat([cat([inner, g_right], -1), _pad_columns(g_below, out)], -2)
        return _solve_L(_solve_U(g_factors, square, k), square, k)

    def jvp_A(t, out):
        k = min(out.shape[-2:])
        square, right, below = _split_blocks(out, k)
        t_square, t_right, t_below = _split_blocks(t, k)
        inner = triangular_right(square, triangular(square, t_square, upper=False, unit=True), upper=True)
        moved_L, moved_U = tril(inner, -1), triu(inner)
        dU = matmul(moved_U, triu(square))
        dL = matmul(tril(square, -1) + _eye(k, out.dtype), moved_L)
        d_below = triangular_right(square, t_below - matmul(below, dU), upper=True)
        d_right = triangular(square, t_right - matmul(dL, right), upper=False, unit=True)
        return cat([cat([dL + dU, d_right], -1), _pad_columns(d_below, out)], -2)

    def constrain(A, LU):
        return A, lu_parts(A, pivot=False)[0]

    oracle = "retrograd.testing.references.decompose.packed_lu"

    def samples(r):
        for A in (dominant_matrix(r, 3), dominant_matrix(r, 3, 2)):
            for some in (A, narrow(A, -1, 0, 2), narrow(A, -2, 0, 2)):
                some = some.clone()
                yield (some, lu_parts(some, pivot=False)[0]), {}


def _split_blocks(x, k):
    """Return the leading square of size k, the part to its right, and the part below; one of these two is empty."""
    top, below = narrow(x, -2, 0, k), narrow(x, -2, k, x.shape[-2] - k)
    return narrow(top, -1, 0, k), narrow(top, -1, k, x.shape[-1] - k), first_columns(below, k)


def _pad_columns(below, out):
    """Return rows below the square, as wide as the matrix; a matrix wider than the square has none."""
    shape = (*out.shape[:-2], 0, out.shape[-1])
    return below if below.shape[-1] == out.shape[-1] else registry["zeros"](shape, dtype=out.dtype)


def _solve_U(x, square, k):
    """Multiply the first k columns by U^-T."""
    first = triangular_right(mT(square), narrow(x, -1, 0, k), upper=False)
    return first if x.shape[-1] == k else cat([first, narrow(x, -1, k, x.shape[-1] - k)], -1)


def _solve_L(x, square, k):
    """Multiply the first k rows by L^-T from the left."""
    first = triangular(mT(square), narrow(x, -2, 0, k), upper=True, unit=True)
    return first if x.shape[-2] == k else cat([first, narrow(x, -2, k, x.shape[-2] - k)], -2)


def _factor(name, A, pivot):
    """Return LU, the order of rows, the swaps, and the index of a zero pivot."""
    check_matrices(name, A)
    LU, swaps, info = lu_parts(A, pivot=pivot)
    order = order_of_rows(swaps, rows=A.shape[-2], back=False)
    return lu_of(take_rows(A, order) if pivot else A, LU), order, swaps, info





def _factor_samples(r):
    yield (dominant_matrix(r, 3),), {}
    yield (r(2, 4, 3),), {}
    yield (r(3, 4),), {}
    yield (dominant_matrix(r, 3),), {"pivot": False}


def _unpack_triangles(packed):
    *_, m, n = packed.shape
    k = min(m, n)
    L = tril(first_columns(packed, k), -1) + registry["eye"](m, k, dtype=packed.dtype)
    return L, triu(first_rows(packed, k))


def _permutation_matrix(order, dtype):
    """Return the permutation matrix P that moves row i of L U to its index in A."""
    rows = registry["arange"](0, order.shape[-1], 1)
    return cast_to(eq(unsqueeze(order, -2), unsqueeze(rows, -1)), dtype)


@op("linalg.lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)")
class linalg_lu(Composite):
    """LU factorisation A = P L U: a permutation, a lower triangle with unit diagonal, an upper triangle.

    Without `pivot`, P is empty and A = L U.  The derivative treats the permutation as constant, and needs the leading
    square to be invertible.

    >>> import retrograd as rg
    >>> P, L, U = rg.linalg.lu(rg.tensor([[1.0, 2.0], [2.0, 2.0]]))
    >>> L.tolist(), U.tolist()
    ([[1.0, 0.0], [0.5, 1.0]], [[2.0, 2.0], [0.0, 1.0]])
    """

    def compose(A, *, pivot):
        packed, order, _, _ = _factor("linalg.lu", A, pivot)
        P = _permutation_matrix(order, A.dtype) if pivot else registry["zeros"](0, dtype=A.dtype)
        return P, *_unpack_triangles(packed)

    oracle = "retrograd.testing.references.decompose.linalg_lu"

    samples = _factor_samples


@op("linalg.lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)")
class linalg_lu_factor(Composite):
    """LU factorisation in packed form: L and U in one matrix; per step the row swapped in, counted from 1, in int32.

    LinAlgError if a pivot is 0.
    """

    def compose(A, *, pivot):
        packed, _, swaps, info = _factor("linalg.lu_factor", A, pivot)
        check_info("linalg.lu_factor", info, True, "the matrix is singular: pivot {} is 0")
        return packed, swaps + 1

    oracle = "retrograd.testing.references.decompose.linalg_lu_factor"

    samples = _factor_samples

    def errors(r):
        yield (r(2, 2) * 0,), {}, RuntimeError, "linalg.lu_factor: the matrix is singular: pivot 1 is 0"


@op(
    "linalg.lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) "
    "-> (Tensor LU, Tensor pivots, Tensor info)"
)
class linalg_lu_factor_ex(Composite):
    """Return `linalg.lu_factor` and, in `info`, which pivot is 0, counted from 1; 0 if none is."""

    def compose(A, *, pivot, check_errors):
        packed, _, swaps, info = _factor("linalg.lu_factor_ex", A, pivot)
        check_info("linalg.lu_factor_ex", info, check_errors, "the matrix is singular: pivot {} is 0")
        return packed, swaps + 1, info

    oracle = "retrograd.testing.references.decompose.linalg_lu_factor_ex"

    samples = _factor_samples


@op(
    "lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) "
    "-> (Tensor P, Tensor L, Tensor U)"
)
class lu_unpack(Composite):
    """Unpack the results of `linalg.lu_factor` into P, L and U; empty if not requested."""

    method = False

    def compose(LU_data, LU_pivots, *, unpack_data, unpack_pivots):
        empty = registry["zeros"](0, dtype=LU_data.dtype)
        order = order_of_rows(check_tensor("lu_unpack", LU_pivots) - 1, rows=LU_data.shape[-2], back=False)
        P = _permutation_matrix(order, LU_data.dtype) if unpack_pivots else empty
        return P, *(_unpack_triangles(LU_data) if unpack_data else (empty, empty))

    oracle = "retrograd.testing.references.decompose.lu_unpack"

    def samples(r):
        pivots = registry["to"](r.ints(3, (3,)) * 0 + 3, dtypes.int32)
        yield (r(3, 4), pivots), {}
        yield (r(4, 3), pivots), {"unpack_pivots": False}
