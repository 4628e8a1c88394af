"""The processes that run one script together, and the default group of them."""

from collections.abc import Callable
from typing import Any

from retrograd.pipelining.transports import get_transport
from retrograd.pipelining.transports.fingerprint import Fingerprint
from retrograd.pipelining.transports.interface import Link, Transport


class ProcessGroup:
    """The ranks that run a script: this process's rank among them, and the transport between them.

    A script that no launcher has started is a group of one rank.

    >>> from retrograd.pipelining.transports.threads import Threads
    >>> group = ProcessGroup(Threads())
    >>> group.rank(), group.size(), group.launch(lambda link: link.rank)
    (0, 1, [0])
    """

    def __init__(self, transport: Transport, name: str = "threads") -> None:
        self.transport = transport
        self.name = name

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
        return self.transport.launch(self.size(), work, fingerprint)

    def __repr__(self) -> str:
        return f"ProcessGroup(rank {self.rank()} of {self.size()}, {self.name})"


_default: list[ProcessGroup] = []


def set_default_group(group: ProcessGroup | None) -> None:
    """Make a group the default; None removes it."""
    _default[:] = [] if group is None else [group]


def default_group() -> ProcessGroup | None:
    """Return the default group, or None if there is none."""
    return _default[0] if _default else None


def group_or_default(group: ProcessGroup | None) -> ProcessGroup:
    """Return the group, else the default one, else the group of the processes that a launcher has started."""
    found = group or default_group()
    return ProcessGroup(get_transport(), "auto") if found is None else found
