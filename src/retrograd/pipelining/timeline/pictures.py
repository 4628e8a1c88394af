"""Draw timelines with matplotlib."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from retrograd.interop.atomic_write import atomic_replace
from retrograd.pipelining.schedules.actions import Action
from retrograd.pipelining.timeline.colors import COLOURS, ink_on, name_of, shades

if TYPE_CHECKING:
    from retrograd.pipelining.timeline.timeline import Event, Path, Timeline

INK, FAINT, GROUND, MEMORY = "#1f2733", "#667085", "#eef1f5", "#cfc2f2"
EDGE = "#7c5cd6"
FONTS = ["Inter", "Helvetica Neue", "Helvetica", "Arial", "Liberation Sans", "DejaVu Sans"]
INCHES_WIDE, MARGIN_RIGHT = 12.0, 0.85


def write_png(path: "Path", timelines: "Mapping[str, Timeline]", *, title: str = "", memory: bool = False) -> None:
    """Write timelines as a PNG image, one above the other on one time axis.

    timelines: name -> timeline, such as {"planned": ..., "measured": ...}. memory: also how many microbatches'
    activations each rank holds, as a strip below it. On the right is each rank's share of idle time.

    Raises ImportError without matplotlib.
    """
    _draw(path, timelines, title, memory, "png")


def write_svg(path: "Path", timelines: "Mapping[str, Timeline]", *, title: str = "", memory: bool = False) -> None:
    """Write timelines as an SVG image; see `write_png`."""
    _draw(path, timelines, title, memory, "svg")


def _draw(path: "Path", timelines: "Mapping[str, Timeline]", title: str, memory: bool, form: str) -> None:
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
        "text.parse_math": False,  # a name with two dollar signs is not a formula
    }
    with matplotlib.rc_context(style):
        figure = Figure(facecolor="white")
        _fill(figure, timelines, title, memory)
        with atomic_replace(path) as unfinished:
            figure.savefig(unfinished, format=form, dpi=200, metadata={"Date": None} if form == "svg" else None)


def _fill(figure: Any, timelines: "Mapping[str, Timeline]", title: str, memory: bool) -> None:
    """Place one panel per timeline, top to bottom, with sizes in inches."""
    heights = [timeline.ranks * _row_height(timeline, memory) for timeline in timelines.values()]
    head, gap, foot, left = 0.45, 0.42, 0.52, _left_margin(timelines)
    tall = head + sum(heights) + gap * len(heights) + foot
    figure.set_size_inches(INCHES_WIDE, tall)
    figure.text(left / INCHES_WIDE, 1 - 0.2 / tall, title, size=15, weight="bold", color=INK, va="top")
    _write_legend(figure, timelines, tall, memory)
    span = max((timeline.span for timeline in timelines.values()), default=0.0) or 1.0
    most = max((count for timeline in timelines.values() for count, _ in timeline.peak_memory()), default=0)
    top = tall - head
    for (name, timeline), height in zip(timelines.items(), heights, strict=True):
        top -= gap + height
        width = INCHES_WIDE - left - MARGIN_RIGHT
        axes = figure.add_axes((left / INCHES_WIDE, top / tall, width / INCHES_WIDE, height / tall))
        _draw_panel(axes, name, timeline, span, most if memory else 0)
    _label_time(figure)


def _row_height(timeline: "Timeline", memory: bool) -> float:
    return max(0.16, min(0.38, 3.2 / max(timeline.ranks, 1))) * (1.5 if memory else 1)


def _left_margin(timelines: "Mapping[str, Timeline]") -> float:
    labels = [label for timeline in timelines.values() for label in timeline.labels()]
    return 0.3 + 0.08 * max((len(label) for label in labels), default=0)


def _write_legend(figure: Any, timelines: "Mapping[str, Timeline]", tall: float, memory: bool) -> None:
    from matplotlib.patches import Patch

    used = {event.action.kind for timeline in timelines.values() for event in timeline.events}
    patches = [Patch(color=COLOURS[kind], label=name_of(kind)) for kind in COLOURS if kind in used]
    patches.append(Patch(color=GROUND, label="idle"))
    if memory:
        patches.append(Patch(color=MEMORY, label="activations kept"))
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


def _draw_panel(axes: Any, name: str, timeline: "Timeline", span: float, most: int) -> None:
    axes.set(xlim=(0, span * 1e3), ylim=(timeline.ranks - 0.5, -0.5))
    lane = (-0.44, 0.58) if most else (-0.44, 0.88)
    middles = [rank + lane[0] + lane[1] / 2 for rank in range(timeline.ranks)]
    axes.set_yticks(middles, timeline.labels(), color=INK, fontsize=10)
    axes.tick_params(length=0, pad=8)
    axes.tick_params(axis="x", labelcolor=FAINT, labelsize=9, pad=6)
    axes.spines[:].set_visible(False)
    title_parts = [name] if name else []
    title_parts += [f"bubble {timeline.bubble():.1%}", f"{_duration(timeline.span)}"]
    axes.set_title("  ·  ".join(title_parts), loc="left", color=INK, fontsize=11, pad=7)
    for middle, busy in zip(middles, timeline.busy(), strict=True):
        axes.annotate(f"{1 - busy:.0%} idle", (1, middle), (8, 0), xycoords=("axes fraction", "data"),
                      textcoords="offset points", va="center", color=FAINT, fontsize=9)  # fmt: skip
    _draw_boxes(axes, timeline, span, lane)
    if most:
        _draw_memory(axes, timeline, most)


def _duration(seconds: float) -> str:
    return f"{seconds:.4g} s" if seconds >= 1 else f"{seconds * 1e3:.4g} ms"


def _draw_boxes(axes: Any, timeline: "Timeline", span: float, lane: tuple[float, float]) -> None:
    """Draw the computations; lane: the offset of a row's boxes from its middle, and their height."""
    points_per_ms = axes.get_position().width * INCHES_WIDE * 72 / (span * 1e3)
    most = max(map(len, timeline.stages()), default=1)
    sizes = _number_sizes([event for event in timeline.events if event.action.kind.is_compute], points_per_ms)
    for rank, (events, stages) in enumerate(zip(timeline.by_rank(), timeline.stages(), strict=True)):
        vertical = (rank + lane[0], lane[1])
        axes.broken_barh([(0, timeline.span * 1e3)], vertical, color=GROUND, linewidth=0)
        boxes = [event for event in events if event.action.kind.is_compute]
        spans = [((start - timeline.start) * 1e3, (end - start) * 1e3) for _, _, start, end in boxes]
        colours = [shades(box.action.kind, most)[stages.index(box.action.stage)] for box in boxes]
        lines = [min(0.9, width * points_per_ms / 12) for _, width in spans]
        axes.broken_barh(spans, vertical, facecolors=colours, edgecolors="white", linewidths=lines or 0)
        for (left, width), box in zip(spans, boxes, strict=True):
            at = (left + width / 2, vertical[0] + vertical[1] / 2)
            _write_number(axes, box.action, at, width * points_per_ms, sizes)


