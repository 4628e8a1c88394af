"""The building block of a schedule: the computations of one microbatch in slots, repeated at an interval."""

from collections.abc import Iterator, Sequence
from itertools import chain, count, repeat

from retrograd.pipelining.schedules.actions import Action, Kind
from retrograd.pipelining.schedules.interleave import number_actions
from retrograd.pipelining.schedules.stage_placement import StagesByRank

Step = tuple[Kind, int]
"""A kind of computation and a stage; its microbatches run in order."""

Slots = dict[Step, int]
"""The slot of every step for the first microbatch; the same step of the next one is an interval later."""


class RepeatedSteps:
    """The order of one rank: its first steps, a cycle of steps that is repeated, and its last steps.

    steps: by number; the other sequences are such numbers.  Iteration yields the actions, one at a time, because there
    may be millions.

    >>> " ".join(map(str, RepeatedSteps([(Kind.F, 0), (Kind.B, 0)], [0], [0, 1], 2, [1])))
    'F0.0 F0.1 B0.0 F0.2 B0.1 B0.2'
    """

    def __init__(
        self, steps: Sequence[Step], first: Sequence[int], cycle: Sequence[int], times: int, last: Sequence[int]
    ) -> None:
        self._steps = steps
        self._first, self._cycle, self._last = first, cycle, last
        self._times = times

    def __iter__(self) -> Iterator[Action]:
        actions = [number_actions(kind, stage, count()) for kind, stage in self._steps]
        numbers = chain(self._first, chain.from_iterable(repeat(self._cycle, self._times)), self._last)
        return map(next, map(actions.__getitem__, numbers))


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
    interval = interval_of(rank_stages)
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


def interval_of(rank_stages: StagesByRank) -> int:
    """Return the slots from one building block to the next: F, I and W of a rank's stages."""
    return 3 * len(rank_stages[0])


class SlotOrder:
    """The steps of one rank in the order of their slots, with a block every interval; iteration yields their numbers.

    slots: of the block, by the number of the step.  micro_batches may be reduced while the order is read, to a number
    above those begun.

    >>> list(SlotOrder([0, 3], 2, 3))
    [0, 0, 1, 0, 1, 1]
    """

    def __init__(self, slots: Sequence[int], interval: int, micro_batches: int) -> None:
        self.micro_batches = micro_batches
        self.delay = max(slots) // interval
        in_order = sorted((slot % interval, slot // interval, number) for number, slot in enumerate(slots))
        self._phases = [(delay, number) for _, delay, number in in_order]

    def __iter__(self) -> Iterator[int]:
        window = 0
        while window < self.micro_batches + self.delay:
            yield from self.window(window)
            window += 1

    def window(self, number: int) -> list[int]:
        """Return the steps in the interval with this number."""
        return [step for delay, step in self._phases if 0 <= number - delay < self.micro_batches]


def repeat_block(slots: Slots, rank_stages: StagesByRank, micro_batches: int) -> list[RepeatedSteps]:
    """Return each rank's computations by their slots, with a block every interval.

    >>> " ".join(map(str, repeat_block(place([[0, 3], [1, 2]], Kind.B, 0), [[0, 3], [1, 2]], 2)[0]))
    'F0.0 F3.0 B3.0 F0.1 B0.0 F3.1 B3.1 B0.1'
    """
    return [_repeated(own_block(slots, stages), interval_of(rank_stages), micro_batches) for stages in rank_stages]


def _repeated(block: Slots, interval: int, micro_batches: int) -> RepeatedSteps:
    """Return the order of a rank, whose intervals are all alike except the first and the last ones."""
    order = SlotOrder(list(block.values()), interval, micro_batches)
    delay = order.delay
    if micro_batches <= delay:
        return RepeatedSteps(list(block), list(order), (), 0, ())
    first, last = (
        [step for number in range(delay) for step in order.window(start + number)] for start in (0, micro_batches)
    )
    return RepeatedSteps(list(block), first, order.window(delay), micro_batches - delay, last)


def own_block(slots: Slots, stages: Sequence[int]) -> Slots:
    """Return the slots of a rank with these stages."""
    return {step: slot for step, slot in slots.items() if step[1] in stages}
