"""Ranks that are threads of one process, each of which runs the same script, as the processes of a launcher do.

They exchange the packets of processes, so nothing but the memory that a script shares itself is shared.
"""

import threading
from collections import deque
from contextvars import copy_context

from retrograd.pipelining.transports.process_group import ProcessGroup
from retrograd.pipelining.transports.rank_messaging import Kind, Peers
from retrograd.pipelining.transports.spmd import launch


class Post:
    """A channel whose packets are copied into lists of this process."""

    def __init__(self, rank, boxes):
        self.rank, self.size, self.boxes = rank, len(boxes), boxes

    def send(self, rank, header, buffers):
        self.boxes[rank].append((self.rank, header, [bytearray(buffer) for buffer in buffers]))

    def poll(self):
        box = self.boxes[self.rank]
        return [box.popleft() for _ in range(len(box))]

    def moving(self):
        return False


class OfRank:
    """One thread's end of the transport."""

    timeout = 60.0

    def __init__(self, peers):
        self.peers, self.world, self.local = peers, peers.size, [peers.rank]

    def launch(self, ranks, work, fingerprint=None):
        assert ranks == self.world
        return launch(self.peers, work, self.timeout, fingerprint)


def outcomes_of_ranks(ranks, script):
    """Return what `script(rank, group)` returns or raises on every rank."""
    boxes, outcomes = [deque() for _ in range(ranks)], [None] * ranks

    def run(rank):
        peers = Peers(Post(rank, boxes))
        try:
            outcomes[rank] = script(rank, ProcessGroup(OfRank(peers)))
        except BaseException as error:
            outcomes[rank] = error
        finally:
            peers.broadcast(Kind.LEFT, None)

    threads = [threading.Thread(target=copy_context().run, args=(run, rank)) for rank in range(ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


def run_ranks(ranks, script):
    """Return what `script(rank, group)` returns on every rank; the first error is raised."""
    outcomes = outcomes_of_ranks(ranks, script)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    return outcomes
