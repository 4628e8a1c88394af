"""An order written down phase by phase: what to do next is said by kind and stage, the micro-batches are counted."""

from collections import Counter, deque

from retrograd.pipelining.schedules.actions import Action, Kind

OLDEST_W = None
"""In the place of a step: the weight half that has been open for longest, of whichever stage."""

Step = tuple[Kind, int] | None


class Counting:
    """What one rank does, written as phases that repeat; each step is for the next micro-batch of its kind and stage.

    Micro-batches beyond `micro_batches` are left out, so a phase may be written for more than there are.

    >>> order = Counting(2)
    >>> order.repeat(2, (Kind.F, 0), (Kind.I, 0))
    >>> order.repeat(3, OLDEST_W)
    >>> " ".join(map(str, order.actions))
    'F0.0 I0.0 F0.1 I0.1 W0.0 W0.1'
    """

    def __init__(self, micro_batches: int) -> None:
        self.micro_batches = micro_batches
        self.actions: list[Action] = []
        self._done: Counter[tuple[Kind, int]] = Counter()
        self._open: deque[tuple[Kind, int]] = deque()

    def repeat(self, times: int, *steps: Step) -> None:
        """Write down `steps`, one after the other, so many times."""
        for step in steps * times:
            if step is not OLDEST_W:
                self._write(*step)
            elif self._open:
                self._write(*self._open.popleft())

    def _write(self, kind: Kind, stage: int) -> None:
        shared = Kind.I if kind is Kind.B else kind  # a backward is whole for one micro-batch, in halves for another
        number = self._done[shared, stage]
        self._done[shared, stage] += 1
        if kind is Kind.I:
            self._open.append((Kind.W, stage))
        if kind is Kind.B:
            self._done[Kind.W, stage] += 1
        if number < self.micro_batches:
            self.actions.append(Action(kind, stage, number))
