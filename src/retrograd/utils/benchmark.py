"""The names of `torch.utils.benchmark` for statements of Python: `Timer`, its `Measurement`, and `Compare`."""

import math
import sys
import timeit
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from statistics import fmean, pstdev, quantiles
from textwrap import dedent
from time import perf_counter as timer
from typing import Any

from retrograd.core.blocks import generator_block
from retrograd.foundation.lazy_imports import lazy_names
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.utils.threads import get_num_threads, set_num_threads

__all__ = ["Colorize", "Compare", "Measurement", "TaskSpec", "Timer", "select_unit", "timer"]  # noqa: F822

_UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3}
_WARN, _WARN_GROSSLY = 0.1, 0.25  # of the interquartile range, divided by the median
_LONGEST_ESTIMATE = 100  # calls of the statement, whose overhead is a small part of the time of a block


def select_unit(t: float) -> tuple[str, float]:
    """Return the unit in which a time in seconds is printed, and its seconds.

    >>> select_unit(0.002), select_unit(3.0)
    (('ms', 0.001), ('s', 1.0))
    """
    return next(((unit, scale) for unit, scale in _UNITS.items() if t < 1e3 * scale), ("s", 1.0))


@dataclass(frozen=True)
class TaskSpec:
    """The statement of a measurement, its setup and its labels."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label, or else the statement."""
        if self.label is not None:
            return self.label + (f": {self.sub_label}" if self.sub_label else "")
        return self.stmt if "\n" not in self.stmt else f"stmt:\n{self.stmt}"

    def summarize(self) -> str:
        """Return the title, the description and the setup, for the printed form."""
        setup = "" if self.setup in ("", "pass") else f"setup: {self.setup}"
        return "\n".join(text for text in (self.title, self.description, setup) if text)


