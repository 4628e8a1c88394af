"""Turn measurements into a plan: split, simulate, compare."""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from statistics import median
from typing import Any, NamedTuple

from retrograd.fx import GraphModule, Node
from retrograd.nn import Module
from retrograd.pipelining.microbatch import MicroBatch
from retrograd.pipelining.planning.balanced_split import Memory, NoFeasibleSplit, in_flight, split
from retrograd.pipelining.planning.link_cost import MessageCost
from retrograd.pipelining.planning.operator_cost import Loss, Operator, operators
from retrograd.pipelining.planning.report import (
    Choice,
    Plan,
    SplitPolicy,
    Stage,
    choose_recommended,
    name_of,
    operators_of,
)
from retrograd.pipelining.planning.schedule_search import FoundSchedule, search_schedule
from retrograd.pipelining.planning.simulate import Cost, peak_activations, simulate, simulate_costs
from retrograd.pipelining.planning.stage_cost import StageCosts, measure_stages
from retrograd.pipelining.schedules import get_schedule, make_schedule, stage_ranks
from retrograd.pipelining.schedules.actions import Action, Kind
from retrograd.pipelining.schedules.program import AUTO
from retrograd.pipelining.split.manual_stages import AnyPipe
from retrograd.pipelining.split.pipe import Pipe, split_as_traced
from retrograd.pipelining.timeline.timeline import Timeline
from retrograd.pipelining.transports import Transport


class Settings(NamedTuple):
    """The settings of a plan; see `plan`.

    copies: how often the bytes of a parameter count.  workers: see `measure_stages`.  search_seconds: 0 for no search.
    """

    ranks: int
    micro_batches: int
    memory_limit: float | None
    copies: float
    cores: int | None
    messages: MessageCost
    rounds: int
    workers: int
    search_seconds: float


class MeasuredSplit(NamedTuple):
    """A split, and the measured costs of its stages."""

    pipe: Pipe
    costs: StageCosts