def _draw_memory(axes: Any, timeline: "Timeline", most: int) -> None:
    for rank, entries in enumerate(timeline.memory()):
        steps = list({step.time: step for step in entries}.values())  # the last value at each time
        times = [(step.time - timeline.start) * 1e3 for step in steps]
        bottom = rank + 0.44
        heights = [bottom - 0.26 * step.micro_batches / most for step in steps]
        axes.fill_between(times, heights, bottom, step="post", color=MEMORY, linewidth=0)
        axes.plot(times, heights, drawstyle="steps-post", color=EDGE, linewidth=0.8)


def _number_sizes(boxes: "list[Event]", points_per_ms: float) -> list[float]:
    """Return the preferred font size, from the mean box so that numbers look alike, and the smallest one."""
    mean = sum(event.end - event.start for event in boxes) * 1e3 / max(len(boxes), 1)
    digits = max((len(str(event.action.micro_batch)) for event in boxes), default=1)
    return [max(5.0, min(10.0, mean * points_per_ms / digits / 0.68)), 5.0]


def _write_number(axes: Any, action: Action, at: tuple[float, float], wide: float, sizes: Any) -> None:
    """Write a box's microbatch number in the first size that fits into `wide` points, if any."""
    text = str(action.micro_batch)
    size = next((size for size in sizes if 0.6 * size * len(text) < wide), None)
    if size:
        axes.text(*at, text, size=size, color=ink_on(action.kind), ha="center", va="center_baseline", clip_on=True)


def _label_time(figure: Any) -> None:
    panels = figure.axes
    for panel in panels[:-1]:
        panel.set_xticks([])
    if panels:
        panels[-1].set_xlabel("time in ms", color=FAINT, fontsize=9.5, loc="right", labelpad=2)
