"""Measure time and memory of the simulation of a pipeline with many ranks.

    python benchmarks/simulator.py [--ranks 1024] [--micro-batches 4096] [--json FILE] [--check]

Each schedule is simulated in a separate process, on one thread; the times are CPU seconds.  The schedules whose orders
are computed, instead of written down, have a fourth of the ranks and two stages on each; theirs are times per action.
"""

import argparse
import resource
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from multiprocessing import get_context
from typing import NamedTuple

from retrograd.bench import Row, Table, main, parser
from retrograd.pipelining.planning.simulate import simulate_costs, unit_cost
from retrograd.pipelining.schedules import get_schedule, stage_ranks, stream_schedule
from retrograd.pipelining.schedules.lowering import chain

NAMES = ("1f1b", "zb-h1")
COMPUTED = ("v-half", "v-min", "hanayo")
SECONDS, GIBIBYTES, MICROSECONDS = 20.0, 8.0, 3.0  # the budgets; the last one is for an action


class Sample(NamedTuple):
    """Seconds of processor time, the peak memory in bytes, the bubble rate, and the number of computations."""

    seconds: float
    memory: float
    bubble_rate: float
    actions: int


def measure(name: str, ranks: int, micro_batches: int) -> Sample:
    """Return the time and memory of a schedule."""
    start = time.process_time()
    stages = ranks * get_schedule(name).per_rank
    schedule = stream_schedule(name, stages, micro_batches, ranks=ranks)
    placement = stage_ranks(name, stages, ranks)
    summary = simulate_costs(schedule, chain(stages), unit_cost, placement=placement)
    seconds = time.process_time() - start
    again = stream_schedule(name, stages, micro_batches, ranks=ranks)[-1]
    kinds = {action.kind for action in islice(again, 6 * ranks)}
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return Sample(seconds, memory, summary.bubble_rate, len(kinds) * stages * micro_batches)


def report(options: argparse.Namespace) -> list[Table]:
    """Return tables of seconds and of memory."""
    sizes = dict.fromkeys(NAMES, options.ranks) | dict.fromkeys(COMPUTED, options.ranks // 4)
    found: dict[str, list[Sample]] = {name: [] for name in sizes}
    for name, samples in [(n, found[n]) for _ in range(options.rounds) for n in sizes]:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            samples.append(pool.submit(measure, name, sizes[name], options.micro_batches).result())
    title = f"Simulation of {options.ranks:,} ranks and {options.micro_batches:,} microbatches"
    rows = [Row(name, {"retrograd": [s.seconds for s in found[name]]}, {"": SECONDS}) for name in NAMES]
    each = [
        Row(
            f"{name}, {sizes[name]} ranks",
            {"retrograd": [s.seconds / s.actions for s in samples]},
            {"": MICROSECONDS},
        )
        for name, samples in found.items()
    ]
    memory = [Row(name, {"retrograd": [s.memory for s in samples]}, {"": GIBIBYTES}) for name, samples in found.items()]
    notes = [f"{name}: bubble rate {samples[0].bubble_rate:.4f}" for name, samples in found.items()]
    return [
        Table(title, "s", rows, threads=1, notes=notes),
        Table("Time of an action", "us", each, threads=1),
        Table("Peak memory of the simulation", "GiB", memory, threads=1),
    ]


if __name__ == "__main__":
    arguments = parser(__doc__, 1)
    arguments.add_argument("--ranks", type=int, default=1024)
    arguments.add_argument("--micro-batches", type=int, default=4096)
    sys.exit(main(arguments, report))
