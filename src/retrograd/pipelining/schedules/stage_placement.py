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


def generate_stage_to_rank_mapping(pp_size: int, num_stages: int, style: str = "loop") -> dict[int, int]:
    """Return the rank of each stage, assigned cyclically ("loop") or there and back ("v").

    Raises ValueError for another style, and in a V for stages that are no multiple of the ranks.

    >>> generate_stage_to_rank_mapping(2, 4), generate_stage_to_rank_mapping(2, 4, style="v")
    ({0: 0, 1: 1, 2: 0, 3: 1}, {0: 0, 1: 1, 2: 1, 3: 0})
    """
    if style not in ("loop", "v"):
        raise ValueError(f"Style {style} is not supported.")
    if style == "v" and num_stages % pp_size:
        raise ValueError(f"num_stages {num_stages} must be evenly divisible by pp_size {pp_size} for V schedules")
    placed = looped(num_stages, pp_size) if style == "loop" else zigzag(num_stages, pp_size)
    return dict(enumerate(placed))


def generate_rank_to_stage_mapping(pp_size: int, num_stages: int, style: str = "loop") -> dict[int, list[int]]:
    """Return the stages of each rank: the inverse of `generate_stage_to_rank_mapping`.

    >>> generate_rank_to_stage_mapping(2, 4, style="v")
    {0: [0, 3], 1: [1, 2]}
    """
    placed = generate_stage_to_rank_mapping(pp_size, num_stages, style)
    return {rank: [stage for stage, home in placed.items() if home == rank] for rank in sorted(set(placed.values()))}
