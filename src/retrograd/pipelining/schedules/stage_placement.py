"""Three placements of stages on ranks, one for each family of schedules."""

from collections.abc import Iterable, Sequence

from retrograd.pipelining.schedules.actions import Action

ComputeOrders = Sequence[Iterable[Action]]
"""The compute actions of each rank, in order; generated on demand, because there may be millions."""

StagesByRank = list[list[int]]
"""The stages of each rank, in increasing order."""


def blocks(stages: int, ranks: int) -> list[int]:
    """Assign neighbouring stages to one rank, which runs them as if they were one.

    >>> blocks(6, 3)
    [0, 0, 1, 1, 2, 2]
    """
    return [stage * ranks // stages for stage in range(stages)]


def looped(stages: int, ranks: int) -> list[int]:
    """Assign stages to ranks cyclically, so that a microbatch passes each rank several times.

    >>> looped(6, 3)
    [0, 1, 2, 0, 1, 2]
    """
    return [stage % ranks for stage in range(stages)]


def zigzag(stages: int, ranks: int) -> list[int]:
    """Assign stages in a V, to the last rank and back: first and last stage are on the first rank.

    >>> zigzag(6, 3)
    [0, 1, 2, 2, 1, 0]
    """
    round_trip = [*range(ranks), *reversed(range(ranks))]
    return [round_trip[stage % (2 * ranks)] for stage in range(stages)]


def stages_by_rank(placement: list[int]) -> StagesByRank:
    """Return the stages of each rank, from the rank of each stage.

    >>> stages_by_rank([0, 1, 1, 0])
    [[0, 3], [1, 2]]
    """
    rank_stages: StagesByRank = [[] for _ in range(max(placement) + 1)]
    for stage, rank in enumerate(placement):
        rank_stages[rank].append(stage)
    return rank_stages
