"""Stages to be scheduled: their costs, dependencies and memory; and orders of computations as lists of numbers."""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from retrograd.pipelining.planning.simulate import Cost, checked_seconds
from retrograd.pipelining.schedules.actions import Action, Kind
from retrograd.pipelining.schedules.lowering import Edges, StageGraph
from retrograd.pipelining.schedules.stage_placement import StagesByRank, stages_by_rank

KINDS = (Kind.F, Kind.I, Kind.W, Kind.B)
F, I, W, B = range(4)  # noqa: E741

Order = list[int]
"""The computations of a rank: `kind * stages + stage` each.  Every stage takes its microbatches in order."""


class Problem(NamedTuple):
    """The stages of a pipeline, to be scheduled.

    seconds: per computation, numbered as in an order.  needs: per computation, the computations that it waits for, each
    with the seconds until its result has arrived.  stores, frees: the bytes that a computation adds and removes.
    limits: bytes per rank.
    """

    placement: list[int]
    micro_batches: int
    seconds: list[float]
    needs: list[list[tuple[int, float]]]
    stores: list[float]
    frees: list[float]
    limits: list[float]

    @property
    def stages(self) -> int:
        return len(self.placement)

    @property
    def rank_stages(self) -> StagesByRank:
        return stages_by_rank(self.placement)

    def results(self, code: int) -> tuple[int, ...]:
        """Return what a computation finishes, as numbers of computations: B finishes I and W."""
        return (code,) if code < B * self.stages else (code - (B - I) * self.stages, code - (B - W) * self.stages)

    def actions(self, orders: Sequence[Order]) -> list[list[Action]]:
        """Return orders as actions."""
        return [self._actions_of(order) for order in orders]

    def _actions_of(self, order: Order) -> list[Action]:
        done = [0] * (B * self.stages)
        found = []
        for code in order:
            kind, stage = divmod(code, self.stages)
            result, *others = self.results(code)
            found.append(Action(KINDS[kind], stage, done[result]))
            for number in (result, *others):
                done[number] += 1
        return found

    def orders(self, schedule: Sequence[Sequence[Action]]) -> list[Order]:
        """Return the inverse of `actions`."""
        return [[KINDS.index(action.kind) * self.stages + action.stage for action in actions] for actions in schedule]

    def without_weights(self, orders: Sequence[Order]) -> list[Order]:
        """Return orders without their weight halves."""
        weights = range(W * self.stages, B * self.stages)
        return [[code for code in order if code not in weights] for order in orders]

    def peak(self, order: Order) -> float:
        """Return the largest number of bytes that a rank holds."""
        held = peak = 0.0
        for code in order:
            held += self.stores[code]
            peak = max(peak, held)
            held -= self.frees[code]
        return peak


def make_problem(
    placement: Sequence[int],
    micro_batches: int,
    edges: Edges,
    cost: Cost,
    saved: Mapping[int, float],
    kept: Mapping[int, float],
    limits: Sequence[float],
) -> Problem:
    """Return the problem of these stages.

    cost: of computations and sends, as for `simulate`.  saved: the bytes of each stage's activations for one
    microbatch; kept: those of them that remain between its input half and its weight half.
    """
    stages = len(placement)
    graph = StageGraph(dict(enumerate(placement)), edges)
    needs = [_needs(graph, stages, kind, stage, cost) for kind in range(len(KINDS)) for stage in range(stages)]
    everything, nothing = [saved[stage] for stage in range(stages)], [0.0] * stages
    remaining = [kept[stage] for stage in range(stages)]
    freed = [most - least for most, least in zip(everything, remaining, strict=True)]
    return Problem(
        list(placement),
        micro_batches,
        [checked_seconds(cost, Action(kind, stage, 0)) for kind in KINDS for stage in range(stages)],
        needs,
        [*everything, *nothing, *nothing, *nothing],
        [*nothing, *freed, *remaining, *everything],
        list(limits),
    )


