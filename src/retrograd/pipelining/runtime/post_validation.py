"""Training steps without a barrier in between: optimizers step first, and the checks of all gradients follow."""

import copy
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

import optree

from retrograd import autograd
from retrograd.core import Tensor
from retrograd.core.level import is_transformed
from retrograd.nn import Module, Parameter
from retrograd.nn.utils.clip_grad import clip_grads_with_norm_, norms_of, total_of_norms
from retrograd.optim import Optimizer
from retrograd.pipelining.microbatch import tensors_in
from retrograd.pipelining.runtime.rank import Job, Rank, Report, merge_dicts
from retrograd.pipelining.runtime.repeated_forward import BufferStates
from retrograd.pipelining.runtime.stage import PipelineStageBase
from retrograd.pipelining.runtime.stage_copies import StageCopies
from retrograd.pipelining.schedules.actions import Action, Kind, Message
from retrograd.pipelining.schedules.replicas import ReplicaMesh
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

    def check(self, model: Module, args: Sequence[tuple], watch_nan: bool) -> None:
        """Raise for training steps that must be run one by one."""
        if self.validate not in ("after", "before"):
            raise ValueError(f"train_steps: validate must be 'after' or 'before', got {self.validate!r}")
        if not self.max_norm > 0:
            raise ValueError(f"train_steps: max_norm must be above 0, got {self.max_norm!r}")
        if is_transformed():
            raise NotImplementedError("train_steps: not supported inside a function transform; use step()")
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

    jobs: of each step, whose gradients are collected together.  numbers: of the model's parameters, by identity.
    stages: by rank, those of all microbatches.  owned: by rank, the parameters that it trains.
    awaited: by rank, the ranks that write to parameters, or to buffers, which it reads: others, of the same process.
    """

    jobs: Sequence[Job]
    numbers: Mapping[int, int]
    stages: Sequence[Sequence[PipelineStageBase]]
    owned: Sequence[Sequence[Parameter]]
    awaited: Sequence[Sequence[int]]
    settings: TrainingSettings

    @staticmethod
    def of(
        jobs: Sequence[Job],
        model: Module,
        copies: StageCopies,
        settings: TrainingSettings,
        shared_memory: bool,
    ) -> "Training":
        """Return the steps of these jobs.  shared_memory: whether the ranks are threads."""
        numbers = {id(parameter): number for number, parameter in enumerate(model.parameters())}
        directions, replicas = jobs[0].directions, jobs[0].replicas
        mesh = ReplicaMesh(replicas, len(jobs[0].program) // replicas)
        owned: list[dict[int, Parameter]] = [{} for _ in range(mesh.world)]
        awaited: list[set[int]] = [set() for _ in owned]
        stages = [(rank, stage) for stage in copies.by_replica()[0] for rank in directions.ranks(stage.stage_index)]
        trained = [(rank, p) for rank, stage in stages for p in stage.submod.parameters() if p.requires_grad]
        first_rank: dict[int, int] = {}  # of those whose stages have a parameter
        for rank, parameter in trained:
            first_rank[id(parameter)] = min(rank, first_rank.get(id(parameter), rank))
        for rank, parameter in trained:
            writer = first_rank[id(parameter)]
            for peer in mesh.peers(rank):
                if shared_memory and peer != writer:
                    awaited[peer].add(writer)
                else:
                    owned[peer][id(parameter)] = parameter
        for rank, _ in stages if shared_memory else ():
            for peer in mesh.peers(rank)[1:]:  # for its buffers
                awaited[peer].add(rank)
        placements = directions.placements  # each of which has copies of all stages, if the ranks are threads
        size = len(placements)
        copied = copies.by_replica() * (1 if shared_memory else replicas * size)
        own_stages = [
            [
                stage
                for placement, some in zip(placements, copied[first : first + size], strict=True)
                for stage in some
                if placement[stage.stage_index] == rank
            ]
            for first in range(0, replicas * size, size)
            for rank in range(mesh.ranks)
        ]
        parameters = [list(own.values()) for own in owned]
        return Training(jobs, numbers, own_stages, parameters, list(map(sorted, awaited)), settings)

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


_Found = tuple[list[Report], list[Verdict]]


class _Repeated(Exception):  # noqa: N818 (no error)
    """The forward passes of a step have used parameters that are taken back."""


class TrainingRank:
    """One rank during several training steps.

    After the backward passes of a step, each rank sends the others the norms of its gradients, steps, and begins the
    forward passes of the next step.  Before its first backward pass, it reads the norms of the others, which have
    usually arrived by then.  If the gradients have to be clipped, or are not finite, it restores its parameters and the
    state of its optimizer from copies, steps with clipped gradients or not at all, and repeats the forward passes.  All
    ranks compute the same verdict, so all of them repeat.  A rank that has all norms when it steps, such as the last
    one to finish, or one that waits for its first input, needs no copies: if the verdict is bad, it skips the forward
    passes that the others repeat.

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
        self._copies = _Copies(self.parameters, self.part.state)

    def run(self) -> _Found:
        """Run all steps; return the report and the verdict of each."""
        self._clear_gradients()
        after = self.training.settings.validate == "after"
        repeats = False  # whether the other ranks may have begun with parameters that they take back
        for number, job in enumerate(self.training.jobs):
            report = None
            if repeats:
                self._skip(job, 2 * number)
            else:
                report = self._attempt(job, 2 * number)
            report = report or self._attempt(job, 2 * number + 1)
            assert report is not None, "the second attempt begins with parameters that are checked"
            self.reports.append(report)
            self._send_norms(number)
            if after and not self._wait_for_norms(number + 1):
                self._step_optimistically()
                repeats = False
            else:
                repeats = not self._settle() and after
        if self._pending is not None:
            self._settle()
        return self.reports, self.verdicts

    # ------------------------------------------------------------------------------------------------- one step

    def _attempt(self, job: Job, number: int) -> Report | None:
        """Run the forward and backward passes of a step; None if its parameters were not the right ones."""
        stages, link = self.training.stages[self.link.rank], _StepLink(self.link, number)
        self._release_others(link)
        self._await_others(link)
        buffers = [BufferStates(stage.submod).record() for stage in stages] if self._pending is not None else []
        rank = Rank(link, job._replace(prepare=self._check_before))
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

    def _skip(self, job: Job, number: int) -> None:
        """Take no part in an attempt that the other ranks will not finish."""
        link = _StepLink(self.link, number)
        self._release_others(link)
        Rank(link, job).cancel_sends()

    def _await_others(self, link: "_StepLink") -> None:
        """Before an attempt, wait for the ranks that write to memory which this rank reads.

        A replica has buffers of its own, which it sets to those of the first one.
        """
        for peer in self.training.awaited[link.rank]:
            values = link.receive(peer, Message("P", peer, link.rank, 0))
            with autograd.no_grad():
                for buffer, value in zip(self._buffers(), values, strict=False):  # of another stage's rank: none
                    buffer.copy_(value)

    def _release_others(self, link: "_StepLink") -> None:
        """Before an attempt, tell the ranks that wait for this one that it has written what they read."""
        jobs, rank = self.training.jobs, self.link.rank
        ranks = len(jobs[0].program) // jobs[0].replicas
        for peer, awaited in enumerate(self.training.awaited):
            if rank in awaited:
                buffers = self._buffers() if peer % ranks == rank else []
                link.send(peer, Message("P", rank, peer, 0), [buffer.detach().clone() for buffer in buffers])

    def _buffers(self) -> list[Tensor]:
        return [buffer for stage in self.training.stages[self.link.rank] for buffer in stage.submod.buffers()]

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

    def _wait_for_norms(self, following: int) -> bool:
        """Return whether all norms have arrived, or arrive before this rank can begin the following step.

        A rank that would be idle needs no copies to step before the norms arrive.
        """
        jobs, rank = self.training.jobs, self.link.rank
        if following == len(jobs):
            return True  # the check may as well wait
        job = jobs[following]
        first, ranks = job.program[rank][0], len(job.program) // job.replicas
        inputs: list[Arrival] = []
        if first.kind.is_receive:
            assert first.peer is not None, "a receive has a sender"
            sender = rank - rank % ranks + job.directions.rank(first.peer, first.micro_batch)
            inputs.append(_StepLink(self.link, 2 * following).arrival(sender, first.message))
        norms = [self._received.arrival(peer, Message("N", peer, rank, 0)) for peer in self._peers()]
        while True:
            can_begin = all(
                self.link.has_arrived(*one) for one in inputs
            )  # first: a sender's norms are before its input
            missing = [one for one in norms if not self.link.has_arrived(*one)]
            if can_begin or not missing:
                return not missing
            self.link.wait_any([*inputs, missing[0]])

    def _step_optimistically(self) -> None:
        """Step, unless the norm of this rank's gradients is already too large, even if it is rounded down."""
        assert self._pending is not None, "the norms are sent before"
        own = self.training.check(self._pending)
        if not own.skipped and own.norm <= self.training.settings.max_norm * (1 + 1e-3):
            self._copies.take()
            self.part.step()

    def _settle(self) -> bool:
        """Wait for the norms of the other ranks, and step as they demand; return whether no step is taken back."""
        norms = dict(self._pending or {})
        for peer in self._peers():
            norms |= self._received.receive(peer, Message("N", peer, self.link.rank, 0))
        verdict = self.training.check(norms)
        self.verdicts.append(verdict)
        if self._copies.taken and not verdict.accepted:
            self._copies.restore()
        if not self._copies.taken:
            if verdict.clipped:
                clip_grads_with_norm_(self.parameters, self.training.settings.max_norm, verdict.norm)
            if not verdict.skipped:
                self.part.step()
        self._copies.drop()
        self._pending = None
        self._clear_gradients()
        return verdict.accepted

    def _clear_gradients(self) -> None:
        for parameter in self.parameters:
            parameter.grad = None


