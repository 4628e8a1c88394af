"""Squeeze a repeated building block: ranks wait only for data or memory, and weight halves fill the remaining time."""

from array import array
from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from retrograd.pipelining.schedules.actions import Kind
from retrograd.pipelining.schedules.building_block import RepeatedSteps, SlotOrder, Slots
from retrograd.pipelining.schedules.stage_placement import StagesByRank


def squeeze(
    slots: Slots, rank_stages: StagesByRank, interval: int, micro_batches: int, *, limit: int, lookahead: int
) -> list[RepeatedSteps]:
    """Return each rank's order of forwards and input halves without the gaps in it, and with its weight halves.

    slots: of the forwards and the input halves of a microbatch. A rank runs, slot by slot, the first action in the
    order of the slots whose inputs have arrived, among the next `lookahead`; if there is none, its oldest weight half.
    Each takes one slot. A rank holds at most `limit` activations, so a forward may wait for weight halves. A forward
    runs before an earlier action of the order only if both fit.

    If the ranks are in the same state as before, except that all microbatches have larger numbers, they will repeat
    the actions in between.  This cycle is not computed again, so time and memory do not depend on `micro_batches`.

    Raises ValueError if the ranks would wait for each other, or for memory, forever.

    >>> slots = {(Kind.F, 0): 0, (Kind.F, 1): 1, (Kind.I, 1): 2, (Kind.I, 0): 5}
    >>> for order in squeeze(slots, [[0], [1]], 3, 3, limit=2, lookahead=1):
    ...     print(*order)
    F0.0 F0.1 I0.0 W0.0 F0.2 I0.1 W0.1 I0.2 W0.2
    F1.0 I1.0 F1.1 I1.1 W1.0 F1.2 I1.2 W1.1 W1.2
    """
    stages = sum(map(len, rank_stages))
    done = [0] * (2 * stages) + [micro_batches]
    ranks = [
        _Rank(own, SlotOrder(_own_slots(slots, own), interval, micro_batches), done, limit, lookahead)
        for own in rank_stages
    ]
    spare = lookahead + 1  # microbatches left at the end of a cycle: fewer may change the order
    cycle = _find_cycle(ranks, done, spare)
    times = max(0, micro_batches - done[0] - spare) // cycle.micro_batches
    done[-1] = micro_batches - times * cycle.micro_batches
    for rank in ranks:
        rank.order.micro_batches = done[-1]
    while _run_slot(ranks, done):
        pass
    if any(rank.next_steps or rank.weights for rank in ranks):
        raise ValueError(f"squeeze: the order cannot run with {limit} activations per rank; no rank can continue")
    return [
        RepeatedSteps(
            [(kind, stage) for kind in (Kind.F, Kind.I, Kind.W) for stage in own],
            rank.steps[:end],
            rank.steps[start:end],
            times,
            rank.steps[end:],
        )
        for own, rank, start, end in zip(rank_stages, ranks, cycle.starts, cycle.ends, strict=True)
    ]


def _own_slots(slots: Slots, own: Sequence[int]) -> list[int]:
    return [slots[kind, stage] for kind in (Kind.F, Kind.I) for stage in own]


class _Cycle(NamedTuple):
    """The number of microbatches after which all ranks repeat their actions, and where they do so first."""

    micro_batches: int
    starts: list[int]
    ends: list[int]


def _find_cycle(ranks: "list[_Rank]", done: list[int], spare: int) -> _Cycle:
    """Run until a state is repeated, or only `spare` microbatches have not begun; the cycle is empty then.

    One state is remembered at a time; when the microbatches have grown by a quarter, it is a later one (as with powers
    of two in R. Brent, "An Improved Monte Carlo Factorization Algorithm", 1980).
    """
    remembered: object = None
    begun = latest = 0
    starts = [0] * len(ranks)
    while done[0] + spare < done[-1] and _run_slot(ranks, done):
        if done[0] == latest:
            continue
        latest = done[0]
        state = [latest - number for number in done[:-1]], [tuple(rank.weights) for rank in ranks]
        if state == remembered:
            return _Cycle(latest - begun, starts, [len(rank.steps) for rank in ranks])
        if latest >= begun + max(1, begun // 4):
            remembered, begun, starts = state, latest, [len(rank.steps) for rank in ranks]
    return _Cycle(done[-1], [0] * len(ranks), [0] * len(ranks))


def _run_slot(ranks: "list[_Rank]", done: list[int]) -> bool:
    """Run an action of every rank that can; return whether there is one.  Its result has arrived in the next slot."""
    found = [number for rank in ranks if (number := rank.run()) is not None]
    for number in found:
        if number >= 0:
            done[number] += 1
    return bool(found)


class _Rank:
    """The actions of one rank so far, and the number of activations that it holds.

    Its steps are numbered: the forwards of its stages, their input halves, and their weight halves.
    done: how many microbatches each stage has finished forward, and then the same for input halves; the last number is
    that of all microbatches, which are the inputs of the first stage.
    """

    def __init__(self, own: Sequence[int], order: SlotOrder, done: list[int], limit: int, lookahead: int) -> None:
        stages = len(done) // 2
        self.order = order
        self.steps = array("H")
        self.weights: deque[int] = deque()
        self._done = done
        self._limit = limit
        self._lookahead = lookahead
        self._held = 0
        self._stages = len(own)
        # The number of a step in `done`, and of the step whose result it needs.
        self._numbers = [*own, *(stages + stage for stage in own)]
        self._sources = [stage - 1 for stage in own] + [
            stages - 1 if stage + 1 == stages else stages + stage + 1 for stage in own
        ]
        self._rest = iter(order)
        self.next_steps = list(islice(self._rest, lookahead))

    def run(self) -> int | None:
        """Run the action of the next slot; return its number in `done`, -1 for a weight half, None if it waits."""
        position = self._next_position()
        if position is None:
            if not self.weights:
                return None
            self.steps.append(self.weights.popleft())
            self._held -= 1
            return -1
        step = self.next_steps.pop(position)
        self.next_steps += islice(self._rest, 1)
        self.steps.append(step)
        if step < self._stages:
            self._held += 1
        else:
            self.weights.append(step + self._stages)
        return self._numbers[step]

    def _next_position(self) -> int | None:
        """Return how many actions of the rest come before the first that can run now."""
        done, stages, before = self._done, self._stages, self.next_steps
        needed = self._held - len(self.weights)  # once the pending weight halves have run
        most = self._held
        for position, step in enumerate(before):
            has_input = done[self._sources[step]] > done[self._numbers[step]]
            if has_input and (step >= stages or most < self._limit) and step not in before[:position]:
                return position
            needed += 1 if step < stages else -1
            most = max(most, needed)
        return None
