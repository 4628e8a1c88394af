"""Run ranks as processes that `mpiexec` starts."""

import importlib.util
import os
import shutil
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from retrograd.cli.errors import UsageError, needs_extra
from retrograd.cli.jobs import Job, RunResult, describe_job, shared_cores
from retrograd.cli.processes import watch
from retrograd.cli.rank_output import ExitReport, RankOutput
from retrograd.pipelining.transports.mpi import ENDS_OTHERS, LOST
from retrograd.pipelining.transports.status_file import STATUS_VARIABLE, last_action, status_folder

# Signals that indicate a lost process.
FATAL = {signal.SIGILL, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM}
BROKEN = 255  # mpiexec's own exit code if it has lost a host, or a process on another host
RANK_PROCESS = Path(__file__).with_name("rank_process.py")

# Python code for the case that all ranks print: it runs the script with line-buffered streams, because mpiexec puts the
# rank before each write.
ALL_PRINT = """
import os, runpy, sys
for stream in (sys.stdout, sys.stderr):
    stream.reconfigure(line_buffering=True, write_through=False)
del sys.argv[0]
if {module}:
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
else:
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    runpy.run_path(sys.argv[0], run_name="__main__")
"""


def run_mpi(job: Job) -> RunResult:
    """Start the ranks, and wait until all have ended; if one is lost, mpiexec ends the others."""
    if job.ranks is None:
        raise UsageError("--transport mpi needs -n, the number of ranks")
    if job.hosts is not None and not job.hosts.is_file():
        raise UsageError(f"--hostfile is '{job.hosts}'; there is no such file")
    threads = shared_cores(-(-job.ranks // _count(job.hosts)))
    with status_folder() as folder:
        describe_job(folder, job)
        output = RankOutput(str(folder), job.everything)
        variables = {STATUS_VARIABLE: str(folder), **threads, **job.environment}
        code = watch(command(job), {"PYTHONUNBUFFERED": "1", **os.environ, **variables}, output, job.can_grow)
        own_end = any(last_action(folder, rank) == ENDS_OTHERS for rank in range(job.ranks))
    killer = killing_signal(output.exits, output.signal)
    ended = classify_end(code, output.exits, killer, hosts=job.hosts is not None, own_end=own_end)
    if killer is not None and code >= 0:
        print(
            f"retrograd: signal {killer:d} ({killer.name}) has ended a rank, and the others were ended "
            f"with it; --restarts runs the script again after such a loss",
            file=sys.stderr,
        )
    return ended


def killing_signal(exits: Sequence[ExitReport], banner: signal.Signals | None) -> signal.Signals | None:
    """Return the signal that has ended the first rank, or None if its script has ended by itself.

    banner: the signal that mpiexec reports. It may be the one by which mpiexec has killed the other ranks, so the first
    report of a rank decides.

    >>> killing_signal([ExitReport(0, 3)], signal.SIGKILL), killing_signal([ExitReport(0, -11)], signal.SIGKILL)
    (None, <Signals.SIGSEGV: 11>)
    """
    if not exits:
        return banner
    return signal.Signals(-exits[0].code) if exits[0].code < 0 else None


def classify_end(
    code: int, exits: Sequence[ExitReport], killer: signal.Signals | None, hosts: bool = False, own_end: bool = False
) -> RunResult:
    """Return the exit code of a run, and whether it has lost a rank.

    code: that of mpiexec, or a signal that this process has received, negative.  exits: reports of ranks whose scripts
    have failed or were killed.  killer: the signal that has killed the first of them.  hosts: whether ranks are on
    other hosts, which mpiexec may lose.  own_end: whether a rank of this host has ended the others, because some were
    lost.

    >>> classify_end(75, [ExitReport(0, 75)], None).lost, classify_end(75, [], None, own_end=True).lost
    (False, True)
    """
    if code < 0:
        return RunResult(128 - code, stopped=True)
    if killer is not None:
        return RunResult(128 + killer, lost=killer in FATAL)
    if own_end or any(report.action == ENDS_OTHERS for report in exits):
        return RunResult(LOST, lost=True)
    if exits:  # the code of the first rank that failed; mpiexec combines the codes of all ranks by OR
        return RunResult(exits[0].code)
    # Nothing has reported the code, so it is mpiexec's own, or MPI has ended the ranks before they could report.
    return RunResult(code, lost=hosts and code in (LOST, BROKEN))


def command(job: Job) -> list[str]:
    """Return the command line of mpiexec."""
    line = [mpiexec(), "-n", str(job.ranks)]
    if job.hosts is not None:
        line += ["-f", str(job.hosts)]
    rank = [sys.executable, "-S", str(RANK_PROCESS)]
    if job.everything:
        code = ALL_PRINT.format(module=job.module)
        return [*line, "-prepend-rank", *rank, "all", sys.executable, "-c", code, *job.command]
    return [*line, *rank, "first", sys.executable, *(["-m"] if job.module else []), *job.command]


def mpiexec() -> str:
    """Return the mpiexec of this Python, or else the system's."""
    if importlib.util.find_spec("mpi4py") is None:
        needs_extra("--transport mpi", "mpi4py", "mpi")
    sibling = Path(sys.executable).with_name("mpiexec")
    path = str(sibling) if sibling.exists() else shutil.which("mpiexec")
    return path or needs_extra("--transport mpi", "mpiexec", "mpi")


def mpi_capacity(job: Job) -> int:
    """Return how many ranks the hosts have room for: their slots in the host file, else the job's number of ranks.

    A line of the file is HOST or HOST:SLOTS.  The file may change while the job runs.
    """
    if job.hosts is None:
        return job.ranks or 0
    return sum(int(line.partition(":")[2] or 1) for line in _host_lines(job.hosts))


def _host_lines(hosts: Path) -> list[str]:
    lines = [line.partition("#")[0].strip() for line in hosts.read_text().splitlines()]
    return [line for line in lines if line]


def _count(hosts: Path | None) -> int:
    """Return the number of hosts in a file, one per line."""
    return max(1, len([] if hosts is None else _host_lines(hosts)))
