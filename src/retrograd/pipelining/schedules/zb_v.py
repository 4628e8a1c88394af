"""ZB-V: two stages per rank in a V, split backward passes, no bubble with the memory of 1F1B."""

from retrograd.pipelining.schedules.actions import Kind
from retrograd.pipelining.schedules.phase_builder import PhaseBuilder
from retrograd.pipelining.schedules.repeated_block import split_order
from retrograd.pipelining.schedules.stage_placement import ComputeOrders, StagesByRank
from retrograd.pipelining.schedules.zero_bubble import zb_h1


def zb_v(rank_stages: StagesByRank, micro_batches: int) -> ComputeOrders:
    """Return each rank's computations under ZB-V: forwards and backward halves of its two stages alternate.

    With p ranks, a rank holds at most 2 p activations of a single stage: the memory of p microbatches, as 1F1B on
    its first rank. From its first to its last action no rank is idle if F = I = W on all stages and there are at
    least 2 p - 1 microbatches.

    Source: Qi, Wan, Huang, Lin, "Zero Bubble Pipeline Parallelism", ICLR 2024 (arXiv 2401.10241), section 6. With one
    stage per rank there is no V, and this is ZB-H1; with more than two they zigzag over the ranks, and
    `split_order` makes an order with time for messages, within the memory of p microbatches.

    >>> " ".join(map(str, zb_v([[0, 3], [1, 2]], 3)[1]))
    'F1.0 F2.0 F1.1 F2.1 I2.0 W2.0 F1.2 I1.0 W1.0 F2.2 I2.1 W2.1 I1.1 I2.2 I1.2 W1.1 W2.2 W1.2'
    """
    ranks, per_rank = len(rank_stages), len(rank_stages[0])
    if per_rank == 1:
        return zb_h1(rank_stages, micro_batches)
    if per_rank > 2:
        return split_order(rank_stages, micro_batches, limit=per_rank * ranks)
    return [_order(rank, ranks, stages, micro_batches) for rank, stages in enumerate(rank_stages)]


def _order(rank: int, ranks: int, stages: list[int], micro_batches: int) -> PhaseBuilder:
    """Return the order of one rank for at least 2 p - 1 microbatches, which fill the pipeline."""
    order = PhaseBuilder(micro_batches)
    (f1, i1, w1), (f2, i2, w2) = ([(kind, stage) for kind in (Kind.F, Kind.I, Kind.W)] for stage in stages)
    full = max(micro_batches, 2 * ranks - 1)
    order.repeat(2 * (ranks - rank) - 1, f1)
    order.repeat(rank, f2, f1)
    order.repeat(ranks - rank, f2, i2, w2)
    order.repeat(full - ranks, f1, i1, w1, f2, i2, w2)
    order.repeat(rank, i1, i2)
    order.repeat(ranks - rank, i1, w1)
    order.repeat(rank, w2)
    order.repeat(rank, w1)
    return order
