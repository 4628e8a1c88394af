"""Stages to be scheduled: their costs, dependencies and memory; and orders of computations as lists of numbers."""

import math
from collections import deque
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple, TypeVar

from retrograd.pipelining.planning.simulate import Cost, checked_seconds, zero_cost
from retrograd.pipelining.schedules.actions import Action, Kind
from retrograd.pipelining.schedules.lowering import Edges, StageGraph
from retrograd.pipelining.schedules.stage_placement import Directions, StagesByRank, stages_by_rank

KINDS = (Kind.F, Kind.I, Kind.W, Kind.B)
F, I, W, B = range(4)  # noqa: E741

Need = tuple[int, float, float]
"""A computation whose result another one uses: its number, the seconds of transit, the seconds of the receive."""

T = TypeVar("T")

Order = list[int]
"""The computations of a rank: `kind * stages + stage` each.  Every stage takes its microbatches in order."""


class Problem(NamedTuple):
    """The stages of a pipeline, to be scheduled.

    seconds: per computation, numbered as in an order.  sending: per computation, the seconds for which sending its
    results occupies the rank.  needs: per computation, the computations that it waits for, each with the seconds until
    its result has arrived, and the seconds for which receiving it occupies the rank.
    stores, frees: the bytes that a computation adds before and removes after it; an input half that adds more than it
    removes frees a negative number.  limits: bytes per rank.
    recomputed: the stages that keep only their inputs.  Their input halves and whole backward passes begin with the
    recomputation, which needs no gradient: so its seconds are subtracted from the transit of gradients.
    """

    placement: list[int]
    micro_batches: int
    seconds: list[float]
    sending: list[float]
    needs: list[list[Need]]
    stores: list[float]
    frees: list[float]
    limits: list[float]
    recomputed: frozenset[int] = frozenset()

    @property
    def stages(self) -> int:
        return len(self.placement)

    @property
    def rank_stages(self) -> StagesByRank:
        return stages_by_rank(self.placement)

    def least_memory(self, rank: int) -> float:
        """Return the bytes with which a rank can run one microbatch after the other."""
        return sum(self.stores[stage] + self.growth(I * self.stages + stage) for stage in self.rank_stages[rank])

    def results(self, code: int) -> tuple[int, ...]:
        """Return what a computation finishes, as numbers of computations: B finishes I and W."""
        return _numbers_of_results(self.stages)[code]

    def actions(self, orders: Sequence[Order]) -> list[list[Action]]:
        """Return orders as actions."""
        return [self._actions_of(order) for order in orders]

    def _actions_of(self, order: Order) -> list[Action]:
        done = [0] * (B * self.stages)
        found = []
        for code in order:
            kind, stage = divmod(code, self.stages)
            result, *others = self.results(code)
            if kind in (I, B) and stage in self.recomputed:
                found.append(Action(Kind.R, stage, done[result]))
            found.append(Action(KINDS[kind], stage, done[result]))
            for number in (result, *others):
                done[number] += 1
        return found

    def orders(self, schedule: Sequence[Sequence[Action]]) -> list[Order]:
        """Return the inverse of `actions`, except that recomputations are left out."""
        return [
            [KINDS.index(action.kind) * self.stages + action.stage for action in actions if action.kind is not Kind.R]
            for actions in schedule
        ]

    def without_weights(self, orders: Sequence[Order]) -> list[Order]:
        """Return orders without their weight halves."""
        weights = range(W * self.stages, B * self.stages)
        return [[code for code in order if code not in weights] for order in orders]

    def peak(self, order: Order) -> float:
        """Return the largest number of bytes that a rank holds."""
        stores, frees = self.stores, self.frees
        held = peak = 0.0
        for code in order:  # with the growth written out: a search looks at each order that it tries
            stored, freed = stores[code], frees[code]
            most = held + (stored - freed if freed < 0.0 else stored)
            if most > peak:
                peak = most
            held += stored - freed
        return peak

    def growth(self, code: int) -> float:
        """Return how many bytes a computation adds at most to what its rank holds."""
        return self.stores[code] - min(self.frees[code], 0.0)

    def fits(self, orders: Sequence[Order]) -> bool:
        """Return whether all ranks stay within their limits, except for rounding."""
        return all(
            limit == math.inf or self.peak(order) <= limit * (1 + 1e-9)
            for order, limit in zip(orders, self.limits, strict=True)
        )


