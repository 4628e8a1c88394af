"""What a message between two ranks takes."""

import time
from collections.abc import Sequence
from functools import partial
from statistics import median
from typing import NamedTuple

from retrograd.core import registry
from retrograd.pipelining.runtime.stage import Passed
from retrograd.pipelining.schedules.actions import Message
from retrograd.pipelining.transports import Arrival, Link, Transport

SMALL, LARGE = 8, 1 << 20  # the bytes of the messages that are timed
TURNS = 11  # how often each is
SPELL = 1e-3  # seconds that ranks compute between two messages


class Part(NamedTuple):
    """Seconds that any message takes, and those for each of its bytes."""

    fixed: float
    per_byte: float = 0.0

    def seconds(self, size: float) -> float:
        """The seconds for so many bytes."""
        return self.fixed + size * self.per_byte


class MessageCost(NamedTuple):
    """What a message takes on its way, and for how long it keeps the rank that sends and the one that receives busy."""

    latency: Part
    sending: Part = Part(0.0)
    receiving: Part = Part(0.0)

    def seconds(self, size: float) -> float:
        """The seconds from when a rank begins to send so many bytes until the other has them.

        >>> MessageCost(Part(0.5, 0.001), receiving=Part(0.125)).seconds(1000)
        1.625
        """
        return sum(part.seconds(size) for part in self)


def message_cost(transport: Transport) -> MessageCost:
    """What a message takes between ranks 0 and 1, measured by sending small and large ones there and back.

    In between the ranks compute, as in a step: so nothing of sending and receiving is left in the caches, and whoever
    waits does so for long.  With a transport of one rank, nothing: there are no messages.

    >>> from retrograd.pipelining.transports import get_transport
    >>> cost = message_cost(get_transport("threads"))
    >>> cost.sending.fixed > 0
    True
    """
    ranks = transport.world or 2
    if ranks == 1:
        return MessageCost(Part(0.0))
    small, large = (_parts(*transport.launch(ranks, partial(_there_and_back, size))[:2]) for size in (SMALL, LARGE))
    return MessageCost(*map(_line, small, large))


def _line(small: float, large: float) -> Part:
    return Part(small, max(large - small, 0.0) / (LARGE - SMALL))


def _parts(first: Sequence[Sequence[float]], second: Sequence[Sequence[float]]) -> tuple[float, float, float]:
    """The seconds on the way, of sending and of receiving, from what both ranks have seen."""
    (sending, waiting), (holding, receiving) = first, second
    taking = median(receiving)
    until_received = median((waited - held) / 2 for waited, held in zip(waiting, holding, strict=True))
    return max(until_received - taking, 0.0), median(sending), taking


def _there_and_back(size: int, link: Link) -> tuple[list[float], list[float]] | None:
    """What ranks 0 and 1 see of messages of so many bytes."""
    if link.rank > 1:
        return None
    return (_second if link.rank else _first)(_Exchange(link, size))


def _first(exchange: "_Exchange") -> tuple[list[float], list[float]]:
    """The seconds of sends, and those from then until the answer is received."""
    sending, waiting = [], []
    for _ in range(TURNS):
        exchange.compute(SPELL)
        sending.append(exchange.send())
        waiting.append(exchange.receive())
    for _ in range(TURNS):
        exchange.send()
        exchange.receive()
    return sending, waiting


def _second(exchange: "_Exchange") -> tuple[list[float], list[float]]:
    """The seconds from having a message until its answer is sent, and those of receives whose message is there."""
    waiting, holding, receiving = [], [], []
    for _ in range(TURNS):
        waiting.append(exchange.receive())
        holding.append(exchange.compute(SPELL) + exchange.send())
    for _ in range(TURNS):
        exchange.compute(2 * median(waiting))  # the next message comes at once, so it has come by then
        receiving.append(exchange.receive())
        exchange.send()
    return holding, receiving


class _Exchange:
    """A rank's part in messages there and back; whatever it does, it says how many seconds that took."""

    def __init__(self, link: Link, size: int) -> None:
        self.link = link
        self.other = 1 - link.rank
        self.payload = {"x": Passed(registry["ones"](size // 4, dtype="float32"), True)}
        self.numbers = registry["ones"](LARGE // 4, dtype="float32")
        turns = range(2 * TURNS)
        self.leaving = iter([Message("F", link.rank, self.other, turn) for turn in turns])
        coming = [Message("F", self.other, link.rank, turn) for turn in turns]
        link.expect([Arrival(self.other, message) for message in coming])
        self.coming = iter(coming)

    def send(self) -> float:
        start = time.perf_counter()
        self.link.send(self.other, next(self.leaving), self.payload)
        return time.perf_counter() - start

    def receive(self) -> float:
        start = time.perf_counter()
        self.link.receive(self.other, next(self.coming))
        return time.perf_counter() - start

    def compute(self, seconds: float) -> float:
        start = time.perf_counter()
        while (taken := time.perf_counter() - start) < seconds:
            registry["mul"](self.numbers, self.numbers)
        return taken
