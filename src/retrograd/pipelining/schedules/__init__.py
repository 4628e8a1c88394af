"""Schedules by name: pure functions from the stages of each rank to its computations, one small file each."""

from collections.abc import Callable
from typing import NamedTuple

from retrograd.foundation.suggestions import did_you_mean, suggest_in_module
from retrograd.pipelining.schedules.actions import Action
from retrograd.pipelining.schedules.chimera import chimera
from retrograd.pipelining.schedules.controllable_memory import v_half, v_min
from retrograd.pipelining.schedules.dual_pipe import dual_pipe
from retrograd.pipelining.schedules.dual_pipe_v import dual_pipe_v
from retrograd.pipelining.schedules.gpipe import gpipe
from retrograd.pipelining.schedules.hanayo import hanayo
from retrograd.pipelining.schedules.interleaved import interleaved_1f1b, interleaved_warmup, interleaved_zero_bubble
from retrograd.pipelining.schedules.looped_bfs import looped_bfs
from retrograd.pipelining.schedules.one_f_one_b import eager_one_f_one_b, one_f_one_b
from retrograd.pipelining.schedules.stage_placement import (
    ComputeOrders,
    Directions,
    StagesByRank,
    blocks,
    looped,
    mirrored,
    stages_by_rank,
    zigzag,
)
from retrograd.pipelining.schedules.zb_v import zb_v
from retrograd.pipelining.schedules.zero_bubble import zb_h1, zb_h2

__all__ = [
    "SCHEDULES",
    "ScheduleFunction",
    "ScheduleKind",
    "default_ranks",
    "get_schedule",
    "make_schedule",
    "one_directional",
    "stage_directions",
    "stage_ranks",
    "stream_schedule",
]

ScheduleFunction = Callable[[StagesByRank, int], ComputeOrders]


class ScheduleKind(NamedTuple):
    """A schedule: its name, order function, stage placement, default stages per rank, and number of directions.

    In two directions, `place` is the placement of the even microbatches, and the odd ones have its mirror image.
    """

    name: str
    order: ScheduleFunction
    place: Callable[[int, int], list[int]]
    per_rank: int
    directions: int = 1

    def __repr__(self) -> str:
        functions = f"order={self.order.__name__}, place={self.place.__name__}"
        directions = f", directions={self.directions}" if self.directions > 1 else ""
        return f"ScheduleKind({self.name!r}, {functions}, per_rank={self.per_rank}{directions})"


SCHEDULES: dict[str, ScheduleKind] = {
    kind.name.lower(): kind
    for kind in (
        ScheduleKind("GPipe", gpipe, blocks, 1),
        ScheduleKind("1F1B", one_f_one_b, blocks, 1),
        ScheduleKind("Interleaved1F1B", interleaved_1f1b, looped, 2),
        ScheduleKind("LoopedBFS", looped_bfs, looped, 2),
        ScheduleKind("InterleavedZeroBubble", interleaved_zero_bubble, looped, 2),
        ScheduleKind("ZB-H1", zb_h1, blocks, 1),
        ScheduleKind("ZB-H2", zb_h2, blocks, 1),
        ScheduleKind("ZBVZeroBubble", zb_v, zigzag, 2),
        ScheduleKind("DualPipeV", dual_pipe_v, zigzag, 2),
        ScheduleKind("Interleaved1F1B-Warmup", interleaved_warmup, looped, 2),
        ScheduleKind("Eager1F1B", eager_one_f_one_b, blocks, 1),
        ScheduleKind("Hanayo", hanayo, zigzag, 2),
        ScheduleKind("V-Half", v_half, zigzag, 2),
        ScheduleKind("V-Min", v_min, zigzag, 2),
        ScheduleKind("Chimera", chimera, blocks, 1, directions=2),
        ScheduleKind("DualPipe", dual_pipe, blocks, 1, directions=2),
    )
}

_ALIASES = {"zb1p": "ZB-H1", "zb2p": "ZB-H2", "zbv": "ZBVZeroBubble", "pipedreamflush": "1F1B", "dapple": "1F1B"}


def _normalized(name: str) -> str:
    return "".join(name.lower().replace("-", "").replace("_", "").split())


_BY_NAME = {_normalized(name): kind for name, kind in SCHEDULES.items()}
_BY_NAME |= {alias: SCHEDULES[name.lower()] for alias, name in _ALIASES.items()}


def get_schedule(name: str) -> ScheduleKind:
    """Return the schedule called `name`; case, hyphens, underscores and spaces are ignored.

    Raises ValueError, with the known names, for an unknown one.

    >>> get_schedule("gpipe").name, get_schedule("interleaved_1f1b").name, get_schedule("zbv").name
    ('GPipe', 'Interleaved1F1B', 'ZBVZeroBubble')
    """
    schedule = _BY_NAME.get(_normalized(name)) if isinstance(name, str) else None
    if schedule is None:
        hint = did_you_mean(name, SCHEDULES) if isinstance(name, str) else ""
        raise ValueError(f"no schedule is called {name!r}; known are {', '.join(sorted(SCHEDULES))}{hint}")
    return schedule


