"""The report of a compiled call as a page of HTML."""

import html
from collections.abc import Iterator

from retrograd.compiler.group_report import GroupReport

STYLE = """
.compiled { font: 13px system-ui, sans-serif; color: #222; background: #fff; padding: 8px }
.compiled table { border-collapse: collapse; width: 100% }
.compiled th, .compiled td { text-align: right; padding: 2px 8px; border-bottom: 1px solid #ddd }
.compiled th:first-child, .compiled td:first-child { text-align: left }
.compiled .line { position: relative; min-width: 160px; height: 12px; background: #f2f2f2 }
.compiled .bar { position: absolute; height: 12px; min-width: 1px; background: #2a6db0 }
.compiled pre { overflow-x: auto; background: #f7f7f7; padding: 8px }
"""
COLUMNS = ("call", "timeline", "time", "arrays", "bytes", "eager arrays", "eager bytes", "buffers")


def in_bytes(size: float) -> str:
    """Return a number of bytes with a unit.

    >>> in_bytes(12), in_bytes(4096), in_bytes(3 << 20)
    ('12 B', '4 KiB', '3 MiB')
    """
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.3g} {unit}"
        size /= 1024
    return f"{size:.3g} GiB"


def in_time(seconds: float) -> str:
    """Return a time with a unit.

    >>> in_time(2.5e-6), in_time(0.0125), in_time(3)
    ('2.5 us', '12.5 ms', '3 s')
    """
    for factor, unit in ((1e6, "us"), (1e3, "ms")):
        if seconds * factor < 1000:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds:.3g} s"


def render_report(summary: list[str], groups: tuple[GroupReport, ...], seconds: float | None, code: str) -> str:
    """Return the page of a report."""
    lines = "".join(f"<p>{html.escape(line)}</p>" for line in summary)
    head = "".join(f"<th>{name}</th>" for name in COLUMNS)
    rows = "".join(f"<tr>{''.join(_cells(group, seconds))}</tr>" for group in groups)
    table = f"<table><tr>{head}</tr>{rows}</table>" if groups else ""
    source = f"<details><summary>code</summary><pre>{html.escape(code)}</pre></details>" if code else ""
    return f'<div class="compiled"><style>{STYLE}</style>{lines}{table}{source}</div>'


def _cells(group: GroupReport, seconds: float | None) -> Iterator[str]:
    yield f'<td title="{html.escape(", ".join(group.ops))}">{html.escape(group.name)}</td>'
    yield f'<td><div class="line">{_bar(group, seconds)}</div></td>'
    buffers = group.buffers
    times = "" if group.seconds is None else in_time(group.seconds)
    memory = "" if buffers is None else f"{in_bytes(buffers.block)} for {in_bytes(buffers.in_block)}"
    memory += "" if buffers is None or not buffers.own else f", {in_bytes(buffers.own)} of their own"
    traffic = (group.passes, in_bytes(group.bytes), group.eager_passes, in_bytes(group.eager_bytes))
    for text in (times, *traffic, memory):
        yield f"<td>{text}</td>"


def _bar(group: GroupReport, seconds: float | None) -> str:
    if not seconds or group.start is None or group.seconds is None:
        return ""
    return f'<div class="bar" style="left:{group.start / seconds:.2%};width:{group.seconds / seconds:.2%}"></div>'
