"""Simulate a schedule: times and memory, from the program that the ranks would run."""

import itertools
import math
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

from retrograd.foundation.suggestions import suggest_in_module
from retrograd.pipelining.schedules.actions import Action, Kind, Schedule
from retrograd.pipelining.schedules.activations import activation_changes
from retrograd.pipelining.schedules.lowering import (
    Edges,
    StageGraph,
    directions_of,
    execution_order,
    is_lowered,
    lower,
)
from retrograd.pipelining.schedules.stage_placement import Directions
from retrograd.pipelining.timeline.timeline import Event, Timeline

Cost = Callable[[Action], float]
Costs = dict[tuple[Kind, int], float]  # seconds of each kind of computation, by stage


def unit_cost(action: Action) -> float:
    """Return the unit cost of the papers on schedules: 1 for F, I, W and R, 2 for B, 0 for messages.

    >>> unit_cost(Action(Kind.B, 0, 0)), unit_cost(Action(Kind.SEND_F, 0, 0, 1))
    (2.0, 0.0)
    """
    return 2.0 if action.kind is Kind.B else float(action.kind.is_compute)


def zero_cost(action: Action) -> float:
    """Return 0: the papers on schedules ignore the overhead of messages."""
    return 0.0


def median_costs(timeline: Timeline) -> Costs:
    """Return the median seconds of each kind and stage in a measured step."""
    seconds: dict[tuple[Kind, int], list[float]] = defaultdict(list)
    for event in timeline.events:
        if event.action.kind.is_compute:
            seconds[event.action.kind, event.action.stage].append(event.end - event.start)
    return {key: median(values) for key, values in seconds.items()}


