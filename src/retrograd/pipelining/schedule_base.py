"""The common part of the schedules with PyTorch's names: a rank's order of actions, and one step of it."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, ClassVar

from retrograd import autograd
from retrograd.core import Tensor
from retrograd.core.level import is_transformed
from retrograd.foundation.describe_value import describe
from retrograd.foundation.suggestions import suggests_keywords
from retrograd.pipelining.microbatch import merge_chunks, split_args_kwargs_into_chunks
from retrograd.pipelining.runtime.gradient_sums import Gradients
from retrograd.pipelining.runtime.microbatch_loss import note_missing_target
from retrograd.pipelining.runtime.rank import Job, Rank, Report
from retrograd.pipelining.runtime.stage import PipelineStageBase
from retrograd.pipelining.schedules import stage_directions
from retrograd.pipelining.schedules.action_names import ComputationType, NamedAction
from retrograd.pipelining.schedules.actions import Action, Schedule
from retrograd.pipelining.schedules.idle_slots import Row, with_idle_slots
from retrograd.pipelining.schedules.named_orders import overlap_pairs
from retrograd.pipelining.schedules.program import Program, make_program
from retrograd.pipelining.schedules.tables import parse_rows
from retrograd.pipelining.transports import Link
from retrograd.pipelining.transports.fingerprint import Fingerprint
from retrograd.pipelining.transports.process_group import ProcessGroup, group_or_default

Spec = Any  # a chunk spec, or several nested as the argument is


@suggests_keywords
class PipelineSchedule:
    """The common part of all schedules; a rank's stages, and how a batch is split and merged.

    A subclass names its schedule; without a name it has no order until one is loaded, or assigned to `pipeline_order`.
    """

    schedule: ClassVar[str | None] = None

    def __init__(
        self,
        stages: Sequence[PipelineStageBase],
        n_microbatches: int,
        loss_fn: Callable[..., Tensor] | None,
        args_chunk_spec: Sequence[Spec] | None,
        kwargs_chunk_spec: dict[str, Spec] | None,
        output_merge_spec: Any,
        scale_grads: bool,
    ) -> None:
        name = type(self).__name__
        if not isinstance(n_microbatches, int) or n_microbatches < 1:
            raise ValueError(f"{name}: n_microbatches must be an integer of at least 1, got {n_microbatches!r}")
        for stage in stages:
            if not isinstance(stage, PipelineStageBase):
                raise TypeError(f"{name}: expected a PipelineStage, got {type(stage).__name__}; see Pipe.build_stage")
        if not stages:
            raise ValueError(f"{name}: a rank needs at least one stage")
        if len({stage.num_stages for stage in stages}) > 1:
            raise ValueError(f"{name}: the stages disagree on num_stages: {[stage.num_stages for stage in stages]}")
        self.scale_grads = scale_grads
        self._stages = list(stages)
        self._n_microbatches = n_microbatches
        self._loss_fn = loss_fn
        self._args_chunk_spec = args_chunk_spec
        self._kwargs_chunk_spec = kwargs_chunk_spec
        self._output_merge_spec = output_merge_spec
        self._order: Schedule | None = None
        self._assigned: dict[int, list[NamedAction | None]] | None = None  # the loaded order, with its idle slots
        self._between: dict[Action | None, list[NamedAction]] = {}  # by the computation that follows
        self._check_placement()

    # ------------------------------------------------------------------------------------------------ its order

    def __repr__(self) -> str:
        numbers = ", ".join(str(stage.stage_index) for stage in self._stages)
        of = self._stages[0].num_stages
        return f"{type(self).__name__}(stage {numbers} of {of}, n_microbatches={self._n_microbatches})"

    @property
    def group(self) -> ProcessGroup:
        """The ranks that run the schedule."""
        return group_or_default(self._stages[0].group)

    @property
    def pipeline_order(self) -> dict[int, list[NamedAction | None]]:
        """The computations of every rank, with PyTorch's names, and None where the rank is idle.

        Assign another order to run it: per rank its actions, and None for idle slots, which are skipped.  Raises
        ValueError for a repeated action, a stage on two ranks, or other stages than this rank was given.
        """
        if self._assigned is not None:
            return {rank: list(row) for rank, row in self._assigned.items()}
        actions = self._program(forward_only=False).actions
        rows: list[Row] = [[action for action in row if action.kind.is_compute] for row in actions]
        if self._order is None:
            rows = with_idle_slots(str(self.schedule), rows)  # type: ignore[arg-type]
        named = [[action and NamedAction.of(action) for action in row] for row in rows]
        return dict(enumerate(overlap_pairs(named) if self.schedule == "DualPipeV" else named))

    @pipeline_order.setter
    def pipeline_order(self, order: Mapping[int, Sequence[NamedAction | None]]) -> None:
        rows = [["" if action is None else str(action) for action in order[rank]] for rank in sorted(order)]
        self._set_order(parse_rows(rows, "pipeline_order"))
        self._assigned = {rank: list(order[rank]) for rank in sorted(order)}

    @property
    def stage_index_to_group_rank(self) -> dict[int, int]:
        """The rank of every stage; in two directions, that of the even microbatches."""
        return dict(enumerate(self._program(forward_only=False).placement))

    def _set_order(self, order: Schedule) -> None:
        """Run this order from now on; if it does not fit, keep the current one."""
        before, self._order = self._order, order
        try:
            self._check_placement()
        except ValueError:
            self._order = before
            raise
        self._assigned = None

    def _check_placement(self) -> None:
        """Raise ValueError if the schedule gives this rank other stages."""
        numbers = [getattr(stage, "stage_index", None) for stage in self._stages]
        # Stages without a number, made to look at orders only, can't be on the wrong rank.
        if (self.schedule is None and self._order is None) or None in numbers:
            return
        count, rank, ranks = self._stages[0].num_stages, self._stages[0].group_rank, self._stages[0].group_size
        directions = (
            stage_directions(str(self.schedule), count, ranks)
            if self._order is None
            else self._program(forward_only=False).directions
        )
        expected = directions.stages(rank)
        actual = sorted(stage.stage_index for stage in self._stages)
        if actual != expected:
            raise ValueError(
                f"{type(self).__name__}: rank {rank} of {ranks} runs the stages {expected} of {count}, "
                f"but was given {actual}"
            )

    def _program(self, forward_only: bool) -> Program:
        chosen = self.schedule if self._order is None else self._order
        if chosen is None:
            raise RuntimeError(f"{type(self).__name__} has no order; load one with _load_csv(), or use a subclass")
        first = self._stages[0]
        count, size = self._n_microbatches, first.group_size
        edges = first.carried()
        return make_program(chosen, first.num_stages, count, edges, ranks=size, forward_only=forward_only)

    # ------------------------------------------------------------------------------------------------ running it

    def step(
        self,
        *args: Any,
        target: Any = None,
        losses: list | None = None,
        return_outputs: bool = True,
        loss_kwargs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Run a batch forward, and backward if there is a loss function; every rank of the group calls it.

        args: the model's, on the rank of the first stage; others ignore them, unless a captured stage uses one of
         them.  kwargs: of every stage to which this rank passes them.  target: of the loss, on the rank of the last
         stage.
        losses: a list that is filled there with the loss of each microbatch.  loss_kwargs: for the loss function.

        Gradients accumulate in the stages' parameters, divided by the number of microbatches if `scale_grads`.
        Returns the merged outputs on the rank of the last stage, unless `return_outputs` is False; else None.

        Raises RuntimeError under `no_grad`, and PipelineError, on all ranks, if a stage fails on one.
        """
        if self._loss_fn is not None and not autograd.is_grad_enabled():
            raise RuntimeError(
                "step() requires gradients to be enabled for backward computation; it should not be used under "
                "no_grad() context. Please call eval() instead."
            )
        return self._step(args, kwargs, target, losses, return_outputs, loss_kwargs, self._loss_fn is not None)

    def eval(self, *args: Any, target: Any = None, losses: list | None = None, **kwargs: Any) -> Any:
        """Run a batch forward only; arguments and result are those of `step`.

        With a target, `losses` is filled as in `step`.  The modules keep their mode: see `Module.eval`.
        """
        return self._step(args, kwargs, target, losses, True, None, False)

    def _step(
        self,
        args: tuple,
        kwargs: dict[str, Any],
        target: Any,
        losses: list | None,
        return_outputs: bool,
        loss_kwargs: dict[str, Any] | None,
        has_backward: bool,
    ) -> Any:
        if is_transformed():
            raise NotImplementedError(f"{type(self).__name__}: running inside a function transform is not supported")
        if losses is not None and not isinstance(losses, list):
            raise TypeError(f"losses must be a list but got a {type(losses)}")
        needs_target = has_backward and any(stage.is_last for stage in self._stages)
        with note_missing_target(f"{type(self).__name__}.step", needs_target, target):
            arg_mbs, kwarg_mbs = self._split_inputs(args, kwargs)
            targets = self._split_target(target)
            run = _Run(self, arg_mbs, kwarg_mbs, targets, loss_kwargs or {}, has_backward)
            run.launch(self.group)
        if losses is not None and run.losses:
            losses[:] = [run.losses[i] for i in sorted(run.losses)]
        if not return_outputs or not run.outputs:
            return None
        return merge_chunks([run.outputs[i] for i in sorted(run.outputs)], self._output_merge_spec)

    def _split_inputs(self, args: tuple, kwargs: dict[str, Any]) -> tuple[list[tuple], list[dict[str, Any]]]:
        if not args and not kwargs:
            return [()] * self._n_microbatches, [{}] * self._n_microbatches
        of_args = self._args_chunk_spec if args else None
        of_kwargs = {k: spec for k, spec in (self._kwargs_chunk_spec or {}).items() if k in kwargs}
        return split_args_kwargs_into_chunks(args, kwargs, self._n_microbatches, of_args, of_kwargs)

    def _split_target(self, target: Any) -> list[Any] | None:
        if target is None:
            return None
        return [part for (part,) in split_args_kwargs_into_chunks((target,), None, self._n_microbatches)[0]]


