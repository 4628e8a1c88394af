"""Which memory a program's own arrays have to themselves, and which calls only compute: passes may merge those."""

from collections.abc import Iterable

from retrograd.compiler.copies import Memories
from retrograd.compiler.program import (
    Add,
    Call,
    Eager,
    Instruction,
    Layouts,
    SetData,
    SetGrad,
    Slot,
    Write,
    makes,
    reads,
)
from retrograd.library.operator import CustomOperator


def is_pure(call: Call, layouts: Layouts) -> bool:
    """Return whether a call only computes its results, plain arrays, from operands that are plain arrays or constants.

    A user's kernel may do anything, and runs as often as the eager code runs it.
    """
    op = call.op
    if call.impure:
        return False
    if op is not None and (isinstance(op, CustomOperator) or op.random or op.definition.impure):
        return False
    return all(layouts[slot][2] is not None for slot in (*reads(call), *call.outs))


class MemoryEffects:
    """The memory of each array of a program, and where code outside may have it, or instructions write to it.

    Memory is named by the slot of the array that owns it. All memory that the program has not made has the name None.
    """

    def __init__(self, instructions: list[Instruction], memories: Memories, wanted: Iterable[Slot]) -> None:
        self._memories = memories
        self._made = {slot for instruction in instructions for slot in makes(instruction)}
        given = [slot for i in instructions if isinstance(i, SetGrad | SetData | Eager) for slot in reads(i)]
        self._exposed = {*wanted, *given}
        written = [i.target for i in instructions if isinstance(i, Write | Add)]
        self._shared = {None, *[self.memory_of(slot) for slot in (*self._exposed, *written)]}

    def memory_of(self, slot: Slot) -> Slot | None:
        """Return the name of the memory of an array."""
        memory = self._memories.get(slot)
        return memory if memory in self._made else None

    def is_view(self, call: Call) -> bool:
        """Return whether the results of a call are views of its operand: equal calls return the same elements."""
        if call.op is None or not (call.op.view or call.op.several_views):
            return False
        memory = self._memories.get(reads(call)[0]) if reads(call) else None
        return memory is not None and all(self._memories.get(out) == memory for out in call.outs)

    def is_exposed(self, call: Call) -> bool:
        """Return whether code outside gets a result of a call."""
        return not self._exposed.isdisjoint(call.outs)

    def is_private(self, call: Call) -> bool:
        """Return whether only the program reads the memory of the results of a call, and never writes to it."""
        return all(self.memory_of(out) not in self._shared for out in call.outs)
