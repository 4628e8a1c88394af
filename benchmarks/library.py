"""What users' operators cost beside built-in ones, and beside PyTorch's.

    python benchmarks/library.py [--rounds 15] [--json FILE] [--check]

The product of two tensors of 4 numbers, built in, and as a custom operator with a gradient formula whose kernel and
formula are products too.  Subjects take turns in one run, each with one thread; figures are medians.
"""

import argparse
import json
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from common import Worker, cells, interleaved, library, sampler, serve, table, verdict

SUBJECTS = ("retrograd", "PyTorch")
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


def report(medians: dict, names: list[str]) -> tuple[str, bool]:
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


def main() -> int:
    """Measure, print, and say with the exit status whether a budget is missed if that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worker", choices=SUBJECTS, help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", metavar="FILE", help="write the medians, in seconds")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a budget is missed")
    options = parser.parse_args()
    if options.worker:
        serve(partial(worker, options.worker))
        return 0
    workers = [Worker(__file__, name, {}) for name in SUBJECTS]
    for absent in [w for w in workers if w.ready is not True]:
        print(f"{absent.name} is left out: {absent.ready}")
    present = [w for w in workers if w.ready is True]
    medians = interleaved(present, [f"{what}: {operator}" for what in JOBS for operator in OPERATORS], options.rounds)
    for w in workers:
        w.close()
    text, fine = report(medians, [w.name for w in present])
    print(text)
    if options.json:
        with open(options.json, "w") as f:
            json.dump({"seconds": medians}, f, indent=1)
    return 1 if options.check and not fine else 0


if __name__ == "__main__":
    sys.exit(main())
