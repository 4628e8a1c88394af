"""Programs that differ only in sizes: they are one kind, of which the latest are kept."""

from typing import Any

from retrograd.compiler.dynamic_sizes import STATIC, Change, marks_of
from retrograd.compiler.symbolic_program import SymbolicProgram

MOST_SIZES = 64  # programs of one kind
MOST_UNUSED = 64  # programs of one kind that are dropped one after the other, none of which has run again


class ProgramKind:
    """Programs that differ only in sizes, and which sizes may differ.

    `dynamic`: True, also integers among the arguments; None, sizes of tensors; False, marked ones only.
    """

    def __init__(self, tensors: list[Any], dynamic: bool | None) -> None:
        self._marks = [marks_of(t) for t in tensors]
        self._dynamic = dynamic
        self._unused = 0  # programs dropped in a row that have not run again
        self.symbolic = SymbolicProgram()

    def allows(self, changes: list[Change]) -> bool:
        """Return whether arguments with these changes of sizes are of this kind."""
        return all(self._allows(*place, size) for place, size in changes)

    def _allows(self, number: int | None, dim: int, size: int) -> bool:
        mark = None if number is None else self._marks[number].get(dim)
        if mark is None or mark == STATIC:
            return mark is None and (self._dynamic is True or (self._dynamic is None and number is not None))
        low, high = mark
        return bool(low <= size and (high is None or size <= high))

    def drop(self, programs: list[Any]) -> list[Any]:
        """Return the programs without the one of this kind that has not run for the longest time, if there are many."""
        own = [program for program in programs if program.kind is self]
        if len(own) < MOST_SIZES:
            return programs
        self._unused = 0 if own[-1].uses else self._unused + 1
        return [program for program in programs if program is not own[-1]]

    @property
    def is_exhausted(self) -> bool:
        """Whether sizes do not come again, so that programs for them are of no use."""
        return self._unused >= MOST_UNUSED
