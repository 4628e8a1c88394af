"""`Compare`: a table of measurements, a row for each statement or sub-label and a column for each description."""

import enum
import math
from collections.abc import Sequence
from typing import Any

from retrograd.foundation.suggestions import suggest_in_module
from retrograd.utils.benchmark import Measurement, select_unit

_UNITS = {"ns": "nanosecond", "us": "microsecond", "ms": "millisecond", "s": "second"}
_END = "\033[0m"
_BOLD = "\033[1m"
_BEST, _GOOD, _BAD, _WORST = "\033[92m", "\033[34m", "\033[2m\033[91m", "\033[31m"
_NEGLIGIBLE = 100e-9  # seconds by which the best time and another may differ


class Colorize(enum.Enum):
    """Which times of a table are compared by colors: none, those of a column, or those of a row."""

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


def _rounded(value: float, figures: int) -> float:
    scale = 10.0 ** (math.ceil(math.log10(abs(value))) - figures)
    return round(value / scale) * scale


class Compare:
    """A table of measurements; those of one label are in one table, and those of one task are merged.

    >>> from retrograd.utils.benchmark import Compare, TaskSpec
    >>> tasks = [TaskSpec("f(x)", "pass", label="f", description=kind) for kind in ("old", "new")]
    >>> print(Compare([Measurement(1, [t], task) for t, task in zip([0.002, 0.001], tasks)]))
    [---------- f -----------]
                |  old  |  new
    1 threads: ---------------
          f(x)  |  2.0  |  1.0
    <BLANKLINE>
    Times are in milliseconds (ms).
    <BLANKLINE>
    """

    def __init__(self, results: Sequence[Measurement]) -> None:
        self._results: list[Measurement] = []
        self._trims = self._warns = False
        self._colors = Colorize.NONE
        self.extend_results(results)

    def extend_results(self, results: Sequence[Measurement]) -> None:
        """Add measurements; ValueError for anything else."""
        for result in results:
            if not isinstance(result, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(result)} instead.")
        self._results.extend(results)

    def trim_significant_figures(self) -> None:
        """Print only the figures that the spread of the times leaves."""
        self._trims = True

    def colorize(self, rowwise: bool = False) -> None:
        """Print the best and the worst times of each column in colors, or those of each row."""
        self._colors = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self) -> None:
        """Print the spread of times that differ by much."""
        self._warns = True

    def print(self) -> None:
        """Print the table."""
        print(self)

    def __str__(self) -> str:
        by_label: dict[Any, list[Measurement]] = {}
        for m in Measurement.merge(self._results):
            by_label.setdefault(m.task_spec.label, []).append(m)
        return "\n".join(_Table(group, self._colors, self._trims, self._warns).render() for group in by_label.values())


class _Table:
    """The table of the measurements of one label."""

    def __init__(self, results: list[Measurement], colors: Colorize, trims: bool, warns: bool) -> None:
        self._results, self._colors, self._trims = results, colors, trims
        self._warns = warns and any(m.has_warnings for m in results)
        self._unit, self._scale = select_unit(min(m.median for m in results))
        # Rows of the same threads and environment stay in the order of their measurements.
        self._rows = sorted(dict.fromkeys(map(_row_of, results)), key=lambda row: (row[0], row[1] or ""))
        self._columns = list(dict.fromkeys(m.task_spec.description for m in results))
        self._cells = {(_row_of(m), m.task_spec.description): m for m in results}

    def render(self) -> str:
        """Return the table as text."""
        templates = [self._template(column) for column in self._columns]
        names = [self._row_name(i) for i in range(len(self._rows))]
        texts = [[self._text(row, *pair) for pair in zip(self._columns, templates, strict=True)] for row in self._rows]
        heads = [str(column) if column is not None else "" for column in self._columns]
        widths = [max(len(text) for text in column) for column in zip(heads, *texts, strict=True)]
        first = max(map(len, names))
        lines = [self._line("".center(first), [h.center(w) for h, w in zip(heads, widths, strict=True)])]
        width = len(lines[0])
        for i, (row, name, cells) in enumerate(zip(self._rows, names, texts, strict=True)):
            if not i or row[0] != self._rows[i - 1][0]:
                lines.append(f"{row[0]} threads: ".ljust(width, "-"))
            centered = [cell.center(w) for cell, w in zip(cells, widths, strict=True)]
            lines.append(
                self._line(name.ljust(first), [self._color(row, *c) for c in zip(self._columns, centered, strict=True)])
            )
        label = f" {self._results[0].task_spec.label or ''} "
        notes = f"\n\nTimes are in {_UNITS[self._unit]}s ({self._unit}).\n"
        notes += "(! XX%) Measurement has high variance, where XX is the IQR / median * 100.\n" if self._warns else ""
        return f"[{label.center(width - 2, '-')}]\n" + "\n".join(lines) + notes

    def _line(self, name: str, cells: list[str]) -> str:
        return "  |  ".join([name, *cells])

    def _row_name(self, i: int) -> str:
        environments = {m.task_spec.env for m in self._results}
        threads, env, name = self._rows[i]
        if len(environments) < 2:
            return f"{'':6}{name}"
        is_new = not i or self._rows[i - 1][:2] != (threads, env)
        return "  " + (f"({env})" if is_new else "").ljust(max(len(str(e)) for e in environments) + 4) + name

    def _template(self, column: Any) -> str:
        """Return the format of the times of a column, with as many digits as its longest."""
        found = [m for m in self._results if m.task_spec.description == column]
        digits = [math.ceil(math.log10(m.median / self._scale)) for m in found]
        decimals = 1
        if self._trims:
            decimals = min(max(m.significant_figures - n, 0) for m, n in zip(found, digits, strict=True))
        spread = 7 if self._warns and any(m.has_warnings for m in found) else 0
        return f"{{:>{max(digits) + decimals + (decimals > 0)}.{decimals}f}}{{:>{spread}}}"

    def _text(self, row: Any, column: Any, template: str) -> str:
        m = self._cells.get((row, column))
        if m is None:
            return " " * len(template.format(1.0, ""))
        time = m.median / self._scale
        spread = f" (! {m.iqr / m.median * 100:.0f}%)" if m.has_warnings and not template.endswith(":>0}") else ""
        return template.format(_rounded(time, m.significant_figures) if self._trims else time, spread)

    def _color(self, row: Any, column: Any, text: str) -> str:
        """Return the text of a cell in the color of its time, compared with the best of the column or row."""
        m = self._cells.get((row, column))
        if m is None or self._colors is Colorize.NONE:
            return text
        rowwise = self._colors is Colorize.ROWWISE
        compared = [
            other.median
            for (r, c), other in self._cells.items()
            if (r == row if rowwise else (r[0], c) == (row[0], column))
        ]
        return _colored(text, m.median, min(compared))


def _row_of(m: Measurement) -> tuple[int, str | None, str]:
    task = m.task_spec
    return task.num_threads, task.env, m.as_row_name


def _colored(text: str, time: float, best: float) -> str:
    if time <= max(best * 1.01, best + _NEGLIGIBLE):
        return _BEST + _BOLD + text + _END * 2
    if time <= best * 1.1:
        return _GOOD + _BOLD + text + _END * 2
    if time >= best * 5:
        return _WORST + _BOLD + text + _END * 2
    return _BAD + text + _END * 2 if time >= best * 2 else text


suggest_in_module(globals())
