"""What the ranks of a pipeline did when, planned or measured, and how to look at it."""

import html
import json
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from retrograd.core.files import replacing
from retrograd.pipelining.actions import Action, Kind
from retrograd.pipelining.timeline_page import PAGE

Path = str | os.PathLike[str]

COLOURS = {Kind.F: "#2f6fde", Kind.B: "#0c8f82", Kind.I: "#0c8f82", Kind.W: "#84c66b"}
NAMES = {Kind.F: "forward", Kind.B: "backward", Kind.I: "input gradient", Kind.W: "weight gradient"}


class Event(NamedTuple):
    """An action on a rank, from `start` to `end`, in seconds of one clock that all ranks share.

    >>> event = Event(0, Action(Kind.F, 0, 3), start=1.0, end=1.5)
    >>> f"{event.action} took {event.end - event.start} s"
    'F0.3 took 0.5 s'
    """

    rank: int
    action: Action
    start: float
    end: float


class Timeline:
    """The events of one step of a pipeline with `ranks` ranks, in order of their start.

    Times are seconds; the earliest start counts as the beginning, whatever the clock showed. Only
    computations (F, B, I, W) count as busy: waiting for a message does not.

    Raises ValueError for an event that ends before it starts, or on a rank that is not in range(ranks).

    >>> step = [Event(0, Action(Kind.F, 0, 0), 0.0, 1.0), Event(1, Action(Kind.F, 1, 0), 1.0, 2.0)]
    >>> timeline = Timeline(step, ranks=2)
    >>> timeline.span, timeline.busy(), timeline.bubble()
    (2.0, [0.5, 0.5], 0.5)
    """

    def __init__(self, events: Iterable[Event], ranks: int) -> None:
        self.events = tuple(sorted(events, key=lambda event: (event.start, event.end, event.rank)))
        self.ranks = ranks
        for rank, action, start, end in self.events:
            if not start <= end:
                raise ValueError(f"{action} on rank {rank} ends at {end}, before its start at {start}")
            if not 0 <= rank < ranks:
                raise ValueError(f"{action} is on rank {rank}, but there are {ranks} ranks")

    @property
    def start(self) -> float:
        """The earliest start of an event, in seconds; 0 without events."""
        return min((event.start for event in self.events), default=0.0)

    @property
    def span(self) -> float:
        """Seconds from the earliest start to the latest end."""
        return max((event.end for event in self.events), default=0.0) - self.start

    def busy(self) -> list[float]:
        """Each rank's share of the span spent computing, from 0 to 1."""
        seconds = [0.0] * self.ranks
        for event in self.events:
            if event.action.kind.is_compute:
                seconds[event.rank] += event.end - event.start
        return [share / self.span if self.span else 0.0 for share in seconds]

    def bubble(self) -> float:
        """The share of all ranks' time in which they compute nothing: 1 - busy / (ranks * span)."""
        return 1.0 - sum(self.busy()) / self.ranks if self.span else 0.0

    def ideal_bubble(self) -> float | None:
        """The bubble of GPipe and 1F1B where all stages take equally long: (p - 1) / (m + p - 1).

        None where this does not apply: several stages on a rank, or backwards in halves or not at all.
        """
        kinds = {event.action.kind for event in self.events if event.action.kind.is_compute}
        stages = {event.action.stage for event in self.events}
        if kinds != {Kind.F, Kind.B} or len(stages) != self.ranks:
            return None
        micro_batches = len({event.action.micro_batch for event in self.events})
        return (self.ranks - 1) / (micro_batches + self.ranks - 1)

    def labels(self) -> list[str]:
        """A name for each rank: its stage, or the rank and its stages when it has several."""
        stages: list[set[int]] = [set() for _ in range(self.ranks)]
        for event in self.events:
            stages[event.rank].add(event.action.stage)
        return [_label(rank, sorted(held)) for rank, held in enumerate(stages)]

    def to_html(self, path: Path) -> None:
        """Write an interactive page; see `write_html`."""
        write_html(path, {"": self})

    def to_png(self, path: Path) -> None:
        """Write a picture of pixels; see `write_png`."""
        write_png(path, {"": self})

    def to_svg(self, path: Path) -> None:
        """Write a picture of lines; see `write_svg`."""
        write_svg(path, {"": self})

    def to_perfetto(self, path: Path) -> None:
        """Write a trace for Perfetto; see `write_perfetto`."""
        write_perfetto(path, {"": self})


def _label(rank: int, stages: list[int]) -> str:
    if len(stages) == 1:
        return f"stage {stages[0]}"
    return f"rank {rank}" + (f": stages {', '.join(map(str, stages))}" if stages else "")


