"""Systems of linear equations: general, triangular, and from factored matrices.

Derivation of the rules: M. Giles, Collected matrix derivative results for forward and reverse mode (2008).
"""

from retrograd.backend.linalg import LinAlgError
from retrograd.core import Aval, Internal, op, registry
from retrograd.core import dtype as dtypes
from retrograd.ops.batching import align_batched, batch_all
from retrograd.ops.complex import conjugate_transpose as adjoint
from retrograd.ops.family import Composite, CoreDims, Gufunc, broadcast_shapes, numel
from retrograd.ops.functions import function
from retrograd.ops.gather import take_along_dim
from retrograd.ops.linalg import matmul
from retrograd.ops.matrix_functions import check_matrices, check_square, dominant_matrix, mT
from retrograd.ops.view import expand, movedim, reshape, squeeze, tril, triu, unsqueeze

function("linalg.LinAlgError")(LinAlgError)


def check_linear_system(name, A, B, left=True):
    """Check A as `check_square` does, and that B has as many rows as A (with right sides, columns)."""
    check_square(name, A, B)
    if A.shape[-1] != B.shape[-2 if left else -1]:
        equation = "A X" if left else "X A"
        raise ValueError(
            f"{name}: Incompatible shapes of A and B for the equation {equation.replace(' ', '')} = B: shapes "
            f"{A.shape} and {B.shape} do not fit: {equation} = B"
        )


def broadcast_stacks(name, *tensors):
    """The matrices broadcast to common batch dimensions."""
    lead = broadcast_shapes(name, [x.shape[:-2] for x in tensors])
    return [x if x.shape[:-2] == lead else expand(x, (*lead, *x.shape[-2:])) for x in tensors]


# --------------------------------------------------------------------------------------------- general matrices

# A is factored by an operator without derivatives.  `solved` has the derivatives, and reuses the factors for them.


@op("solve_factors(Tensor A) -> (Tensor LU, Tensor swaps)")
class solve_factors(Internal, CoreDims, differentiable=False):
    """The LU factors of the transposes of square matrices, to solve with both; small transposes themselves."""

    def impl(xp, A):
        return xp.solve_factors(A)

    def shape(A):
        check_square("linalg.solve", A)
        return Aval(A.shape, A.dtype), Aval(A.shape[:-1], dtypes.int32)

    def oracle(np, A):
        return np.swapaxes(A, -1, -2), np.full(A.shape[:-1], -1)

    def samples(r):
        yield (r(2, 3, 3),), {}


@op("lu_parts(Tensor A, *, bool pivot) -> (Tensor LU, Tensor swaps, Tensor info)")
class lu_parts(Internal, CoreDims, differentiable=False):
    """The packed LU matrix, the row swapped in at each step (from 0), and the first zero pivot (from 1)."""

    def impl(xp, A, *, pivot):
        return xp.lu_factors(A, pivot)

    def shape(A, *, pivot):
        check_matrices("linalg.lu_factor", A)
        swaps = Aval((*A.shape[:-2], min(A.shape[-2:])), dtypes.int32)
        return Aval(A.shape, A.dtype), swaps, Aval(A.shape[:-2], dtypes.int32)

    oracle = "retrograd.testing.references.solve.lu_parts"

    def samples(r):
        yield (r(2, 3, 4),), {"pivot": True}
        yield (r(4, 3),), {"pivot": True}
        yield (dominant_matrix(r, 3),), {"pivot": False}


