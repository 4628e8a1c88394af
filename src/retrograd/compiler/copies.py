"""Copies that nobody needs: of an array that the program has made, and that nothing else can reach afterwards.

A backward pass copies the gradient of a leaf, because it cannot know who else holds the array. A program knows.
"""

from dataclasses import replace

from retrograd.backend import array_programs
from retrograd.compiler.program import Call, Eager, Instruction, Layouts, SetData, SetGrad, Slot, makes, reads
from retrograd.core.engine import copy_in_layout

Memories = dict[Slot, Slot | None]  # of each array: the array that owns its memory, itself perhaps; None if unknown


def without_copies(
    instructions: list[Instruction], layouts: Layouts, memories: Memories, wanted: list[Slot]
) -> list[Instruction]:
    """Return the instructions with arrays themselves in place of their copies, where that makes no difference."""
    kept, last = _memories_kept(instructions, memories, wanted), _last_readers(instructions, memories)
    made: set[Slot] = set()
    out: list[Instruction] = []
    for number, instruction in enumerate(instructions):
        if isinstance(instruction, Call) and instruction.function is copy_in_layout:
            source, copied = Slot(instruction.operands[0]), instruction.outs[0]
            own = memories.get(source) == source and source in made and source not in kept
            if own and last[source] == number and layouts[source] == layouts[copied]:
                instruction = replace(instruction, function=array_programs.pass_on, operands=(source,))
        made.update(makes(instruction))
        out.append(instruction)
    return out


def _memories_kept(instructions: list[Instruction], memories: Memories, wanted: list[Slot]) -> set[Slot | None]:
    """Return the arrays whose memory tensors have: results, gradients, and what functions are given."""
    exposed = [slot for i in instructions if isinstance(i, SetGrad | SetData | Eager) for slot in reads(i)]
    return {memories.get(slot) for slot in (*wanted, *exposed)}


def _last_readers(instructions: list[Instruction], memories: Memories) -> dict[Slot | None, int]:
    """Return the number of the last instruction that reads each memory."""
    return {memories.get(slot): number for number, i in enumerate(instructions) for slot in reads(i)}
