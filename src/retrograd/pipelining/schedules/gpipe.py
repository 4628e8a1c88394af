"""GPipe: all forwards, then all backwards."""

from retrograd.pipelining.actions import Action, Kind


def gpipe(rank: int, stages: int, micro_batches: int) -> list[Action]:
    """What `rank` computes under GPipe: every micro-batch forward, then every micro-batch backward.

    Each rank has one stage and keeps the activations of all micro-batches. With forwards (and backwards) that
    take equally long on every stage the bubble is (p - 1) / (m + p - 1) for p stages and m micro-batches.

    Source: Huang et al., "GPipe: Efficient Training of Giant Neural Networks using Pipeline Parallelism",
    2019 (arXiv 1811.06965). The backwards run in the order of the forwards, as in 1F1B, so that both
    schedules sum gradients in the same order.

    >>> [str(action) for action in gpipe(0, 2, 2)]
    ['F0.0', 'F0.1', 'B0.0', 'B0.1']
    """
    return [Action(kind, rank, number) for kind in (Kind.F, Kind.B) for number in range(micro_batches)]
