"""The interface between `retrograd run` and launchers."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from retrograd.cli.errors import UsageError
from retrograd.kernels.processors import available_processors
from retrograd.pipelining.transports import TIMEOUT_VARIABLE, TRANSPORT_VARIABLE
from retrograd.pipelining.transports.status_file import write_job

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def _never() -> bool:
    return False


class Job(NamedTuple):
    """A script to run on several ranks.

    command: the script and its arguments; `module`: the name of a module instead of a script. ranks: None if the
    transport needs no number. timeout: seconds that a rank waits for a message. everything: show the output of all
    ranks, not only the first. For Ray, address: of the cluster; spread: whether to distribute ranks evenly over its
    nodes. can_grow: whether to end the run, because more ranks could run.
    """

    command: list[str]
    module: bool = False
    ranks: int | None = None
    transport: str = "mpi"
    hosts: Path | None = None
    timeout: float | None = None
    everything: bool = False
    address: str | None = None
    spread: bool = False
    can_grow: Callable[[], bool] = _never

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment variables that describe the job to its processes."""
        variables = {TRANSPORT_VARIABLE: self.transport}
        if self.timeout is not None:
            variables[TIMEOUT_VARIABLE] = f"{self.timeout:g}"
        return variables


class RunResult(NamedTuple):
    """The result of a run: its exit code, whether a process was lost, and whether a signal to this one ended it."""

    code: int
    lost: bool = False
    stopped: bool = False


class CapacityError(UsageError):
    """There is no room for the ranks."""


def describe_job(folder: Path, job: Job) -> None:
    """Write what `retrograd top` shows about a job into the folder of its status files."""
    write_job(folder, command=" ".join(job.command), ranks=job.ranks, transport=job.transport, started=time.time())


def shared_cores(ranks: int) -> dict[str, str]:
    """Return variables that give each rank on a machine its share of the cores, unless the user has set them.

    More spinning threads than cores make matrix products slower than a single thread.
    """
    share = max(1, available_processors() // ranks)
    return {name: str(share) for name in THREADS if name not in os.environ}