class _Copies:
    """Copies of some parameters and of their optimizer's state, in memory that is used again for each step.

    To take back a step by arithmetic would not restore the bits.
    """

    def __init__(self, parameters: Sequence[Parameter], state: dict[Any, Any]) -> None:
        self._parameters = parameters
        self._state = state
        self._leaves: list[Any] = []  # copies of the last step, whose memory is used again
        self._taken: tuple[list[Parameter], Any] | None = None

    @property
    def taken(self) -> bool:
        """Return whether there are copies of the present step."""
        return self._taken is not None

    def take(self) -> None:
        """Copy what the optimizer's step writes to: the parameters with a gradient, and their states."""
        written = [p for p in self._parameters if p.grad is not None]
        entries: Any = [(p.detach(), dict(self._state[p]) if p in self._state else None) for p in written]
        leaves, structure = optree.tree_flatten(entries, none_is_leaf=True)
        with autograd.no_grad():
            self._leaves = [_copy_leaf(leaf, old) for leaf, old in zip_longest(leaves, self._leaves[: len(leaves)])]
        self._taken = written, structure

    def drop(self) -> None:
        """Forget the copies, but not their memory."""
        self._taken = None

    def restore(self) -> None:
        """Restore the values of the copies, which the optimizer's state then consists of."""
        assert self._taken is not None, "a step has been taken"
        written, structure = self._taken
        with autograd.no_grad():
            for parameter, (value, state) in zip(written, structure.unflatten(self._leaves), strict=True):
                parameter.copy_(value)
                if state is None:
                    self._state.pop(parameter, None)
                else:
                    self._state[parameter] = state
        self._leaves, self._taken = [], None


