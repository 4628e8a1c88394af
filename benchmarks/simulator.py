"""How long it takes to simulate a pipeline of many ranks, and how much memory.

    python benchmarks/simulator.py [--ranks 1024] [--micro-batches 4096] [--check]

Each schedule is simulated in a process of its own. With --check the exit status is 1 when a budget is missed.
"""

import argparse
import resource
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from retrograd.pipelining.lowering import chain
from retrograd.pipelining.schedules import stage_ranks, stream_schedule
from retrograd.pipelining.simulate import simulate_costs, unit_cost

NAMES = ("1f1b", "zb-h1")
SECONDS, GIBIBYTES = 20.0, 8.0  # the budgets


def measure(name: str, ranks: int, micro_batches: int) -> tuple[float, float, float]:
    """Seconds of processor time, of which one thread takes all, the most memory in GiB, and the bubble rate."""
    start = time.process_time()
    schedule = stream_schedule(name, ranks, micro_batches)
    summary = simulate_costs(schedule, chain(ranks), unit_cost, placement=stage_ranks(name, ranks))
    seconds = time.process_time() - start
    return seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, summary.bubble_rate


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--ranks", type=int, default=1024)
    parser.add_argument("--micro-batches", type=int, default=4096)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    missed = False
    print(f"{options.ranks} ranks, {options.micro_batches} micro-batches")
    for name in NAMES:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            seconds, memory, rate = pool.submit(measure, name, options.ranks, options.micro_batches).result()
        print(f"{name:<6} {seconds:6.1f} s  {memory:6.3f} GiB  bubble rate {rate:.4f}")
        missed |= seconds > SECONDS or memory > GIBIBYTES
    return int(missed and options.check)


if __name__ == "__main__":
    sys.exit(main())
