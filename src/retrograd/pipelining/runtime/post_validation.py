"""Training steps without a barrier in between: optimizers step first, and the checks of all gradients follow."""

import copy
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import optree

from retrograd import autograd
from retrograd.core import Tensor
from retrograd.core.level import is_transformed
from retrograd.nn import Module, Parameter
from retrograd.nn.utils.clip_grad import clip_grads_with_norm_, norms_of, total_of_norms
from retrograd.optim import Optimizer
from retrograd.pipelining.microbatch import tensors_in
from retrograd.pipelining.runtime.gradient_sums import Gradients
from retrograd.pipelining.runtime.rank import Job, Rank, Report, merge_dicts
from retrograd.pipelining.runtime.repeated_forward import BufferStates
from retrograd.pipelining.runtime.stage import PipelineStageBase
from retrograd.pipelining.schedules.actions import Action, Kind, Message
from retrograd.pipelining.transports import Aborted, Arrival, Link, RankMismatchError

Norms = dict[int, Any]  # by the number of a parameter of the model, the norm of its gradient


class StepResult(NamedTuple):
    """The result of one of several training steps.

    loss: the mean loss, 0-d.  norm: of all gradients, before they are clipped.  clipped: whether it was above the
    limit.  skipped: whether it is not finite, so that the step changes nothing.
    """

    loss: Tensor
    norm: float
    clipped: bool
    skipped: bool


class Verdict(NamedTuple):
    """The result of the checks of a step's gradients."""

    norm: float
    clipped: bool
    skipped: bool

    @property
    def accepted(self) -> bool:
        """Return whether the gradients are used as they are."""
        return not self.clipped and not self.skipped


class TrainingSettings(NamedTuple):
    """How the optimizer steps: its limit of the gradients' norm, and whether ranks wait for the norm."""

    optimizer: Optimizer
    max_norm: float
    validate: str

    def check(self, model: Module, args: Sequence[tuple], replicas: int, watch_nan: bool) -> None:
        """Raise for training steps that must be run one by one."""
        if self.validate not in ("after", "before"):
            raise ValueError(f"train_steps: validate must be 'after' or 'before', got {self.validate!r}")
        if not self.max_norm > 0:
            raise ValueError(f"train_steps: max_norm must be above 0, got {self.max_norm!r}")
        if is_transformed() or replicas > 1:
            where = "inside a function transform" if is_transformed() else "with replicas"
            raise NotImplementedError(f"train_steps: not supported {where}; use step()")
        if watch_nan:
            raise ValueError("train_steps: watch_nan ends a step with a NaN, which train_steps skips; use one of both")
        if self.optimizer._params_with_shared_state():
            name = type(self.optimizer).__name__
            raise ValueError(f"train_steps: {name} has one state for all parameters; use step()")
        known = set(map(id, model.parameters()))
        others = sum(id(p) not in known for group in self.optimizer.param_groups for p in group["params"])
        if others:
            raise ValueError(f"train_steps: the optimizer has {others} parameters that are not the model's")
        if any(tensor.requires_grad for tensor in tensors_in(list(args))):
            raise ValueError("train_steps: an input requires grad, whose graph only step() continues")


class Training(NamedTuple):
    """The input of several training steps for every rank.

    jobs: of each step.  numbers: of the model's parameters, by identity.  owned: by rank, the parameters that it
    trains.
    """

    jobs: Sequence[Job]
    numbers: Mapping[int, int]
    owned: Sequence[Sequence[Parameter]]
    settings: TrainingSettings

    @staticmethod
    def of(
        jobs: Sequence[Job],
        gradients: Gradients,
        model: Module,
        stages: Sequence[PipelineStageBase],
        settings: TrainingSettings,
    ) -> "Training":
        """Return the steps of these jobs, whose gradients are collected together."""
        numbers = {id(parameter): number for number, parameter in enumerate(model.parameters())}
        owned = _owned_parameters(stages, jobs[0].placement, len(jobs[0].program))
        return Training([job._replace(gradients=gradients) for job in jobs], numbers, owned, settings)

    def check(self, norms: Norms) -> Verdict:
        """Return the verdict for the norms of some gradients, which is the final one if they are all."""
        norm = float(total_of_norms([norms[number] for number in sorted(norms)], 2.0))
        skipped = not math.isfinite(norm)
        return Verdict(norm, not skipped and norm > self.settings.max_norm, skipped)

    def joined(self, found: "Sequence[_Found]") -> tuple[list[list[Action]], list[Report]]:
        """Return for each rank the actions of all steps, whose microbatches have one number after the other, and the
        times of all steps."""
        actions: list[list[Action]] = [[] for _ in found]
        start = 0
        for job in self.jobs:
            for row, own in zip(actions, job.program, strict=True):
                row += [action._replace(micro_batch=action.micro_batch + start) for action in own]
            start += len(job.inputs)
        reports = [
            Report(
                {}, {}, [time for one in reports for time in one.times], [span for one in reports for span in one.spans]
            )
            for reports, _ in found
        ]
        return actions, reports

    def results(self, found: "Sequence[_Found]") -> list[StepResult]:
        """Return the result of each step from those of the ranks."""
        steps = zip(self.jobs, zip(*(reports for reports, _ in found), strict=True), found[0][1], strict=True)
        return [
            StepResult(job.loss.mean(merge_dicts(report.results for report in reports)), *verdict)  # type: ignore[union-attr]
            for job, reports, verdict in steps
        ]


