"""The processes that run one script together, and the default group of them."""

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from functools import cached_property
from typing import Any

from retrograd.foundation.suggestions import suggest_in_module
from retrograd.pipelining.transports import get_transport
from retrograd.pipelining.transports.fingerprint import Fingerprint
from retrograd.pipelining.transports.interface import Link, RankMismatchError, Transport
from retrograd.pipelining.transports.rank_messaging import Head, Packet, Peers, Sent
from retrograd.pipelining.transports.subgroup import Subgroup

ROUND = 1 << 32  # operations are numbered from a multiple of it


class ProcessGroup:
    """The ranks that run a script: this process's rank among them, and the transport between them.

    A script that no launcher has started is a group of one rank.  ranks: the numbers of the ranks in the group of all
    processes, by default 0, 1, ....

    >>> from retrograd.pipelining.transports.threads import Threads
    >>> group = ProcessGroup(Threads())
    >>> group.rank(), group.size(), group.launch(lambda link: link.rank)
    (0, 1, [0])
    """

    def __init__(self, transport: Transport, name: str = "threads", ranks: Sequence[int] | None = None) -> None:
        self.transport, self.name = transport, name
        self.ranks = tuple(range(self.size())) if ranks is None else tuple(ranks)
        self.calls = 0  # the number of the next collective operation
        self.barriers = 0  # how many monitored barriers
        self.before_destroy: list[Callable[[], Any]] = []  # what is still to be done with the other ranks

    @cached_property
    def peers(self) -> Peers:
        """Return the messaging of this rank."""
        found: Peers | None = getattr(self.transport, "peers", None)
        return Peers(_Alone()) if found is None else found

    @property
    def comm(self) -> Any:
        """Return mpi4py's communicator of the ranks, or None if they are not processes of MPI."""
        return self.peers.comm

    def rank(self) -> int:
        """Return the rank of this process."""
        local = self.transport.local
        return local[0] if local else 0

    def size(self) -> int:
        """Return the number of ranks."""
        return self.transport.world or 1

    def launch(self, work: Callable[[Link], Any], fingerprint: Fingerprint | None = None) -> list[Any]:
        """Run `work(link)` on this rank while the other ranks do so; return all results on every rank.

        Raises RankMismatchError, on every rank, if their fingerprints differ.
        """
        try:
            return self.transport.launch(self.size(), work, fingerprint)
        except RankMismatchError:
            self.renumber(self.calls)
            raise

    def renumber(self, number: int) -> None:
        """Number the next operations from the next round, since ranks have differed in one of this number.

        They may have started different numbers of operations, of which none will end.
        """
        self.calls = (number // ROUND + 1) * ROUND

    def subgroup(
        self, ranks: Sequence[int], timeout: float | None = None, *, by_members: bool = False
    ) -> "ProcessGroup | None":
        """Return the group of these of its ranks, or None on the other ranks; all ranks must call it.

        The ranks must have agreed to call it: MPI waits for the members without a limit.
        timeout: seconds that a member waits for a message; None: that of this group.  by_members: only they call it.
        """
        made, counted = self.peers.groups, tuple(ranks) if by_members else ()
        made[counted] = made.get(counted, 0) + 1
        if self.rank() not in ranks:
            return None
        key = (made[counted], *counted)
        comm = self.comm and self.comm.Create_group(self.comm.group.Incl(ranks), sum(key) % 32768)
        timeout = self.transport.timeout if timeout is None else timeout
        transport = Subgroup(self.peers, ranks, key, timeout, comm)
        return ProcessGroup(transport, self.name, [self.ranks[rank] for rank in ranks])

    def __repr__(self) -> str:
        return f"ProcessGroup(rank {self.rank()} of {self.size()}, {self.name})"


class _Alone:
    """The channel of a group of one rank."""

    rank, size = 0, 1

    def send(self, rank: int, head: Head, buffers: Sequence[Any]) -> Sent:
        """Raise, because there is no other rank."""
        raise ValueError(f"there is no rank {rank} in a group of one")

    def poll(self) -> list[Packet]:
        """Return no packets."""
        return []

    def moving(self) -> bool:
        """Return False."""
        return False


_process_default: list[ProcessGroup] = []
_default: ContextVar[list[ProcessGroup]] = ContextVar("default_group", default=_process_default)


def isolate_default_group() -> None:
    """Give the present context, as of a thread that is a rank, a default group of its own."""
    _default.set([])


def set_default_group(group: ProcessGroup | None) -> None:
    """Make a group the default; None removes it."""
    _default.get()[:] = [] if group is None else [group]


def default_group() -> ProcessGroup | None:
    """Return the default group, or None if there is none."""
    found = _default.get()
    return found[0] if found else None


def group_or_default(group: ProcessGroup | None) -> ProcessGroup:
    """Return the group, else the default one, else the group of the processes that a launcher has started."""
    found = group or default_group()
    return ProcessGroup(get_transport(), "auto") if found is None else found


suggest_in_module(globals())
