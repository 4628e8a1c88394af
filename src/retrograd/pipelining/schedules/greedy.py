"""A list scheduler: what every rank does at each moment, the most urgent thing first, within a limit of memory."""

from retrograd.pipelining.schedules.actions import Action, Kind
from retrograd.pipelining.schedules.stage_placement import Held


def list_schedule(held: Held, micro_batches: int, *, limit: int) -> list[list[Action]]:
    """What every rank computes if, slot after slot, each takes the most urgent thing that it can do.

    The most urgent is an input half, then a forward of its latest stage, then a weight half. Each takes one slot;
    that fixes the order, whatever they take in fact. A rank keeps at most `limit` activations of a single stage,
    which has to be at least its number of stages. Nothing gets stuck: the forwards that the oldest micro-batch
    has still to do on a rank always have room there, so it comes to its end, and its room goes to the next.

    >>> " ".join(map(str, list_schedule([[0]], 3, limit=2)[0]))
    'F0.0 I0.0 F0.1 I0.1 W0.0 F0.2 I0.2 W0.1 W0.2'
    """
    state = _State(held, micro_batches, limit)
    order: list[list[Action]] = [[] for _ in held]
    while min(state.done[Kind.W]) < micro_batches:
        slot = [state.choose(stages) for stages in held]
        for actions, action in zip(order, slot, strict=True):
            if action is not None:
                actions.append(action)
                state.done[action.kind][action.stage] += 1
    return order


class _State:
    """How many micro-batches each stage has done, per kind: it takes them in order."""

    def __init__(self, held: Held, micro_batches: int, limit: int) -> None:
        stages = sum(map(len, held))
        self.micro_batches = micro_batches
        self.limit = limit
        self.done = {kind: [0] * stages for kind in (Kind.F, Kind.I, Kind.W)}

    def choose(self, stages: list[int]) -> Action | None:
        """The most urgent action of a rank with these stages, of those that it can do."""
        inputs, weights = self.done[Kind.I], self.done[Kind.W]
        candidates = [
            *((Kind.I, stage) for stage in stages if inputs[stage] < self._gradients(stage)),
            *((Kind.F, stage) for stage in reversed(stages) if self._can_forward(stage, stages)),
            *((Kind.W, stage) for stage in stages if weights[stage] < inputs[stage]),
        ]
        return next((Action(kind, stage, self.done[kind][stage]) for kind, stage in candidates), None)

    def _gradients(self, stage: int) -> int:
        """For how many micro-batches a stage has the gradient of its output."""
        forward, inputs = self.done[Kind.F], self.done[Kind.I]
        return inputs[stage + 1] if stage + 1 < len(inputs) else forward[stage]

    def _can_forward(self, stage: int, stages: list[int]) -> bool:
        """Whether a stage has an input, and room for its activations and those that the rank's oldest micro-batch
        has still to make."""
        forward, weights = self.done[Kind.F], self.done[Kind.W]
        if forward[stage] == (forward[stage - 1] if stage else self.micro_batches):
            return False
        alive = sum(forward[other] - weights[other] for other in stages)
        oldest = min(weights[other] for other in stages)
        owed = sum(forward[other] <= oldest for other in stages)
        return alive + owed + (forward[stage] > oldest) <= self.limit
