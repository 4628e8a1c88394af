"""Time compiled steps: retrograd's, eager and compiled, PyTorch's, eager and compiled, and those of JAX with `jit`.

    python benchmarks/compile.py [--rounds 7] [--only TEXT] [--without NAME] [--json FILE] [--check]

Two threads.  Results are compared before anything is timed.  The second table has the first call of a new compiled
function, with nothing cached; the third the peak memory of a step; the last the lower bounds of each step, and its
matrix products alone.  `torch.compile` needs a C++ compiler.
"""

import argparse
import sys
from collections.abc import Callable
from typing import Any

import peaks
from compile_cases import COSTS, LEAPFROG, OF_STEPS, POINTWISE, SMALL, Compiler, arrays, tensors_case
from compile_products import products_alone
from steps import lower_bounds
from traced_memory import WARM_UP, traced_peak

from retrograd.bench import (
    Case,
    Row,
    Subject,
    Suite,
    Table,
    Worker,
    changed_options,
    library,
    main,
    parser,
    run_suite,
    subjects,
)

THREADS = 2
EAGER, COMPILE = "retrograd, eager", "PyTorch, compile"
# Compiled code is not taken from the disk, so that a first call is one.
UNCACHED = {"TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1", "TORCHINDUCTOR_COMPILE_THREADS": "1"}
SUBJECTS = {**subjects("retrograd", EAGER, "PyTorch"), COMPILE: Subject("torch", UNCACHED), **subjects("JAX jit")}
BUDGETS = {**{row: cost.budget for row, cost in COSTS.items()}, **OF_STEPS}
FIRST_CALLS = (SMALL, POINTWISE, LEAPFROG, "MLP 784-128-10, batch 32, Adam", "GPT, 4 layers, 128 wide, 16 x 64, AdamW")
FIRST = ", first call"  # after the name of a row
FIRST_BUDGET = 0.05  # of torch.compile's time
PEAK = ", peak"
PRODUCTS = ", products"
SUITE = Suite(
    "Compiled steps",
    __file__,
    {row: {"PyTorch": budget, EAGER: 1.0} for row, budget in BUDGETS.items()},
    SUBJECTS,
    cases=lambda name, threads: cases(name, threads),
    threads=THREADS,
)


def cases(name: str, threads: int) -> Callable[[str], Case | None]:
    """Return a function from row to case in a subject's process."""
    m = library(name, threads)
    if name == "JAX jit":
        return arrays()
    compiler: Compiler = m.compile if name in ("retrograd", COMPILE) else (lambda step: step)

    def case(row: str) -> Case | None:
        if row.endswith(FIRST):
            return tensors_case(m, row.removesuffix(FIRST), compiled_anew(m))._replace(check=None, once=True)
        if row.endswith(PEAK):
            step = tensors_case(m, row.removesuffix(PEAK), compiler).call
            return Case(step, lambda: [float(traced_peak(step))])
        if row.endswith(PRODUCTS):
            run = products_of(m, row.removesuffix(PRODUCTS))
            return None if run is None else Case(run)
        return tensors_case(m, row, compiler)

    return case


def compiled_anew(m: Any) -> Compiler:
    """Return a function that replaces a step by one that is compiled at each call."""

    def compiler(step: Callable) -> Callable:
        def call(*args: Any) -> Any:
            m.compiler.reset()
            return m.compile(step)(*args)

        return call

    return compiler


def products_of(m: Any, row: str) -> Callable[[], None] | None:
    """Return a function that computes the matrix products of a row's compiled step; None if there are none."""
    compiled: list[Any] = []

    def compiler(step: Callable) -> Callable:
        compiled.append(m.compile(step))
        return compiled[0]

    step = tensors_case(m, row, compiler).call
    for _ in range(WARM_UP):
        step()
    return products_alone(compiled[0].programs[-1])


def product_times(options: argparse.Namespace) -> dict[str, list[float]]:
    """Return the times of the matrix products of each row that has some."""
    rows: dict[str, dict[str, float]] = {row + PRODUCTS: {} for row in BUDGETS if options.only in row}
    suite = Suite("Products", __file__, rows, {"retrograd": SUBJECTS["retrograd"]}, cases, threads=THREADS)
    made = run_suite(suite, changed_options(options, only=""))
    return {row.name.removesuffix(PRODUCTS): row.samples.get("retrograd", []) for row in made.rows}


def first_calls(options: argparse.Namespace) -> Table:
    """Return the times of first calls."""
    rows = {row + FIRST: {COMPILE: FIRST_BUDGET} for row in FIRST_CALLS if options.only in row}
    chosen = {name: SUBJECTS[name] for name in ("retrograd", COMPILE)}
    given = changed_options(options, rounds=min(2, options.rounds), only="")
    return run_suite(Suite("First calls", __file__, rows, chosen, cases, threads=THREADS), given)


def peak_table(options: argparse.Namespace) -> Table:
    """Return the peaks of arrays and objects in steps, in bytes; each is that of a fresh process."""
    rows = []
    for row in (row for row in BUDGETS if options.only in row):
        samples = {}
        for name in ("retrograd", EAGER):
            process = Worker(__file__, name, SUBJECTS[name], THREADS)
            samples[name] = [process.ask("check", row + PEAK)[0]["values"][0]]
            process.close()
        rows.append(Row(row, samples, {EAGER: 1.0}))
    return Table("Peak memory of a step, above the memory before it", "MiB", rows, threads=THREADS)


def limits(timed: Table, found: peaks.Peaks, products: dict[str, list[float]]) -> Table:
    """Return the times of compiled steps relative to their products, and to the bounds by operations and by bytes."""
    rows = []
    for row in timed.rows:
        ours = row.samples.get("retrograd", ())
        if row.name in COSTS:
            by_flops, by_bytes = COSTS[row.name].flops / found.flops, COSTS[row.name].bytes / found.bytes
        else:
            by_flops, by_bytes = lower_bounds(row.name, found)
        bounds = {"operations": by_flops, "bytes": by_bytes}
        samples = {name: [bound] * len(ours) for name, bound in bounds.items() if bound}  # 0 is no bound
        rows.append(Row(row.name, {"retrograd": ours, "products": products.get(row.name, []), **samples}))
    notes = [
        "'products': the matrix products of the step alone, without those inside other kernels: of attention, "
        "convolutions and recurrent layers.",
        "'operations' and 'bytes': the lower bounds by arithmetic and by memory traffic, at NumPy's peaks above.",
    ]
    return Table("Lower bounds at the machine's peaks", "ms", rows, threads=timed.threads, notes=notes)


def report(options: argparse.Namespace) -> list[Table]:
    """Return the steps, first calls, peaks of memory, the machine's peaks, and the ratios to the lower bounds."""
    timed = run_suite(SUITE, options)
    machine = peaks.table(options, THREADS)
    found = limits(timed, peaks.compute_peaks(machine), product_times(options))
    return [timed, first_calls(options), peak_table(options), machine, found]


if __name__ == "__main__":
    sys.exit(main(parser(__doc__, 7), report, lambda name, threads: cases(name, threads)))