def make_problem(
    placement: Sequence[int],
    micro_batches: int,
    edges: Edges,
    cost: Cost,
    saved: Mapping[int, float],
    kept: Mapping[int, float],
    limits: Sequence[float],
    overhead: Cost = zero_cost,
    inputs: Mapping[int, float] | None = None,
) -> Problem:
    """Return the problem of these stages.

    cost, overhead: of computations and messages, as for `simulate`.  saved: the bytes of each stage's activations for
    one microbatch; kept: those that it holds between its input half and its weight half, which may be more.
    inputs: of the stages that recompute, the bytes that they keep from the forward on, a part of `saved`.
     Recomputation takes the time of the forward.
    """
    recomputed = inputs or {}
    stages = len(placement)
    graph = StageGraph(Directions.of(placement), edges)
    codes = [(kind, stage) for kind in KINDS for stage in range(stages)]
    seconds = [checked_seconds(cost, Action(kind, stage, 0)) for kind, stage in codes]
    needs = [_needs(graph, kind, stage, cost, overhead) for kind, stage in codes]
    sending = [sum(checked_seconds(overhead, send) for send in _sends(graph, *code)) for code in codes]
    for stage in recomputed:
        for code in (I * stages + stage, B * stages + stage):
            seconds[code] += seconds[stage]
            needs[code] = [_before_recomputation(need, graph, stage, seconds[stage]) for need in needs[code]]
    nothing = [0.0] * stages
    first = [recomputed.get(stage, saved[stage]) for stage in range(stages)]
    again = [max(saved[stage] - first[stage], 0.0) for stage in range(stages)]
    everything = [a + b for a, b in zip(first, again, strict=True)]
    remaining = [kept[stage] for stage in range(stages)]
    freed = [most - least for most, least in zip(everything, remaining, strict=True)]
    return Problem(
        list(placement),
        micro_batches,
        seconds,
        sending,
        needs,
        [*first, *again, *nothing, *again],
        [*nothing, *freed, *remaining, *everything],
        list(limits),
        frozenset(recomputed),
    )


def _before_recomputation(need: Need, graph: StageGraph, stage: int, seconds: float) -> Need:
    """Return a need of a backward pass as one of the recomputation before it, during which a gradient may arrive."""
    source, transit, receiving = need
    remote = graph.remote(stage, [source % len(graph.directions.placements[0])], 0)
    return need if not remote else (source, transit - seconds, receiving)


def _needs(graph: StageGraph, kind: Kind, stage: int, cost: Cost, overhead: Cost) -> list[Need]:
    """Return what a computation waits for: of its own stage, and of others."""
    stages = len(graph.directions.placements[0])
    if kind is Kind.W:
        return [(I * stages + stage, 0.0, 0.0)]
    receive, sources = graph.inputs(Action(kind, stage, 0))
    first, of = (F, Kind.F) if receive is Kind.RECV_F else (I, Kind.I)
    found = [] if kind is Kind.F else [(F * stages + stage, 0.0, 0.0)]
    for source in sources:
        times = 0.0, 0.0
        if graph.remote(stage, [source], 0):
            receiving = checked_seconds(overhead, Action(receive, stage, 0, source))
            times = _transit(graph, of, source, stage, cost, overhead), receiving
        found.append((first * stages + source, *times))
    return found


def _sends(graph: StageGraph, kind: Kind, stage: int) -> list[Action]:
    """Return the sends after a computation, in order."""
    return [action for action in graph.add_transfers(Action(kind, stage, 0)) if action.kind.is_send]


def _transit(graph: StageGraph, kind: Kind, source: int, target: int, cost: Cost, overhead: Cost) -> float:
    """Return the seconds from the end of a computation until a stage can receive the result."""
    seconds = 0.0
    for send in _sends(graph, kind, source):
        seconds += checked_seconds(overhead, send)
        if send.peer == target:
            return seconds + checked_seconds(cost, send)
    raise AssertionError(f"stage {source} sends nothing to stage {target}")


def results_of(ends: Sequence[T], stages: int) -> list[tuple[T, ...]]:
    """Return what each computation finishes, of one entry for every F, I and W: B finishes I and W.

    >>> results_of(["F0", "F1", "I0", "I1", "W0", "W1"], 2)[5:]
    [('W1',), ('I0', 'W0'), ('I1', 'W1')]
    """
    return [*zip(ends), *zip(ends[I * stages : W * stages], ends[W * stages :], strict=True)]


@cache
def _numbers_of_results(stages: int) -> list[tuple[int, ...]]:
    return results_of(range(B * stages), stages)


class Times(NamedTuple):
    """When each rank starts and ends."""

    start: list[float]
    end: list[float]

    @property
    def step(self) -> float:
        """Return the seconds from the first start to the last end."""
        return max(self.end) - min(self.start)

    @property
    def slowest(self) -> float:
        """Return the seconds of the rank that takes longest."""
        return max(end - start for start, end in zip(self.start, self.end, strict=True))


def run(problem: Problem, orders: Sequence[Order]) -> Times | None:
    """Return when the ranks start and end; None if they would wait forever, or if the orders leave something out."""
    found = Run(problem, orders)
    return found.times() if found.finish() and found.is_complete() else None


def run_filled(problem: Problem, orders: Sequence[Order], patience: float) -> tuple[list[Order], Times] | None:
    """Insert weight halves into orders of forwards and input halves; return those, and when the ranks start and end.

    A rank runs its oldest weight half while it waits at least `patience` of the time that this takes, and where a
    forward has no memory otherwise.  Returns None if ranks would wait for each other, or for memory, forever.
    """
    found = _FilledRun(problem, orders, patience)
    return (found.filled, found.times()) if found.finish() and found.is_complete() else None


