"""`retrograd sweep`: compare the schedules over sizes of pipelines, by bubble and memory."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from retrograd.cli.errors import UsageError
from retrograd.pipelining.planning.sweep import RankCosts, Swept, pareto_front, sweep
from retrograd.utils.plot_metrics import plot_curves


class Settings(NamedTuple):
    """The options of the command; see `sweep`."""

    ranks: Sequence[int]
    stages_per_rank: Sequence[int]
    micro_batches: Sequence[int]
    limits: Sequence[float]
    times: RankCosts
    seconds: float
    plot: Path | None


def run(settings: Settings) -> int:
    """Print a table for each size, the best by memory marked, and draw the plot; return the exit code, 0."""
    impossible = [limit for limit in settings.limits if limit < 1]
    if impossible:
        raise UsageError(f"--limits has {impossible[0]:g}; a rank holds the activations of at least 1 microbatch")
    rows = sweep(
        settings.ranks,
        settings.stages_per_rank,
        settings.micro_batches,
        settings.limits,
        settings.times,
        settings.seconds,
    )
    groups = _by_size(rows)
    for (ranks, micro_batches), group in groups.items():
        _print(f"{ranks} ranks, {micro_batches} microbatches", group)
    if settings.plot is not None:
        _plot(settings.plot, groups)
    return 0


def _by_size(rows: Sequence[Swept]) -> dict[tuple[int, int], list[Swept]]:
    """Return the rows by ranks and microbatches: those whose bubbles and memory can be compared."""
    groups: dict[tuple[int, int], list[Swept]] = {}
    for row in rows:
        groups.setdefault((row.ranks, row.micro_batches), []).append(row)
    return groups


def _print(title: str, rows: Sequence[Swept]) -> None:
    front = pareto_front(rows)
    table = Table(title=title, title_justify="left", box=None, padding=(0, 1, 0, 0), header_style="bold")
    names = "schedule", "stages per rank", "copies", "memory", "step", "bubble", "best for its memory"
    for number, name in enumerate(names):
        table.add_column(name, justify="right" if number else "left", no_wrap=True)
    for row in sorted(rows, key=lambda row: (row.memory, row.bubble)):
        texts = f"{row.memory:.2f}", f"{row.step:.2f}", f"{row.bubble:.4f}", "*" if row in front else ""
        table.add_row(row.schedule, str(row.per_rank), str(row.copies), *texts, style="green" if row in front else None)
    Console(markup=False, highlight=False, width=100).print(table)


def _plot(path: Path, groups: dict[tuple[int, int], list[Swept]]) -> None:
    """Draw the bubbles of the best schedules by their memory, a curve for each size."""
    curves = {
        f"p = {ranks}, m = {micro_batches}": {row.memory: row.bubble for row in pareto_front(rows)}
        for (ranks, micro_batches), rows in groups.items()
    }
    labels = {"xlabel": "memory of a rank, in microbatches", "ylabel": "bubble"}
    try:
        plot_curves(path, curves, title="The best schedules for their memory", **labels)  # type: ignore[arg-type]
    except (OSError, ValueError, ImportError) as error:
        raise UsageError(f"the plot can't be written: {error}") from error


def numbers(option: str, text: str) -> list[int]:
    """Parse integers of at least 1, separated by commas.

    >>> numbers("--ranks", "4,8")
    [4, 8]
    """
    if re.fullmatch(r"[1-9]\d{0,5}(,[1-9]\d{0,5})*", text, re.ASCII) is None:
        raise UsageError(f"{option} is {text!r}; it must be integers of at least 1, separated by commas, like 4,8")
    return [int(part) for part in text.split(",")]


def decimals(option: str, text: str, count: int | None = None) -> list[float]:
    """Parse numbers of at least 0, separated by commas; `count` of them unless it is None.

    >>> decimals("--limits", "2,3.5")
    [2.0, 3.5]
    """
    parts = text.split(",")
    are_numbers = all(re.fullmatch(r"\d{1,9}(\.\d{1,9})?", part, re.ASCII) for part in parts)
    if not are_numbers or count not in (None, len(parts)):
        wanted = "numbers" if count is None else f"{count} numbers"
        raise UsageError(f"{option} is {text!r}; it must be {wanted} of at least 0, separated by commas, like 1,0.5")
    return [float(part) for part in parts]
