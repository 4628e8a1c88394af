"""Train a model through a pipeline: capture, schedule, lower, run."""

import math
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from retrograd.core import Tensor
from retrograd.core.level import is_transformed
from retrograd.foundation.describe_value import describe
from retrograd.foundation.html_report import Markup, paragraph, report
from retrograd.foundation.suggestions import suggest_keywords, suggests_keywords
from retrograd.nn import Module, ModuleList
from retrograd.nn.utils import materialize
from retrograd.optim import Optimizer
from retrograd.pipelining.checkpoint.param_placement import rank_of_tensors, ranks_of_tensors, sync_parameters
from retrograd.pipelining.microbatch import (
    MicroBatch,
    Spec,
    TensorChunkSpec,
    count_examples,
    join_microbatches,
    merge_chunks,
    split_batch,
)
from retrograd.pipelining.planning.auto_schedule import AutoSchedule, AutoSearch
from retrograd.pipelining.planning.schedule_search import FoundSchedule
from retrograd.pipelining.planning.simulate import Costs, median_costs, simulate
from retrograd.pipelining.runtime.agreement import Agreement, describe_function
from retrograd.pipelining.runtime.gradient_sums import Gradients
from retrograd.pipelining.runtime.microbatch_loss import (
    LossWeights,
    MicroBatchLoss,
    backward_to_inputs,
    note_missing_target,
)
from retrograd.pipelining.runtime.post_validation import StepResult, Training, TrainingRank, TrainingSettings
from retrograd.pipelining.runtime.randomness import Draw
from retrograd.pipelining.runtime.rank import Job, Rank, Report, edges_of, merge_dicts, timeline_of
from retrograd.pipelining.runtime.replica_buffers import ReplicaBuffers
from retrograd.pipelining.runtime.rng_plan import RngPlan
from retrograd.pipelining.runtime.stage_copies import StageCopies
from retrograd.pipelining.runtime.stage_gradients import StageGradients, check_exchanges, set_gradients_of_step
from retrograd.pipelining.runtime.step_status import StepStatus
from retrograd.pipelining.runtime.unsplit import check_unsplit, predict_unsplit, step_unsplit
from retrograd.pipelining.schedules.actions import Action, Schedule
from retrograd.pipelining.schedules.program import AUTO, Program, default_stages, load_schedule, make_program
from retrograd.pipelining.schedules.replicas import ReplicaMesh, replicate, share_sizes
from retrograd.pipelining.split.capture import Policy
from retrograd.pipelining.split.capture_cache import Captured, CaptureReport, Captures, draws_of_program
from retrograd.pipelining.split.manual_stages import AnyPipe, stages_of
from retrograd.pipelining.split.markers import SplitPoint
from retrograd.pipelining.split.meta_model import lacks_memory, tensors_of
from retrograd.pipelining.split.recapture import Cutter
from retrograd.pipelining.split.shared_parameters import MultiUseParamSpec
from retrograd.pipelining.timeline.recorder import TimelineRecorder
from retrograd.pipelining.timeline.timeline import Timeline
from retrograd.pipelining.transports import Link, get_transport
from retrograd.pipelining.transports.fingerprint import Fingerprint, qualified_name

StreamContext = Callable[[int, int], AbstractContextManager]


