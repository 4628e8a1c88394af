"""How code uses an attribute, variable or item: only to count, or only to append to a list.

A program need not know the value of such a variable if all code that runs uses it so. The check reads the
instructions: each of them that names the variable must be a part of `x += value`, `x = x + value`, `x.append(value)` or
`x.extend(values)`, without jumps in between. An item is found by a path: the variable of a container, and constant
keys, as in `self.history["loss"]`. Uses of the variable for other items do not matter.
"""

import dis
import functools
import types
from typing import Any

_STORES = {"LOAD_ATTR": "STORE_ATTR", "LOAD_GLOBAL": "STORE_GLOBAL", "LOAD_DEREF": "STORE_DEREF"}
_OTHER_NAMES = ("LOAD_CLOSURE", "MAKE_CELL", "LOAD_FAST", "STORE_FAST", "DELETE_FAST", "LOAD_CONST")
_IGNORED = ("CACHE", "EXTENDED_ARG", "NOP", "RESUME")
_PUSHES = ("LOAD_FAST", "LOAD_CONST", "LOAD_GLOBAL", "LOAD_DEREF", "LOAD_NAME", "LOAD_SMALL_INT", "PUSH_NULL",
           "BUILD_LIST")  # fmt: skip
_COMPUTES = ("LOAD_", "BINARY_", "UNARY_", "CALL", "PRECALL", "KW_NAMES", "COMPARE_OP", "BUILD_", "PUSH_NULL")
_CONSTANTS = ("LOAD_CONST", "LOAD_SMALL_INT")
_SUMS = ("+", "-", "+=", "-=")
_JUMPS = {*dis.hasjrel, *dis.hasjabs}
_OTHER_ITEM = -1  # a use of the variable for another item than that of a path
Keys = tuple[Any, ...]


@functools.cache
def is_only_counted(code: types.CodeType, name: str, keys: Keys = ()) -> bool:
    """Return whether code uses a variable, attribute or item only to add to it, or to subtract from it.

    >>> def count(self):
    ...     self.count += 1
    >>> is_only_counted(count.__code__, "count"), is_only_counted((lambda x: x.count > 2).__code__, "count")
    (True, False)
    >>> def count(self):
    ...     self.counts["steps"] += 1
    ...     return self.counts["other"]
    >>> is_only_counted(count.__code__, "counts", ("steps",)), is_only_counted(count.__code__, "counts", ("other",))
    (True, False)
    """
    steps, uses = _steps_with(code, name)
    known: set[int] = set()
    for i in uses:
        found = _item_of(steps, i, keys) if steps[i].opname in _STORES else None
        if found == _OTHER_ITEM:
            known.add(i)
        elif found is not None:
            known.update(_uses_of_sum(steps, i, found, _SUMS))
    return known == {*uses}


@functools.cache
def numbers_added(code: types.CodeType, name: str, keys: Keys = ()) -> frozenset[float] | None:
    """Return the constants that code adds to a variable, attribute or item; None if it may use it in other ways.

    >>> def count(self):
    ...     self.time += 0.5
    >>> numbers_added(count.__code__, "time")
    frozenset({0.5})
    """
    if not is_only_counted(code, name, keys):
        return None
    steps, uses = _steps_with(code, name)
    loads = [_item_of(steps, i, keys) for i in uses if steps[i].opname in _STORES]
    numbers: set[float] = set()
    for i in loads:
        if i is None or i == _OTHER_ITEM:  # None: the store of a sum
            continue
        operand, operation = steps[i + 1 : i + 3]
        if operand.opname not in _CONSTANTS or operation.opname != "BINARY_OP" or operation.argrepr not in _SUMS:
            return None
        numbers.add(-operand.argval if operation.argrepr.startswith("-") else operand.argval)
    return frozenset(numbers)


@functools.cache
def is_only_appended_to(code: types.CodeType, name: str, keys: Keys = ()) -> bool:
    """Return whether code uses a list only to append to it, or to read what it has just appended.

    >>> losses = []
    >>> def keep(x):
    ...     losses.append(x)
    >>> is_only_appended_to(keep.__code__, "losses")
    True
    >>> is_only_appended_to((lambda: losses[0]).__code__, "losses")
    False
    """
    steps, uses = _steps_with(code, name)
    known, changes = set[int](), list[tuple[int, str]]()  # changes: the last instructions of calls, and their methods
    for i in uses:
        found = _item_of(steps, i, keys) if steps[i].opname in _STORES else None
        if found is None:
            continue  # perhaps the store of a sum
        if found == _OTHER_ITEM:
            known.add(i)
            continue
        end = _end_of_append(steps, found)
        last, method = max([change for change in changes if change[0] < i], default=(0, ""))  # not one around the read
        if end is not None:
            changes.append((end, steps[found + 1].argval))
        if end is not None or (method == "append" and _reads_last(steps, last, found)):
            known.add(i)
        else:
            known.update(_uses_of_sum(steps, i, found, ("+=",)))
    return known == {*uses}


