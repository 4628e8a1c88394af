"""How ranks are launched and how their messages travel: one small interface, one module each."""

import os
from importlib import import_module

from retrograd.pipelining.transports.interface import Aborted, Arrival, Link, PeerLost, Transport
from retrograd.pipelining.transports.threads import Threads

# Each is loaded when it is first asked for: the packages that some need are extras.
TRANSPORTS = {"threads": "threads.Threads", "mpi": "mpi.MPI", "ray": "ray.Ray"}
# The environment variables in which `retrograd run` tells what it was asked for.
CHOSEN, PATIENCE = "RETROGRAD_TRANSPORT", "RETROGRAD_TIMEOUT"
# Those in which an MPI's launcher tells how many processes it has started: MPICH's and Intel's, and Open MPI's.
SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE")


def get_transport(name: str = "auto", timeout: float | None = None) -> Transport:
    """A transport by name: "threads", "mpi", "ray", or "auto".

    "auto" is what `retrograd run` or `mpiexec` has started, else threads.
    timeout: seconds that a rank waits for a message before that is an error; None: what `retrograd run` was told, else
        forever.

    Raises ValueError for another name, with a list of those that exist, and for a timeout that is not above 0;
    ImportError, with the extra to install, where a package is missing.

    >>> type(get_transport("threads")).__name__
    'Threads'
    """
    if timeout is None and PATIENCE in os.environ:
        timeout = float(os.environ[PATIENCE])
    if timeout is not None and not timeout > 0:
        raise ValueError(f"timeout is {timeout!r}; it must be a number of seconds above 0, or None")
    chosen = _started() if name == "auto" else name
    if chosen not in TRANSPORTS:
        raise ValueError(f"transport {chosen!r} is unknown; there are: auto, {', '.join(sorted(TRANSPORTS))}")
    module, _, kind = TRANSPORTS[chosen].partition(".")
    return getattr(import_module(f"{__name__}.{module}"), kind)(timeout)


def _started() -> str:
    """What this process is part of."""
    several = any(os.environ.get(size, "1") != "1" for size in SIZES)
    return os.environ.get(CHOSEN, "mpi" if several else "threads")


__all__ = [
    "CHOSEN", "PATIENCE", "SIZES", "TRANSPORTS", "Aborted", "Arrival", "Link", "PeerLost", "Threads", "Transport",
    "get_transport",
]  # fmt: skip
