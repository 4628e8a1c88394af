"""Whether a rank with limited memory can finish what it has begun."""

from collections.abc import Sequence


def can_finish(
    stages: Sequence[int],
    forwards: Sequence[int],
    inputs: Sequence[int],
    weights: Sequence[int],
    *,
    free: float,
    saved: Sequence[float],
    kept: Sequence[float],
    growth: Sequence[float] | None = None,
) -> bool:
    """Return whether the free memory lets a rank finish its microbatches one after the other, oldest first.

    stages: of the rank.  forwards, inputs, weights: how many microbatches each stage has taken in each kind.
    saved: what a stage saves for a microbatch; kept: what it holds between its input half and its weight half; growth:
     what its input half adds to `saved` at most, if that is not the difference.

    If this holds on every rank, the oldest microbatch of all can always go on, so ranks never wait for memory forever.

    Source: E. W. Dijkstra, "The mathematics behind the Banker's Algorithm", EWD 623 (1977).

    Two stages with room for three activations, which have run two forwards, three, and three of the first stage:

    >>> none, one = [0, 0], [1, 1]
    >>> can_finish([0, 1], [2, 0], none, none, free=1, saved=one, kept=one)
    True
    >>> can_finish([0, 1], [2, 1], none, none, free=0, saved=one, kept=one)
    True
    >>> can_finish([0, 1], [3, 0], none, none, free=0, saved=one, kept=one)
    False
    """
    if growth is None:
        growth = [max(most - least, 0.0) for most, least in zip(kept, saved, strict=True)]
    begun, oldest = max(forwards[stage] for stage in stages), min(weights[stage] for stage in stages)
    for micro_batch in range(oldest, begun):
        held = needed = 0.0
        for stage in stages:
            if inputs[stage] <= micro_batch:
                needed += growth[stage]
            if forwards[stage] <= micro_batch:
                free -= saved[stage]
                held += saved[stage]
            elif weights[stage] <= micro_batch:
                held += kept[stage] if inputs[stage] > micro_batch else saved[stage]
        if free < needed:
            return False
        free += held
    return free >= 0
