"""`retrograd run`: run a script on several ranks, with the launcher of a transport."""

import os
import re
import runpy
import sys
from collections.abc import Callable
from importlib.machinery import PathFinder
from pathlib import Path

from retrograd.cli.elastic import Range, run_elastic
from retrograd.cli.errors import UsageError, existing_file
from retrograd.cli.jobs import Job, RunResult
from retrograd.cli.mpi import mpi_capacity, run_mpi
from retrograd.cli.ray import ray_capacity, run_ray


def run(job: Job, restarts: int | None = None, elastic: Range | None = None) -> int:
    """Run the job, again after the loss of a process, up to the given number of times; return the exit code.

    restarts: None is 0, for `elastic` any number.  elastic: the permitted numbers of ranks, instead of the job's.
    """
    _check_command(job)
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


def _check_command(job: Job) -> None:
    """Raise a UsageError unless the command is a script or a module that exists."""
    first, *rest = job.command
    program = Path(first).name
    if re.fullmatch(r"python[\d.]*|mpiexec|mpirun|torchrun|srun", program):
        does = "runs scripts by its own Python" if program.startswith("python") else "starts the ranks itself"
        count = "" if job.ranks is None else f"-n {job.ranks} "
        arguments = rest or ["SCRIPT"]
        raise UsageError(f"retrograd run {does}; leave out {first!r}: retrograd run {count}{' '.join(arguments)}")
    if job.module:
        _check_module(first)
        return
    if first.isdecimal() and rest:
        raise UsageError(f"there is no script {first!r}; for {first} ranks: retrograd run -n {' '.join(job.command)}")
    existing_file(Path(first), "script")
    if job.ranks is None and {"-n", "-np", "--ranks"} & {*rest} and job.transport != "threads":
        raise UsageError(f"-n belongs before the script: retrograd run -n NUMBER {first}; what follows is its own")


def _check_module(name: str) -> None:
    """Raise a UsageError unless the package of a module is found from the present folder, without importing it."""
    if name.endswith(".py") and Path(name).is_file():
        raise UsageError(f"-m expects the name of a module, not a file: leave out -m, or write -m {name[:-3]}")
    top = name.partition(".")[0]
    if PathFinder.find_spec(top, ["", *sys.path]) is None and top not in sys.builtin_module_names:
        raise UsageError(f"there is no module {top!r} in the present folder, and none is installed")


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
