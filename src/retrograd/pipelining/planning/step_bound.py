"""A lower bound of a step's seconds: no schedule with these costs, stages on ranks and memory is faster."""

from collections.abc import Sequence
from functools import cache

from retrograd.pipelining.planning.schedule_problem import B, I, Problem, W


def busy_bound(problem: Problem) -> float:
    """Return the seconds of computation on the rank that computes longest."""
    return max(_forwards(problem, stages) + _backwards(problem, stages) for stages in problem.rank_stages)


def step_bound(problem: Problem) -> float:
    """Return a lower bound of the seconds from the first start to the last end.

    Two times end before a rank ends.  It computes for all microbatches, from when its first input arrives.  And it
    computes all backward passes, and the forwards for which it had no memory before, from when the first gradient
    arrives.

    >>> from retrograd.pipelining.planning.schedule_problem import make_problem
    >>> from retrograd.pipelining.planning.simulate import unit_cost
    >>> ones = {0: 1.0, 1: 1.0}
    >>> [step_bound(make_problem([0, 1], 4, {(0, 1)}, unit_cost, ones, ones, [limit] * 2)) for limit in (1.0, 4.0)]
    [14.0, 13.0]
    """
    stages = problem.stages

    @cache
    def arrival(code: int) -> float:
        """Return when a computation can start at the earliest."""
        time = 0.0
        for source, transit, receiving in problem.needs[code]:
            time = max(time, arrival(source) + problem.seconds[source] + transit) + receiving
        return time

    bounds = []
    for own, limit in zip(problem.rank_stages, problem.limits, strict=True):
        forwards, backwards = _forwards(problem, own), _backwards(problem, own)
        bounds.append(min(arrival(stage) for stage in own) + forwards + backwards)
        late = forwards - _early_forwards(problem, own, limit)
        bounds.append(min(arrival(I * stages + stage) for stage in own) + backwards + late)
    return max(bounds)


def _forwards(problem: Problem, stages: Sequence[int]) -> float:
    return problem.micro_batches * sum(problem.seconds[stage] for stage in stages)


def _backwards(problem: Problem, stages: Sequence[int]) -> float:
    seconds, count = problem.seconds, problem.stages
    return problem.micro_batches * sum(
        min(seconds[B * count + stage], seconds[I * count + stage] + seconds[W * count + stage]) for stage in stages
    )


def _early_forwards(problem: Problem, stages: Sequence[int], limit: float) -> float:
    """Return the most seconds of forwards that fit into the memory together; their number is rounded down for one
    stage only."""
    seconds, free = 0.0, limit * (1 + 1e-9)
    for stage in sorted(stages, key=lambda stage: problem.stores[stage] / max(problem.seconds[stage], 1e-300)):
        size = problem.stores[stage]
        count = min(float(problem.micro_batches), free / size) if size else float(problem.micro_batches)
        count = float(int(count)) if len(stages) == 1 else count
        seconds += count * problem.seconds[stage]
        free -= count * size
    return seconds
