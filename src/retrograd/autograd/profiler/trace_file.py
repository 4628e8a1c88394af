"""Chrome traces of profiles: one JSON record for each event, and arrows from forward to backward events."""

import gzip
import json
import os
from collections.abc import Iterable, Iterator
from typing import Any

from retrograd.interop.atomic_write import atomic_replace

Path = str | os.PathLike[str]


def write_trace(path: Path, events: Iterable[Any], thread_name: str, metadata: Any = None) -> None:
    """Write events as a Chrome trace (JSON); a file of that name is replaced in one step.

    The file is compressed if its name ends with `.gz`.

    Source of the format: "Trace Event Format", the Chromium project.
    """
    opener = gzip.open if os.fspath(path).endswith(".gz") else open
    with atomic_replace(path) as unfinished, opener(unfinished, "wt", encoding="utf-8") as file:
        head = "" if metadata is None else f'"metadata": {json.dumps(metadata)}, '
        before = f'{{{head}"displayTimeUnit": "ms", "traceEvents": [\n'
        for record in _trace(list(events), thread_name):
            file.write(before + json.dumps(record))
            before = ",\n"
        file.write("\n]}\n")


def _trace(events: list[Any], thread_name: str) -> Iterator[dict[str, Any]]:
    process = os.getpid()
    names = {"process_name": "retrograd", "thread_name": thread_name}
    for what, label in names.items():
        tid = events[0].thread if events else 0
        yield {"ph": "M", "name": what, "pid": process, "tid": tid, "args": {"name": label}}
    for event in events:
        yield _slice(process, event)
    yield from _arrows(process, events)


def _slice(process: int, event: Any) -> dict[str, Any]:
    about = {
        "sequence number": event.sequence_nr,
        "input shapes": event.input_shapes,
        "allocated bytes": event.self_cpu_memory_usage or None,
        "made at": event.stack or None,
        "args": event.args,
    }
    return {
        "ph": "X",
        "name": event.name,
        "cat": event.kind,
        "pid": process,
        "tid": event.thread,
        "ts": event.time_range.start,
        "dur": event.time_range.elapsed_us(),
        "args": {key: value for key, value in about.items() if value is not None},
    }


def _arrows(process: int, events: list[Any]) -> Iterator[dict[str, Any]]:
    """Yield the arrows from the operator that made a node to each run of the node.

    An arrow starts within its first event and ends at the start of its second; its number is its own.
    """
    makers = operators_by_node(events)
    for number, event in enumerate(events):
        maker = makers.get(event.sequence_nr) if event.kind == "backward" else None
        if maker is not None:
            shared = {"name": "forward to backward", "cat": "autograd", "id": number, "pid": process}
            yield {**shared, "ph": "s", "tid": maker.thread, "ts": maker.time_range.start}
            yield {**shared, "ph": "f", "bp": "e", "tid": event.thread, "ts": event.time_range.start}


def operators_by_node(events: Iterable[Any]) -> dict[int, Any]:
    """Return the operator that made each node, by the node's creation number."""
    made = (event for event in events if event.kind == "operator" and event.sequence_nr is not None)
    makers: dict[int, Any] = {}
    for event in made:
        makers.setdefault(event.sequence_nr, event)
    return makers
