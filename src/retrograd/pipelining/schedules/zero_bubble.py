"""ZB-H1 and ZB-H2: split backward passes, with weight halves in the idle time of 1F1B."""

from collections.abc import Iterator

from retrograd.pipelining.schedules.actions import Action, Kind
from retrograd.pipelining.schedules.interleave import alternate_halves, units
from retrograd.pipelining.schedules.stage_placement import ComputeOrders, StagesByRank


def zb_h1(rank_stages: StagesByRank, micro_batches: int) -> ComputeOrders:
    """Return each rank's computations under ZB-H1: 1F1B with weight halves delayed until p microbatches are alive.

    Every rank holds the activations of at most min(p, m) microbatches, as many as 1F1B on its first rank.
    From its first to its last action a rank is idle for at most (p - 1)(F + I - W), compared with
    (p - 1)(F + I + W) for 1F1B, if F, I and W take equally long on all ranks and m is at least 2p - 1.

    Source: Qi, Wan, Huang, Lin, "Zero Bubble Pipeline Parallelism", ICLR 2024 (arXiv 2401.10241), section 2.

    >>> " ".join(map(str, zb_h1([[0], [1]], 3)[1]))
    'F1.0 I1.0 F1.1 I1.1 W1.0 F1.2 I1.2 W1.1 W1.2'
    """
    return [
        _halves(block, micro_batches, len(rank_stages) - rank, len(rank_stages))
        for rank, block in enumerate(rank_stages)
    ]


def zb_h2(rank_stages: StagesByRank, micro_batches: int) -> ComputeOrders:
    """Return each rank's computations under ZB-H2: ZB-H1 with more forwards ahead, and no bubble if F = I = W.

    Every rank holds the activations of at most min(2p - 1, m) microbatches. From its first to its last action
    a rank is idle for at most (p - 1)(F + I - 2W), under the conditions of ZB-H1.

    Source: as `zb_h1`.

    >>> " ".join(map(str, zb_h2([[0], [1]], 4)[0]))
    'F0.0 F0.1 F0.2 I0.0 W0.0 F0.3 I0.1 W0.1 I0.2 W0.2 I0.3 W0.3'
    """
    ranks = len(rank_stages)
    return [
        _halves(block, micro_batches, 2 * (ranks - rank) - 1, 2 * ranks - 1) for rank, block in enumerate(rank_stages)
    ]


def _halves(block: list[int], micro_batches: int, ahead: int, keep: int) -> Iterator[Action]:
    parts = (units(kind, block, micro_batches) for kind in (Kind.F, Kind.I, Kind.W))
    return alternate_halves(*parts, ahead=ahead, keep=keep)