@op("solved(Tensor[] operands, *, bool transposed, bool of_transpose=False) -> Tensor")
class solved(Internal, snapshots="operands"):
    """X with A X = B, or A^T X = B, of operands A, B, and LU and swaps, which are those of A^T if `of_transpose`.

    A and B have equal batch dimensions.
    """

    def impl(xp, A, B, LU, swaps, *, transposed, of_transpose):
        _check_same_batch(A, B)
        return xp.solve_factored(LU, swaps, B, transposed != of_transpose)

    def shape(A, B, LU, swaps, *, transposed, of_transpose):
        _check_same_batch(A, B)
        return Aval(B.shape, B.dtype)

    def vjp_operands(g, operands, out, transposed, of_transpose):
        A, _, LU, swaps = operands
        gB = solved([A, g, LU, swaps], transposed=not transposed, of_transpose=of_transpose)
        if not A.requires_grad:
            return None, gB, None, None
        return -matmul(out, mT(gB)) if transposed else -matmul(gB, mT(out)), gB, None, None

    def jvp(op, primals, tangents, out, params):
        A, _, LU, swaps = primals
        tA, tB = tangents[:2]
        if tA is not None:
            product = matmul(mT(tA) if params["transposed"] else tA, out)
            tB = -product if tB is None else tB - product
        return registry["zeros_like"](out) if tB is None else solved([A, tB, LU, swaps], **params)

    def batch(batched, n, *operands, **params):
        A, B, LU, swaps = operands
        if batched == (False, True, False, False) and A.ndim == 2:
            return solve_concatenated(B, lambda B: solved([A, B, LU, swaps], **params))
        return solved(batch_all(operands, batched, n), **params)

    def dependence(i, out, *operands, transposed, of_transpose):
        in_front = {d: d for d in range(out.ndim - 2)}
        return {**in_front, out.ndim - 1: out.ndim - 1} if i == 1 else in_front

    def constrain(A, B, LU):
        return A, B, solve_factors(A)[0]

    def oracle(np, A, B, LU, swaps, transposed, of_transpose):
        return np.linalg.inv(np.swapaxes(A, -1, -2) if transposed else A) @ B

    def samples(r):
        for transposed in (False, True):
            A = dominant_matrix(r, 3, 2)
            yield (A, r(2, 3, 2), *solve_factors(A)), {"transposed": transposed, "of_transpose": True}


def _check_same_batch(A, B):
    check_linear_system("linalg.solve", A, B)
    if A.shape[:-2] != B.shape[:-2]:
        raise ValueError(f"linalg.solve: shapes {A.shape} and {B.shape} do not fit: expected as many matrices A as B")


def solve_with(name, A, B, left, factors, of_transpose=False):
    """X with A X = B, or X A = B, from A and a function from A to its factors, or to those of its transpose."""
    vector = B.ndim == 1 or (B.ndim == A.ndim - 1 and B.shape == A.shape[:-1])
    if vector and not left:
        raise ValueError(f"{name}: with left=False B must be matrices, got shape {B.shape}")
    B = unsqueeze(B, -1) if vector else B
    check_linear_system(name, A, B, left)
    X = _solve_stacks(name, A, B if left else mT(B), factors(A), transposed=not left, of_transpose=of_transpose)
    X = X if left else mT(X)
    return squeeze(X, -1) if vector else X


def solve_concatenated(B, solve):
    """Several right sides for one matrix, concatenated as columns of one."""
    rows = movedim(B, -2, 0)
    X = solve(reshape(rows, (rows.shape[0], numel(rows.shape[1:]))))
    return movedim(reshape(X, rows.shape), 0, -2)


def _solve_stacks(name, A, B, factors, **params):
    LU, swaps = factors
    if A.ndim == 2 and B.ndim > 2:
        return solve_concatenated(B, lambda B: solved([A, B, LU, swaps], **params))
    A, B, LU = broadcast_stacks(name, A, B, LU)
    return solved([A, B, LU, expand(swaps, A.shape[:-1])], **params)


@op("linalg.solve(Tensor A, Tensor B, *, bool left=True) -> Tensor")
class linalg_solve(Composite):
    """The solution X of A X = B (left=False: X A = B) for square matrices A; LinAlgError if one is singular.

    B is a vector (n,), vectors (..., n) where A is (..., n, n), or matrices (..., n, k); batch dimensions broadcast.

    >>> import retrograd as rg
    >>> rg.linalg.solve(rg.tensor([[2.0, 0.0], [0.0, 4.0]]), rg.tensor([2.0, 2.0])).tolist()
    [1.0, 0.5]
    """

    def compose(A, B, *, left):
        check_square("linalg.solve", A)
        return solve_with("linalg.solve", A, B, left, solve_factors, of_transpose=True)

    oracle = "retrograd.testing.references.solve.linalg_solve"

    def samples(r):
        yield (dominant_matrix(r, 3), r(3)), {}
        yield (dominant_matrix(r, 3, 2), r(2, 3)), {}
        yield (dominant_matrix(r, 3), r(2, 3, 2)), {}
        yield (dominant_matrix(r, 3, 2, 1), r(4, 3, 2)), {}
        yield (dominant_matrix(r, 3), r(2, 3)), {"left": False}

    def errors(r):
        yield (r(2, 3), r(2)), {}, ValueError, r"linalg.solve: .*expected square matrices, got shape \(2, 3\)"
        yield (r(3, 3), r(2)), {}, ValueError, r"linalg.solve: .*shapes \(3, 3\) and \(2, 1\) do not fit"
        yield (r.ints(3, (2, 2)), r(2)), {}, TypeError, "linalg.solve: expected a floating or complex dtype"
        yield (r(2, 2) * 0, r(2)), {}, RuntimeError, "linalg.solve: .*the matrix is singular"
        yield (r(2, 2), registry["to"](r(2), "float32")), {}, RuntimeError, "operands must have one dtype"