@suggests_keywords
class Pipeline:
    """A model split into stages, which are assigned to ranks and process microbatches.

    model: any module; its own parameters receive the gradients.  Or a list of modules, which are then the stages:
     each is called with the result of the one before, and nothing is captured.
    stages: their number, unless `split_spec` or `pipe_split()` in the model determines it.  `split_policy` finds
     them, see `pipeline`; by default stages of about equal work.  Pass a recommendation of `plan(...)` as
     `**plan.options`.
    ranks: how many each replica has; None: as many as `retrograd run` has started, divided by the replicas, else the
     number that suits the schedule, see `default_ranks`.
    replicas: how many pipelines there are, each with a share of the microbatches of a batch.  Gradients are summed over
     all replicas, so that every replica trains the same parameters.
    schedule: a name, see `make_schedule`; the path of a CSV file, see `read_csv`; the action list of each rank; or
     "auto" for a schedule in one direction that is searched for in the first step, see `AutoSchedule`.  Under
     "chimera" and "dualpipe", microbatches enter at both ends, so that each stage has two ranks, which sum its
     gradients after the step.
    micro_batches: the number of microbatches per batch.
    loss_fn: maps the model's output and the target to the mean loss of a microbatch, a 0-d tensor.  None if the
     model returns its loss, see `TrivialLossWrapper`.
    transport: "threads" of this process; "mpi" or "ray", whose ranks are processes that run the same script; "auto":
     the one started by `retrograd run` or `mpiexec`, else threads.
    timeout: seconds that a rank waits for a message before it raises an error; None: see `get_transport`.
    deterministic: sum gradients in the order of an unsplit step, microbatch by microbatch, to the last bit, under
     every schedule.  Costs memory if parameters are shared by stages, or stages have two ranks.
    watch_nan: stop the step if a value or gradient sent between stages is NaN.
    loss_reduction: "mean", or "sum" if `loss_fn` sums, in which case the losses of microbatches are summed, too.
    count_fn: maps the target of a microbatch to the number of elements its loss is the mean over, if these are not
     its examples: for `cross_entropy` with `ignore_index`, the targets that are not ignored.
    args_chunk_spec, kwargs_chunk_spec, target_chunk_spec: how the model's arguments and the target are split into
     microbatches; by default along dimension 0.  output_chunk_spec: how `predict` merges outputs, see `merge_chunks`.
    multi_use_param_spec: how to treat parameters that several stages use, see `MultiUseParameterConfig`.
    loss_scale: a factor of the gradients, as if the loss were multiplied before its backward pass; the loss that
     `step` returns is not scaled.  May be set between steps.
    max_captures: the number of captures for microbatches of one kind, if the model's control flow depends on values.
    compile: whether the stages run by `rg.compile`, with the same losses and gradients to the last bit.  Split backward
     passes of zero-bubble schedules, repeated forward passes, and replicas on threads except the first run eagerly, as
     does the second direction on threads.

    The first batch is captured, and later batches run the captured graph.  Other shapes, other values of
    non-tensor arguments, and switching modules between training and evaluation cause a new capture, and so do other
    values that the model's code reads, as in `if x.sum() > 0`: they are computed for each microbatch, and choose its
    capture.

    Raises ValueError for an unknown schedule or transport, numbers below 1, a number of `stages` that differs
    from the split or cannot be divided among the ranks, more replicas than microbatches, and, in two directions, for
    replicas, an odd number of ranks, and models that write to buffers (when they do).

    >>> import retrograd as rg
    >>> model = rg.nn.Sequential(rg.nn.Linear(4, 8), rg.nn.Tanh(), rg.nn.Linear(8, 1))
    >>> p = Pipeline(model, stages=2, micro_batches=3, loss_fn=rg.nn.functional.mse_loss)
    >>> loss = p.step(rg.randn(6, 4), target=rg.randn(6, 1))
    >>> loss.shape, model[0].weight.grad.shape
    ((), (8, 4))
    """

    def __init__(
        self,
        model: Module | Sequence[Module],
        stages: int | None = None,
        *,
        ranks: int | None = None,
        replicas: int = 1,
        schedule: str | os.PathLike[str] | Schedule | AutoSchedule = "1f1b",
        micro_batches: int = 1,
        loss_fn: Callable[[Any, Any], Tensor] | None = None,
        loss_reduction: str = "mean",
        count_fn: Callable[[Any], float] | None = None,
        split_spec: Mapping[str, SplitPoint] | None = None,
        split_policy: Policy | None = None,
        transport: str = "auto",
        timeout: float | None = None,
        deterministic: bool = False,
        watch_nan: bool = False,
        args_chunk_spec: Sequence[Spec] | None = None,
        kwargs_chunk_spec: dict[str, Spec] | None = None,
        target_chunk_spec: Spec | None = None,
        output_chunk_spec: Any = None,
        multi_use_param_spec: MultiUseParamSpec | None = None,
        loss_scale: float = 1.0,
        max_captures: int = 8,
        compile: bool = False,
    ) -> None:
        _check_model_and_loss(model, loss_fn)
        if not isinstance(model, Module) and stages not in (None, len(model)):
            raise ValueError(f"Pipeline: stages is {stages}, but the list has {len(model)} modules")
        _check_numbers(
            stages=stages, ranks=ranks, replicas=replicas, micro_batches=micro_batches, max_captures=max_captures
        )
        if micro_batches < replicas:
            raise ValueError(f"Pipeline: {replicas} replicas need {replicas} microbatches or more, got {micro_batches}")
        if loss_reduction not in ("mean", "sum"):
            raise ValueError(f"Pipeline: loss_reduction must be 'mean' or 'sum', got {loss_reduction!r}")
        if "target" in (kwargs_chunk_spec or {}):
            raise ValueError("Pipeline: kwargs_chunk_spec names 'target', which is split by target_chunk_spec")
        self._transport = get_transport(transport, timeout)
        self._replicas = replicas
        ranks = _ranks_of_replica(ranks, replicas, self._transport.world)
        self.model = model if isinstance(model, Module) else ModuleList(model)
        self._ranks = ranks
        self._auto = AutoSearch.of(schedule, self._transport, self._ranks)
        named = AUTO if isinstance(schedule, AutoSchedule) else schedule
        self.schedule = load_schedule(named, stages, self._ranks, replicas)
        self.micro_batches = micro_batches
        self.loss_fn = loss_fn
        self.loss_scale = loss_scale
        self.deterministic = deterministic
        self.watch_nan = watch_nan
        self.timeline: Timeline | None = None
        self.recorder: TimelineRecorder | None = None
        self._stages = stages
        cutter = Cutter(
            self.model,
            None if isinstance(model, Module) else list(model),
            stages,
            default_stages(named, self._ranks),
            split_policy,
            split_spec,
            multi_use_param_spec,
            compile,
        )
        self._args_spec = args_chunk_spec
        self._kwargs_spec = kwargs_chunk_spec or {}
        self._output_spec = output_chunk_spec
        self._loss_weights = LossWeights(loss_reduction, count_fn)
        self._target_spec = target_chunk_spec or TensorChunkSpec()
        self._captures = Captures(self.model, cutter, self._synchronize, max_captures)
        self._rng_plan = RngPlan(self._joined_draws)
        self._stale = False  # whether parameters here are older than those of the ranks that train them
        self._stage_gradients: StageGradients | None = None
        self._running = threading.Lock()
        self._agreement = Agreement()
        self._steps = StepStatus()

    def __repr__(self) -> str:
        named = self.schedule if isinstance(self.schedule, str) else type(self.schedule).__name__
        given: dict[str, Any] = {"stages": self._stages, "ranks": self._ranks}
        given |= {"replicas": self._replicas} if self._replicas > 1 else {}
        given |= {"schedule": named, "micro_batches": self.micro_batches}
        settings = ", ".join(f"{name}={value!r}" for name, value in given.items() if value is not None)
        return f"Pipeline({type(self.model).__name__}, {settings}, {type(self._transport).__name__})"

    def _repr_html_(self) -> str:
        """Return the settings and the timeline of the last step, for notebooks."""
        return report(paragraph(repr(self)), *([] if self.timeline is None else [Markup(self.timeline._repr_html_())]))

    @property
    def pipe(self) -> AnyPipe:
        """Return the captured model; RuntimeError before the first batch."""
        return self._first_capture().pipe

    @property
    def rank(self) -> int:
        """Return the rank of this process; 0 if it runs all ranks."""
        return self._transport.local[0] if self._transport.local else 0

    @property
    def found(self) -> FoundSchedule | None:
        """Return the schedule that `schedule="auto"` has found; None before the first step, and otherwise."""
        return None if self._auto is None else self._auto.found

    # -------------------------------------------------------------------------------------------------- training

    def step(self, *args: Any, target: Any = None, **kwargs: Any) -> Tensor:
        """Run forward and backward over a batch: accumulate gradients, and return the mean loss, 0-d.

        Microbatches are weighted by their sizes, so if the loss is the mean over the examples, it and the gradients
        equal those of the unsplit model on the whole batch. If the examples of the target are ragged, microbatches are
        weighted by elements instead; a mean over other elements needs `count_fn`.

        Dropout and other random operators draw the same values as the unsplit model, from the same generators.
        Every process gets the loss; gradients are in the process whose rank trains the parameter.  After a step,
        `timeline` records the events of the step.

        Inside a function transform the unsplit model runs, and the transform differentiates the loss:
        NotImplementedError if ranks are processes, for a model that is given as stages, and in traces.
        """
        with note_missing_target("Pipeline.step", self.loss_fn, target):
            if is_transformed():
                return self._step_unsplit("step", [MicroBatch(args, kwargs, 1.0)], [target], [1.0])
            self._begin("step", args, kwargs, target)
            batches, targets = self._batches_and_targets(args, target, kwargs)
            loss, self.timeline = self._step(batches, targets, nullcontext())
        self._steps.add(loss, self._count(args, kwargs))
        return loss

    def step_microbatches(
        self,
        arg_mbs: Sequence[tuple],
        kwarg_mbs: Sequence[dict[str, Any]] | None = None,
        target_mbs: Sequence[Any] | None = None,
    ) -> Tensor:
        """Run `step` on given microbatches: of any number and sizes, also ragged.

        arg_mbs, kwarg_mbs, target_mbs: the arguments, keyword arguments and target of each microbatch.  It is weighted
         by its examples, along the dimension of the chunk specs, or by the elements of targets whose examples differ in
         size: ragged ones, and those of sequences that are as long within a microbatch only.

        Raises ValueError if the lists differ in length or are empty.
        """
        kwarg_mbs, targets = kwarg_mbs or [{}] * len(arg_mbs), target_mbs or [None] * len(arg_mbs)
        if not len(arg_mbs) == len(kwarg_mbs) == len(targets) or not arg_mbs:
            raise ValueError(
                f"step_microbatches: got {len(arg_mbs)} tuples of arguments, {len(kwarg_mbs)} dicts of keyword "
                f"arguments and {len(targets)} targets; there must be one for each microbatch, and at least one"
            )
        specs = self._args_spec, self._kwargs_spec
        sizes = [count_examples(a, k, *specs) for a, k in zip(arg_mbs, kwarg_mbs, strict=True)]
        total = sum(sizes)
        batches = [
            MicroBatch(tuple(a), dict(k), size / total) for a, k, size in zip(arg_mbs, kwarg_mbs, sizes, strict=True)
        ]
        with note_missing_target("Pipeline.step_microbatches", self.loss_fn, target_mbs, "target_mbs"):
            if is_transformed():
                shares = self._loss_weights.of(batches, targets)
                return self._step_unsplit("step_microbatches", batches, targets, shares)
            self._begin("step_microbatches", arg_mbs, {}, targets)
            loss, self.timeline = self._step(batches, list(targets), nullcontext())
        self._steps.add(loss, total)
        return loss

    def _step_unsplit(self, name: str, batches: list[MicroBatch], targets: Sequence, shares: list[float]) -> Tensor:
        check_unsplit(name, self.model, self._transport.local)
        return step_unsplit(self.model, self.loss_fn, batches, targets, shares, self.loss_scale)

    @suggest_keywords
    def train_steps(
        self,
        batches: Iterable[tuple[Any, Any]],
        optimizer: Optimizer,
        *,
        max_norm: float | None = None,
        validate: str = "after",
    ) -> list[StepResult]:
        """Run a training step for each batch: forward, backward, and a step of the optimizer; return their results.

        batches: of each step, the model's arguments, one or a tuple, and the target.
        optimizer: of this model's parameters.  Its settings stay the same, and gradients are None before and after.
        max_norm: gradients are clipped to this norm over all ranks, as by `clip_grad_norm_(model.parameters(),
         max_norm)`; None: they are not.  A step whose gradients are not all finite changes no parameter.
        validate: "after": each rank steps at once and begins the next step; the norm of all gradients follows.  Where
         it demands other gradients, parameters and the optimizer's state are restored from copies, and the step is
         repeated.  "before": ranks wait for the norm.  Both give the same bits.

        Ranks do not wait for each other between the steps.  `timeline` records all of them.

        Raises ValueError for an optimizer with other parameters or one state for all, as `LBFGS` has, inputs that
        require grad, and with `watch_nan`; NotImplementedError for models whose control flow depends on values.

        >>> import retrograd as rg
        >>> model = rg.nn.Sequential(rg.nn.Linear(4, 8), rg.nn.Tanh(), rg.nn.Linear(8, 1))
        >>> p = Pipeline(model, stages=2, micro_batches=2, loss_fn=rg.nn.functional.mse_loss)
        >>> optimizer = rg.optim.SGD(model.parameters(), lr=0.1)
        >>> found = p.train_steps([(rg.ones(4, 4), rg.zeros(4, 1))] * 3, optimizer, max_norm=1.0)
        >>> [step.loss.shape for step in found], found[2].loss < found[0].loss
        ([(), (), ()], tensor(True))
        """
        steps = [(x if isinstance(x, tuple) else (x,), y) for x, y in map(_check_batch, batches)]
        settings = TrainingSettings(optimizer, math.inf if max_norm is None else max_norm, validate)
        settings.check(self.model, [args for args, _ in steps], self.watch_nan)
        if not steps:
            return []
        self._begin("train_steps", [args for args, _ in steps], {}, [target for _, target in steps])
        found = [self._captured_step(*self._batches_and_targets(args, target, {})) for args, target in steps]
        if any(one.expected for captured, _, _ in found for one in captured):
            raise NotImplementedError("train_steps: the model's control flow depends on values; use step()")
        captured, first_batches, _ = found[0]
        program = self._program_of(captured)
        fingerprint = self._fingerprint(captured, program, first_batches)
        copies = self._stage_copies([capture for captured, _, _ in found for capture in captured], program)
        gradients = self._gradients(program, copies)
        jobs = [self._job(*one, nullcontext(), copies, gradients) for one in found]
        results = self._run_training(jobs, copies, settings, fingerprint)
        self._steps.add(results[-1].loss, sum(self._count(args, {}) for args, _ in steps), len(steps))
        return results

    def costs(self, *args: Any, target: Any = None, **kwargs: Any) -> Costs:
        """Run a step with one computation at a time, and return the median seconds of each kind and stage.

        Each computation has the machine to itself, as if every rank had its own.  Gradients accumulate as in `step`.
        Ranks that are processes are not serialized.
        """
        with note_missing_target("Pipeline.costs", self.loss_fn, target):
            self._begin("costs", args, kwargs, target)
            batches, targets = self._batches_and_targets(args, target, kwargs)
            _, self.timeline = self._step(batches, targets, threading.Lock())
        return median_costs(self.timeline)

    def planned(self, costs: Costs) -> Timeline:
        """Return the simulated timeline of a step with the measured `costs` and free messages."""

        def cost(action: Action) -> float:
            return costs[action.kind, action.stage] if action.kind.is_compute else 0.0

        return simulate(self.program(), self.pipe.carried(), cost, replicas=self._replicas)

    def program(self) -> list[list[Action]]:
        """Return the actions of every rank in a step: the schedule with its sends, receives and reductions.

        The ranks of the second replica follow those of the first.
        """
        return self._program([self.pipe], self.micro_batches).actions

    def captures(self) -> list[CaptureReport]:
        """Return the captures of the model, in order, with the values that choose each and how often they did so.

        >>> import retrograd as rg
        >>> class Gated(rg.nn.Linear):
        ...     def forward(self, x):
        ...         return super().forward(x) if x.sum() > 0 else x
        >>> p = Pipeline(Gated(2, 2), stages=1, micro_batches=3)
        >>> _ = p.predict(rg.tensor([[1.0, 1.0], [-1.0, -1.0], [2.0, 2.0]]))
        >>> [(one.guards[0].value, one.micro_batches) for one in p.captures()]
        [('True', 2), ('False', 1)]
        """
        return [one.report() for one in self._captures.all()]

    # ------------------------------------------------------------------------------------------------- inference

    def predict(self, *args: Any, **kwargs: Any) -> Any:
        """Return the model's outputs for a batch: forward passes through the pipeline, without gradients.

        A batch with fewer examples than `micro_batches` is split into single examples.  Every process gets the
        outputs.
        """
        if is_transformed():
            check_unsplit("predict", self.model, self._transport.local)
            return predict_unsplit(self.model, args, kwargs)
        self._begin("predict", args, kwargs)
        batches = self._split(args, kwargs, self._kwargs_spec, most=max(self._count(args, kwargs), 1))
        return merge_chunks(self._outputs_by_microbatch(batches), self._output_spec)

    @suggest_keywords
    def stream(self, requests: Iterable[Any], *, window: int | None = None) -> Iterator[Any]:
        """Yield the model's output for every request of an open-ended stream, in order, forward only.

        requests: an iterable of argument tuples, each one microbatch; another value is the only argument.
        window: how many requests are in progress at a time, so how many are consumed before the first output; by
         default four times the ranks of all replicas, for which the pipeline is idle at most a fifth of the time.

        >>> import retrograd as rg
        >>> p = Pipeline(rg.nn.Sequential(rg.nn.Linear(4, 8), rg.nn.Linear(8, 2)), stages=2)
        >>> [out.shape for out in p.stream(rg.ones(n, 4) for n in (1, 3, 2))]
        [(1, 2), (3, 2), (2, 2)]
        """
        batches: list[MicroBatch] = []
        for request in requests:
            batches.append(MicroBatch(request if isinstance(request, tuple) else (request,), {}, 1.0))
            if len(batches) >= (window or 4 * (self._ranks or self._stages or 1) * self._replicas):
                yield from self._stream_window(batches)
                batches = []
        if batches:
            yield from self._stream_window(batches)

    def _stream_window(self, batches: list[MicroBatch]) -> list[Any]:
        self._begin("stream", [batch.args for batch in batches], {})
        return self._outputs_by_microbatch(batches)

    def _outputs_by_microbatch(self, batches: list[MicroBatch]) -> list[Any]:
        """Return the model's output for each microbatch."""
        captured = [self._captures.of(batch) for batch in batches]
        reports, _ = self._run(captured, batches, None, nullcontext())
        results = merge_dicts(report.results for report in reports)
        return [one.pipe.restored_output(results[i]) for i, one in enumerate(captured)]

    # ----------------------------------------------------------------------------------------------------- state

    def state_dict(self) -> dict[str, Any]:
        """Return the model's state under its own names; parameters come from the ranks that train them.

        If ranks are processes, all of them must call it, and the model of each has that state afterwards.  After
        `materialize`, each has its own part, and the others' tensors are on "meta".
        """
        self._begin("state_dict", (), {})
        self._synchronize()
        return dict(self.model.state_dict())

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> Any:
        """Load a state of the unsplit model or of any split; if ranks are processes, call it in all of them.

        Returns and raises what `Module.load_state_dict` does.
        """
        self._stale = self._agreement.state_checked = False
        return self.model.load_state_dict(dict(state_dict), strict)

    @suggest_keywords
    def materialize(self, *args: Any, init: Callable[[Module], Any] | None = None, **kwargs: Any) -> None:
        """Give the parameters and buffers of this process's stages memory; those of other stages stay on "meta".

        The model is made on the device "meta", so no process has all of it: a model may be larger than a process.
        args, kwargs: a batch, of which only shapes and dtypes count; it may be on "meta" too.  init: sets the values of
        a module, `reset_parameters` by default, see `nn.utils.materialize`; they are the same for every split.

        Then restore a checkpoint, of which each process reads its own part, or train.  Raises ValueError, before
        anything changes, for modules without `reset_parameters` if no `init` is given.

        >>> import retrograd as rg
        >>> with rg.device("meta"):
        ...     model = rg.nn.Sequential(rg.nn.Linear(4, 8), rg.nn.Tanh(), rg.nn.Linear(8, 1))
        >>> p = Pipeline(model, stages=2, loss_fn=rg.nn.functional.mse_loss)
        >>> p.materialize(rg.empty(6, 4))
        >>> model[2].weight.device, p.step(rg.ones(6, 4), target=rg.ones(6, 1)).shape
        (device(type='cpu'), ())
        """
        batches = self._split(args, kwargs, self._kwargs_spec, most=max(self._count(args, kwargs), 1))
        self._captures.of(batches[0])
        state, owners = self.model.state_dict(keep_vars=True), self.owners()
        others = {id(state[name]) for name, ranks in owners.items() if self.rank not in ranks}
        materialize(self.model, [x for x in tensors_of(self.model) if id(x) not in others], init)

    def owners(self) -> dict[str, list[int]]:
        """Map each parameter and buffer name to the ranks, of all replicas, whose stages have it.

        Those that no stage has are of the first rank of each replica.  All processes have all before the first step,
        and a process that runs all ranks is rank 0.
        """
        names, pipes = self.model.state_dict(keep_vars=True), [one.pipe for one in self._captures.all()]
        if self._transport.local is None or not pipes:
            return {name: list(range(self.processes)) for name in names}
        program = self._program(pipes[:1], self.micro_batches)
        mesh = ReplicaMesh(self._replicas, len(program.actions) // self._replicas)
        found = ranks_of_tensors(self.model, stages_of(pipes), program.directions)
        return {name: sorted(r for rank in ranks for r in mesh.peers(rank)) for name, ranks in found.items()}

    @property
    def processes(self) -> int:
        """Return the number of processes that run the pipeline's ranks."""
        return 1 if self._transport.local is None else self._transport.world or 1

    def homes(self) -> dict[str, int]:
        """Map each parameter and buffer name to the rank whose process trains it; 0 before the first step.

        With replicas, it is the rank of the first one; those of the others train the same values.
        """
        pipes = [one.pipe for one in self._captures.all()]
        if not pipes:
            return dict.fromkeys(self.model.state_dict(), 0)
        return rank_of_tensors(self.model, stages_of(pipes), self._program(pipes[:1], self.micro_batches).directions)

    def on_ranks(self, work: Callable[[int], Any]) -> list[Any]:
        """Run `work(rank)` for every rank in its process, and return all results in every process.

        Results are tensors and plain data, nested in tuples, lists and dicts.
        """
        self._begin("on_ranks", (), {})
        return self._on_ranks(work)

    def _on_ranks(self, work: Callable[[int], Any]) -> list[Any]:
        """Run a function on every rank as a part of the present call."""
        first = self._captures.first
        ranks = 1 if first is None else len(self._program([first.pipe], self.micro_batches).actions)
        fingerprint = self._agreement.of_work(qualified_name(work))
        with self._running:
            return self._transport.launch(self._transport.world or ranks, lambda link: work(link.rank), fingerprint)

    def _synchronize(self) -> None:
        """Copy the values that other processes have trained into this model."""
        if not self._stale or lacks_memory(self.model):  # no process has memory for the others' parameters
            return
        sync_parameters(self.model, self.homes(), self.rank, self._on_ranks)
        self._stale = False

    # --------------------------------------------------------------------------------------------------- running

    def _begin(self, call: str, args: Sequence[Any], kwargs: Mapping[str, Any], target: Any = None) -> None:
        """Record what the ranks must have in common in a call, if they are processes."""
        if self._transport.local is None:
            return
        options = {
            "schedule": self.schedule if isinstance(self.schedule, str) else "custom",
            "replicas": self._replicas,
            "microbatches": self.micro_batches,
            "loss_scale": self.loss_scale,
            "deterministic": self.deterministic,
            "watch_nan": self.watch_nan,
            "loss_fn": describe_function(self.loss_fn) if self.loss_fn else None,
            "training": self.model.training,
        }
        self._agreement.begin(f"Pipeline.{call}", options, args, kwargs, target)

    def _batches_and_targets(self, args: tuple, target: Any, kwargs: dict) -> tuple[list[MicroBatch], list[Any]]:
        specs = {**self._kwargs_spec, "target": self._target_spec}
        batches = self._split(args, {**kwargs, "target": target}, specs)
        return batches, [batch.kwargs.pop("target") for batch in batches]

    def _count(self, args: Sequence[Any], kwargs: dict[str, Any]) -> int:
        return count_examples(args, kwargs, self._args_spec, self._kwargs_spec)

    def _split(
        self, args: Sequence[Any], kwargs: dict[str, Any], kwargs_spec: dict[str, Spec], most: int | None = None
    ) -> list[MicroBatch]:
        chunks = self.micro_batches if most is None else min(self.micro_batches, most)
        return split_batch(args, kwargs, chunks, self._args_spec, kwargs_spec)

    def _step(
        self, batches: list[MicroBatch], targets: list[Any], turn: AbstractContextManager
    ) -> tuple[Tensor, Timeline]:
        captured, batches, loss = self._captured_step(batches, targets)
        reports, timeline = self._run(captured, batches, loss, turn)
        backward_to_inputs(captured, batches, merge_dicts(report.input_gradients for report in reports))
        self._stale = self._transport.local is not None
        ranks = self.processes // self._replicas
        if ranks > 1 and self._stage_gradients is None:
            self._stage_gradients = StageGradients(self.model, self.rank, ranks, self.owners, self.on_ranks)
        set_gradients_of_step(self.model, self._stage_gradients)
        return loss.mean(merge_dicts(report.results for report in reports)), timeline

    def _captured_step(
        self, batches: list[MicroBatch], targets: list[Any]
    ) -> tuple[list[Captured], list[MicroBatch], MicroBatchLoss]:
        """Return the captures of a step's microbatches, these with the weights of their losses, and the losses."""
        if self.processes > 1:
            mesh = ReplicaMesh(self._replicas, self.processes // self._replicas)
            check_exchanges(self.model, mesh.peers(self.rank))
        captured = [self._captures.of(batch) for batch in batches]
        if self.loss_fn is None and any(one.pipe.loss_name is None for one in captured):
            raise RuntimeError(
                "Pipeline.step: no loss_fn was given to the Pipeline, and the model returns no loss; for outputs use "
                "predict()"
            )
        shares = self._loss_weights.of(batches, targets)
        batches = [batch._replace(weight=share) for batch, share in zip(batches, shares, strict=True)]
        loss = MicroBatchLoss(self.loss_fn, [one.pipe for one in captured], targets, shares)
        if self._auto is not None:
            share = share_sizes(len(batches), self._replicas)[0]
            self._auto.measure(
                self.model, captured[0].pipe, batches[0], targets[0], share, lambda outputs: loss(0, outputs)
            )
        return captured, batches, loss

    def _run(
        self, captured: list[Captured], batches: list[MicroBatch], loss: Any, turn: AbstractContextManager
    ) -> tuple[list[Report], Timeline]:
        if is_transformed():
            raise NotImplementedError("Pipeline: running inside a function transform is not supported")
        program = self._program_of(captured, forward_only=loss is None)
        fingerprint = self._fingerprint(captured, program, batches)
        copies = self._stage_copies(captured, program)
        job = self._job(captured, batches, loss, turn, copies, self._gradients(program, copies))
        reports = self._launch(copies, job.gradients, len(job.program), lambda link: Rank(link, job).run(), fingerprint)
        timeline = timeline_of(job.program, reports, one_clock=self._transport.local is None)
        self._record(timeline)
        return reports, timeline

    def _stage_copies(self, captured: Sequence[Captured], program: Program) -> StageCopies:
        """Return all stages that may take part in the steps of these microbatches, for each replica or direction."""
        pipes = [one.pipe for one in captured]
        branches = [one.pipe for one in self._captures.all() if one.expected]  # may have copies of parameters
        stages = stages_of(dict.fromkeys([*pipes, *branches]))
        count = self._replicas * len(program.directions.placements)
        return StageCopies(stages, count if self._transport.local is None else 1)

    def _job(
        self,
        captured: list[Captured],
        batches: list[MicroBatch],
        loss: Any,
        turn: AbstractContextManager,
        copies: StageCopies,
        gradients: Gradients,
    ) -> Job:
        """Return the input of the ranks for a step."""
        pipes = [one.pipe for one in captured]
        program = self._program_of(captured, forward_only=loss is None)
        local = self._transport.local
        numbers = self._copy_numbers(program, len(batches))
        return Job(
            program.actions,
            program.directions,
            [copies.of(number, pipe.stages) for number, pipe in zip(numbers, pipes, strict=True)],
            [pipe.named_inputs(batch.args, batch.kwargs) for pipe, batch in zip(pipes, batches, strict=True)],
            [batch.weight * self.loss_scale for batch in batches],
            loss,
            [pipe.carried() for pipe in pipes],
            gradients,
            self._rng_plan.of(captured, batches),
            turn,
            self.watch_nan,
            0 if self.recorder is None else self.recorder.most_spans(len(program.actions)),
            targets=() if loss is None else loss.targets,
            replicas=self._replicas,
            buffers=ReplicaBuffers(copies.by_replica()[0], program.directions, self._mesh(program))
            if self._replicas > 1 and local
            else None,
        )

    def _copy_numbers(self, program: Program, micro_batches: int) -> list[int]:
        """Return which copy of its stages each microbatch runs: of its replica, or of its direction."""
        if self._transport.local is not None:
            return [0] * micro_batches
        if self._replicas == 1:
            return [program.directions.direction(number) for number in range(micro_batches)]
        shares = share_sizes(micro_batches, self._replicas)
        return [replica for replica, size in enumerate(shares) for _ in range(size)]

    def _mesh(self, program: Program) -> ReplicaMesh:
        return ReplicaMesh(self._replicas, len(program.actions) // self._replicas)

    def _gradients(self, program: Program, copies: StageCopies) -> Gradients:
        stages, *others = copies.by_replica()
        return Gradients(
            stages,
            program.directions,
            self._transport.local,
            unordered=program.unordered(),
            by_micro_batch=self.deterministic,
            mesh=self._mesh(program),
            copies=others,
        )

    def _launch(
        self,
        copies: StageCopies,
        gradients: Gradients,
        ranks: int,
        work: Callable[[Link], Any],
        fingerprint: Fingerprint | None,
    ) -> list[Any]:
        """Run a function on every rank while the stages have the parameters whose gradients are collected."""
        with self._running, gradients:
            try:
                found = self._transport.launch(ranks, work, fingerprint)
                self._agreement.state_checked = True
                return found
            finally:
                for stage in copies.by_replica()[0]:
                    stage.clear_step()

    def _record(self, timeline: Timeline) -> None:
        if self.recorder is not None:
            self.recorder.add(timeline)

    def _run_training(
        self,
        jobs: Sequence[Job],
        copies: StageCopies,
        settings: TrainingSettings,
        fingerprint: Fingerprint | None,
    ) -> list[StepResult]:
        first, shared_memory = jobs[0], self._transport.local is None
        training = Training.of(jobs, self.model, copies, settings, shared_memory)
        found = self._launch(
            copies, first.gradients, len(first.program), lambda link: TrainingRank(link, training).run(), fingerprint
        )
        self._stale = self._transport.local is not None
        self.timeline = timeline_of(*training.joined(found), one_clock=self._transport.local is None)
        self._record(self.timeline)
        return training.results(found)

    def _fingerprint(self, captured: list[Captured], program: Program, batches: list[MicroBatch]) -> Fingerprint | None:
        """Return what the ranks must have in common in a run, if they are processes."""
        if self._transport.local is None:
            return None
        weights = tuple([batch.weight for batch in batches])
        numbers = {"stages": captured[0].pipe.num_stages, "actions": program.digest, "loss weights": weights}
        return self._agreement.of_run(captured, self.model, numbers)

    def _joined_draws(self, batches: Sequence[MicroBatch]) -> list[Draw]:
        """Return the random draws of the program when several microbatches run as one."""
        joined_batch = join_microbatches(batches, self._args_spec, self._kwargs_spec)
        return draws_of_program(self.model, joined_batch)

    def _program_of(self, captured: Sequence[Captured], forward_only: bool = False) -> Program:
        return self._program([one.pipe for one in captured], len(captured), forward_only)

    def _program(self, pipes: Sequence[AnyPipe], micro_batches: int, forward_only: bool = False) -> Program:
        """Return the program for microbatches of these captures, with the edges of all of them."""
        edges = dict.fromkeys(sorted(edges_of(pipe.carried() for pipe in pipes)))

        def of_replica(size: int) -> Program:
            if self._auto is not None:
                return self._auto.program(pipes[0].num_stages, size, edges, forward_only)
            return make_program(
                self.schedule, pipes[0].num_stages, size, edges, ranks=self._ranks, forward_only=forward_only
            )

        if self._replicas == 1:
            return of_replica(micro_batches)
        shares = share_sizes(micro_batches, self._replicas)
        return replicate(
            [of_replica(size) if size else None for size in shares], not forward_only and not self.deterministic
        )

    def _first_capture(self) -> Captured:
        first = self._captures.first
        if first is None:
            raise RuntimeError("Pipeline: nothing is captured before the first step() or predict()")
        return first


def _check_model_and_loss(model: Any, loss_fn: Any) -> None:
    """Raise TypeError for a model that is no module or list of modules, and for a loss that is no function."""
    if not isinstance(model, Module | Sequence):
        raise TypeError(f"Pipeline: expected a Module, or the stages as a list of Modules, got {describe(model)}")
    if isinstance(loss_fn, type) or not (loss_fn is None or callable(loss_fn)):
        hint = f"; make one: {loss_fn.__name__}()" if isinstance(loss_fn, type) else ""
        raise TypeError(
            f"Pipeline: loss_fn must be a function of the output and the target, got {describe(loss_fn)}{hint}"
        )


def _check_batch(batch: Any) -> Any:
    """Return the arguments and the target of a batch; TypeError for something else."""
    if not isinstance(batch, tuple | list) or len(batch) != 2:
        raise TypeError(
            f"Pipeline.train_steps: each batch must be a pair of the model's arguments and the target, got "
            f"{describe(batch)}"
        )
    return batch


def _check_numbers(**numbers: int | None) -> None:
    """Raise ValueError for a number, if it is given, that is no integer of at least 1."""
    for name, number in numbers.items():
        if number is not None and (not isinstance(number, int) or number < 1):
            raise ValueError(f"Pipeline: {name} must be an integer of at least 1, got {describe(number)}")


def _ranks_of_replica(ranks: int | None, replicas: int, world: int | None) -> int | None:
    """Return the number of ranks of each replica.  world: the number of processes that were started, if any."""
    if world is None:
        return ranks
    if world % replicas:
        raise ValueError(f"Pipeline: {world} processes were started, which cannot be divided among {replicas} replicas")
    if ranks not in (None, world // replicas):
        started = f"{world} processes were started" + (f" for {replicas} replicas" if replicas > 1 else "")
        raise ValueError(f"Pipeline: ranks is {ranks}, but {started}")
    return world // replicas
