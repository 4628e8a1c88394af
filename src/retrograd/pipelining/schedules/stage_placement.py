"""Placements of stages on ranks: three for one direction, and their mirror image for a second one."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

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


def mirrored(placement: Sequence[int], ranks: int) -> list[int]:
    """Return a placement from the last rank to the first: of the second direction.

    >>> mirrored(blocks(4, 2), 2)
    [1, 1, 0, 0]
    """
    return [ranks - 1 - rank for rank in placement]


def block_of(rank_stages: StagesByRank, rank: int, direction: int) -> list[int]:
    """Return the stages that a rank runs in a direction, from the stages of each rank in the first one.

    >>> block_of([[0, 1], [2, 3]], 0, 0), block_of([[0, 1], [2, 3]], 0, 1)
    ([0, 1], [2, 3])
    """
    return rank_stages[len(rank_stages) - 1 - rank if direction else rank]


class Directions(NamedTuple):
    """The rank of each stage in one direction, or in two: the even microbatches take the first, the odd ones the other.

    Every part that asks where a stage runs a microbatch asks here.

    >>> two = Directions.of([0, 1], [1, 0])
    >>> two.rank(0, micro_batch=4), two.rank(0, micro_batch=5), two.ranks(0), two.stages(1)
    (0, 1, [0, 1], [0, 1])
    """

    placements: Sequence[Mapping[int, int]]

    @staticmethod
    def of(*placements: Sequence[int]) -> "Directions":
        """Return the directions with these placements."""
        return Directions([dict(enumerate(placement)) for placement in placements])

    def direction(self, micro_batch: int) -> int:
        """Return the direction that a microbatch takes."""
        return micro_batch % len(self.placements)

    def rank(self, stage: int, micro_batch: int) -> int:
        """Return the rank on which a stage runs a microbatch."""
        return self.placements[self.direction(micro_batch)][stage]

    def ranks(self, stage: int) -> list[int]:
        """Return all ranks of a stage, that of the first direction first."""
        return list(dict.fromkeys(placement[stage] for placement in self.placements))

    def stages(self, rank: int) -> list[int]:
        """Return all stages of a rank, in order."""
        return [stage for stage in sorted(self.placements[0]) if rank in self.ranks(stage)]


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
