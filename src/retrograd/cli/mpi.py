"""Run ranks as processes that `mpiexec` starts."""

import importlib.util
import os
import shutil
import signal
import sys
from pathlib import Path

from retrograd.cli.errors import UsageError, needs_extra
from retrograd.cli.jobs import Job, RunResult, shared_cores
from retrograd.cli.mpi_banner import BannerFilter
from retrograd.cli.processes import watch
from retrograd.pipelining.transports.mpi import LOST

# Signals that indicate a lost process.
FATAL = {signal.SIGILL, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM}
BROKEN = 255  # mpiexec's own exit code if it has lost a host, or a process on another host
# Every process starts through this shell command, which lets only the first one print.
# PyTorch's launcher sets these variables, which scripts for it read.
RANKS = (
    'export RANK="${PMI_RANK:-${OMPI_COMM_WORLD_RANK:-0}}" WORLD_SIZE="${PMI_SIZE:-${OMPI_COMM_WORLD_SIZE:-1}}" '
    'LOCAL_RANK="${MPI_LOCALRANKID:-${OMPI_COMM_WORLD_LOCAL_RANK:-0}}"; '
)
FIRST_PRINTS = RANKS + 'if [ "${PMI_RANK:-0}" = 0 ]; then exec "$@"; else exec "$@" >/dev/null; fi'


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
    on_one_host = -(-job.ranks // _count(job.hosts))
    threads = shared_cores(on_one_host)
    output = BannerFilter()
    code = watch(command(job), {"PYTHONUNBUFFERED": "1", **os.environ, **threads, **job.environment}, output)
    if code < 0:
        return RunResult(128 - code)
    if output.signal is not None:  # other exit codes, also those equal to a signal's number, are the script's own
        print(
            f"retrograd: a rank was killed by signal {output.signal.value} ({output.signal.name}), and the others were "
            f"ended with it; --restarts runs the script again after such a loss",
            file=sys.stderr,
        )
        return RunResult(128 + output.signal, lost=output.signal in FATAL)
    return RunResult(code, lost=code == LOST or (code == BROKEN and job.hosts is not None))


def command(job: Job) -> list[str]:
    """Return the command line of mpiexec."""
    line = [mpiexec(), "-n", str(job.ranks)]
    if job.hosts is not None:
        line += ["-f", str(job.hosts)]
    if job.everything:
        shell = ["sh", "-c", RANKS + 'exec "$@"', "sh"]
        return [*line, "-prepend-rank", *shell, sys.executable, "-c", ALL_PRINT.format(module=job.module), *job.command]
    return [*line, "sh", "-c", FIRST_PRINTS, "sh", sys.executable, *(["-m"] if job.module else []), *job.command]


def mpiexec() -> str:
    """Return the mpiexec of this Python, or else the system's."""
    if importlib.util.find_spec("mpi4py") is None:
        needs_extra("--transport mpi", "mpi4py", "mpi")
    sibling = Path(sys.executable).with_name("mpiexec")
    path = str(sibling) if sibling.exists() else shutil.which("mpiexec")
    return path or needs_extra("--transport mpi", "mpiexec", "mpi")


def _count(hosts: Path | None) -> int:
    """Return the number of hosts in a file, one per line."""
    lines = [] if hosts is None else [line.partition("#")[0].strip() for line in hosts.read_text().splitlines()]
    return max(1, len([line for line in lines if line]))
