"""The handlers of exceptions in code: those that only clean up, and those that may end an exception or replace it.

A program runs no handlers. That is right where an exception passes, as in `finally`: a call that fails leaves Python's
state as it was. Elsewhere no operator may be captured that might raise an error in another call.
"""

import dis
import functools
import inspect
import types
from typing import Any

_MATCHES = {"CHECK_EXC_MATCH", "CHECK_EG_MATCH"}
_CONSTANTS = ("LOAD_CONST", "RETURN_CONST")
_SUSPENDS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


@functools.cache
def catches_exceptions(code: types.CodeType) -> bool:
    """Return whether a handler in code may end an exception, or raise another; that of `with` asks another function.

    >>> def cleans(x):
    ...     try:
    ...         return x()
    ...     finally:
    ...         x.close()
    >>> def catches(x):
    ...     try:
    ...         return x()
    ...     except ValueError:
    ...         return None
    >>> catches_exceptions(cleans.__code__), catches_exceptions(catches.__code__)
    (False, True)
    """
    names = [step.opname for step in _steps(code)]
    ends = [i for i, name in enumerate(names) if name == "POP_EXCEPT" and names[i + 1] != "RERAISE"]
    if len(ends) > names.count("WITH_EXCEPT_START") or not _MATCHES.isdisjoint(names):
        return True
    begins = [i + 1 for i, name in enumerate(names) if name == "PUSH_EXC_INFO"]
    return any(names[i] == "POP_TOP" or "RAISE_VARARGS" in names[i : names.index("RERAISE", i)] for i in begins)


@functools.cache
def suspends(code: types.CodeType) -> bool:
    """Return whether code is that of a generator or coroutine: others run while its handlers wait."""
    return bool(code.co_flags & _SUSPENDS)


@functools.cache
def may_suppress(code: types.CodeType) -> bool:
    """Return whether code is an `__exit__` that may return something else than None or False."""
    if code.co_name not in ("__exit__", "__aexit__"):
        return False
    steps = _steps(code)
    returned = [step if step.opname == "RETURN_CONST" else steps[i - 1]
                for i, step in enumerate(steps) if step.opname.startswith("RETURN_") and i]  # fmt: skip
    return any(step.opname not in _CONSTANTS or step.argval not in (None, False) for step in returned)


def is_caught(frame: Any) -> bool:
    """Return whether an exception at the present instruction of a frame would come to a handler that may end it."""
    code = frame.f_code
    return catches_exceptions(code) and any(start <= frame.f_lasti < end for start, end in _caught_ranges(code))


@functools.cache
def _caught_ranges(code: types.CodeType) -> list[tuple[int, int]]:
    """Return the ranges of instructions with handlers that are no part of `with`."""
    entries = getattr(dis.Bytecode(code), "exception_entries", None)
    if entries is None:
        return [(0, len(code.co_code))]
    steps = _steps(code)
    after = {step.offset: steps[i + 1].opname for i, step in enumerate(steps) if step.opname == "PUSH_EXC_INFO"}
    return [(e.start, e.end) for e in entries if after.get(e.target, "WITH_EXCEPT_START") != "WITH_EXCEPT_START"]


def _steps(code: types.CodeType) -> list[dis.Instruction]:
    return [step for step in dis.get_instructions(code) if step.opname not in ("CACHE", "EXTENDED_ARG", "NOP")]