def _copy_leaf(leaf: Any, old: Any) -> Any:
    """Return a copy, in the memory of the old one if that is like it."""
    if not isinstance(leaf, Tensor):
        return copy.deepcopy(leaf)
    if isinstance(old, Tensor) and old.aval == leaf.aval:
        return old.copy_(leaf)
    return leaf.detach().clone()


def _part_of(optimizer: Optimizer, parameters: Sequence[Parameter]) -> Optimizer:
    """Return an optimizer of some parameters with the settings and the state of another one."""
    own = set(map(id, parameters))
    part = copy.copy(optimizer)
    part.param_groups = [
        {**group, "params": [p for p in group["params"] if id(p) in own]} for group in optimizer.param_groups
    ]
    return part


class _StepLink:
    """A link whose messages are those of one attempt at a step."""

    def __init__(self, link: Link, number: int) -> None:
        self._link = link
        self._offset = number << 32
        self.rank, self.number = link.rank, link.number

    @property
    def doing(self) -> str:
        """The current action of the rank."""
        return self._link.doing

    @doing.setter
    def doing(self, text: str) -> None:
        self._link.doing = text

    def expect(self, arrivals: Sequence[Arrival]) -> None:
        self._link.expect([self.arrival(*one) for one in arrivals])

    def send(self, rank: int, message: Message, payload: Any) -> None:
        self._link.send(rank, self._numbered(message), payload)

    def arrival(self, rank: int, message: Message) -> Arrival:
        """Return the arrival of a message, as the link without numbers knows it."""
        return Arrival(rank, self._numbered(message))

    def has_arrived(self, rank: int, message: Message) -> bool:
        return self._link.has_arrived(rank, self._numbered(message))

    def wait_any(self, arrivals: Sequence[Arrival]) -> None:
        self._link.wait_any([self.arrival(*one) for one in arrivals])

    def receive(self, rank: int, message: Message) -> Any:
        return self._link.receive(rank, self._numbered(message))

    def _numbered(self, message: Message) -> Message:
        return message._replace(micro_batch=message.micro_batch + self._offset)
