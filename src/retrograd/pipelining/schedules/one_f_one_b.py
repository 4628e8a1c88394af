"""1F1B: alternates one forward and one backward, so that few activations are alive."""

from retrograd.pipelining.schedules.actions import Kind
from retrograd.pipelining.schedules.interleave import alternate, units
from retrograd.pipelining.schedules.stage_placement import ComputeOrders, StagesByRank


def one_f_one_b(rank_stages: StagesByRank, micro_batches: int) -> ComputeOrders:
    """Return each rank's computations under 1F1B: fill the pipeline, alternate forward and backward, then drain it.

    With p ranks and m microbatches, a rank holds the activations of at most min(p - rank, m) microbatches.
    The bubble is GPipe's, (p - 1) / (m + p - 1).

    Source: Narayanan et al., "Memory-Efficient Pipeline-Parallel DNN Training", 2021 (PipeDream-Flush, arXiv
    2006.09503); Fan et al., "DAPPLE: A Pipelined Data Parallel Approach for Training Large Models", 2021
    (arXiv 2007.01045).

    >>> [str(action) for action in one_f_one_b([[0], [1]], 3)[0]]
    ['F0.0', 'F0.1', 'B0.0', 'F0.2', 'B0.1', 'B0.2']
    """
    return [
        alternate(
            units(Kind.F, block, micro_batches), units(Kind.B, block, micro_batches), ahead=len(rank_stages) - rank
        )
        for rank, block in enumerate(rank_stages)
    ]