def write_perfetto(path: Path, timelines: Mapping[str, Timeline]) -> None:
    """Write timelines as one Chrome trace (JSON), which ui.perfetto.dev and chrome://tracing open.

    timelines: name -> timeline, such as {"planned": ..., "measured": ...}; each becomes a process, its ranks
    threads. Times are microseconds from each timeline's beginning.

    Source of the format: "Trace Event Format", the Chromium project.
    """
    records = [record for process, item in enumerate(timelines.items()) for record in _trace(process, *item)]
    _write(path, json.dumps({"traceEvents": records, "displayTimeUnit": "ms"}))


def _trace(process: int, name: str, timeline: Timeline) -> list[dict[str, Any]]:
    def tell(what: str, rank: int, told: str) -> dict[str, Any]:
        return {"ph": "M", "name": what, "pid": process, "tid": rank, "args": {"name": told}}

    head = [tell("process_name", 0, name or "pipeline")]
    head += [tell("thread_name", rank, label) for rank, label in enumerate(timeline.labels())]
    return head + [_slice(process, timeline.start, event) for event in timeline.events]


def _slice(process: int, origin: float, event: Event) -> dict[str, Any]:
    action = event.action
    about = {"stage": action.stage, "micro_batch": action.micro_batch, "peer": action.peer}
    return {
        "ph": "X",
        "name": str(action),
        "cat": action.kind.value,
        "pid": process,
        "tid": event.rank,
        "ts": (event.start - origin) * 1e6,
        "dur": (event.end - event.start) * 1e6,
        "args": {key: value for key, value in about.items() if value is not None},
    }


def write_html(path: Path, timelines: Mapping[str, Timeline], *, title: str = "Pipeline timeline") -> None:
    """Write timelines as one interactive page that needs nothing else, neither network nor libraries.

    timelines: name -> timeline, such as {"planned": ..., "measured": ...}; drawn one above the other on one
    time axis. Wheel, drag and pinch zoom and move it, a box tells what it is, a table sums up each rank.
    """
    data = {
        "colours": {kind.value: colour for kind, colour in COLOURS.items()},
        "names": {kind.value: name for kind, name in NAMES.items()},
        "timelines": [_page_data(name, timeline) for name, timeline in timelines.items()],
    }
    # Inside a script element only "<" can end it or open a comment; the escape means the same in JSON.
    texts = {"TITLE": html.escape(title), "DATA": json.dumps(data).replace("<", "\\u003c")}
    _write(path, re.sub("@@(TITLE|DATA)@@", lambda match: texts[match[1]], PAGE))


def _page_data(name: str, timeline: Timeline) -> dict[str, Any]:
    origin = timeline.start
    events = [[rank, *action, start - origin, end - origin] for rank, action, start, end in timeline.events]
    return {
        "name": name,
        "rows": timeline.labels(),
        "span": timeline.span,
        "busy": timeline.busy(),
        "bubble": timeline.bubble(),
        "ideal": timeline.ideal_bubble(),
        "events": events,
    }


def write_png(path: Path, timelines: Mapping[str, Timeline], *, title: str = "") -> None:
    """Write timelines as a picture of pixels, one above the other on one time axis.

    timelines: name -> timeline, such as {"planned": ..., "measured": ...}. Raises ImportError without
    matplotlib.
    """
    _draw(path, timelines, title, "png")


def write_svg(path: Path, timelines: Mapping[str, Timeline], *, title: str = "") -> None:
    """Write timelines as a picture of lines that scales; see `write_png`."""
    _draw(path, timelines, title, "svg")


INK, FAINT, GROUND = "#1f2733", "#667085", "#eef1f5"
FONTS = ["Inter", "Helvetica Neue", "Helvetica", "Arial", "Liberation Sans", "DejaVu Sans"]
INCHES_WIDE, MARGIN_RIGHT = 12.0, 0.25


def _draw(path: Path, timelines: Mapping[str, Timeline], title: str, form: str) -> None:
    try:
        import matplotlib
        from matplotlib.figure import Figure
        from matplotlib.font_manager import get_font_names
    except ImportError as error:
        raise ImportError('pictures need matplotlib: pip install "retrograd[viz]"') from error
    known = set(get_font_names())
    style: dict[Any, Any] = {
        "font.family": next((font for font in FONTS if font in known), "sans-serif"),
        "svg.fonttype": "none",
        "svg.hashsalt": "retrograd",
    }
    with matplotlib.rc_context(style):
        figure = Figure(facecolor="white")
        _fill(figure, timelines, title)
        with replacing(path) as unfinished:
            figure.savefig(unfinished, format=form, dpi=200, metadata={"Date": None} if form == "svg" else None)


