"""Compare schedules over numbers of ranks, stages and microbatches: bubble against memory."""

from collections.abc import Iterable, Sequence
from itertools import product
from typing import NamedTuple

from retrograd.pipelining.planning.schedule_search import search_schedule
from retrograd.pipelining.planning.simulate import Cost, peak_activations, simulate_costs
from retrograd.pipelining.schedules import SCHEDULES, make_schedule
from retrograd.pipelining.schedules.actions import Action
from retrograd.pipelining.schedules.lowering import chain


class Swept(NamedTuple):
    """A schedule for one combination of sizes.

    per_rank: stages of each rank.  memory: the activations that a rank holds at most, in microbatches of its layers.
    step: the time from the first start to the last end, in units of a rank's forward.
    bubble: the share of all ranks' time without computation.
    copies: of each parameter, which `memory` does not count: 2 in two directions.
    """

    schedule: str
    ranks: int
    per_rank: int
    micro_batches: int
    memory: float
    step: float
    bubble: float
    copies: int = 1


class RankCosts(NamedTuple):
    """The time of a rank's layers for one microbatch, and of a message, relative to each other."""

    forward: float = 1.0
    inputs: float = 1.0
    weights: float = 1.0
    message: float = 0.0

    def of_stages(self, per_rank: int) -> Cost:
        """Return the costs of actions, if the layers of a rank are divided evenly into stages."""
        seconds = {"F": self.forward, "I": self.inputs, "W": self.weights, "B": self.inputs + self.weights}

        def cost(action: Action) -> float:
            return seconds[action.kind.value] / per_rank if action.kind.is_compute else self.message

        return cost


def sweep(
    ranks: Iterable[int],
    stages_per_rank: Iterable[int],
    micro_batches: Iterable[int],
    limits: Sequence[float] = (),
    costs: RankCosts | None = None,
    seconds: float = 1.0,
) -> list[Swept]:
    """Return every named schedule for every combination of sizes, and for each limit of memory a searched one, "auto".

    limits: microbatches whose activations a rank may hold; a limit below 1 finds nothing.  costs: None: F = I = W = 1,
    and messages take no time.  seconds: of each search, see `search_schedule`.

    A schedule that runs stages of a rank as one is listed for one stage per rank only, the others for several.  One in
    two directions is listed for even numbers of ranks; its step is without the sum of the copies' gradients.

    >>> rows = sweep([4], [1, 2], [8])
    >>> [(row.schedule, row.memory, round(row.bubble, 3)) for row in pareto_front(rows)]
    [('V-Min', 2.0, 0.186), ('V-Half', 3.0, 0.094), ('InterleavedZeroBubble', 4.0, 0.059)]
    """
    costs = costs or RankCosts()
    found = []
    for p, v, m in product(ranks, stages_per_rank, micro_batches):
        found += [_named(name, p, v, m, costs) for name in SCHEDULES if _is_listed(name, p, v)]
        for limit in limits:
            if limit >= 1:
                found.append(_searched(p, v, m, limit, costs, seconds))
    return found


def _is_listed(name: str, ranks: int, per_rank: int) -> bool:
    """Return whether a schedule is made for one stage per rank, or for several, as there are, and for these ranks."""
    kind = SCHEDULES[name]
    return (kind.per_rank == 1) == (per_rank == 1) and ranks % kind.directions == 0


def _named(name: str, ranks: int, per_rank: int, micro_batches: int, costs: RankCosts) -> Swept:
    stages = ranks * per_rank
    schedule = make_schedule(name, stages, micro_batches, ranks=ranks)
    summary = simulate_costs(schedule, chain(stages), costs.of_stages(per_rank))
    memory = max(map(peak_activations, schedule)) / per_rank
    step = summary.span / costs.forward
    kind = SCHEDULES[name]
    return Swept(kind.name, ranks, per_rank, micro_batches, memory, step, summary.bubble, kind.directions)


def _searched(ranks: int, per_rank: int, micro_batches: int, limit: float, costs: RankCosts, seconds: float) -> Swept:
    stages, cost = ranks * per_rank, costs.of_stages(per_rank)
    found = search_schedule(stages, micro_batches, cost, ranks=ranks, memory_limit=limit * per_rank, seconds=seconds)
    summary = simulate_costs(found.schedule, chain(stages), cost)
    memory = max(found.peaks) / per_rank
    return Swept("auto", ranks, per_rank, micro_batches, memory, found.step / costs.forward, summary.bubble)


def pareto_front(rows: Iterable[Swept]) -> list[Swept]:
    """Return those with one copy with which no other compares well, by memory: less memory needs a larger bubble.

    >>> row = Swept("GPipe", 2, 1, 4, memory=4.0, step=15.0, bubble=0.2)
    >>> better, other = row._replace(schedule="1F1B", memory=2.0), row._replace(schedule="ZB-H2", bubble=0.1)
    >>> [one.schedule for one in pareto_front([row, better, other])]
    ['1F1B', 'ZB-H2']
    """
    front: list[Swept] = []
    for row in sorted((row for row in rows if row.copies == 1), key=lambda row: (row.memory, row.bubble)):
        if not front or row.bubble < front[-1].bubble * (1 - 1e-9):
            front.append(row)
    return front
