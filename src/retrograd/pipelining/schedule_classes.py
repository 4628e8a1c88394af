"""Schedules as classes, with PyTorch's names: every rank creates one for its own stages, and calls `step`."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from retrograd.core import Tensor
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.pipelining.runtime.stage import PipelineStageBase
from retrograd.pipelining.schedule_base import PipelineSchedule, Spec
from retrograd.pipelining.schedules import get_schedule
from retrograd.pipelining.schedules.action_names import ComputationType as Type
from retrograd.pipelining.schedules.action_names import NamedAction
from retrograd.pipelining.schedules.actions import Action, Kind, Schedule
from retrograd.pipelining.schedules.named_orders import Row, check_format, rows_to_write
from retrograd.pipelining.schedules.tables import read_cells, read_csv, write_rows


class PipelineScheduleSingle(PipelineSchedule):
    """The base of schedules with one stage per rank; the names are PyTorch's."""

    def __init__(
        self,
        stage: PipelineStageBase,
        n_microbatches: int,
        loss_fn: Callable[..., Tensor] | None = None,
        args_chunk_spec: Sequence[Spec] | None = None,
        kwargs_chunk_spec: dict[str, Spec] | None = None,
        output_merge_spec: Any = None,
        scale_grads: bool = True,
    ) -> None:
        specs = args_chunk_spec, kwargs_chunk_spec, output_merge_spec
        super().__init__([stage], n_microbatches, loss_fn, *specs, scale_grads)


class PipelineScheduleMulti(PipelineSchedule):
    """The base of schedules with several stages per rank; with `_load_csv`, a schedule from a file.

    use_full_backward and backward_requires_autograd have no effect: the order determines which backward passes are
    split.
    """

    def __init__(
        self,
        stages: Sequence[PipelineStageBase],
        n_microbatches: int,
        loss_fn: Callable[..., Tensor] | None = None,
        args_chunk_spec: Sequence[Spec] | None = None,
        kwargs_chunk_spec: dict[str, Spec] | None = None,
        output_merge_spec: Any = None,
        use_full_backward: bool | None = None,
        scale_grads: bool = True,
        backward_requires_autograd: bool = True,
    ) -> None:
        specs = args_chunk_spec, kwargs_chunk_spec, output_merge_spec
        super().__init__(stages, n_microbatches, loss_fn, *specs, scale_grads)

    def _dump_csv(self, filename: str) -> None:
        """Write the computations of all ranks as a CSV file; cells of idle slots are empty."""
        write_rows(list(self.pipeline_order.values()), filename)

    def _load_csv(self, filename: str, format: str = "compute_only") -> None:
        """Read the order of all ranks from a CSV file; sends and receives in it are replaced by those needed."""
        check_format(format)
        self._set_order(read_csv(filename))


class PipelineScheduleRuntime(PipelineScheduleMulti):
    """The base of named schedules with several stages per rank, in PyTorch the one that runs orders of actions.

    UNSHARD and RESHARD of a stage call these methods of its module if it has them, REDUCE_GRAD calls the stage's
    `perform_reduce_grad`.

    >>> import retrograd as rg
    >>> from retrograd.pipelining import PipelineStage, _Action
    >>> stage = PipelineStage(rg.nn.Linear(4, 2), 0, 1, "cpu")
    >>> schedule = PipelineScheduleRuntime([stage], 1, rg.nn.functional.mse_loss)
    >>> schedule._prepare_schedule_with_comms({0: [_Action.from_str("0F0"), _Action.from_str("0B0")]})
    >>> schedule.pipeline_order_with_comms
    {0: [0UNSHARD, 0F0, 0B0, 0REDUCE_GRAD, 0RESHARD]}
    """

    _with_comms: dict[int, list[NamedAction]] | None = None  # as it was given

    def _prepare_schedule_with_comms(
        self, actions: Mapping[int, Sequence[NamedAction | None]], format: str = "compute_only"
    ) -> None:
        """Run an order of computations, or one "compute_comms" with transfers, which are replaced by those needed."""
        check_format(format)
        self.pipeline_order = actions
        if format == "compute_comms":
            self._with_comms = {rank: [a for a in row if a is not None] for rank, row in actions.items()}
        self._note_actions_between()

    def _note_actions_between(self) -> None:
        """Note what this rank does between its computations, by the computation that follows."""
        self._between, waiting = {}, []
        for action in self.pipeline_order_with_comms[self._stages[0].group_rank]:
            if action.computation_type in (Type.UNSHARD, Type.RESHARD, Type.REDUCE_GRAD):
                waiting.append(action)
            elif action.is_compute_op and waiting:
                first = (action.sub_actions or (action,))[0]
                kind = Kind(first.computation_type.value)
                self._between[Action(kind, first.stage_index, first.microbatch_index or 0)] = waiting
                waiting = []
        self._between[None] = waiting

    @property
    def pipeline_order_with_comms(self) -> dict[int, list[NamedAction]]:
        """The order of all ranks with the transfers and other actions of PyTorch's runtime; assign one to run it."""
        if self._with_comms is not None:
            return {rank: list(row) for rank, row in self._with_comms.items()}
        rows = self._rows_to_write("compute_comms")
        return {rank: [a for a in row if a is not None] for rank, row in enumerate(rows)}

    @pipeline_order_with_comms.setter
    def pipeline_order_with_comms(self, actions: Mapping[int, Sequence[NamedAction]]) -> None:
        self._prepare_schedule_with_comms(actions, format="compute_comms")

    def _load_csv(self, filename: str, format: str = "compute_only") -> None:
        """Read the order of all ranks from a CSV file, as `_prepare_schedule_with_comms` takes it."""
        rows = read_cells(filename)
        actions = {rank: [NamedAction.from_str(cell) for cell in row] for rank, row in enumerate(rows)}
        self._prepare_schedule_with_comms(actions, format)

    def _set_order(self, order: Schedule) -> None:
        super()._set_order(order)
        self._with_comms = None

    def _rows_to_write(self, format: str) -> list[Row]:
        given = self.pipeline_order, self.stage_index_to_group_rank, self._stages[0].num_stages, self._n_microbatches
        return rows_to_write(format, *given)

    def _dump_csv(self, filename: str, format: str = "compute_comms") -> None:
        """Write the order of all ranks as a CSV file, "compute_only" or with all that PyTorch's runtime does."""
        check_format(format)
        given = self._with_comms if format == "compute_comms" else None
        write_rows(self._rows_to_write(format) if given is None else given.values(), filename)


