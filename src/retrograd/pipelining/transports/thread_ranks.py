"""Ranks that are threads of one process, each of which runs the same script, as the processes of a launcher do.

They exchange the packets of processes, so they share no memory except that of the script itself.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import ContextVar, copy_context
from typing import Any

from retrograd.pipelining.transports.fingerprint import Fingerprint
from retrograd.pipelining.transports.interface import Link
from retrograd.pipelining.transports.rank_messaging import Head, Kind, Packet, Peers, Sent, at_once
from retrograd.pipelining.transports.spmd import launch

_rank_of_thread: ContextVar["ThreadRank | None"] = ContextVar("rank_of_thread", default=None)


class ThreadChannel:
    """A channel whose packets are copied into lists of this process.

    It wakes a rank that sleeps: one that polled would take turns of the interpreter from the ranks that it waits for.
    """

    def __init__(self, rank: int, boxes: Sequence["Box"]) -> None:
        self.rank, self.size, self.boxes = rank, len(boxes), boxes

    def send(self, rank: int, head: Head, buffers: Sequence[Any]) -> Sent:
        """Append copies of the buffers to the list of the receiver."""
        box = self.boxes[rank]
        box.packets.append((self.rank, head, [bytearray(buffer) for buffer in buffers]))
        box.arrival.set()
        return at_once

    def poll(self) -> list[Packet]:
        """Return what has arrived."""
        packets = self.boxes[self.rank].packets
        return [packets.popleft() for _ in range(len(packets))]

    def moving(self) -> bool:
        """Return False: a packet has arrived as soon as it is sent."""
        return False

    def sleep(self, seconds: float) -> None:
        """Sleep until a packet arrives."""
        arrival = self.boxes[self.rank].arrival
        arrival.wait(seconds)
        arrival.clear()  # the next poll returns what has arrived before; what arrives from now on sets it again


class Box:
    """The packets that have arrived for a rank, and whether some came since it last slept."""

    def __init__(self) -> None:
        self.packets: deque[Packet] = deque()
        self.arrival = threading.Event()


class ThreadRank:
    """One thread's end of the transport."""

    def __init__(self, peers: Peers, timeout: float | None = None) -> None:
        self.peers, self.timeout = peers, timeout
        self.world: int | None = peers.size
        self.local = [peers.rank]

    def launch(self, ranks: int, work: Callable[[Link], Any], fingerprint: Fingerprint | None = None) -> list[Any]:
        """Run `work(link)` on this thread while the other threads do so; return all results."""
        if ranks != self.world:
            raise ValueError(f"a pipeline of {ranks} ranks needs {ranks} threads, and there are {self.world}")
        return launch(self.peers, work, self.timeout, fingerprint)


def rank_of_thread() -> ThreadRank | None:
    """Return the transport of the rank that this thread runs, or None outside of `run_threads`."""
    return _rank_of_thread.get()


def outcomes_of_threads(ranks: int, script: Callable[[ThreadRank], Any], timeout: float | None = None) -> list[Any]:
    """Return by rank what `script(transport)` returns or raises in a thread for each rank."""
    boxes = [Box() for _ in range(ranks)]
    outcomes: list[Any] = [None] * ranks

    def run(rank: int) -> None:
        channel = ThreadChannel(rank, boxes)
        peers = Peers(channel, sleep=channel.sleep)
        transport = ThreadRank(peers, timeout)
        _rank_of_thread.set(transport)
        try:
            outcomes[rank] = script(transport)
        except BaseException as error:
            outcomes[rank] = error
        finally:
            peers.broadcast(Kind.LEFT, None)

    threads = [threading.Thread(target=copy_context().run, args=(run, rank), daemon=True) for rank in range(ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes
