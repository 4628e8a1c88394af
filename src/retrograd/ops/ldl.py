"""LDL factorisation of symmetric or Hermitian matrices, also indefinite ones: L D L^T.

A block of D has size 1 or 2.  One matrix holds the lower triangles of L and D: where D has a block of size 2, L has a
zero.
"""

from retrograd.core import Aval, Internal, op, registry
from retrograd.core import dtype as dtypes
from retrograd.core.hooks import conjugate
from retrograd.ops.decompose import hermitian as hermitian_of
from retrograd.ops.diagonal import diagonal
from retrograd.ops.family import Composite, CoreDims, cast_to
from retrograd.ops.gather import take_along_dim
from retrograd.ops.linalg import matmul
from retrograd.ops.matrices import diag_embed
from retrograd.ops.matrix_functions import MatrixOperator, check_square, dominant_matrix, mT
from retrograd.ops.pointwise import logical_not, real_part, where
from retrograd.ops.solve import (
    broadcast_stacks,
    check_info,
    check_linear_system,
    take_rows,
    triangular,
    triangular_right,
)
from retrograd.ops.sort import argsort
from retrograd.ops.view import cat, expand, narrow, tril, triu, unsqueeze


def _transpose(x, hermitian):
    """Return the transposes of matrices, with `hermitian` their adjoints."""
    return mT(conjugate(x) if hermitian else x)


# ------------------------------------------------------------------------------------------------ L and D in one


def _strict_lower(x, blocks):
    """Return the strict lower triangles, without the elements in blocks of D."""
    return tril(x, -2) + _below_diagonal(x, logical_not(blocks))


def _block_lower(x, blocks):
    """Return the lower triangles of the blocks of D."""
    return tril(triu(x)) + _below_diagonal(x, blocks)


def _below_diagonal(x, columns):
    """Return the elements just below the diagonal in the columns that are wanted, zeros elsewhere."""
    n = x.shape[-1]
    if n < 2:
        return x * 0
    return diag_embed(diagonal(x, -1, -2, -1) * cast_to(narrow(columns, -1, 0, n - 1), x.dtype), -1)


def _unit_lower(LD, blocks):
    return _strict_lower(LD, blocks) + registry["eye"](LD.shape[-1], dtype=LD.dtype)


def _shift_back(x, dim):
    """Shift elements back by one along dim, with zeros at the end."""
    rest = narrow(x, dim, 1, x.shape[dim] - 1)
    return cat([rest, narrow(x, dim, 0, 1) * 0], dim)


def _shift_forward(x, dim):
    """Shift elements forward by one along dim, with zeros at the start."""
    rest = narrow(x, dim, 0, x.shape[dim] - 1)
    return cat([narrow(x, dim, 0, 1) * 0, rest], dim)


def _solve_blocks(LD, blocks, y, hermitian):
    """Return X with D X = y, each row with the row that it shares a block with."""
    if not LD.shape[-1]:
        return y * 1
    own = diagonal(LD, 0, -2, -1)
    own = cast_to(real_part(own), own.dtype) if hermitian else own
    first, second = blocks, cast_to(_shift_forward(cast_to(blocks, dtypes.uint8), -1), dtypes.bool_)
    below = where(first, _shift_back(diagonal(_shift_forward(LD, -1), 0, -2, -1), -1), 0)
    above = conjugate(below) if hermitian else below
    partner = where(first, _shift_back(own, -1), where(second, _shift_forward(own, -1), 1))
    determinant = own * partner - (below * above + _shift_forward(below * above, -1))
    coupling = above + _shift_forward(below, -1)
    neighbour = where(unsqueeze(first, -1), _shift_back(y, -2), _shift_forward(y, -2))
    partner, coupling, determinant = (unsqueeze(x, -1) for x in (partner, coupling, determinant))
    return (partner * y - coupling * neighbour) / determinant


# --------------------------------------------------------------------------------------------------- the operators


@op("ldl_parts(Tensor A, *, bool hermitian) -> (Tensor LD, Tensor pivots, Tensor info)")
class ldl_parts(Internal, CoreDims, differentiable=False):
    """Return L and D in one matrix, the pivots, both as LAPACK does, and the first block of D that is 0, from 1."""

    def impl(xp, A, *, hermitian):
        return xp.bunch_kaufman(A, hermitian)

    def shape(A, *, hermitian):
        check_square("linalg.ldl_factor", A)
        return A, Aval(A.shape[:-1], dtypes.int32), Aval(A.shape[:-2], dtypes.int32)

    oracle = "retrograd.testing.references.ldl.factor"

    def samples(r):
        yield (r(2, 3, 3),), {"hermitian": False}
        yield (r(4, 4),), {"hermitian": True}