def _needs(graph: StageGraph, stages: int, kind: int, stage: int, cost: Cost) -> list[tuple[int, float]]:
    """Return what a computation waits for: of its own stage, and of others."""
    if kind == W:
        return [(I * stages + stage, 0.0)]
    receive, sources = graph.inputs(Action(KINDS[kind], stage, 0))
    of = F if receive is Kind.RECV_F else I
    send = Kind.SEND_F if of == F else Kind.SEND_B
    own = [] if kind == F else [(F * stages + stage, 0.0)]
    here = graph.rank_of[stage]
    return own + [
        (
            of * stages + source,
            0.0 if graph.rank_of[source] == here else checked_seconds(cost, Action(send, source, 0, stage)),
        )
        for source in sources
    ]


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
    """Return when the ranks start and end; None if they would wait for each other forever."""
    found = _Run(problem, orders)
    return found.times() if found.finish() else None


def run_filled(problem: Problem, orders: Sequence[Order], patience: float) -> tuple[list[Order], Times] | None:
    """Insert weight halves into orders of forwards and input halves; return those, and when the ranks start and end.

    A rank runs its oldest weight half while it waits at least `patience` of the time that this takes, and where a
    forward has no memory otherwise.  Returns None if ranks would wait for each other, or for memory, forever.
    """
    found = _FilledRun(problem, orders, patience)
    return (found.filled, found.times()) if found.finish() else None


class _Run:
    """The times of the computations that have run, in orders."""

    def __init__(self, problem: Problem, orders: Sequence[Order]) -> None:
        self.problem = problem
        self.orders = orders
        self.done: list[list[float]] = [[] for _ in range(B * problem.stages)]
        self.results = [[self.done[number] for number in problem.results(code)] for code in range(len(problem.seconds))]
        self.starts: list[float] = [0.0] * len(orders)
        self.now = self.starts.copy()
        self.positions = [0] * len(orders)

    def times(self) -> Times:
        return Times(self.starts, self.now)

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
        position = first
        while position < len(order):
            code = order[position]
            finished = results[code]
            number = len(finished[0])
            begin = time
            for source, delay in needs[code]:
                arrivals = done[source]
                if len(arrivals) <= number:
                    break
                if arrivals[number] + delay > begin:
                    begin = arrivals[number] + delay
            else:
                if not position:
                    self.starts[rank] = begin
                time = begin + seconds[code]
                for ends in finished:
                    ends.append(time)
                position += 1
                continue
            break
        self.positions[rank], self.now[rank] = position, time
        return position > first


class _FilledRun(_Run):
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
        stages, seconds, stores = self.problem.stages, self.problem.seconds, self.problem.stores
        weights, limit = self.weights[rank], self.problem.limits[rank] * (1 + 1e-9)
        while self.positions[rank] < len(order):
            code = order[self.positions[rank]]
            arrival = self.arrival(code)
            if arrival is None:
                break
            while weights and arrival - self.now[rank] >= self.patience * seconds[weights[0]] > 0:
                self.run_weights(rank)
            while weights and self.held[rank] + stores[code] > limit:
                self.run_weights(rank)
            if self.held[rank] + stores[code] > limit:
                break
            if not self.positions[rank]:
                self.starts[rank] = arrival
            self.run_one(rank, code, max(self.now[rank], arrival))
            if I * stages <= code < W * stages:
                weights.append(code + stages)
            self.positions[rank] += 1
        return self.positions[rank] > first

    def arrival(self, code: int) -> float | None:
        """Return when everything is there that a computation needs; None if that is not known yet."""
        number = len(self.results[code][0])
        latest = 0.0
        for source, delay in self.problem.needs[code]:
            arrivals = self.done[source]
            if len(arrivals) <= number:
                return None
            latest = max(latest, arrivals[number] + delay)
        return latest

    def run_weights(self, rank: int) -> None:
        self.run_one(rank, self.weights[rank].popleft(), self.now[rank])

    def run_one(self, rank: int, code: int, begin: float) -> None:
        self.now[rank] = end = begin + self.problem.seconds[code]
        for ends in self.results[code]:
            ends.append(end)
        self.filled[rank].append(code)
        self.held[rank] += self.problem.stores[code] - self.problem.frees[code]
