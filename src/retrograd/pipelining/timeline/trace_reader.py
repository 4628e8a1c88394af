"""Read timelines back from the traces that `write_perfetto` writes."""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from retrograd.pipelining.schedules.actions import parse
from retrograd.pipelining.timeline.timeline import Event, Timeline
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
        records = json.loads(Path(path).read_text(encoding="utf-8"))["traceEvents"]
        return _timelines(records)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ValueError(f"{path}: this is no trace of pipelines, as write_perfetto writes them: {error}") from error


def _timelines(records: list[dict[str, Any]]) -> dict[str, Timeline]:
    names, ranks, events = {}, defaultdict[int, int](int), defaultdict[int, list[Event]](list)
    for record in records:
        process, rank = record["pid"], record["tid"]
        if record["name"] == "process_name":
            names[process] = record["args"]["name"]
        elif record["name"] == "thread_name":
            ranks[process] = max(ranks[process], rank + 1)
        elif record["ph"] == "X":
            start = record["ts"] * 1e-6
            events[process].append(Event(rank, parse(record["name"]), start, start + record["dur"] * 1e-6))
    if not names:
        raise ValueError("it has no processes")
    return {name: Timeline(events[process], ranks[process]) for process, name in names.items()}