def simulate(
    schedule: Schedule, edges: Edges, cost: Cost, overhead: Cost = zero_cost, *, replicas: int = 1
) -> Timeline:
    """Return the timeline of a schedule in which every action takes `cost` seconds.

    schedule: as `lower` returns it, or computations only, which are then lowered along `edges`.
    cost: seconds of an action. A computation occupies its rank that long. For a send it is the latency of the message,
    during which the rank continues. A receive lasts until its message arrives; its cost is not used. Channels are
    unbounded. OFFLOAD and FETCH take their seconds in the background, one after the other on each rank; an OFFLOAD
    waits until the one before has finished, and a backward pass until its activations have been fetched.
    For REDUCE_GRAD, cost is the seconds from the start on the last replica until every rank has the sums.
    overhead: seconds for which a send, or a receive whose message has arrived, occupies its rank; likewise for
    REDUCE_GRAD and WAIT_GRAD.
    replicas: into how many equal parts the ranks of the schedule are divided, which are replicas of one pipeline. One
    replica stands for all others that take as long.

    Cost and overhead of messages are the latency and the overhead of D. Culler et al., "LogP: Towards a Realistic
    Model of Parallel Computation" (1993).

    Takes time linear in the number of actions. Raises ValueError for a cost that is negative or not finite,
    and for a schedule that cannot run.

    >>> from retrograd.pipelining.schedules.lowering import chain
    >>> from retrograd.pipelining.schedules import make_schedule
    >>> simulate(make_schedule("1f1b", stages=2, micro_batches=3), chain(2), unit_cost).bubble()
    0.25
    """
    program = schedule if is_lowered(schedule) else lower(schedule, edges)
    events: list[Event] = []
    graph = StageGraph.of_schedule(program[: len(program) // replicas], edges)
    if not _Clocks(program, graph, cost, overhead, events, replicas).run():
        deque(execution_order(program), maxlen=0)  # raises an error that names the ranks that wait for each other
    return Timeline(events, len(program))


class Summary(NamedTuple):
    """The result of `simulate_costs`: seconds per rank, without the events.

    start, end: when each rank began its first computation and ended its last action.  busy: how long it computed.

    >>> two = Summary(start=[0.0, 1.0], end=[4.0, 3.0], busy=[2.0, 2.0])
    >>> two.span, two.bubble, two.bubble_rate
    (4.0, 0.5, 0.5)
    """

    start: list[float]
    end: list[float]
    busy: list[float]

    @property
    def span(self) -> float:
        """Return the seconds from the first rank's start to the last rank's end."""
        return max(self.end, default=0.0) - min(self.start, default=0.0)

    @property
    def bubble(self) -> float:
        """Return the share of all ranks' time without computation, as `Timeline.bubble`."""
        return 1.0 - sum(self.busy) / (len(self.busy) * self.span) if self.span else 0.0

    @property
    def bubbles(self) -> list[float]:
        """Return the seconds that each rank is idle between its first and its last computation."""
        return [end - start - busy for start, end, busy in zip(self.start, self.end, self.busy, strict=True)]

    @property
    def bubble_rate(self) -> float:
        """Return the idle share of the rank that takes longest from its first to its last computation.

        The measure of Qi et al., "Zero Bubble Pipeline Parallelism", ICLR 2024, which ignores that ranks
        start and end one after the other.
        """
        spans = [end - start for start, end in zip(self.start, self.end, strict=True)]
        slowest = max(range(len(spans)), key=spans.__getitem__, default=0)
        return 1.0 - self.busy[slowest] / spans[slowest] if any(spans) else 0.0


def simulate_costs(
    schedule: Sequence[Iterable[Action]],
    edges: Edges,
    cost: Cost,
    overhead: Cost = zero_cost,
    *,
    placement: Sequence[int] | None = None,
) -> Summary:
    """Sum up the times of `simulate` per rank, for schedules of thousands of ranks: seconds for millions of actions.

    schedule: computations only, from `make_schedule` or `stream_schedule`, with moves of activations and, from
    `add_reductions`, sums of gradients over replicas that take as long.  cost, overhead: as for `simulate`, but called
    once per kind, stage and peer, because all microbatches are assumed to be equal.  placement: the rank of
    each stage, as `stage_ranks` returns it, for schedules in one direction; None: taken from the schedule, whose
    actions are then listed in memory.

    Raises ValueError as `simulate`.

    >>> from retrograd.pipelining.schedules.lowering import chain
    >>> from retrograd.pipelining.schedules import make_schedule
    >>> simulate_costs(make_schedule("zb-h2", stages=4, micro_batches=8), chain(4), unit_cost).bubbles
    [0.0, 0.0, 0.0, 0.0]
    """
    if placement is None:
        listed = [list(actions) for actions in schedule]
        schedule, graph = listed, StageGraph.of_schedule(listed, edges)
    else:
        graph = StageGraph(Directions.of(placement), edges)
    clocks = _Clocks(schedule, graph, cost, overhead)
    if not clocks.run():
        rank, action = min(clocks.blocked.items())
        raise ValueError(f"deadlock: {len(clocks.blocked)} ranks wait; rank {rank} for what {action} needs")
    starts = [start or 0.0 for start in clocks.starts]
    return Summary(starts, clocks.now, clocks.busy)


def consecutive_steps(schedule: Schedule, steps: int) -> list[list[Action]]:
    """Return the computations of several steps, one after the other without a barrier, as in `Pipeline.train_steps`.

    schedule: computations only.  The microbatches of the second step are numbered after those of the first.

    >>> from retrograd.pipelining.schedules import make_schedule
    >>> from retrograd.pipelining.schedules.lowering import chain
    >>> spans = [
    ...     simulate_costs(consecutive_steps(make_schedule("zbv", 8, 8), n), chain(8), unit_cost).span for n in (1, 2)
    ... ]
    >>> spans[0], spans[1] - spans[0]  # the next step fills the idle time at the beginning and the end
    (51.0, 48.0)
    """
    size = 1 + max(action.micro_batch for actions in schedule for action in actions)
    size += size % len(directions_of(schedule).placements)  # the next step begins with the first direction, too
    return [
        [
            action._replace(micro_batch=action.micro_batch + number * size)
            for number in range(steps)
            for action in actions
        ]
        for actions in schedule
    ]


def peak_activations(actions: Iterable[Action], weights: Mapping[int, float] | None = None) -> float:
    """Return the peak activations of one rank.

    weights: the weight of one microbatch's activations of each stage, such as their bytes; None: 1 each, so that
    the result is the number of pairs of stage and microbatch.

    F creates activations, or R if it repeats the forward pass; B or W, which uses them last, frees them.

    >>> from retrograd.pipelining.schedules import make_schedule
    >>> [peak_activations(actions) for actions in make_schedule("1f1b", stages=3, micro_batches=8)]
    [3, 2, 1]
    >>> [peak_activations(actions, {0: 0.5, 1: 0.25, 2: 8.0}) for actions in make_schedule("1f1b", 3, 8)]
    [1.5, 0.5, 8.0]
    """
    actions = list(actions)
    activations: float = 0
    peak: float = 0
    for action, change in zip(actions, activation_changes(actions), strict=True):
        activations += change * (1 if weights is None else weights[action.stage])
        peak = max(peak, activations)
    return peak


F, B, I, W = Kind.F, Kind.B, Kind.I, Kind.W  # noqa: E741

ArrivalTimes = dict[int, float]
"""When the messages of a channel arrive, by microbatch: those that have been sent and not been received."""


class _Storage:
    """The file to which a rank moves activations: when the moves that it has begun will have finished."""

    def __init__(self) -> None:
        self.free = 0.0
        self.written = 0.0


class _Moves(ArrivalTimes):
    """The moves of one kind and stage; each begins when the file is free.

    storing: whether they write; a rank waits for the last write before the next one.
    """

    def __init__(self, storage: _Storage, seconds: float, storing: bool) -> None:
        super().__init__()
        self.storage, self.seconds, self.storing = storage, seconds, storing

    def __setitem__(self, micro_batch: int, begin: float) -> None:
        storage = self.storage
        storage.free = max(storage.free, begin) + self.seconds
        if self.storing:
            storage.written = storage.free
        else:
            super().__setitem__(micro_batch, storage.free)

    def __contains__(self, micro_batch: object) -> bool:
        return True

    def pop(self, micro_batch: int, *default: Any) -> float:
        return self.storage.written if self.storing else super().pop(micro_batch, 0.0)


class _Step(NamedTuple):
    """The messages that an action waits for, its duration, and the messages it sends.

    inputs: the channels it receives from, each with the seconds for that.  outputs: the channels it sends to,
    each with the receiving rank, the seconds for the send, and the seconds until the message arrives.
    """

    seconds: float
    inputs: Sequence[tuple[ArrivalTimes, float]] = ()
    outputs: Sequence[tuple[ArrivalTimes, int, float, float]] = ()


class _Clocks:
    """The clock of every rank, and the arrival of each message.

    With `events`, every action is recorded. Without, an action of the same kind and stage as an earlier one of its rank
    reuses its steps, and computations perform the receives and sends that a lowered program lists as actions.
    """

    def __init__(
        self,
        schedule: Sequence[Iterable[Action]],
        graph: StageGraph,
        cost: Cost,
        overhead: Cost,
        events: list[Event] | None = None,
        replicas: int = 1,
    ) -> None:
        ranks = len(schedule)
        self.graph = graph
        self.ranks_per_replica = ranks // replicas
        self.cost = cost
        self.overhead = overhead
        self.events = events
        # By rank and stage: the steps of F, of B, of I, of W, and of the other kinds.
        self.step_cache: list[tuple[dict[int, _Step], ...]] = [({}, {}, {}, {}) for _ in range(ranks)]
        self.rare_steps: list[dict[Kind, dict[int, _Step]]] = [defaultdict(dict) for _ in range(ranks)]
        self.starts: list[float | None] = [None] * ranks
        self.now = [0.0] * ranks
        self.busy = [0.0] * ranks
        # By the stages of a message, or by stage and the ranks of a reduction.
        self.channels: dict[tuple[int, ...], ArrivalTimes] = defaultdict(dict)
        self.storage = [_Storage() for _ in range(ranks)]
        self.fetches: dict[tuple[int, int], _Moves] = {}  # by rank and stage
        self.awaited: list[ArrivalTimes | None] = [None] * ranks
        self.blocked: dict[int, Action] = {}
        self.runnable = list(range(ranks))
        self.coroutines = [self._run_rank(rank, actions) for rank, actions in enumerate(schedule)]

    def run(self) -> bool:
        """Run every rank as far as possible, and return whether all have finished."""
        coroutines, runnable = self.coroutines, self.runnable
        while runnable:  # the latest first: neighbours take turns, so their data stays in the processor's cache
            next(coroutines[runnable.pop()], None)
        return not self.blocked

    def _run_rank(self, rank: int, actions: Iterable[Action]) -> Iterator[None]:
        """Execute the actions of a rank; yield to wait. One inlined loop, because it runs millions of actions."""
        now = busy = 0.0
        awaited, wake, (forward_steps, backward_steps, input_steps, weight_steps) = (
            self.awaited,
            self.runnable.append,
            self.step_cache[rank],
        )
        rare_steps, events = self.rare_steps[rank], self.events
        for action in actions:
            kind, stage, micro_batch, _ = action
            if kind is F:
                step_cache = forward_steps
            elif kind is I:
                step_cache = input_steps
            elif kind is W:
                step_cache = weight_steps
            else:  # the hash of a kind is slow
                step_cache = backward_steps if kind is B else rare_steps[kind]
            seconds, inputs, outputs = (
                step_cache[stage] if stage in step_cache else self._step(rank, action, step_cache)
            )
            start = now
            for arrivals, overhead in inputs:
                if micro_batch not in arrivals:
                    awaited[rank] = arrivals
                    self.blocked[rank] = action
                    # The rank is also woken by another microbatch on this channel.
                    while micro_batch not in arrivals:
                        yield
                        awaited[rank] = arrivals
                    awaited[rank] = None
                    del self.blocked[rank]
                arrival = arrivals.pop(micro_batch)
                if arrival > now:
                    now = arrival
                now += overhead
            if not busy and self.starts[rank] is None:
                self.starts[rank] = now
            if seconds:
                start = now  # a computation that has waited for fetched activations
            now += seconds
            busy += seconds
            for arrivals, target, overhead, delay in outputs:
                now += overhead
                arrivals[micro_batch] = now + delay
                if awaited[target] is arrivals:
                    awaited[target] = None
                    wake(target)
            if events is not None:
                events.append(Event(rank, action, start, now))
        self.now[rank], self.busy[rank] = now, busy

    def _step(self, rank: int, action: Action, step_cache: dict[int, _Step]) -> _Step:
        if action.kind.is_move:
            step = step_cache[action.stage] = self._move_step(rank, action)
            return step
        if self.events is None and action.kind.is_compute:
            step = step_cache[action.stage] = self._with_messages(rank, action)
            return step
        if self.events is None and action.peer is not None:
            raise ValueError(f"{action}: this schedule is lowered already")
        if action.kind.is_receive:
            return _Step(0.0, [self._receive_cost(action)])
        if action.kind.is_send:
            return _Step(0.0, (), [self._send_cost(rank, action)])
        if action.kind.is_reduction:
            return self._reduction_step(rank, action)
        return _Step(checked_seconds(self.cost, action), self._fetched(rank, action))

    def _move_step(self, rank: int, action: Action) -> _Step:
        """Return the step of a move, which begins it and waits for an earlier one; its cost is that of the stage."""
        storing = action.kind is Kind.OFFLOAD
        moves = _Moves(self.storage[rank], checked_seconds(self.cost, action), storing)
        if not storing:
            self.fetches[rank, action.stage] = moves
            for steps in self.step_cache[rank][1:3]:  # of backward passes that do not wait for it yet
                steps.pop(action.stage, None)
        return _Step(0.0, [(moves, 0.0)] if storing else (), [(moves, rank, 0.0, 0.0)])

    def _fetched(self, rank: int, action: Action) -> list[tuple[ArrivalTimes, float]]:
        """Return the channel of the activations that a backward pass waits for, if they are fetched."""
        if action.kind in (B, I) and (rank, action.stage) in self.fetches:
            return [(self.fetches[rank, action.stage], 0.0)]
        return []

    def _reduction_step(self, rank: int, action: Action) -> _Step:
        """Return the step of a reduction: WAIT_GRAD waits for REDUCE_GRAD on all replicas, this one included."""
        stage, overhead = action.stage, checked_seconds(self.overhead, action)
        overheads = [overhead, *itertools.repeat(0.0, len(self.now) // self.ranks_per_replica - 1)]
        others = range(rank % self.ranks_per_replica, len(self.now), self.ranks_per_replica)
        if action.kind is Kind.WAIT_GRAD:
            return _Step(
                0.0, [(self.channels[stage, other, rank], s) for other, s in zip(others, overheads, strict=True)]
            )
        delay = checked_seconds(self.cost, action)
        outputs = [
            (self.channels[stage, rank, other], other, s, delay) for other, s in zip(others, overheads, strict=True)
        ]
        return _Step(0.0, (), outputs)

    def _with_messages(self, rank: int, action: Action) -> _Step:
        """Return a computation with the receives before it and the sends after it."""
        transfers = self.graph.add_transfers(action)
        return _Step(
            checked_seconds(self.cost, action),
            [self._receive_cost(step) for step in transfers if step.kind.is_receive] + self._fetched(rank, action),
            [self._send_cost(rank, step) for step in transfers if step.kind.is_send],
        )

    def _receive_cost(self, receive: Action) -> tuple[ArrivalTimes, float]:
        return self.channels[receive.message[1:3]], checked_seconds(self.overhead, receive)

    def _send_cost(self, rank: int, send: Action) -> tuple[ArrivalTimes, int, float, float]:
        _, source, target, _ = send.message
        return (
            self.channels[source, target],
            rank - rank % self.ranks_per_replica + self.graph.directions.rank(target, send.micro_batch),
            checked_seconds(self.overhead, send),
            checked_seconds(self.cost, send),
        )


def checked_seconds(cost: Cost, action: Action) -> float:
    """Return the cost of an action; ValueError for one that is negative or not finite."""
    seconds = cost(action)
    if not 0 <= seconds < math.inf:
        raise ValueError(f"the cost of {action} is {seconds!r}; it must be finite, in seconds, at least 0")
    return seconds


suggest_in_module(globals())
