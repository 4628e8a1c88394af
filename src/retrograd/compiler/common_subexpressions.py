"""Common subexpressions: of equal calls of a program, only the first one runs (docs/decisions/0036)."""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any

from retrograd.backend import array_programs
from retrograd.backend.kernel_trace import Constant
from retrograd.compiler.copies import Memories
from retrograd.compiler.memory_effects import MemoryEffects, is_pure
from retrograd.compiler.program import Add, Call, Eager, Instruction, Layouts, Slot, Write, reads

SMALL = 1 << 12  # bytes of an array that is kept until an equal call, although nothing else needs it


def merge_equal_calls(
    instructions: list[Instruction], layouts: Layouts, memories: Memories, wanted: Iterable[Slot]
) -> tuple[list[Instruction], Memories]:
    """Return the instructions without calls that equal earlier ones, and the memories of the arrays left.

    Calls are equal if they have the same kernel, operands and params, and nothing writes to the operands between them.
    They are merged if the first result is needed later anyway or small, so that a value which is recomputed to save
    memory, as by checkpoints, stays so. A result that code outside gets, or that is written to, has its own memory.
    """
    merging = _Merging(instructions, layouts, MemoryEffects(instructions, memories, wanted), set(wanted))
    for number, instruction in enumerate(instructions):
        merging.add(instruction, number)
    return merging.out, {slot: merging.same.get(m, m) if m is not None else None for slot, m in memories.items()}


class _Merging:
    """The instructions so far, and the calls that later ones may equal."""

    def __init__(
        self, instructions: list[Instruction], layouts: Layouts, effects: MemoryEffects, wanted: set[Slot]
    ) -> None:
        self.out: list[Instruction] = []
        self.same: dict[Slot, Slot] = {}  # of a result left out: the equal one
        self._layouts, self._effects = layouts, effects
        self._last = {slot: number for number, instruction in enumerate(instructions) for slot in reads(instruction)}
        self._last.update(dict.fromkeys(wanted, len(instructions)))
        self._known: dict[Any, Call] = {}

    def add(self, instruction: Instruction, number: int) -> None:
        """Append an instruction, or note that an earlier one equals it; `number` is its position."""
        if isinstance(instruction, Call):
            self._add_call(self._renamed(instruction), number)
            return
        if isinstance(instruction, Write | Add):
            target, source = self._name(instruction.target), self._name(instruction.source)
            instruction = replace(instruction, target=target, source=source)
            self._forget_readers(self._effects.memory_of(instruction.target))
        elif isinstance(instruction, Eager):
            self._known.clear()
        self.out.append(instruction)

    def _add_call(self, call: Call, number: int) -> None:
        key = self._key(call)
        known = None if key is None else self._known.get(key)
        if known is not None and self._may_replace(known, call, number):
            for out, other in zip(call.outs, known.outs, strict=True):
                self.same[out] = other
                self._last[other] = max(self._last.get(other, 0), self._last.get(out, 0))
            return
        if key is not None:
            self._known[key] = call
        self.out.append(call)

    def _key(self, call: Call) -> Any:
        """Return equal keys for equal calls; None for a call that is not merged."""
        if not is_pure(call, self._layouts) or self._effects.is_exposed(call):
            return None
        if not (self._effects.is_view(call) or self._effects.is_private(call)):
            return None
        try:
            key = (_function_key(call.function), _keys(call.operands), _items(call.params), call.several)
            hash(key)
        except TypeError:  # a constant is not hashable
            return None
        return key

    def _may_replace(self, known: Call, call: Call, number: int) -> bool:
        """Return whether an earlier equal call gives the results of a call without more memory or fewer warnings."""
        if known.backward and not call.backward:
            return False
        return self._effects.is_view(call) or all(
            self._last.get(other, -1) >= number or array_programs.bytes_of(self._layouts[other]) <= SMALL
            for other in known.outs
        )

    def _forget_readers(self, memory: Slot | None) -> None:
        """Forget the calls that a write to a memory makes different from later ones."""
        self._known = {
            key: call
            for key, call in self._known.items()
            if self._effects.is_view(call) or all(self._effects.memory_of(slot) != memory for slot in reads(call))
        }

    def _renamed(self, call: Call) -> Call:
        operands = tuple([self._name(a) if isinstance(a, Slot) else a for a in call.operands])
        return call if operands == call.operands else replace(call, operands=operands)

    def _name(self, slot: Slot) -> Slot:
        return self.same.get(slot, slot)


def _function_key(function: Any) -> Any:
    """Return equal keys for kernels that compute the same."""
    if isinstance(function, partial):
        return _function_key(function.func), _keys(function.args), _items(function.keywords)
    return function


def _keys(values: tuple) -> tuple:
    return tuple([(True, int(a)) if isinstance(a, Slot) else (False, Constant(a)) for a in values])


def _items(values: dict[str, Any]) -> tuple:
    return tuple([(name, Constant(value)) for name, value in values.items()])
