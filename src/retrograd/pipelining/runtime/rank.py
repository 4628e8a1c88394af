"""Run lowered schedules: every rank executes its list of actions."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, NamedTuple

from retrograd.autograd.anomaly_mode import has_nan
from retrograd.core import Tensor, registry
from retrograd.core.device import array_devices
from retrograd.ops.layout import array_device, place
from retrograd.pipelining.runtime.gradient_sums import Gradients
from retrograd.pipelining.runtime.offload import BackgroundMoves
from retrograd.pipelining.runtime.replica_buffers import ReplicaBuffers
from retrograd.pipelining.runtime.stage import PipelineStageBase, PipeliningMetadataError, StageMessage
from retrograd.pipelining.schedules.actions import Action, Kind
from retrograd.pipelining.schedules.activations import runs_of
from retrograd.pipelining.schedules.lowering import StageGraph
from retrograd.pipelining.schedules.replicas import ReplicaMesh
from retrograd.pipelining.schedules.stage_placement import Directions
from retrograd.pipelining.timeline.clocks import align_clocks
from retrograd.pipelining.timeline.operator_spans import SpanRecorder
from retrograd.pipelining.timeline.timeline import Event, Span, Timeline
from retrograd.pipelining.transports import Aborted, Arrival, Link, RankMismatchError


class PipelineError(RuntimeError):
    """A stage failed; the message names rank, stage, microbatch and action, and the cause is chained."""


class PipelineMetadataError(PipelineError, PipeliningMetadataError):
    """A stage's tensors differ from those declared for it; see `PipelineError`."""


class Job(NamedTuple):
    """The input of one step for every rank.

    program: per rank, its actions.  directions: the ranks of each stage, in the first replica.
    stages: per microbatch, the stages as captured for its shapes; None for those that only other processes have.
    inputs: per microbatch, the model's own inputs by name.  seeds: per microbatch, the gradient of its loss.
    loss: maps the microbatch index and the last stage's outputs to the loss; None: forward only.
    carried: per microbatch, the values that each edge of the stage graph carries; None: all outputs of the stage that
     sends.  An edge without values for a microbatch, whose capture lacks it, carries an empty message.
    gradients: sums the gradients of parameters that several stages have.
    random_stream: context manager for a stage and microbatch in the forward pass; it sets the random stream.
    turn: context manager around every computation; a lock serializes them.
    watch_nan: whether a NaN in a value or gradient ends the step.
    most_spans: the number of operators and nodes that each rank records at most, for the timeline.
    prepare: called before each action of this process's rank, and at the end with None.
    targets: per microbatch, the target of its loss, if it has one; offloading leaves it in memory.
    replicas: the number of replicas of the pipeline.  buffers: if these are processes, gives them the same buffers.
    """

    program: Sequence[Sequence[Action]]
    directions: Directions
    stages: Sequence[Sequence[PipelineStageBase | None]]
    inputs: Sequence[Mapping[str, Any]]
    seeds: Sequence[float]
    loss: Callable[[int, dict[str, Any]], Tensor] | None
    carried: Sequence[Mapping[tuple[int, int], Sequence[str] | None]]
    gradients: Gradients
    random_stream: Callable[[int, int], AbstractContextManager]
    turn: AbstractContextManager = nullcontext()
    watch_nan: bool = False
    most_spans: int = 0
    prepare: Callable[[Action | None], None] | None = None
    targets: Sequence[Any] = ()
    replicas: int = 1
    buffers: ReplicaBuffers | None = None


class Report(NamedTuple):
    """The result of a step on one rank.

    results: by microbatch, the loss, or the outputs of the last stage by name.
    input_gradients: by microbatch and stage, the gradients of the model's own inputs by name.
    times: start and end of every action, in seconds of a clock that all processes of a machine share.
    spans: the operators and nodes that ran, if they are recorded.
    """

    results: dict[int, Any]
    input_gradients: dict[tuple[int, int], dict[str, Tensor]]
    times: list[tuple[float, float]]
    spans: list[Span]


def timeline_of(actions: Sequence[Sequence[Action]], reports: Sequence[Report], *, one_clock: bool) -> Timeline:
    """Return the timeline of a step from the actions and the report of each rank.

    one_clock: whether all ranks have the same clock for sure; else their messages show how far the clocks differ.
    """
    events = [
        Event(rank, action, start, end)
        for rank, (done, report) in enumerate(zip(actions, reports, strict=True))
        for action, (start, end) in zip(done, report.times, strict=True)
    ]
    timeline = Timeline(events, len(reports), spans=[span for report in reports for span in report.spans])
    return timeline if one_clock else align_clocks(timeline)


def merge_dicts(parts: Iterable[Mapping]) -> dict:
    """Return the items of several dicts, such as the parts of a step's results; their keys are disjoint."""
    return {key: value for part in parts for key, value in part.items()}


Edge = tuple[int, int, int]  # from stage, to stage, microbatch


