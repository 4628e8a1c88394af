"""What sparse Jacobians and Hessians cost: 10,000 unknowns, pattern and colours included, and dense ones beside them.

    python benchmarks/sparse.py [--rounds 15] [--json FILE] [--check]

One process, one thread; rows take turns, and figures are medians.  PyTorch has no function for it.
"""

import argparse
import statistics
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from common import cells, main, parser, seconds, table, verdict

UNKNOWNS = 10_000
BUDGET = 1.0  # second, for everything
DENSE = 2_000  # as many unknowns as a dense matrix may have here
GRID = 100  # places along each side


class Problem(NamedTuple):
    """A function, and which of its derivatives is wanted at the point of so many unknowns."""

    function: Callable[[Any], Any]
    shape: tuple[int, ...]
    hessian: bool = False


def heat(u: Any) -> Any:
    """A boundary value problem, u'' = exp(u): tridiagonal."""
    import retrograd as rg

    p = rg.nn.functional.pad(u, (1, 1))
    return p[2:] - 2 * u + p[:-2] - rg.exp(u) / u.shape[0] ** 2


def beam(u: Any) -> Any:
    """An elastic beam on a nonlinear ground: pentadiagonal."""
    import retrograd as rg

    p = rg.nn.functional.pad(u, (2, 2))
    return p[4:] - 4 * p[3:-1] + 6 * u - 4 * p[1:-3] + p[:-4] + u**3


def burgers(u: Any) -> Any:
    """Periodic and upwind, by where and roll: tridiagonal but for two corners."""
    import retrograd as rg

    return u * rg.where(u > 0, u - rg.roll(u, 1), rg.roll(u, -1) - u)


def bratu(u: Any) -> Any:
    """The same boundary value problem on a square: five-point stars."""
    import retrograd as rg

    p = rg.nn.functional.pad(u, (1, 1, 1, 1))
    return p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - 4 * u + rg.exp(u)


def rosenbrock(x: Any) -> Any:
    """The chained function of Rosenbrock."""
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def penalised(x: Any) -> Any:
    """The same, and one unknown that all others meet: a full row and column."""
    return rosenbrock(x[1:]) + x[0] * (x[1:] ** 2).sum()


PROBLEMS = {
    "tridiagonal Jacobian": Problem(heat, (UNKNOWNS,)),
    "pentadiagonal Jacobian": Problem(beam, (UNKNOWNS,)),
    "periodic upwind Jacobian": Problem(burgers, (UNKNOWNS,)),
    "Jacobian on a square": Problem(bratu, (GRID, GRID)),
    "chained Rosenbrock Hessian": Problem(rosenbrock, (UNKNOWNS,), hessian=True),
    "Hessian with a full row": Problem(penalised, (UNKNOWNS,), hessian=True),
}
BESIDE = {
    "tridiagonal Jacobian": Problem(heat, (DENSE,)),
    "chained Rosenbrock Hessian": Problem(rosenbrock, (DENSE,), hessian=True),
}


def point(shape: tuple[int, ...]) -> Any:
    """Where the derivative is taken, in double precision."""
    import retrograd as rg

    rg.manual_seed(0)
    return rg.rand(*shape, dtype=rg.float64) + 0.5


class Job(NamedTuple):
    """One problem in three ways, and what was found."""

    whole: Callable[[], object]
    pattern: Callable[[], Any]
    known: Callable[[], object]
    dense: Callable[[], object]


def job(problem: Problem) -> Job:
    """Everything; the pattern with its colours alone; and with these known."""
    from retrograd import func

    f, x = problem.function, point(problem.shape)
    sparse, pattern = func.sparse_jacobian, func.jacobian_sparsity
    if problem.hessian:
        sparse, pattern = func.sparse_hessian, func.hessian_sparsity
    found = pattern(f)(x)
    dense = func.hessian(f) if problem.hessian else func.jacfwd(f)
    return Job(partial(sparse(f), x), partial(pattern(f), x), partial(sparse(f, sparsity=found), x), partial(dense, x))


def medians(calls: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Seconds per call, over rounds in which every call has its turn; the first round warms up."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(rounds + 1):
        for name, call in calls.items():
            taken = seconds(call)
            if number:
                times[name].append(taken)
    return {name: statistics.median(t) for name, t in times.items()}


def large(rounds: int) -> tuple[bool, dict[str, float]]:
    """The problems of 10,000 unknowns; whether all keep within the budget."""
    jobs = {name: job(problem) for name, problem in PROBLEMS.items()}
    calls = {f"{name}: {part}": getattr(j, part) for name, j in jobs.items() for part in ("whole", "pattern", "known")}
    found = medians(calls, rounds)
    lines, fine = [], True
    for name, j in jobs.items():
        whole, pattern, known = (found[f"{name}: {part}"] for part in ("whole", "pattern", "known"))
        sparsity = j.pattern()
        fine = fine and whole <= BUDGET
        figures = cells([whole * 1e3, pattern * 1e3, known * 1e3], "{:.1f}")
        lines.append([name, str(sparsity.count), str(sparsity.pattern.nnz), *figures, verdict(whole <= BUDGET)])
    head = ["ms, 10,000 unknowns", "colours", "entries", "whole", "pattern, colours", "these known", "1 s"]
    print(f"{table(head, lines)}\n")
    return fine, found


def beside_dense(rounds: int) -> dict[str, float]:
    """The problems that are small enough for dense matrices, both ways."""
    jobs = {name: job(problem) for name, problem in BESIDE.items()}
    calls = {f"{name}, {DENSE}: {part}": getattr(j, part) for name, j in jobs.items() for part in ("whole", "dense")}
    found = medians(calls, rounds)
    lines = []
    for name in jobs:
        whole, dense = (found[f"{name}, {DENSE}: {part}"] for part in ("whole", "dense"))
        lines.append([name, *cells([whole * 1e3, dense * 1e3], "{:.1f}"), *cells([dense / whole], "{:.0f}")])
    print(table([f"ms, {DENSE:,} unknowns", "sparse", "dense", "ratio"], lines))
    return found


def report(options: argparse.Namespace) -> tuple[dict, bool]:
    """Measure and print: the figures, and whether every budget is met."""
    fine, found = large(options.rounds)
    return {"seconds": found | beside_dense(options.rounds)}, fine


if __name__ == "__main__":
    sys.exit(main(parser(__doc__, 15), report))
