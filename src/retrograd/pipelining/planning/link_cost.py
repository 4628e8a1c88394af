"""Measure the cost of a message between two ranks."""

import time
from collections.abc import Sequence
from functools import partial
from statistics import median
from typing import NamedTuple

from retrograd.core import registry
from retrograd.pipelining.runtime.stage import StageMessage
from retrograd.pipelining.schedules.actions import Message
from retrograd.pipelining.transports import Arrival, Link, Transport

SMALL, LARGE = 8, 1 << 20  # bytes of the messages that are timed
ROUND_TRIPS = 11  # how often each is timed
COMPUTE_SECONDS = 1e-3  # seconds that ranks compute between two messages


class LinearCost(NamedTuple):
    """A cost linear in the size: fixed seconds per message, and seconds per byte."""

    fixed: float
    per_byte: float = 0.0

    def seconds(self, size: float) -> float:
        """Return the seconds for a message of `size` bytes."""
        return self.fixed + size * self.per_byte


class MessageCost(NamedTuple):
    """The cost of a message: its latency, and how long it occupies the sender and the receiver."""

    latency: LinearCost
    sending: LinearCost = LinearCost(0.0)
    receiving: LinearCost = LinearCost(0.0)

    def seconds(self, size: float) -> float:
        """Return the seconds from the start of sending `size` bytes until the other rank has received them.

        >>> MessageCost(LinearCost(0.5, 0.001), receiving=LinearCost(0.125)).seconds(1000)
        1.625
        """
        return sum(part.seconds(size) for part in self)


def message_cost(transport: Transport) -> MessageCost:
    """Measure the message cost between ranks 0 and 1 by round trips of small and large messages.

    Between messages the ranks compute, as in a step, so the caches hold nothing of the messages and waits are long.
    A transport of one rank has no messages, so the cost is 0.

    >>> from retrograd.pipelining.transports import get_transport
    >>> cost = message_cost(get_transport("threads"))
    >>> cost.sending.fixed > 0
    True
    """
    ranks = transport.world or 2
    if ranks == 1:
        return MessageCost(LinearCost(0.0))
    small, large = (
        _latency_and_overheads(*transport.launch(ranks, partial(_round_trips, size))[:2]) for size in (SMALL, LARGE)
    )
    return MessageCost(*map(fit_line, small, large))


def fit_line(small: float, large: float) -> LinearCost:
    """Return the cost from the seconds for `SMALL` and for `LARGE` bytes."""
    return LinearCost(small, max(large - small, 0.0) / (LARGE - SMALL))


def _latency_and_overheads(
    first: Sequence[Sequence[float]], second: Sequence[Sequence[float]]
) -> tuple[float, float, float]:
    """Return the seconds of latency, sending and receiving from the measurements of both ranks."""
    (sending, waiting), (holding, receiving) = first, second
    receive_seconds = median(receiving)
    until_received = median((round_trip - held) / 2 for round_trip, held in zip(waiting, holding, strict=True))
    return max(until_received - receive_seconds, 0.0), median(sending), receive_seconds


def _round_trips(size: int, link: Link) -> tuple[list[float], list[float]] | None:
    """Return the measurements of ranks 0 and 1 for messages of `size` bytes."""
    if link.rank > 1:
        return None
    return (_respond if link.rank else _initiate)(_Exchange(link, size))


def _initiate(exchange: "_Exchange") -> tuple[list[float], list[float]]:
    """Return the seconds of sends, and from each send until its answer is received."""
    sending, waiting = [], []
    for _ in range(ROUND_TRIPS):
        exchange.compute(COMPUTE_SECONDS)
        sending.append(exchange.send())
        waiting.append(exchange.receive())
    for _ in range(ROUND_TRIPS):
        exchange.send()
        exchange.receive()
    return sending, waiting


def _respond(exchange: "_Exchange") -> tuple[list[float], list[float]]:
    """Return the seconds from a message until its answer is sent, and of receives whose message has arrived."""
    waiting, holding, receiving = [], [], []
    for _ in range(ROUND_TRIPS):
        waiting.append(exchange.receive())
        holding.append(exchange.compute(COMPUTE_SECONDS) + exchange.send())
    for _ in range(ROUND_TRIPS):
        exchange.compute(2 * median(waiting))  # the next message is sent at once, so it has arrived by then
        receiving.append(exchange.receive())
        exchange.send()
    return holding, receiving


class _Exchange:
    """One rank's side of the round trips; each method returns the seconds that it took."""

    def __init__(self, link: Link, size: int) -> None:
        self.link = link
        self.other = 1 - link.rank
        self.payload = {"x": StageMessage(registry["ones"](size // 4, dtype="float32"), True)}
        self.numbers = registry["ones"](LARGE // 4, dtype="float32")
        turns = range(2 * ROUND_TRIPS)
        self.outgoing = iter([Message("F", link.rank, self.other, turn) for turn in turns])
        incoming = [Message("F", self.other, link.rank, turn) for turn in turns]
        link.expect([Arrival(self.other, message) for message in incoming])
        self.incoming = iter(incoming)

    def send(self) -> float:
        start = time.perf_counter()
        self.link.send(self.other, next(self.outgoing), self.payload)
        return time.perf_counter() - start

    def receive(self) -> float:
        start = time.perf_counter()
        self.link.receive(self.other, next(self.incoming))
        return time.perf_counter() - start

    def compute(self, seconds: float) -> float:
        start = time.perf_counter()
        while (elapsed := time.perf_counter() - start) < seconds:
            registry["mul"](self.numbers, self.numbers)
        return elapsed
