"""Ranks as processes started by MPI, on one machine or a cluster."""

import atexit
import pickle
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import cache
from math import inf
from typing import Any, NamedTuple

from retrograd.backend import memory
from retrograd.pipelining.transports.fingerprint import Fingerprint
from retrograd.pipelining.transports.interface import Link
from retrograd.pipelining.transports.rank_messaging import LEAVING, SMALL, Backoff, Head, Packet, Peers, Sent
from retrograd.pipelining.transports.spmd import default_timeout, launch
from retrograd.pipelining.transports.staging_ring import StagingRing, huge_pages
from retrograd.pipelining.transports.status_file import open_status_file
from retrograd.pipelining.transports.uncaught import error_at_end, report_uncaught_errors

LOST = 75  # the exit code if ranks were lost (EX_TEMPFAIL: trying again may help)
ENDS_OTHERS = "ends all ranks, because some were lost"  # the last action then, by which a launcher knows its code
ABORTING = 5  # seconds for MPI to end this process
WINDOW = 4  # messages received at a time: later ones reuse memory that a receiver has just freed
LARGE = 4 << 20  # bytes from which NumPy allocates arrays in huge pages
STAGED = 16 << 20  # bytes for staged copies of smaller buffers
_HEAD, _BUFFER = 1, 2  # tags


class MPI:
    """Every process is one rank; tensors are sent without copying, and received into new memory.

    All processes run the same script (`retrograd run -n 4 --transport mpi train.py` or `mpiexec -n 4 python
    train.py`), and make the same launches.  Needs mpi4py and an MPI, which the extra "mpi" installs: `pip install
    "retrograd[mpi]"`.

    timeout: seconds that a rank waits for a message; None: 20 times the longest launch so far, at least 10 minutes.

    Raises ImportError if mpi4py is missing.

    The calls are those of the MPI standard (https://www.mpi-forum.org/docs).
    """

    def __init__(self, timeout: float | None = None) -> None:
        self.timeout = timeout
        comm = _mpi().COMM_WORLD
        self.world: int = comm.size
        self.local = [comm.rank]

    @property
    def peers(self) -> Peers:
        """Return the messaging of this process."""
        return _peers(self.timeout)

    def launch(self, ranks: int, work: Callable[[Link], Any], fingerprint: Fingerprint | None = None) -> list[Any]:
        """Run `work(link)` for this process's rank while the other processes do so for theirs.

        Raises ValueError unless there are as many processes as ranks, PeerLost if a process is gone, and in every
        process the first failure of a rank, with that rank's traceback as a note.
        """
        if ranks != self.world:
            raise ValueError(
                f"a pipeline of {ranks} ranks needs {ranks} processes, and MPI has started {self.world}: "
                f"retrograd run -n {ranks} --transport mpi SCRIPT"
            )
        return launch(_peers(self.timeout), work, self.timeout, fingerprint)


@cache
def _mpi() -> Any:
    try:
        from mpi4py import MPI as mpi  # noqa: N811
    except ImportError as error:
        raise ImportError(f'the MPI transport: {error}; pip install "retrograd[mpi]"') from error
    atexit.register(_leave, mpi)
    return mpi


class _Connection:
    """How this process has come into contact with the others.  All make two communicators when they first need one."""

    def __init__(self) -> None:
        self.peers: Peers | None = None
        self.timed_out = False
        self._made: list[tuple[Any, Any]] = []  # communicators with the requests that make them

    def start(self, mpi: Any, timeout: float | None) -> Peers:
        """Return the messaging when all processes have called this.  Raises TimeoutError."""
        comm = mpi.COMM_WORLD
        self._made = self._made or [comm.Idup() for _ in range(2)]
        seconds, begun, backoff = default_timeout(0) if timeout is None else timeout, time.monotonic(), Backoff()
        while not mpi.Request.Testall([request for _, request in self._made]):
            backoff()
            if time.monotonic() - begun > seconds:
                self.timed_out = True
                raise TimeoutError(
                    f"rank {comm.rank} has waited {seconds:g} s for the first message of another rank; a rank that "
                    f"does not come computes, loads data, or hangs: see timeout="
                )
        (own, _), (collective, _) = self._made
        self.peers = Peers(_MPIChannel(mpi, own), comm=collective, status=open_status_file())
        report_uncaught_errors(self.peers)
        return self.peers


