"""Run a job with a number of ranks that changes: fewer after a loss, more when hosts or cores are added."""

import re
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

from retrograd.cli.errors import UsageError
from retrograd.cli.jobs import CapacityError, Job, RunResult

LOOK_INTERVAL = 2.0  # seconds between two looks at the capacity

Launcher = Callable[[Job], RunResult]
Capacity = Callable[[Job], int]  # returns how many ranks the hosts or the cluster have room for


class Range(NamedTuple):
    """The permitted numbers of ranks: from `least` to `most` by `step`.

    >>> Range.parse("2:8:2"), Range.parse("2:8:2").fit(7), Range.parse("2:8:2").fit(1)
    (Range(least=2, most=8, step=2), 6, None)
    """

    least: int
    most: int
    step: int = 1

    @staticmethod
    def parse(text: str) -> "Range":
        """Return the range MIN:MAX or MIN:MAX:STEP.  Raises UsageError for other texts."""
        found = re.fullmatch(r"(\d+):(\d+)(?::(\d+))?", text)
        least, most, step = (int(number or 1) for number in found.groups()) if found else (0, 0, 0)
        if not 1 <= least <= most or step < 1:
            raise UsageError(f"--elastic is {text!r}; it must be MIN:MAX or MIN:MAX:STEP, with 1 <= MIN <= MAX")
        return Range(least, most, step)

    def fit(self, room: int) -> int | None:
        """Return the largest permitted number that is not above `room`; None if there is none."""
        if room < self.least:
            return None
        return self.least + (min(room, self.most) - self.least) // self.step * self.step


class Members:
    """The number of ranks that run, and whether more could.

    clock: returns seconds.
    """

    def __init__(
        self, allowed: Range, capacity: Callable[[], int], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.allowed = allowed
        self.ranks: int | None = None
        self.grown = False  # whether the run was ended because more ranks can run
        self._capacity, self._clock = capacity, clock
        self._room = 0
        self._next_look = 0.0

    def begin(self) -> int | None:
        """Return the number of ranks to start with; None if there is room for too few."""
        self._room = self._capacity()
        return self._set(self.allowed.fit(self._room))

    def shrink(self) -> int | None:
        """Return the number of ranks after a loss: as many as there is room for, if that has changed, else fewer."""
        room = self._capacity()
        changed, self._room = room != self._room, room
        return self._set(self.allowed.fit(room if changed else min(room, (self.ranks or 0) - 1)))

    def can_grow(self) -> bool:
        """Return whether more ranks can run than do; the capacity is read every two seconds."""
        now = self._clock()
        if not self.grown and now >= self._next_look:
            self._next_look = now + LOOK_INTERVAL
            room = self._capacity()
            self.grown = room > self._room and (self.allowed.fit(room) or 0) > (self.ranks or 0)
        return self.grown

    def _set(self, ranks: int | None) -> int | None:
        self.ranks, self.grown = ranks, False
        return ranks


def run_elastic(job: Job, allowed: Range, launcher: Launcher, capacity: Capacity, restarts: int | None) -> int:
    """Run the job until its script ends, with as many of the permitted ranks as there is room for.

    restarts: how many losses are permitted; None: any number.  A start with more ranks is no loss.

    Returns the exit code.  Raises CapacityError if there is room for too few ranks.
    """
    members = Members(allowed, lambda: capacity(job._replace(ranks=allowed.most)))
    ranks, losses = members.begin(), 0
    while ranks is not None:
        try:
            ended = launcher(job._replace(ranks=ranks, can_grow=members.can_grow))
        except CapacityError as error:  # the capacity is less than it seemed, as after the loss of a node
            ended, reason = RunResult(1, lost=True), str(error)
        else:
            reason = f"a rank was lost (exit code {ended.code})"
        if ended.stopped or ended.code == 0 or not (ended.lost or members.grown):
            return ended.code
        if members.grown:
            ranks, reason = members.begin(), "there is room for more ranks"
        else:
            losses += 1
            if restarts is not None and losses > restarts:
                return ended.code
            ranks = members.shrink()
        if ranks is not None:
            _say(f"{reason}; the script starts again with {ranks} rank{'s' if ranks > 1 else ''}")
    raise CapacityError(f"--elastic needs {allowed.least} ranks at least, and there is room for fewer")


def _say(text: str) -> None:
    print(f"retrograd: {text}", file=sys.stderr)