@op("linalg.solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor info)")
class linalg_solve_ex(Composite):
    """The result of `linalg.solve`, and `info`: the first zero pivot, from 1, in int32; 0 if A is not singular.

    Singular matrices give inf and NaN, or with check_errors a LinAlgError.
    """

    def compose(A, B, *, left, check_errors):
        check_square("linalg.solve_ex", A)
        LU, swaps, info = lu_parts(A, pivot=True)
        check_info("linalg.solve_ex", info, check_errors, "the matrix is singular: pivot {} is 0")
        return solve_with("linalg.solve_ex", A, B, left, lambda A: (LU, swaps)), info

    oracle = "retrograd.testing.references.solve.linalg_solve_ex"

    def samples(r):
        yield (dominant_matrix(r, 3), r(3)), {}
        yield (dominant_matrix(r, 3, 2), r(2, 4, 3)), {"left": False, "check_errors": True}

    def errors(r):
        yield (r(2, 2) * 0, r(2)), {"check_errors": True}, RuntimeError, "linalg.solve_ex: .* pivot 1 is 0"


@op("checked_info(Tensor info, *, str message) -> Tensor")
class checked_info(Internal, CoreDims, differentiable=False, impure=True, cores=(0,)):
    """Return `info` if it is 0 everywhere, else raise LinAlgError with the largest in place of {} in the message."""

    def impl(xp, info, *, message):
        if xp.on_host and xp.any(info):
            raise LinAlgError(message.format(info.max()))
        return info.copy()

    def shape(info, *, message):
        return info

    def oracle(np, info, message):
        return info

    def samples(r):
        yield (r.ints(1, (2, 3)),), {"message": "pivot {} is 0"}
        yield (r.ints(1, ()),), {"message": "pivot {} is 0"}

    def errors(r):
        yield (r.ints(1, (2,)) + 3,), {"message": "pivot {} is 0"}, RuntimeError, "pivot 3 is 0"


def check_info(name, info, check_errors, reason):
    """Raise LinAlgError if check_errors is set and some `info` is not 0."""
    if check_errors:
        checked_info(info, message=f"{name}: {reason}")


# ------------------------------------------------------------------------------------------------- triangular


@op("triangular(Tensor A, Tensor B, *, bool upper, bool unit) -> Tensor")
class triangular(Internal, Gufunc, linear="B", node_name="LinalgSolveTriangularBackward0"):
    """X with A X = B, reading one triangle of A, with ones on its diagonal if `unit`."""

    core = "(m,m),(m,n)->(m,n)"

    def impl(xp, A, B, *, upper, unit):
        return xp.solve_triangular(A, B, upper, unit)

    def vjp_A(g, A, out, upper, unit):
        gB = triangular(mT(A), g, upper=not upper, unit=unit)
        return -take_triangle(matmul(gB, mT(out)), upper, unit)

    def vjp_B(g, A, upper, unit):
        return triangular(mT(A), g, upper=not upper, unit=unit)

    def jvp_A(t, A, out, upper, unit):
        return -triangular(A, matmul(take_triangle(t, upper, unit), out), upper=upper, unit=unit)

    def batch(batched, n, A, B, *, upper, unit):
        if not batched[0] and A.ndim == 2:
            return solve_concatenated(B, lambda B: triangular(A, B, upper=upper, unit=unit))
        return triangular(*align_batched((A, B), batched, (2, 2)), upper=upper, unit=unit)

    oracle = "retrograd.testing.references.solve.triangular"

    def samples(r):
        yield (dominant_matrix(r, 3), r(3, 2)), {"upper": True, "unit": False}
        yield (dominant_matrix(r, 3, 2), r(3, 2)), {"upper": False, "unit": False}
        yield (dominant_matrix(r, 3), r(2, 3, 2)), {"upper": False, "unit": True}


def take_triangle(x, upper, unit=False):
    """One triangle of A and zeros elsewhere, without the diagonal if `unit`."""
    return triu(x, int(unit)) if upper else tril(x, -int(unit))


def triangular_right(A, B, upper, unit=False):
    """X with X A = B."""
    return mT(triangular(mT(A), mT(B), upper=not upper, unit=unit))


