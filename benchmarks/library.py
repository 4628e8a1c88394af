"""What users' operators cost beside built-in ones, and beside PyTorch's.

    python benchmarks/library.py [--rounds 15] [--json FILE] [--check]

The product of two tensors of 4 numbers, built in, and as a custom operator with a gradient formula whose kernel and
formula are products too.  Subjects take turns in one run, each with one thread; figures are medians.
"""

import argparse
import sys
from collections.abc import Callable
from typing import Any

from common import cells, interleaved, library, main, parser, present, sampler, table, verdict

OPERATORS = ("built in", "newer face", "older face")

# Per job the most that an operator of the newer face may take, in built-in ones and in custom ones of PyTorch.
JOBS: dict[str, tuple[float | None, float | None]] = {
    "call": (3.0, 0.12),
    "call that is recorded": (None, None),
    "call and backward": (3.0, None),
}


# -------------------------------------------------------------------------------------------------- operators


def newer(m: Any) -> Callable:
    """With `mutates_args`, and a formula by `register_autograd`."""

    def product(a, b):
        return a * b

    def setup(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return g * b, g * a

    product.__annotations__ = {"a": m.Tensor, "b": m.Tensor, "return": m.Tensor}
    operator = m.library.custom_op("benchmark::newer", product, mutates_args=())
    operator.register_autograd(backward, setup_context=setup)
    return operator


def older(m: Any) -> Callable:
    """By the older face: a prototype, a kernel, and a pair of functions for the gradient."""

    def older(a, b): ...

    older.__annotations__ = {"a": m.Tensor, "b": m.Tensor, "return": m.Tensor}
    operator = m.library.custom_op("benchmark::older")(older)

    @operator.impl("cpu")
    def product(a, b):
        return a * b

    @operator.impl_save_for_backward()
    def save(inputs, output):
        return inputs.a, inputs.b

    @operator.impl_backward()
    def backward(ctx, saved, g):
        a, b = saved
        return {"a": g * b, "b": g * a}

    return operator


def jobs(m: Any) -> Callable[[str], Callable[[], object] | None]:
    """The function from a row, job and operator, to what is timed; PyTorch's older face no longer takes formulas."""
    operators = {"built in": m.mul, "newer face": newer(m)}
    if m.__name__ == "retrograd":
        operators["older face"] = older(m)
    a, b, g = m.rand(4), m.rand(4), m.ones(4)
    x, y = m.rand(4, requires_grad=True), m.rand(4, requires_grad=True)

    def job(row: str) -> Callable[[], object] | None:
        what, name = row.split(": ")
        if name not in operators:
            return None
        operator = operators[name]
        if what == "call":
            return lambda: operator(a, b)
        if what == "call that is recorded":
            return lambda: operator(x, y)
        return lambda: operator(x, y).backward(g)

    return job


def worker(name: str) -> Callable[[str], float | None]:
    """The function from a row's name to seconds per call."""
    return sampler(jobs(library(name)))


# ------------------------------------------------------------------------------------------------- measuring


def job_table(medians: dict, names: list[str]) -> tuple[str, bool]:
    """Microseconds, in built-in operators of ours and custom ones of PyTorch, and whether the budgets are met."""
    lines, fine = [], True
    for what, budgets in JOBS.items():
        for operator in OPERATORS:
            found = medians[f"{what}: {operator}"]
            ours = found["retrograd"]
            others = (
                None if operator == "built in" else medians[f"{what}: built in"]["retrograd"],
                found.get("PyTorch"),
            )
            ratios = [ours / other if other else None for other in others]
            limits = budgets if operator == "newer face" else (None, None)
            judged = [
                r <= limit for r, limit in zip(ratios, limits, strict=True) if r is not None and limit is not None
            ]
            fine = fine and all(judged)
            us = cells([found[n] * 1e6 if n in found else None for n in names], "{:.2f}")
            beside = [
                text for pair in zip(cells(ratios, "{:.2f}"), cells(limits, "{:.2f}"), strict=True) for text in pair
            ]
            lines.append([f"{what}, {operator}", *us, *beside, verdict(all(judged)) if judged else ""])
    return table(["us", *names, "beside built in", "budget", "beside PyTorch", "budget", ""], lines), fine


def report(options: argparse.Namespace) -> tuple[dict, bool]:
    """Measure and print: the figures, and whether every budget is met."""
    rows = [f"{what}: {operator}" for what in JOBS for operator in OPERATORS]
    with present(__file__) as workers:
        medians = interleaved(workers, rows, options.rounds)
    text, fine = job_table(medians, [w.name for w in workers])
    print(text)
    return {"seconds": medians}, fine


if __name__ == "__main__":
    sys.exit(main(parser(__doc__, 15), report, worker))
