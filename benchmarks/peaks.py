"""Measure the machine's peaks: bytes copied and operations of a matrix product per second, by NumPy and by PyTorch.

python benchmarks/peaks.py [--rounds 9] [--threads 2] [--json FILE]
"""

import argparse
import sys
from collections.abc import Callable
from typing import NamedTuple

from retrograd.bench import Case, Suite, Table, changed_options, library, main, parser, run_suite, subjects

COPIED, SIZE = 1 << 26, 1536  # bytes, larger than any cache; rows of a square matrix
COPY, PRODUCT = "copy of 64 MiB", f"{SIZE:,} x {SIZE:,} matrix product, float32"


class Peaks(NamedTuple):
    """The machine's peaks per second."""

    flops: float
    bytes: float


def cases(name: str, threads: int) -> Callable[[str], Case]:
    """Return a copy, and a matrix product into existing memory."""
    m = library(name, threads)
    ours = m.from_numpy if name == "PyTorch" else (lambda x: x)
    import numpy as np

    a = ours(np.full((SIZE, SIZE), 0.5, np.float32))
    source, target = ours(np.ones(COPIED // 8)), ours(np.zeros(COPIED // 8))
    product = ours(np.zeros((SIZE, SIZE), np.float32))

    def copy() -> object:
        return target.copy_(source) if name == "PyTorch" else np.copyto(target, source)

    calls = {COPY: copy, PRODUCT: lambda: m.matmul(a, a, out=product)}
    return lambda row: Case(calls[row])


def table(options: argparse.Namespace, threads: int) -> Table:
    """Return the times of both."""
    suite = Suite(
        "Machine peaks",
        __file__,
        {COPY: {}, PRODUCT: {}},
        subjects("NumPy", "PyTorch"),
        cases,
        threads=threads,
        ours="NumPy",
    )
    made = run_suite(suite, changed_options(options, only=""))
    for name in made.subjects:
        found = compute_peaks(made, name)
        made.notes.append(f"{name}: {found.bytes / 1e9:.1f} GB/s read and written, {found.flops / 1e9:.0f} GFLOP/s")
    return made


def compute_peaks(made: Table, name: str = "NumPy") -> Peaks:
    """Return the peaks computed from the least times."""
    copied, product = (min(row.samples[name]) for row in made.rows)
    return Peaks(2 * SIZE**3 / product, 2 * COPIED / copied)


def report(options: argparse.Namespace) -> list[Table]:
    """Return one table."""
    return [table(options, options.threads or 2)]


if __name__ == "__main__":
    sys.exit(main(parser(__doc__, 9), report, cases))
