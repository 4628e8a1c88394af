"""Transports launch ranks and move their messages: one small interface, one module each."""

import os
import sys
from collections.abc import Callable

from retrograd.foundation.lazy_imports import lazy_names
from retrograd.pipelining.transports.interface import Aborted, Arrival, Link, PeerLost, RankMismatchError, Transport
from retrograd.pipelining.transports.status_file import STATUS_VARIABLE
from retrograd.pipelining.transports.thread_ranks import rank_of_thread
from retrograd.pipelining.transports.threads import Threads
from retrograd.pipelining.transports.uncaught import report_uncaught_errors

TRANSPORTS = {"threads": "Threads", "mpi": "MPI", "ray": "Ray"}
# The environment variables in which `retrograd run` passes its options.
TRANSPORT_VARIABLE, TIMEOUT_VARIABLE = "RETROGRAD_TRANSPORT", "RETROGRAD_TIMEOUT"
# The number of processes that an MPI launcher has started: of MPICH and Intel MPI, and of Open MPI.
SIZE_VARIABLES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE")
_connected: list[Callable[[float | None], Transport]] = []  # makes that of this process, if no launcher has started it


def get_transport(name: str = "auto", timeout: float | None = None) -> Transport:
    """Return a transport by name: "threads", "mpi", "ray", or "auto".

    "auto" is the transport that `retrograd run` or `mpiexec` has started, or by which `init_process_group` has
    connected this process with others, else threads; on a rank of `rg.distributed.run_threads`, that of this rank.
    timeout: seconds that a rank waits for a message before an error; infinity: no limit.  None: the option of
     `retrograd run`, else for processes 20 times the longest step so far, at least 10 minutes, and no limit for
     threads.

    Raises ValueError for another name, with a list of the known ones, and for a timeout that is not above 0;
    ImportError, with the extra to install, if a package is missing.

    >>> type(get_transport("threads")).__name__
    'Threads'
    """
    if timeout is None and TIMEOUT_VARIABLE in os.environ:
        timeout = float(os.environ[TIMEOUT_VARIABLE])
    if timeout is not None and not timeout > 0:
        raise ValueError(f"timeout is {timeout!r}; it must be a number of seconds above 0, or None")
    rank = rank_of_thread()
    if name == "auto" and _connected and not is_launched():
        return _connected[-1](timeout)
    if rank is not None and name == "auto":
        rank.timeout = rank.timeout if timeout is None else timeout
        return rank
    chosen = _started() if name == "auto" else name
    if chosen not in TRANSPORTS:
        raise ValueError(f"transport {chosen!r} is unknown; there are: auto, {', '.join(sorted(TRANSPORTS))}")
    return _create(TRANSPORTS[chosen], timeout)


def _create(kind: str, timeout: float | None) -> Transport:
    """Return a transport of the class of this name."""
    found: Transport = getattr(sys.modules[__name__], kind)(timeout)
    return found


# Imported on first use, because they need packages that are extras.
__getattr__, __dir__ = lazy_names(
    __name__, {"MPI": "retrograd.pipelining.transports.mpi", "Ray": "retrograd.pipelining.transports.ray"}
)


def connect_process(make: Callable[[float | None], Transport]) -> None:
    """Let "auto" be the transport, for a timeout, that connects this process, which no launcher has started."""
    _connected[:] = [make]


def is_launched() -> bool:
    """Return whether a launcher, or `rg.distributed.run_threads`, has started this rank and connects it with others."""
    several = any(os.environ.get(size, "1") != "1" for size in SIZE_VARIABLES)
    return TRANSPORT_VARIABLE in os.environ or several or rank_of_thread() is not None


def _started() -> str:
    """Return the name of the transport that this process was started for."""
    return os.environ.get(TRANSPORT_VARIABLE, "mpi" if is_launched() else "threads")


if STATUS_VARIABLE in os.environ:  # a rank of `retrograd run`, whose errors before the first step are merged, too
    report_uncaught_errors(None)

__all__ = [
    "SIZE_VARIABLES", "TIMEOUT_VARIABLE", "TRANSPORTS", "TRANSPORT_VARIABLE", "Aborted", "Arrival", "Link", "PeerLost",
    "RankMismatchError", "Threads", "Transport", "connect_process", "get_transport", "is_launched",
]  # fmt: skip
