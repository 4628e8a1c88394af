"""Fusion: elementwise kernels of one shape run as one group, tile by tile, in one call (docs/decisions/0036)."""

from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

from retrograd.backend import array_programs
from retrograd.backend.array_programs import bytes_of
from retrograd.backend.kernel_trace import CHEAP_UFUNCS, elementwise_steps, example, is_row_major
from retrograd.compiler.program import (
    Add,
    Call,
    Eager,
    FusedCalls,
    Instruction,
    Layouts,
    SetData,
    SetGrad,
    Slot,
    Write,
    makes,
    reads,
)
from retrograd.core.dispatch import as_array
from retrograd.kernels import fused_group
from retrograd.ops.family import Pointwise

MOST_CALLS = 240  # in a group; a plan has at most 1,024 values
LARGE = 1 << 16  # elements: from here on, memory counts more than calls do
SPARE = 1 << 16  # bytes of arrays that open groups may keep longer than their calls one by one would, or
MOST_HELD = {False: 2, True: 4}  # as many arrays of a group's size, if it is large; a large group avoids more arrays
Key = tuple[tuple[int, ...], bool]  # the shape of a group, and whether it is in a backward pass


@dataclass(slots=True)
class Traced:
    """A call, and the steps that its kernel consists of: see `elementwise_steps`."""

    call: Call
    slots: list[Slot]  # of the operands, in the order of their numbers in the steps
    steps: list[tuple]
    result: int


def fuse(instructions: list[Instruction], layouts: Layouts, wanted: Iterable[Slot]) -> list[Instruction]:
    """Return the instructions with elementwise kernels in groups; the other ones keep their order.

    A group takes the position of its last call. Nothing in between reads its results, or writes to memory.
    """
    last = {slot: number for number, instruction in enumerate(instructions) for slot in reads(instruction)}
    grouping = _Grouping(layouts, {slot: number for slot, number in last.items() if slot not in set(wanted)})
    for number, instruction in enumerate(instructions):
        grouping.add(instruction, number)
    grouping.close_all()
    _Recomputing(grouping.plan, layouts, set(wanted)).run()
    return _with_results(grouping.plan, layouts, set(wanted), grouping.single)


