"""Format results as text, as Markdown, and as a dict for JSON."""

import os
import platform
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from retrograd.bench.figures import OURSELVES, Row, Spread, Table
from retrograd.bench.subjects import KNOWN, versions

NAMES = {"": "", "1000": "thousands"}


def number(value: float | None) -> str:
    """Format a value with three significant digits; empty for None.

    >>> number(0.01234), number(12.34), number(1234.5), number(None)
    ('0.0123', '12.3', '1,234', '')
    """
    if value is None:
        return ""
    places = next((n for n, least in ((0, 100.0), (1, 10.0), (2, 1.0), (3, 0.1)) if abs(value) >= least), 4)
    return f"{value:,.{places}f}"


def share(ratio: Spread | None) -> str:
    """Format a ratio with its quartiles.

    >>> share(Spread(0.5, 0.45, 0.61))
    '0.50 (0.45-0.61)'
    """
    if ratio is None:
        return ""
    places = max(0, 2 - len(f"{ratio.median:.0f}") + (ratio.median < 10))
    return "{:,.{p}f} ({:,.{p}f}-{:,.{p}f})".format(*ratio, p=places)


def verdict(met: bool | None, budget: float | None) -> str:
    """Format a budget and whether it is met."""
    if met is None or budget is None:
        return ""
    return f"{budget:.3g} {'met' if met else 'MISSED'}"


def columns(table: Table) -> list[str]:
    """Return the peers, and "" for ourselves, for which some row has a budget."""
    found = dict.fromkeys(peer for row in table.rows for peer in row.budgets)
    return [peer for peer in found if peer == OURSELVES or peer in table.subjects]


def grid(table: Table) -> tuple[list[str], list[list[str]]]:
    """Return the head and the lines of a table, as cells."""
    head, budgets = [NAMES.get(table.unit, table.unit), *table.subjects], columns(table)
    peers = [name for name in table.subjects if name != table.ours]
    for peer in [*peers, *([OURSELVES] if OURSELVES in budgets else [])]:
        head += [f"vs {peer}"] if peer else []
        head += ["budget"] if peer in budgets else []
    return head, [_line(table, row, peers, budgets) for row in table.rows]


def _line(table: Table, row: Row, peers: list[str], budgets: list[str]) -> list[str]:
    line = [row.name, *(number(table.figure(row, name)) for name in table.subjects)]
    for peer in [*peers, *([OURSELVES] if OURSELVES in budgets else [])]:
        line += [share(row.ratio(table.ours, peer))] if peer else []
        line += [verdict(table.met(row, peer), row.budgets.get(peer))] if peer in budgets else []
    return line


def as_text(table: Table) -> str:
    """Align columns; the first to the left, the others to the right."""
    head, lines = grid(table)
    widths = [max(len(line[i]) for line in [head, *lines]) for i in range(len(head))]

    def one(cells: list[str]) -> str:
        made = [cells[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(cells[1:], widths[1:], strict=True))]
        return "  ".join(made).rstrip()

    table_lines = [one(head), "  ".join("-" * w for w in widths), *map(one, lines)]
    return "\n".join([title_line(table), *table_lines, *table.notes])


def title_line(table: Table) -> str:
    """Return the title and the number of threads."""
    return f"{table.title}{_threads(table)}"


def _threads(table: Table) -> str:
    return "" if table.threads is None else f", {table.threads} thread{'s' if table.threads > 1 else ''}"


def as_markdown(table: Table) -> str:
    """Format a table as Markdown, missed budgets in bold."""
    head, lines = grid(table)
    rows = [
        f"**{title_line(table)}**",
        "",
        _markdown_row(head),
        _markdown_row([":--", *["--:"] * (len(head) - 1)]),
        *map(_markdown_row, lines),
    ]
    notes = [text for note in table.notes for text in ("", note)]
    return "\n".join([*rows, *notes]).replace("MISSED", "**missed**")


def _markdown_row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def as_dict(table: Table) -> dict[str, Any]:
    """Return all data for JSON: results in the table's unit, and raw samples."""
    rows = []
    for row in table.rows:
        ratios = {peer: row.ratio(table.ours, peer) for peer in table.subjects}
        rows.append(
            {
                "name": row.name,
                "at": row.at,
                "medians": {name: table.figure(row, name) for name in table.subjects if row.samples.get(name)},
                "ratios": {peer: ratio._asdict() for peer, ratio in ratios.items() if ratio},
                "budgets": dict(row.budgets),
                "met": {peer: table.met(row, peer) for peer in row.budgets},
                "samples": {name: list(found) for name, found in row.samples.items()},
            }
        )
    fields = {name: getattr(table, name) for name in ("title", "unit", "ours", "threads", "axis", "notes", "fine")}
    return {**fields, "rows": rows}


def as_table(found: dict[str, Any]) -> Table:
    """Return a table from the result of `as_dict`."""
    fields = {name: found[name] for name in ("title", "unit", "ours", "threads", "axis", "notes", "fine")}
    return Table(rows=[Row(r["name"], r["samples"], r["budgets"], r["at"]) for r in found["rows"]], **fields)


def load() -> float | None:
    """Return the load average of the last minute; None if the system does not report it."""
    return round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None


def environment(before: float | None = None) -> dict[str, Any]:
    """Return the machine, the versions, the commit of the sources, and the load before the run."""
    packages = dict.fromkeys(["retrograd", "numpy", *(subject.package for subject in KNOWN.values())])
    return {
        "machine": f"{processor()}, {os.cpu_count()} processors, {platform.system()} {platform.machine()}",
        "load": before,
        "cpu": os.environ.get("RETROGRAD_CPU", ""),
        "python": platform.python_version(),
        "versions": versions(packages),
        "commit": commit_of(Path(__file__).parent),
    }


def commit_of(folder: Path) -> str:
    """Return the short name of the commit of a folder's sources, with "+" if these have changed; "" outside of git."""
    try:
        listed = _git(folder, "ls-files", "--error-unmatch", "report.py")
        name = _git(folder, "rev-parse", "--short", "HEAD") if listed else ""
        return name and name + ("+" if _git(folder, "status", "--porcelain", "--", "..") else "")
    except (OSError, subprocess.CalledProcessError):
        return ""


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def processor() -> str:
    """Return the name of the processor."""
    try:
        with open("/proc/cpuinfo") as file:
            return next(line.partition(":")[2].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or "unknown processor"


def environment_line(found: dict[str, Any]) -> str:
    """Format the environment as a line."""
    packages = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    level = f", limited to {found['cpu']}" if found.get("cpu") else ""
    commit = f"; commit {found['commit']}" if found.get("commit") else ""
    other = f"; load before the run: {found['load']}" if found.get("load") is not None else ""
    return f"{found['machine']}{level}; Python {found['python']}, {packages}{commit}{other}"
