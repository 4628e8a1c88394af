"""The report of a compiled call as a page of HTML."""

from collections.abc import Iterator

from retrograd.compiler.group_report import GroupReport
from retrograd.foundation.html_report import Markup, code_block, escape, paragraph, report, table

BAR_STYLE = """
.retrograd-report .line { position: relative; min-width: 160px; height: 12px; background: #8883 }
.retrograd-report .bar { position: absolute; height: 12px; min-width: 1px; background: #3b82c4 }
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
    parts = [paragraph(line) for line in summary]
    parts += [table([list(_cells(group, seconds)) for group in groups], COLUMNS)] if groups else []
    parts += [code_block("code", code)] if code else []
    return report(*parts, style=BAR_STYLE)


def _cells(group: GroupReport, seconds: float | None) -> Iterator[str]:
    yield Markup(f'<span title="{escape(", ".join(group.ops))}">{escape(group.name)}</span>')
    yield Markup(f'<div class="line">{_bar(group, seconds)}</div>')
    buffers = group.buffers
    yield "" if group.seconds is None else in_time(group.seconds)
    memory = "" if buffers is None else f"{in_bytes(buffers.block)} for {in_bytes(buffers.in_block)}"
    memory += "" if buffers is None or not buffers.own else f", {in_bytes(buffers.own)} of their own"
    yield from (str(group.passes), in_bytes(group.bytes), str(group.eager_passes), in_bytes(group.eager_bytes), memory)


def _bar(group: GroupReport, seconds: float | None) -> str:
    if not seconds or group.start is None or group.seconds is None:
        return ""
    return f'<div class="bar" style="left:{group.start / seconds:.2%};width:{group.seconds / seconds:.2%}"></div>'