class _Grouping:
    """The instructions so far, and the open groups, which do not depend on each other."""

    def __init__(self, layouts: Layouts, last_reads: dict[Slot, int]) -> None:
        self.plan: list[Instruction | list[Traced]] = []
        self._layouts, self._last_reads = layouts, last_reads
        self._open: dict[Key, list[Traced]] = {}
        self._home: dict[Slot, Key] = {}  # of the slots that open groups make
        self._held: dict[Key, int] = {}  # the bytes of arrays that only wait for the group
        self.single: dict[Slot, Slot] = {}  # of arrays with one element everywhere: the slot of that element

    def add(self, instruction: Instruction, number: int) -> None:
        """Append an instruction, or let it join a group; `number` is its position."""
        traced = self._trace(instruction) if isinstance(instruction, Call) else None
        if traced is not None:
            self._join(traced, number)
            return
        if isinstance(instruction, Call):
            self._close_makers(reads(instruction))
            self._note_single(instruction)
        elif isinstance(instruction, SetGrad | SetData):
            self._close_makers(reads(instruction))
            for key in [key for key in self._open if not key[1]]:
                self._close(key)  # a forward pass may raise where NumPy's warnings are errors
        else:
            self.close_all()
        self.plan.append(instruction)

    def close_all(self) -> None:
        """Append all open groups."""
        for key in list(self._open):
            self._close(key)

    def _close(self, key: Key) -> None:
        group = self._open.pop(key)
        self._held.pop(key, None)
        for traced in group:
            self._home.pop(traced.call.outs[0], None)
        self.plan += _parts(group) if _size(key[0]) >= LARGE else [group]

    def _close_makers(self, slots: Iterable[Slot], but: Key | None = None) -> None:
        for slot in slots:
            key = self._home.get(slot)
            if key is not None and key != but:
                self._close(key)

    def _join(self, traced: Traced, number: int) -> None:
        out = traced.call.outs[0]
        shape = self._layouts[out][0]
        key = (shape, traced.call.backward)
        self._close_makers(traced.slots, key)
        if len(self._open.get(key, ())) >= MOST_CALLS:
            self._close(key)
        self._open.setdefault(key, []).append(traced)
        self._home[out] = key
        held = [
            bytes_of(self._layouts[a])
            for a in traced.slots
            if a not in self._home and self._last_reads.get(a) == number
        ]
        self._held[key] = self._held.get(key, 0) + sum(held)
        size = _size(self._layouts[out][0])
        if sum(self._held.values()) > max(SPARE, MOST_HELD[size >= LARGE] * bytes_of(self._layouts[out])):
            self._close(key)

    def _note_single(self, call: Call) -> None:
        """Note an array whose elements are all the same in memory."""
        out = self._layouts.get(call.outs[0]) if len(call.outs) == 1 else None
        sources = reads(call)
        if out is None or len(sources) != 1 or out[2] is None or _size(out[0]) < 2 or any(out[2]):
            return
        shape, dtype, strides = self._layouts[sources[0]]
        if strides is not None and _size(shape) == 1 and dtype == out[1]:
            self.single[call.outs[0]] = sources[0]

    def _trace(self, call: Call) -> Traced | None:
        if (
            len(call.outs) != 1
            or call.several
            or (call.op is not None and not issubclass(call.op.definition, Pointwise))
        ):
            return None
        layout = self._layouts[call.outs[0]]
        if not is_row_major(layout) or _size(layout[0]) == 0:
            return None
        slots = [self.single.get(a, a) for a in call.operands if isinstance(a, Slot)]
        if not slots or not all(is_row_major(self._layouts[slot]) for slot in slots):
            return None
        arrays = iter(slots)
        operands = [self._layouts[next(arrays)][:2] if isinstance(a, Slot) else a for a in call.operands]
        found = elementwise_steps(call.function, operands, call.params, layout[0])
        if found is None or found[2] != layout[1]:
            return None
        return Traced(call, slots, *found[:2])


def _parts(group: list[Traced]) -> list[list[Traced]]:
    """Return the parts of a group that have no array in common: their results need not exist at the same time."""
    parts: list[tuple[set[Slot], list[Traced]]] = []
    for traced in group:
        slots = {*traced.slots, traced.call.outs[0]}
        met = [part for part in parts if not part[0].isdisjoint(slots)]
        parts = [part for part in parts if part[0].isdisjoint(slots)]
        parts.append((slots.union(*[part[0] for part in met]), [t for part in met for t in part[1]] + [traced]))
    return [sorted(part[1], key=group.index) for part in parts]


def _size(shape: tuple[int, ...]) -> int:
    size = 1
    for n in shape:
        size *= n
    return size


