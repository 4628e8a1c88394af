"""Measure time and memory of the simulation of a pipeline with many ranks.

    python benchmarks/simulator.py [--ranks 1024] [--micro-batches 4096] [--json FILE] [--check]

Each schedule is simulated in a separate process, on one thread; the times are CPU seconds.
"""

import argparse
import resource
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from retrograd.bench import Row, Table, main, parser
from retrograd.pipelining.planning.simulate import simulate_costs, unit_cost
from retrograd.pipelining.schedules import stage_ranks, stream_schedule
from retrograd.pipelining.schedules.lowering import chain

NAMES = ("1f1b", "zb-h1")
SECONDS, GIBIBYTES = 20.0, 8.0  # the budgets


def measure(name: str, ranks: int, micro_batches: int) -> tuple[float, float, float]:
    """Return seconds of processor time, the peak memory in bytes, and the bubble rate."""
    start = time.process_time()
    schedule = stream_schedule(name, ranks, micro_batches)
    summary = simulate_costs(schedule, chain(ranks), unit_cost, placement=stage_ranks(name, ranks))
    seconds = time.process_time() - start
    return seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, summary.bubble_rate


def report(options: argparse.Namespace) -> list[Table]:
    """Return tables of seconds and of memory."""
    found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in NAMES}
    for name, samples in [(n, found[n]) for _ in range(options.rounds) for n in NAMES]:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            samples.append(pool.submit(measure, name, options.ranks, options.micro_batches).result())
    title = f"Simulation of {options.ranks:,} ranks and {options.micro_batches:,} microbatches"
    rows = [Row(name, {"retrograd": [s[0] for s in samples]}, {"": SECONDS}) for name, samples in found.items()]
    memory = [Row(name, {"retrograd": [s[1] for s in samples]}, {"": GIBIBYTES}) for name, samples in found.items()]
    notes = [f"{name}: bubble rate {samples[0][2]:.4f}" for name, samples in found.items()]
    return [
        Table(title, "s", rows, threads=1, notes=notes),
        Table("Peak memory of the simulation", "GiB", memory, threads=1),
    ]


if __name__ == "__main__":
    arguments = parser(__doc__, 1)
    arguments.add_argument("--ranks", type=int, default=1024)
    arguments.add_argument("--micro-batches", type=int, default=4096)
    sys.exit(main(arguments, report))
