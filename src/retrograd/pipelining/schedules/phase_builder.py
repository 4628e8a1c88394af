"""Build an order phase by phase: steps name kind and stage, and microbatches are counted automatically."""

from collections import Counter, deque

from retrograd.pipelining.schedules.actions import Action, Kind

OLDEST_W = None
"""In the place of a step: the weight half that has been open for longest, of whichever stage."""

Step = tuple[Kind, int] | None


class PhaseBuilder:
    """The order of one rank, written as repeated phases; each step takes the next microbatch of its kind and stage.

    Microbatches beyond `micro_batches` are left out, so a phase may be written for more than there are.

    >>> order = PhaseBuilder(2)
    >>> order.repeat(2, (Kind.F, 0), (Kind.I, 0))
    >>> order.repeat(3, OLDEST_W)
    >>> " ".join(map(str, order.actions))
    'F0.0 I0.0 F0.1 I0.1 W0.0 W0.1'
    """

    def __init__(self, micro_batches: int) -> None:
        self.micro_batches = micro_batches
        self.actions: list[Action] = []
        self._counts: Counter[tuple[Kind, int]] = Counter()
        self._pending_weights: deque[tuple[Kind, int]] = deque()

    def repeat(self, times: int, *steps: Step) -> None:
        """Append `steps` in order, `times` times."""
        for step in steps * times:
            if step is not OLDEST_W:
                self._append(*step)
            elif self._pending_weights:
                self._append(*self._pending_weights.popleft())

    def _append(self, kind: Kind, stage: int) -> None:
        # I and B share a counter: one microbatch may have a full backward, another a split one.
        counted_kind = Kind.I if kind is Kind.B else kind
        number = self._counts[counted_kind, stage]
        self._counts[counted_kind, stage] += 1
        if kind is Kind.I:
            self._pending_weights.append((Kind.W, stage))
        if kind is Kind.B:
            self._counts[Kind.W, stage] += 1
        if number < self.micro_batches:
            self.actions.append(Action(kind, stage, number))