class _Recomputing:
    """Large groups of backward passes compute cheap values again which only they read, so that nobody stores these."""

    def __init__(self, plan: list, layouts: Layouts, wanted: set[Slot]) -> None:
        self._plan, self._layouts, self._wanted = plan, layouts, wanted
        self._homes: dict[Slot, tuple[int, int, Traced]] = {}  # the group of a slot, the position in it, and the call
        self._readers: dict[Slot, set[int]] = {}
        self._made: set[Slot] = set()
        for number, part in enumerate(plan):
            if isinstance(part, list):
                self._homes.update({t.call.outs[0]: (number, i, t) for i, t in enumerate(part)})
            calls = [t.call for t in part] if isinstance(part, list) else [part]
            self._made.update(slot for call in calls for slot in makes(call))
            for slot in _read_by(part):
                self._readers.setdefault(slot, set()).add(number)

    def run(self) -> None:
        """Put the calls that are computed again in front of their groups."""
        since = 0  # the first part after the last one that may write to memory
        for number, part in enumerate(self._plan):
            if isinstance(part, Write | Add | Eager):
                since = number + 1
            elif isinstance(part, list) and part[0].call.backward:
                again = self._again(part, number, since)
                calls = [t for _, t in sorted(again.items(), key=lambda item: self._homes[item[0]][:2])]
                self._plan[number] = [replace(t, call=replace(t.call, backward=True)) for t in calls] + part

    def _again(self, group: list[Traced], number: int, since: int) -> dict[Slot, Traced]:
        """Return the calls that a group computes again."""
        shape = self._layouts[group[0].call.outs[0]][0]
        has = _read_by(group) - {t.call.outs[0] for t in group} if _size(shape) >= LARGE else set()
        found: dict[Slot, Traced] = {}
        for slot in sorted(has - self._wanted):
            home = self._homes.get(slot, (number,))[0]
            if self._readers[slot] <= {home, number} and self._layouts[slot][0] == shape:
                found.update(self._recipe(slot, has, range(since, number)) or {})
        return found

    def _recipe(self, slot: Slot, has: set[Slot], where: range) -> dict[Slot, Traced] | None:
        """Return the calls that compute a slot from arrays that a group has, or that exist before the call."""
        number, _, traced = self._homes.get(slot, (-1, 0, None))
        if traced is None or number not in where or any(step[0] not in CHEAP_UFUNCS for step in traced.steps):
            return None
        found = {slot: traced}
        for source in traced.slots:
            if source in self._made and source not in has:
                recipe = self._recipe(source, has, where)
                if recipe is None:
                    return None
                found.update(recipe)
        return found


def _read_by(part: Any) -> set[Slot]:
    """Return the slots that a part of a plan reads."""
    return {slot for t in part for slot in t.slots} if isinstance(part, list) else set(reads(part))


def _with_results(plan: list, layouts: Layouts, wanted: set[Slot], single: Iterable[Slot]) -> list[Instruction]:
    """Return the plan with groups made to instructions; only those results are stored that others need.

    `single` are the arrays of one element everywhere: they need not be made where groups read the element itself.
    """
    live = set(wanted)
    out: list[Instruction] = []
    for part in reversed(plan):
        for made in reversed(_instructions_of(part, layouts, live) if isinstance(part, list) else [part]):
            if isinstance(made, Call) and made.outs and made.outs[0] in single and made.outs[0] not in live:
                continue
            live.difference_update(makes(made))
            live.update(reads(made))
            out.append(made)
    return out[::-1]


def _instructions_of(group: list[Traced], layouts: Layouts, live: set[Slot]) -> list[Instruction]:
    """Return a group as one instruction, or its calls if that is not faster."""
    shape = layouts[group[0].call.outs[0]][0]
    if sum(len(t.steps) for t in group) == 1 and (_size(shape) < LARGE or len(group[0].slots) > 1):
        return [group[0].call]
    return [_Plan(group, layouts, live).instruction(shape)]


