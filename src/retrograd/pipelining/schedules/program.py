"""Make the program of a step: a schedule, by name, from a file or as given, with sends and receives inserted."""

import os
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple
from zlib import crc32

from retrograd.pipelining.schedules import get_schedule, make_schedule, stage_directions, stage_ranks
from retrograd.pipelining.schedules.actions import Action, Kind, Schedule
from retrograd.pipelining.schedules.lowering import Edges, directions_of, lower, validate
from retrograd.pipelining.schedules.stage_placement import Directions
from retrograd.pipelining.schedules.tables import read_csv

AUTO = "auto"  # a schedule that is searched for in the first step

ScheduleLike = str | os.PathLike[str] | Schedule


class Program(NamedTuple):
    """The actions of every rank, the rank of each stage, and a checksum of both."""

    actions: list[list[Action]]
    directions: Directions
    digest: str

    @property
    def placement(self) -> list[int]:
        """Return the rank of each stage; in two directions, that of the even microbatches."""
        first = self.directions.placements[0]
        return [first[stage] for stage in sorted(first)]

    def unordered(self) -> set[int]:
        """Return the stages that run microbatches backward out of order."""
        last: dict[int, int] = {}
        found = set()
        for kind, stage, micro_batch, _ in (action for actions in self.actions for action in actions):
            if kind in (Kind.B, Kind.W):
                if micro_batch < last.get(stage, 0):
                    found.add(stage)
                last[stage] = micro_batch
        return found


def default_stages(schedule: ScheduleLike, ranks: int | None) -> int | None:
    """Return the default number of stages for `ranks` ranks under a schedule; ValueError for an unknown one.

    >>> default_stages("zbv", 2), default_stages("1f1b", None), default_stages("auto", 2)
    (4, None, 4)
    """
    if not _is_name(schedule):
        return None
    if schedule == AUTO:
        return None if ranks is None else 2 * ranks
    kind = get_schedule(schedule)  # type: ignore[arg-type]
    return None if ranks is None else ranks * kind.per_rank


def load_schedule(schedule: ScheduleLike, stages: int | None, ranks: int | None, replicas: int = 1) -> str | Schedule:
    """Return a schedule's name, or its actions, read from the file if it is a path.

    Raises ValueError for an unknown schedule, stages that cannot be divided among the ranks, and replicas of a schedule
    in two directions; OSError if there is no such file.
    """
    if not _is_name(schedule):
        return read_csv(schedule) if isinstance(schedule, (str, os.PathLike)) else schedule
    name = str(schedule)
    if name == AUTO:
        return name
    if get_schedule(name).directions > 1 and replicas > 1:
        raise ValueError(f"{name} runs two copies of each stage in two directions, and no replicas; got {replicas}")
    count = ranks if stages is None else stages
    if count is not None:
        stage_ranks(name, count, ranks)
    return name


def make_program(
    schedule: ScheduleLike,
    stages: int,
    micro_batches: int,
    edges: Mapping[tuple[int, int], object],
    *,
    ranks: int | None = None,
    forward_only: bool = False,
) -> Program:
    """Return the validated program of a schedule for a model whose stages have these edges.

    Raises ValueError for an incomplete or deadlocked schedule, or one for other stages, microbatches or ranks.

    >>> program = make_program("1f1b", 2, 1, {(0, 1): ["x"]})
    >>> program.placement, [str(action) for action in program.actions[0]]
    ([0, 1], ['F0.0', 'SEND_F0.0>1', 'RECV_B0.0<1', 'B0.0'])
    """
    make = _cached_program if _is_name(schedule) else _build_program
    program = make(schedule, stages, micro_batches, frozenset(edges), ranks, forward_only)  # type: ignore[arg-type]
    return Program([actions.copy() for actions in program.actions], program.directions, program.digest)


def _build_program(
    schedule: ScheduleLike, stages: int, micro_batches: int, edges: Edges, ranks: int | None, forward_only: bool
) -> Program:
    compute = _computations(schedule, stages, micro_batches, ranks)
    if forward_only:
        compute = [[action for action in actions if action.kind is Kind.F] for actions in compute]
    program = lower(compute, edges)
    validate(program, edges)
    digest = crc32(repr(program).encode())
    directions = directions_of(compute)
    _check_sizes(compute, directions, stages, micro_batches, ranks)
    if _is_name(schedule):  # of which one direction may have no microbatches
        directions = stage_directions(schedule, stages, ranks)  # type: ignore[arg-type]
    return Program(program, directions, f"{digest:08x}")


_cached_program = lru_cache(maxsize=8, typed=True)(_build_program)  # the same for every step, and takes milliseconds


def _is_name(schedule: ScheduleLike) -> bool:
    return isinstance(schedule, str) and not schedule.endswith(".csv")


def _computations(schedule: ScheduleLike, stages: int, micro_batches: int, ranks: int | None) -> list[list[Action]]:
    if _is_name(schedule):
        return make_schedule(schedule, stages, micro_batches, ranks=ranks)  # type: ignore[arg-type]
    loaded = load_schedule(schedule, stages, ranks)
    assert not isinstance(loaded, str), "only names are loaded as names"
    return [[a for a in actions if a.peer is None and not a.kind.is_reduction] for actions in loaded]


def _check_sizes(compute: Schedule, directions: Directions, stages: int, micro_batches: int, ranks: int | None) -> None:
    """Raise ValueError if the schedule is for other sizes."""
    placement = directions.placements[0]
    numbers = {action.micro_batch for actions in compute for action in actions}
    found = (sorted(placement), sorted(numbers), len(compute))
    if found != (list(range(stages)), list(range(micro_batches)), ranks or len(compute)):
        raise ValueError(
            f"the schedule is for {len(placement)} stages, {len(numbers)} microbatches and {len(compute)} ranks, "
            f"but there are {stages}, {micro_batches} and {ranks or len(compute)}"
        )
