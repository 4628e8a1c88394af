"""The events of a pipeline step, planned or measured, and their evaluation."""

import html
import math
import os
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import TypeVar

from retrograd.autograd.profiler.report import BACKWARD, OPERATOR, WAIT
from retrograd.foundation.suggestions import suggest_in_module, suggest_keywords
from retrograd.pipelining.schedules.actions import Kind, Message
from retrograd.pipelining.schedules.activations import activation_changes
from retrograd.pipelining.timeline.chrome_trace import write_perfetto
from retrograd.pipelining.timeline.page import render_html, write_html
from retrograd.pipelining.timeline.pictures import write_png, write_svg
from retrograd.pipelining.timeline.records import (
    PROGRAM,
    Event,
    HeldActivations,
    Sample,
    Span,
    Step,
)
from retrograd.pipelining.timeline.search import matcher

__all__ = [
    "PROGRAM",
    "Event",
    "HeldActivations",
    "Sample",
    "Span",
    "Step",
    "Timeline",
    "write_html",
    "write_perfetto",
    "write_png",
    "write_svg",
]

FRAME_HEAD, FRAME_LANE = 340, 60  # pixels of the page in a notebook: for its head and foot, and for each rank
Path = str | os.PathLike[str]
R = TypeVar("R", Event, Span, Step)
Sizes = Mapping[int, float] | Sequence[float]


