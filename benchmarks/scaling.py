"""Measure how time scales with array size, depth, batch size, threads, and the number of components of a ragged batch.

    python benchmarks/scaling.py [--rounds 7] [--only TEXT] [--json FILE] [--plot FILE]

A curve is called linear over the range in which the time per unit is within 25 % of its minimum.  Below this range the
cost per call is visible, above it the size of the caches.
"""

import argparse
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from retrograd.bench import (
    Case,
    Row,
    Suite,
    Table,
    changed_options,
    converter,
    library,
    main,
    parser,
    run_suite,
    subjects,
)

LINEAR = 1.25  # times the least cost of a unit
WIDTH, ROWS_OF_COMPONENT = 64, 32
SIZES = [4**n for n in range(1, 12)]
DEPTHS = [1, 4, 16, 64, 256, 1024, 4096]
BATCHES = [1, 4, 16, 64, 256, 1024, 4096]
COMPONENTS = [1, 4, 16, 64, 256, 1024]
SIZE, DEPTH, BATCH, RAGGED, THREADS = "elements", "layers", "examples", "components", "threads"
QUESTIONS = {
    SIZE: ("gelu, forward and backward", SIZES),
    DEPTH: ("tanh layers, 16 x 16, batch 8, forward and backward", DEPTHS),
    BATCH: ("MLP 784-128-10, forward and backward", BATCHES),
    RAGGED: ("linear, gelu and sum of a ragged batch, forward and backward", COMPONENTS),
}


def normal(m: Any, *shape: int) -> Any:
    """Return a leaf of normal samples, the same for every subject."""
    made = np.random.default_rng(shape).standard_normal(shape, np.float32) / np.float32(shape[-1] ** 0.5)
    return m.from_numpy(made).requires_grad_(True)


def with_gradients(m: Any, function: Callable[[], Any], leaves: list) -> Case:
    """Return a function, summed, and the gradients of its leaves."""

    def call() -> None:
        for leaf in leaves:
            leaf.grad = None
        function().sum().backward()

    def check() -> list:
        call()
        return [converter(m)(leaf.grad).copy() for leaf in leaves[:1]]

    return Case(call, check)


def elementwise(m: Any, count: int) -> Case:
    """Return an elementwise function."""
    x = normal(m, count)
    return with_gradients(m, lambda: m.nn.functional.gelu(x), [x])


def layer_chain(m: Any, count: int) -> Case:
    """Return a chain of layers with the same weight."""
    x, w = normal(m, 8, 16), normal(m, 16, 16)

    def function() -> Any:
        out = x
        for _ in range(count):
            out = m.tanh(out @ w)
        return out

    return with_gradients(m, function, [x, w])


def small_network(m: Any, count: int) -> Case:
    """Return a small network."""
    functional, (a, b), x = m.nn.functional, (normal(m, 128, 784), normal(m, 10, 128)), normal(m, count, 784)
    return with_gradients(m, lambda: functional.linear(functional.relu(functional.linear(x, a)), b), [a, b])


def ragged_components(m: Any, count: int) -> Case:
    """Return components of 1 to 63 rows: nested in retrograd, one by one in PyTorch, the way to do without padding."""
    lengths = [1 + (37 * i) % (2 * ROWS_OF_COMPONENT - 1) for i in range(count)]
    parts, w = [normal(m, n, WIDTH).detach() for n in lengths], normal(m, WIDTH, WIDTH)
    functional = m.nn.functional
    if m.__name__ != "retrograd":
        return with_gradients(m, lambda: sum(functional.gelu(functional.linear(p, w)).sum() for p in parts), [w])
    x = m.nested.nested_tensor(parts)
    return with_gradients(m, lambda: functional.gelu(functional.linear(x, w)).sum(1), [w])


MAKE: Mapping[str, Callable[[Any, int], Case]] = {
    SIZE: elementwise,
    DEPTH: layer_chain,
    BATCH: small_network,
    RAGGED: ragged_components,
}


def cases(name: str, threads: int) -> Callable[[str], Case]:
    """Return a function from row to case in a subject's process."""
    m = library(name, threads)

    def case(row: str) -> Case:
        count, axis = row.split()
        return MAKE[axis](m, int(count.replace(",", "")))

    return case


def suite(axis: str, threads: int = 1) -> Suite:
    """Return the rows of one question."""
    title, places = QUESTIONS[axis]
    at = {f"{n:,} {axis}": float(n) for n in places}
    known = subjects("retrograd", "PyTorch")
    return Suite(
        title, __file__, {row: {} for row in at}, known, cases, "us", threads, axis=axis, at=at, tolerance=1e-3
    )


def linear(table: Table) -> list[str]:
    """Return for each subject the range in which the cost of a unit is about minimal, and the slopes at both ends."""
    notes = []
    for name in table.subjects:
        points = [(row.at, row.median(name)) for row in table.rows if row.samples.get(name)]
        units = {x: y / x for x, y in points if x and y}
        fit = [x for x, unit in units.items() if unit <= LINEAR * min(units.values())]
        first, last = (slope(points[i], points[j]) for i, j in ((0, 1), (-2, -1)))
        notes.append(
            f"{name}: linear from {min(fit):,.0f} to {max(fit):,.0f} {table.axis}; "
            f"slope {first:.2f} at the low end, {last:.2f} at the high end"
        )
    return notes


def slope(low: tuple[Any, Any], high: tuple[Any, Any]) -> float:
    """Return the exponent of growth between two points; 1 is linear."""
    return float(np.log(high[1] / low[1]) / np.log(high[0] / low[0]))


def curve(axis: str, options: argparse.Namespace) -> Table:
    """Return one question's table, with a summary."""
    table = run_suite(suite(axis), options)
    if len(table.rows) > 1:
        table.notes += linear(table)
    return table


def thread_table(options: argparse.Namespace) -> Table:
    """Return times of the largest size of each question on one thread, and on as many as there are processors."""
    rows = []
    for threads in range(1, (os.cpu_count() or 1) + 1):
        for axis, (_, places) in QUESTIONS.items():
            row = f"{places[-1]:,} {axis}"
            one = changed_options(options, only=row)
            (made,) = [r for r in run_suite(suite(axis, threads), one).rows if r.name == row]
            rows.append(Row(f"{row}, {threads} thread{'s' if threads > 1 else ''}", made.samples))
    return Table("Threads", "us", rows)


def report(options: argparse.Namespace) -> list[Table]:
    """Return a curve for each question, and threads."""
    tables = [curve(axis, options) for axis in QUESTIONS if options.only in axis]
    return [*tables, *([thread_table(options)] if options.only in THREADS else [])]


if __name__ == "__main__":
    sys.exit(main(parser(__doc__, 7), report, cases))
