"""DualPipeV: two stages per rank in a V, the forward of one overlapped with the backward of the other."""

from retrograd.pipelining.schedules.actions import Kind
from retrograd.pipelining.schedules.one_f_one_b import one_f_one_b
from retrograd.pipelining.schedules.phase_builder import OLDEST_W, PhaseBuilder
from retrograd.pipelining.schedules.repeated_block import split_order
from retrograd.pipelining.schedules.stage_placement import ComputeOrders, StagesByRank


def dual_pipe_v(rank_stages: StagesByRank, micro_batches: int) -> ComputeOrders:
    """Return each rank's computations under DualPipeV: forwards of one stage alternate with backwards of the other.

    With p ranks, a rank holds at most 2 p + 1 activations of a single stage. From its first to its last action a
    rank is idle for at most (p - 1)(F&B + B - 3 W) if stages take equally long and there are at least 2 p
    microbatches; F&B is the time of a forward and a backward that may overlap, here F + B, and B = I + W.
    Backward passes are not split if that gains nothing.

    Source: DeepSeek-AI, "DeepSeek-V3 Technical Report", 2024 (arXiv 2412.19437), section 3.2.1, and the description
    of DualPipeV that DeepSeek-AI published with its DualPipe, after Qi et al.'s cut in half of it. With one stage per
    rank there is no V, and this is 1F1B; with more than two they zigzag over the ranks, and `split_order` makes
    an order with time for messages, within the memory of p microbatches and one stage.

    >>> " ".join(map(str, dual_pipe_v([[0, 3], [1, 2]], 4)[1]))
    'F1.0 F2.0 F1.1 F2.1 F1.2 B2.0 F2.2 B1.0 F1.3 B2.1 F2.3 B1.1 B2.2 B1.2 I2.3 I1.3 W2.3 W1.3'
    """
    ranks, per_rank = len(rank_stages), len(rank_stages[0])
    if per_rank == 1:
        return one_f_one_b(rank_stages, micro_batches)
    if per_rank > 2:
        return split_order(rank_stages, micro_batches, limit=per_rank * ranks + 1)
    return [v_order(rank, ranks, stages, micro_batches) for rank, stages in enumerate(rank_stages)]


def v_order(rank: int, ranks: int, stages: list[int], micro_batches: int) -> PhaseBuilder:
    """Return the order of one rank with two stages, for at least 2 p microbatches, which fill the pipeline.

    >>> " ".join(map(str, v_order(0, 1, [0, 1], 1)))
    'F0.0 F1.0 B1.0 B0.0'
    """
    order = PhaseBuilder(micro_batches)
    (f1, b1, i1), (f2, b2, i2) = ([(kind, stage) for kind in (Kind.F, Kind.B, Kind.I)] for stage in stages)
    full, extra = max(micro_batches, 2 * ranks), ranks - 1 - rank
    order.repeat(2 * extra, f1)
    order.repeat(rank + 1, f1, f2)
    order.repeat(extra, i2, OLDEST_W, f2)
    order.repeat(full - 2 * ranks + rank + 1, f1, b2, f2, b1)
    order.repeat(extra, b2, f2, b1)
    # In the second half of these 2 (rank + 1) backward passes, the weight gradients are postponed to the end.
    full_backwards, split_backwards = ([b2, b1] * (rank + 1))[: rank + 1], ([i2, i1] * (rank + 1))[rank + 1 :]
    order.repeat(1, *full_backwards, *split_backwards)
    order.repeat(extra, OLDEST_W, i1)
    order.repeat(rank + 1, OLDEST_W)
    return order