class _Looped(PipelineScheduleRuntime):
    """The base of named schedules with several stages per rank, whose parameters are PyTorch's.

    defer_pp_recv has no effect: a value is received right before it is used.
    """

    def __init__(
        self,
        stages: Sequence[PipelineStageBase],
        n_microbatches: int,
        loss_fn: Callable[..., Tensor] | None = None,
        args_chunk_spec: Sequence[Spec] | None = None,
        kwargs_chunk_spec: dict[str, Spec] | None = None,
        output_merge_spec: Any = None,
        scale_grads: bool = True,
        backward_requires_autograd: bool = True,
        defer_pp_recv: bool = False,
    ) -> None:
        specs = args_chunk_spec, kwargs_chunk_spec, output_merge_spec
        super().__init__(stages, n_microbatches, loss_fn, *specs, None, scale_grads, backward_requires_autograd)


class ScheduleForwardOnly(PipelineScheduleSingle):
    """All microbatches forward, and nothing else: `step` is refused a target and losses.

    >>> import retrograd as rg
    >>> from retrograd.pipelining import PipelineStage
    >>> ScheduleForwardOnly(PipelineStage(rg.nn.Linear(4, 2), 0, 1, "cpu"), 2).step(rg.ones(6, 4)).shape
    (6, 2)
    """

    schedule = "GPipe"

    def step(self, *args: Any, target: Any = None, losses: list | None = None, **kwargs: Any) -> Any:
        """Return the merged outputs on the rank of the last stage, else None, as `eval` does."""
        if target is not None or losses is not None:
            raise RuntimeError("Forward-only schedule does not support loss computation")
        return self.eval(*args, **kwargs)


class ScheduleGPipe(PipelineScheduleSingle):
    """All forward passes, then all backward passes.

    >>> import retrograd as rg
    >>> from retrograd.pipelining import PipelineStage
    >>> stage = PipelineStage(rg.nn.Linear(4, 2), 0, 1, "cpu")
    >>> schedule, losses = ScheduleGPipe(stage, 2, rg.nn.functional.mse_loss), []
    >>> schedule.step(rg.ones(6, 4), target=rg.zeros(6, 2), losses=losses).shape, len(losses)
    ((6, 2), 2)
    """

    schedule = "GPipe"


class Schedule1F1B(PipelineScheduleSingle):
    """One forward and one backward pass in turn, when the pipeline is full."""

    schedule = "1F1B"


class ScheduleInterleaved1F1B(_Looped):
    """1F1B with several stages per rank, assigned in turn.

    >>> import retrograd as rg
    >>> from retrograd.pipelining import PipelineStage
    >>> stages = [PipelineStage(rg.nn.Linear(4, 4), i, 2, "cpu") for i in range(2)]  # of the only rank
    >>> ScheduleInterleaved1F1B(stages, 2, rg.nn.functional.mse_loss).pipeline_order
    {0: [0F0, None, 1F0, 1B0, 0F1, 0B0, 1F1, 1B1, None, 0B1]}
    """

    schedule = "Interleaved1F1B"