class Run:
    """The times of the computations that have run, in orders."""

    def __init__(self, problem: Problem, orders: Sequence[Order]) -> None:
        self.problem = problem
        self.orders = orders
        self.done: list[list[float]] = [[] for _ in range(B * problem.stages)]
        self.results = results_of(self.done, problem.stages)
        self.starts: list[float] = [0.0] * len(orders)
        self.now = self.starts.copy()
        self.positions = [0] * len(orders)

    def times(self) -> Times:
        return Times(self.starts, self.now)

    def is_complete(self) -> bool:
        """Return whether every computation has run for every microbatch."""
        return all(len(ends) == self.problem.micro_batches for ends in self.done)

    def finish(self) -> bool:
        """Run everything; return whether that is possible."""
        unfinished = list(range(len(self.orders)))
        while unfinished:
            advanced = [rank for rank in unfinished if self.advance(rank)]
            if not advanced:
                return False
            unfinished = [rank for rank in unfinished if self.positions[rank] < len(self.orders[rank])]
        return True

    def advance(self, rank: int) -> bool:
        """Run a rank until it needs a result that is not there yet; return whether it ran anything."""
        order, first, time = self.orders[rank], self.positions[rank], self.now[rank]
        done, results, seconds, needs = self.done, self.results, self.problem.seconds, self.problem.needs
        sending, wholes = self.problem.sending, B * self.problem.stages
        position, end = first, len(order)
        while position < end:
            code = order[position]
            finished = results[code]
            number = len(finished[0])
            if code >= wholes and len(finished[1]) != number:  # a whole backward pass takes the weights' turn as well
                break
            begin = time
            for source, transit, receiving in needs[code]:
                arrivals = done[source]
                if len(arrivals) <= number:
                    break
                arrival = arrivals[number] + transit
                if arrival > begin:
                    begin = arrival
                begin += receiving
            else:
                if not position:
                    self.starts[rank] = begin
                time = begin + seconds[code]
                for ends in finished:
                    ends.append(time)
                time += sending[code]
                position += 1
                continue
            break
        self.positions[rank], self.now[rank] = position, time
        return position > first


class _FilledRun(Run):
    """A run that inserts the weight halves of its input halves."""

    def __init__(self, problem: Problem, orders: Sequence[Order], patience: float) -> None:
        super().__init__(problem, orders)
        self.patience = patience * (1 - 1e-9)
        self.filled: list[Order] = [[] for _ in orders]
        self.weights: list[deque[int]] = [deque() for _ in orders]
        self.held = [0.0] * len(orders)

    def finish(self) -> bool:
        if not super().finish():
            return False
        for rank, weights in enumerate(self.weights):
            while weights:
                self.run_weights(rank)
        return True

    def advance(self, rank: int) -> bool:
        order, first = self.orders[rank], self.positions[rank]
        stages, seconds, problem = self.problem.stages, self.problem.seconds, self.problem
        weights, limit = self.weights[rank], self.problem.limits[rank] * (1 + 1e-9)
        while self.positions[rank] < len(order):
            code = order[self.positions[rank]]
            begin = self.begin(code, self.now[rank])
            if begin is None:
                break
            while weights and code >= B * stages:
                self.run_weights(rank)
            while weights and begin - self.now[rank] >= self.patience * seconds[weights[0]] > 0:
                self.run_weights(rank)
            while weights and self.held[rank] + problem.growth(code) > limit:
                self.run_weights(rank)
            if self.held[rank] + problem.growth(code) > limit:
                break
            begin = self.begin(code, self.now[rank])
            assert begin is not None, "its inputs have arrived"
            if not self.positions[rank]:
                self.starts[rank] = begin
            self.run_one(rank, code, begin)
            if I * stages <= code < W * stages:
                weights.append(code + stages)
            self.positions[rank] += 1
        return self.positions[rank] > first

    def begin(self, code: int, now: float) -> float | None:
        """Return when a computation begins on a rank that is free from `now` on; None if that is not known yet."""
        number = len(self.results[code][0])
        for source, transit, receiving in self.problem.needs[code]:
            arrivals = self.done[source]
            if len(arrivals) <= number:
                return None
            now = max(now, arrivals[number] + transit) + receiving
        return now

    def run_weights(self, rank: int) -> None:
        self.run_one(rank, self.weights[rank].popleft(), self.now[rank])

    def run_one(self, rank: int, code: int, begin: float) -> None:
        end = begin + self.problem.seconds[code]
        self.now[rank] = end + self.problem.sending[code]
        for ends in self.results[code]:
            ends.append(end)
        self.filled[rank].append(code)
        self.held[rank] += self.problem.stores[code] - self.problem.frees[code]
