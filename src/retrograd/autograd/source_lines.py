"""Lines of the user's code that made nodes and cut values off: recorded as code objects, formatted when asked for."""

import linecache
import sys
from types import CodeType, FrameType

from retrograd.foundation.source_location import PACKAGE

Where = tuple[CodeType, int]  # a code object, and the offset of an instruction


def line_of(where: tuple[CodeType | None, int] | None) -> str:
    """Return `file:line in function` for a pair of a code object and an instruction's offset."""
    code, instruction = where or (None, 0)
    if code is None:
        return "an unknown line"
    return f"{code.co_filename}:{_line_number((code, instruction))} in {code.co_name}"


def stack() -> list[Where]:
    """Return the (code, instruction) pairs of all frames outside this package, the innermost first."""
    frame: FrameType | None = sys._getframe(1)
    frames = []
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith(PACKAGE):
            frames.append((code, frame.f_lasti))
        frame = frame.f_back
    return frames


def format_stack(frames: list[Where]) -> str:
    """Return a stack in the format of Python's tracebacks, the outermost frame first."""
    lines = []
    for where in reversed(frames):
        code, number = where[0], _line_number(where)
        lines.append(f'  File "{code.co_filename}", line {number}, in {code.co_name}\n')
        text = linecache.getline(code.co_filename, number).strip()
        if text:
            lines.append(f"    {text}\n")
    return "".join(lines)


def _line_number(where: Where) -> int:
    code, instruction = where
    for start, end, line in code.co_lines():
        if start <= instruction < end and line is not None:
            return line
    return code.co_firstlineno


class Cut:
    """Where a value left the graph that made it: the reason, and the line. Built from the value's `tag`."""

    __slots__ = ("_place", "reason")

    def __init__(self, reason: str, code: CodeType | None, instruction: int) -> None:
        self.reason = reason
        self._place = code, instruction

    @property
    def line(self) -> str:
        """The line of the cut, as `file:line in function`."""
        return line_of(self._place)

    def __repr__(self) -> str:
        return f"<Cut: {self.reason}, at {self.line}>"
