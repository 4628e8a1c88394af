"""Record the events of a profiled block: operators, nodes of backward passes, and named ranges."""

import threading
from collections.abc import Callable
from contextlib import ContextDecorator
from time import perf_counter_ns
from typing import Any, NamedTuple

from retrograd.autograd.profiler.report import (
    BACKWARD,
    OPERATOR,
    RANGE,
    WAIT,
    EventList,
    FunctionEventAvg,
    Record,
    function_events,
    records_of,
)
from retrograd.autograd.profiler.trace_file import Path
from retrograd.autograd.source_lines import stack
from retrograd.core import Op, Tensor, call, current
from retrograd.core.blocks import Block
from retrograd.core.level import MeasuringLevel
from retrograd.core.state import Watcher, watching
from retrograd.foundation.source_location import warn_user


class Communication(NamedTuple):
    """An operation between ranks, from its start until this rank notices its end; operators may run meanwhile."""

    name: str
    start: int  # ns
    end: int


class _Recorder(MeasuringLevel, Watcher):
    """Records events of its thread: operators as a level, nodes as a watcher.

    It appends the fields of each `Record`, ordered by the events' ends, to a flat list of numbers and names, which is
    the fastest way.
    """

    def __init__(self, shapes: bool, memory: bool, stacks: bool) -> None:
        self.fields: list[Any] = []
        self.communications: list[Communication] = []
        self.open = True
        self._append: Callable[[tuple], Any] = self.fields.extend
        self.communicated: Callable[[Communication], Any] = self.communications.append
        self._shapes, self._memory, self._stacks = shapes, memory, stacks
        self._has_details = shapes or memory or stacks
        self._node_names: dict[str, str] = {}
        self._node_sequence: int | None = None  # the number of the latest node

    def use_sinks(self, append: Callable[[tuple], Any], communicated: Callable[[Communication], Any]) -> None:
        """Hand the fields of each event, and each communication, to functions instead."""
        self._append, self.communicated = append, communicated

    def process(self, op: Op, args: tuple, params: dict) -> Any:
        """Run and record an operator."""
        self._node_sequence = None
        start = perf_counter_ns()
        out = op(*args) if op.simple else call(op, args, params)  # the first is faster
        end = perf_counter_ns()
        details = self._collect_details(op, args, out) if self._has_details else NO_DETAILS
        self._append((OPERATOR, op.name, start, end, self._node_sequence, *details, None))
        return out

    def on_node_created(self, fn: Any) -> None:
        """Note that the running operator made a node."""
        self._node_sequence = fn.sequence

    def run_node(self, proceed: Callable, fn: Any, cotangents: tuple) -> list:
        """Run and record a node."""
        start = perf_counter_ns()
        gradients = proceed(fn, cotangents)
        end = perf_counter_ns()
        kind = fn.op.name
        name = self._node_names.get(kind) or self._node_names.setdefault(kind, fn.name())
        shapes = shapes_of(cotangents) if self._shapes else None
        self._append((BACKWARD, name, start, end, fn.sequence, shapes, None, None, None))
        return gradients

    def range(self, name: str, args: str | None, start: int, end: int) -> None:
        """Record a range that the program has named."""
        if self.open:
            self._append((RANGE, name, start, end, None, *NO_DETAILS, args))

    def wait(self, name: str, start: int, end: int) -> None:
        """Record a wait for other ranks."""
        self._append((WAIT, name, start, end, None, *NO_DETAILS, None))

    def group(self, name: str, start: int, end: int) -> None:
        """Record operators that ran as one."""
        self._append((OPERATOR, name, start, end, None, *NO_DETAILS, None))

    def _collect_details(self, op: Op, args: tuple, out: Any) -> tuple:
        """Return the requested data: shapes of operands, memory of results, and the stack."""
        return (
            shapes_of(args) if self._shapes else None,
            allocated(op, args, out) if self._memory else None,
            stack() if self._stacks else None,
        )


NO_DETAILS = None, None, None


def note_wait(name: str, start: int) -> None:
    """Record in the profiles of this thread that it has waited for other ranks since a time, in ns."""
    for recorder in _recorders():
        recorder.wait(name, start, perf_counter_ns())


