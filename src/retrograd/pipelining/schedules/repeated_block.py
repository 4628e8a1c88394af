"""Orders of deep zigzags: a building block that leaves time for messages, repeated for every microbatch."""

from collections.abc import Iterable, Sequence
from itertools import accumulate

from retrograd.pipelining.schedules.actions import Action, Kind
from retrograd.pipelining.schedules.greedy import list_schedule
from retrograd.pipelining.schedules.squeeze import squeeze
from retrograd.pipelining.schedules.stage_placement import StagesByRank

_PAUSES = (3, 2, 1, 0)
_LOOKAHEADS = (1, 2, 4)

Slots = dict[tuple[Kind, int], int]


def split_order(rank_stages: StagesByRank, micro_batches: int, *, limit: int) -> list[list[Action]]:
    """Return each rank's forwards and backward halves, with at most `limit` activations of a single stage on a rank.

    Between two stages on different ranks the building block has pauses for messages: as long ones as the memory allows,
    because the activations wait, too. `limit` is at least the number of a rank's stages.

    >>> " ".join(map(str, split_order([[0, 3, 4], [1, 2, 5]], 2, limit=6)[1]))
    'F1.0 F2.0 F1.1 F2.1 F5.0 I5.0 F5.1 I5.1 I2.0 I1.0 I2.1 I1.1 W5.0 W5.1 W2.0 W1.0 W2.1 W1.1'
    """
    for pause in _PAUSES:
        slots = place(rank_stages, Kind.I, pause)
        orders = repeat(slots, rank_stages, micro_batches)
        for lookahead in _LOOKAHEADS:
            try:
                return squeeze(orders, limit=limit, lookahead=lookahead)
            except ValueError:  # the ranks wait for memory
                continue
    return list_schedule(rank_stages, micro_batches, limit=limit)


def whole_order(rank_stages: StagesByRank, micro_batches: int, *, limit: int) -> list[list[Action]]:
    """Return each rank's forwards and whole backward passes, with `limit` activations on a rank if that is possible.

    >>> " ".join(map(str, whole_order([[0, 3], [1, 2]], 2, limit=4)[1]))
    'F1.0 F2.0 F1.1 F2.1 B2.0 B1.0 B2.1 B1.1'
    """
    found: list[list[Action]] = []
    for pause in _PAUSES:
        slots = place(rank_stages, Kind.B, pause)
        found = repeat(slots, rank_stages, micro_batches)
        if max(map(_most_activations, found)) <= limit:
            break
    return found


def place(rank_stages: StagesByRank, backward: Kind, pause: int) -> Slots:
    """Return the slots of one microbatch: each of its computations as early as a block on every interval allows.

    backward: I or B, for which a slot is counted as well. pause: the slots between computations of different ranks.
    The interval is three slots for each stage of a rank; the third ones remain free, for W or the rest of B.

    Source: Qi, Wan, Amar, Lin, "Pipeline Parallelism with Controllable Memory", NeurIPS 2024 (arXiv 2405.15362): the
    repeated building block. Its search for free slots is modulo scheduling: B. R. Rau, "Iterative Modulo Scheduling"
    (1994), without the iterations.

    >>> list(place([[0, 3], [1, 2]], Kind.I, 0).values())
    [0, 1, 2, 3, 4, 5, 6, 7]
    """
    rank_of = {stage: rank for rank, stages in enumerate(rank_stages) for stage in stages}
    interval = 3 * len(rank_stages[0])
    taken: list[set[int]] = [set() for _ in rank_stages]
    slots: Slots = {}
    time, before = 0, 0
    there = [(Kind.F, stage) for stage in range(len(rank_of))]
    for kind, stage in there + [(backward, stage) for _, stage in reversed(there)]:
        rank = rank_of[stage]
        time += pause * (rank != before)
        while time % interval in taken[rank]:
            time += 1
        taken[rank].add(time % interval)
        slots[kind, stage] = time
        time, before = time + 1, rank
    return slots


def repeat(slots: Slots, rank_stages: StagesByRank, micro_batches: int) -> list[list[Action]]:
    """Return each rank's computations by their slots, with a block every interval."""
    interval = 3 * len(rank_stages[0])
    own = [[(key, slot) for key, slot in slots.items() if key[1] in stages] for stages in rank_stages]
    return [_repeated(some, interval, micro_batches) for some in own]


def _repeated(own: Iterable[tuple[tuple[Kind, int], int]], interval: int, micro_batches: int) -> list[Action]:
    numbered = [
        (slot + interval * number, Action(kind, stage, number))
        for (kind, stage), slot in own
        for number in range(micro_batches)
    ]
    return [action for _, action in sorted(numbered)]


def _most_activations(actions: Sequence[Action]) -> int:
    return max(accumulate(1 if action.kind is Kind.F else -1 for action in actions))