class ScheduleLoopedBFS(PipelineScheduleRuntime):
    """All microbatches through one stage of a rank, then through its next."""

    schedule = "LoopedBFS"

    def __init__(
        self,
        stages: Sequence[PipelineStageBase],
        n_microbatches: int,
        loss_fn: Callable[..., Tensor] | None = None,
        output_merge_spec: Any = None,
        scale_grads: bool = True,
        backward_requires_autograd: bool = True,
        defer_pp_recv: bool = False,
    ) -> None:
        super().__init__(stages, n_microbatches, loss_fn, None, None, output_merge_spec, None, scale_grads)


class ScheduleInterleavedZeroBubble(_Looped):
    """Interleaved 1F1B with backward passes in two halves."""

    schedule = "InterleavedZeroBubble"


class _VShaped(_Looped):
    """The base of schedules whose ranks have two stages each, assigned in a V; ValueError for another number."""

    def _check_placement(self) -> None:
        if len(self._stages) != 2:
            raise ValueError(f"{type(self).__name__} requires exactly 2 stages per rank, but got {len(self._stages)}.")
        super()._check_placement()


class ScheduleZBVZeroBubble(_VShaped):
    """ZB-V: two stages per rank, assigned in a V, and backward passes in two halves."""

    schedule = "ZBVZeroBubble"


class ScheduleDualPipeV(_VShaped):
    """DualPipeV: two stages per rank, assigned in a V, with forward and backward passes in pairs.

    Raises ValueError for fewer microbatches than stages, with which there would be few pairs.
    """

    schedule = "DualPipeV"

    def _check_placement(self) -> None:
        super()._check_placement()
        if self._n_microbatches < self._stages[0].num_stages:
            raise ValueError(
                f"DualPipeV requires at least as many microbatches as stages, but got {self._n_microbatches} "
                f"microbatches and {self._stages[0].num_stages} stages."
            )


class _TwoDirectional(PipelineScheduleMulti):
    """The base of schedules in two directions, in which a rank has stages of both: those of the rank at the other end.

    The two ranks of a stage begin with equal parameters, and sum their gradients after each step.  Even microbatches
    end on the last rank, and odd ones on the first; both ranks have the losses and outputs of their microbatches, and
    both are given the arguments and the target of all.  PyTorch has no such classes.

    Raises ValueError for an odd number of ranks.
    """


class ScheduleChimera(_TwoDirectional):
    """Chimera: 1F1B in two directions at once.

    >>> import retrograd as rg
    >>> from retrograd.pipelining import make_schedule
    >>> print(*make_schedule(ScheduleChimera.schedule, stages=2, micro_batches=2)[0])
    F0.0 F1.1 B1.1 B0.0
    """

    schedule = "Chimera"


class ScheduleDualPipe(_TwoDirectional):
    """DualPipe: forward and backward passes of two directions in pairs, and backward passes in halves at the end.

    >>> import retrograd as rg
    >>> from retrograd.pipelining import make_schedule
    >>> print(*make_schedule(ScheduleDualPipe.schedule, stages=2, micro_batches=4)[0])
    F0.0 F1.1 F0.2 B1.1 F1.3 B0.0 B1.3 I0.2 W0.2
    """

    schedule = "DualPipe"


_CLASSES: tuple[type[PipelineSchedule], ...] = (
    Schedule1F1B, ScheduleGPipe, ScheduleInterleaved1F1B, ScheduleLoopedBFS, ScheduleInterleavedZeroBubble,
    ScheduleZBVZeroBubble, ScheduleDualPipeV, ScheduleChimera, ScheduleDualPipe,
)  # fmt: skip


def get_schedule_class(schedule_name: str) -> type[PipelineSchedule]:
    """Return the class of a schedule's name, or of its own name; case is ignored.

    Raises ValueError for a name without a class; `get_schedule` knows some more schedules.

    >>> get_schedule_class("1f1b").__name__, get_schedule_class("PipelineScheduleMulti").__name__
    ('Schedule1F1B', 'PipelineScheduleMulti')
    """
    known: dict[str, type[PipelineSchedule]] = {str(found.schedule): found for found in _CLASSES}
    bases: tuple[type[PipelineSchedule], ...] = (PipelineScheduleSingle, PipelineScheduleMulti)
    known |= {base.__name__: base for base in bases}
    for name, found in known.items():
        if isinstance(schedule_name, str) and name.lower() == schedule_name.lower():
            return found
    raise ValueError(f"Unknown schedule name '{schedule_name}'. The valid options are {list(known)}")


assert all(get_schedule(str(found.schedule)).name == found.schedule for found in _CLASSES)


suggest_in_module(globals())
