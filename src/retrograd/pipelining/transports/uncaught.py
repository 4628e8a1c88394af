"""Report the error that ends a script of several ranks: one short traceback, and a line of every other rank."""

import os
import re
import sys
import traceback
from collections.abc import Iterator
from types import TracebackType
from typing import Any

from retrograd.foundation.source_location import PACKAGE
from retrograd.pipelining.transports.failures import NOTE, causes
from retrograd.pipelining.transports.interface import PeerLost, RankMismatchError
from retrograd.pipelining.transports.rank_messaging import Origin, Peers
from retrograd.pipelining.transports.status_file import first_with_error

LONGEST = 40  # lines of a report
FULL_VARIABLE = "RETROGRAD_TRACEBACK"  # "full": Python's own traceback, on every rank
CAUSED = "\nThe above exception was the direct cause of the following exception:\n\n"
DURING = "\nDuring handling of the above exception, another exception occurred:\n\n"
# Beginnings of file names: of this package, of its compiled modules, and of what runs a script for `retrograd run`.
OWN_FILES = (PACKAGE, os.path.join("src", "retrograd", ""), "<frozen runpy>")


def report_uncaught_errors(peers: Peers | None) -> None:
    """Make the uncaught errors of this process short, unless the script has its own `sys.excepthook`.

    peers: None before this process has messages to others; another call follows when it has.
    """
    known = sys.excepthook is sys.__excepthook__ or sys.excepthook in _hooks
    if not known or os.environ.get(FULL_VARIABLE) == "full":
        return

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if isinstance(error, Exception):
            sys.stderr.write(uncaught_report(error, peers))
        else:
            sys.__excepthook__(kind, error, trace)

    _hooks[:] = [hook]
    sys.excepthook = hook


_hooks: list[Any] = []  # that of this process
_errors: list[Origin] = []  # that this process has reported


def error_at_end() -> Origin | None:
    """Return the error that has ended the script of this process, if one has."""
    return _errors[-1] if _errors else None


def uncaught_report(error: BaseException, peers: Peers | None) -> str:
    """Return the text about an error that ends the script of this rank.

    An error that another rank has raised, or all ranks, has its traceback there, on the first of them.  So has an error
    that has ended the script of another rank, without which this one cannot continue.
    """
    if os.environ.get(FULL_VARIABLE) == "full":
        return "".join(traceback.format_exception(error))
    rank = int(os.environ.get("RANK", "0")) if peers is None else peers.rank
    origin, line = (rank, _summary(error)[0]) if peers is None else _origin(error, peers)
    if origin == rank:
        # Ranks that wait for another one until the timeout have the same error, but each names itself.
        origin = first_with_error(re.sub(rf"\brank {rank}\b", "this rank", line), rank)
    _errors.append((origin, line))
    if origin == rank:
        return short_traceback(error)
    return f"retrograd: rank {rank} ends with the error of rank {origin}: {line}"


def _origin(error: BaseException, peers: Peers) -> Origin:
    """Return the rank that reports an error, and the first line of its report."""
    if any(isinstance(cause, PeerLost) for cause in causes(error)):
        others = [found for found in peers.left.values() if found]
        if others:  # an error of another script has ended it, and then this one
            return others[0]
    line = _summary(error)[0]
    if isinstance(error, RankMismatchError | PeerLost):  # of all ranks
        over = {rank for rank, reason in peers.left.items() if reason is None}  # without an error: they report none
        return min(rank for rank in range(peers.size) if rank not in {*peers.lost, *over}), line
    notes = [NOTE.match(note) for note in getattr(error, "__notes__", ())]
    return next((int(found[1]) for found in notes if found), peers.rank), line


def short_traceback(error: BaseException) -> str:
    """Return the traceback of an error and its causes, at most 40 lines: frames of this package are only counted.

    >>> import retrograd as rg
    >>> try:
    ...     rg.ones(2).reshape(3)
    ... except RuntimeError as error:
    ...     lines = short_traceback(error).splitlines()
    >>> lines[0], lines[-2].strip().rpartition("[")[2].partition(" ")[2], lines[-1].partition(":")[0]
    ('Traceback (most recent call last):', 'frames of retrograd]', 'retrograd.core.errors.OperandValueError')
    """
    lines = "".join(_parts(error)).splitlines(keepends=True)
    if len(lines) > LONGEST:
        first = LONGEST // 2
        left_out = len(lines) - LONGEST + 1
        lines[first : first + left_out] = [f"  [{left_out} lines are left out: see {FULL_VARIABLE}=full]\n"]
    return "".join(lines)


def _parts(error: BaseException) -> Iterator[str]:
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None:
        yield from _parts(cause)
        yield DURING if error.__cause__ is None else CAUSED
    frames = traceback.extract_tb(error.__traceback__)
    if frames:
        yield "Traceback (most recent call last):\n"
        yield from _frames(frames)
    yield from _summary(error)


def _frames(frames: traceback.StackSummary) -> Iterator[str]:
    """Yield frames as text; consecutive ones of this package as their count."""
    count = 0
    for frame in frames:
        if frame.filename.startswith(OWN_FILES):
            count += 1
            continue
        yield from _count(count)
        yield from traceback.StackSummary.from_list([frame]).format()
        count = 0
    yield from _count(count)


def _count(frames: int) -> list[str]:
    return [f"  [{frames} frame{'s' if frames > 1 else ''} of retrograd]\n"] if frames else []


def _summary(error: BaseException) -> list[str]:
    """Return the lines with the class and the message, and notes except tracebacks of other ranks."""
    text = "".join(traceback.TracebackException.from_exception(error, compact=True).format_exception_only())
    return re.split(NOTE, text, maxsplit=1)[0].splitlines(keepends=True)