def edges_of(carried: Iterable[Mapping[tuple[int, int], object]]) -> set[tuple[int, int]]:
    """Return the edges between stages that any microbatch uses."""
    return {edge for one in carried for edge in one}


class Rank:
    """One rank during one step: its messages, values and gradients."""

    def __init__(self, link: Link, job: Job) -> None:
        self.rank = link.rank
        self.job = job
        self.link = link
        self._first_rank = ReplicaMesh(job.replicas, len(job.program) // job.replicas).first_rank(link.rank)
        self.report = Report({}, {}, [], [])
        self._values: dict[Edge, dict[str, StageMessage]] = {}
        self._gradients: dict[Edge, dict[str, Tensor | None]] = {}
        self._stage_graph = StageGraph(job.directions, edges_of(job.carried))
        self._recomputed = runs_of(job.program[link.rank], Kind.R)
        self._offloaded = runs_of(job.program[link.rank], Kind.OFFLOAD)
        self._moves = BackgroundMoves()
        self._handlers: dict[Kind, Callable[[Action], None]] = {
            Kind.F: self._forward,
            Kind.B: partial(self._backward, full=True),
            Kind.I: partial(self._backward, full=False),
            Kind.W: self._backward_weight,
            Kind.R: self._repeat_forward,
            Kind.OFFLOAD: lambda action: self._moves.offload(self._stage(action), action.micro_batch),
            Kind.FETCH: lambda action: self._moves.fetch(self._stage(action), action.micro_batch),
            Kind.SEND_F: self._send_values,
            Kind.RECV_F: self._receive_values,
            Kind.SEND_B: self._send_gradients,
            Kind.RECV_B: self._receive_gradients,
            Kind.REDUCE_GRAD: lambda action: job.gradients.replica_sums.start(link, action.stage),
            Kind.WAIT_GRAD: lambda action: job.gradients.replica_sums.finish(link, action.stage),
        }

    def run(self) -> Report:
        """Execute the actions in order; a failure is raised as a PipelineError that names its position."""
        with SpanRecorder(self.rank, self.job.most_spans) as recorder:
            with self._moves:
                self._run_actions()
            self.link.doing = "sums the gradients of shared parameters"
            if self.job.loss is not None:
                self.job.gradients.finish(self.link)
            if self.job.buffers is not None:
                self.job.buffers.finish(self.link)
        self.report.spans.extend(recorder.spans())
        return self.report

    def cancel_sends(self) -> None:
        """After an action that has failed, send nothing in each of the messages that other ranks will wait for."""
        for action in self.job.program[self.rank][len(self.report.times) :]:
            if action.kind.is_send:
                self.link.send(self._peer_rank(action), action.message, None)

    def _run_actions(self) -> None:
        actions = self.job.program[self.rank]
        self.link.expect([Arrival(self._peer_rank(a), a.message) for a in actions if a.kind.is_receive])
        prepare = self.job.prepare or (lambda action: None)
        for action in actions:
            prepare(action)
            if action.kind in (Kind.B, Kind.I) and (action.stage, action.micro_batch) in self._offloaded:
                self._run_action(action, self._await_fetch)
            with self.job.turn if action.kind.is_compute else nullcontext():
                # Other ranks report it if this one hangs.
                self.link.doing = str(action)
                start = time.perf_counter()
                self._run_action(action)
                self.report.times.append((start, time.perf_counter()))
        prepare(None)

    def _await_fetch(self, action: Action) -> None:
        self._moves.await_fetch(self._stage(action), action.micro_batch)

    def _run_action(self, action: Action, handler: Callable[[Action], None] | None = None) -> None:
        try:
            (handler or self._handlers[action.kind])(action)
        # Another rank has failed, or runs something else, and that error is the one to report.
        except (Aborted, RankMismatchError):
            raise
        except Exception as cause:
            kind = PipelineMetadataError if isinstance(cause, PipeliningMetadataError) else PipelineError
            of = "" if action.kind.is_reduction else f" microbatch {action.micro_batch},"
            raise kind(
                f"rank {self.link.number}, stage {action.stage},{of} action {action}: {type(cause).__name__}: {cause}"
            ) from cause

    def _peer_rank(self, action: Action) -> int:
        """Return the rank at the other end of a send or receive."""
        assert action.peer is not None, f"{action} moves no message"
        return self._first_rank + self.job.directions.rank(action.peer, action.micro_batch)

    def _stage(self, action: Action) -> PipelineStageBase:
        found = self.job.stages[action.micro_batch][action.stage]
        assert found is not None, "a rank has the stages that it runs"
        return found

    def _forward(self, action: Action) -> None:
        stage, micro_batch = self._stage(action), action.micro_batch
        values = dict(self.job.inputs[micro_batch])
        for source in self._stage_graph.sources[stage.stage_index]:
            values |= self._values.pop((source, stage.stage_index, micro_batch))
        key = stage.stage_index, micro_batch
        storing: AbstractContextManager = nullcontext()
        if key in self._recomputed:
            storing = stage.keep_inputs_only(micro_batch, values)
        elif key in self._offloaded:
            storing = stage.prepare_offload(micro_batch)
        two_ranks = len(self.job.directions.ranks(stage.stage_index)) > 1
        with self.job.random_stream(stage.stage_index, micro_batch), storing:
            with stage.refusing_writes() if two_ranks else nullcontext():
                outputs = stage.forward(micro_batch, values, keep=self.job.loss is not None)
            self._check_nan("the value", {name: message.value for name, message in outputs.items()})
            if stage.stage_index == len(self.job.stages[0]) - 1:
                self.report.results[micro_batch] = self._result(stage, micro_batch, outputs)
        for target in self._stage_graph.targets[stage.stage_index]:
            names = self.job.carried[micro_batch].get((stage.stage_index, target), ())
            sent = {name: outputs[name] for name in (outputs if names is None else names)}
            self._values[stage.stage_index, target, micro_batch] = sent

    def _repeat_forward(self, action: Action) -> None:
        """Run a forward pass again, for its backward pass."""
        stage, micro_batch = self._stage(action), action.micro_batch
        with self.job.random_stream(stage.stage_index, micro_batch), stage.repeating(micro_batch):
            if stage.stage_index == len(self.job.stages[0]) - 1:
                self._result(stage, micro_batch, {})

    def _result(self, stage: PipelineStageBase, micro_batch: int, outputs: Mapping[str, StageMessage]) -> Any:
        """Return the loss, or the outputs if there is no loss."""
        if self.job.loss is None:
            return {name: message.value for name, message in outputs.items()}
        target = self.job.targets[micro_batch] if self.job.targets else None
        loss = stage.attach(micro_batch, partial(self.job.loss, micro_batch), target)
        self._check_nan("the value", {"loss": loss})
        return loss

    def _backward(self, action: Action, full: bool) -> None:
        """Run the backward pass of a stage, or its input half."""
        stage, micro_batch = self._stage(action), action.micro_batch
        run_backward = stage.backward if full else stage.backward_input
        returned = run_backward(micro_batch, self._output_gradients(stage, micro_batch))
        self._check_nan("the gradient of", returned)
        for source in self._stage_graph.sources[stage.stage_index]:
            names = [v.name for v in stage.inputs if v.stage == source]
            self._gradients[source, stage.stage_index, micro_batch] = {name: returned[name] for name in names}
        own = {v.name: returned[v.name] for v in stage.inputs if v.stage is None}
        # The gradients of the model's inputs continue in the graph outside the pipeline, after the step.
        found = {name: gradient for name, gradient in own.items() if gradient is not None}
        if found:
            self.report.input_gradients[micro_batch, stage.stage_index] = found
        # After an input half, the gradients of the parameters are complete only when W has run.
        if full:
            self.job.gradients.collect(stage, micro_batch)

    def _backward_weight(self, action: Action) -> None:
        stage = self._stage(action)
        stage.backward_weight(action.micro_batch)
        self.job.gradients.collect(stage, action.micro_batch)

    def _output_gradients(self, stage: PipelineStageBase, micro_batch: int) -> dict[str, Tensor | None]:
        """Return the gradients from the users of a stage's values, summed from the last user to the first."""
        if stage.stage_index == len(self.job.stages[0]) - 1:
            loss = self.report.results[micro_batch]
            return {"loss": registry["full_like"](loss, self.job.seeds[micro_batch])}
        total: dict[str, Tensor | None] = {}
        for target in reversed(self._stage_graph.targets[stage.stage_index]):
            for name, part in self._gradients.pop((stage.stage_index, target, micro_batch)).items():
                before = total.get(name)
                if before is not None and part is not None and array_devices:
                    part = place(part, array_device(before))
                total[name] = part if before is None else before if part is None else before + part
        return total

    def _check_nan(self, what: str, values: Mapping[str, Any]) -> None:
        if self.job.watch_nan:
            for name, value in values.items():
                if isinstance(value, Tensor) and has_nan(value):
                    raise FloatingPointError(f"{what} {name!r}, {value.aval}, has nan")

    def _send_values(self, action: Action) -> None:
        payload = self._values.pop((action.stage, action.peer, action.micro_batch))  # type: ignore[arg-type]
        self.link.send(self._peer_rank(action), action.message, payload)

    def _receive_values(self, action: Action) -> None:
        payload = self.link.receive(self._peer_rank(action), action.message)
        self._values[action.peer, action.stage, action.micro_batch] = payload  # type: ignore[index]

    def _send_gradients(self, action: Action) -> None:
        payload = self._gradients.pop((action.peer, action.stage, action.micro_batch))  # type: ignore[arg-type]
        self.link.send(self._peer_rank(action), action.message, payload)

    def _receive_gradients(self, action: Action) -> None:
        payload = self.link.receive(self._peer_rank(action), action.message)
        self._gradients[action.stage, action.peer, action.micro_batch] = payload  # type: ignore[index]
