"""What every rank does in a step: a schedule, by name, from a file or as it is, with sends and receives put in."""

import os
from collections.abc import Mapping
from typing import NamedTuple

from retrograd.pipelining.actions import Action, Kind, Schedule
from retrograd.pipelining.lowering import lower, validate
from retrograd.pipelining.schedules import get_schedule, make_schedule
from retrograd.pipelining.tables import read_csv

Chosen = str | os.PathLike[str] | Schedule


class Program(NamedTuple):
    """The actions of every rank, and the rank of each stage."""

    actions: list[list[Action]]
    homes: list[int]

    def unordered(self) -> set[int]:
        """The stages that run micro-batches backward in another order than that of their numbers."""
        last: dict[int, int] = {}
        found = set()
        for kind, stage, micro_batch, _ in (action for actions in self.actions for action in actions):
            if kind in (Kind.B, Kind.W):
                if micro_batch < last.get(stage, 0):
                    found.add(stage)
                last[stage] = micro_batch
        return found


def default_stages(schedule: Chosen, ranks: int | None) -> int | None:
    """How many stages so many ranks have under a schedule, where nothing else says it; a ValueError for no schedule.

    >>> default_stages("zbv", 2), default_stages("1f1b", None)
    (4, None)
    """
    if not _is_name(schedule):
        return None
    kind = get_schedule(schedule)  # type: ignore[arg-type]
    return None if ranks is None else ranks * kind.per_rank


def make_program(
    schedule: Chosen,
    stages: int,
    micro_batches: int,
    edges: Mapping[tuple[int, int], object],
    *,
    ranks: int | None = None,
    forward_only: bool = False,
) -> Program:
    """The program of a schedule for a model whose stages have these edges, proved to be complete and free of deadlock.

    Raises ValueError for a schedule that is neither, or is for other stages, micro-batches or ranks.

    >>> program = make_program("1f1b", 2, 1, {(0, 1): ["x"]})
    >>> program.homes, [str(action) for action in program.actions[0]]
    ([0, 1], ['F0.0', 'SEND_F0.0>1', 'RECV_B0.0<1', 'B0.0'])
    """
    compute = _computations(schedule, stages, micro_batches, ranks)
    if forward_only:
        compute = [[action for action in actions if action.kind is Kind.F] for actions in compute]
    program = lower(compute, edges)
    validate(program, edges)
    return Program(program, _homes(compute, stages, micro_batches, ranks))


def _is_name(schedule: Chosen) -> bool:
    return isinstance(schedule, str) and not schedule.endswith(".csv")


def _computations(schedule: Chosen, stages: int, micro_batches: int, ranks: int | None) -> list[list[Action]]:
    if _is_name(schedule):
        return make_schedule(schedule, stages, micro_batches, ranks=ranks)  # type: ignore[arg-type]
    given = read_csv(schedule) if isinstance(schedule, (str, os.PathLike)) else schedule
    return [[action for action in actions if action.kind.is_compute] for actions in given]


def _homes(compute: Schedule, stages: int, micro_batches: int, ranks: int | None) -> list[int]:
    """The rank of each stage; a ValueError where the schedule is for others."""
    homes = {action.stage: rank for rank, actions in enumerate(compute) for action in actions}
    numbers = {action.micro_batch for actions in compute for action in actions}
    found = (sorted(homes), sorted(numbers), len(compute))
    if found != (list(range(stages)), list(range(micro_batches)), ranks or len(compute)):
        raise ValueError(
            f"the schedule is for {len(homes)} stages, {len(numbers)} micro-batches and {len(compute)} ranks, "
            f"but there are {stages}, {micro_batches} and {ranks or len(compute)}"
        )
    return [homes[stage] for stage in range(stages)]