def _owned_parameters(
    stages: Sequence[PipelineStageBase], placement: Sequence[int], ranks: int
) -> list[list[Parameter]]:
    """Return by rank the parameters of its stages; NotImplementedError if a parameter is on two ranks."""
    rank_of: dict[int, int] = {}
    owned: list[dict[int, Parameter]] = [{} for _ in range(ranks)]
    for stage in stages:
        rank = placement[stage.stage_index]
        trained = [(name, p) for name, p in stage.submod.named_parameters() if p.requires_grad]
        for name, parameter in trained:
            if rank_of.setdefault(id(parameter), rank) != rank:
                raise NotImplementedError(
                    f"train_steps: {name} is trained on ranks {rank_of[id(parameter)]} and {rank}; use step()"
                )
            owned[rank][id(parameter)] = parameter
    return [list(own.values()) for own in owned]


_Found = tuple[list[Report], list[Verdict]]


class _Repeated(Exception):  # noqa: N818 (no error)
    """The forward passes of a step have used parameters that are taken back."""


class TrainingRank:
    """One rank during several training steps.

    After the backward passes of a step, each rank sends the others the norms of its gradients, steps, and begins the
    forward passes of the next step.  Before its first backward pass, it reads the norms of the others, which have
    usually arrived by then.  If the gradients have to be clipped, or are not finite, it restores its parameters and the
    state of its optimizer from copies, steps with clipped gradients or not at all, and repeats the forward passes.  All
    ranks compute the same verdict, so all of them repeat.

    Source: P. Qi, X. Wan, G. Huang and M. Lin, "Zero Bubble Pipeline Parallelism" (2024), section 4, except that norms
    are sent from every rank to every other one, and that the forward passes are repeated from the first one.
    """

    def __init__(self, link: Link, training: Training) -> None:
        self.link = link
        self.training = training
        self.parameters = training.owned[link.rank]
        self.part = _part_of(training.settings.optimizer, self.parameters)
        self.verdicts: list[Verdict] = []
        self.reports: list[Report] = []
        self._pending: Norms | None = None  # of a step that is not checked yet
        self._copies: _Copies | None = None  # from before its step

    def run(self) -> _Found:
        """Run all steps; return the report and the verdict of each."""
        self._clear_gradients()
        for number, job in enumerate(self.training.jobs):
            report = self._attempt(job, 2 * number) or self._attempt(job, 2 * number + 1)
            assert report is not None, "the second attempt begins with parameters that are checked"
            self.reports.append(report)
            self._send_norms(number)
            if self.training.settings.validate == "after":
                self._step_optimistically()
            else:
                self._settle()
        if self._pending is not None:
            self._settle()
        return self.reports, self.verdicts

    # ------------------------------------------------------------------------------------------------- one step

    def _attempt(self, job: Job, number: int) -> Report | None:
        """Run the forward and backward passes of a step; None if its parameters were not the right ones."""
        stages = _stages_of(job, self.link.rank)
        buffers = [BufferStates(stage.submod).record() for stage in stages] if self._pending is not None else []
        rank = Rank(_StepLink(self.link, number), job._replace(prepare=self._check_before))
        try:
            return rank.run()
        except (Aborted, RankMismatchError):
            raise
        except Exception as error:
            # Parameters that are taken back may cause any error, here or on the rank that sends the inputs.
            if not isinstance(error, _Repeated) and (self._pending is None or self._settle()):
                raise
        rank.cancel_sends()
        for stage in stages:
            stage.clear_step()
        with autograd.no_grad():
            for state in (state for states in buffers for state in states):
                state.restore()
        return None

    def _check_before(self, action: Action | None) -> None:
        """Check the previous step before anything is added to the gradients, or waited for that comes after the check
        on another rank."""
        last = action is None or action.kind in (Kind.B, Kind.I, Kind.RECV_B)
        if last and self._pending is not None and not self._settle():
            raise _Repeated

    # ------------------------------------------------------------------------------------------------- the checks

    def _send_norms(self, number: int) -> None:
        """Send the norms of this rank's gradients to the others."""
        with autograd.no_grad():
            graded = [p for p in self.parameters if p.grad is not None and p.grad.numel()]
            norms = norms_of([p.grad for p in graded], 2.0)
        self._pending = {self.training.numbers[id(p)]: norm for p, norm in zip(graded, norms, strict=True)}
        self._received = _StepLink(self.link, 2 * number)
        for peer in self._peers():
            self._received.send(peer, Message("N", self.link.rank, peer, 0), self._pending)

    def _peers(self) -> Iterator[int]:
        return (peer for peer in range(len(self.training.owned)) if peer != self.link.rank)

    def _step_optimistically(self) -> None:
        """Step, unless the norm of this rank's gradients is already too large."""
        assert self._pending is not None, "the norms are sent before"
        if self.training.check(self._pending).accepted:
            self._copies = _Copies(self.parameters, self.part)
            self.part.step()

    def _settle(self) -> bool:
        """Wait for the norms of the other ranks, and step as they demand; return whether no step is taken back."""
        norms = dict(self._pending or {})
        for peer in self._peers():
            norms |= self._received.receive(peer, Message("N", peer, self.link.rank, 0))
        verdict = self.training.check(norms)
        self.verdicts.append(verdict)
        if self._copies is not None and not verdict.accepted:
            self._copies.restore()
        if self._copies is None or not verdict.accepted:
            if verdict.clipped:
                clip_grads_with_norm_(self.parameters, self.training.settings.max_norm, verdict.norm)
            if not verdict.skipped:
                self.part.step()
        self._pending = self._copies = None
        self._clear_gradients()
        return verdict.accepted

    def _clear_gradients(self) -> None:
        for parameter in self.parameters:
            parameter.grad = None


