"""Source locations in the user's code: cheap to record, formatted only when asked for."""

import inspect
import itertools
import os
import sys
import warnings

PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep
LINES = "__made_at__"  # in the globals of generated code: line number -> the line that it was traced from


def user_frame(depth=1):
    """Return the innermost frame outside this package; None if there is none."""
    frame = sys._getframe(depth)
    while frame is not None and not is_user_frame(frame):
        frame = frame.f_back
    return frame


def is_user_frame(frame):
    """Return whether a frame is of code outside this package, or of code generated from the user's."""
    return not frame.f_code.co_filename.startswith(PACKAGE) or LINES in frame.f_globals


def user_line():
    """Return the current line of the user's code: `file:line in function`.

    For code generated from a graph, return the line that it was traced from.
    """
    frame = user_frame(2)
    return "" if frame is None else line_of(frame)


def line_of(frame):
    """Return the current line of a frame, as `user_line` does."""
    if LINES in frame.f_globals:
        return frame.f_globals[LINES].get(frame.f_lineno, "")
    return f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"


def scipy_caller():
    """Return the public name of the SciPy function that has called this package, "linalg.solve"; "" if none has.

    The outermost one, if several call each other. Reads frames, so it is for messages only.
    """
    frame, found = user_frame(2), ""
    while frame is not None:
        package, _, module = frame.f_globals.get("__name__", "").partition(".")
        if package not in ("scipy", "numpy"):
            break
        home, name = module.partition(".")[0], frame.f_code.co_name
        public = sys.modules.get(f"scipy.{home}") if package == "scipy" else None
        if name[0] != "_" and home[:1] != "_" and callable(getattr(public, name, None)):
            found = f"{home}.{name}"
        frame = frame.f_back
    return found


def warn_user(message, category=UserWarning):
    """Warn at the current line of the user's code, once for each line by default."""
    frame = user_frame(2)
    if frame is None:
        warnings.warn(message, category, stacklevel=2)
        return
    names = frame.f_globals
    registry = names.setdefault("__warningregistry__", {})
    # Given the globals too, Python asks their loader for the source, and those of `-c` and `-m` do not know `__main__`.
    warnings.warn_explicit(
        message, category, frame.f_code.co_filename, frame.f_lineno, names.get("__name__", "<string>"), registry
    )


def frames_from(frame):
    """Yield a frame, and those of the functions around that have called it; none if it is None."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def position_of(code, instruction):
    """Return where an instruction is in its file: the first and last line, the first and last column."""
    return next(itertools.islice(code.co_positions(), instruction // 2, None))


def describe_function(function):
    """Return a user's function by its name and where it is defined: `loss (train.py:12)`."""
    name = getattr(function, "__qualname__", type(function).__name__)
    code = getattr(inspect.unwrap(function), "__code__", None)
    return name if code is None else f"{name} ({code.co_filename}:{code.co_firstlineno})"