@op("linalg.solve_triangular(Tensor A, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> Tensor")
class linalg_solve_triangular(Composite):
    """The solution X of A X = B (left=False: X A = B), reading only the upper or the lower triangle of A.

    unitriangular: the diagonal of A is not read, and taken as ones.  A zero on the diagonal gives inf and NaN.

    >>> import retrograd as rg
    >>> A = rg.tensor([[2.0, 2.0], [9.0, 4.0]])
    >>> rg.linalg.solve_triangular(A, rg.tensor([[4.0], [4.0]]), upper=True).tolist()
    [[1.0], [1.0]]
    """

    def compose(A, B, *, upper, left, unitriangular):
        check_linear_system("linalg.solve_triangular", A, B, left)
        if left:
            return triangular(A, B, upper=upper, unit=unitriangular)
        return triangular_right(A, B, upper, unitriangular)

    oracle = "retrograd.testing.references.solve.linalg_solve_triangular"

    def samples(r):
        yield (dominant_matrix(r, 3), r(3, 2)), {"upper": True}
        yield (dominant_matrix(r, 3, 2), r(4, 3)), {"upper": False, "left": False}
        yield (dominant_matrix(r, 3), r(2, 3, 2)), {"upper": True, "unitriangular": True}

    def errors(r):
        yield (r(3, 3), r(3)), {"upper": True}, ValueError, "linalg.solve_triangular: .*expected matrices"
        yield (r(3, 3), r(2, 3)), {"upper": True}, ValueError, r"\(3, 3\) and \(2, 3\) do not fit: A X = B"



@op(
    "triangular_solve(Tensor b, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False) "
    "-> (Tensor solution, Tensor cloned_coefficient)"
)
class triangular_solve(Composite):
    """The solution X of A X = b, or with `transpose` of A^T X = b, and a copy of A: older `linalg.solve_triangular`."""

    def compose(b, A, *, upper, transpose, unitriangular):
        check_linear_system("triangular_solve", A, b)
        solution = triangular(mT(A) if transpose else A, b, upper=upper != transpose, unit=unitriangular)
        return solution, A.clone()

    oracle = "retrograd.testing.references.solve.triangular_solve"

    def samples(r):
        yield (r(3, 2), dominant_matrix(r, 3)), {}
        yield (r(2, 3, 2), dominant_matrix(r, 3, 2)), {"upper": False, "transpose": True, "unitriangular": True}

    def errors(r):
        yield (r(3), r(3, 3)), {}, ValueError, "triangular_solve: .*expected matrices"


# -------------------------------------------------------------------------------------------- factored matrices


@op("cholesky_solve(Tensor x, Tensor L, bool upper=False) -> Tensor")
class cholesky_solve(Composite):
    """The solution of L L^H X = x, or with `upper` of L^H L X = x, for triangular L."""

    def compose(x, L, *, upper):
        check_linear_system("cholesky_solve", L, x)
        first, second = (adjoint(L), L) if upper else (L, adjoint(L))
        return triangular(second, triangular(first, x, upper=False, unit=False), upper=True, unit=False)

    oracle = "retrograd.testing.references.solve.cholesky_solve"

    def samples(r):
        yield (r(3, 2), dominant_matrix(r, 3)), {}
        yield (r(2, 3, 2), dominant_matrix(r, 3)), {"upper": True}

    def errors(r):
        yield (r(3), r(3, 3)), {}, ValueError, "cholesky_solve: .*expected matrices"


@op("cholesky_inverse(Tensor L, bool upper=False) -> Tensor")
class cholesky_inverse(Composite):
    """The inverse of L L^H, or with `upper` of L^H L, for triangular L."""

    def compose(L, *, upper):
        check_square("cholesky_inverse", L)
        return cholesky_solve(registry["eye"](L.shape[-1], dtype=L.dtype), L, upper)

    oracle = "retrograd.testing.references.solve.cholesky_inverse"

    def samples(r):
        yield (dominant_matrix(r, 3),), {}
        yield (dominant_matrix(r, 3, 2),), {"upper": True}


@op("order_of_rows(Tensor swaps, *, int rows, bool back) -> Tensor")
class order_of_rows(Internal, CoreDims, differentiable=False, cores=(1,)):
    """The permutation of rows after swaps (the rows swapped in at each step, from 0); `back` inverts it."""

    def impl(xp, swaps, *, rows, back):
        order = xp.row_order(swaps, rows)
        return xp.argsort(order, axis=-1) if back else order

    def shape(swaps, *, rows, back):
        return Aval((*swaps.shape[:-1], rows), dtypes.int64)

    oracle = "retrograd.testing.references.solve.row_order"

    def samples(r):
        yield (r.ints(3, (2, 3)),), {"rows": 3, "back": False}
        yield (r.ints(3, (2,)),), {"rows": 4, "back": True}


