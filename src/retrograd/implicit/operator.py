"""The operator of all solvers: its derivative is that of the equations, by the implicit function theorem."""

from collections.abc import Sequence

from retrograd.core import Aval, Internal, Tensor, op, registry
from retrograd.core.dtype import is_differentiable
from retrograd.core.tensor import make
from retrograd.func.vjp_run import VjpRun
from retrograd.implicit.problems import Problem, sample_problem
from retrograd.levels.dual import DualLevel, tangent_of
from retrograd.ops.batch_loop import PerExample


@op("implicit_solution(Tensor[] operands, *, any problem) -> Tensor")
class implicit_solution(Internal, PerExample, vmap_fallback="a solver solves one problem at a time"):
    """The vector z with residual(z, tensors) = 0 that a problem's solver finds from a start; operands: start, *tensors.

    The derivative of z is -(dF/dz)⁻¹ dF/dtensors, of the residual F; the start has none. S. G. Krantz and
    H. R. Parks, The Implicit Function Theorem, 2002.
    """

    def impl(xp, start, *tensors, problem):
        if start.dtype.kind != "f":
            raise TypeError(f"implicit_solution: {problem.name}: the unknowns must be real, got {start.dtype}")
        return problem.solve(start, tensors)

    def shape(start, *tensors, problem):
        return Aval(start.shape, start.dtype)

    def vjp_operands(g, operands, out, problem):
        _, *tensors = operands
        moving = [i for i, t in enumerate(tensors) if is_differentiable(t.dtype)]
        if not moving:
            return [None] * len(operands)
        adjoint = _solve(problem, out, tensors, g, True)

        def residual(given):
            return problem.residual(out, _replace(tensors, moving, given))

        run = VjpRun(problem.name, residual, [tensors[i] for i in moving])
        found = dict(zip(moving, run.pull([-adjoint]), strict=True))
        return [None, *[found.get(i) for i in range(len(tensors))]]

    @classmethod
    def jvp(cls, op, primals, tangents, out, params):
        """The tangent of the solution, from that of the residual at the solution."""
        problem, tensors = params["problem"], primals[1:]
        with DualLevel(problem.residual) as level:
            duals = [make(x, level, t) for x, t in zip(tensors, tangents[1:], strict=True)]
            moved = problem.residual(out, duals)
        return -_solve(problem, out, tensors, tangent_of(level, moved), False)

    def oracle(np, start, A, b, problem):
        return np.arcsinh(A @ b)

    def samples(r):
        example = r(3), r(3, 3), r(3)
        yield example, {"problem": sample_problem(*example)}


def _replace(tensors: Sequence[Tensor], positions: Sequence[int], given: Sequence[Tensor]) -> list[Tensor]:
    new = dict(zip(positions, given, strict=True))
    return [new.get(i, t) for i, t in enumerate(tensors)]


def _solve(problem: Problem, z: Tensor, tensors: Sequence[Tensor], g: Tensor, transposed: bool) -> Tensor:
    try:
        return problem.solve_linear(z, tensors, g, transposed)
    except RuntimeError as error:
        if "singular" not in str(error):
            raise
        raise RuntimeError(
            f"{problem.name}: the Jacobian of the equations is singular at the solution, so the solution has no "
            f"derivative there, or is not unique"
        ) from error


def solution(problem: Problem, start: Tensor) -> Tensor:
    """Return the solution z of a problem, differentiable in the tensors of its functions."""
    found: Tensor = implicit_solution([registry["detach"](start), *problem.closure.tensors], problem=problem)
    return found
