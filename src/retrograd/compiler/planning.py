"""Planning: calls that follow each other run as one, on memory that is planned once (docs/decisions/0036).

The steps of a kernel are known from its trace: loops of ufuncs, copies and views. `planned_calls` runs those of many
kernels, and of fused groups, without an array for each. A call that does anything else stays as it is.
"""

from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from retrograd.backend import array_programs
from retrograd.backend.planned_steps import Loop, New, View, plan_steps
from retrograd.compiler.program import (
    Call,
    FusedCalls,
    Instruction,
    Layouts,
    PlannedCalls,
    SetData,
    SetGrad,
    Slot,
    makes,
    reads,
)
from retrograd.compiler.specialization import specialize, trace_call
from retrograd.core.dispatch import as_array
from retrograd.core.engine import copy_in_layout, ones_array
from retrograd.core.operand_errors import explain
from retrograd.core.tensor import make
from retrograd.kernels import planned_calls

MOST_STEPS = 800  # in a plan, which has at most 1,024 memories
MOST_ARRAYS = 64  # of a step
SPARE = 1 << 14  # bytes of operands that a plan may keep longer than its calls one by one would


@dataclass(slots=True)
class _Steps:
    """The steps of a call, the layouts of their values by number, and the numbers of the results."""

    steps: list[Any]
    layouts: dict[int, tuple]
    results: tuple[int, ...]

    @property
    def checks(self) -> bool:
        """Whether a step may find that the call has to raise an error."""
        return any(isinstance(step, Loop) and step.checks for step in self.steps)


def plan_calls(
    instructions: list[Instruction], layouts: Layouts, wanted: Iterable[Slot], quiet: bool = False
) -> list[Instruction]:
    """Return the instructions with calls that follow each other as one; their order stays.

    `wanted` are the slots whose arrays are in memory after the last instruction. With `quiet`, no call warns; else
    those of backward passes do not.
    """
    last = {slot: number for number, instruction in enumerate(instructions) for slot in reads(instruction)}
    last.update(dict.fromkeys(wanted, len(instructions)))
    out: list[Instruction] = []
    run = _Run(layouts, last, quiet)
    for number, instruction in enumerate(instructions):
        if isinstance(instruction, SetGrad | SetData) and run.takes(instruction):
            continue
        found = _steps_of(instruction, layouts)
        if found is None or run.is_full() or not run.may_add(instruction, found):
            out += run.finish(number)
            run = _Run(layouts, last, quiet)
        if found is None:
            out.append(instruction)
        else:
            run.add(instruction, found, number)
    return out + run.finish(len(instructions))


def _steps_of(instruction: Instruction, layouts: Layouts) -> _Steps | None:
    """Return the steps of an instruction; None if it is no part of plans."""
    if isinstance(instruction, FusedCalls):
        count = len(instruction.operands) + len(instruction.outs)
        return _steps_of_group(instruction, layouts) if count <= MOST_ARRAYS else None
    if not isinstance(instruction, Call):
        return None
    slots = [a for a in instruction.operands if isinstance(a, Slot)]
    outs = [layouts[out] for out in instruction.outs]
    if instruction.function is copy_in_layout and _has_elements(outs[0]):
        made = {i: layouts[slot] for i, slot in enumerate(slots)}
        number = len(made)
        return _Steps([New(number), Loop(None, (0,), (number,))], {**made, number: outs[0]}, (number,))
    if instruction.function is array_programs.pass_on:
        return _Steps([], {0: layouts[slots[0]]}, (0,))
    if instruction.function is ones_array and _has_elements(outs[0]):
        return _Steps([New(0), Loop(None, (ones_array((), outs[0][1]),), (0,))], {0: outs[0]}, (0,))
    return _steps_of_kernel(instruction, slots, layouts)


def _steps_of_group(group: FusedCalls, layouts: Layouts) -> _Steps:
    slots = [*group.operands, *group.outs]
    count = len(group.operands)
    outs = tuple(range(count, len(slots)))
    steps: list[Any] = [New(number) for number in outs]
    steps.append(Loop(group.function, tuple(range(count)), outs))
    return _Steps(steps, {i: layouts[slot] for i, slot in enumerate(slots)}, outs)


def _steps_of_kernel(call: Call, slots: list[Slot], layouts: Layouts) -> _Steps | None:
    """Return the steps that the trace of a kernel shows."""
    trace = trace_call(call, layouts)
    if trace is None:
        return None
    found = plan_steps(trace, len(slots))
    if found is None:
        return None
    steps, values = found
    return _Steps(steps, values, trace.results)


def _has_elements(layout: tuple) -> bool:
    return 0 not in layout[0]


