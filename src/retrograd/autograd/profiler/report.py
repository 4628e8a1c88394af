"""The results of a profile: its events, their averages, and tables of both."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache, partial
from threading import Thread
from typing import Any, NamedTuple

from retrograd.autograd.profiler.trace_file import Path, operators_by_node, write_trace
from retrograd.autograd.source_lines import line_of
from retrograd.foundation.html_report import paragraph, report, table

OPERATOR, BACKWARD, RANGE, WAIT = "operator", "backward", "range", "wait"


class Record(NamedTuple):
    """The recorded fields of one event."""

    kind: str
    name: str
    start: int  # ns
    end: int
    sequence: int | None  # number of the node that was made, or ran
    shapes: tuple | None
    memory: int | None
    frames: list | None
    args: str | None


class Interval(NamedTuple):
    """Start and end, in microseconds since the profile began."""

    start: float
    end: float

    def elapsed_us(self) -> float:
        """Return the duration."""
        return self.end - self.start


@dataclass(slots=True, eq=False)
class FunctionEvent:
    """Something that ran once: an operator, a node of the graph, a named range, or a wait for other ranks.

    Times are microseconds, memory bytes.  `cpu_children` are the events inside it; self time and self memory exclude
    theirs.  `sequence_nr` is the number of the node that an operator made, or of the node that ran.
    """

    name: str
    kind: str  # "operator", "backward", "range" or "wait"
    time_range: Interval
    sequence_nr: int | None
    input_shapes: list | None
    args: str | None
    cpu_time_total: float
    self_cpu_time_total: float
    cpu_memory_usage: int
    self_cpu_memory_usage: int
    thread: int = 0  # the operating system's thread id
    stack: list[str] = field(default_factory=list)  # lines of the program, the innermost first
    backward_time_total: float = 0.0  # of the node that this operator made
    is_backward: bool = False  # whether it is a node in a backward pass, or ran inside one
    cpu_parent: "FunctionEvent | None" = field(default=None, repr=False)
    cpu_children: "list[FunctionEvent]" = field(default_factory=list, repr=False)

    @property
    def key(self) -> str:
        """The name, by which events are averaged."""
        return self.name

    @property
    def count(self) -> int:
        """1, for one run."""
        return 1

    @property
    def cpu_time(self) -> float:
        """Microseconds from start to end."""
        return self.cpu_time_total


SUMS = (
    "count",
    "cpu_time_total",
    "self_cpu_time_total",
    "backward_time_total",
    "cpu_memory_usage",
    "self_cpu_memory_usage",
)


@dataclass(slots=True, eq=False)
class FunctionEventAvg:
    """Several events as one: sums, and the mean time.  Times are microseconds, memory bytes."""

    key: str
    input_shapes: list | None = None
    stack: list[str] = field(default_factory=list)
    count: int = 0
    cpu_time_total: float = 0.0
    self_cpu_time_total: float = 0.0
    backward_time_total: float = 0.0
    cpu_memory_usage: int = 0
    self_cpu_memory_usage: int = 0
    is_backward: bool = True  # whether all of them ran in backward passes

    @property
    def name(self) -> str:
        """The name that the events share."""
        return self.key

    @property
    def cpu_time(self) -> float:
        """The mean of the total times, in microseconds."""
        return self.cpu_time_total / self.count if self.count else 0.0

    def add(self, event: FunctionEvent) -> None:
        """Count one more event."""
        for name in SUMS:
            setattr(self, name, getattr(self, name) + getattr(event, name))
        self.is_backward = self.is_backward and event.is_backward


def records_of(fields: list[Any]) -> list[Record]:
    """Return the records whose fields are in a flat list."""
    return list(map(Record._make, zip(*[iter(fields)] * len(Record._fields), strict=True)))


def function_events(fields: list[Any], span: tuple[int, int], thread: Thread) -> "EventList":
    """Return the events of records, which are ordered by their end: each after those that ran inside it."""
    line = cache(line_of)
    waiting: list[FunctionEvent] = []  # events whose parent has not ended yet
    events = []
    for record in records_of(fields):
        first = len(waiting)
        start = (record.start - span[0]) / 1e3
        while first and waiting[first - 1].time_range.start >= start:
            first -= 1
        event = _event(record, span[0], waiting[first:])
        event.thread = thread.native_id or 0
        event.stack = [line(frame) for frame in record.frames or ()]
        waiting[first:] = [event]
        events.append(event)
    events.sort(key=lambda event: (event.time_range.start, -event.time_range.end))
    _link_events(events)
    return EventList(events, (span[1] - span[0]) / 1e3, thread.name)


def _event(record: Record, origin: int, children: list[FunctionEvent]) -> FunctionEvent:
    time = Interval((record.start - origin) / 1e3, (record.end - origin) / 1e3)
    inner = sum(child.cpu_memory_usage for child in children)
    memory = 0 if children or record.memory is None else record.memory  # nested operators account for their own memory
    event = FunctionEvent(
        name=record.name,
        kind=record.kind,
        time_range=time,
        sequence_nr=record.sequence,
        input_shapes=None if record.shapes is None else [list(shape) for shape in record.shapes],
        args=record.args,
        cpu_time_total=time.elapsed_us(),
        self_cpu_time_total=time.elapsed_us() - sum(child.cpu_time_total for child in children),
        cpu_memory_usage=memory + inner,
        self_cpu_memory_usage=memory,
        cpu_children=children,
    )
    for child in children:
        child.cpu_parent = event
    return event


def _link_events(events: list[FunctionEvent]) -> None:
    """Set the fields of events that depend on other events; parents precede their children."""
    makers = operators_by_node(events)
    for event in events:
        parent = event.cpu_parent
        event.is_backward = event.kind == BACKWARD or (parent is not None and parent.is_backward)
        if event.kind == BACKWARD and event.sequence_nr in makers:
            maker = makers[event.sequence_nr]
            maker.backward_time_total += event.cpu_time_total
            event.stack = maker.stack  # the line of the forward pass is more useful than that of backward()


class EventList(list):
    """A list of events or averages that can be averaged, printed and written."""

    def __init__(self, rows: Iterable[Any], span: float, thread_name: str) -> None:
        super().__init__(rows)
        self.span = span  # microseconds from the profile's beginning to its end
        self.thread_name = thread_name

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds spent in all events, none counted twice."""
        return sum(row.self_cpu_time_total for row in self)

    def key_averages(
        self, group_by_input_shapes: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> "EventList":
        """Return one row for each name, and on request for each input shape or innermost n program lines.

        Operators here have no overloads: `group_by_overload_name` changes nothing.
        """
        groups: dict[tuple, FunctionEventAvg] = {}
        for event in self:
            shapes = event.input_shapes if group_by_input_shapes else None
            lines = event.stack[:group_by_stack_n]
            key = (event.name, str(shapes), *lines)
            if key not in groups:
                groups[key] = FunctionEventAvg(event.name, shapes, lines)
            groups[key].add(event)
        return EventList(groups.values(), self.span, self.thread_name)

    def total_average(self) -> FunctionEventAvg:
        """Return one row for all events. Self time counts nothing twice; total time is the sum over all events."""
        total = FunctionEventAvg("Total")
        for event in self:
            total.add(event)
        return total

    def export_chrome_trace(self, path: Path, metadata: Any = None) -> None:
        """Write events as a trace (JSON) that ui.perfetto.dev and chrome://tracing open; replaces a file in one step.

        `metadata` is stored in it under that name.

        Raises ValueError for averages, which have no place in time.
        """
        if any(isinstance(row, FunctionEventAvg) for row in self):
            raise ValueError("export_chrome_trace: averages have no place in time; use that of the profile")
        write_trace(path, self, self.thread_name, metadata)

    def __str__(self) -> str:
        return self.table()

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """Return the rows as text, the largest `sort_by` first; see docs/profiler.md for the columns.

        `row_limit` -1 is all of them.  Times are in a readable unit each, or all in `time_unit`: "s", "ms" or "us".
        Raises ValueError for a `sort_by` that is no column of numbers, and for another unit.
        """
        if time_unit not in (None, *UNITS):
            raise ValueError(f"table: time_unit must be one of {list(UNITS)} or None, got {time_unit!r}")
        if sort_by is not None and sort_by not in (*SUMS, "cpu_time"):
            raise ValueError(f"table: can't sort by {sort_by!r}; there are cpu_time, {', '.join(SUMS)}")
        rows = [row for row in self if not (top_level_events_only and getattr(row, "cpu_parent", None))]
        if sort_by is not None:
            rows.sort(key=lambda row: getattr(row, sort_by), reverse=True)
        listed = rows if row_limit < 0 else rows[:row_limit]
        widths = {"Name": max_name_column_width, "Input Shapes": max_shapes_column_width}
        widths["Source Location"] = max_src_column_width
        lines = _format_rows(_columns(rows, self.self_cpu_time_total, time_unit), listed, widths)
        head = [] if header is None else [header]
        return "\n".join([*head, *lines, *self._footer(len(rows) - len(listed))]) + "\n"

    def _repr_html_(self) -> str:
        """Return the table for notebooks: the rows with the most time of their own first."""
        columns = _columns(self, self.self_cpu_time_total, None)
        rows = sorted(self, key=lambda row: -row.self_cpu_time_total)[:MOST_ROWS]
        words = [number for number, title in enumerate(columns) if title in ("Input Shapes", "Source Location")]
        cells = [[column(row) for column in columns.values()] for row in rows]
        return report(table(cells, [*columns], words), *map(paragraph, self._footer(len(self) - len(rows))))

    def _footer(self, hidden: int) -> list[str]:
        more = [f"... and {hidden} more"] if hidden else []
        return [
            *more,
            f"Self CPU time total: {format_time(self.self_cpu_time_total)} of {format_time(self.span)} profiled",
        ]


Column = Callable[[Any], str]
MOST_ROWS = 50  # of a table in a notebook


def _columns(rows: list[Any], total: float, unit: str | None) -> dict[str, Column]:
    """Return the columns that are not empty, by title."""
    in_unit = partial(format_time, unit=unit)

    def share(part: float) -> str:
        return f"{part / total:.2%}" if total else "0.00%"

    columns: dict[str, Column] = {
        "Name": lambda row: row.name,
        "Self CPU %": lambda row: share(row.self_cpu_time_total),
        "Self CPU": lambda row: in_unit(row.self_cpu_time_total),
        "CPU total %": lambda row: share(row.cpu_time_total),
        "CPU total": lambda row: in_unit(row.cpu_time_total),
        "CPU time avg": lambda row: in_unit(row.cpu_time),
        "# of Calls": lambda row: str(row.count),
    }
    if any(row.backward_time_total for row in rows):
        columns["Backward"] = lambda row: in_unit(row.backward_time_total) if row.backward_time_total else ""
    if any(row.cpu_memory_usage for row in rows):
        columns["CPU Mem"] = lambda row: format_memory(row.cpu_memory_usage)
        columns["Self CPU Mem"] = lambda row: format_memory(row.self_cpu_memory_usage)
    if any(row.input_shapes is not None for row in rows):
        columns["Input Shapes"] = lambda row: "" if row.input_shapes is None else str(row.input_shapes)
    if any(row.stack for row in rows):
        columns["Source Location"] = lambda row: ", ".join(row.stack)
    return columns


def _format_rows(columns: dict[str, Column], rows: list[Any], limits: dict[str, int]) -> list[str]:
    """Return lines of text: words left-aligned and truncated, numbers right-aligned."""
    cells = {}
    for title, column in columns.items():
        texts = [title, *(column(row) for row in rows)]
        if title in limits:
            texts = [_truncate(text, limits[title], keep_end=title == "Source Location") for text in texts]
        width = max(map(len, texts))
        cells[title] = [text.ljust(width) if title in limits else text.rjust(width) for text in [*texts, "-" * width]]
    *lines, rule = ["  ".join(line).rstrip() for line in zip(*cells.values(), strict=True)]
    return [rule, lines[0], rule, *lines[1:], rule]


def _truncate(text: str, limit: int, keep_end: bool) -> str:
    if len(text) <= limit:
        return text
    length = max(limit - 3, 0)
    return "..." + text[len(text) - length :] if keep_end else text[:length] + "..."


UNITS = {"s": 1e6, "ms": 1e3, "us": 1.0}


def format_time(us: float, unit: str | None = None) -> str:
    """Format microseconds in a readable unit, or in the given one.

    >>> format_time(1234.5), format_time(0.25), format_time(2e6)
    ('1.234ms', '0.250us', '2.000s')
    """
    if unit is None:
        unit = next((name for name, size in UNITS.items() if us >= size), "us")
    return f"{us / UNITS[unit]:.3f}{unit}"


def format_memory(size: int) -> str:
    """Format bytes in a readable unit.

    >>> format_memory(12), format_memory(2048), format_memory(5 * 2**20)
    ('12 B', '2.00 KiB', '5.00 MiB')
    """
    for unit, power in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if size >= 2**power:
            return f"{size / 2**power:.2f} {unit}"
    return f"{size} B"
