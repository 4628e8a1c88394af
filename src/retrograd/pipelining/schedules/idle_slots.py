"""The idle slots of PyTorch's orders: where a rank waits for others, if all computations take equally long."""

import math
from collections.abc import Callable, Sequence

from retrograd.pipelining.schedules.actions import Action, Kind

Row = list[Action | None]
Rule = Callable[[list[list[Action]]], list[Row]]
BACKWARD = (Kind.B, Kind.I)


def with_idle_slots(name: str, orders: Sequence[Sequence[Action]]) -> list[Row]:
    """Return the computations of each rank under a schedule, with None for its idle slots, as PyTorch lists them.

    An order is shifted by a slot per rank. A rank waits after its first forwards for the first backward, and under
    "Interleaved1F1B" before every backward after its last forward. The other schedules have no idle slots.

    >>> from retrograd.pipelining.schedules import make_schedule
    >>> for row in with_idle_slots("LoopedBFS", make_schedule("LoopedBFS", stages=2, micro_batches=1, ranks=2)):
    ...     print(*row)
    F0.0 None None B0.0
    None F1.0 B1.0
    """
    rule: Rule = _RULES.get(name, lambda rows: [[*row] for row in rows])
    return rule([list(row) for row in orders])


def _looped_bfs(rows: list[list[Action]]) -> list[Row]:
    last = len(rows) - 1
    return [_padded(row, rank, {_first_backward(row): 2 * (last - rank)}) for rank, row in enumerate(rows)]


def _interleaved_1f1b(rows: list[list[Action]]) -> list[Row]:
    ranks, found = len(rows), []
    for rank, row in enumerate(rows):
        hops = 2 * (ranks - 1 - rank)
        ahead = _warmup(row, ranks, hops)
        waits = dict.fromkeys(range(len(row) - ahead, len(row)), 1)  # as many backwards are at the end
        first = max(0, _local_stages(row) * ranks + hops - ahead - rank) if ahead else 0
        waits[ahead] = waits.get(ahead, 0) + first
        found.append(_padded(row, rank, waits))
    return found


def _interleaved_zero_bubble(rows: list[list[Action]]) -> list[Row]:
    ranks, last = len(rows), len(rows) - 1
    padded = [_padded(row, rank, {_warmup(row, ranks, last - rank): last - rank}) for rank, row in enumerate(rows)]
    return _waiting_for_inputs(padded)


def _zb_v(rows: list[list[Action]]) -> list[Row]:
    return [_padded(row, rank, {}) for rank, row in enumerate(rows)]


def _padded(row: Sequence[Action], before: int, waits: dict[int, int]) -> Row:
    """Return a row with idle slots in front, and before the actions at some positions."""
    found: Row = [None] * before
    for place, action in enumerate(row):
        found += [None] * waits.get(place, 0)
        found.append(action)
    return found


def _first_backward(row: Sequence[Action]) -> int:
    return next(place for place, action in enumerate(row) if action.kind in BACKWARD)


def _local_stages(row: Sequence[Action]) -> int:
    return len({action.stage for action in row})


def _warmup(row: Sequence[Action], ranks: int, hops: int) -> int:
    """Return the number of forwards before forwards and backwards alternate."""
    forwards, stages = sum(action.kind is Kind.F for action in row), _local_stages(row)
    micro_batches = forwards // stages
    per_round = math.ceil(micro_batches / max(1, micro_batches // ranks))
    return min((stages - 1) * per_round + hops, forwards)


def _waiting_for_inputs(rows: Sequence[Row]) -> list[Row]:
    """Return rows in which each forward is in a later slot than that of the stage before, by more idle slots."""
    rest = [list(reversed(row)) for row in rows]
    found: list[Row] = [[] for _ in rows]
    done: set[tuple[int, int]] = set()
    while any(rest):
        now = set()
        for waiting, row in zip(rest, found, strict=True):
            action = waiting[-1] if waiting else None
            if action is not None and action.kind is Kind.F:
                if action.stage and (action.stage - 1, action.micro_batch) not in done:
                    row.append(None)
                    continue
                now.add((action.stage, action.micro_batch))
            if waiting:
                row.append(waiting.pop())
        done |= now
    return found


_RULES: dict[str, Rule] = {
    "LoopedBFS": _looped_bfs,
    "Interleaved1F1B": _interleaved_1f1b,
    "InterleavedZeroBubble": _interleaved_zero_bubble,
    "ZBVZeroBubble": _zb_v,
}