class Planner:
    """Measures a model as needed, and tries one schedule after the other."""

    def __init__(self, model: Module, batch: MicroBatch, loss: Loss, transport: Transport, settings: Settings) -> None:
        self.model = model
        self.batch = batch
        self.loss = loss
        self.transport = transport
        self.settings = settings
        self.names: list[str] = []
        self.operators: list[Operator] = []
        split_as_traced(model, batch.args, batch.kwargs, split_policy=self._measure)
        self.memory = Memory(self.operators, settings.copies)
        self.splits: dict[tuple[int, ...], MeasuredSplit] = {}
        self.schedules: dict[tuple[str, int], list[list[Action]]] = {}
        self.found: dict[tuple[int, ...], FoundSchedule] = {}

    def plan(self, names: Sequence[str], stages_per_rank: Sequence[int] | None) -> Plan:
        """Compare the schedules with these names."""
        found: list[tuple[str, tuple[int, ...], bool]] = []
        skipped: dict[str, str] = {}
        sufficient_limits: list[int] = []
        for name in names:
            for several in stages_per_rank or [get_schedule(name).per_rank]:
                try:
                    found.append((name, *self._split(name, several, sufficient_limits)))
                except ValueError as why:
                    skipped[f"{name} with {several * self.settings.ranks} stages"] = str(why).removeprefix("plan: ")
        searching = found and self.settings.search_seconds
        if not searching and not any(fits for _, _, fits in found):
            self._raise_no_schedule(skipped, sufficient_limits)
        self._measure_splits(sorted({ends for _, ends, _ in found}))
        choices = {self._choice(*one): one[1] for one in found}
        if self.settings.search_seconds:
            for ends in self.splits:
                if self._search(ends):
                    choices[self._choice(AUTO, ends, True)] = ends
        if not any(choice.fits for choice in choices):
            self._raise_no_schedule(skipped, sufficient_limits)
        return self._make_plan(choices, skipped)

    def _search(self, ends: tuple[int, ...]) -> bool:
        """Search for a schedule for the measured stages of a split; return whether one fits."""
        measured, settings = self.splits[ends], self.settings
        fixed, saved = self._stage_memory(ends)
        limit = (
            math.inf
            if settings.memory_limit is None
            else settings.memory_limit - max(fixed) * len(ends) / settings.ranks
        )
        inputs = dict.fromkeys(range(len(ends)), 0.0)
        for (way, _, target), size in measured.costs.sizes.items():
            inputs[target] += size if way == "F" else 0.0
        try:
            self.found[ends] = search_schedule(
                len(ends),
                settings.micro_batches,
                self._costs(measured)[0],
                ranks=settings.ranks,
                edges=measured.pipe.carried(),
                saved=dict(enumerate(saved)),
                inputs=inputs,
                memory_limit=limit,
                seconds=settings.search_seconds / len(self.splits),
            )
        except ValueError:
            return False
        return True

    def _raise_no_schedule(self, skipped: Mapping[str, str], sufficient_limits: Sequence[int]) -> None:
        if sufficient_limits:
            raise ValueError(
                f"plan: no split over {self.settings.ranks} ranks is within the memory limit of "
                f"{self.settings.memory_limit:.0f} bytes; the smallest limit that would do is "
                f"{min(sufficient_limits)} bytes"
            )
        raise ValueError(
            f"plan: no schedule is possible: {'; '.join(f'{name}: {why}' for name, why in skipped.items())}"
        )

    # ------------------------------------------------------------------------------------------------- splitting

    def _split(self, name: str, several: int, sufficient_limits: list[int]) -> tuple[tuple[int, ...], bool]:
        """Return the last operators of the stages, and whether they fit; if not, append a sufficient limit to
        `sufficient_limits`."""
        schedule = self._schedule(name, several * self.settings.ranks)
        held = {stage: most for actions in schedule for stage, most in in_flight(actions).items()}
        numbers = [held[stage] for stage in range(len(held))]
        message, copies, limit = self.settings.messages.seconds, self.settings.copies, self.settings.memory_limit
        ends = split(self.operators, numbers, message, copies)
        if limit is None or max(self._memory(name, ends)[1]) <= limit:
            return tuple(ends), True
        try:
            return tuple(split(self.operators, numbers, message, copies, limit / several)), True
        except NoFeasibleSplit as least:
            sufficient_limits.append(least.least * several)
            return tuple(ends), False

    def _schedule(self, name: str, stages: int) -> list[list[Action]]:
        """Return the computations of every rank; the last result is cached, since several methods ask for it."""
        key = (name, stages)
        if key not in self.schedules:
            self.schedules = {key: make_schedule(name, stages, self.settings.micro_batches, ranks=self.settings.ranks)}
        return self.schedules[key]

    def _memory(self, name: str, ends: Sequence[int]) -> tuple[list[float], list[float]]:
        """Return per rank the peak bytes of saved tensors, and the total bytes."""
        fixed, saved = self._stage_memory(ends)
        weights = dict(enumerate(saved))
        actions, placement = self._actions(name, ends)
        peaks = self.found[tuple(ends)].peaks if name == AUTO else [peak_activations(row, weights) for row in actions]
        total = peaks.copy()
        for stage, rank in enumerate(placement):
            total[rank] += fixed[stage]
        return peaks, total

    def _stage_memory(self, ends: Sequence[int]) -> tuple[list[float], list[float]]:
        """Return per stage the bytes that it always needs, and those that it saves for a microbatch."""
        ranges = list(_stage_spans(ends))
        return [self.memory.fixed(*span) for span in ranges], [self.memory.saved(*span) for span in ranges]

    def _actions(self, name: str, ends: Sequence[int]) -> tuple[list[list[Action]], list[int]]:
        """Return the computations of every rank, and the rank of each stage."""
        if name == AUTO:
            found = self.found[tuple(ends)]
            return found.schedule, found.placement
        return self._schedule(name, len(ends)), stage_ranks(name, len(ends), self.settings.ranks)

    # ------------------------------------------------------------------------------------------------- simulating

    def _choice(self, name: str, ends: tuple[int, ...], fits: bool) -> Choice:
        found = self.splits[ends]
        actions, ranks = self._actions(name, ends)
        summary = simulate_costs(actions, found.pipe.carried(), *self._costs(found))
        activations, memory = self._memory(name, ends)
        shared = sum(summary.busy) / self.settings.cores if self.settings.cores else 0.0
        step = max(summary.span, shared)
        return Choice(name, tuple(ranks), step, summary.bubble, tuple(activations), tuple(memory), fits)

    def _timeline(self, choice: Choice, ends: tuple[int, ...]) -> Timeline:
        """Return the simulated timeline of a step, slowed down if there are fewer cores than ranks."""
        found = self.splits[ends]
        (schedule, _), edges = self._actions(choice.schedule, ends), found.pipe.carried()
        timeline = simulate(schedule, edges, *self._costs(found))
        if choice.step <= timeline.span:
            return timeline
        return simulate(schedule, edges, *self._costs(found, choice.step / timeline.span))

    def _costs(self, found: MeasuredSplit, times: float = 1.0) -> tuple[Cost, Cost]:
        """Return the costs of actions, multiplied by `times`, and the overheads of messages."""
        costs, messages = found.costs, self.settings.messages
        return lambda action: times * costs.cost(action, messages), lambda a: times * costs.overhead(a, messages)

    def _measure_splits(self, splits: Sequence[tuple[int, ...]]) -> None:
        args, kwargs = self.batch.args, self.batch.kwargs
        pipes = [split_as_traced(self.model, args, kwargs, split_policy=self._policy(ends)) for ends in splits]
        how = self.settings

        def loss(pipe: AnyPipe, outputs: dict[str, Any]) -> Any:
            return self.loss(pipe.restored_output(outputs))

        found = measure_stages(pipes, self.batch, loss, self.transport, how.workers, how.rounds, how.micro_batches)
        for ends, pipe, costs in zip(splits, pipes, found, strict=True):
            self.splits[ends] = MeasuredSplit(pipe, costs)

    # ------------------------------------------------------------------------------------------------- the result

    def _make_plan(self, choices: Mapping[Choice, tuple[int, ...]], skipped: Mapping[str, str]) -> Plan:
        best = choose_recommended(list(choices))
        ends = choices[best]
        settings = self.settings._asdict()
        del settings["workers"]
        settings["messages"] = {name: part._asdict() for name, part in settings["messages"]._asdict().items()}
        draw = partial(self._timeline, best, ends)
        actions = self.found[ends].schedule if best.schedule == AUTO else None
        return Plan(list(choices), self._stages(ends), draw, self._policy(ends), settings, skipped, actions)

    def _stages(self, ends: tuple[int, ...]) -> list[Stage]:
        costs = self.splits[ends].costs
        return [
            Stage(
                sum(operator.nodes for operator in self.operators[start : end + 1]),
                costs.seconds[Kind.F, index],
                costs.seconds[Kind.B, index],
                self.memory.fixed(start, end) / self.settings.copies,
                self.memory.saved(start, end),
                sum(size for (way, source, _), size in costs.sizes.items() if way == "F" and source == index),
            )
            for index, (start, end) in enumerate(_stage_spans(ends))
        ]

    def _policy(self, ends: Sequence[int]) -> SplitPolicy:
        stages: list[int] = []
        for index, (start, end) in enumerate(_stage_spans(ends)):
            stages += [index] * sum(operator.nodes for operator in self.operators[start : end + 1])
        return SplitPolicy(self.names, stages)

    # ------------------------------------------------------------------------------------------------- measuring

    def _measure(self, captured: GraphModule) -> dict[Node, int]:
        """Measure the operators of a captured model; assign all of them to one stage."""
        nodes = operators_of(captured)
        self.names = list(map(name_of, nodes))
        found = operators(captured, self.batch.args, self.batch.kwargs, self.loss, self.settings.rounds)
        self.operators = self._median_times(found)
        return dict.fromkeys(nodes, 0)

    def _median_times(self, found: Sequence[Operator]) -> list[Operator]:
        """Replace times by medians over all processes, so that all of them find the same plan."""
        mine = [time for op in found for time in (op.forward, op.backward)]
        several = self.transport.launch(self.transport.world or 1, lambda _: mine)
        seconds = iter([median(times) for times in zip(*several, strict=True)])
        return [op._replace(forward=next(seconds), backward=next(seconds)) for op in found]


def _stage_spans(ends: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Return the first and last operator of each stage."""
    return zip([0, *[end + 1 for end in ends[:-1]]], ends, strict=True)