class _Plan:
    """The numbers of values in a group, with the registers that hold those between the steps."""

    def __init__(self, group: list[Traced], layouts: Layouts, live: set[Slot]) -> None:
        self.group = group
        self.calls = [t.call for t in group]
        self.layouts = layouts
        made = {call.outs[0]: number for number, call in enumerate(self.calls)}
        self.reads = list(dict.fromkeys(s for t in group for s in t.slots if s not in made))
        self.results = [slot for slot in made if slot in live]
        self.constants: list[Any] = []
        self.steps: list[list[Any]] = []  # a ufunc, and values: slots, indices of constants, or ("temporary", number)
        self.dtypes: dict[Any, Any] = {}
        for number, traced in enumerate(group):
            self._add_steps(number, traced)

    def _add_steps(self, number: int, traced: Traced) -> None:
        """Append the steps of a call, with names for its values."""
        names: dict[int, Any] = dict(enumerate(traced.slots))
        names[traced.result] = traced.call.outs[0]
        for ufunc, operands, result in traced.steps:
            out = names.setdefault(result, (number, result))
            self.steps.append([ufunc, *[self._name(names, a) for a in operands], out])

    def _name(self, names: dict[int, Any], operand: Any) -> Any:
        if isinstance(operand, int):
            return names[operand]
        self.constants.append(operand)
        return ("constant", len(self.constants) - 1)

    def instruction(self, shape: tuple[int, ...]) -> FusedCalls:
        """Return the instruction."""
        self._forward_copies()
        registers, homes = self._allocate()
        named = [*self.reads, *[("constant", i) for i in range(len(self.constants))], *self.results]
        numbers = {name: i for i, name in enumerate(named)}
        numbers.update({name: len(named) + register for name, register in homes.items()})
        steps = tuple([(ufunc, *[numbers[name] for name in names]) for ufunc, *names in self.steps])
        plain = PlainCalls(self.group, shape, self.reads, self.results)
        backward = self.calls[0].backward
        function = fused_group(
            shape,
            tuple([example(*self.layouts[slot][:2]) for slot in self.reads]),
            tuple(self.constants),
            tuple([example((), self.layouts[slot][1]) for slot in self.results]),
            registers,
            steps,
            backward,
            plain,
        )
        return FusedCalls(function, self.calls, tuple(self.reads), tuple(self.results), backward)

    def _forward_copies(self) -> None:
        """Write a value that is only copied into the memory of the copy."""
        stored, made = set(self.results), {step[-1] for step in self.steps}
        renamed: dict[Any, Any] = {}
        steps = []
        for ufunc, *names in self.steps:
            if ufunc is None and names[0] in made and names[0] not in stored and names[0] not in renamed:
                renamed[names[0]] = names[1]
            else:
                steps.append([ufunc, *names])
        self.steps = [[ufunc, *[renamed.get(name, name) for name in names]] for ufunc, *names in steps]

    def _allocate(self) -> tuple[tuple, dict[Any, int]]:
        """Return examples of the registers, and the register of each value between steps; none is written in place."""
        stored = {*self.reads, *self.results}
        last = {name: i for i, step in enumerate(self.steps) for name in step[1:]}
        free: dict[Any, list[int]] = {}
        examples: list[Any] = []
        homes: dict[Any, int] = {}
        types = self._types()
        for i, (_, *operands, out) in enumerate(self.steps):
            if out not in stored:
                spare = free.setdefault(types[out], [])
                if not spare:
                    examples.append(example((), types[out]))
                    spare.append(len(examples) - 1)
                homes[out] = spare.pop()
            for name in {*operands, out}:
                if name in homes and last[name] == i:
                    free[types[name]].append(homes[name])
        return tuple(examples), homes

    def _types(self) -> dict[Any, Any]:
        """Return the dtypes of the values that steps make."""
        types: dict[Any, Any] = {slot: self.layouts[slot][1] for slot in self.reads}
        types.update({("constant", i): c.dtype for i, c in enumerate(self.constants)})
        for ufunc, *operands, out in self.steps:
            given = [types[name] for name in operands]
            types[out] = given[0] if ufunc is None else ufunc.resolve_dtypes((*given, None))[-1]
        return types


class PlainCalls:
    """The calls of a group one after the other, on whole arrays."""

    __slots__ = ("group", "reads", "results", "shape")

    def __init__(self, group: list[Traced], shape: tuple[int, ...], slots: list[Slot], results: list[Slot]) -> None:
        self.group, self.shape, self.reads, self.results = group, shape, slots, results

    def __call__(self, *arrays: Any) -> tuple:
        """Return the results that others need."""
        values = dict(zip(self.reads, arrays, strict=True))
        with array_programs.quiet() if self.group[0].call.backward else nullcontext():
            for traced in self.group:
                call = traced.call
                values[call.outs[0]] = as_array(call.function(*self._operands(traced, values), **call.params))
        return tuple([values[slot] for slot in self.results])

    def _operands(self, traced: Traced, values: dict[Slot, Any]) -> list[Any]:
        slots = iter(traced.slots)
        given = []
        for a in traced.call.operands:
            slot = next(slots) if isinstance(a, Slot) else None
            if slot is None:
                given.append(a)
            else:
                given.append(values[slot] if slot == a else array_programs.fill(values[slot], self.shape))
        return given
