"""Time `all_reduce` over MPI, next to Allreduce of mpi4py with a NumPy array in the same two processes.

    python benchmarks/all_reduce.py [--rounds 41] [--json FILE] [--check]

The libraries take turns.  Each sample begins after a barrier, and is the time of several calls in a row.
"""

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

from ranks import main_of_ranks, run_script

from retrograd.bench import Row, Table

CALLS = 5  # in a sample
BUDGETS: dict[int, float | None] = {1 << 10: None, 1 << 16: None, 1 << 20: None, 1 << 24: 1.1}  # by bytes


def functions(size: int) -> list[Callable[[], Any]]:
    """Return the calls to compare, on float32 arrays of that many bytes."""
    import numpy as np
    from mpi4py import MPI

    import retrograd as rg
    import retrograd.distributed as dist

    array, x, work = np.ones(size // 4, "f"), rg.ones(size // 4), rg.ones(size // 4)
    return [
        lambda: dist.all_reduce(x),
        lambda: dist.all_reduce(work, async_op=True).wait(),
        lambda: MPI.COMM_WORLD.Allreduce(MPI.IN_PLACE, array),
    ]


def sample(call: Callable[[], Any]) -> float:
    """Return the seconds per call."""
    from mpi4py import MPI

    MPI.COMM_WORLD.Barrier()
    start = time.perf_counter()
    for _ in range(CALLS):
        call()
    return (time.perf_counter() - start) / CALLS


def measure(rounds: int) -> list[list[list[float]]]:
    """Return the seconds by size, round and library."""
    import retrograd.distributed as dist

    dist.init_process_group("mpi")
    found = []
    for size in BUDGETS:
        calls = functions(size)
        found.append([[sample(call) for call in calls] for _ in range(rounds + 1)][1:])  # the first round warms up
    dist.destroy_process_group()
    return found


def report(options: argparse.Namespace) -> list[Table]:
    """Start the two processes, which measure."""
    found = run_script(__file__, "mpi", options.rounds)
    rows = [
        Row(
            f"{size >> 10} KiB",
            {
                "retrograd": [seconds[0] for seconds in rounds],
                "async_op": [seconds[1] for seconds in rounds],
                "mpi4py": [seconds[2] for seconds in rounds],
            },
            {"mpi4py": budget} if budget else {},
        )
        for (size, budget), rounds in zip(BUDGETS.items(), found, strict=True)
    ]
    return [Table("all_reduce between processes", "us", rows, threads=1)]


if __name__ == "__main__":
    sys.exit(main_of_ranks(__doc__, 41, lambda given: measure(given.rounds), report))
