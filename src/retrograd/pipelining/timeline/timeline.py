"""The events of a pipeline step, planned or measured, and their evaluation."""

import html
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from retrograd.pipelining.schedules.actions import Action, Kind, Message
from retrograd.pipelining.timeline.chrome_trace import write_perfetto
from retrograd.pipelining.timeline.page import render_html, write_html
from retrograd.pipelining.timeline.pictures import write_png, write_svg

__all__ = ["Event", "HeldActivations", "Timeline", "write_html", "write_perfetto", "write_png", "write_svg"]

FRAME_HEAD, FRAME_LANE = 340, 60  # pixels of the page in a notebook: for its head and foot, and for each rank
Path = str | os.PathLike[str]
Sizes = Mapping[int, float] | Sequence[float]


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


class HeldActivations(NamedTuple):
    """The activations that a rank holds from a time until the next entry.

    time: seconds on the clock of the events. micro_batches: how many have activations, counted once per stage.
    bytes: their size, None if unknown.
    """

    time: float
    micro_batches: int
    bytes: float | None = None


class Timeline:
    """The events of one step of a pipeline with `ranks` ranks, in order of their start.

    Times are seconds from the earliest start, whatever the clock showed. Only
    computations (F, B, I, W) count as busy: waiting for a message does not.

    activation_bytes: by stage, the bytes that it holds per microbatch from its forward to its backward.

    Raises ValueError for an event that ends before it starts, or on a rank that is not in range(ranks), and for
    a stage that is not in `activation_bytes`.

    >>> step = [Event(0, Action(Kind.F, 0, 0), 0.0, 1.0), Event(1, Action(Kind.F, 1, 0), 1.0, 2.0)]
    >>> timeline = Timeline(step, ranks=2)
    >>> timeline.span, timeline.busy(), timeline.bubble()
    (2.0, [0.5, 0.5], 0.5)
    """

    def __init__(self, events: Iterable[Event], ranks: int, activation_bytes: Sizes | None = None) -> None:
        self.events = tuple(sorted(events, key=lambda event: (event.start, event.end, event.rank)))
        self.ranks = ranks
        self.activation_bytes = _by_stage(activation_bytes, self.events)
        for rank, action, start, end in self.events:
            if not start <= end:
                raise ValueError(f"{action} on rank {rank} ends at {end}, before its start at {start}")
            if not 0 <= rank < ranks:
                raise ValueError(f"{action} is on rank {rank}, but there are {ranks} ranks")

    def __repr__(self) -> str:
        numbers = f"ranks={self.ranks}, actions={len(self.events)}, seconds={self.span:.4g}"
        return f"Timeline({numbers}, bubble={self.bubble():.0%})"

    def _repr_html_(self) -> str:
        """Return the interactive page of `to_html` as a frame, for notebooks."""
        height = FRAME_HEAD + FRAME_LANE * self.ranks
        style = f"width:100%;height:{height}px;border:0"
        return f'<iframe srcdoc="{html.escape(render_html({"": self}))}" style="{style}"></iframe>'

    @cached_property
    def start(self) -> float:
        """Return the earliest start of an event, in seconds; 0 without events."""
        return min((event.start for event in self.events), default=0.0)

    @cached_property
    def span(self) -> float:
        """Return the seconds from the earliest start to the latest end."""
        return max((event.end for event in self.events), default=0.0) - self.start

    def busy(self) -> list[float]:
        """Return each rank's share of the span spent computing, from 0 to 1."""
        seconds = [0.0] * self.ranks
        for event in self.events:
            if event.action.kind.is_compute:
                seconds[event.rank] += event.end - event.start
        return [share / self.span if self.span else 0.0 for share in seconds]

    def bubble(self) -> float:
        """Return the share of all ranks' time without computation: 1 - busy / (ranks * span)."""
        return 1.0 - sum(self.busy()) / self.ranks if self.span else 0.0

    def ideal_bubble(self) -> float | None:
        """Return the bubble of GPipe and 1F1B if all stages take equally long: (p - 1) / (m + p - 1).

        None if this does not apply: several stages on a rank, or split or missing backward passes.
        """
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
        return [_label(rank, stages) for rank, stages in enumerate(self.stages())]

    def memory(self) -> list[list[HeldActivations]]:
        """Return each rank's activations over time: a forward adds its own at its start, and the end of the
        backward, or of its weight half, frees them.

        Empty for a step without any backward.

        >>> from retrograd.pipelining.schedules.actions import parse
        >>> step = [Event(0, parse(text), at, at + 1.0) for at, text in enumerate(["F0.0", "F0.1", "B0.0", "B0.1"])]
        >>> [(entry.time, entry.micro_batches, entry.bytes) for entry in Timeline(step, 1, [64]).memory()[0]]
        [(0, 1, 64.0), (1, 2, 128.0), (3.0, 1, 64.0), (4.0, 0, 0.0)]
        """
        backwards = any(event.action.kind in (Kind.B, Kind.W) for event in self.events)
        return [self._held_activations(lane) if backwards else [] for lane in self.by_rank()]

    def _held_activations(self, lane: list[Event]) -> list[HeldActivations]:
        change = {Kind.F: 1, Kind.B: -1, Kind.W: -1}
        sizes = self.activation_bytes
        steps, count, size = [], 0, 0.0
        for _, action, start, end in lane:
            if sign := change.get(action.kind, 0):
                count += sign
                size += sign * sizes[action.stage] if sizes is not None else 0.0
                steps.append(HeldActivations(start if sign > 0 else end, count, None if sizes is None else size))
        return sorted(steps, key=lambda entry: entry.time)

    def peak_memory(self) -> list[tuple[int, float | None]]:
        """Return the peak microbatches and the peak bytes of each rank, which need not be at the same time.

        >>> from retrograd.pipelining.schedules.actions import parse
        >>> step = [Event(0, parse(text), at, at + 1.0) for at, text in enumerate(["F0.0", "F0.1", "B0.0", "B0.1"])]
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
        """Return the computations that determine when the step ends, in order; each waited for the one before.

        The path is traced back from the computation that ends last to the rank's previous action, or, if the rank
        waited for a message, to its sender. Shortening a computation that is not on the path gains nothing.

        >>> from retrograd.pipelining.schedules.actions import parse
        >>> rows = [(0, "F0.0", 0, 2), (0, "SEND_F0.0>1", 2, 2), (1, "RECV_F1.0<0", 0, 2), (1, "F1.0", 2, 3)]
        >>> step = Timeline([Event(rank, parse(text), start, end) for rank, text, start, end in rows], ranks=2)
        >>> [str(event.action) for event in step.critical_path()]
        ['F0.0', 'F1.0']
        """
        before = {id(event): lane[at - 1] for lane in self.by_rank() for at, event in enumerate(lane) if at}
        sends = {event.action.message: event for event in self.events if event.action.kind.is_send}
        computed = [event for event in self.events if event.action.kind.is_compute]
        event = max(computed, key=lambda event: event.end, default=None)
        path = []
        while event is not None:
            if event.action.kind.is_compute:
                path.append(event)
            event = _blocking_send(event, sends) or before.get(id(event))
        return path[::-1]

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
