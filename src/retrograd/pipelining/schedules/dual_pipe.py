"""DualPipe: microbatches in two directions, the forward of one overlapped with the backward of the other."""

from collections.abc import Iterator

from retrograd.pipelining.schedules.actions import Action, Kind
from retrograd.pipelining.schedules.dual_pipe_v import v_order
from retrograd.pipelining.schedules.stage_placement import ComputeOrders, StagesByRank, block_of


def dual_pipe(rank_stages: StagesByRank, micro_batches: int) -> ComputeOrders:
    """Return each rank's computations under DualPipe: even microbatches from the first rank to the last, odd ones back.

    rank_stages: of the even microbatches; for the odd ones, a rank has the stages of the rank at the other end, too.

    With p ranks, a rank holds the activations of at most p + 1 microbatches.  From its first to its last action it is
    idle for at most (p / 2 - 1)(F&B + B - 3 W) if there are at least 2 p microbatches, an even number; F&B is the time
    of a forward and a backward that may overlap, here F + B, and B = I + W.

    Source: DeepSeek-AI, "DeepSeek-V3 Technical Report", 2024 (arXiv 2412.19437), section 3.2.1 and figure 5, and the
    program that DeepSeek-AI published with it.  DualPipeV on half as many ranks has the same order: the two directions
    of a rank here are its two stages there.

    >>> from retrograd.pipelining.schedules.actions import format_schedule
    >>> print(format_schedule(dual_pipe([[0], [1]], 4)))
    0: F0.0 F1.1 F0.2 B1.1 F1.3 B0.0 B1.3 I0.2 W0.2
    1: F0.1 F1.0 F0.3 B1.0 F1.2 B0.1 B1.2 I0.3 W0.3
    """
    return [_DualOrder(rank_stages, rank, micro_batches) for rank in range(len(rank_stages))]


class _DualOrder:
    """The order of one rank: that of DualPipeV, whose first stage is the direction that enters at the nearer end."""

    def __init__(self, rank_stages: StagesByRank, rank: int, micro_batches: int) -> None:
        ranks = len(rank_stages)
        self.blocks = [block_of(rank_stages, rank, direction) for direction in (0, 1)]
        self.swapped = 2 * rank >= ranks
        self.micro_batches = micro_batches
        per_direction = (micro_batches + 1) // 2
        self.order = v_order(min(rank, ranks - 1 - rank), ranks // 2, [0, 1], per_direction)

    def __iter__(self) -> Iterator[Action]:
        for kind, part, number, _ in self.order:
            direction = 1 - part if self.swapped else part
            block, micro_batch = self.blocks[direction], 2 * number + direction
            if micro_batch < self.micro_batches:
                for stage in block if kind is Kind.F else block[::-1]:
                    yield Action(kind, stage, micro_batch)
