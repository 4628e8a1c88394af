"""V-Half and V-Min: two stages per rank in a V, with one half and one third of the memory of 1F1B."""

from collections.abc import Sequence

from retrograd.pipelining.schedules.actions import Kind
from retrograd.pipelining.schedules.building_block import Slots
from retrograd.pipelining.schedules.repeated_block import split_order
from retrograd.pipelining.schedules.squeeze import squeeze
from retrograd.pipelining.schedules.stage_placement import ComputeOrders, StagesByRank
from retrograd.pipelining.schedules.zero_bubble import zb_h1

_INTERVAL = 6
"""The slots from one building block to the next: F, I and W of two stages."""


def v_half(rank_stages: StagesByRank, micro_batches: int) -> ComputeOrders:
    """Return each rank's computations under V-Half: ZB-V with about half of its activations.

    With p ranks, a rank holds at most p + 2 activations of a single stage, p + 1 if p is odd: the memory of
    (p + 2) / 2 microbatches, rounded down, where 1F1B holds p. From its first to its last action a rank is idle for
    6 c - 7 slots, c = p / 2 rounded up, if F, I and W of a stage take one slot each, p is at least 3 and m at
    least p. The order is made for such times; with others it may take longer than 1F1B.

    Source: Qi, Wan, Amar, Lin, "Pipeline Parallelism with Controllable Memory", NeurIPS 2024 (arXiv 2405.15362):
    its building block, repeated and squeezed. With one stage per rank there is no V, and this is ZB-H1; with more
    than two they zigzag over the ranks, and `split_order` makes an order with time for messages, within the memory of
    the same number of microbatches.

    >>> " ".join(map(str, v_half([[0, 3], [1, 2]], 3)[1]))
    'F1.0 F2.0 F1.1 F2.1 I2.0 I1.0 W2.0 F1.2 W1.0 F2.2 I2.1 I1.1 I2.2 I1.2 W2.1 W1.1 W2.2 W1.2'
    """
    ranks = len(rank_stages)
    pause = 3 if ranks % 2 == 0 else 0
    return _order(rank_stages, micro_batches, (ranks + 2) // 2, (2, 1, 2, 1), (1, 1 + pause, 2))


def v_min(rank_stages: StagesByRank, micro_batches: int) -> ComputeOrders:
    """Return each rank's computations under V-Min: ZB-V with about one third of its activations, the least in a V.

    With p ranks, a rank holds the activations of at most (p + 4) / 3 microbatches, rounded down, where 1F1B holds
    p: twice as many of a single stage. From its first to its last action a rank is idle for 4 p - 7, 4 p - 5 or
    4 p - 9 slots, for p = 0, 1 and 2 modulo 3, if F, I and W of a stage take one slot each, p is at least 3 and m at
    least p. The order is made for such times; with others ranks wait longer than under V-Half.

    Source: as `v_half`.

    >>> " ".join(map(str, v_min([[0, 3], [1, 2]], 3)[1]))
    'F1.0 F2.0 F1.1 F2.1 I2.0 I1.0 W2.0 W1.0 F1.2 F2.2 I2.1 I1.1 I2.2 I1.2 W2.1 W1.1 W2.2 W1.2'
    """
    ranks = len(rank_stages)
    pause = (2, 0, 3)[ranks % 3]
    return _order(rank_stages, micro_batches, (ranks + 4) // 3, (1, 1, 1, 1), (1, 1 + pause, 1))


def _building_block(ranks: int, offsets: Sequence[int], turns: Sequence[int]) -> Slots:
    """Return the building block: the slots of one microbatch, without its weight halves.

    offsets: slots from one rank to the next, on the way of the first stages' forwards, the second stages' forwards,
    the second stages' input halves, and the first stages'. turns: slots between one of these ways and the next.

    >>> list(_building_block(3, (1, 1, 1, 1), (1, 3, 1)).values())
    [0, 1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 13]
    """
    forwards = [(Kind.F, stage) for stage in range(2 * ranks)]
    steps = iter(forwards + [(Kind.I, stage) for _, stage in reversed(forwards)])
    slots: Slots = {}
    start = 0
    for offset, turn in zip(offsets, (*turns, 0), strict=True):
        for hop in range(ranks):
            slots[next(steps)] = last = start + offset * hop
        start = last + turn
    return slots


def _order(
    rank_stages: StagesByRank, micro_batches: int, held: int, offsets: Sequence[int], turns: Sequence[int]
) -> ComputeOrders:
    """Return the orders of repeated and squeezed blocks, within the memory of `held` microbatches."""
    ranks, per_rank = len(rank_stages), len(rank_stages[0])
    if per_rank == 1:
        return zb_h1(rank_stages, micro_batches)
    if per_rank > 2:
        return split_order(rank_stages, micro_batches, limit=per_rank * held)
    block = _building_block(ranks, offsets, turns)
    # A pause before the input halves keeps actions of different blocks apart, but is waste in the first block. A rank
    # that may run the second next action fills it. Without a pause that would only delay the action that others need.
    lookahead = 2 if turns[1] > 1 else 1
    return squeeze(block, rank_stages, _INTERVAL, micro_batches, limit=2 * held, lookahead=lookahead)