def note_communication(name: str, start: int) -> None:
    """Record in the profiles of this thread the end of an operation between ranks that began at a time, in ns."""
    for recorder in _recorders():
        recorder.communicated(Communication(name, start, perf_counter_ns()))


def _recorders() -> list[_Recorder]:
    return [watcher for watcher in current().watchers or () if type(watcher) is _Recorder]


def lone_recorders() -> list[_Recorder]:
    """Return the recorders of this thread's profiles; none if anything else observes or transforms operators."""
    state, levels = current(), set()
    watchers, level = state.watchers or (), state.level
    while level is not None:
        levels.add(level)
        level = level.parent
    alone = levels == {*watchers} and all(type(watcher) is _Recorder for watcher in watchers)
    return [*watchers] if alone else []


def shapes_of(operands: Any) -> tuple[tuple[int, ...], ...]:
    """Return the shape of each operand; () for operands that are no tensors."""
    return tuple([a.shape if isinstance(a, Tensor) else () for a in operands])


def allocated(op: Op, args: tuple, out: Any) -> int:
    """Return the number of bytes that an operator allocated for its results; views and returned arguments count 0."""
    if type(out) is tuple:
        return sum([allocated(op, args, result) for result in out])
    for a in args:
        if a is out:
            return 0
    array = out.value
    while isinstance(array, Tensor):
        array = array.value
    return 0 if op.view and array.base is not None else array.nbytes


def _warn_of(**settings: Any) -> None:
    """Warn of settings that are asked for and not measured."""
    for name, value in settings.items():
        if value:
            warn_user(f"profile: {name}={value!r} is not measured; times and memory are the CPU's")


class profile(Block):
    """Measure the block on this thread: each operator, each node in a backward pass, each named range.

    - `record_shapes`: note the shapes of inputs, for `key_averages(group_by_input_shape=True)`.
    - `profile_memory`: note the bytes that operators allocate for their results.
    - `with_stack`: note the line of the program, for `key_averages(group_by_stack_n=1)`.
    - `enabled`: with False nothing is measured and all results are empty.
    - `use_cpu`, `use_kineto`, `acc_events`, `activity_filters`, `experimental_config`, `custom_trace_id_callback`,
      `post_processing_timeout_s`: accepted as in PyTorch; they concern its own machinery.
    - `use_cuda`, `use_device`, `with_flops`, `with_modules`: a warning says that these are not measured.

    Times are microseconds of the wall clock, memory bytes.  Other threads are not measured: each needs a
    profile of its own.  Profiles nest; one profile measures one block.

    Raises RuntimeError where results are read before the block is over, and where it is entered again.

    Source: the names are those of torch.autograd.profiler.

    >>> import retrograd as rg
    >>> from retrograd.autograd.profiler import profile
    >>> x = rg.ones(3, requires_grad=True)
    >>> with profile() as prof:
    ...     (x * x).sum().backward()
    >>> [event.name for event in prof.events() if event.kind == "backward"]
    ['SumBackward0', 'MulBackward0']
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
        experimental_config: Any = None,
        acc_events: bool = False,
        custom_trace_id_callback: Any = None,
        post_processing_timeout_s: float | None = None,
        activity_filters: Any = None,
    ) -> None:
        _warn_of(use_cuda=use_cuda, use_device=use_device, with_flops=with_flops, with_modules=with_modules)
        self.enabled = enabled
        self._recorder = _Recorder(record_shapes, profile_memory, with_stack)
        self._blocks: list[Any] | None = None
        self._span = (0, 0)
        self._thread = threading.current_thread()
        self._events: EventList | None = None

    def _enter(self) -> "profile":
        """Start measuring."""
        if self._blocks is not None:
            raise RuntimeError("profile: this one has been entered already; make a new profile() for each block")
        self._thread = threading.current_thread()
        self._blocks = [watching(self._recorder), self._recorder] if self.enabled else []
        for block in self._blocks:
            block.__enter__()
        self._span = (perf_counter_ns(), 0)
        return self

    def _leave(self, *exception: Any) -> None:
        """Stop measuring."""
        self._span = (self._span[0], perf_counter_ns())
        self._recorder.open = False
        if self._recorder.active:
            self._recorder.__exit__()
        watching(self._recorder).__exit__()

    def events(self) -> EventList:
        """Return all events ordered by start."""
        if self._span[1] == 0:
            raise RuntimeError("profile: there are no results before the block of `with profile() as prof:` is over")
        if self._events is None:
            self._events = function_events(self._recorder.fields, self._span, self._thread)
        return self._events

    def __repr__(self) -> str:
        return f"profile({len(self.events())} events)" if self._span[1] else "profile(no results yet)"

    def __str__(self) -> str:
        return self.table() if self._span[1] else repr(self)

    def _repr_html_(self) -> str | None:
        return self.key_averages()._repr_html_() if self._span[1] else None

    @property
    def function_events(self) -> EventList:
        """Return all events ordered by start."""
        return self.events()

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """Return one row for each name; see `EventList.key_averages`."""
        return self.events().key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def total_average(self) -> FunctionEventAvg:
        """Return one row for all events; see `EventList.total_average`."""
        return self.events().total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds spent in all events, none counted twice."""
        return self.events().self_cpu_time_total

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
    ) -> str:
        """Return a table with a row for each event; see `EventList.table`."""
        widths = (max_src_column_width, max_name_column_width, max_shapes_column_width)
        return self.events().table(sort_by, row_limit, *widths, header, top_level_events_only)

    def export_chrome_trace(self, path: Path, metadata: Any = None, use_python_export: bool = False) -> None:
        """Write a trace that ui.perfetto.dev and chrome://tracing open; see `EventList.export_chrome_trace`.

        `metadata`, a dict of JSON values, is stored in the file under "metadata"; `use_python_export` has no effect.
        """
        self.events().export_chrome_trace(path, metadata)


