"""Ranks as actors of a Ray cluster: each runs the user's script, supervised by its launcher."""

import importlib.util
import pickle
import threading
from collections.abc import Callable, Sequence
from typing import Any

from retrograd.pipelining.transports.fingerprint import Fingerprint
from retrograd.pipelining.transports.interface import Link
from retrograd.pipelining.transports.rank_messaging import Head, Kind, Packet, Peers, Sent, at_once
from retrograd.pipelining.transports.spmd import launch

Deliver = Callable[[int, int, Head, Sequence[Any]], None]  # call another actor: sender, number, header, buffers


class Ray:
    """Every actor is one rank; tensors travel through Ray's object store, which is shared memory within a node.

    All actors run the same script (`retrograd run -n 4 --transport ray train.py`), and make the same launches.  Ray is
    required: `pip install "retrograd[ray]"`.

    timeout: seconds that a rank waits for a message; None: 20 times the longest launch so far, at least 10 minutes.

    Raises ImportError if Ray is missing, and RuntimeError in a process that `retrograd run` has not started.

    >>> Ray()
    Traceback (most recent call last):
        ...
    RuntimeError: this process is no rank of a Ray cluster; start the script by: retrograd run -n RANKS --transport ray
    SCRIPT. In a notebook or a script that runs by itself, transport="threads" needs no cluster.
    """

    def __init__(self, timeout: float | None = None) -> None:
        self.timeout = timeout
        self.peers = _peers()
        self.world: int = self.peers.size
        self.local = [self.peers.rank]

    def launch(self, ranks: int, work: Callable[[Link], Any], fingerprint: Fingerprint | None = None) -> list[Any]:
        """Run `work(link)` for this actor's rank while the other actors do so for theirs.

        Raises ValueError unless there are as many actors as ranks, PeerLost if one's process is gone, and in every
        actor the first failure of a rank, with that rank's traceback as a note.
        """
        if ranks != self.world:
            raise ValueError(
                f"a pipeline of {ranks} ranks needs {ranks} actors, and Ray has started {self.world}: "
                f"retrograd run -n {ranks} --transport ray SCRIPT"
            )
        return launch(self.peers, work, self.timeout, fingerprint)


_here: list[Peers] = []  # the messaging of this process, once it is a rank


def join(peers: Peers) -> None:
    """Make this process a rank; the actor calls it before it runs the script."""
    _here[:] = [peers]


def _peers() -> Peers:
    if _here:
        return _here[0]
    if importlib.util.find_spec("ray") is None:
        raise ImportError('the Ray transport needs ray: pip install "retrograd[ray]"')
    raise RuntimeError(
        "this process is no rank of a Ray cluster; start the script by: retrograd run -n RANKS --transport ray SCRIPT. "
        'In a notebook or a script that runs by itself, transport="threads" needs no cluster.'
    )


class Mailbox:
    """Packets as calls of the receiving actor, which arrive in separate threads, in any order.

    The call puts a large buffer into the object store.  An arrived buffer is copied once, so that the receiver
    may write to its tensors, and the store is free again.
    """

    def __init__(self, rank: int, size: int) -> None:
        self.rank, self.size = rank, size
        self.others: list[Deliver] = []  # by rank, how to call it
        self._sent = [0] * size
        self.sending = threading.Lock()  # held while a packet is sent; an interruption waits for it
        self._lock = threading.Lock()
        self._arrived: list[Packet] = []
        self._next = [0] * size  # by sender, the number of the next packet
        self._early: dict[tuple[int, int], Packet] = {}  # by sender and number, packets that arrived early

    def send(self, rank: int, head: Head, buffers: Sequence[Any]) -> Sent:
        """Call the other actor, which copies the buffers, so the caller may continue at once."""
        with self.sending:  # a number without its packet would make the receiver wait for it, and for all later ones
            number = self._sent[rank]
            self.others[rank](self.rank, number, head, [pickle.PickleBuffer(buffer) for buffer in buffers])
            self._sent[rank] = number + 1
        return at_once

    def poll(self) -> list[Packet]:
        """Return what has arrived."""
        if not self._arrived:
            return []
        with self._lock:
            packets, self._arrived = self._arrived, []
        return packets

    def moving(self) -> bool:
        """Return whether some packets arrived out of order."""
        return bool(self._early)

    def take(self, rank: int, number: int, head: Head, buffers: Sequence[Any]) -> None:
        """Store a packet, and release packets in order."""
        packet = rank, head, [bytearray(buffer) for buffer in buffers]
        with self._lock:
            self._early[rank, number] = packet
            while (turn := (rank, self._next[rank])) in self._early:
                self._arrived.append(self._early.pop(turn))
                self._next[rank] += 1

    def take_loss(self, rank: int) -> None:
        """Record that the process of a rank is gone, as if its script had ended."""
        with self._lock:
            self._arrived.append((rank, (Kind.LEFT, None, b""), ()))
