"""Time sparse Jacobians and Hessians with 10,000 unknowns, with their pattern and coloring, and dense ones.

    python benchmarks/sparse.py [--rounds 15] [--json FILE] [--check]

One thread.  "retrograd" finds the pattern, colors it and computes the entries.  "pattern and coloring" and "known
sparsity" time the two parts.  PyTorch lacks this function.
"""

import argparse
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from retrograd.bench import Case, Subject, Suite, Table, library, main, parser, run_suite

UNKNOWNS = 10_000
BUDGET = 1.0  # second, for everything
DENSE = 2_000  # the most unknowns for a dense matrix
GRID = 100  # points along each side


class Problem(NamedTuple):
    """A function, and which of its derivatives is computed at a point with that many unknowns."""

    function: Callable[[Any], Any]
    shape: tuple[int, ...]
    hessian: bool = False


def heat(u: Any) -> Any:
    """Return a boundary value problem, u'' = exp(u): tridiagonal."""
    import retrograd as rg

    p = rg.nn.functional.pad(u, (1, 1))
    return p[2:] - 2 * u + p[:-2] - rg.exp(u) / u.shape[0] ** 2


def beam(u: Any) -> Any:
    """Return an elastic beam on a nonlinear foundation: pentadiagonal."""
    import retrograd as rg

    p = rg.nn.functional.pad(u, (2, 2))
    return p[4:] - 4 * p[3:-1] + 6 * u - 4 * p[1:-3] + p[:-4] + u**3


def burgers(u: Any) -> Any:
    """Return periodic upwind differences, by where and roll: tridiagonal except for two corners."""
    import retrograd as rg

    return u * rg.where(u > 0, u - rg.roll(u, 1), rg.roll(u, -1) - u)


def bratu(u: Any) -> Any:
    """Return the same boundary value problem on a square: five-point stencils."""
    import retrograd as rg

    p = rg.nn.functional.pad(u, (1, 1, 1, 1))
    return p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - 4 * u + rg.exp(u)


def rosenbrock(x: Any) -> Any:
    """Return the chained Rosenbrock function."""
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def penalized_rosenbrock(x: Any) -> Any:
    """Return the same with one unknown that interacts with all others: a full row and column."""
    return rosenbrock(x[1:]) + x[0] * (x[1:] ** 2).sum()


PROBLEMS = {
    "tridiagonal Jacobian": Problem(heat, (UNKNOWNS,)),
    "pentadiagonal Jacobian": Problem(beam, (UNKNOWNS,)),
    "periodic upwind Jacobian": Problem(burgers, (UNKNOWNS,)),
    "Jacobian on a 2D grid": Problem(bratu, (GRID, GRID)),
    "chained Rosenbrock Hessian": Problem(rosenbrock, (UNKNOWNS,), hessian=True),
    "Hessian with a full row": Problem(penalized_rosenbrock, (UNKNOWNS,), hessian=True),
}
BESIDE = {
    "tridiagonal Jacobian": Problem(heat, (DENSE,)),
    "chained Rosenbrock Hessian": Problem(rosenbrock, (DENSE,), hessian=True),
}


def point(shape: tuple[int, ...]) -> Any:
    """Return the point of the derivative, in double precision."""
    import retrograd as rg

    rg.manual_seed(0)
    return rg.rand(*shape, dtype=rg.float64) + 0.5


class Job(NamedTuple):
    """One problem in three variants, and the results."""

    whole: Callable[[], object]
    pattern: Callable[[], Any]
    known: Callable[[], object]
    dense: Callable[[], object]


def job(problem: Problem) -> Job:
    """Return the whole computation; the pattern with its coloring alone; and the computation with known sparsity."""
    from retrograd import func

    f, x = problem.function, point(problem.shape)
    sparse, pattern = func.sparse_jacobian, func.jacobian_sparsity
    if problem.hessian:
        sparse, pattern = func.sparse_hessian, func.hessian_sparsity
    found = pattern(f)(x)
    dense = func.hessian(f) if problem.hessian else func.jacfwd(f)
    return Job(partial(sparse(f), x), partial(pattern(f), x), partial(sparse(f, sparsity=found), x), partial(dense, x))


PARTS = {"whole": "retrograd", "pattern": "pattern and coloring", "known": "known sparsity", "dense": "dense"}
SUBJECTS = {name: Subject("retrograd") for name in PARTS.values()}
LARGE = {f"{name}, {UNKNOWNS:,} unknowns": problem for name, problem in PROBLEMS.items()}
SMALL = {f"{name}, {DENSE:,} unknowns": problem for name, problem in BESIDE.items()}


def cases(name: str, threads: int) -> Callable[[str], Case | None]:
    """Return a function from row to case in a subject's process."""
    library("retrograd", threads)
    (part,) = [part for part, title in PARTS.items() if title == name]

    def case(row: str) -> Case | None:
        if part == "dense" and row in LARGE:
            return None
        made = job({**LARGE, **SMALL}[row])
        return Case(getattr(made, part), lambda: [] if part == "pattern" else [dense_of(getattr(made, part)())])

    return case


def dense_of(found: Any) -> Any:
    """Return the column sums of a matrix, sparse or not, as an array."""
    if hasattr(found, "detach"):
        found = found.detach()
        return found.reshape(found.shape[0], -1).sum(0).numpy()
    return found.sum(axis=0)


def report(options: argparse.Namespace) -> list[Table]:
    """Return one table; the budget of large problems is a second for everything."""
    rows: dict[str, dict[str, float]] = {row: {"": 1e3 * BUDGET} for row in LARGE} | {row: {} for row in SMALL}
    made = run_suite(Suite("Sparse derivatives", __file__, rows, SUBJECTS, cases), options)
    for name, problem in LARGE.items() if not options.only else ():
        sparsity = job(problem).pattern()
        made.notes.append(f"{name}: {sparsity.count} colors, {sparsity.pattern.nnz:,} entries")
    return [made]


if __name__ == "__main__":
    sys.exit(main(parser(__doc__, 7), report, cases))
