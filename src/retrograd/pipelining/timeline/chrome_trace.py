"""Export timelines as traces for Perfetto and chrome://tracing."""

import json
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from retrograd.foundation.suggestions import suggest_in_module
from retrograd.interop.atomic_write import atomic_replace
from retrograd.pipelining.schedules.actions import Action, Kind
from retrograd.pipelining.timeline.records import COMMUNICATION, PROGRAM, Event, Span, Step

if TYPE_CHECKING:
    from retrograd.pipelining.timeline.timeline import Timeline

Record = dict[str, Any]
INSIDE = 1e-3  # microseconds, the resolution of Perfetto: an arrow starts within its slice, not at its end
STEP, CORES, MEMORY = "step", "CPU use", "memory"  # the category of steps, and the names of the counters of samples
STEPS_THREAD, UNNAMED = "steps", "timeline"  # the names of the thread of steps, and of a timeline without a name


def write_perfetto(path: "str | os.PathLike[str]", timelines: "Mapping[str, Timeline]") -> None:
    """Write timelines as one Chrome trace (JSON) for ui.perfetto.dev and chrome://tracing.

    timelines: name -> timeline, such as {"planned": ..., "measured": ...}; each becomes a process, its ranks
    threads, and their operators slices inside of the actions. Steps, and the operators of the training loop of a
    pipeline, are a further thread. Times are microseconds from each timeline's start. Messages are arrows from the
    computation that produced them to the one that uses them; counters show the number of microbatches whose activations
    each rank holds, their bytes if known, and the use of the machine.

    `read_perfetto` reads the file.

    Source of the format: "Trace Event Format", the Chromium project.

    >>> from tempfile import TemporaryDirectory
    >>> from retrograd.pipelining.schedules.actions import parse
    >>> from retrograd.pipelining.timeline.timeline import Event, Timeline
    >>> step = Timeline([Event(0, parse("F0.0"), 0.0, 1.0)], ranks=1)
    >>> with TemporaryDirectory() as folder:
    ...     write_perfetto(f"{folder}/step.json", {"planned": step})
    """
    about = [
        {"notes": timeline.notes, "epoch": timeline.epoch, "start": timeline.start} for timeline in timelines.values()
    ]
    before = f'{{"displayTimeUnit": "ms", "metadata": {{"retrograd": {json.dumps(about)}}}, "traceEvents": ['
    arrows = 0
    with atomic_replace(path) as unfinished, open(unfinished, "w", encoding="utf-8") as file:
        file.write(before)
        separator = "\n"
        for process, (name, timeline) in enumerate(timelines.items()):
            for record in _Trace(process, timeline).records(name, arrows):
                file.write(separator + json.dumps(record))
                separator, arrows = ",\n", arrows + (record["ph"] == "s")
        file.write("\n]}\n")