_connection = _Connection()


def _peers(timeout: float | None = None) -> Peers:
    """Return the messaging of this process; all transports of a process share it."""
    return _connection.peers or _connection.start(_mpi(), timeout)


def _leave(mpi: Any) -> None:
    """Wait for the other processes without occupying the core; if some are lost, MPI ends them and all others.

    A script that ends before its first launch has no messaging yet: the others may be waiting for it to make that.
    """
    if _connection.timed_out or not _peers(inf).leave(LEAVING, error_at_end()):
        if status := open_status_file():
            status.write(ENDS_OTHERS)
        sys.stdout.flush()
        sys.stderr.flush()
        # MPI_Abort waits for mpiexec, which a host without a network does not reach.  Nothing else ends this process.
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(ABORTING)
        mpi.COMM_WORLD.Abort(LOST)


class _Outgoing(NamedTuple):
    requests: list[Any]  # each holds the buffer it sends
    end: int  # end of their data in the staging ring


class _Incoming(NamedTuple):
    rank: int
    head: Head
    buffers: list[Any]
    requests: list[Any]


class _MPIChannel:
    """Packets as MPI messages: a header with small buffers and the sizes of the others, which follow."""

    def __init__(self, mpi: Any, comm: Any) -> None:
        self.rank, self.size = comm.rank, comm.size
        self._comm = comm
        self._probe, self._status, self._any = comm.Improbe, mpi.Status(), mpi.ANY_SOURCE
        self._byte, self._all_done = mpi.BYTE, mpi.Request.Testall
        self._staging = StagingRing(huge_pages(STAGED))
        self._outgoing: deque[_Outgoing] = deque()
        self._incoming: deque[_Incoming] = deque()
        self._moving = False

    def send(self, rank: int, head: Head, buffers: Sequence[Any]) -> Sent:
        """Start to send; small arrays, which are not in huge pages, are sent from a staged copy that is."""
        parts = [buffer.nbytes if buffer.nbytes > SMALL else bytearray(buffer) for buffer in buffers]
        requests = [self._comm.Isend([pickle.dumps((head, parts), 5), self._byte], rank, _HEAD)]
        for buffer in buffers:
            if buffer.nbytes > SMALL:
                source = self._staging.add_copy(buffer) if buffer.nbytes < LARGE else buffer
                requests.append(self._comm.Isend([source, self._byte], rank, _BUFFER))
        self._outgoing.append(_Outgoing(requests, self._staging.end))
        return lambda: bool(self._all_done(requests))

    def poll(self) -> list[Packet]:
        """Receive headers, start to receive their buffers, and return the complete packets."""
        outgoing, incoming = self._outgoing, self._incoming
        self._moving = False
        while len(incoming) < WINDOW and (message := self._probe(self._any, _HEAD, self._status)) is not None:
            self._accept(message, self._status.source, self._status.count)
        while outgoing and self._all_done(outgoing[0].requests):
            self._staging.release(outgoing.popleft().end)
            self._moving = True
        return self._complete() if incoming else []

    def moving(self) -> bool:
        """Return whether buffers are still arriving, or a packet was sent or received."""
        return self._moving or bool(self._incoming)

    def _accept(self, message: Any, rank: int, size: int) -> None:
        """Receive a header that has arrived, and start to receive the buffers that follow it."""
        data, requests = bytearray(size), []
        message.Recv([data, self._byte])
        head, parts = pickle.loads(data)
        for index, part in enumerate(parts):
            if type(part) is int:
                parts[index] = memory(part)
                requests.append(self._comm.Irecv([parts[index], self._byte], rank, _BUFFER))
        self._incoming.append(_Incoming(rank, head, parts, requests))

    def _complete(self) -> list[Packet]:
        """Return the packets that have arrived, those of each sender in order."""
        packets: list[Packet] = []
        waiting: set[int] = set()
        incomplete: deque[_Incoming] = deque()
        for packet in self._incoming:
            rank, head, buffers, requests = packet
            if rank not in waiting and self._all_done(requests):
                packets.append((rank, head, buffers))
            else:
                waiting.add(rank)
                incomplete.append(packet)
        self._incoming = incomplete
        return packets
