"""Plot tables with matplotlib: ratios on one line each, or curves on logarithmic axes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from retrograd.bench.figures import Row, Table
from retrograd.bench.report import title_line

COLOURS = ("#1f6fb4", "#c2571a", "#2e8b57", "#8e44ad", "#b8860b", "#606c76", "#c0392b")
STYLE: dict[Any, Any] = {"font.size": 9, "svg.hashsalt": "retrograd"}


def draw(tables: Sequence[Table], path: Path) -> None:
    """Write a picture of tables, one below the other; the path's suffix selects the format.

    Raises ImportError without matplotlib.
    """
    import matplotlib
    from matplotlib.figure import Figure

    heights = [_height(table) for table in tables]
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(8, sum(heights)), layout="constrained")
        parts = figure.subplots(len(tables), 1, squeeze=False, height_ratios=heights)[:, 0]
        for table, axes in zip(tables, parts, strict=True):
            (curves if table.axis else ratios)(table, axes)
            axes.spines[["top", "right"]].set_visible(False)
            axes.set_title(title_line(table), loc="left", fontsize=10)
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def _height(table: Table) -> float:
    return 3.4 if table.axis else 1.2 + 0.3 * len(table.rows)


def ratios(table: Table, axes: Any) -> None:
    """Plot our ratio to each peer, with quartiles; budgets are marked, and left of 1 is less than the peer's."""
    peers = [name for name in table.subjects if name != table.ours]
    for number, peer in enumerate(peers):
        found = [(i, row.ratio(table.ours, peer)) for i, row in enumerate(table.rows)]
        known = [(i + 0.5 * (number + 0.5) / len(peers) - 0.25, r) for i, r in found if r]
        medians = [r.median for _, r in known]
        ends = [[r.median - r.low for _, r in known], [r.high - r.median for _, r in known]]
        row_numbers = [row_number for row_number, _ in known]
        colour = COLOURS[number % len(COLOURS)]
        axes.errorbar(medians, row_numbers, xerr=ends, fmt="o", ms=4, color=colour, label=f"vs {peer}")
    for i, row in enumerate(table.rows):
        _mark_budgets(axes, i, row)
    axes.axvline(1, color="#808080", lw=1)
    axes.set_yticks(range(len(table.rows)), [row.name for row in table.rows])
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlabel(f"{table.ours} / other library, lower is better")
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)


def _mark_budgets(axes: Any, row_number: int, row: Row) -> None:
    for peer, budget in row.budgets.items():
        if peer:
            axes.plot([budget, budget], [row_number - 0.35, row_number + 0.35], color="#404040", lw=1.2)


def curves(table: Table, axes: Any) -> None:
    """Plot results over sizes, on logarithmic axes."""
    for number, name in enumerate(table.subjects):
        points = [(row.at, table.figure(row, name)) for row in table.rows if row.samples.get(name)]
        x, y = [p[0] for p in points], [p[1] for p in points]
        axes.plot(x, y, "o-", ms=3, lw=1.2, color=COLOURS[number % len(COLOURS)], label=name)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(table.axis)
    axes.set_ylabel(table.unit)
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