class Timeline:
    """The events of steps on `ranks` ranks, in order of their start: of one step of a pipeline, or of a whole run.

    Times are seconds from the earliest start, whatever the clock showed. Only computations (F, B, I, W) count as busy:
    waiting for a message does not. A rank without actions, such as a plain training loop, is busy while operators run.

    activation_bytes: by stage, the bytes that it holds per microbatch from its forward to its backward.
    spans: the operators, backward nodes and named ranges that ran; see `TimelineRecorder`.
    steps: the steps of the training loop; without them, everything is one step.
    samples: the use of the machine over time.
    notes: sentences for the reader, such as the reason why a recording ended early.
    epoch: Unix time at 0 of the clock, by which `merge_timelines` combines the files of several processes.

    Raises ValueError for an event that ends before it starts, or on a rank that is not in range(ranks), and for
    a stage that is not in `activation_bytes`.

    >>> from retrograd.pipelining import Action, Kind
    >>> step = [Event(0, Action(Kind.F, 0, 0), 0.0, 1.0), Event(1, Action(Kind.F, 1, 0), 1.0, 2.0)]
    >>> timeline = Timeline(step, ranks=2)
    >>> timeline.span, timeline.busy(), timeline.bubble()
    (2.0, [0.5, 0.5], 0.5)
    """

    def __init__(
        self,
        events: Iterable[Event],
        ranks: int,
        activation_bytes: Sizes | None = None,
        *,
        spans: Iterable[Span] = (),
        steps: Iterable[Step] = (),
        samples: Iterable[Sample] = (),
        notes: Iterable[str] = (),
        epoch: float | None = None,
    ) -> None:
        self.events = tuple(sorted(events, key=lambda event: (event.start, event.end, event.rank)))
        self.spans = tuple(sorted(spans, key=lambda span: (span.start, span.depth, span.rank)))
        self.steps = tuple(sorted(steps, key=lambda step: step.start))
        self.samples = tuple(sorted(samples))
        self.notes = tuple(notes)
        self.ranks = ranks
        self.epoch = epoch
        self.activation_bytes = _by_stage(activation_bytes, self.events)
        for rank, what, start, end in self.events:
            _check_record(str(what), rank, start, end, range(ranks))
        for span in self.spans:
            _check_record(span.name, span.rank, span.start, span.end, range(PROGRAM, ranks))
        for step in self.steps:
            _check_record(f"step {step.number}", 0, step.start, step.end, range(1))

    def __repr__(self) -> str:
        counts = {"ranks": self.ranks, "steps": len(self.steps), "actions": len(self.events), "spans": len(self.spans)}
        shown = [f"{name}={count}" for name, count in counts.items() if count or name in ("ranks", "actions")]
        return f"Timeline({', '.join(shown)}, seconds={self.span:.4g}, bubble={self.bubble():.0%})"

    def _repr_html_(self) -> str:
        """Return the interactive page of `to_html` as a frame, for notebooks."""
        height = FRAME_HEAD + FRAME_LANE * self.ranks
        style = f"width:100%;height:{height}px;border:0"
        return f'<iframe srcdoc="{html.escape(render_html({"": self}))}" style="{style}"></iframe>'

    @cached_property
    def start(self) -> float:
        """Return the earliest start of an event, span or step, in seconds; 0 if there is none."""
        return min((record.start for record in self._records()), default=0.0)

    @cached_property
    def span(self) -> float:
        """Return the seconds from the earliest start to the latest end."""
        return max((record.end for record in self._records()), default=0.0) - self.start

    def _records(self) -> Iterable[Event | Span | Step]:
        return chain(self.events, self.spans, self.steps)

    def busy(self) -> list[float]:
        """Return each rank's share of the span spent computing, from 0 to 1."""
        seconds = [0.0] * self.ranks
        for event in self.events:
            if event.action.kind.is_compute:
                seconds[event.rank] += event.end - event.start
        spans_by_rank = self.spans_by_rank()
        for rank in set(range(self.ranks)) - {event.rank for event in self.events}:
            own = spans_by_rank.get(rank, [])
            waits = _length(span for span in own if span.kind == WAIT)
            seconds[rank] = _length(span for span in own if span.kind in (OPERATOR, BACKWARD, WAIT)) - waits
        return [share / self.span if self.span else 0.0 for share in seconds]

    def bubble(self) -> float:
        """Return the share of all ranks' time without computation: 1 - busy / (ranks * span)."""
        return 1.0 - sum(self.busy()) / self.ranks if self.span else 0.0

    @suggest_keywords
    def clip(self, start: float, end: float) -> "Timeline":
        """Return the timeline between two times, in seconds from the start; what crosses an end is cut there.

        So `timeline.clip(0.5, 0.75).busy()` measures a part of the time.

        Raises ValueError if the end is not after the start.

        >>> from retrograd.pipelining.schedules.actions import parse
        >>> Timeline([Event(0, parse("F0.0"), 0.0, 4.0)], ranks=2).clip(3, 5).busy()
        [0.5, 0.0]
        """
        if not start < end:
            raise ValueError(f"Timeline.clip: the end, {end}, must be after the start, {start}")
        begin, until = self.start + start, self.start + end

        def cut(records: Iterable[R]) -> list[R]:
            starting = (r for r in records if r.end > begin or r.start >= begin)  # not what ends where the part begins
            within = (r for r in starting if r.start < until or r.end <= until)
            return [r._replace(start=max(r.start, begin), end=min(r.end, until)) for r in within]

        part = Timeline(
            cut(self.events),
            self.ranks,
            self.activation_bytes,
            spans=cut(self.spans),
            steps=cut(self.steps),
            samples=[sample for sample in self.samples if begin <= sample.time <= until],
            notes=self.notes,
            epoch=self.epoch,
        )
        part.__dict__.update(start=begin, span=end - start)
        return part

    def step(self, number: int) -> "Timeline":
        """Return the timeline of one step.  Raises KeyError for a step that was not recorded."""
        for step in self.steps:
            if step.number == number:
                return self.clip(step.start - self.start, step.end - self.start)
        known = f"{self.steps[0].number} to {self.steps[-1].number}" if self.steps else "none"
        raise KeyError(f"there is no step {number}; recorded are {known}")

    @suggest_keywords
    def find(self, text: str) -> list[Event | Span]:
        """Return the actions and spans that a text names, by their start.

        text: words that all must hold: an action (`F2.3`), a kind (`backward`), a part of an operator's name
         (`linear`), `stage 1`, `rank 0`, `microbatch 4`, `step 7`.

        >>> spans = [Span(0, "linear", "operator", 0.0, 1.0), Span(0, "relu", "operator", 1.0, 2.0)]
        >>> [span.name for span in Timeline([], 1, spans=spans).find("lin rank 0")]
        ['linear']
        """
        return matcher(text, self.steps)([*self.events, *self.spans])

    def ideal_bubble(self) -> float | None:
        """Return the bubble of GPipe and 1F1B if all stages take equally long: (p - 1) / (m + p - 1).

        None if this does not apply: several steps, several stages on a rank, or split or missing backward passes.
        """
        if len(self.steps) > 1:
            return None
        kinds = {event.action.kind for event in self.events if event.action.kind.is_compute}
        stages = {event.action.stage for event in self.events}
        if kinds != {Kind.F, Kind.B} or len(stages) != self.ranks:
            return None
        micro_batches = len({event.action.micro_batch for event in self.events})
        return (self.ranks - 1) / (micro_batches + self.ranks - 1)

    def by_rank(self) -> list[list[Event]]:
        """Return each rank's events, in order of their start."""
        lanes: list[list[Event]] = [[] for _ in range(self.ranks)]
        for event in self.events:
            lanes[event.rank].append(event)
        return lanes

    def stages(self) -> list[list[int]]:
        """Return the stages on each rank, in order."""
        return [sorted({event.action.stage for event in lane}) for lane in self.by_rank()]

    def labels(self) -> list[str]:
        """Return a label for each rank: its stage, or the rank and its stages if it has several."""
        stages = self.stages()
        if not self.events and self.ranks == 1 and self.spans:
            return ["program"]
        return [_label(rank, its) for rank, its in enumerate(stages)]

    def spans_by_rank(self) -> dict[int, list[Span]]:
        """Return the spans of each rank that has any, and of `PROGRAM`, in order of their start."""
        lanes: dict[int, list[Span]] = {}
        for span in self.spans:
            lanes.setdefault(span.rank, []).append(span)
        return lanes

    def events_by_step(self) -> list[list[Event]]:
        """Return the events of each step; all of them as one step if no steps are known."""
        starts = [step.start for step in self.steps]
        found: list[list[Event]] = [[] for _ in self.steps or (None,)]
        for event in self.events:
            found[max(bisect_right(starts, event.start) - 1, 0)].append(event)
        return found

    def memory(self) -> list[list[HeldActivations]]:
        """Return each rank's activations over time: a forward adds its own at its start, and the end of the
        backward, or of its weight half, frees them.

        Empty for a step without any backward.

        >>> from retrograd.pipelining.schedules.actions import parse
        >>> texts = ["F0.0", "F0.1", "B0.0", "B0.1"]
        >>> step = [Event(0, parse(text), at, at + 1.0) for at, text in enumerate(texts)]
        >>> [(entry.time, entry.micro_batches, entry.bytes) for entry in Timeline(step, 1, [64]).memory()[0]]
        [(0, 1, 64.0), (1, 2, 128.0), (3.0, 1, 64.0), (4.0, 0, 0.0)]
        """
        backwards = any(event.action.kind in (Kind.B, Kind.W) for event in self.events)
        return [self._held_activations(lane) if backwards else [] for lane in self.by_rank()]

    def _held_activations(self, lane: list[Event]) -> list[HeldActivations]:
        sizes = self.activation_bytes
        steps, count, size = [], 0, 0.0
        changes = activation_changes([event.action for event in lane])
        for (_, action, start, end), sign in zip(lane, changes, strict=True):
            if sign:
                count += sign
                size += sign * sizes[action.stage] if sizes is not None else 0.0
                steps.append(HeldActivations(start if sign > 0 else end, count, None if sizes is None else size))
        return sorted(steps, key=lambda entry: entry.time)

    def peak_memory(self) -> list[tuple[int, float | None]]:
        """Return the peak microbatches and the peak bytes of each rank, which need not be at the same time.

        >>> from retrograd.pipelining.schedules.actions import parse
        >>> texts = ["F0.0", "F0.1", "B0.0", "B0.1"]
        >>> step = [Event(0, parse(text), at, at + 1.0) for at, text in enumerate(texts)]
        >>> Timeline(step, 1).peak_memory(), Timeline(step, 1, [64]).peak_memory()
        ([(2, None)], [(2, 128.0)])
        """
        sized = self.activation_bytes is not None
        counts = [max((entry.micro_batches for entry in steps), default=0) for steps in self.memory()]
        sizes = [
            max((entry.bytes or 0.0 for entry in steps), default=0.0) if sized else None for steps in self.memory()
        ]
        return list(zip(counts, sizes, strict=True))

    def critical_path(self) -> list[Event]:
        """Return the computations that determine when each step ends, in order; each waited for the one before.

        The path is traced back from the computation that ends last to the rank's previous action, or, if the rank
        waited for a message, to its sender. Shortening a computation that is not on the path gains nothing.

        >>> from retrograd.pipelining.schedules.actions import parse
        >>> rows = [(0, "F0.0", 0, 2), (0, "SEND_F0.0>1", 2, 2), (1, "RECV_F1.0<0", 0, 2), (1, "F1.0", 2, 3)]
        >>> step = Timeline([Event(rank, parse(text), start, end) for rank, text, start, end in rows], ranks=2)
        >>> [str(event.action) for event in step.critical_path()]
        ['F0.0', 'F1.0']
        """
        return [event for events in self.events_by_step() for event in _critical_path(events)]

    def to_html(self, path: Path) -> None:
        """Write an interactive page; see `write_html`."""
        write_html(path, {"": self})

    def to_png(self, path: Path) -> None:
        """Write a PNG image; see `write_png`."""
        write_png(path, {"": self})

    def to_svg(self, path: Path) -> None:
        """Write an SVG image; see `write_svg`."""
        write_svg(path, {"": self})

    def to_perfetto(self, path: Path) -> None:
        """Write a trace for Perfetto; see `write_perfetto`."""
        write_perfetto(path, {"": self})