def _item_of(steps: list[dis.Instruction], start: int, keys: Keys) -> int | None:
    """Return the number of the instruction that loads the item of a path, whose variable one loads.

    It is _OTHER_ITEM if the code has another item, and None if it does something else with a container.
    """
    i = start
    for number, key in enumerate(keys):
        made = _item_or_new_list(steps, i)
        if made is not None:
            i, given = made
            if given != key:
                return _OTHER_ITEM
            continue
        index, use = steps[i + 1 : i + 3]
        if index.opname not in _CONSTANTS or not _is_straight(index):
            return None
        if type(index.argval) is int and index.argval < 0:  # another key may be of the same item of a list
            return None
        copy, read = steps[i + 3 : i + 5] if i + 4 < len(steps) else (use, use)
        is_sum = use.opname == copy.opname == "COPY" and is_subscript(read)
        if index.argval != key:
            return _OTHER_ITEM if is_sum or use.opname.endswith("_SUBSCR") or is_subscript(use) else None
        if is_sum:
            return i + 4 if number == len(keys) - 1 else None
        if not is_subscript(use):
            return None
        i += 2
    return i


def _item_or_new_list(steps: list[dis.Instruction], start: int) -> tuple[int, Any] | None:
    """Return the number of the call in `x.setdefault(key, [])`, after the load of x, and the key; None for others."""
    method, index, new = steps[start + 1 : start + 4] if start + 5 < len(steps) else (None, None, None)
    if method is None or index is None or new is None or method.argval != "setdefault":
        return None
    end = start + 4 + (steps[start + 4].opname == "PRECALL")
    is_call = method.opname in ("LOAD_METHOD", "LOAD_ATTR") and steps[end].opname == "CALL" and steps[end].arg == 2
    is_new = new.opname == "BUILD_LIST" and new.arg == 0 and index.opname in _CONSTANTS
    return (end, index.argval) if is_call and is_new and all(map(_is_straight, steps[start + 1 : end + 1])) else None


def is_subscript(step: dis.Instruction) -> bool:
    """Return whether an instruction reads an item, `x[key]`: an operator from Python 3.14 on."""
    return step.opname == "BINARY_SUBSCR" or (step.opname == "BINARY_OP" and step.argrepr == "[]")


def _steps_with(code: types.CodeType, name: str) -> tuple[list[dis.Instruction], list[int]]:
    """Return the instructions of code, and the numbers of those that name a variable or attribute."""
    steps = [step for step in dis.get_instructions(code) if step.opname not in _IGNORED]
    uses = [i for i, step in enumerate(steps) if step.argval == name and not step.opname.startswith(_OTHER_NAMES)]
    return steps, uses


def _is_straight(step: dis.Instruction) -> bool:
    return step.opcode not in _JUMPS and not step.is_jump_target


def _effect(step: dis.Instruction) -> int:
    return dis.stack_effect(step.opcode, step.arg)


def _uses_of_sum(steps: list[dis.Instruction], start: int, loaded: int, signs: tuple[str, ...]) -> list[int]:
    """Return the numbers of the instructions that name a variable in a sum that is stored again; [] if it is none.

    `start` is the number of the first, which loads the variable, and `loaded` that of the load of the item, if the sum
    is one of an item.
    """
    end = _end_of_sum(steps, loaded, signs)
    if end is None:
        return []
    if start == loaded:
        store = _store_after(steps, start, end + 1)
        return [] if store is None else [start, store]
    if steps[loaded - 1].opname == "COPY":  # container and key wait below the item
        after = [(step.opname, step.arg) for step in steps[end + 1 : end + 3]]
        is_stored = after == [("SWAP", 3), ("SWAP", 2)] and steps[end + 3].opname == "STORE_SUBSCR"
        return [start] if is_stored and all(map(_is_straight, steps[start + 1 : end + 4])) else []
    return _item_stored_after(steps, start, loaded, end)


def _end_of_sum(steps: list[dis.Instruction], start: int, signs: tuple[str, ...]) -> int | None:
    """Return the number of the instruction that adds to a value, which one loads as the first operand of a sum."""
    depth = 1  # of the stack, with the loaded value
    for i in range(start + 1, len(steps) - 2):
        step = steps[i]
        if depth == 2 and step.opname == "BINARY_OP" and step.argrepr in signs:
            return i
        if not _is_straight(step) or not step.opname.startswith(_PUSHES if depth == 1 else _COMPUTES):
            return None
        depth += _effect(step)
        if depth < 2:
            return None
    return None


def _item_stored_after(steps: list[dis.Instruction], start: int, loaded: int, end: int) -> list[int]:
    """Return the numbers of the uses of a variable in `x[key] = x[key] + value`; [] if the sum is stored elsewhere."""
    first = start - (steps[start].opname == "LOAD_ATTR")
    is_local = steps[first].opname.startswith("LOAD_FAST")
    calls = any(step.opname == "CALL" for step in steps[loaded:end])  # which may assign another object
    is_named = type(steps[first].argval) is str and steps[first].opname.startswith(("LOAD_FAST", *_STORES))
    path = [(step.opname, step.argval) for step in steps[first:loaded]]
    again = steps[end + 1 : end + 2 + loaded - first]
    is_same = [(step.opname, step.argval) for step in again[:-1]] == path and again[-1].opname == "STORE_SUBSCR"
    if not is_same or not is_named or (calls and not is_local) or steps[first].opname == "LOAD_ATTR":
        return []
    return [start, end + 1 + start - first] if all(map(_is_straight, steps[start + 1 : end + 1 + len(again)])) else []


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
    """Return the number of the last instruction of `x.append(value)` or `x.extend(values)`, after the load of x."""
    method = steps[start + 1]
    if method.opname not in ("LOAD_METHOD", "LOAD_ATTR") or method.argval not in ("append", "extend"):
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
    return is_last and is_subscript(read) and all(map(_is_straight, steps[appended : start + 3]))
