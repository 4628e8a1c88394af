"""Time custom operators next to built-in ones, and next to PyTorch's.

    python benchmarks/library.py [--rounds 15] [--json FILE] [--check]

The operator is the product of two tensors of 4 elements: built in, and as a custom operator whose kernel and gradient
formula are products.  One thread.
"""

import argparse
import sys
from collections.abc import Callable
from typing import Any

from retrograd.bench import Case, Row, Suite, Table, converter, library, main, parser, run_suite, subjects

OPERATORS = ("built in", "new API", "old API")

# Per job the most that an operator of the new API may take, in built-in ones and in custom ones of PyTorch.
JOBS: dict[str, tuple[float | None, float | None]] = {
    "call": (3.0, 0.12),
    "recorded call": (None, None),
    "call and backward": (3.0, 0.25),
}


# -------------------------------------------------------------------------------------------------- operators


def define_newer(m: Any) -> Callable:
    """Define the operator with `mutates_args`, and a formula by `register_autograd`."""

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


def define_older(m: Any) -> Callable:
    """Define the operator by the old API: a prototype, a kernel, and a pair of functions for the gradient."""

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
    """Return a function from row, job and operator, to timed call; PyTorch's old API no longer accepts formulas."""
    operators = {"built in": m.mul, "new API": define_newer(m)}
    if m.__name__ == "retrograd":
        operators["old API"] = define_older(m)
    a, b, g = m.linspace(0, 1, 4), m.linspace(1, 2, 4), m.ones(4)
    x, y = (t.clone().requires_grad_() for t in (a, b))

    def job(row: str) -> Callable[[], object] | None:
        what, name = row.split(": ")
        if name not in operators:
            return None
        operator = operators[name]
        if what == "call":
            return lambda: operator(a, b)
        if what == "recorded call":
            return lambda: operator(x, y)
        return lambda: operator(x, y).backward(g)

    return job


def cases(name: str, threads: int) -> Callable[[str], Case | None]:
    """Return a function from row to case in a subject's process."""
    m = library(name, threads)
    made = jobs(m)

    def case(row: str) -> Case | None:
        call = made(row)
        return call and Case(call, lambda: [converter(m)(x) for x in [call()] if x is not None])

    return case


# ------------------------------------------------------------------------------------------------- measuring


def compare_with_built_in(made: Table) -> Table:
    """Return retrograd's times again, divided by those of the built-in operator."""
    found = {row.name: row.samples.get("retrograd", ()) for row in made.rows}
    rows = []
    for name, taken in found.items():
        what, operator = name.split(": ")
        budget = JOBS[what][0] if operator == "new API" else None
        if operator != "built in" and f"{what}: built in" in found:
            samples = {"retrograd": taken, "built in": found[f"{what}: built in"]}
            rows.append(Row(name, samples, {"built in": budget} if budget else {}))
    return Table("Custom operators compared with built-in ones", "us", rows, threads=made.threads)


def report(options: argparse.Namespace) -> list[Table]:
    """Return tables of both APIs compared with PyTorch's, and with retrograd's built-in operator."""
    rows: dict[str, dict[str, float]] = {}
    for what, (_, budget) in JOBS.items():
        for operator in OPERATORS:
            rows[f"{what}: {operator}"] = {"PyTorch": budget} if budget and operator == "new API" else {}
    made = run_suite(
        Suite("Custom operators", __file__, rows, subjects("retrograd", "PyTorch"), cases, unit="us"), options
    )
    return [made, compare_with_built_in(made)]


if __name__ == "__main__":
    sys.exit(main(parser(__doc__, 9), report, cases))
