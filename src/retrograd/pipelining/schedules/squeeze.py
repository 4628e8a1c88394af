"""Squeeze an order: ranks wait only for data or memory, and weight halves fill the remaining time."""

from collections import defaultdict, deque
from collections.abc import Sequence

from retrograd.pipelining.schedules.actions import Action, Kind

_ACTIVATIONS = {Kind.F: 1, Kind.I: -1}
"""The change in activations, if every weight half follows its input half at once."""


def squeeze(orders: Sequence[Sequence[Action]], *, limit: int, lookahead: int) -> list[list[Action]]:
    """Return each rank's order of forwards and input halves without the gaps in it, and with its weight halves.

    orders: per rank its forwards and input halves. A rank runs, slot by slot, the first action of its order whose
    inputs have arrived, among the next `lookahead`; if there is none, its oldest weight half. Each takes one slot. A
    rank holds at most `limit` activations, so a forward may wait for weight halves. A forward runs before an earlier
    action of the order only if both fit.

    Raises ValueError if the ranks would wait for each other, or for memory, forever.

    >>> from retrograd.pipelining.schedules.actions import format_schedule, parse_schedule
    >>> orders = parse_schedule("0: F0.0 F0.1 I0.0 I0.1\\n1: F1.0 I1.0 F1.1 I1.1")
    >>> print(format_schedule(squeeze(orders, limit=2, lookahead=1)))
    0: F0.0 F0.1 I0.0 W0.0 I0.1 W0.1
    1: F1.0 I1.0 F1.1 I1.1 W1.0 W1.1
    """
    stages = {action.stage for order in orders for action in order}
    finished = _Finished(max(stages))
    ranks = [_Rank(order, limit, lookahead) for order in orders]
    while any(rank.rest or rank.weights for rank in ranks):
        slot = [rank.run(finished) for rank in ranks]
        if not any(slot):
            raise ValueError(f"squeeze: the order cannot run with {limit} activations per rank; no rank can continue")
        for action in filter(None, slot):
            finished.add(action)
    return [rank.actions for rank in ranks]


class _Finished:
    """The number of microbatches that each stage has finished, per kind; stages process them in order."""

    def __init__(self, last_stage: int) -> None:
        self.last_stage = last_stage
        self.counts: dict[tuple[Kind, int], int] = defaultdict(int)

    def add(self, action: Action) -> None:
        self.counts[action.kind, action.stage] += 1

    def allows(self, action: Action) -> bool:
        """Return whether the inputs of a forward or an input half have been computed."""
        kind, stage, micro_batch, _ = action
        if self.counts[kind, stage] != micro_batch:
            return False
        if kind is Kind.F:
            return stage == 0 or self.counts[Kind.F, stage - 1] > micro_batch
        after = (Kind.F, stage) if stage == self.last_stage else (Kind.I, stage + 1)
        return self.counts[after] > micro_batch


class _Rank:
    """The remaining actions of one rank, and the number of activations that it holds."""

    def __init__(self, order: Sequence[Action], limit: int, lookahead: int) -> None:
        self.actions: list[Action] = []
        self.rest = list(reversed(order))
        self.weights: deque[Action] = deque()
        self.limit = limit
        self.lookahead = lookahead
        self.held = 0

    def run(self, finished: _Finished) -> Action | None:
        """Append the action of the next slot to the order, and return it; None if the rank has to wait."""
        position = self._next_position(finished)
        if position is None and not self.weights:
            return None
        action = self.weights.popleft() if position is None else self.rest.pop(-1 - position)
        self.actions.append(action)
        if action.kind is Kind.I:
            self.weights.append(action._replace(kind=Kind.W))
        else:
            self.held += 1 if action.kind is Kind.F else -1
        return action

    def _next_position(self, finished: _Finished) -> int | None:
        """Return how many actions of the rest come before the first that can run now."""
        needed = self.held - len(self.weights)  # once the pending weight halves have run
        most = self.held
        for position, action in enumerate(self.rest[: -1 - self.lookahead : -1]):
            if finished.allows(action) and (action.kind is Kind.I or most < self.limit):
                return position
            needed += _ACTIVATIONS[action.kind]
            most = max(most, needed)
        return None
