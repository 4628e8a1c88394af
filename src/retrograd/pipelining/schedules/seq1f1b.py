"""Seq1F1B: 1F1B whose units are segments of sequences, so that fewer activations are held."""

from itertools import chain

from retrograd.foundation.describe_value import describe
from retrograd.pipelining.schedules import stage_ranks
from retrograd.pipelining.schedules.actions import Action, Kind
from retrograd.pipelining.schedules.interleave import alternate
from retrograd.pipelining.schedules.stage_placement import stages_by_rank


def seq1f1b(stages: int, micro_batches: int, segments: int, *, ranks: int | None = None) -> list[list[Action]]:
    """Return each rank's computations under Seq1F1B, where each microbatch is cut into segments along its sequences.

    Segment s of microbatch b has the number b * segments + s, as if it were a microbatch.  Causal attention in it reads
    keys and values of the segments before.  So the backward pass of a microbatch begins with its last segment.  A rank
    holds at most p - rank + segments - 1 segments, where 1F1B holds p - rank microbatches.  If segments take equally
    long, a rank is idle for (p - 1)(F + B), with F and B of a segment.

    ranks: None: one for each stage.  Stages of a rank are neighbours, as under 1F1B.

    Raises TypeError or ValueError for numbers that are no integers of at least 1, and stages that cannot be divided
    among the ranks.

    Source: A. Sun, W. Zhao, X. Han, C. Yang, X. Zhang, Z. Liu, C. Shi and M. Sun, "Seq1F1B: Efficient Sequence-Level
    Pipeline Parallelism for Large Language Model Training" (2024).

    >>> for row in seq1f1b(stages=2, micro_batches=2, segments=2):
    ...     print(*row)
    F0.0 F0.1 F0.2 B0.1 F0.3 B0.0 B0.3 B0.2
    F1.0 F1.1 B1.1 F1.2 B1.0 F1.3 B1.3 B1.2
    """
    placement = stage_ranks("1f1b", stages, stages if ranks is None else ranks)
    for name, number in (("micro_batches", micro_batches), ("segments", segments)):
        if not isinstance(number, int) or isinstance(number, bool):
            raise TypeError(f"seq1f1b: {name} is {describe(number)}; it must be an integer")
        if number < 1:
            raise ValueError(f"seq1f1b: {name} is {number}; it must be at least 1")
    forwards = range(micro_batches * segments)
    backwards = list(
        chain.from_iterable(reversed(range(b * segments, (b + 1) * segments)) for b in range(micro_batches))
    )
    blocks = stages_by_rank(placement)
    return [
        list(
            alternate(
                ([Action(Kind.F, stage, number) for stage in block] for number in forwards),
                ([Action(Kind.B, stage, number) for stage in reversed(block)] for number in backwards),
                ahead=len(blocks) - rank + segments - 1,
            )
        )
        for rank, block in enumerate(blocks)
    ]
