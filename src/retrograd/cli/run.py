"""`retrograd run`: run a script on several ranks, with the launcher of a transport."""

import os
import runpy
import sys
from collections.abc import Callable
from pathlib import Path

from retrograd.cli.elastic import Range, run_elastic
from retrograd.cli.errors import UsageError
from retrograd.cli.jobs import Job, RunResult
from retrograd.cli.mpi import mpi_capacity, run_mpi
from retrograd.cli.ray import ray_capacity, run_ray


def run(job: Job, restarts: int | None = None, elastic: Range | None = None) -> int:
    """Run the job, again after the loss of a process, up to the given number of times; return the exit code.

    restarts: None is 0, for `elastic` any number.  elastic: the permitted numbers of ranks, instead of the job's.
    """
    if not job.module and not Path(job.command[0]).is_file():
        raise UsageError(f"there is no script '{job.command[0]}'")
    launcher = LAUNCHERS[job.transport]
    if elastic is not None:
        if job.ranks is not None or job.transport not in CAPACITIES:
            raise UsageError("--elastic is for --transport mpi or ray, and says the number of ranks instead of -n")
        return run_elastic(job, elastic, launcher, CAPACITIES[job.transport], restarts)
    restarts = restarts or 0
    for number in range(1, restarts + 1):
        ended = launcher(job)
        if not ended.lost:
            return ended.code
        print(f"retrograd: a rank was lost (exit code {ended.code}); restart {number} of {restarts}", file=sys.stderr)
    return launcher(job).code


def run_threads(job: Job) -> RunResult:
    """Run the script in this process; its pipelines start the threads."""
    if job.ranks is not None:
        raise UsageError(
            f"--ranks {job.ranks} is for processes; on threads the script says it: Pipeline(..., ranks=...)"
        )
    os.environ.update(job.environment)
    sys.argv = list(job.command)
    if job.module:
        sys.path.insert(0, os.getcwd())
        runpy.run_module(job.command[0], run_name="__main__", alter_sys=True)
    else:
        sys.path.insert(0, str(Path(job.command[0]).resolve().parent))
        runpy.run_path(job.command[0], run_name="__main__")
    return RunResult(0)


# By transport: how many ranks there is room for.
CAPACITIES: dict[str, Callable[[Job], int]] = {"mpi": mpi_capacity, "ray": ray_capacity}
# By transport; a launcher runs a job, or raises a UsageError if it cannot.
LAUNCHERS: dict[str, Callable[[Job], RunResult]] = {"mpi": run_mpi, "ray": run_ray, "threads": run_threads}
