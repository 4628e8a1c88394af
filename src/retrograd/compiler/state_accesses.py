"""How code uses an attribute or variable: only to count, or only to append to a list.

A program need not know the value of such a variable if all code that runs uses it so. The check reads the
instructions: each of them that names the variable must be a part of `x += value`, `x = x + value` or
`x.append(value)`, without jumps in between.
"""

import dis
import functools
import types

_STORES = {"LOAD_ATTR": "STORE_ATTR", "LOAD_GLOBAL": "STORE_GLOBAL", "LOAD_DEREF": "STORE_DEREF"}
_OTHER_NAMES = ("LOAD_CLOSURE", "MAKE_CELL", "LOAD_FAST", "STORE_FAST", "DELETE_FAST", "LOAD_CONST")
_IGNORED = ("CACHE", "EXTENDED_ARG", "NOP", "RESUME")
_PUSHES = ("LOAD_FAST", "LOAD_CONST", "LOAD_GLOBAL", "LOAD_DEREF", "LOAD_NAME", "LOAD_SMALL_INT", "PUSH_NULL")
_COMPUTES = ("LOAD_", "BINARY_", "UNARY_", "CALL", "PRECALL", "KW_NAMES", "COMPARE_OP", "BUILD_", "PUSH_NULL")
_SUMS = ("+", "-", "+=", "-=")
_JUMPS = {*dis.hasjrel, *dis.hasjabs}


@functools.cache
def is_only_counted(code: types.CodeType, name: str) -> bool:
    """Return whether code uses a variable or attribute only to add to it, or to subtract from it.

    >>> def count(self):
    ...     self.count += 1
    >>> is_only_counted(count.__code__, "count"), is_only_counted((lambda x: x.count > 2).__code__, "count")
    (True, False)
    """
    steps, uses = _steps_with(code, name)
    loads = [i for i in uses if steps[i].opname in _STORES]
    stores = [_store_of_sum(steps, i) for i in loads]
    return None not in stores and {*loads, *stores} == {*uses}


@functools.cache
def is_only_appended_to(code: types.CodeType, name: str) -> bool:
    """Return whether code uses a variable or attribute only to append to it, or to read what it has just appended.

    >>> losses = []
    >>> def keep(x):
    ...     losses.append(x)
    >>> is_only_appended_to(keep.__code__, "losses")
    True
    >>> is_only_appended_to((lambda: losses[0]).__code__, "losses")
    False
    """
    steps, uses = _steps_with(code, name)
    appended: int | None = None
    for i in uses:
        end = _end_of_append(steps, i) if steps[i].opname in _STORES else None
        if end is None and (appended is None or not _reads_last(steps, appended, i)):
            return False
        appended = appended if end is None else end
    return True


def _steps_with(code: types.CodeType, name: str) -> tuple[list[dis.Instruction], list[int]]:
    """Return the instructions of code, and the numbers of those that name a variable or attribute."""
    steps = [step for step in dis.get_instructions(code) if step.opname not in _IGNORED]
    uses = [i for i, step in enumerate(steps) if step.argval == name and not step.opname.startswith(_OTHER_NAMES)]
    return steps, uses


def _is_straight(step: dis.Instruction) -> bool:
    return step.opcode not in _JUMPS and not step.is_jump_target


def _effect(step: dis.Instruction) -> int:
    return dis.stack_effect(step.opcode, step.arg)


def _store_of_sum(steps: list[dis.Instruction], start: int) -> int | None:
    """Return the number of the instruction that stores a variable which one loads as the first operand of a sum."""
    depth = 1  # of the stack, with the loaded value
    for i in range(start + 1, len(steps) - 2):
        step = steps[i]
        if depth == 2 and step.opname == "BINARY_OP" and step.argrepr in _SUMS:
            return _store_after(steps, start, i + 1)
        if not _is_straight(step) or not step.opname.startswith(_PUSHES if depth == 1 else _COMPUTES):
            return None
        depth += _effect(step)
        if depth < 2:
            return None
    return None


def _store_after(steps: list[dis.Instruction], load: int, i: int) -> int | None:
    """Return the number of the store of the same variable, at some instruction or after it has its object."""
    if steps[load].opname == "LOAD_ATTR":
        owner, again = steps[load - 1], steps[i]
        is_copied = owner.opname == "COPY" and owner.arg == 1 and again.opname == "SWAP" and again.arg == 2
        calls = any(step.opname == "CALL" for step in steps[load:i])  # which may assign another object
        is_named = owner.opname.startswith("LOAD_FAST") or (owner.opname in ("LOAD_GLOBAL", "LOAD_DEREF") and not calls)
        if not is_copied and not (
            is_named and type(owner.argval) is str and again.opname == owner.opname and again.argval == owner.argval
        ):
            return None
        i += 1
    is_store = steps[i].opname == _STORES[steps[load].opname] and steps[i].argval == steps[load].argval
    return i if is_store and all(map(_is_straight, steps[load + 1 : i + 1])) else None


def _end_of_append(steps: list[dis.Instruction], start: int) -> int | None:
    """Return the number of the last instruction of `x.append(value)`, which begins with the load of x."""
    method = steps[start + 1]
    if method.opname not in ("LOAD_METHOD", "LOAD_ATTR") or method.argval != "append":
        return None
    depth = 2  # the method and the list
    for i in range(start + 2, len(steps) - 1):
        step = steps[i]
        if depth == 3 and step.opname in ("PRECALL", "CALL"):
            end = i + 1 + (step.opname == "PRECALL")
            return end if step.arg == 1 and steps[end].opname == "POP_TOP" else None
        if not _is_straight(step) or not step.opname.startswith(_PUSHES if depth == 2 else _COMPUTES):
            return None
        depth += _effect(step)
        if depth < 3:
            return None
    return None


def _reads_last(steps: list[dis.Instruction], appended: int, start: int) -> bool:
    """Return whether the last member of a list is read, after one was appended."""
    index, read = steps[start + 1 : start + 3]
    is_last = index.opname == "LOAD_CONST" and index.argval == -1
    is_read = read.opname == "BINARY_SUBSCR" or (read.opname == "BINARY_OP" and read.argrepr == "[]")
    return is_last and is_read and all(map(_is_straight, steps[appended : start + 3]))