class _Run:
    """Calls that follow each other, with the values and steps of all of them.

    A value is a tuple of its memory, an offset and a layout. A memory is a slot, the array of a constant, or the size
    of a new one with its number.
    """

    def __init__(self, layouts: Layouts, last: dict[Slot, int], quiet: bool) -> None:
        self._layouts, self._last, self._quiet = layouts, last, quiet
        self._calls: list[Call | FusedCalls] = []
        self._slots: dict[Slot, int] = {}  # the values of slots
        self._operands: list[Slot] = []
        self._constants: list[Any] = []
        self._sizes: list[int] = []
        self._values: list[tuple[tuple[str, int], int, tuple]] = []
        self._steps: list[tuple] = []
        self._views = False
        self._held = 0  # bytes of operands that nothing reads any more
        self._later: list[Instruction] = []  # they follow the calls, which do not depend on them

    def is_full(self) -> bool:
        """Return whether the next call belongs to another plan."""
        return len(self._values) > MOST_STEPS or self._held > SPARE

    def takes(self, instruction: Instruction) -> bool:
        """Let an instruction follow all calls; return whether there are any."""
        if self._calls:
            self._later.append(instruction)
        return bool(self._calls)

    def may_add(self, instruction: Any, found: _Steps) -> bool:
        """Return whether a call may run before the instructions that follow: one that warns, or raises, may not."""
        return not self._later or ((instruction.backward or self._quiet) and not found.checks)

    def add(self, instruction: Any, found: _Steps, number: int) -> None:
        """Append a call; `number` is its position."""
        self._calls.append(instruction)
        slots = [a for a in instruction.operands if isinstance(a, Slot)]
        if instruction.function is copy_in_layout:
            slots = slots[:1]  # of the other one only the layout matters
        values = {i: self._value_of(slot) for i, slot in enumerate(slots)}
        for step in found.steps:
            self._add_step(step, values, found, instruction.backward or self._quiet)
        for out, result in zip(instruction.outs, found.results, strict=True):
            self._slots[out] = values[result]
        for slot in dict.fromkeys(slots):
            if slot in self._operands and self._last.get(slot) == number:
                self._held += array_programs.bytes_of(self._layouts[slot])

    def _value_of(self, slot: Slot) -> int:
        if slot not in self._slots:
            self._slots[slot] = self._add_value(("operand", len(self._operands)), 0, self._layouts[slot])
            self._operands.append(slot)
        return self._slots[slot]

    def _add_value(self, memory: tuple[str, int], offset: int, layout: tuple) -> int:
        self._values.append((memory, offset, layout))
        return len(self._values) - 1

    def _add_step(self, step: Any, values: dict[int, int], found: _Steps, quiet: bool) -> None:
        if isinstance(step, View):
            memory, offset, _ = self._values[values[step.source]]
            values[step.result] = self._add_value(memory, offset + step.offset, found.layouts[step.result])
            self._views = True
        elif isinstance(step, New):
            layout = found.layouts[step.result]
            values[step.result] = self._add_value(("new", len(self._sizes)), 0, layout)
            self._sizes.append(array_programs.bytes_of(layout))
        else:
            operands = [values[a] if isinstance(a, int) else self._constant(a) for a in step.operands]
            outs = [values[number] for number in step.outs]
            self._steps.append((step.function, quiet and not step.checks, len(outs), *operands, *outs))

    def _constant(self, array: Any) -> int:
        self._constants.append(array)
        return self._add_value(("constant", len(self._constants) - 1), 0, array_programs.layout(array))

    def finish(self, end: int) -> list[Instruction]:
        """Return the calls as one instruction, or as they are if that is not faster; `end` follows the last one."""
        if len(self._steps) < 2 and not (self._steps and self._views):
            return [*self._calls, *self._later]
        made = dict.fromkeys(slot for call in self._calls for slot in makes(call))
        read_later = {slot for instruction in self._later for slot in reads(instruction)}
        outs = [slot for slot in made if self._last.get(slot, -1) >= end or slot in read_later]
        starts = {"operand": 0, "constant": len(self._operands), "new": len(self._operands) + len(self._constants)}
        function = planned_calls(
            tuple([self._layouts[slot] for slot in self._operands]),
            tuple(self._constants),
            tuple(self._sizes),
            tuple([(starts[kind] + i, offset, layout) for (kind, i), offset, layout in self._values]),
            tuple(self._steps),
            tuple([self._slots[slot] for slot in outs]),
            CallsOneByOne(self._calls, self._layouts, self._operands, outs, self._quiet),
        )
        backward = all(call.backward for call in self._calls)
        return [PlannedCalls(function, self._calls, tuple(self._operands), tuple(outs), backward), *self._later]


class CallsOneByOne:
    """The calls of a plan one after the other."""

    __slots__ = ("_calls", "_like", "_operands", "_outs", "_quiet")

    def __init__(self, calls: list[Any], layouts: Layouts, operands: list[Slot], outs: list[Slot], quiet: bool) -> None:
        self._calls = list(zip(specialize([*calls], layouts), calls, strict=True))
        self._operands, self._outs, self._quiet = operands, outs, quiet
        made = {slot for call in calls for slot in makes(call)}
        absent = {slot for call in calls for slot in reads(call)} - made - {*operands}
        self._like = {slot: array_programs.example(layouts[slot]) for slot in absent}  # only their layouts matter

    def __call__(self, *arrays: Any) -> tuple:
        """Return the results that others need."""
        values = {**self._like, **dict(zip(self._operands, arrays, strict=True))}
        for call, recorded in self._calls:
            with array_programs.quiet() if recorded.backward or self._quiet else nullcontext():
                self._run(call, recorded, values)
        return tuple([values[slot] for slot in self._outs])

    @staticmethod
    def _run(call: Any, recorded: Any, values: dict[Slot, Any]) -> None:
        operands = [values[a] if isinstance(a, Slot) else a for a in call.operands]
        if isinstance(call, FusedCalls):
            values.update(zip(call.outs, call.function(*operands), strict=True))
            return
        try:
            found = call.function(*operands, **call.params)
        except (ValueError, TypeError, IndexError, AttributeError):
            CallsOneByOne._explain(recorded, values)
            raise
        for out, array in zip(call.outs, found if call.several else (found,), strict=True):
            values[out] = as_array(array)

    @staticmethod
    def _explain(call: Call, values: dict[Slot, Any]) -> None:
        """Raise what the operator of a call says about its operands."""
        if call.op is not None:
            args = [make(values[a], None, None) if isinstance(a, Slot) else a for a in call.operands]
            explain(call.op, tuple(args), call.params)
