"""Read timelines back from the traces that `write_perfetto` writes."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from retrograd.foundation.suggestions import suggest_in_module
from retrograd.pipelining.schedules.actions import parse
from retrograd.pipelining.timeline.chrome_trace import CORES, MEMORY, STEP, STEPS_THREAD
from retrograd.pipelining.timeline.records import SPAN_KINDS
from retrograd.pipelining.timeline.timeline import PROGRAM, Event, Sample, Span, Step, Timeline
from retrograd.pipelining.timeline.timeline import Path as AnyPath


def read_perfetto(path: AnyPath) -> dict[str, Timeline]:
    """Return the timelines of a file of `write_perfetto` by name; times count from each one's start.

    Sizes of activations are not part of a trace: the timelines count microbatches only.

    Raises ValueError for a file that is no trace of pipelines.

    >>> from tempfile import TemporaryDirectory
    >>> from retrograd.pipelining import write_perfetto
    >>> step = Timeline([Event(0, parse("F0.0"), 0.0, 1.0)], ranks=1)
    >>> with TemporaryDirectory() as folder:
    ...     write_perfetto(f"{folder}/step.json", {"planned": step})
    ...     read_perfetto(f"{folder}/step.json")
    {'planned': Timeline(ranks=1, actions=1, seconds=1, bubble=0%)}
    """
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        return _timelines(content["traceEvents"], content.get("metadata", {}).get("retrograd", []))
    except (ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError) as error:
        raise ValueError(f"{path}: this is no trace of pipelines, as write_perfetto writes them: {error}") from error


@dataclass
class _Process:
    """The records of one timeline, by their kind."""

    about: dict[str, Any]
    name: str = ""
    ranks: int = 0
    events: list[Event] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    cores: list[tuple[float, tuple[float, ...]]] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)

    def add_slice(self, record: dict[str, Any]) -> None:
        name, start = record["name"], record["ts"] * 1e-6
        end, category = start + record["dur"] * 1e-6, record["cat"]
        if category == STEP:
            self.steps.append(Step(int(name.removeprefix("step ")), start, end))
        elif category in SPAN_KINDS:
            details = record.get("args", {})
            shapes = details.get("shapes", "")
            self.spans.append(Span(record["tid"], name, category, start, end, details.get("depth", 0), shapes))
        else:
            self.events.append(Event(record["tid"], parse(name), start, end))

    def timeline(self) -> Timeline:
        spans = [span._replace(rank=PROGRAM) if span.rank == self.ranks else span for span in self.spans]
        samples = [Sample(time, cores, size) for (time, cores), size in zip(self.cores, self.memory, strict=True)]
        epoch = self.about.get("epoch")
        return Timeline(
            self.events,
            self.ranks,
            spans=spans,
            steps=self.steps,
            samples=samples,
            notes=map(str, self.about.get("notes", ())),
            epoch=None if epoch is None else float(epoch) + float(self.about["start"]),
        )


def _timelines(records: list[dict[str, Any]], about: list[dict[str, Any]]) -> dict[str, Timeline]:
    processes: dict[int, _Process] = {}
    begun: dict[tuple[int, int], dict[str, Any]] = {}
    for record in records:
        number, name, phase = record["pid"], record["name"], record["ph"]
        process = processes.get(number)
        if process is None:
            process = processes[number] = _Process(about[number] if number < len(about) else {})
        if name == "process_name":
            process.name = record["args"]["name"]
        elif name == "thread_name":
            process.ranks += record["args"]["name"] != STEPS_THREAD
        elif phase == "X":
            process.add_slice(record)
        elif phase == "b":
            begun[number, record["id"]] = record
        elif phase == "e":
            begin = begun.pop((number, record["id"]))
            process.add_slice({**begin, "dur": record["ts"] - begin["ts"]})
        elif phase == "C" and name == CORES:
            process.cores.append((record["ts"] * 1e-6, tuple(record["args"].values())))
        elif phase == "C" and name == MEMORY:
            process.memory.append(record["args"]["bytes"])
    if not any(process.name for process in processes.values()):
        raise ValueError("it has no processes")
    return {process.name: process.timeline() for process in processes.values()}


suggest_in_module(globals())