class _Run:
    """One step of one rank: its job, and the results on this rank."""

    def __init__(
        self,
        schedule: PipelineSchedule,
        arg_mbs: list[tuple],
        kwarg_mbs: list[dict[str, Any]],
        targets: list[Any] | None,
        loss_kwargs: dict[str, Any],
        has_backward: bool,
    ) -> None:
        self.schedule = schedule
        self.stages = {stage.stage_index: stage for stage in schedule._stages}
        self.targets = targets
        self.loss_kwargs = loss_kwargs
        self.outputs: dict[int, Any] = {}
        self.losses: dict[int, Tensor] = {}
        for stage in schedule._stages:
            stage.has_backward = has_backward
        self.has_backward = has_backward
        self.program = schedule._program(forward_only=not has_backward)
        self.inputs: list[dict[str, Any]] = [
            {name: x for stage in schedule._stages for name, x in stage.model_inputs(args, kwargs).items()}
            for args, kwargs in zip(arg_mbs, kwarg_mbs, strict=True)
        ]

    def launch(self, group: ProcessGroup) -> None:
        """Run this rank while the others run theirs."""
        first = next(iter(self.stages.values()))
        count = len(self.inputs)
        gradients = Gradients(
            [self.stages[index] for index in sorted(self.stages)],  # of both ranks with the same stages in one order
            self.program.directions,
            [group.rank()],
            unordered=self.program.unordered(),
        )
        job = Job(
            self.program.actions,
            self.program.directions,
            [[self.stages.get(index) for index in range(first.num_stages)]] * count,
            self.inputs,
            [1 / count if self.schedule.scale_grads else 1.0] * count,
            self._loss if self.has_backward else None,
            [first.carried()] * count,
            gradients,
            lambda stage, micro_batch: nullcontext(),
            targets=self.targets or (),
            prepare=self._prepare,
        )
        for stage in self.stages.values():
            stage.clear_runtime_states()
        reports: list[Report] = []
        try:
            with gradients:
                group.launch(lambda link: self._work(link, job, reports), self._fingerprint())
        finally:
            for stage in self.stages.values():
                stage.clear_step()
        self._finish(reports[0])
        self.stages[max(self.stages)].output_chunks += [self.outputs[i] for i in sorted(self.outputs)]

    def _prepare(self, before: Action | None) -> None:
        """Run what the order has between computations that is no transfer: see `PipelineScheduleRuntime`."""
        for index, kind, *_ in self.schedule._between.get(before, ()) if self.has_backward else ():
            stage = self.stages[index]
            if kind is ComputationType.REDUCE_GRAD:
                stage.perform_reduce_grad(len(self.inputs) if self.schedule.scale_grads else 1)
            else:
                getattr(stage.submod, kind.name.lower(), lambda: None)()

    def _fingerprint(self) -> Fingerprint:
        """Return what all ranks have in common: each has its own stages and inputs."""
        name = type(self.schedule).__name__
        return Fingerprint.of_call(
            f"{name}.{'step' if self.has_backward else 'eval'}",
            n_microbatches=len(self.inputs),
            stages=len(self.program.placement),
            scale_grads=self.schedule.scale_grads,
            actions=self.program.digest,
        )

    def _work(self, link: Link, job: Job, reports: list[Report]) -> None:
        reports.append(Rank(link, job).run())

    def _loss(self, micro_batch: int, outputs: Mapping[str, Any]) -> Tensor:
        """Return the loss of a microbatch from the outputs of the last stage by name, and keep these."""
        last = self.stages[max(self.stages)]
        output = last.result(outputs)
        self.outputs[micro_batch] = last.result({name: _detached(x) for name, x in outputs.items()})
        return self._loss_of(output, micro_batch)

    def _loss_of(self, output: Any, micro_batch: int) -> Tensor:
        assert self.schedule._loss_fn is not None, "only schedules with a loss run it"
        if self.targets is None:
            raise ValueError("the loss needs a target; pass target= to step() on the rank of the last stage")
        value = self.schedule._loss_fn(output, self.targets[micro_batch], **self.loss_kwargs)
        if not isinstance(value, Tensor) or value.ndim:
            raise ValueError(f"loss_fn's result must be a 0-d tensor, got {describe(value)}")
        return value

    def _finish(self, report: Report) -> None:
        """Take the results of the last stage, and continue backward from the model's inputs."""
        if self.has_backward:
            self.losses = report.results
            pairs = [
                (self.inputs[micro_batch][name], gradient)
                for (micro_batch, _), found in sorted(report.input_gradients.items())
                for name, gradient in found.items()
            ]
            if pairs:
                autograd.backward([x for x, _ in pairs], [gradient for _, gradient in pairs])
            return
        for micro_batch, values in report.results.items():
            self.outputs[micro_batch] = self.stages[max(self.stages)].result(values)
            if self.schedule._loss_fn is not None and self.targets is not None:
                with autograd.no_grad():
                    self.losses[micro_batch] = self._loss_of(self.outputs[micro_batch], micro_batch)


def _detached(value: Any) -> Any:
    return value.detach() if isinstance(value, Tensor) else value
