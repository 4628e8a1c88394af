"""Reports of the calls of a program: operators, memory traffic, buffers, and time."""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from retrograd.backend import array_programs
from retrograd.compiler.capture import Program
from retrograd.compiler.player import code_function
from retrograd.compiler.program import Add, Call, Eager, FusedCalls, Layouts, PlannedCalls, SetGrad, Slot, Write

_FUNCTIONS = {Write: "assign", Add: "add_into"}  # that the code calls for instructions without a function of their own


@dataclass(frozen=True)
class Buffers:
    """The memory that a plan of calls has for the values between its operators, in bytes.

    Small values share the `block`; `in_block` is the sum of their sizes. Large ones have `own` memory while they live.
    """

    block: int
    in_block: int
    own: int
    results: int


@dataclass(frozen=True)
class GroupReport:
    """One call of a program: `kind` is "plan", "fused", "kernel", "write" or "eager".

    `passes` are the arrays that are read or written, and `bytes` their sizes; `eager_passes` and `eager_bytes` are
    those of the operators one by one. `start` and `seconds` are None if the call was not timed.
    """

    kind: str
    ops: tuple[str, ...]
    passes: int
    bytes: int
    eager_passes: int
    eager_bytes: int
    buffers: Buffers | None = None
    start: float | None = None
    seconds: float | None = None

    @property
    def name(self) -> str:
        """The kind, and the operators, a few of them if there are many."""
        most = 6
        shown = ", ".join(self.ops[:most]) + (f", and {len(self.ops) - most} more" if len(self.ops) > most else "")
        return f"{self.kind}: {shown}"


def report_groups(program: Program, times: "TimedRun | None" = None) -> tuple[GroupReport, ...]:
    """Return the reports of the calls of a program, with the times of a run."""
    calls = [i for i in program.played if not isinstance(i, SetGrad)]
    spans = [(None, None)] * len(calls) if times is None else times.spans(calls)
    return tuple([_report(i, program.layouts, *span) for i, span in zip(calls, spans, strict=True)])


def _report(instruction: Any, layouts: Layouts, start: float | None, seconds: float | None) -> GroupReport:
    ops = tuple([name_instruction(call) for call in _leaves(instruction)])
    passes, eager = _traffic(instruction, layouts), _sum([_traffic(call, layouts) for call in _leaves(instruction)])
    return GroupReport(_kind(instruction), ops, *passes, *eager, _buffers(instruction), start, seconds)


def _kind(instruction: Any) -> str:
    if isinstance(instruction, PlannedCalls):
        return "plan"
    if isinstance(instruction, FusedCalls):
        return "fused"
    return "kernel" if isinstance(instruction, Call) else "eager" if isinstance(instruction, Eager) else "write"


def _leaves(instruction: Any) -> list[Any]:
    """Return the operators' calls in an instruction, one by one."""
    if isinstance(instruction, PlannedCalls | FusedCalls):
        return [leaf for call in instruction.calls for leaf in _leaves(call)]
    return [instruction]


def name_instruction(instruction: Any) -> str:
    """Return the name of an operator, or what an instruction without one does."""
    if isinstance(instruction, Call):
        return instruction.op.name if instruction.op is not None else "array"
    return "write" if isinstance(instruction, Write | Add) else instruction.function.__qualname__


def _traffic(instruction: Any, layouts: Layouts) -> tuple[int, int]:
    """Return how many arrays an instruction reads or writes, and their bytes, without values inside fused groups."""
    if isinstance(instruction, PlannedCalls):
        return _sum([_traffic(call, layouts) for call in instruction.calls])
    if isinstance(instruction, Eager):
        return 0, 0
    if isinstance(instruction, Write | Add):
        slots: tuple = (instruction.source, instruction.target)
    elif isinstance(instruction, Call) and (_is_view(instruction) or instruction.function is array_programs.pass_on):
        slots = ()
    else:
        slots = (*[a for a in instruction.operands if isinstance(a, Slot)], *instruction.outs)
    return len(slots), sum(array_programs.bytes_of(layouts[slot]) for slot in slots)


def _is_view(call: Call) -> bool:
    return call.op is not None and bool(call.op.view)


def _sum(pairs: list[tuple[int, int]]) -> tuple[int, int]:
    return sum(a for a, _ in pairs), sum(b for _, b in pairs)


def _buffers(instruction: Any) -> Buffers | None:
    memory = getattr(instruction.function, "memory", None) if isinstance(instruction, PlannedCalls) else None
    return None if memory is None else Buffers(*memory)


class TimedRun:
    """A run of a program that takes the time of each call."""

    def __init__(self, program: Program, tensors: list[Any]) -> None:
        self._names = {id(i.function): name for i, name in program.source.functions(program.played)}
        self._spans: dict[str, list[tuple[float, float]]] = {}
        objects = program.source.objects
        wrapped = {name: self._timed(name, objects[name]) for name in {*self._names.values(), *_FUNCTIONS.values()}}
        play = code_function(program.source, {**objects, **wrapped})
        self._begin = perf_counter()
        self.result = play(*tensors)
        self.seconds = perf_counter() - self._begin

    def _timed(self, name: str, function: Callable) -> Callable:
        spans = self._spans[name] = []

        def call(*args: Any, **kwargs: Any) -> Any:
            start = perf_counter()
            result = function(*args, **kwargs)
            spans.append((start - self._begin, perf_counter() - start))
            return result

        return call

    def spans(self, instructions: list[Any]) -> list[tuple[float, float]]:
        """Return the begin and duration of each instruction; those with the same function have run in their order."""
        left = {name: iter(spans) for name, spans in self._spans.items()}
        return [next(left[self._name(i)], (0.0, 0.0)) for i in instructions]

    def _name(self, instruction: Any) -> str:
        return _FUNCTIONS.get(type(instruction)) or self._names[id(instruction.function)]