def _fill(figure: Any, timelines: Mapping[str, Timeline], title: str) -> None:
    """Place one panel per timeline, top to bottom, with sizes in inches."""
    heights = [timeline.ranks * _row_height(timeline) for timeline in timelines.values()]
    head, gap, foot, left = 0.45, 0.42, 0.52, _left_margin(timelines)
    tall = head + sum(heights) + gap * len(heights) + foot
    figure.set_size_inches(INCHES_WIDE, tall)
    figure.text(left / INCHES_WIDE, 1 - 0.2 / tall, title, size=15, weight="bold", color=INK, va="top")
    _write_legend(figure, timelines, tall)
    span = max((timeline.span for timeline in timelines.values()), default=0.0) or 1.0
    top = tall - head
    for (name, timeline), height in zip(timelines.items(), heights, strict=True):
        top -= gap + height
        width = INCHES_WIDE - left - MARGIN_RIGHT
        box = (left / INCHES_WIDE, top / tall, width / INCHES_WIDE, height / tall)
        _draw_panel(figure.add_axes(box), name, timeline, span)
    _label_time(figure)


def _row_height(timeline: Timeline) -> float:
    return max(0.16, min(0.38, 3.2 / timeline.ranks))


def _left_margin(timelines: Mapping[str, Timeline]) -> float:
    labels = [label for timeline in timelines.values() for label in timeline.labels()]
    return 0.3 + 0.08 * max((len(label) for label in labels), default=0)


def _write_legend(figure: Any, timelines: Mapping[str, Timeline], tall: float) -> None:
    from matplotlib.patches import Patch

    used = {event.action.kind for timeline in timelines.values() for event in timeline.events}
    patches = [Patch(color=COLOURS[kind], label=NAMES[kind]) for kind in COLOURS if kind in used]
    patches.append(Patch(color=GROUND, label="idle"))
    figure.legend(
        handles=patches,
        loc="upper right",
        bbox_to_anchor=(1 - MARGIN_RIGHT / INCHES_WIDE, 1 - 0.14 / tall),
        borderaxespad=0,
        ncols=len(patches),
        frameon=False,
        fontsize=10,
        handlelength=1,
        handleheight=1,
        labelcolor=INK,
        columnspacing=1.4,
        handletextpad=0.5,
    )


def _draw_panel(axes: Any, name: str, timeline: Timeline, span: float) -> None:
    axes.set(xlim=(0, span * 1e3), ylim=(timeline.ranks - 0.5, -0.5))
    axes.set_yticks(range(timeline.ranks), timeline.labels(), color=INK, fontsize=10)
    axes.tick_params(length=0, pad=8)
    axes.tick_params(axis="x", labelcolor=FAINT, labelsize=9, pad=6)
    axes.spines[:].set_visible(False)
    tell = [name] if name else []
    tell += [f"bubble {timeline.bubble():.1%}", f"{timeline.span * 1e3:.4g} ms"]
    axes.set_title("  ·  ".join(tell), loc="left", color=INK, fontsize=11, pad=7)
    _draw_boxes(axes, timeline, span)


def _draw_boxes(axes: Any, timeline: Timeline, span: float) -> None:
    for rank in range(timeline.ranks):
        axes.broken_barh([(0, timeline.span * 1e3)], (rank - 0.44, 0.88), color=GROUND, linewidth=0)
    boxes = [event for event in timeline.events if event.action.kind.is_compute]
    points_per_ms = axes.get_position().width * INCHES_WIDE * 72 / (span * 1e3)
    sizes = _number_sizes(boxes, points_per_ms)
    for rank, action, start, end in boxes:
        left, width = (start - timeline.start) * 1e3, (end - start) * 1e3
        points = width * points_per_ms
        look = {"facecolor": COLOURS[action.kind], "edgecolor": "white", "linewidth": min(0.9, points / 12)}
        axes.broken_barh([(left, width)], (rank - 0.44, 0.88), **look)
        _write_number(axes, action, (left + width / 2, rank), points, sizes)


def _number_sizes(boxes: list[Event], points_per_ms: float) -> list[float]:
    """The size of most numbers, set by the mean box so that they look alike, and the least readable size."""
    mean = sum(event.end - event.start for event in boxes) * 1e3 / max(len(boxes), 1)
    digits = max((len(str(event.action.micro_batch)) for event in boxes), default=1)
    return [max(5.0, min(10.0, mean * points_per_ms / digits / 0.68)), 5.0]


def _write_number(axes: Any, action: Action, at: tuple[float, float], wide: float, sizes: Any) -> None:
    """Write a box's micro-batch number at the first size with which it fits into so many points, if any."""
    text = str(action.micro_batch)
    size = next((size for size in sizes if 0.6 * size * len(text) < wide), None)
    if size:
        ink = "#14301a" if action.kind is Kind.W else "white"
        axes.text(*at, text, size=size, color=ink, ha="center", va="center_baseline", clip_on=True)


def _label_time(figure: Any) -> None:
    panels = figure.axes
    for panel in panels[:-1]:
        panel.set_xticks([])
    if panels:
        panels[-1].set_xlabel("time in ms", color=FAINT, fontsize=9.5, loc="right", labelpad=2)


def _write(path: Path, text: str) -> None:
    with replacing(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8")
