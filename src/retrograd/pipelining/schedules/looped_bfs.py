"""Looped breadth-first: one stage after the other, each with all microbatches."""

from itertools import chain

from retrograd.pipelining.schedules.actions import Kind
from retrograd.pipelining.schedules.interleave import in_rounds
from retrograd.pipelining.schedules.stage_placement import ComputeOrders, StagesByRank


def looped_bfs(rank_stages: StagesByRank, micro_batches: int) -> ComputeOrders:
    """Return each rank's computations under looped breadth-first: all microbatches on one stage, then the next.

    The bubble is that of interleaved 1F1B. A rank holds the activations of all microbatches on all its stages. The
    advantage over interleaved 1F1B is that a stage's parameters are needed in two runs only.

    Source: Lamy-Poirier, "Breadth-First Pipeline Parallelism", 2023 (arXiv 2211.05953). Backward passes run in the
    order of the forward passes, so that gradients are summed in the same order as by the other schedules.

    >>> " ".join(map(str, looped_bfs([[0, 2], [1, 3]], 2)[1]))
    'F1.0 F1.1 F3.0 F3.1 B3.0 B3.1 B1.0 B1.1'
    """
    whole = [range(micro_batches)]
    return [
        chain.from_iterable(chain(in_rounds(Kind.F, stages, whole), in_rounds(Kind.B, stages, whole)))
        for stages in rank_stages
    ]
