"""Hanayo: waves through the ranks and back, with whole backward passes."""

from retrograd.pipelining.schedules.one_f_one_b import one_f_one_b
from retrograd.pipelining.schedules.repeated_block import whole_order
from retrograd.pipelining.schedules.stage_placement import ComputeOrders, StagesByRank


def hanayo(rank_stages: StagesByRank, micro_batches: int) -> ComputeOrders:
    """Return each rank's computations under Hanayo: stages zigzag over the ranks, and backward passes are not split.

    Two stages per rank are one wave, four are two. A rank holds at most the activations of p microbatches, if there
    is a building block with so few; see `whole_order`. With one stage per rank this is 1F1B.

    Source: Liu, Cheng, Zhou, You, "Hanayo: Harnessing Wave-like Pipeline Parallelism for Enhanced Large Model Training
    Efficiency", SC 2023 (arXiv 2308.15762): its placement. The order is that of a repeated building block instead of
    the paper's, which starts a microbatch on both sides of the wave where ranks are free.

    >>> " ".join(map(str, hanayo([[0, 3], [1, 2]], 2)[0]))
    'F0.0 F0.1 F3.0 B3.0 F3.1 B3.1 B0.0 B0.1'
    """
    ranks, per_rank = len(rank_stages), len(rank_stages[0])
    if per_rank == 1:
        return one_f_one_b(rank_stages, micro_batches)
    return whole_order(rank_stages, micro_batches, limit=per_rank * ranks)
