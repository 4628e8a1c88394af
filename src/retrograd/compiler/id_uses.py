"""How code uses the ids of objects: only as keys, as `id(x) in seen` and `memo[id(x)]` do.

Such code asks which objects are the same, as `is` does. An id that is used as a number differs between runs.
"""

import dis
import functools
import re
import types
from collections.abc import Iterator

from retrograd.compiler.state_accesses import is_subscript

_IGNORED = ("CACHE", "EXTENDED_ARG", "NOP", "RESUME", "PRECALL")
_METHODS = {"add", "discard", "get", "pop", "remove", "setdefault"}  # whose first argument is a key
_PUSHES = ("LOAD_FAST", "LOAD_CONST", "LOAD_GLOBAL", "LOAD_DEREF", "LOAD_NAME", "LOAD_SMALL_INT", "PUSH_NULL")
_LOADS = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF")
_JUMPS = {*dis.hasjrel, *dis.hasjabs}
LEAST_ADDRESS = 1 << 16  # below it there are no objects


@functools.cache
def calls_for_keys(code: types.CodeType) -> frozenset[int]:
    """Return the offsets of the calls of `id` in code whose results are only keys of dicts, or members of sets.

    >>> len(calls_for_keys((lambda x, seen: id(x) in seen or seen.add(id(x))).__code__))
    2
    >>> len(calls_for_keys((lambda x: id(x) % 2).__code__))
    0
    """
    steps = list(_steps_of(code))
    loads = [i for i, step in enumerate(steps) if step.opname in _LOADS and step.argval == "id"]
    calls = [(i, _end_of_call(steps, i)) for i in loads]
    return frozenset([steps[end].offset for start, end in calls if end and _is_key(steps, start, end)])


def _steps_of(code: types.CodeType) -> Iterator[dis.Instruction]:
    """Yield the instructions of code, those that load and store variables one by one, as in Python 3.11."""
    for step in dis.get_instructions(code):
        if step.opname in _IGNORED:
            continue
        kinds = re.findall("(?:LOAD|STORE)_FAST(?!_CHECK|_AND)", step.opname)
        names = step.argval if isinstance(step.argval, tuple) else (step.argval,)
        if len(kinds) != len(names):
            yield step
            continue
        for kind, name in zip(kinds, names, strict=True):
            yield step._replace(opname=kind, opcode=dis.opmap[kind], argval=name)


def _end_of_call(steps: list[dis.Instruction], start: int) -> int | None:
    """Return the number of the call of the function that an instruction loads; None if there is none, with one operand.

    >>> code = (lambda x: id(x.y)).__code__
    >>> steps = list(_steps_of(code))
    >>> start = next(i for i, step in enumerate(steps) if step.argval == "id")
    >>> steps[_end_of_call(steps, start)].opname
    'CALL'
    """
    depth = 0
    for i in range(start, len(steps)):
        if i > start and (steps[i].opcode in _JUMPS or steps[i].is_jump_target):
            return None
        depth += _effect(steps[i])
        if depth == 1 and i > start and steps[i].opname == "CALL":
            return i if steps[i].arg == 1 else None
        if depth < 1:
            return None
    return None


def _effect(step: dis.Instruction) -> int:
    """Return how the height of the stack changes; that of a call includes the step before it in Python 3.11."""
    if step.opname == "CALL":
        return -1 - (step.arg or 0)
    return dis.stack_effect(step.opcode, step.arg)


def _is_key(steps: list[dis.Instruction], start: int, end: int) -> bool:
    """Return whether a value, computed by the instructions from `start` to `end`, is only used as a key."""
    step = steps[end + 1]
    if step.opname == "STORE_FAST" and not step.is_jump_target:
        uses = [i for i, other in enumerate(steps) if other.argval == step.argval and i != end + 1]
        return all(steps[i].opname == "LOAD_FAST" and _is_consumed_as_key(steps, i, i) for i in uses)
    return _is_consumed_as_key(steps, start, end)


def _is_consumed_as_key(steps: list[dis.Instruction], start: int, end: int) -> bool:
    above = 0  # values on the stack over this one
    for step in steps[end + 1 :]:
        if step.opcode in _JUMPS or step.is_jump_target:
            return False
        match step.opname:
            case "STORE_SUBSCR" | "DELETE_SUBSCR" | "SET_ADD" if above == 0:
                return True
            case _ if above == 0 and is_subscript(step):
                return True
            case "CONTAINS_OP" | "MAP_ADD" if above == 1:
                return True
            case "BUILD_SET" if above < (step.arg or 0):
                return True
            case "BUILD_MAP" if above < 2 * (step.arg or 0):
                return above % 2 == 1
            case "CALL" if above + 1 == step.arg:  # the value is the first operand
                method = steps[start - 1]
                return method.opname in ("LOAD_METHOD", "LOAD_ATTR") and method.argval in _METHODS
            case "LOAD_ATTR" if above > 0:
                pass
            case "CALL" if above > 1 + (step.arg or 0):  # and not of a method whose operand the value is
                pass
            case "BUILD_SET" | "BUILD_TUPLE" | "BUILD_LIST" if above >= (step.arg or 0):
                pass
            case name if not name.startswith(_PUSHES):
                return False
        above += _effect(step)
    return False


def may_be_ids(value: object) -> bool:
    """Return whether a plain value is an integer that may be an id, or contains one.

    >>> may_be_ids(3), may_be_ids(("a", 1 << 40))
    (False, True)
    """
    if type(value) in (tuple, frozenset):
        return any(map(may_be_ids, value))  # type: ignore[call-overload]
    return type(value) is int and value >= LEAST_ADDRESS