@op("ldl_swaps(Tensor pivots) -> (Tensor order, Tensor blocks, Tensor source)")
class ldl_swaps(Internal, CoreDims, differentiable=False, cores=(1,)):
    """Return the order of rows, which rows begin a block of size 2, and where elements of L are in LAPACK's form."""

    def impl(xp, pivots):
        return xp.swaps_of_pivots(pivots)

    def shape(pivots):
        n = pivots.shape[-1]
        rows = Aval(pivots.shape, dtypes.int64)
        return rows, Aval(pivots.shape, dtypes.bool_), Aval((*pivots.shape, n), dtypes.int64)

    oracle = "retrograd.testing.references.ldl.ldl_swaps"

    def samples(r):
        tensor = registry["stack"]
        yield (tensor([registry["full"]((), k, dtype=dtypes.int32) for k in (3, -3, -3, 4)]),), {}
        yield (registry["full"]((2, 1), 1, dtype=dtypes.int32),), {}

    def errors(r):
        yield (r.ints(1, (2,)) + 3,), {}, ValueError, r"\[3, 3\] are no pivots of linalg.ldl_factor"


@op("ldl_of(Tensor A, Tensor LD, Tensor blocks, *, bool hermitian) -> Tensor")
class ldl_of(Internal, MatrixOperator):
    """LD, the given L and D with A = L D L^T (or L D L^H) in one matrix, with its derivative."""

    def impl(xp, A, LD, blocks, *, hermitian):
        return xp.copy_result(A, LD)

    def shape(A, LD, blocks, *, hermitian):
        return Aval(LD.shape, LD.dtype)

    def vjp_A(g, out, blocks, hermitian):
        L = _unit_lower(out, blocks)
        product = _strict_lower(matmul(mT(L), _strict_lower(g, blocks)), blocks)
        product = _strict_lower(mT(_solve_blocks(out, blocks, mT(product), hermitian)), blocks)
        product = product + _block_lower(g, blocks)
        right = triangular_right(conjugate(L) if hermitian else L, product, upper=False, unit=True)
        return triangular(mT(L), right, upper=True, unit=True)

    def jvp_A(t, out, blocks, hermitian):
        L = _unit_lower(out, blocks)
        inner = triangular(L, t, upper=False, unit=True)
        inner = triangular_right(_transpose(L, hermitian), inner, upper=True, unit=True)
        D = conjugate(out) if hermitian else out
        t_L = mT(_solve_blocks(D, blocks, mT(_strict_lower(inner, blocks)), hermitian))
        return _strict_lower(matmul(L, t_L), blocks) + _block_lower(inner, blocks)

    def constrain(A, LD):
        return hermitian_of(A), ldl_parts(A, hermitian=True)[0]

    oracle = "retrograd.testing.references.ldl.packed_ldl"

    def samples(r):
        for A in (dominant_matrix(r, 3, 2), r(4, 4) + _coupled_sample(4)):
            LD, pivots, _ = ldl_parts(A, hermitian=True)
            yield (hermitian_of(A), LD, ldl_swaps(pivots)[1]), {"hermitian": True}


def _coupled_sample(n):
    """Return a matrix with coupled neighbours, for blocks of size 2."""
    ones = registry["ones"]((n - 1,), dtype=dtypes.float64) * registry["stack"](
        [registry["full"]((), 9.0 * (i % 2 == 0), dtype=dtypes.float64) for i in range(n - 1)]
    )
    return diag_embed(ones, -1)




_ZERO = "the matrix is singular: block {} of D is 0"


def _factor(name, A, hermitian, check_errors):
    """Return LD with its derivative, the pivots, and the index of a zero block."""
    check_square(name, A)
    packed, pivots, info = ldl_parts(A, hermitian=hermitian)
    check_info(name, info, check_errors, _ZERO)
    order, blocks, source = ldl_swaps(pivots)
    full = hermitian_of(A) if hermitian else tril(A) + mT(tril(A, -1))
    full = mT(take_rows(mT(take_rows(full, order)), order))
    known = ldl_of(full, take_along_dim(packed, source, -2), blocks, hermitian=hermitian)
    return take_along_dim(known, argsort(source, -2), -2), pivots, info


def _factor_samples(r):
    yield (r(3, 3),), {}
    yield (hermitian_of(r(2, 4, 4)),), {"hermitian": True}
    yield (r(4, 4) + _coupled_sample(4),), {}


