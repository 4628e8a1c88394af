"""Build an order phase by phase: steps name kind and stage, and microbatches are counted automatically."""

from collections import Counter, deque
from collections.abc import Iterator

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
    >>> " ".join(map(str, order))
    'F0.0 I0.0 F0.1 I0.1 W0.0 W0.1'
    """

    def __init__(self, micro_batches: int) -> None:
        self.micro_batches = micro_batches
        self._phases: list[tuple[int, tuple[Step, ...]]] = []

    def repeat(self, times: int, *steps: Step) -> None:
        """Append `steps` in order, `times` times."""
        self._phases.append((times, steps))

    def __iter__(self) -> Iterator[Action]:
        """Yield the actions, one at a time, because there may be millions."""
        counts: Counter[tuple[Kind, int]] = Counter()
        pending_weights: deque[tuple[Kind, int]] = deque()
        uses_oldest = any(OLDEST_W in steps for _, steps in self._phases)
        for step in self._steps():
            if step is OLDEST_W:
                if not pending_weights:
                    continue
                step = pending_weights.popleft()
            kind, stage = step
            # I and B share a counter: one microbatch may have a full backward, another a split one.
            counted = (Kind.I if kind is Kind.B else kind, stage)
            number = counts[counted]
            counts[counted] += 1
            if kind is Kind.I and uses_oldest:
                pending_weights.append((Kind.W, stage))
            if kind is Kind.B:
                counts[Kind.W, stage] += 1
            if number < self.micro_batches:
                yield Action(kind, stage, number)

    def _steps(self) -> Iterator[Step]:
        for times, steps in self._phases:
            for _ in range(times):
                yield from steps