def _label(rank: int, stages: list[int]) -> str:
    if len(stages) == 1:
        return f"stage {stages[0]}"
    return f"rank {rank}" + (f": stages {', '.join(map(str, stages))}" if stages else "")


def _critical_path(events: list[Event]) -> list[Event]:
    """Return the critical path of one step."""
    before, last = {}, dict[int, Event]()
    for event in events:
        if event.rank in last:
            before[id(event)] = last[event.rank]
        last[event.rank] = event
    sends = {event.action.message: event for event in events if event.action.kind.is_send}
    computed = [event for event in events if event.action.kind.is_compute]
    at = max(computed, key=lambda event: event.end, default=None)
    path = []
    while at is not None:
        if at.action.kind.is_compute:
            path.append(at)
        at = _blocking_send(at, sends) or before.get(id(at))
    return path[::-1]


def _length(spans: Iterable[Span]) -> float:
    """Return the seconds in at least one of the spans, which are ordered by their start."""
    total, reached = 0.0, -math.inf
    for span in spans:
        total += max(0.0, span.end - max(span.start, reached))
        reached = max(reached, span.end)
    return total


def _check_record(what: str, rank: int, start: float, end: float, ranks: range) -> None:
    if not start <= end:
        raise ValueError(f"{what} on rank {rank} ends at {end}, before its start at {start}")
    if rank not in ranks:
        raise ValueError(f"{what} is on rank {rank}, but there are {ranks.stop} ranks")


def _blocking_send(event: Event, sends: dict[Message, Event]) -> Event | None:
    """Return the send that a receive waited for; None if its message had arrived, or for another action.

    A send of length 0 is a planned one, whose message may be in transit: any wait is then for the message.
    """
    if not event.action.kind.is_receive or event.end == event.start:
        return None
    send = sends.pop(event.action.message, None)  # only once, so that the walk always ends
    return send if send and (send.end > event.start or send.end == send.start) else None


def _by_stage(sizes: Sizes | None, events: Iterable[Event]) -> dict[int, float] | None:
    if sizes is None:
        return None
    known = dict(sizes if isinstance(sizes, Mapping) else enumerate(sizes))
    missing = sorted({event.action.stage for event in events} - known.keys())
    if missing:
        raise ValueError(f"Timeline: activation_bytes says nothing of stage {missing[0]}, only of {sorted(known)}")
    return known


suggest_in_module(globals())