class _Trace:
    """The records of one timeline, as a numbered process."""

    def __init__(self, process: int, timeline: "Timeline") -> None:
        self.process = process
        self.timeline = timeline
        self.labels = timeline.labels()
        self.has_program = bool(timeline.steps) or any(span.rank == PROGRAM for span in timeline.spans)

    def records(self, name: str, first_arrow: int) -> Iterator[Record]:
        yield from self.metadata_records(name)
        yield from map(self.step, self.timeline.steps)
        yield from map(self.slice, self.timeline.events)
        for number, span in enumerate(self.timeline.spans):
            yield from self.communication(span, number) if span.kind == COMMUNICATION else [self.span(span)]
        yield from self.arrows(first_arrow)
        yield from self.counters()
        yield from self.samples()

    def record(self, phase: str, rank: int, time: float, **more: Any) -> Record:
        thread = self.timeline.ranks if rank == PROGRAM else rank
        return {"ph": phase, "pid": self.process, "tid": thread, "ts": (time - self.timeline.start) * 1e6, **more}

    def metadata_records(self, name: str) -> Iterator[Record]:
        def metadata(what: str, thread: int, **arguments: Any) -> Record:
            return {"ph": "M", "name": what, "pid": self.process, "tid": thread, "args": arguments}

        yield metadata("process_name", 0, name=name or UNNAMED)
        yield metadata("process_sort_index", 0, sort_index=self.process)
        for rank, label in enumerate(self.labels):
            yield metadata("thread_name", rank, name=label)
            yield metadata("thread_sort_index", rank, sort_index=rank)
        if self.has_program:
            yield metadata("thread_name", len(self.labels), name=STEPS_THREAD)
            yield metadata("thread_sort_index", len(self.labels), sort_index=-1)

    def step(self, step: "Step") -> Record:
        length = (step.end - step.start) * 1e6
        return self.record("X", PROGRAM, step.start, name=f"step {step.number}", cat=STEP, dur=length)

    def slice(self, event: "Event") -> Record:
        rank, action, start, end = event
        about = {"stage": action.stage, "micro_batch": action.micro_batch, "peer": action.peer}
        args = {key: value for key, value in about.items() if value is not None}
        return self.record(
            "X", rank, start, name=str(action), cat=action.kind.value, dur=(end - start) * 1e6, args=args
        )

    def span(self, span: "Span") -> Record:
        rank, name, kind, start, end, depth, shapes = span
        args = {"depth": depth, **({"shapes": shapes} if shapes else {})}
        return self.record("X", rank, start, name=name, cat=kind, dur=(end - start) * 1e6, args=args)

    def communication(self, span: "Span", number: int) -> Iterator[Record]:
        """Yield the beginning and the end, since slices of a thread may overlap only if one is within the other."""
        for phase, time in (("b", span.start), ("e", span.end)):
            yield self.record(phase, span.rank, time, name=span.name, cat=span.kind, id=number)

    def arrows(self, first: int) -> Iterator[Record]:
        for events in self.timeline.events_by_step():
            for record in self._arrows_in_step(events, first):
                yield record
                first += record["ph"] == "f"

    def _arrows_in_step(self, events: "list[Event]", first: int) -> Iterator[Record]:
        computed = {event.action: event for event in events if event.action.kind.is_compute}
        sends = (event.action for event in events if event.action.kind.is_send)
        for number, send in enumerate(sends, first):
            producer, consumer = (_computation(computed, send, stage) for stage in (send.stage, send.peer))
            if producer is not None and consumer is not None:
                style = {"name": "output" if send.kind is Kind.SEND_F else "gradient", "cat": "message", "id": number}
                within = max(producer.start, producer.end - INSIDE * 1e-6)
                yield self.record("s", producer.rank, within, **style)
                yield self.record("f", consumer.rank, consumer.start, bp="e", **style)

    def counters(self) -> Iterator[Record]:
        for rank, steps in enumerate(self.timeline.memory()):
            for time, micro_batches, size in steps:
                about = f"{self.labels[rank]}: activations"
                yield self.record("C", rank, time, name=about, args={"microbatches": micro_batches})
                if size is not None:
                    yield self.record("C", rank, time, name=f"{about}, bytes", args={"bytes": size})

    def samples(self) -> Iterator[Record]:
        for time, cores, memory in self.timeline.samples:
            use = {f"core {core}": round(share, 4) for core, share in enumerate(cores)}
            yield self.record("C", 0, time, name=CORES, args=use)
            yield self.record("C", 0, time, name=MEMORY, args={"bytes": memory})


def _computation(computed: "dict[Action, Event]", send: Action, stage: int | None) -> "Event | None":
    """Return the computation of a message's value: a forward, a full backward, or its input half."""
    kinds = (Kind.F,) if send.kind is Kind.SEND_F else (Kind.B, Kind.I)
    found = (computed.get(Action(kind, stage, send.micro_batch)) for kind in kinds if stage is not None)
    return next((event for event in found if event is not None), None)


suggest_in_module(globals())
