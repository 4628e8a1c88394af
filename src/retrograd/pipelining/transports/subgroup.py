"""Groups of some of the ranks: their packets travel over the messaging of all ranks."""

from collections.abc import Callable, Sequence
from typing import Any

from retrograd.pipelining.transports.fingerprint import Fingerprint
from retrograd.pipelining.transports.interface import Link
from retrograd.pipelining.transports.rank_messaging import Head, Kind, Packet, Peers, Sent
from retrograd.pipelining.transports.spmd import launch


class Subgroup:
    """The transport of some ranks of another transport, numbered from 0 in the order of `ranks`.

    peers: the messaging of the other transport.  key: the same on all members, and different for each group.
    comm: mpi4py's communicator of the members, if they are processes of MPI.
    """

    def __init__(self, peers: Peers, ranks: Sequence[int], key: Any, timeout: float | None, comm: Any = None) -> None:
        numbers = [peers.ranks[rank] for rank in ranks]
        self.peers = Peers(_SubgroupChannel(peers, ranks, key), peers.clock, comm, peers.status, numbers, peers.sleep)
        self.peers.operations = peers.operations
        self.timeout = timeout
        self.world: int | None = len(ranks)
        self.local = [self.peers.rank]

    def launch(self, ranks: int, work: Callable[[Link], Any], fingerprint: Fingerprint | None = None) -> list[Any]:
        """Run `work(link)` on this rank while the other members do so; return all results."""
        if ranks != self.world:
            raise ValueError(f"a launch of {ranks} ranks in a group of {self.world}")
        return launch(self.peers, work, self.timeout, fingerprint)


class _SubgroupChannel:
    """Packets between the members, wrapped in packets between all ranks."""

    def __init__(self, peers: Peers, ranks: Sequence[int], key: Any) -> None:
        self.rank, self.size = ranks.index(peers.rank), len(ranks)
        self._peers, self._ranks, self._key = peers, list(ranks), key
        self._left: set[int] = set()

    def send(self, rank: int, head: Head, buffers: Sequence[Any]) -> Sent:
        """Send a packet to a member."""
        kind, subject, header = head
        return self._peers.send(self._ranks[rank], Kind.GROUP, (self._key, kind, subject), (header, buffers))

    def poll(self) -> list[Packet]:
        """Return the packets of the members; one whose script has ended has left the group too."""
        self._peers.poll()
        found = self._peers.group_packets.pop(self._key, [])
        packets: list[Packet] = [(self._ranks.index(rank), head, buffers) for rank, head, buffers in found]
        for rank in self._peers.left.keys() - self._left:
            self._left.add(rank)
            if rank in self._ranks:
                packets.append((self._ranks.index(rank), (int(Kind.LEFT), None, b""), ()))
        return packets

    def moving(self) -> bool:
        """Return whether packets are in transit."""
        return self._peers.channel.moving()
