"""Turn measurements into a plan: split, simulate, compare."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from random import Random
from statistics import median
from typing import Any, NamedTuple

from retrograd.fx import GraphModule, Node
from retrograd.nn import Module
from retrograd.pipelining.microbatch import MicroBatch
from retrograd.pipelining.planning.balanced_split import Memory, NoFeasibleSplit, in_flight, split
from retrograd.pipelining.planning.link_cost import LinearCost, MessageCost
from retrograd.pipelining.planning.memory_fit import StageBytes, fit_memory, peak_bytes
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
from retrograd.pipelining.planning.stage_memory import StageMemory, measure_memory
from retrograd.pipelining.schedules import get_schedule, make_schedule, stage_directions
from retrograd.pipelining.schedules.actions import Action, Kind
from retrograd.pipelining.schedules.activations import runs_of
from retrograd.pipelining.schedules.lowering import Edges, lower
from retrograd.pipelining.schedules.program import AUTO
from retrograd.pipelining.schedules.replicas import add_reductions, share_sizes
from retrograd.pipelining.schedules.stage_placement import Directions
from retrograd.pipelining.split.manual_stages import AnyPipe
from retrograd.pipelining.split.pipe import Pipe, split_as_traced
from retrograd.pipelining.timeline.timeline import Timeline
from retrograd.pipelining.transports import Transport

# The steps that are simulated with costs that vary, and the actions of all these together at most.
VARIED_STEPS, VARIED_ACTIONS = 15, 100_000


class Settings(NamedTuple):
    """The settings of a plan; see `plan`.

    ranks: of a replica.  copies: how often the bytes of a parameter count.  workers: see `measure_stages`.
    search_seconds: 0 for no search.  storage: of moving activations to a file or back; None: they are not moved.
    """

    ranks: int
    micro_batches: int
    replicas: int
    memory_limit: float | None
    copies: float
    cores: int | None
    messages: MessageCost
    rounds: int
    workers: int
    search_seconds: float
    storage: LinearCost | None

    @property
    def share(self) -> int:
        """Return the microbatches of the first replica, which has the most."""
        return share_sizes(self.micro_batches, self.replicas)[0]


class MeasuredSplit(NamedTuple):
    """A split, and the measured costs and bytes of its stages."""

    pipe: Pipe
    costs: StageCosts
    memory: Sequence[StageMemory]


class Planner:
    """Measures a model as needed, and tries one schedule after the other.

    measured: another planner of the same model and batch, whose operators are not measured again.
    """

    def __init__(
        self,
        model: Module,
        batch: MicroBatch,
        loss: Loss,
        target: Any,
        transport: Transport,
        settings: Settings,
        measured: "Planner | None" = None,
    ) -> None:
        self.model = model
        self.batch = batch
        self.loss = loss
        self.target = target
        self.transport = transport
        self.settings = settings
        self.names: list[str] = [] if measured is None else measured.names
        self.operators: list[Operator] = [] if measured is None else measured.operators
        if measured is None:
            split_as_traced(model, batch.args, batch.kwargs, split_policy=self._measure)
        self.memory = Memory(self.operators, settings.copies)
        self.splits: dict[tuple[int, ...], MeasuredSplit] = {}
        self.schedules: dict[tuple[str, int], list[list[Action]]] = {}
        self.found: dict[tuple[int, ...], FoundSchedule] = {}
        self.fitted: dict[tuple[str, tuple[int, ...]], list[list[Action]]] = {}  # with R and moves
        self.variation: float | None = None if measured is None else measured.variation

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
        offloading = found and self.settings.storage is not None
        if not searching and not offloading and not any(fits for _, _, fits in found):
            self._raise_no_schedule(skipped, sufficient_limits)
        self._measure_splits(sorted({ends for _, ends, _ in found}))
        choices = {self._choice(*one): one[1] for one in found}
        for name, ends, fits in found:
            choice = None if fits else self._fitted_choice(name, ends)
            if choice is not None:
                choices[choice] = ends
        if self.settings.search_seconds and self._same_shares:
            for ends in self.splits:
                if self._search(ends):
                    choices[self._choice(AUTO, ends, True)] = ends
        if not any(choice.fits for choice in choices):
            self._raise_no_schedule(skipped, sufficient_limits)
        return self._make_plan(choices, skipped)

    def _search(self, ends: tuple[int, ...]) -> bool:
        """Search for a schedule for the measured stages of a split; return whether one fits."""
        measured, settings = self.splits[ends], self.settings
        fixed, _ = self._stage_memory(ends)
        limit = (
            math.inf
            if settings.memory_limit is None
            else settings.memory_limit - max(fixed) * len(ends) / settings.ranks
        )
        stages = self._stage_bytes(ends)
        try:
            self.found[ends] = search_schedule(
                len(ends),
                settings.share,
                self._costs(ends)[0],
                ranks=settings.ranks,
                edges=measured.pipe.carried(),
                saved=stages.saved,
                inputs=stages.inputs,
                outputs=stages.outputs,
                moves=None if settings.storage is None else self._costs(ends)[0],
                memory_limit=limit,
                seconds=settings.search_seconds / len(self.splits),
            )
        except ValueError:
            return False
        return True

    @property
    def _same_shares(self) -> bool:
        """Return whether one list of actions is the schedule of every replica."""
        return self.settings.micro_batches % self.settings.replicas == 0

    def _fitted_choice(self, name: str, ends: tuple[int, ...]) -> Choice | None:
        """Return a choice within the memory limit in which stages offload or recompute; None if there is none."""
        settings = self.settings
        if settings.storage is None or settings.memory_limit is None or not self._same_shares:
            return None
        actions, directions = self._actions(name, ends)
        fixed, _ = self._stage_memory(ends)
        limits = [settings.memory_limit] * settings.ranks
        for rank in range(settings.ranks):
            limits[rank] -= sum(fixed[stage] for stage in directions.stages(rank))
        edges, costs = self.splits[ends].pipe.carried(), self._costs(ends)

        def seconds(schedule: list[list[Action]]) -> float:
            return simulate_costs(self._with_sums(schedule), edges, *costs).span

        found = fit_memory(actions, limits, self._stage_bytes(ends), seconds)
        if found is None:
            return None
        self.fitted[name, ends] = found
        return self._choice(name, ends, True, fitted=True)

    def _stage_bytes(self, ends: tuple[int, ...]) -> StageBytes:
        """Return the measured bytes of a microbatch: the inputs and outputs of a stage stay, and the rest may move."""
        columns = zip(*self.splits[ends].memory, strict=True)
        saved, _, inputs, outputs = (dict(enumerate(map(float, column))) for column in columns)
        return StageBytes(saved, inputs, self._costs(ends)[0], outputs=outputs)

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
        schedule, directions = self._schedule(name, several * self.settings.ranks), get_schedule(name).directions
        if directions > 1 and self.settings.replicas > 1:
            raise ValueError("plan: a schedule in two directions has no replicas")
        held: dict[int, int] = defaultdict(int)
        for actions in schedule:
            for stage, most in in_flight(actions).items():
                held[stage] = max(held[stage], most)
        numbers = [held[stage] for stage in range(len(held))]
        several *= directions  # a rank has as many stages
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
            self.schedules = {key: make_schedule(name, stages, self.settings.share, ranks=self.settings.ranks)}
        return self.schedules[key]

    def _memory(self, name: str, ends: Sequence[int], fitted: bool = False) -> tuple[list[float], list[float]]:
        """Return per rank the peak bytes of saved tensors, and the total bytes."""
        fixed, saved = self._stage_memory(ends)
        weights = dict(enumerate(saved))
        actions, directions = self._actions(name, ends, fitted)
        if name == AUTO:
            peaks = self.found[tuple(ends)].peaks
        elif fitted:
            stages = self._stage_bytes(tuple(ends))
            peaks = [peak_bytes(row, stages) for row in actions]
        else:
            peaks = [peak_activations(row, weights) for row in actions]
        total = [peak + sum(fixed[stage] for stage in directions.stages(rank)) for rank, peak in enumerate(peaks)]
        return peaks, total

    def _stage_memory(self, ends: Sequence[int]) -> tuple[list[float], list[float]]:
        """Return per stage the bytes that it always needs, and those that it saves for a microbatch."""
        ranges = list(_stage_spans(ends))
        return [self.memory.fixed(*span) for span in ranges], [self.memory.saved(*span) for span in ranges]

    def _actions(self, name: str, ends: Sequence[int], fitted: bool = False) -> tuple[list[list[Action]], Directions]:
        """Return the computations of every rank of a replica, and the ranks of each stage."""
        if name == AUTO:
            found = self.found[tuple(ends)]
            return found.schedule, Directions.of(found.placement)
        directions = stage_directions(name, len(ends), self.settings.ranks)
        return (self.fitted[name, tuple(ends)] if fitted else self._schedule(name, len(ends))), directions

    # ------------------------------------------------------------------------------------------------- simulating

    def _choice(self, name: str, ends: tuple[int, ...], fits: bool, fitted: bool = False) -> Choice:
        found = self.splits[ends]
        actions, directions = self._actions(name, ends, fitted)
        summary = simulate_costs(self._with_sums(actions), found.pipe.carried(), *self._costs(ends))
        activations, memory = self._memory(name, ends, fitted)
        work = self.settings.replicas * sum(summary.busy)
        step = max(summary.span, work / self.settings.cores if self.settings.cores else 0.0)
        step += self._seconds_of_copies(ends, directions)
        sizes = tuple(activations), tuple(memory)
        everything = [action for row in actions for action in row]
        stored = [tuple(sorted({stage for stage, _ in runs_of(everything, kind)})) for kind in (Kind.OFFLOAD, Kind.R)]
        ranks = tuple(directions.rank(stage, 0) for stage in range(len(ends)))
        return Choice(name, ranks, step, summary.bubble, *sizes, fits, self.settings.replicas, *stored)

    def _seconds_of_copies(self, ends: tuple[int, ...], directions: Directions) -> float:
        """Return how long a rank exchanges the gradients of stages that another rank has, too, after the step."""
        if len(directions.placements) == 1:
            return 0.0
        messages, fixed = self.settings.messages, self._stage_memory(ends)[0]
        sizes = [
            sum(fixed[stage] for stage in directions.stages(rank)) / self.settings.copies
            for rank in range(self.settings.ranks)
        ]
        ways = messages.sending, messages.latency, messages.receiving
        return 2 * sum(one.seconds(max(sizes)) for one in ways)  # there, and the sum back

    def _with_sums(self, actions: list[list[Action]]) -> list[list[Action]]:
        """Return the computations of a replica with the sums of gradients, if there are others."""
        return add_reductions(actions) if self.settings.replicas > 1 else actions

    def _timeline(self, choice: Choice, ends: tuple[int, ...]) -> Timeline:
        """Return the simulated timeline of a step of a replica, as long as the step is planned to be."""
        program, edges = self._program(choice, ends), self.splits[ends].pipe.carried()
        timeline = simulate(program, edges, *self._costs(ends))
        if choice.step <= timeline.span:
            return timeline
        return simulate(program, edges, *self._costs(ends, choice.step / timeline.span))

    def _program(self, choice: Choice, ends: tuple[int, ...]) -> list[list[Action]]:
        """Return the actions of every rank of a replica, with messages and sums."""
        schedule = self._with_sums(self._actions(choice.schedule, ends, choice.is_fitted)[0])
        return _lowered(schedule, self.splits[ends].pipe.carried())

    def _measure_variation(self, choice: Choice, ends: tuple[int, ...]) -> float:
        """Return how many times as long a step takes because computations and messages take longer than the costs.

        Ranks wait for each other's slow ones, so the mean of each is not enough.
        """
        program, found = self._program(choice, ends), self.splits[ends]
        cost, overhead = self._costs(ends)
        draw = Random(0)

        def span(*costs: Cost) -> float:
            return simulate(program, found.pipe.carried(), *costs).span

        costs = found.costs
        if not self.settings.messages.sending.fixed:  # messages take the given times
            costs = costs._replace(send_delays=[0.0], wake_delays=[0.0])
        varied = costs.varied_cost(cost, draw), costs.varied_overhead(overhead, draw)
        draws = min(VARIED_STEPS, VARIED_ACTIONS // sum(map(len, program)))
        spans = [span(*varied) for _ in range(draws)]
        return max(median(spans) / span(cost, overhead), 1.0) if spans else 1.0

    def _costs(self, ends: tuple[int, ...], times: float = 1.0) -> tuple[Cost, Cost]:
        """Return the costs of actions, multiplied by `times`, and the overheads of messages."""
        costs, messages = self.splits[ends].costs, self.settings.messages
        replicas, storage = self.settings.replicas, self.settings.storage

        def part(action: Action) -> float:
            """Return the bytes of a stage's gradients that one replica sums."""
            start, end = list(_stage_spans(ends))[action.stage]
            return self.memory.fixed(start, end) / self.settings.copies / replicas

        def cost(action: Action) -> float:
            if action.kind.is_move:
                assert storage is not None, "only measured moves are planned"
                return times * storage.seconds(self.splits[ends].memory[action.stage].moved_bytes)
            if action.kind.is_reduction:
                return times * 2 * messages.latency.seconds((replicas - 1) * part(action))
            return times * costs.cost(action, messages)

        def overhead(action: Action) -> float:
            if not action.kind.is_reduction:
                return times * costs.overhead(action, messages)
            # The first action sends the parts of the others; the second one receives parts, and exchanges sums.
            sending, receiving = messages.sending.seconds(part(action)), messages.receiving.seconds(part(action))
            seconds = sending if action.kind is Kind.REDUCE_GRAD else 2 * receiving + sending
            return times * (replicas - 1) * seconds

        return cost, overhead

    def _measure_splits(self, splits: Sequence[tuple[int, ...]]) -> None:
        args, kwargs = self.batch.args, self.batch.kwargs
        pipes = [split_as_traced(self.model, args, kwargs, split_policy=self._policy(ends)) for ends in splits]
        how = self.settings

        def loss(pipe: AnyPipe, outputs: dict[str, Any]) -> Any:
            return self.loss(pipe.restored_output(outputs))

        found = measure_stages(pipes, self.batch, loss, self.transport, how.workers, how.rounds, how.micro_batches)
        for ends, pipe, costs in zip(splits, pipes, found, strict=True):
            inputs = pipe.named_inputs(args, kwargs)
            memory = measure_memory(pipe, inputs, partial(loss, pipe), self.target)
            self.splits[ends] = MeasuredSplit(pipe, costs, memory)

    # ------------------------------------------------------------------------------------------------- the result

    def _make_plan(self, choices: Mapping[Choice, tuple[int, ...]], skipped: Mapping[str, str]) -> Plan:
        best = choose_recommended(list(choices))
        ends = choices[best]
        if self.variation is None:
            self.variation = self._measure_variation(best, ends)
        choices = {choice._replace(step=choice.step * self.variation): ends for choice, ends in choices.items()}
        best = best._replace(step=best.step * self.variation)
        settings = self.settings._asdict()
        for name in ("workers", "replicas", "storage"):
            del settings[name]
        settings["messages"] = {name: part._asdict() for name, part in settings["messages"]._asdict().items()}
        settings["variation"] = self.variation
        draw = partial(self._timeline, best, ends)
        own = best.schedule == AUTO or best.is_fitted
        actions = self._actions(best.schedule, ends, best.is_fitted)[0] if own else None
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


def _lowered(schedule: list[list[Action]], edges: Edges) -> list[list[Action]]:
    """Return a replica's actions with sends and receives around its computations."""
    sums = [[action for action in row if action.kind.is_reduction] for row in schedule]
    lowered = lower([[action for action in row if not action.kind.is_reduction] for row in schedule], edges)
    return add_reductions(lowered) if any(sums) else lowered
