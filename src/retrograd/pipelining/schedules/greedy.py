"""A list scheduler: in each time slot every rank runs its most urgent action within a memory limit."""

from retrograd.pipelining.schedules.actions import Action, Kind
from retrograd.pipelining.schedules.memory_safety import can_finish
from retrograd.pipelining.schedules.stage_placement import StagesByRank


def list_schedule(rank_stages: StagesByRank, micro_batches: int, *, limit: int) -> list[list[Action]]:
    """Return each rank's computations if it runs, slot by slot, the most urgent action that is ready.

    The most urgent is an input half, then a forward of its latest stage, then a weight half. Each takes one slot,
    which fixes the order independent of real times. A rank holds at most `limit` activations of a single stage,
    which has to be at least its number of stages. There is no deadlock: a rank begins a forward only if it has memory
    to finish all its microbatches, one after the other.

    >>> " ".join(map(str, list_schedule([[0]], 3, limit=2)[0]))
    'F0.0 I0.0 F0.1 I0.1 W0.0 F0.2 I0.2 W0.1 W0.2'
    """
    state = _State(rank_stages, micro_batches, limit)
    order: list[list[Action]] = [[] for _ in rank_stages]
    while min(state.done[Kind.W]) < micro_batches:
        slot = [state.choose(stages) for stages in rank_stages]
        if not any(slot):
            raise ValueError(f"list_schedule: no rank can continue with {limit} activations; it must hold its stages'")
        for actions, action in zip(order, slot, strict=True):
            if action is not None:
                actions.append(action)
                state.done[action.kind][action.stage] += 1
    return order


class _State:
    """The number of microbatches that each stage has finished, per kind; stages process them in order."""

    def __init__(self, rank_stages: StagesByRank, micro_batches: int, limit: int) -> None:
        stages = sum(map(len, rank_stages))
        self.micro_batches = micro_batches
        self.limit = limit
        self.ones = [1] * stages
        self.done = {kind: [0] * stages for kind in (Kind.F, Kind.I, Kind.W)}

    def choose(self, stages: list[int]) -> Action | None:
        """Return the most urgent ready action of a rank with these stages, or None."""
        inputs, weights = self.done[Kind.I], self.done[Kind.W]
        candidates = [
            *((Kind.I, stage) for stage in stages if inputs[stage] < self._gradients_received(stage)),
            *((Kind.F, stage) for stage in reversed(stages) if self._can_forward(stage, stages)),
            *((Kind.W, stage) for stage in stages if weights[stage] < inputs[stage]),
        ]
        return next((Action(kind, stage, self.done[kind][stage]) for kind, stage in candidates), None)

    def _gradients_received(self, stage: int) -> int:
        """Return for how many microbatches a stage has received the gradient of its output."""
        forward, inputs = self.done[Kind.F], self.done[Kind.I]
        return inputs[stage + 1] if stage + 1 < len(inputs) else forward[stage]

    def _can_forward(self, stage: int, stages: list[int]) -> bool:
        """Return whether a stage has an input, and the rank enough memory to finish what it has begun."""
        forward, inputs, weights = self.done[Kind.F], self.done[Kind.I], self.done[Kind.W]
        if forward[stage] == (forward[stage - 1] if stage else self.micro_batches):
            return False
        free = self.limit - 1 - sum(forward[other] - weights[other] for other in stages)
        after = [*forward[:stage], forward[stage] + 1, *forward[stage + 1 :]]
        return can_finish(stages, after, inputs, weights, free=free, saved=self.ones, kept=self.ones)
