"""Profile the steps of a training loop, under the names of torch.profiler, by `retrograd.autograd.profiler`."""

import enum
import json
import os
import socket
import time
from collections.abc import Callable, Iterable
from typing import Any

from retrograd.autograd.profiler import EventList
from retrograd.autograd.profiler import profile as BlockProfile
from retrograd.autograd.profiler import record_function as record_function
from retrograd.core.blocks import Block
from retrograd.foundation.source_location import warn_user
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.interop.atomic_write import atomic_replace

__path__: list[str] = []  # this module is a package too: `module_aliases.py` has its modules

__all__ = [
    "ProfilerAction",
    "ProfilerActivity",
    "kineto_available",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]


class ProfilerActivity(enum.Enum):
    """The processors whose activity is measured; only the CPU's is."""

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5


class ProfilerAction(enum.Enum):
    """The action of a profile in a step, which its schedule decides."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


_RECORDING = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


def supported_activities() -> set[ProfilerActivity]:
    """Return the activities that are measured: those of the CPU.

    >>> supported_activities()
    {<ProfilerActivity.CPU: 0>}
    """
    return {ProfilerActivity.CPU}


def kineto_available() -> bool:
    """Return False: PyTorch's library of that name records on devices."""
    return False


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], ProfilerAction]:
    """Return the schedule that records `active` steps after `wait` and `warmup` steps without records, in cycles.

    repeat: the number of cycles; 0: no limit.  skip_first: steps before the first cycle.  skip_first_wait: if it is
    not 0, the first cycle does not wait.  A profile without a schedule records everything.

    Raises ValueError for negative numbers, and an `active` of 0.

    >>> actions = schedule(wait=1, warmup=1, active=2, repeat=1)
    >>> [actions(step).name for step in range(5)]
    ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """
    given = {"wait": wait, "warmup": warmup, "active": active, "repeat": repeat, "skip_first": skip_first}
    if min(given.values()) < 0 or active == 0:
        shown = ", ".join(f"{name}={value}" for name, value in given.items())
        raise ValueError(f"Invalid profiler schedule arguments: {shown}; active must be above 0, the others at least 0")
    cycle = wait + warmup + active
    begin = skip_first - (wait if skip_first_wait else 0)

    def action(step: int) -> ProfilerAction:
        cycles, position = divmod(step - begin, cycle)
        if step < skip_first or position < wait or (repeat and cycles >= repeat):
            return ProfilerAction.NONE
        if position < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if position < cycle - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


def tensorboard_trace_handler(
    dir_name: str | os.PathLike[str],
    worker_name: str | None = None,
    use_gzip: bool = False,
    use_python_export: bool = False,
) -> Callable[["profile"], None]:
    """Return a function for `on_trace_ready` that writes each trace to a new file in a folder, which it makes.

    worker_name: the first part of the file's name, by default the host and the process.  use_gzip: compress the file.
    use_python_export has no effect.
    """

    def handle(prof: "profile") -> None:
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        name = f"{worker}.{time.time_ns()}.pt.trace.json{'.gz' if use_gzip else ''}"
        prof.export_chrome_trace(os.path.join(dir_name, name))

    return handle


def _record_always(step: int) -> ProfilerAction:
    return ProfilerAction.RECORD