@dataclass(repr=False)
class Measurement:
    """The seconds that blocks of a statement's runs took: `raw_times`, each of `number_per_run` runs."""

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = None

    def __getattr__(self, name: str) -> Any:
        if name in TaskSpec.__dataclass_fields__:
            return getattr(self.task_spec, name)
        raise AttributeError(f"Measurement has no attribute {name!r}")

    @property
    def times(self) -> list[float]:
        """The seconds of a run in each block."""
        return [t / self.number_per_run for t in self.raw_times]

    @property
    def title(self) -> str:
        """The label, or else the statement."""
        return self.task_spec.title

    @property
    def mean(self) -> float:
        """The mean of the times."""
        return fmean(self.times)

    def _quartile(self, i: int) -> float:
        times = self.times
        return quantiles(times, n=4, method="inclusive")[i] if len(times) > 1 else times[0]

    @property
    def median(self) -> float:
        """The median of the times."""
        return self._quartile(1)

    @property
    def iqr(self) -> float:
        """The interquartile range of the times."""
        return self._quartile(2) - self._quartile(0)

    @property
    def significant_figures(self) -> int:
        """How many figures of the median the spread of the middle half of the times leaves, from 1 to 4."""
        times = sorted(self.times)
        middle = times[len(times) // 4 : math.ceil(3 * len(times) / 4)]
        spread = max(1.645 * pstdev(middle) / math.sqrt(len(middle)), sys.float_info.min)  # an interval of 90 %
        return min(max(math.floor(-math.log10(spread / self.median)), 1), 4)

    @property
    def as_row_name(self) -> str:
        """The name of the row of a table: the sub-label, or else the statement."""
        return self.task_spec.sub_label or self.task_spec.stmt or "[Unknown]"

    @staticmethod
    def merge(measurements: Iterable["Measurement"]) -> list["Measurement"]:
        """Return one measurement for each task, of the times of all its measurements."""
        by_task: dict[TaskSpec, list[float]] = {}
        for m in measurements:
            by_task.setdefault(m.task_spec, []).extend(m.times)
        return [Measurement(1, times, task) for task, times in by_task.items()]

    def meets_confidence(self, threshold: float = _WARN) -> bool:
        """Return whether the interquartile range is less than this part of the median."""
        return self.iqr / self.median < threshold

    @property
    def has_warnings(self) -> bool:
        """Whether the times differ by so much that the printed form has a warning."""
        return not self.meets_confidence()

    def __repr__(self) -> str:
        count, (unit, scale) = len(self.raw_times), select_unit(self.median)
        lines = [object.__repr__(self), self.task_spec.summarize()]
        lines.append(f"  {'Median: ' if count > 1 else ''}{self.median / scale:.2f} {unit}")
        if count >= 4:
            low, high = self._quartile(0) / scale, self._quartile(2) / scale
            lines.append(f"  IQR:    {self.iqr / scale:.2f} {unit} ({low:.2f} to {high:.2f})")
        runs = f"{self.number_per_run} runs {'per measurement,' if count > 1 else ','}"
        threads = self.task_spec.num_threads
        lines.append(f"  {count} measurement{'s' * (count > 1)}, {runs} {threads} thread{'s' * (threads > 1)}")
        if self.has_warnings:
            gross = not self.meets_confidence(_WARN_GROSSLY)
            words = "This suggests significant environmental influence." if gross else ""
            lines.append(
                f"  WARNING: Interquartile range is {self.iqr / self.median * 100:.1f}% of the median measurement."
            )
            lines.append(f"           {words or 'This could indicate system fluctuation.'}")
        return "\n".join(lines)


class Timer:
    """A timer of a statement of Python; it runs with `num_threads` threads, 1 by default.

    >>> Timer("x + 1", globals={"x": 1}).timeit(10).number_per_run
    10
    """

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: str = "python",
    ) -> None:
        if not isinstance(stmt, str):
            raise ValueError("Currently only a `str` stmt is supported.")
        if language not in ("py", "python"):
            raise ValueError(f"Invalid language `{language}`: only statements of Python are timed here.")
        if global_setup:
            raise ValueError(f"global_setup is C++ only, got `{global_setup}`. Move this code to `setup`.")
        stmt, setup = (dedent(text).removeprefix("\n").rstrip() for text in (stmt, setup))
        self._task = TaskSpec(stmt, setup, "", label, sub_label, description, env, num_threads)
        self._clock = timer
        self._timer = timeit.Timer(stmt, setup, timer, dict(globals or {}))

    def _time(self, number: int) -> float:
        return max(self._timer.timeit(number), 1e-9)

    @generator_block
    def _threads(self) -> Iterator[None]:
        """Compute with the task's number of threads while entered."""
        before = get_num_threads()
        set_num_threads(self._task.num_threads)
        try:
            yield
        finally:
            set_num_threads(before)

    def _measure(self, number: int, enough: Callable[[list[float]], bool], warm: int) -> Measurement:
        """Return a measurement of blocks of runs, until there are enough of them."""
        times: list[float] = []
        with self._threads():
            self._time(warm)
            while not times or not enough(times):
                times.append(self._time(number))
        return Measurement(number, times, self._task)

    def timeit(self, number: int = 1000000) -> Measurement:
        """Return the time of one block of runs, after some that are not measured."""
        return self._measure(number, lambda times: True, max(number // 100, 2))

    def blocked_autorange(
        self, callback: Callable[[int, float], Any] | None = None, min_run_time: float = 0.2
    ) -> Measurement:
        """Return the times of blocks that together last `min_run_time` seconds, each long enough for a precise time."""
        number = self._estimate_block_size(min_run_time)
        start = self._clock()

        def enough(times: list[float]) -> bool:
            if callback is not None:
                callback(number, times[-1])
            return self._clock() - start >= min_run_time

        return self._measure(number, enough, 1)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callable[[int, float], Any] | None = None,
    ) -> Measurement:
        """Return the times of blocks until their interquartile range is small, or `max_run_time` seconds are over."""
        number = self._estimate_block_size(0.05)
        start = self._clock()

        def enough(times: list[float]) -> bool:
            if callback is not None:
                callback(number, times[-1])
            seconds = self._clock() - start
            steady = len(times) > 3 and Measurement(number, times, self._task).meets_confidence(threshold)
            return seconds >= max_run_time or (steady and seconds >= min_run_time)

        return self._measure(number, enough, 1)

    def _estimate_block_size(self, min_run_time: float) -> int:
        """Return a number of runs that takes a thousandth of the time, and at least a hundred times as long as none."""
        number = 1
        with self._threads():
            empty = min(timeit.Timer("pass", timer=self._clock).repeat(3, 1))
            while (seconds := self._time(number)) < max(min_run_time / 1000, _LONGEST_ESTIMATE * empty):
                if seconds >= min_run_time:
                    break
                number *= 10
        return number


__getattr__, __dir__ = lazy_names(
    __name__, {"Colorize": "retrograd.utils.benchmark_table", "Compare": "retrograd.utils.benchmark_table"}
)


suggest_in_module(globals())
