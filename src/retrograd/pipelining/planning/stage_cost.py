"""Measure the stages of a pipe while ranks run them, as in a step."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from random import Random
from typing import Any, NamedTuple

from retrograd.pipelining.microbatch import MicroBatch
from retrograd.pipelining.planning.link_cost import MessageCost
from retrograd.pipelining.planning.operator_cost import bytes_of
from retrograd.pipelining.planning.simulate import Cost
from retrograd.pipelining.runtime.gradient_sums import Gradients
from retrograd.pipelining.runtime.rank import Job, Rank
from retrograd.pipelining.schedules import get_schedule
from retrograd.pipelining.schedules.actions import Action, Kind
from retrograd.pipelining.schedules.program import make_program
from retrograd.pipelining.schedules.stage_placement import blocks, stages_by_rank
from retrograd.pipelining.split.manual_stages import AnyPipe
from retrograd.pipelining.transports import Transport

Loss = Callable[[AnyPipe, dict[str, Any]], Any]  # from a pipe and the outputs of its last stage to the loss
Seconds = dict[tuple[Kind, int], float]
Route = tuple[str, int, int]  # direction, source and target of messages
MICRO_BATCHES = 4  # for each rank: they wait for each other a fifth of the time at most


class StageCosts(NamedTuple):
    """The seconds of computations by kind and stage, and the bytes of a message on every route.

    samples: all measured seconds of computations, of which `seconds` are the lower deciles.
    send_delays, wake_delays: by how much each send, and each arrival at a rank that waited for it, took longer than the
    quickest one of its stage.
    """

    seconds: Seconds
    sizes: dict[Route, int]
    samples: Mapping[tuple[Kind, int], Sequence[float]] = {}
    send_delays: Sequence[float] = (0.0,)
    wake_delays: Sequence[float] = (0.0,)

    def cost(self, action: Action, message: MessageCost) -> float:
        """Return the seconds of a computation, or the latency of a message."""
        if action.kind.is_compute:  # R runs the same code as F
            return self.seconds[Kind.F if action.kind is Kind.R else action.kind, action.stage]
        return message.latency.seconds(self._size(action))

    def overhead(self, action: Action, message: MessageCost) -> float:
        """Return the seconds for which a send or receive occupies its rank."""
        return (message.sending if action.kind.is_send else message.receiving).seconds(self._size(action))

    def varied_cost(self, cost: Cost, draw: Random) -> Cost:
        """Return costs in which computations and arrivals vary as in the measurements.  draw: chooses the samples."""

        def varied(action: Action) -> float:
            if not action.kind.is_compute:
                return cost(action) + (draw.choice(self.wake_delays) if action.kind.is_send else 0.0)
            kind = Kind.F if action.kind is Kind.R else action.kind
            return cost(action) + draw.choice(self.samples[kind, action.stage]) - self.seconds[kind, action.stage]

        return varied

    def varied_overhead(self, overhead: Cost, draw: Random) -> Cost:
        """Return the overheads of messages in which a send varies as in the measurements."""
        return lambda action: overhead(action) + (draw.choice(self.send_delays) if action.kind.is_send else 0.0)

    def _size(self, action: Action) -> int:
        return self.sizes[action.message[:3]]


def measure_stages(
    pipes: Sequence[AnyPipe],
    batch: MicroBatch,
    loss: Loss,
    transport: Transport,
    workers: int,
    rounds: int,
    micro_batches: int,
) -> list[StageCosts]:
    """Measure the stages of each pipe for a microbatch on `workers` ranks; every process gets the same result.

    They run 1F1B and ZB-H1, to time both full and split backward passes.  There may be fewer ranks than in the plan;
    they compete for caches, memory and Python as in a real step.  The pipes take turns, so that other load on the
    machine affects all of them equally.
    """
    count = min(micro_batches, MICRO_BATCHES * workers)
    orders = [get_schedule(name).order for name in ("1f1b", "zb-h1")]
    trials = []
    for pipe in pipes:
        stages = stages_by_rank(blocks(pipe.num_stages, workers))
        trials.append([TrialStep(pipe, batch, loss, order(stages, count), workers) for order in orders])
    samples: list[dict[tuple[Kind, int], list[float]]] = [defaultdict(list) for _ in pipes]
    for number in range(rounds + 1):
        for found, runs in zip(samples, trials, strict=True):
            for action, seconds in (timed for trial in runs for timed in trial.run(transport)):
                if number:  # the first time warms up
                    found[action.kind, action.stage].append(seconds)
    return [_stage_costs(found, _sizes(pipe, batch)) for found, pipe in zip(samples, pipes, strict=True)]


def _stage_costs(samples: Mapping[tuple[Kind, int], list[float]], sizes: dict[Route, int]) -> StageCosts:
    """Return the costs from the seconds of computations, of sends, and of messages that ranks waited for."""

    def delays(kinds: Sequence[Kind]) -> list[float]:
        found = [values for (kind, _), values in samples.items() if kind in kinds]
        return [seconds - min(values) for values in found for seconds in values] or [0.0]

    computations = {key: values for key, values in samples.items() if key[0].is_compute}
    # Other programs add milliseconds to some samples: on busy cores, medians of equal layers differ several times.
    seconds = {key: sorted(values)[len(values) // 10] for key, values in computations.items()}
    # The halves compute all that a whole pass does. If they take less time, that is noise of the steps that ran them,
    # and would make a search prefer halves where they are slower.
    for kind, stage in seconds:
        if kind is Kind.B and (Kind.I, stage) in seconds:
            seconds[kind, stage] = min(seconds[kind, stage], seconds[Kind.I, stage] + seconds[Kind.W, stage])
    sends, receives = delays([Kind.SEND_F, Kind.SEND_B]), delays([Kind.RECV_F, Kind.RECV_B])
    return StageCosts(seconds, sizes, computations, sends, receives)


class TrialStep:
    """A step of a pipe under a schedule, with identical microbatches.

    schedule: the computations of some of the transport's ranks, which are `workers`; the others do nothing.
    """

    def __init__(
        self, pipe: AnyPipe, batch: MicroBatch, loss: Loss, schedule: Iterable[Iterable[Action]], workers: int
    ) -> None:
        self.pipe = pipe
        self.batch = batch
        self.loss = loss
        rows = list(map(list, schedule))
        self.micro_batches = 1 + max(action.micro_batch for row in rows for action in row)
        padded = [*rows, *[[] for _ in range(workers)]][:workers]
        self.program = make_program(padded, pipe.num_stages, self.micro_batches, pipe.carried())

    def seconds(self, transport: Transport) -> float:
        """Return the seconds of the rank that takes longest; each waits for its first input from the beginning."""
        return max(spans[-1][1] - spans[0][0] for spans in self._times(transport) if spans)

    def run(self, transport: Transport) -> Iterator[tuple[Action, float]]:
        """Yield every computation and send with its seconds, and the receives that wait with those from the send on."""
        times = self._times(transport)
        timed = [
            pair
            for row, spans in zip(self.program.actions, times, strict=True)
            for pair in zip(row, spans, strict=True)
        ]
        sent = {action.message: end for action, (_, end) in timed if action.kind.is_send}
        for action, (start, end) in timed:
            if not action.kind.is_receive:
                yield action, end - start
            elif sent[action.message] > start:
                yield action, end - sent[action.message]

    def _times(self, transport: Transport) -> list[list[tuple[float, float]]]:
        """Run the step, and return the start and end of every action."""
        actions, directions = self.program.actions, self.program.directions
        inputs = self.pipe.named_inputs(self.batch.args, self.batch.kwargs)
        with Gradients(self.pipe.stages, directions, transport.local) as gradients:
            job = Job(
                actions,
                directions,
                [self.pipe.stages] * self.micro_batches,
                [inputs] * self.micro_batches,
                [1.0] * self.micro_batches,
                lambda _, outputs: self.loss(self.pipe, outputs),
                [self.pipe.carried()] * self.micro_batches,
                gradients,
                lambda stage, micro_batch: nullcontext(),
            )
            return transport.launch(len(actions), lambda link: Rank(link, job).run().times)


def _sizes(pipe: AnyPipe, batch: MicroBatch) -> dict[Route, int]:
    """Return the bytes that each stage sends on for a microbatch, and of the gradients that come back."""
    sizes: dict[Route, int] = defaultdict(int)
    values: dict[str, Any] = dict(pipe.named_inputs(batch.args, batch.kwargs))
    for stage in pipe.stages:
        for name, source in stage.inputs:
            if source is not None:
                value, returns = values[name]
                sizes["F", source, stage.stage_index] += bytes_of(value)
                sizes["B", stage.stage_index, source] += bytes_of(value) * returns
        values.update(stage.forward(0, values))
        stage.clear_step()
    return dict(sizes)