class profile(Block):
    """Measure operators, nodes of backward passes and named ranges, in the steps that a schedule selects.

    - activities: with others than `ProfilerActivity.CPU` a warning says that these are not measured.
    - schedule: a function from the number of the step to a `ProfilerAction`, as `rg.profiler.schedule` returns; call
      `step()` at the end of each step.  None: record the whole block.
    - on_trace_ready: a function of this object, called when the last step of a cycle is over and at the end.
    - record_shapes, profile_memory, with_stack, with_flops, with_modules: as in `rg.autograd.profiler.profile`.
    - experimental_config, execution_trace_observer, acc_events, use_cuda, custom_trace_id_callback,
      post_processing_timeout_s: accepted as in PyTorch; they concern its own machinery.

    Results are those of the latest recorded steps.  Raises RuntimeError where they are read before there are any.

    Source: the names are those of torch.profiler.

    >>> import retrograd as rg
    >>> x = rg.ones(3, requires_grad=True)
    >>> with profile(schedule=schedule(wait=1, warmup=0, active=1, repeat=1)) as prof:
    ...     for _ in range(3):
    ...         y = (x * x).sum()
    ...         prof.step()
    >>> [event.name for event in prof.events()]
    ['ProfilerStep#1', 'mul', 'sum']
    """

    def __init__(
        self,
        *,
        activities: Iterable[Any] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[["profile"], Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Any = None,
        post_processing_timeout_s: float | None = None,
    ) -> None:
        self.activities = supported_activities() if activities is None else set(activities)
        _check_activities(self.activities)
        self.schedule = schedule or _record_always
        self.on_trace_ready = on_trace_ready
        self.record_steps = schedule is not None
        self.record_shapes, self.profile_memory, self.with_stack = record_shapes, profile_memory, with_stack
        self.with_flops, self.with_modules = with_flops, with_modules
        self.step_num = 0
        self.current_action = ProfilerAction.NONE
        self.profiler: BlockProfile | None = None  # of the latest recorded steps
        self._is_recording = False
        self._step_range: record_function | None = None
        self._metadata: dict[str, Any] = {}

    def _enter(self) -> "profile":
        self.start()
        return self

    def _leave(self, *exception: Any) -> None:
        self.stop()

    def start(self) -> None:
        """Start the first step: `with` does it."""
        self.current_action = self.schedule(self.step_num)
        self._begin_step()

    def stop(self) -> None:
        """End the last step, and call `on_trace_ready` if it was recorded: `with` does it."""
        was_recording = self._is_recording
        self._end_step(is_last=True)
        self.current_action = ProfilerAction.NONE
        if was_recording:
            self._call_handler()

    def step(self) -> None:
        """End a step, and start the next one."""
        ended = self.current_action
        self.step_num += 1
        self.current_action = self.schedule(self.step_num)
        self._end_step(is_last=ended is not ProfilerAction.RECORD or self.current_action not in _RECORDING)
        if ended is ProfilerAction.RECORD_AND_SAVE:
            self._call_handler()
        self._begin_step()

    def _begin_step(self) -> None:
        if self.current_action in _RECORDING and not self._is_recording:
            self.profiler = BlockProfile(
                ProfilerActivity.CPU in self.activities,
                record_shapes=self.record_shapes,
                profile_memory=self.profile_memory,
                with_stack=self.with_stack,
                with_flops=self.with_flops,
                with_modules=self.with_modules,
            )
            self.profiler.__enter__()
            self._is_recording = True
        if self._is_recording and self.record_steps:
            self._step_range = record_function(f"ProfilerStep#{self.step_num}")
            self._step_range.__enter__()

    def _end_step(self, is_last: bool) -> None:
        """End the range of a step, and the record if it was the last step of it."""
        step_range, self._step_range = self._step_range, None
        if step_range is not None:
            step_range.__exit__()
        if self._is_recording and is_last:
            self._is_recording = False
            self._results().__exit__(None, None, None)

    def _call_handler(self) -> None:
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    # ------------------------------------------------------------------------------------------------- results

    def _results(self) -> BlockProfile:
        if self.profiler is None:
            raise RuntimeError("profile: no step was recorded; call step() at the end of each step of the schedule")
        return self.profiler

    def __repr__(self) -> str:
        return "profile(no results yet)" if self.profiler is None else repr(self.profiler)

    def _repr_html_(self) -> str | None:
        return None if self.profiler is None else self.profiler._repr_html_()

    def events(self) -> EventList:
        """Return all events ordered by start."""
        return self._results().events()

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """Return one row for each name, with a method `table(sort_by=...)`; see `EventList.key_averages`."""
        return self._results().key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def export_chrome_trace(self, path: str | os.PathLike[str], use_python_export: bool = False) -> None:
        """Write a trace that ui.perfetto.dev and chrome://tracing open; compressed if the path ends with `.gz`."""
        self._results().export_chrome_trace(path, self._metadata or None)

    def export_stacks(self, path: str | os.PathLike[str], metric: str = "self_cpu_time_total") -> None:
        """Write the lines of the program with their times, in microseconds, for programs that draw flame graphs.

        Needs `with_stack=True`.  Raises ValueError for another metric than "self_cpu_time_total".
        """
        if metric != "self_cpu_time_total":
            raise ValueError(f"export_stacks: expected the metric 'self_cpu_time_total', got {metric!r}")
        with atomic_replace(path) as unfinished, open(unfinished, "w", encoding="utf-8") as file:
            for event in self.events():
                if event.stack and int(event.self_cpu_time_total) > 0:
                    frames = ";".join(line.replace(";", ",").replace(" ", "_") for line in reversed(event.stack))
                    file.write(f"{frames} {int(event.self_cpu_time_total)}\n")

    def add_metadata(self, key: str, value: str) -> None:
        """Store a text in the traces that are exported later."""
        self._metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Store JSON in the traces that are exported later.  Raises ValueError for text that is not JSON."""
        self._metadata[key] = json.loads(value)

    preset_metadata_json = add_metadata_json


def _check_activities(activities: set[Any]) -> None:
    for activity in activities:
        if not isinstance(activity, ProfilerActivity):
            raise TypeError(f"profile: expected activities such as ProfilerActivity.CPU, got {activity!r}")
    others = sorted(activity.name for activity in activities - supported_activities())
    if others:
        warn_user(f"profile: {', '.join(others)} activity is not available, only the CPU's")


suggest_in_module(globals())
