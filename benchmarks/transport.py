"""Time a send over the MPI transport, next to Isend and Irecv of mpi4py with a NumPy array in the same two processes.

    python benchmarks/transport.py [--rounds 41] [--json FILE] [--check]

Half a round trip: half the time until a tensor has been sent to the other process and back.  One way: the time per
tensor of many in a row, until the receiver acknowledges them.
"""

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

from ranks import RANKS, main_of_ranks, run_script

from retrograd.bench import Row, Table

SENDS = 20  # in a sample
BUDGETS: dict[tuple[str, int], float | None] = {
    ("half a round trip", 1 << 10): None,
    ("one way", 1 << 10): None,
    ("half a round trip", 1 << 16): None,
    ("one way", 1 << 16): None,
    ("half a round trip", 1 << 20): 1.3,
    ("one way", 1 << 20): 1.3,
    ("half a round trip", 1 << 24): None,
    ("one way", 1 << 24): None,
}
Move = Callable[[int], Any]  # the number of a message; sends it, or receives it


def mpi_functions(size: int) -> tuple[Move, Move, Callable[[], None]]:
    """Return functions that send, receive and finish, for arrays of that many bytes."""
    import numpy as np
    from mpi4py import MPI

    comm, outgoing, incoming, requests = MPI.COMM_WORLD, np.ones(size // 8), np.empty(size // 8), []
    other = 1 - comm.rank
    return (
        lambda number: requests.append(comm.Isend(outgoing, other, number)),
        lambda number: comm.Irecv(incoming, other, number).Wait(),
        lambda: (MPI.Request.Waitall(requests), requests.clear()),
    )


def transport_functions(link: Any, size: int) -> tuple[Move, Move, Callable[[], None]]:
    """Return the same over the transport, as a stage uses it: a dict with one tensor."""
    import retrograd as rg
    from retrograd.pipelining.schedules.actions import Message

    value, other = {"x": rg.ones(size // 4)}, 1 - link.rank
    return (
        lambda number: link.send(other, Message("F", link.rank, other, number), value),
        lambda number: link.receive(other, Message("F", other, link.rank, number)),
        lambda: None,
    )


def ping_pong(first: bool, send: Move, receive: Move) -> None:
    """Send messages, each of which is answered before the next one."""
    for number in range(SENDS // 2):
        for move in (send, receive) if first else (receive, send):
            move(number)


def send_in_a_row(first: bool, send: Move, receive: Move) -> None:
    """Send all messages at once, then wait for one answer."""
    for number in range(SENDS):
        (send if first else receive)(number)
    (receive if first else send)(SENDS)


KINDS = {"half a round trip": ping_pong, "one way": send_in_a_row}


def sample(kind: str, first: bool, moves: tuple[Move, Move, Callable[[], None]]) -> float:
    """Return the seconds per send."""
    from mpi4py import MPI

    MPI.COMM_WORLD.Barrier()
    start = time.perf_counter()
    KINDS[kind](first, *moves[:2])
    moves[2]()
    return (time.perf_counter() - start) / SENDS


def measure(rounds: int) -> list[list[tuple[float, float]]]:
    """Measure both ways to send, in turn, by row and round."""
    from retrograd.pipelining.transports import get_transport

    def work(link: Any) -> list[list[tuple[float, float]]]:
        found = []
        for kind, size in BUDGETS:
            subjects = transport_functions(link, size), mpi_functions(size)
            taken = [tuple(sample(kind, link.rank == 0, moves) for moves in subjects) for _ in range(rounds + 1)]
            found.append(taken[1:])  # the first round warms up
        return found

    return get_transport("mpi").launch(RANKS, work)[0]


def report(options: argparse.Namespace) -> list[Table]:
    """Start the two processes, which measure."""
    found = run_script(__file__, "mpi", options.rounds)
    rows = [
        Row(
            f"{size >> 10} KiB, {kind}",
            {"retrograd": [mine for mine, _ in rounds], "mpi4py": [its for _, its in rounds]},
            {"mpi4py": budget} if budget else {},
        )
        for ((kind, size), budget), rounds in zip(BUDGETS.items(), found, strict=True)
    ]
    return [Table("Send between processes", "us", rows, threads=1)]


if __name__ == "__main__":
    sys.exit(main_of_ranks(__doc__, 41, lambda given: measure(given.rounds), report))