def take_rows(x, order):
    """Matrices with rows in another order."""
    lead = broadcast_shapes("linalg.lu", [x.shape[:-2], order.shape[:-1]])
    x = expand(x, (*lead, *x.shape[-2:]))
    return take_along_dim(x, expand(unsqueeze(order, -1), (*lead, order.shape[-1], x.shape[-1])), -2)


@op("linalg.lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> Tensor")
class linalg_lu_solve(Composite):
    """X with A X = B, A^H X = B (adjoint), X A = B (left=False), from `linalg.lu_factor` of A: LU and pivots."""

    def compose(LU, pivots, B, *, left, adjoint):
        check_linear_system("linalg.lu_solve", LU, B, left)
        if not left:
            return _adjoint(_lu_solve(LU, pivots, _adjoint(B), not adjoint)).contiguous()
        return _lu_solve(LU, pivots, B, adjoint)

    oracle = "retrograd.testing.references.solve.linalg_lu_solve"

    def samples(r):
        for params in ({}, {"adjoint": True}, {"left": False}, {"left": False, "adjoint": True}):
            yield (dominant_matrix(r, 3, 2), expand(swaps_to_pivots((2, 3, 3)), (2, 3)), r(2, 3, 3)), params
        yield (dominant_matrix(r, 3), swaps_to_pivots((3, 3, 3)), r(2, 3, 2)), {}


def swaps_to_pivots(numbers):
    """Row swaps of a sample as pivots."""
    return registry["to"](registry["stack"]([registry["full"]((), n) for n in numbers]), dtypes.int32)


def _adjoint(x):
    return adjoint(x)


def _lu_solve(LU, pivots, B, adjointly):
    order = order_of_rows(pivots - 1, rows=LU.shape[-1], back=adjointly)
    if not adjointly:
        y = triangular(LU, take_rows(B, order), upper=False, unit=True)
        return triangular(LU, y, upper=True, unit=False)
    y = triangular(_adjoint(LU), B, upper=False, unit=False)
    return take_rows(triangular(_adjoint(LU), y, upper=True, unit=True), order)


@op("lu_solve(Tensor x, Tensor LU_data, Tensor LU_pivots) -> Tensor")
class lu_solve(Composite):
    """`linalg.lu_solve`, with the right side as first argument."""

    def compose(x, LU_data, LU_pivots):
        check_linear_system("lu_solve", LU_data, x)
        return _lu_solve(LU_data, LU_pivots, x, False)

    oracle = "retrograd.testing.references.solve.lu_solve"

    def samples(r):
        yield (r(3, 2), dominant_matrix(r, 3), swaps_to_pivots((2, 3, 3))), {}


# -------------------------------------------------------------------------------------------- tensors as matrices


@op("linalg.tensorsolve(Tensor A, Tensor B, int[]? dims=None) -> Tensor")
class linalg_tensorsolve(Composite):
    """X with tensordot(A, X, X.ndim) = B, for A of shape B.shape + X.shape after `dims` of A are moved to its end."""

    def compose(A, B, *, dims):
        if dims:
            A = movedim(A, dims, tuple(range(A.ndim - len(dims), A.ndim)))
        shape = A.shape[B.ndim :]
        if numel(B.shape) != numel(shape) or numel(A.shape[: B.ndim]) != numel(shape):
            raise ValueError(f"linalg.tensorsolve: shapes {A.shape} and {B.shape} do not fit: B.shape + X.shape")
        return reshape(linalg_solve(reshape(A, (numel(shape), numel(shape))), reshape(B, (numel(shape),))), shape)

    def oracle(np, A, B, dims):
        return np.linalg.tensorsolve(A, B, dims)

    def samples(r):
        yield (reshape(dominant_matrix(r, 6), (2, 3, 6)), r(2, 3)), {}
        yield (reshape(dominant_matrix(r, 6), (6, 2, 3)), r(2, 3)), {"dims": (0,)}

    def errors(r):
        yield (r(2, 3, 5), r(2, 3)), {}, ValueError, r"linalg.tensorsolve: shapes \(2, 3, 5\) and \(2, 3\)"
