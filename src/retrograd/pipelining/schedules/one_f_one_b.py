"""1F1B: alternates one forward and one backward, so that few activations are alive."""

from collections.abc import Iterable

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
    return _alternated(rank_stages, micro_batches, [len(rank_stages) - rank for rank in range(len(rank_stages))])


def eager_one_f_one_b(rank_stages: StagesByRank, micro_batches: int) -> ComputeOrders:
    """Return each rank's computations under eager 1F1B: 1F1B with up to twice the forwards before the first backward.

    With p ranks, a rank holds the activations of at most 2 (p - rank) - 1 microbatches. A rank has an input in stock
    while the next one is on its way. So messages that take less than a forward cost time only at the start and the end
    of the step, and under 1F1B in the middle, too.

    Source: Zhuang, Li, Zhao, Zheng, Stoica et al., "On Optimizing the Communication of Model Parallelism", MLSys 2023
    (arXiv 2211.05322), section 4.

    >>> [str(action) for action in eager_one_f_one_b([[0], [1]], 4)[0]]
    ['F0.0', 'F0.1', 'F0.2', 'B0.0', 'F0.3', 'B0.1', 'B0.2', 'B0.3']
    """
    return _alternated(rank_stages, micro_batches, range(2 * len(rank_stages) - 1, 0, -2))


def _alternated(rank_stages: StagesByRank, micro_batches: int, ahead: Iterable[int]) -> ComputeOrders:
    """Return forwards and backwards in turn on each rank, after its first `ahead` forwards."""
    return [
        alternate(units(Kind.F, block, micro_batches), units(Kind.B, block, micro_batches), ahead=first)
        for block, first in zip(rank_stages, ahead, strict=True)
    ]
