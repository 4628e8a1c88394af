"""`retrograd run`: run a script on several ranks, with the launcher of a transport."""

import os
import runpy
import sys
from collections.abc import Callable
from pathlib import Path

from retrograd.cli.errors import UsageError
from retrograd.cli.jobs import Job, RunResult
from retrograd.cli.mpi import run_mpi
from retrograd.cli.ray import run_ray


def run(job: Job, restarts: int = 0) -> int:
    """Run the job, again after the loss of a process, up to the given number of times; return the exit code."""
    if not job.module and not Path(job.command[0]).is_file():
        raise UsageError(f"there is no script '{job.command[0]}'")
    launcher = LAUNCHERS[job.transport]
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


# By transport; a launcher runs a job, or raises a UsageError if it cannot.
LAUNCHERS: dict[str, Callable[[Job], RunResult]] = {"mpi": run_mpi, "ray": run_ray, "threads": run_threads}
