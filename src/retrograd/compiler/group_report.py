"""Reports of the calls of a program: operators, memory traffic, buffers, and time."""

from dataclasses import dataclass
from typing import Any

from retrograd.backend import array_programs
from retrograd.compiler.capture import Program
from retrograd.compiler.program import Add, Call, Eager, FusedCalls, Layouts, PlannedCalls, Slot, Write
from retrograd.compiler.timed_run import TimedRun, timed_calls


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
        return _group_name(self.kind, self.ops)


def _group_name(kind: str, ops: tuple[str, ...]) -> str:
    most = 6
    shown = ", ".join(ops[:most]) + (f", and {len(ops) - most} more" if len(ops) > most else "")
    return f"{kind}: {shown}"


def group_names(program: Program) -> list[str]:
    """Return the names of the calls of a program, as in their reports."""
    return [_group_name(_kind(i), _ops(i)) for i in timed_calls(program)]


def report_groups(program: Program, times: TimedRun | None = None) -> tuple[GroupReport, ...]:
    """Return the reports of the calls of a program, with the times of a run."""
    calls = timed_calls(program)
    spans: list[Any] = [(None, None)] * len(calls)
    if times is not None:
        spans = [((start - times.span[0]) / 1e9, (end - start) / 1e9) for start, end in times.spans]
    return tuple([_report(i, program.layouts, *span) for i, span in zip(calls, spans, strict=True)])


def _report(instruction: Any, layouts: Layouts, start: float | None, seconds: float | None) -> GroupReport:
    passes, eager = _traffic(instruction, layouts), _sum([_traffic(call, layouts) for call in _leaves(instruction)])
    return GroupReport(_kind(instruction), _ops(instruction), *passes, *eager, _buffers(instruction), start, seconds)


def _ops(instruction: Any) -> tuple[str, ...]:
    return tuple([name_instruction(call) for call in _leaves(instruction)])


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
