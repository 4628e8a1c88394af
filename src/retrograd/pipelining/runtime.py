"""Running lowered schedules: every rank plays its list of actions."""

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, NamedTuple

from retrograd.core import Tensor, registry
from retrograd.pipelining.actions import Action, Kind
from retrograd.pipelining.stage import PipelineStage
from retrograd.pipelining.timeline import Event
from retrograd.pipelining.transports import Aborted, Transport


class PipelineError(RuntimeError):
    """A stage failed; the message names rank, stage, micro-batch and action, and the cause is chained."""


class Job(NamedTuple):
    """What one step asks of every rank.

    stages: per micro-batch, the stages as captured for its shapes.
    inputs: per micro-batch, the model's own inputs by name.  weights: per micro-batch, its share of the loss.
    loss: from the number of the micro-batch and the last stage's outputs; None: forward only.
    carried: what each edge of the stage graph carries.
    turn: entered around every computation; a lock lets one run at a time.
    """

    stages: Sequence[Sequence[PipelineStage]]
    inputs: Sequence[Mapping[str, Any]]
    weights: Sequence[float]
    loss: Callable[[int, dict[str, Any]], Tensor] | None
    carried: Mapping[tuple[int, int], Sequence[str]]
    turn: AbstractContextManager = nullcontext()


class Rank:
    """One rank at work on one step: its mail, and the values and gradients in between."""

    def __init__(self, rank: int, job: Job, transport: Transport) -> None:
        self.rank = rank
        self.job = job
        self.transport = transport
        self.events: list[Event] = []
        self.results: dict[int, Any] = {}
        self._values: dict[tuple[int, int], dict[str, Any]] = defaultdict(dict)  # (source stage, micro-batch)
        self._gradients: dict[tuple[int, int], dict[str, dict[int, Tensor | None]]] = defaultdict(dict)
        self._play = {
            Kind.F: self._forward,
            Kind.B: self._backward,
            Kind.SEND_F: self._send_values,
            Kind.RECV_F: self._receive_values,
            Kind.SEND_B: self._send_gradients,
            Kind.RECV_B: self._receive_gradients,
        }

    def run(self, actions: Sequence[Action]) -> "Rank":
        """Play the actions in order; a failure is raised as a PipelineError that says where."""
        for action in actions:
            with self.job.turn if action.kind.is_compute else nullcontext():
                start = time.perf_counter()
                self._try(action)
                self.events.append(Event(self.rank, action, start, time.perf_counter()))
        return self

    def _try(self, action: Action) -> None:
        try:
            self._play[action.kind](action)
        except Aborted:
            raise
        except Exception as cause:
            raise PipelineError(
                f"rank {self.rank}, stage {action.stage}, micro-batch {action.micro_batch}, action {action}: {cause}"
            ) from cause

    def _stage(self, action: Action) -> PipelineStage:
        return self.job.stages[action.micro_batch][action.stage]

    def _is_last(self, stage: PipelineStage) -> bool:
        return stage.index == len(self.job.stages[0]) - 1

    def _forward(self, action: Action) -> None:
        stage, micro_batch = self._stage(action), action.micro_batch
        values = dict(self.job.inputs[micro_batch])
        for source in stage.sources:
            values.update(self._values[source, micro_batch])
        made = stage.forward(micro_batch, values, keep=self.job.loss is not None)
        if not self._is_last(stage):
            self._values[stage.index, micro_batch] = made
        elif self.job.loss is None:
            self.results[micro_batch] = {name: passed.value for name, passed in made.items()}
        else:
            self.results[micro_batch] = stage.attach(micro_batch, partial(self.job.loss, micro_batch))

    def _backward(self, action: Action) -> None:
        stage, micro_batch = self._stage(action), action.micro_batch
        returned = stage.backward(micro_batch, self._output_gradients(stage, micro_batch))
        for value in stage.inputs:
            if value.stage is not None:
                self._gradients[value.stage, micro_batch].setdefault(value.name, {})[stage.index] = returned[value.name]
        for done in (stage.index, *stage.sources):  # every forward of this micro-batch lies behind
            self._values.pop((done, micro_batch), None)

    def _output_gradients(self, stage: PipelineStage, micro_batch: int) -> dict[str, Tensor | None]:
        if self._is_last(stage):
            loss = self.results[micro_batch]
            return {"loss": registry["full_like"](loss, self.job.weights[micro_batch])}
        parts = self._gradients.pop((stage.index, micro_batch), {})
        return {name: _total(by_stage) for name, by_stage in parts.items()}

    def _send_values(self, action: Action) -> None:
        names = self.job.carried[action.stage, action.peer]  # type: ignore[index]
        values = self._values[action.stage, action.micro_batch]
        self.transport.send(action.message, {name: values[name] for name in names})

    def _receive_values(self, action: Action) -> None:
        self._values[action.peer, action.micro_batch].update(self.transport.receive(action.message))  # type: ignore[index]

    def _send_gradients(self, action: Action) -> None:
        gradients = self._gradients.get((action.peer, action.micro_batch), {})  # type: ignore[arg-type]
        names = self.job.carried[action.peer, action.stage]  # type: ignore[index]
        self.transport.send(action.message, {name: gradients[name].pop(action.stage) for name in names})

    def _receive_gradients(self, action: Action) -> None:
        slots = self._gradients[action.stage, action.micro_batch]
        for name, gradient in self.transport.receive(action.message).items():
            slots.setdefault(name, {})[action.peer] = gradient  # type: ignore[index]


def _total(parts: Mapping[int, Tensor | None]) -> Tensor | None:
    """The sum of the gradients that a value's users return, in the order of their stages."""
    total = None
    for stage in sorted(parts):
        part = parts[stage]
        if part is not None:
            total = part if total is None else total + part
    return total
