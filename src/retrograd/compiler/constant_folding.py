"""Constant folding: calls that depend on no array from outside are computed once, when the program is made."""

from collections.abc import Iterable
from typing import Any

from retrograd.backend import array_programs
from retrograd.compiler.copies import Memories
from retrograd.compiler.memory_effects import MemoryEffects, is_pure
from retrograd.compiler.program import Call, Instruction, Layouts, Slot, reads
from retrograd.core.dispatch import as_array

MOST_BYTES = 1 << 16  # of a constant: the program keeps it between its calls
Constants = dict[Slot, Any]


def fold_constants(
    instructions: list[Instruction], layouts: Layouts, memories: Memories, wanted: Iterable[Slot]
) -> tuple[list[Instruction], Constants]:
    """Return the instructions without calls whose results are the same in each run, and these arrays.

    A result that code outside gets, or that is written to, is computed in each run. So is one about which NumPy warns.
    """
    effects = MemoryEffects(instructions, memories, wanted)
    constants: Constants = {}
    left = []
    for instruction in instructions:
        found = _results(instruction, layouts, constants) if _may_fold(instruction, layouts, effects) else None
        if found is None:
            left.append(instruction)
        else:
            constants.update(found)
    needed = {slot for instruction in left for slot in reads(instruction)}
    return left, {slot: array for slot, array in constants.items() if slot in needed}


def _may_fold(instruction: Instruction, layouts: Layouts, effects: MemoryEffects) -> bool:
    if not isinstance(instruction, Call) or not is_pure(instruction, layouts) or not effects.is_private(instruction):
        return False
    size = sum(array_programs.bytes_of(layouts[out]) for out in instruction.outs)
    return size <= MOST_BYTES and not effects.is_exposed(instruction)


def _results(call: Any, layouts: Layouts, constants: Constants) -> Constants | None:
    """Return the results of a call; None if it reads other arrays than constants, or if NumPy warns."""
    if any(slot not in constants for slot in reads(call)):
        return None
    operands = [constants[a] if isinstance(a, Slot) else a for a in call.operands]
    try:
        with array_programs.strict():
            found = call.function(*operands, **call.params)
    except Exception:  # the call raises it in each run
        return None
    arrays = [as_array(a) for a in (found if call.several else (found,))]
    same = [array_programs.layout(a) == layouts[out] for a, out in zip(arrays, call.outs, strict=True)]
    return dict(zip(call.outs, arrays, strict=True)) if all(same) else None
