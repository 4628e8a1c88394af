"""Source locations in the user's code: cheap to record, formatted only when asked for."""

import inspect
import linecache
import os
import sys

PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep
LINES = "__made_at__"  # in the globals of generated code: line number -> the line that it was traced from


def user_frame(depth=1):
    """Return the innermost frame outside this package; None if there is none."""
    frame = sys._getframe(depth)
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE) and LINES not in frame.f_globals:
        frame = frame.f_back
    return frame


def user_line():
    """Return the current line of the user's code: `file:line in function`.

    For code generated from a graph, return the line that it was traced from.
    """
    frame = user_frame(2)
    if frame is None:
        return ""
    if LINES in frame.f_globals:
        return frame.f_globals[LINES].get(frame.f_lineno, "")
    return f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"


def described(function):
    """Return a user's function by its name and where it is defined: `loss (train.py:12)`."""
    name = getattr(function, "__qualname__", type(function).__name__)
    code = getattr(inspect.unwrap(function), "__code__", None)
    return name if code is None else f"{name} ({code.co_filename}:{code.co_firstlineno})"


def line_of(where):
    """Return `file:line in function` for a pair of a code object and an instruction's offset."""
    if where is None or where[0] is None:
        return "an unknown line"
    code, _ = where
    return f"{code.co_filename}:{_line_number(where)} in {code.co_name}"


def stack():
    """Return the (code, instruction) pairs of all frames outside this package, the innermost first."""
    frame, places = sys._getframe(1), []
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith(PACKAGE):
            places.append((code, frame.f_lasti))
        frame = frame.f_back
    return places


def format_stack(places):
    """Return a stack in the format of Python's tracebacks, the outermost frame first."""
    lines = []
    for where in reversed(places):
        code, number = where[0], _line_number(where)
        lines.append(f'  File "{code.co_filename}", line {number}, in {code.co_name}\n')
        text = linecache.getline(code.co_filename, number).strip()
        if text:
            lines.append(f"    {text}\n")
    return "".join(lines)


def _line_number(where):
    code, instruction = where
    for start, end, line in code.co_lines():
        if start <= instruction < end and line is not None:
            return line
    return code.co_firstlineno


class Cut:
    """Where a value left the graph that made it: the reason, and the line. Built from the value's `tag`."""

    __slots__ = ("_place", "reason")

    def __init__(self, reason, code, instruction):
        self.reason = reason
        self._place = code, instruction

    @property
    def line(self):
        """The line of the cut, as `file:line in function`."""
        return line_of(self._place)

    def __repr__(self):
        return f"<Cut: {self.reason}, at {self.line}>"