@op("linalg.ldl_factor(Tensor A, *, bool hermitian=False) -> (Tensor LD, Tensor pivots)")
class linalg_ldl_factor(Composite):
    """LDL factorisation A = L D L^T, with `hermitian` L D L^H, of matrices (..., n, n), read from the lower triangle.

    LD holds the lower triangle of L, without its diagonal of ones, and D, which has blocks of size 1 and 2 on its
    diagonal; pivots (..., n) in int32 are LAPACK's, for `linalg.ldl_solve`.  LinAlgError if a block of D is 0.  The
    derivative, which PyTorch lacks, treats the pivots as constant.

    >>> import retrograd as rg
    >>> rg.linalg.ldl_factor(rg.tensor([[4.0, 0.0], [2.0, 3.0]])).LD.tolist()
    [[4.0, 0.0], [0.5, 2.0]]
    """

    def compose(A, *, hermitian):
        return _factor("linalg.ldl_factor", A, hermitian, True)[:2]

    oracle = "retrograd.testing.references.ldl.linalg_ldl_factor"

    samples = _factor_samples

    def errors(r):
        yield (r(2, 3),), {}, ValueError, r"linalg.ldl_factor: .*expected square matrices, got shape \(2, 3\)"
        yield (r(2, 2) * 0,), {}, RuntimeError, "linalg.ldl_factor: the matrix is singular: block 1 of D is 0"
        yield (r.ints(3, (2, 2)),), {}, TypeError, "linalg.ldl_factor: expected a floating or complex dtype"


@op(
    "linalg.ldl_factor_ex(Tensor A, *, bool hermitian=False, bool check_errors=False) "
    "-> (Tensor LD, Tensor pivots, Tensor info)"
)
class linalg_ldl_factor_ex(Composite):
    """Return `linalg.ldl_factor` and, in `info`, which block of D is 0, counted from 1; 0 if none is."""

    def compose(A, *, hermitian, check_errors):
        return _factor("linalg.ldl_factor_ex", A, hermitian, check_errors)

    oracle = "retrograd.testing.references.ldl.factor"

    samples = _factor_samples

    def errors(r):
        yield (r(2, 2) * 0,), {"check_errors": True}, RuntimeError, "linalg.ldl_factor_ex: .* block 1 of D is 0"


@op("linalg.ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor")
class linalg_ldl_solve(Composite):
    """Solve A X = B from A's `linalg.ldl_factor`: LD (..., n, n) and pivots (..., n); B is (..., n, k).

    The leading dimensions broadcast.

    >>> import retrograd as rg
    >>> A = rg.tensor([[0.0, 2.0], [2.0, 0.0]])
    >>> rg.linalg.ldl_solve(*rg.linalg.ldl_factor(A), rg.tensor([[2.0], [4.0]])).tolist()
    [[2.0], [1.0]]
    """

    def compose(LD, pivots, B, *, hermitian):
        check_linear_system("linalg.ldl_solve", LD, B)
        if pivots.dtype.kind not in "iu":
            raise TypeError(f"linalg.ldl_solve: pivots must be integers, got {pivots.dtype}")
        if pivots.shape != LD.shape[:-1]:
            raise ValueError(f"linalg.ldl_solve: shapes {LD.shape} and {pivots.shape} of LD and pivots do not fit")
        LD, B = broadcast_stacks("linalg.ldl_solve", LD, B)
        order, blocks, source = ldl_swaps(expand(pivots, LD.shape[:-1]))
        LD = take_along_dim(LD, source, -2)
        L = _unit_lower(LD, blocks)
        y = triangular(L, take_rows(B, order), upper=False, unit=True)
        y = triangular(_transpose(L, hermitian), _solve_blocks(LD, blocks, y, hermitian), upper=True, unit=True)
        return take_rows(y, argsort(order, -1))

    oracle = "retrograd.testing.references.ldl.linalg_ldl_solve"

    def samples(r):
        for args, params in _factor_samples(r):
            LD, pivots, _ = ldl_parts(*args, hermitian=params.get("hermitian", False))
            yield (LD, pivots, r(*LD.shape[:-1], 2)), params
            yield (LD, pivots, r(3, *(1,) * (LD.ndim - 2), LD.shape[-1], 1)), params

    def errors(r):
        LD, pivots = r(3, 3), r.ints(1, (3,)) + 1
        yield (LD, pivots, r(4, 2)), {}, ValueError, r"linalg.ldl_solve: .*shapes \(3, 3\) and \(4, 2\) do not fit"
        yield (LD, r(3), r(3, 2)), {}, TypeError, "linalg.ldl_solve: pivots must be integers"
        yield (LD, r.ints(1, (2,)), r(3, 2)), {}, ValueError, r"linalg.ldl_solve: shapes \(3, 3\) and \(2,\)"
        yield (LD, pivots, r(3)), {}, ValueError, "linalg.ldl_solve: .*expected matrices"
