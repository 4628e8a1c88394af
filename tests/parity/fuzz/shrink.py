"""Shrink a program with a difference to the shortest one that has it."""

import re

from .differential import Difference, run

ASSIGNED = re.compile(r"^(?:with L\.no_grad\(\): )?v\[(\d+)\] = ")
NUMBER = re.compile(r"[-+.]?\d[-+0-9.ej]*|\(|\)")
ZERO = re.compile(r"-?0\.0")
USED = re.compile(r"v\[(\d+)\]")


def kind_of(message: str) -> str:
    """Return a message without its numbers but 0, NaN and inf: differences of one kind have the same one."""
    return NUMBER.sub(lambda found: found[0] if ZERO.fullmatch(found[0]) else "#", message)[:60]


def shrunk(found: Difference) -> Difference:
    """Return the shortest program, found by removing lines, that has a difference of the same kind."""
    best, size = _sliced(found), max(1, len(found.lines) // 4)
    while True:
        best, again = _without_parts(best, size)
        if size == 1 and not again:
            shorter = _without_a_step(best)
            if shorter is None:
                return best
            best = shorter
        size = max(1, size // 2)


def _sliced(found: Difference) -> Difference:
    """Remove the lines that the last one, or the differing tensor, does not depend on."""
    needed, lines = set(USED.findall(found.lines[-1])) | set(USED.findall(found.message)), []
    for line in reversed(found.lines):
        if needed & set(USED.findall(line)):
            lines.insert(0, line)
            assigned = ASSIGNED.match(line)
            if not assigned or assigned[1] in needed:
                needed |= set(USED.findall(line))
    return same(lines, found) or found


def _without_parts(best: Difference, size: int) -> tuple[Difference, bool]:
    """Remove blocks of that many lines, the last first; return the program, and whether any block was removed."""
    again, end = False, len(best.lines)
    while end > 0:
        start = max(0, end - size)
        shorter = same(best.lines[:start] + best.lines[end:], best)
        if shorter is not None:
            best, again = shorter, True
        end = min(start, len(best.lines))
    return best, again


def _without_a_step(best: Difference) -> Difference | None:
    """Remove one line that makes a tensor from another, which then replaces it; None if none can be removed."""
    for n in reversed(range(len(best.lines) - 1)):
        assigned = ASSIGNED.match(best.lines[n])
        sources = set(USED.findall(best.lines[n])) - {assigned[1]} if assigned else ()
        for number in sources:
            rest = [line.replace(f"v[{assigned[1]}]", f"v[{number}]") for line in best.lines[n + 1 :]]
            if (shorter := same(best.lines[:n] + rest, best)) is not None:
                return shorter
    return None


def same(lines: list[str], found: Difference) -> Difference | None:
    """Return the difference that a shorter program has, if it is of the same kind."""
    kind = kind_of(found.message)
    return run(lines, lambda message: kind_of(message) == kind)
