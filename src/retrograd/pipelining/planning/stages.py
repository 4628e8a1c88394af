"""What the stages of a pipe take, and the messages between them."""

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any, NamedTuple

from retrograd.core import Tensor, registry
from retrograd.pipelining.actions import Action, Kind, Message
from retrograd.pipelining.ir import Pipe
from retrograd.pipelining.planning.operators import Loss, bytes_of, typical
from retrograd.pipelining.stage import PipelineStage
from retrograd.pipelining.transports import Arrival, Link, Transport
from retrograd.pipelining.transports.threads import Threads

Seconds = dict[tuple[Kind, int], float]
Route = tuple[str, int, int]  # direction, source and target of messages
IN_FLIGHT = 4  # micro-batches that go forward before one goes back, as in a pipeline: caches are as cold as there


class MessageCost(NamedTuple):
    """What a message takes: seconds for any, and seconds for each byte."""

    latency: float
    per_byte: float

    def seconds(self, size: float) -> float:
        """The seconds of a message of so many bytes.

        >>> MessageCost(0.5, 0.001).seconds(1000)
        1.5
        """
        return self.latency + size * self.per_byte


class StageCosts(NamedTuple):
    """What computations take by kind and stage, and the bytes of a message on every route."""

    seconds: Seconds
    sizes: dict[Route, int]

    def of(self, action: Action, message: MessageCost) -> float:
        """The seconds of a computation, or those until what is sent is there."""
        if action.kind.is_compute:
            return self.seconds[action.kind, action.stage]
        return message.seconds(self.sizes[action.message[:3]])


def measured(
    pipes: Sequence[Pipe],
    args: tuple,
    kwargs: dict[str, Any],
    loss: Loss,
    rounds: int,
    in_flight: int,
    side_by_side: int = 1,
) -> list[StageCosts]:
    """What the stages of each pipe take, run one at a time, with some micro-batches in flight.

    The pipes take turns, so that all see the same of what else the machine does.  With several side by side, as many
    threads do all that at once, each with micro-batches of its own: they share caches, memory and Python as the ranks
    of a step do.  To parameters' gradients they add at one time, which leaves these without meaning.
    """

    def work(link: Link) -> list[StageCosts]:
        return _measured(pipes, args, kwargs, loss, rounds, min(in_flight, IN_FLIGHT), link.rank)

    return [_typical(several) for several in zip(*Threads().launch(side_by_side, work), strict=True)]


def _typical(several: Sequence[StageCosts]) -> StageCosts:
    seconds = {key: median(costs.seconds[key] for costs in several) for key in several[0].seconds}
    return StageCosts(seconds, several[0].sizes)


def _measured(
    pipes: Sequence[Pipe], args: tuple, kwargs: dict[str, Any], loss: Loss, rounds: int, in_flight: int, rank: int
) -> list[StageCosts]:
    samples: list[dict[tuple[Kind, int], list[float]]] = [defaultdict(list) for _ in pipes]
    sizes: list[dict[Route, int]] = [{} for _ in pipes]
    for number in range(rounds + 1):
        for i, pipe in enumerate(pipes):
            for halves in (False, True):
                runs = [_Run(rank * in_flight + j, pipe, args, kwargs, loss) for j in range(in_flight)]
                for run in runs:
                    run.forward()
                for run in runs:
                    run.backward(halves)
                    for key, seconds in run.seconds.items():
                        samples[i][key].extend([seconds] if number else [])
                sizes[i] = dict(runs[0].sizes)
    return [
        StageCosts({key: typical(values) for key, values in found.items()}, size)
        for found, size in zip(samples, sizes, strict=True)
    ]


