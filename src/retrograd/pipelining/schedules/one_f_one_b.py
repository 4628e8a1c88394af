"""1F1B: one forward, one backward, so that few activations are alive."""

from retrograd.pipelining.actions import Action, Kind


def one_f_one_b(rank: int, stages: int, micro_batches: int) -> list[Action]:
    """What `rank` computes under 1F1B: forwards to fill the pipeline, one forward and one backward by turns,
    backwards to drain it.

    Each rank has one stage and keeps the activations of at most min(stages - rank, micro_batches)
    micro-batches. The bubble is GPipe's.

    Source: Narayanan et al., "Memory-Efficient Pipeline-Parallel DNN Training", 2021 (PipeDream-Flush, arXiv
    2006.09503); Fan et al., "DAPPLE: A Pipelined Data Parallel Approach for Training Large Models", 2021
    (arXiv 2007.01045).

    >>> [str(action) for action in one_f_one_b(0, 2, 3)]
    ['F0.0', 'F0.1', 'B0.0', 'F0.2', 'B0.1', 'B0.2']
    """
    ahead = min(stages - rank - 1, micro_batches)
    forwards = [Action(Kind.F, rank, micro_batch) for micro_batch in range(micro_batches)]
    backwards = [Action(Kind.B, rank, micro_batch) for micro_batch in range(micro_batches)]
    pairs = zip(forwards[ahead:], backwards, strict=False)
    steady = [action for pair in pairs for action in pair]
    return forwards[:ahead] + steady + backwards[micro_batches - ahead :]
