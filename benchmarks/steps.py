"""Time whole training steps and layers: retrograd, PyTorch, JAX, HIPS autograd, tinygrad and MLX.

    python benchmarks/steps.py [--rounds 15] [--only TEXT] [--json FILE] [--plot FILE] [--check]

All subjects use the same weights and inputs, single precision and two threads.  Before anything is timed, gradients
must agree, and where there is an optimizer also the loss after some steps.  The last table compares retrograd's times
with two lower bounds: operations at the speed of NumPy's matrix product, and bytes at the speed of a copy.
"""

import argparse
import sys
from collections.abc import Callable

import peaks
from steps_arrays import Namespace, hips_namespace, jax_namespace, mlx_namespace
from steps_arrays import case as arrays_case
from steps_data import STEPS, case_data
from steps_tinygrad import case as tinygrad_case
from steps_torch import case as torch_case

from retrograd.bench import Case, Row, Suite, Table, library, main, parser, run_suite, subjects

THREADS = 2
NAMESPACES: dict[str, Callable[[], Namespace]] = {
    "JAX jit": lambda: jax_namespace(True),
    "JAX eager": lambda: jax_namespace(False),
    "HIPS autograd": hips_namespace,
    "MLX": mlx_namespace,
}
SUITE = Suite(
    "Training steps and layers",
    __file__,
    {row: {"PyTorch": step.budget} for row, step in STEPS.items()},
    subjects("retrograd", "PyTorch", *NAMESPACES, "tinygrad"),
    cases=lambda name, threads: cases(name, threads),
    threads=THREADS,
)


def cases(name: str, threads: int) -> Callable[[str], Case | None]:
    """Return a function from row to case in a subject's process."""
    module = library(name, threads)
    if name == "tinygrad":
        return tinygrad_case
    if name in NAMESPACES:
        namespace = NAMESPACES[name]()
        return lambda row: arrays_case(namespace, row)
    return lambda row: torch_case(module, row)


def lower_bounds(row: str, found: peaks.Peaks) -> tuple[float, float]:
    """Return the seconds of a row's operations and of its bytes at the machine's peaks.

    Weights are read twice and their gradients written; Adam reads and writes them, and two moments each, once more.
    """
    weights, inputs = case_data(row)
    moved = 3 * sum(w.nbytes for w in weights) + sum(x.nbytes for x in inputs)
    moved += 7 * sum(w.nbytes for w in weights) if STEPS[row].optimizer else 0
    return STEPS[row].flops / found.flops, moved / found.bytes


def limits(timed: Table, found: peaks.Peaks) -> Table:
    """Return retrograd's times relative to the lower bounds by operations and by bytes."""
    rows = []
    for row in timed.rows:
        ours = [t * (1000 if "chain" in row.name else 1) for t in row.samples.get("retrograd", ())]
        by_flops, by_bytes = lower_bounds(row.name, found)
        rows.append(
            Row(row.name, {"retrograd": ours, "operations": [by_flops] * len(ours), "bytes": [by_bytes] * len(ours)})
        )
    notes = ["'operations' and 'bytes': the lower bounds by arithmetic and by memory traffic, at NumPy's peaks above."]
    return Table("Lower bounds at the machine's peaks", "ms", rows, threads=timed.threads, notes=notes)


def report(options: argparse.Namespace) -> list[Table]:
    """Return the steps, the machine's peaks, and the ratios to the lower bounds."""
    timed = run_suite(SUITE, options)
    machine = peaks.table(options, THREADS)
    return [timed, machine, limits(timed, peaks.compute_peaks(machine))]


if __name__ == "__main__":
    sys.exit(main(parser(__doc__, 15), report, lambda name, threads: cases(name, threads)))
