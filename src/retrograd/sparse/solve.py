"""Linear systems with a sparse matrix, differentiable in its values and in the right-hand side."""

from typing import Any

from retrograd.backend.sparse_pattern import Coordinates, block_diagonal
from retrograd.backend.sparse_solvers import Factorization, Solver, lower_triangle
from retrograd.core import Aval, Internal, Tensor, op
from retrograd.ops.batching import batch_all
from retrograd.sparse.rules.products import sampled, times_dense


@op("sparse.solve(Tensor[] operands, *, any pattern, any solver, bool transposed=False) -> Tensor")
class solve(Internal, in_host_memory=True):
    """The solution x (n, k) of A x = b for operands (values of A, b), or of the transposed system.

    Derivatives are solutions of systems with A or its transpose, by the same solver, which keeps factors.
    """

    def impl(xp, values, b, *, pattern, solver, transposed):
        return solver.solve(values, pattern, b, transposed)

    def shape(values, b, *, pattern, solver, transposed):
        return Aval(b.shape, b.dtype)

    def vjp_operands(g, operands, out, pattern, solver, transposed):
        values, _ = operands
        w = solve([values, g], pattern=pattern, solver=solver, transposed=not transposed)
        rows, columns = (out, w) if transposed else (w, out)
        return [-sampled(rows, columns, pattern=pattern), w]

    @classmethod
    def jvp(cls, op, primals, tangents, out, params):
        """The tangent x' of the solution: A x' = b' - A' x."""
        (values, _), (moved, right) = primals, tangents
        if moved is not None:
            pattern = params["pattern"].transposed((1, 0)) if params["transposed"] else params["pattern"]
            change = times_dense(moved, out, pattern=pattern)
            right = -change if right is None else right - change
        return solve([values, right], **params)

    def batch(batched, n, values, b, *, pattern, solver, transposed):
        size, count = b.shape[-2:]
        given = {"solver": solver, "transposed": transposed}
        if not batched[0]:
            columns = b.permute(1, 0, 2).reshape((size, n * count))
            return solve([values, columns], pattern=pattern, **given).reshape((size, n, count)).permute(1, 0, 2)
        values, b = batch_all((values, b), batched, n)
        whole, rows = block_diagonal(pattern, n), b.reshape((n * size, count))
        return solve([values.reshape((-1,)), rows], pattern=whole, **given).reshape((n, size, count))

    def samples(r):
        yield ([r(3), r(2, 2)],), {"pattern": lower_triangle(2), "solver": Factorization()}


def solve_system(values: Tensor, pattern: Coordinates, b: Tensor, solver: Solver, transposed: bool = False) -> Tensor:
    """Return the solution of A x = b for a vector or a matrix b."""
    columns = b.unsqueeze(1) if b.ndim == 1 else b
    x: Any = solve([values, columns], pattern=pattern, solver=solver, transposed=transposed)
    return x.squeeze(1) if b.ndim == 1 else x