class _Run:
    """One micro-batch on its way through all stages and back, with the methods that a rank calls."""

    def __init__(self, number: int, pipe: Pipe, args: tuple, kwargs: dict[str, Any], loss: Loss) -> None:
        self.number = number
        self.pipe = pipe
        self.loss = loss
        self.values: dict[str, Any] = pipe.inputs(args, kwargs)
        self.gradients: dict[str, Tensor | None] = {}
        self.seconds: Seconds = {}
        self.sizes: dict[Route, int] = defaultdict(int)

    def forward(self) -> None:
        """Run all stages forward, and the loss."""
        for stage in self.pipe.stages:
            self._measure_messages(stage)
            self._timed(Kind.F, stage, self._forward)

    def _forward(self, stage: PipelineStage) -> None:
        self.values.update(stage.forward(self.number, self.values))
        if stage.index == self.pipe.num_stages - 1:
            value = stage.attach(self.number, lambda made: self.loss(self.pipe.output(made)))
            self.gradients["loss"] = registry["ones_like"](value)

    def _measure_messages(self, stage: PipelineStage) -> None:
        for name, source in stage.inputs:
            if source is not None:
                value, returns = self.values[name]
                self.sizes["F", source, stage.index] += bytes_of(value)
                self.sizes["B", stage.index, source] += bytes_of(value) * returns

    def backward(self, halves: bool) -> None:
        """Run all stages backward, in two halves or whole."""
        for stage in reversed(self.pipe.stages):
            if halves:
                self._timed(Kind.I, stage, lambda stage: self._back(stage, stage.backward_input))
                self._timed(Kind.W, stage, lambda stage: stage.backward_weight(self.number))
            else:
                self._timed(Kind.B, stage, lambda stage: self._back(stage, stage.backward))

    def _back(self, stage: PipelineStage, play: Callable[..., dict[str, Tensor | None]]) -> None:
        for name, gradient in play(self.number, self.gradients).items():
            known = self.gradients.get(name)
            if gradient is not None:
                self.gradients[name] = gradient if known is None else known + gradient

    def _timed(self, kind: Kind, stage: PipelineStage, work: Callable[[PipelineStage], None]) -> None:
        start = time.perf_counter()
        work(stage)
        self.seconds[kind, stage.index] = time.perf_counter() - start


TURNS, SMALL, LARGE = 21, 8, 1 << 22


def message_cost(transport: Transport) -> MessageCost:
    """What a message takes from rank 0 to rank 1, measured by sending small and large ones there and back.

    With a transport of one rank, nothing: there are no messages.

    >>> from retrograd.pipelining.transports import get_transport
    >>> cost = message_cost(get_transport("threads"))
    >>> cost.latency > 0
    True
    """
    ranks = transport.world or 2
    if ranks == 1:
        return MessageCost(0.0, 0.0)
    small, large = transport.launch(ranks, _there_and_back)[0]
    return MessageCost(small, max(large - small, 0.0) / (LARGE - SMALL))


def _there_and_back(link: Link) -> list[float]:
    if link.rank > 1:
        return []
    ways = [("F", 0, 1), ("B", 1, 0)]
    away, home = ways if link.rank == 0 else ways[::-1]
    other = 1 - link.rank
    link.expect([Arrival(other, Message(*home, turn)) for turn in range(2 * TURNS)])
    samples: list[list[float]] = [[], []]
    for turn in range(2 * TURNS):
        large = turn >= TURNS
        payload = {"x": registry["zeros"]((LARGE if large else SMALL) // 4, dtype="float32")}
        start = time.perf_counter()
        if link.rank == 0:
            link.send(other, Message(*away, turn), payload)
        payload = link.receive(other, Message(*home, turn))
        if link.rank == 1:
            link.send(other, Message(*away, turn), payload)
        samples[large].append((time.perf_counter() - start) / 2)
    return [median(found[1:]) for found in samples]


def agreed(transport: Transport, values: list[float]) -> list[float]:
    """The medians over all processes of a transport: all of them plan, and must come to the same plan."""
    if transport.world is None or transport.world == 1:
        return values
    return [median(several) for several in zip(*transport.launch(transport.world, lambda _: values), strict=True)]
