"""Passes that leave out calls: equal ones, those of constants, and those whose results nobody reads."""

from collections.abc import Iterable
from dataclasses import dataclass

from retrograd.compiler.common_subexpressions import merge_equal_calls
from retrograd.compiler.constant_folding import Constants, fold_constants
from retrograd.compiler.copies import Memories
from retrograd.compiler.program import Instruction, Layouts, Slot, without_dead_code


@dataclass(slots=True)
class Simplified:
    """The instructions left, the memories of their arrays, the constants that they read, and how many calls are not.

    `merged` counts the calls that equal earlier ones, `folded` those that became constants.
    """

    instructions: list[Instruction]
    memories: Memories
    constants: Constants
    merged: int
    folded: int


def simplify(
    instructions: list[Instruction], layouts: Layouts, memories: Memories, wanted: Iterable[Slot]
) -> Simplified:
    """Return recorded instructions without calls that need not run; `wanted` are the slots that the result needs."""
    needed = [*wanted]
    merged, left_memories = merge_equal_calls(instructions, layouts, memories, needed)
    folded, constants = fold_constants(merged, layouts, left_memories, needed)
    left = without_dead_code(folded, needed)
    return Simplified(left, left_memories, constants, len(instructions) - len(merged), len(merged) - len(folded))
