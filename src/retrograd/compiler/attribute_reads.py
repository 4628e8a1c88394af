"""The attributes that code reads by functions such as `getattr`: the names in it, or any, if it computes names."""

import dis
import functools
import itertools
import types

_BY_NAME = ("getattr", "hasattr", "setattr", "delattr")
# They read attributes by names which the code does not have as a constant, or all of them.
_ANY = {"__delattr__", "__dict__", "__getattribute__", "__getstate__", "__setattr__", "attrgetter", "eval", "exec",
        "methodcaller", "vars"}  # fmt: skip

_JUMPS = {*dis.hasjrel, *dis.hasjabs}


@functools.cache
def computes_names(code: types.CodeType) -> bool:
    """Return whether code may read or set attributes whose names are no constants in it.

    >>> computes_names((lambda x: getattr(x, "size", None)).__code__)
    False
    >>> computes_names((lambda x, name: getattr(x, name)).__code__)
    True
    """
    if not _ANY.isdisjoint(code.co_names):
        return True
    steps = list(dis.get_instructions(code))
    if any(step.opname == "MATCH_CLASS" and step.arg for step in steps):
        return True  # by the `__match_args__` of a class
    loads = [i for i, step in enumerate(steps) if step.opname.startswith("LOAD_") and step.argval in _BY_NAME]
    return any(not _has_constant_name(steps, i) for i in loads)


def _has_constant_name(steps: list[dis.Instruction], start: int) -> bool:
    """Return whether the second operand of the call of a function that is loaded at some step is a constant string."""
    depth = 0  # of the stack, above the function
    is_constant = False
    for step in steps[start + 1 :]:
        if step.opname in ("PRECALL", "CALL") and step.arg == depth:
            return is_constant
        if step.opcode in _JUMPS:
            return False
        before, depth = depth, depth + dis.stack_effect(step.opcode, step.arg)
        if depth == 2:  # the second operand is complete, as far as one can see
            is_constant = before == 1 and step.opname == "LOAD_CONST" and type(step.argval) is str
        if depth < 0:  # another function is called, with this one as operand
            return False
    return False


@functools.cache
def names_in_patterns(code: types.CodeType) -> frozenset[str]:
    """Return the names of the attributes that the patterns of `match` statements read."""
    steps = list(dis.get_instructions(code))
    names: set[str] = set()
    for before, step in itertools.pairwise(steps):
        if step.opname == "MATCH_CLASS" and isinstance(before.argval, tuple):
            names.update(before.argval)
    return frozenset(names)
