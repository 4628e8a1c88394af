"""Chimera: 1F1B in two directions at once, so that a rank computes for one while it would wait in the other."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, repeat

from retrograd.pipelining.schedules.actions import Action, Kind
from retrograd.pipelining.schedules.stage_placement import ComputeOrders, StagesByRank, block_of


def chimera(rank_stages: StagesByRank, micro_batches: int) -> ComputeOrders:
    """Return each rank's computations under Chimera: even microbatches from the first rank to the last, odd ones back.

    rank_stages: of the even microbatches; for the odd ones, a rank has the stages of the rank at the other end, too.

    With p ranks and k p microbatches, a rank is idle for (p - 2)(B + (k - 1)(B - F)) if a backward takes at least as
    long as a forward: for p - 2 of 2 k p + p - 2 slots if B = F, and for p - 2 backwards if k = 1.  It holds the
    activations of p / 2 + 1 (first and last rank) to p microbatches.

    Source: Li and Hoefler, "Chimera: Efficiently Training Large-Scale Neural Networks with Bidirectional Pipelines",
    SC 2021 (arXiv 2107.06925), sections 3.1 to 3.3.  The paper merges two orders of p / 2 microbatches, and appends
    groups of p to each other.  Here each rank runs, slot by slot, what is ready, a backward first, with at most p / 2
    microbatches of a direction at a time.  For p microbatches it is the same order; any number has one.

    >>> from retrograd.pipelining.schedules.actions import format_schedule
    >>> print(format_schedule(chimera([[0], [1], [2], [3]], 4)))
    0: F0.0 F0.2 F3.1 B3.1 F3.3 B3.3 B0.0 B0.2
    1: F1.0 F2.1 F1.2 F2.3 B2.1 B1.0 B2.3 B1.2
    2: F1.1 F2.0 F1.3 F2.2 B2.0 B1.1 B2.2 B1.3
    3: F0.1 F0.3 F3.0 B3.0 F3.2 B3.2 B0.1 B0.3
    """
    ranks = len(rank_stages)
    groups = max(micro_batches // ranks - 3, 0)  # of p microbatches, in which the order repeats itself
    rows = _slot_orders(ranks, micro_batches - groups * ranks)
    return [_RankOrder(rank_stages, rank, row, groups) for rank, row in enumerate(rows)]


Step = tuple[Kind, int]
"""A kind of computation and a direction; its microbatches run in order."""


class _RankOrder:
    """The order of one rank; iteration yields the actions, one at a time, because there may be millions."""

    def __init__(self, rank_stages: StagesByRank, rank: int, steps: Sequence[Step], groups: int) -> None:
        size = 2 * len(rank_stages)  # the steps of a rank for a group
        self._blocks = [block_of(rank_stages, rank, direction) for direction in (0, 1)]
        self._first, self._cycle, self._last = steps[:size], steps[size : 2 * size], steps[size:]
        self._groups = groups

    def __iter__(self) -> Iterator[Action]:
        numbers: Counter[Step] = Counter()
        for step in chain(self._first, chain.from_iterable(repeat(self._cycle, self._groups)), self._last):
            kind, direction = step
            block, micro_batch = self._blocks[direction], 2 * numbers[step] + direction
            numbers[step] += 1
            for stage in block if kind is Kind.F else block[::-1]:
                yield Action(kind, stage, micro_batch)


def _slot_orders(ranks: int, micro_batches: int) -> list[list[Step]]:
    """Return the steps of each rank, of which all run the next one in every slot if it is ready."""
    state = _State(ranks, micro_batches)
    rows: list[list[Step]] = [[] for _ in range(ranks)]
    while sum(map(len, rows)) < 2 * ranks * micro_batches:
        # All ranks choose before any of them is done: the other ranks have the value a slot later.
        slot = [state.choose(rank) for rank in range(ranks)]
        for row, chosen in zip(rows, slot, strict=True):
            if chosen is not None:
                kind, direction, position = chosen
                state.done[kind][direction][position] += 1
                row.append((kind, direction))
    return rows


class _State:
    """How many microbatches of a direction each position of its ranks has finished, per kind."""

    def __init__(self, ranks: int, micro_batches: int) -> None:
        self.ranks = ranks
        self.micro_batches = [len(range(direction, micro_batches, 2)) for direction in (0, 1)]
        self.done = {kind: [[0] * ranks for _ in (0, 1)] for kind in (Kind.F, Kind.B)}

    def choose(self, rank: int) -> tuple[Kind, int, int] | None:
        """Return the kind, direction and position of what a rank runs next; None if nothing is ready."""
        positions = [(0, rank), (1, self.ranks - 1 - rank)]
        positions.sort(key=lambda one: one[1], reverse=True)  # of two, the one that is further along
        ready = [
            *((Kind.B, *one) for one in positions if self._can_backward(*one)),
            *((Kind.F, *one) for one in positions if self._can_forward(*one)),
        ]
        return ready[0] if ready else None

    def _can_backward(self, direction: int, position: int) -> bool:
        forward, backward = (self.done[kind][direction] for kind in (Kind.F, Kind.B))
        received = forward[position] if position == self.ranks - 1 else backward[position + 1]
        return backward[position] < received

    def _can_forward(self, direction: int, position: int) -> bool:
        forward, backward = (self.done[kind][direction] for kind in (Kind.F, Kind.B))
        received = forward[position - 1] if position else self.micro_batches[direction]
        most = min(self.ranks - position, self.ranks // 2)
        return forward[position] < received and forward[position] - backward[position] < most
