"""Schedules by name: pure functions `(rank, stages, micro_batches) -> [Action]`, one small file each."""

from collections.abc import Callable

from retrograd.pipelining.actions import Action
from retrograd.pipelining.schedules.gpipe import gpipe
from retrograd.pipelining.schedules.one_f_one_b import one_f_one_b

__all__ = ["SCHEDULES", "ScheduleFunction", "get_schedule", "gpipe", "make_schedule", "one_f_one_b"]

ScheduleFunction = Callable[[int, int, int], list[Action]]

SCHEDULES: dict[str, ScheduleFunction] = {"gpipe": gpipe, "1f1b": one_f_one_b}


def get_schedule(name: str) -> ScheduleFunction:
    """The schedule called `name`, in upper or lower case.

    Raises ValueError, with the known names, when there is none.

    >>> get_schedule("GPipe") is gpipe
    True
    """
    schedule = SCHEDULES.get(name.lower()) if isinstance(name, str) else None
    if schedule is None:
        raise ValueError(f"no schedule is called {name!r}; known are {', '.join(sorted(SCHEDULES))}")
    return schedule


def make_schedule(name: str, stages: int, micro_batches: int) -> list[list[Action]]:
    """Every rank's computations under the schedule called `name`, one list per rank, no sends or receives.

    stages, micro_batches: at least 1, in any proportion. Raises TypeError when they are not integers,
    ValueError when they are too small or the name is unknown.

    >>> from retrograd.pipelining.actions import format_schedule
    >>> print(format_schedule(make_schedule("1f1b", stages=2, micro_batches=3)))
    0: F0.0 F0.1 B0.0 F0.2 B0.1 B0.2
    1: F1.0 B1.0 F1.1 B1.1 F1.2 B1.2
    """
    schedule = get_schedule(name)
    _check_count("stages", stages)
    _check_count("micro_batches", micro_batches)
    return [schedule(rank, stages, micro_batches) for rank in range(stages)]


def _check_count(name: str, count: int) -> None:
    if not isinstance(count, int) or isinstance(count, bool):
        raise TypeError(f"{name} is {count!r}; it must be an integer")
    if count < 1:
        raise ValueError(f"{name} is {count}; a schedule needs at least 1")