def default_ranks(name: str, stages: int) -> int:
    """Return the default number of ranks for `stages`: one stage per rank, or two if the schedule needs several.

    An odd number of stages gives one stage per rank under every schedule. Raises as `make_schedule`.

    >>> default_ranks("1f1b", 4), default_ranks("interleaved1f1b", 4), default_ranks("interleaved1f1b", 5)
    (4, 2, 5)
    """
    _check_count("stages", stages)
    per_rank = get_schedule(name).per_rank
    return stages // per_rank if stages % per_rank == 0 else stages


def stage_ranks(name: str, stages: int, ranks: int | None = None) -> list[int]:
    """Return the rank of each stage under the schedule called `name`; every rank has equally many.

    In two directions, it is the rank for the even microbatches; see `stage_directions`.  Raises as `make_schedule`.

    >>> stage_ranks("1f1b", 4, 2), stage_ranks("interleaved1f1b", 4, 2), stage_ranks("zbv", 4, 2)
    ([0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0])
    """
    schedule = get_schedule(name)
    if ranks is None:
        ranks = default_ranks(name, stages)
    _check_count("stages", stages)
    _check_count("ranks", ranks)
    if stages % ranks:
        raise ValueError(
            f"{stages} stages cannot be spread evenly over {ranks} ranks; stages must be a multiple of ranks"
        )
    if schedule.directions > 1 and ranks % 2:
        raise ValueError(f"{schedule.name} runs in two directions over an even number of ranks, got {ranks}")
    return schedule.place(stages, ranks)


def stage_directions(name: str, stages: int, ranks: int | None = None) -> Directions:
    """Return where each stage runs a microbatch under the schedule called `name`; raises as `make_schedule`.

    >>> directions = stage_directions("chimera", 4, 2)
    >>> [directions.ranks(stage) for stage in range(4)]
    [[0, 1], [0, 1], [1, 0], [1, 0]]
    """
    placement = stage_ranks(name, stages, ranks)
    if get_schedule(name).directions == 1:
        return Directions.of(placement)
    return Directions.of(placement, mirrored(placement, max(placement) + 1))


def one_directional() -> list[ScheduleKind]:
    """Return the schedules under which each stage has one rank.

    >>> [kind.name for kind in SCHEDULES.values() if kind not in one_directional()]
    ['Chimera', 'DualPipe']
    """
    return [kind for kind in SCHEDULES.values() if kind.directions == 1]


def make_schedule(name: str, stages: int, micro_batches: int, *, ranks: int | None = None) -> list[list[Action]]:
    """Return every rank's computations under the schedule called `name`, one list per rank, no sends or receives.

    stages, micro_batches: at least 1, in any proportion. ranks: `stages` must be a multiple of it; None:
    `default_ranks(name, stages)`. `stage_ranks` returns the rank of each stage.

    Raises TypeError for non-integers; ValueError for values that are too small, stages that cannot
    be divided evenly among the ranks, an odd number of ranks for a schedule in two directions, and an unknown name.

    >>> from retrograd.pipelining.schedules.actions import format_schedule
    >>> print(format_schedule(make_schedule("1f1b", stages=2, micro_batches=3)))
    0: F0.0 F0.1 B0.0 F0.2 B0.1 B0.2
    1: F1.0 B1.0 F1.1 B1.1 F1.2 B1.2
    >>> print(format_schedule(make_schedule("gpipe", stages=4, micro_batches=1, ranks=2)))
    0: F0.0 F1.0 B1.0 B0.0
    1: F2.0 F3.0 B3.0 B2.0
    """
    return [list(actions) for actions in stream_schedule(name, stages, micro_batches, ranks=ranks)]


def stream_schedule(name: str, stages: int, micro_batches: int, *, ranks: int | None = None) -> ComputeOrders:
    """Return the schedule of `make_schedule` as one iterator per rank, which yields each action once, lazily.

    For millions of actions, which `simulate_costs` processes in a few seconds.

    >>> [str(next(iter(actions))) for actions in stream_schedule("1f1b", stages=2, micro_batches=1_000_000)]
    ['F0.0', 'F1.0']
    """
    schedule = get_schedule(name)
    _check_count("micro_batches", micro_batches)
    return schedule.order(stages_by_rank(stage_ranks(name, stages, ranks)), micro_batches)


def _check_count(name: str, count: int) -> None:
    if not isinstance(count, int) or isinstance(count, bool):
        raise TypeError(f"{name} is {count!r}; it must be an integer")
    if count < 1:
        raise ValueError(f"{name} is {count}; a schedule needs at least 1")


suggest_in_module(globals())
