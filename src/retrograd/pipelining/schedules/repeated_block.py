"""Orders of deep zigzags: a building block that leaves time for messages, repeated for every microbatch."""

from collections.abc import Iterable
from itertools import accumulate

from retrograd.pipelining.schedules.actions import Action, Kind
from retrograd.pipelining.schedules.building_block import interval_of, place, repeat_block
from retrograd.pipelining.schedules.greedy import list_schedule
from retrograd.pipelining.schedules.squeeze import squeeze
from retrograd.pipelining.schedules.stage_placement import ComputeOrders, StagesByRank

_PAUSES = (3, 2, 1, 0)
_LOOKAHEADS = (1, 2, 4)


def split_order(rank_stages: StagesByRank, micro_batches: int, *, limit: int) -> ComputeOrders:
    """Return each rank's forwards and backward halves, with at most `limit` activations of a single stage on a rank.

    Between two stages on different ranks the building block has pauses for messages: as long ones as the memory allows,
    because the activations wait, too. `limit` is at least the number of a rank's stages.

    >>> " ".join(map(str, split_order([[0, 3, 4], [1, 2, 5]], 2, limit=6)[1]))
    'F1.0 F2.0 F1.1 F2.1 F5.0 I5.0 F5.1 I5.1 I2.0 I1.0 I2.1 I1.1 W5.0 W5.1 W2.0 W1.0 W2.1 W1.1'
    """
    for pause in _PAUSES:
        slots = place(rank_stages, Kind.I, pause)
        for lookahead in _LOOKAHEADS:
            try:
                return squeeze(
                    slots, rank_stages, interval_of(rank_stages), micro_batches, limit=limit, lookahead=lookahead
                )
            except ValueError:  # the ranks wait for memory
                continue
    return list_schedule(rank_stages, micro_batches, limit=limit)


def whole_order(rank_stages: StagesByRank, micro_batches: int, *, limit: int) -> ComputeOrders:
    """Return each rank's forwards and whole backward passes, with `limit` activations on a rank if that is possible.

    >>> " ".join(map(str, whole_order([[0, 3], [1, 2]], 2, limit=4)[1]))
    'F1.0 F2.0 F1.1 F2.1 B2.0 B1.0 B2.1 B1.1'
    """
    slots = {}
    for pause in _PAUSES:
        slots = place(rank_stages, Kind.B, pause)
        # All the microbatches that are in the pipeline at one time.
        some = min(micro_batches, max(slots.values()) // interval_of(rank_stages) + 1)
        if max(map(_most_activations, repeat_block(slots, rank_stages, some))) <= limit:
            break
    return repeat_block(slots, rank_stages, micro_batches)


def _most_activations(actions: Iterable[Action]) -> int:
    return max(accumulate(1 if action.kind is Kind.F else -1 for action in actions))
