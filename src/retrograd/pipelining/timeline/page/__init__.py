"""Export timelines as a self-contained HTML page."""

import html
import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from retrograd.foundation.suggestions import suggest_in_module
from retrograd.interop.atomic_write import atomic_replace
from retrograd.pipelining.schedules.actions import Kind
from retrograd.pipelining.timeline.colors import ink_on, name_of, shades
from retrograd.pipelining.timeline.records import COMMUNICATION, PROGRAM, SPAN_KINDS, Span
from retrograd.pipelining.timeline.search import OPERATOR_NAMES

if TYPE_CHECKING:
    from retrograd.pipelining.timeline.timeline import Timeline

SCRIPTS = (
    "spans.js",
    "data.js",
    "draw.js",
    "chart.js",
    "overlay.js",
    "machine.js",
    "search.js",
    "pointer.js",
    "page.js",
)
FINEST_TICK = 1e-8  # seconds; operators of a long run are short compared with its span


def write_html(path: "str | os.PathLike[str]", timelines: "Mapping[str, Timeline]", *, title: str = "Timeline") -> None:
    """Write timelines as one interactive page that needs neither network nor libraries.

    timelines: name -> timeline, such as {"planned": ..., "measured": ...}; drawn on one time axis, one below the
    other or rank by rank. Wheel, drag, pinch, buttons and keys zoom and move it; pointing at an action shows its
    description, and a click pins it; below each rank is the number of microbatches whose activations it holds.

    >>> from tempfile import TemporaryDirectory
    >>> from retrograd.pipelining.schedules.actions import parse
    >>> from retrograd.pipelining.timeline.timeline import Event, Timeline
    >>> step = Timeline([Event(0, parse("F0.0"), 0.0, 1.0)], ranks=1)
    >>> with TemporaryDirectory() as folder:
    ...     write_html(f"{folder}/step.html", {"planned": step})
    """
    page = render_html(timelines, title=title)
    with atomic_replace(path) as unfinished:
        unfinished.write_text(page, encoding="utf-8")


def render_html(timelines: "Mapping[str, Timeline]", *, title: str = "Timeline") -> str:
    """Return the page of `write_html` as text."""
    kinds = list(Kind)
    most = max((len(stages) for timeline in timelines.values() for stages in timeline.stages()), default=1)
    data = {
        "kinds": [_kind_as_json(kind, most) for kind in kinds],
        "operatorNames": OPERATOR_NAMES,
        "timelines": [_timeline_as_json(name, timeline, kinds) for name, timeline in timelines.items()],
    }
    # Inside a script element only "<" can end it or open a comment; the escape means the same in JSON.
    texts = {
        "TITLE": html.escape(title),
        "DATA": json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"),
        "STYLE": _asset("page.css"),
        "SCRIPT": '"use strict";\n' + "".join(map(_asset, SCRIPTS)),
    }
    return re.sub("@@([A-Z]+)@@", lambda match: texts[match[1]], _asset("page.html"))


def _asset(name: str) -> str:
    return files(__name__).joinpath(name).read_text(encoding="utf-8")


def _kind_as_json(kind: Kind, stages: int) -> dict[str, Any]:
    return {
        "code": kind.value,
        "name": name_of(kind),
        "compute": kind.is_compute,
        "colours": shades(kind, stages),
        "ink": ink_on(kind),
    }


def _timeline_as_json(name: str, timeline: "Timeline", kinds: list[Kind]) -> dict[str, Any]:
    clock = _Clock(timeline)
    lanes = timeline.by_rank()
    index = {id(event): (rank, i) for rank, lane in enumerate(lanes) for i, event in enumerate(lane)}
    return {
        "name": name,
        "labels": timeline.labels(),
        "tick": clock.tick,
        "span": timeline.span,
        "busy": timeline.busy(),
        "bubble": timeline.bubble(),
        "ideal": timeline.ideal_bubble(),
        "lanes": [clock.encode(lane, kinds) for lane in lanes],
        "critical": [index[id(event)] for event in timeline.critical_path()],
        "memory": [
            [(clock.ticks(entry.time), *_without_none(entry[1:])) for entry in steps] for steps in timeline.memory()
        ],
        "peaks": [_without_none(peak) for peak in timeline.peak_memory()],
        "steps": [(step.number, clock.ticks(step.start), clock.ticks(step.end)) for step in timeline.steps],
        "spans": _spans_as_json(timeline, clock),
        "samples": {
            "times": [clock.ticks(sample.time) for sample in timeline.samples],
            "cores": [[round(100 * share) for share in sample.cores] for sample in timeline.samples],
            "memory": [sample.memory for sample in timeline.samples],
        },
        "notes": timeline.notes,
    }


def _spans_as_json(timeline: "Timeline", clock: "_Clock") -> dict[str, Any]:
    """Return the spans by rank, six integers each: name, kind, line, shapes, time since the last start, length."""
    numbers: dict[str, int] = {}
    lanes: dict[int, list[int]] = {}
    for rank, spans in timeline.spans_by_rank().items():
        lane, before = lanes.setdefault(rank, []), 0
        for span in by_line(spans):
            start, end = clock.ticks(span.start), clock.ticks(span.end)
            name, shapes = (numbers.setdefault(text, len(numbers)) for text in (span.name, span.shapes))
            lane += [name, SPAN_KINDS.index(span.kind), span.depth, shapes, start - before, end - start]
            before = start
    return {"texts": list(numbers), "kinds": SPAN_KINDS, "program": lanes.pop(PROGRAM, []), "lanes": lanes}


def by_line(spans: "Sequence[Span]") -> list[Span]:
    """Return the spans of a rank with the lines on which they are drawn as depths: communications are above the others.

    Each communication takes the first line that is free.
    """
    ends: list[float] = []
    found = {}
    for i, span in enumerate(spans):
        if span.kind == COMMUNICATION:
            line = next((line for line, end in enumerate(ends) if end <= span.start), len(ends))
            ends[line : line + 1] = [span.end]
            found[i] = line
    return [span._replace(depth=found.get(i, span.depth + len(ends))) for i, span in enumerate(spans)]


def _without_none(values: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(value for value in values if value is not None)


class _Clock:
    """Times of a timeline as integer ticks from its start, a billionth of its span or finer: shorter in the file."""

    def __init__(self, timeline: "Timeline") -> None:
        self.start = timeline.start
        self.tick = 10.0 ** (math.floor(math.log10(timeline.span)) - 9) if timeline.span else 1.0
        self.tick = min(self.tick, FINEST_TICK)

    def ticks(self, time: float) -> int:
        return round((time - self.start) / self.tick)

    def encode(self, lane: list[Any], kinds: list[Kind]) -> list[int]:
        """Return six integers per event: kind, stage, microbatch, peer or -1, time since the last one's end,
        length."""
        numbers, now = [], 0
        for _, (kind, stage, micro_batch, peer), start, end in lane:
            begin, until = self.ticks(start), self.ticks(end)
            numbers += [kinds.index(kind), stage, micro_batch, -1 if peer is None else peer, begin - now, until - begin]
            now = until
        return numbers


suggest_in_module(globals())
