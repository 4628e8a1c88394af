"""Run an order of actions with PyTorch's names step by step, to see when each rank waits for another."""

import json
import os
from collections.abc import Callable, Mapping

from retrograd.interop.atomic_write import atomic_replace
from retrograd.pipelining.schedules.action_names import ComputationType as Type
from retrograd.pipelining.schedules.action_names import NamedAction
from retrograd.pipelining.schedules.named_orders import BACKWARD, Row, format_pipeline_order

_SENT_BY = {Type.RECV_F: (Type.SEND_F, -1), Type.RECV_B: (Type.SEND_B, 1)}  # and how far away the sender's stage is


def simulate_comms_compute(
    pipeline_order: Mapping[int, Row], stage_to_rank: Callable[[int], int], num_stages: int
) -> dict[int, list[NamedAction | None]]:
    """Return the actions of every rank by time step, with None where the rank waits; each action takes one step.

    Raises ValueError if all ranks wait, and for actions other than computations, sends and receives.

    >>> read = NamedAction.from_str
    >>> order = {0: [read("0F0"), read("0SEND_F0")], 1: [read("1RECV_F0"), read("1F0")]}
    >>> simulate_comms_compute(order, lambda stage: stage, 2)
    {0: [0F0, 0SEND_F0], 1: [None, 1RECV_F0, 1F0]}
    """
    return _Simulation(pipeline_order, stage_to_rank, num_stages).run()


class _Simulation:
    """The actions of all ranks that have run, and those that have not."""

    def __init__(self, order: Mapping[int, Row], stage_to_rank: Callable[[int], int], num_stages: int) -> None:
        self.rest = {rank: [a for a in order[rank] if a is not None] for rank in sorted(order)}
        self.steps: dict[int, list[NamedAction | None]] = {rank: [] for rank in self.rest}
        self.done: dict[int, set[NamedAction]] = {rank: set() for rank in self.rest}
        self.stage_to_rank, self.num_stages = stage_to_rank, num_stages

    def run(self) -> dict[int, list[NamedAction | None]]:
        """Let each rank that has what its next action needs run it, step by step."""
        while any(self.rest.values()):
            active = [rank for rank, actions in self.rest.items() if actions]
            waiting = [rank for rank in active if not self._run_next(rank)]
            # A transfer takes one step on both ranks, so a rank may receive what a later one sends in this step.
            still = [rank for rank in reversed(waiting) if not self._run_next(rank)]
            for rank in still:
                self.steps[rank].append(None)
            if len(still) == len(active):
                needs = ", ".join(f"rank {rank} can't run {self.rest[rank][0]}" for rank in active)
                raise ValueError(f"Schedule is not progressing: {needs}\n{format_pipeline_order(self.steps)}")
        return self.steps

    def _run_next(self, rank: int) -> bool:
        """Run the next action of a rank if it is ready; return whether it was."""
        action = self.rest[rank][0]
        if not self._is_ready(rank, action):
            return False
        self.rest[rank].pop(0)
        self.steps[rank].append(action)
        self.done[rank] |= {action, *(action.sub_actions or ())}
        return True

    def _is_ready(self, rank: int, action: NamedAction) -> bool:
        stage, kind, microbatch, parts = action
        if parts is not None:
            return all(self._is_ready(rank, part) for part in parts)
        if kind is Type.BACKWARD_WEIGHT:
            return True
        if kind is Type.FORWARD:
            received = self._has(rank, stage, microbatch, Type.RECV_F)
            return stage == 0 or received or self._has(rank, stage - 1, microbatch, kind)
        if kind in BACKWARD:
            received = self._has(rank, stage, microbatch, Type.RECV_B)
            return stage == self.num_stages - 1 or received or self._has(rank, stage + 1, microbatch, *BACKWARD)
        if kind is Type.SEND_F:
            return self._has(rank, stage, microbatch, Type.FORWARD)
        if kind is Type.SEND_B:
            return self._has(rank, stage, microbatch, *BACKWARD)
        if kind in _SENT_BY:
            sent, offset = _SENT_BY[kind]
            return self._has(self.stage_to_rank(stage + offset), stage + offset, microbatch, sent)
        raise ValueError(f"Unsupported action type {action}")

    def _has(self, rank: int, stage: int, microbatch: int | None, *kinds: Type) -> bool:
        return any(NamedAction(stage, kind, microbatch) in self.done[rank] for kind in kinds)


def dump_chrometrace(schedule: Mapping[int, Row], filename: str | os.PathLike[str]) -> None:
    """Write a simulated order as a JSON file for Perfetto and Chrome's trace viewer: a row for each rank.

    >>> import tempfile
    >>> path = tempfile.mktemp(suffix=".json")
    >>> dump_chrometrace({0: [NamedAction.from_str("0F0"), None]}, path)
    >>> with open(path) as file: len(json.load(file)["traceEvents"])
    1
    """
    events = [
        {
            "name": str(action),
            "cat": "computation" if action.is_compute_op else "communication",
            "ph": "X",
            "pid": rank,
            "tid": rank,
            "ts": step,
            "dur": 1,
        }
        for rank in sorted(schedule)
        for step, action in enumerate(schedule[rank])
        if action is not None
    ]
    with atomic_replace(filename) as unfinished, open(unfinished, "w", encoding="utf-8") as file:
        json.dump({"traceEvents": events}, file)