class _Copies:
    """Copies of some parameters and of their optimizer's state.

    To take back a step by arithmetic would not restore the bits.
    """

    def __init__(self, parameters: Sequence[Parameter], optimizer: Optimizer) -> None:
        self._state = optimizer.state
        with autograd.no_grad():
            self._values = [(p, p.detach().clone()) for p in parameters if p.grad is not None]
            self._states = [(p, _copied(self._state[p]) if p in self._state else None) for p, _ in self._values]

    def restore(self) -> None:
        with autograd.no_grad():
            for parameter, value in self._values:
                parameter.copy_(value)
        for parameter, state in self._states:
            if state is None:
                self._state.pop(parameter, None)
            else:
                self._state[parameter] = state


def _copied(state: Mapping[str, Any]) -> dict[str, Any]:
    def copy_leaf(leaf: Any) -> Any:
        return leaf.detach().clone() if isinstance(leaf, Tensor) else copy.deepcopy(leaf)

    return {name: optree.tree_map(copy_leaf, entry, none_is_leaf=True) for name, entry in state.items()}


def _part_of(optimizer: Optimizer, parameters: Sequence[Parameter]) -> Optimizer:
    """Return an optimizer of some parameters with the settings and the state of another one."""
    own = set(map(id, parameters))
    part = copy.copy(optimizer)
    part.param_groups = [
        {**group, "params": [p for p in group["params"] if id(p) in own]} for group in optimizer.param_groups
    ]
    return part


def _stages_of(job: Job, rank: int) -> list[Any]:
    """Return the stages of a rank, for microbatches of all kinds."""
    found = [stage for stages in job.stages for stage in stages if stage is not None]
    return list(dict.fromkeys(stage for stage in found if job.placement[stage.stage_index] == rank))


class _StepLink:
    """A link whose messages are those of one attempt at a step."""

    def __init__(self, link: Link, number: int) -> None:
        self._link = link
        self._offset = number << 32
        self.rank = link.rank

    @property
    def doing(self) -> str:
        """The current action of the rank."""
        return self._link.doing

    @doing.setter
    def doing(self, text: str) -> None:
        self._link.doing = text

    def expect(self, arrivals: Sequence[Arrival]) -> None:
        self._link.expect([Arrival(rank, self._numbered(message)) for rank, message in arrivals])

    def send(self, rank: int, message: Message, payload: Any) -> None:
        self._link.send(rank, self._numbered(message), payload)

    def receive(self, rank: int, message: Message) -> Any:
        return self._link.receive(rank, self._numbered(message))

    def _numbered(self, message: Message) -> Message:
        return message._replace(micro_batch=message.micro_batch + self._offset)