class BoundedProfile(profile):
    """A profile of at most `limit` events and communications, with the shapes of operands; `dropped` counts others.

    Its `records()` have absolute times, of the clock of `time.perf_counter_ns`.
    """

    def __init__(self, limit: int) -> None:
        super().__init__(record_shapes=True)
        self.dropped = 0
        self._most = limit * len(Record._fields)
        self._recorder.use_sinks(self._append, self._communicated)

    def _append(self, fields: tuple) -> None:
        if len(self._recorder.fields) < self._most:
            self._recorder.fields.extend(fields)
        else:
            self.dropped += 1

    def _communicated(self, communication: Communication) -> None:
        if len(self._recorder.fields) < self._most:
            self._recorder.communications.append(communication)
            self._most -= len(Record._fields)  # it takes the place of an event
        else:
            self.dropped += 1

    def records(self) -> list[Record]:
        """Return the records in the order of their ends."""
        return records_of(self._recorder.fields)

    def communications(self) -> list[Communication]:
        """Return the operations between ranks in the order of their ends."""
        return self._recorder.communications


class record_function(ContextDecorator):
    """Name a part of the program in profiles: a context manager and a decorator.

    `args` is any text to show with it in the trace.  Without a profile it costs less than an operator.

    >>> import retrograd as rg
    >>> from retrograd.autograd.profiler import profile, record_function
    >>> x = rg.ones(3)
    >>> with profile() as prof, record_function("loss"):
    ...     y = x.sum()
    >>> [(event.name, event.cpu_parent and event.cpu_parent.name) for event in prof.events()]
    [('loss', None), ('sum', 'loss')]
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        if not isinstance(name, str):
            raise TypeError(f"record_function: the name must be a str, got {type(name).__name__}")
        self.name = name
        self.args = args
        self._entered: list[tuple[list[_Recorder], int]] = []

    def __enter__(self) -> "record_function":
        self._entered.append((_recorders(), perf_counter_ns()))
        return self

    def __exit__(self, *exception: Any) -> None:
        end = perf_counter_ns()
        recorders, start = self._entered.pop()
        for recorder in recorders:
            recorder.range(self.name, self.args, start, end)

    def _recreate_cm(self) -> "record_function":
        return record_function(self.name, self.args)  # each call of a decorated function has its own
