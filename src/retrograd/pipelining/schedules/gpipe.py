"""GPipe: all forward passes, then all backward passes."""

from retrograd.pipelining.schedules.actions import Kind
from retrograd.pipelining.schedules.interleave import alternate, units
from retrograd.pipelining.schedules.stage_placement import ComputeOrders, StagesByRank


def gpipe(rank_stages: StagesByRank, micro_batches: int) -> ComputeOrders:
    """Return each rank's computations under GPipe: every microbatch forward, then every microbatch backward.

    Each rank holds the activations of all microbatches. If all ranks take equally long, p ranks and m
    microbatches have a bubble of (p - 1) / (m + p - 1).

    Source: Huang et al., "GPipe: Efficient Training of Giant Neural Networks using Pipeline Parallelism",
    2019 (arXiv 1811.06965). Backward passes run in the order of the forward passes, as in 1F1B, so that both
    schedules sum gradients in the same order.

    >>> [str(action) for action in gpipe([[0], [1]], 2)[0]]
    ['F0.0', 'F0.1', 'B0.0', 'B0.1']
    """
    return [
        alternate(units(Kind.F, block, micro_batches), units(Kind.B, block, micro_batches), ahead=micro_batches)
        for block in rank_stages
    ]
