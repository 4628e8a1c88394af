"""A model trained through a pipeline: capture, schedule, lower, run."""

import threading
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from statistics import median
from typing import Any

import optree

from retrograd.core import Tensor, current
from retrograd.core.aval import SymbolicSize
from retrograd.nn import Module
from retrograd.pipelining.actions import Action, Kind
from retrograd.pipelining.ir import Pipe, pipeline, split_into_equal_size
from retrograd.pipelining.lowering import lower, validate
from retrograd.pipelining.marker import SplitPoint
from retrograd.pipelining.microbatch import (
    MicroBatch,
    Spec,
    TensorChunkSpec,
    merge_chunks,
    shares_of_elements,
    split_args_kwargs_into_chunks,
    tensors_in,
)
from retrograd.pipelining.parameters import MultiUseParamSpec
from retrograd.pipelining.runtime import Job, Rank
from retrograd.pipelining.schedules import get_schedule, make_schedule
from retrograd.pipelining.simulate import simulate
from retrograd.pipelining.timeline import Timeline
from retrograd.pipelining.transports import get_transport

Costs = dict[tuple[Kind, int], float]


class Pipeline:
    """A model split over stages, each on a rank of its own, fed with micro-batches.

    model: any module that runs; its own parameters receive the gradients.
    stages: how many, if neither `split_spec` nor `pipe_split()` in the model's code says it.
    loss_fn: from the model's output and the target to the mean loss of a micro-batch, a 0-d tensor.
    args_chunk_spec, kwargs_chunk_spec, target_chunk_spec: how the model's arguments and the target are split into
        micro-batches; along dimension 0 where nothing is said.
    multi_use_param_spec: what becomes of parameters that several stages use, see `MultiUseParameterConfig`.

    The first batch is captured, and later ones run what was captured.  Other shapes, other values of arguments
    that are no tensors, and modules switched between training and evaluation are captured anew.

    Raises ValueError for an unknown schedule or transport, numbers below 1, and `stages` that differ from those
    of the split.

    >>> import retrograd as rg
    >>> model = rg.nn.Sequential(rg.nn.Linear(4, 8), rg.nn.Tanh(), rg.nn.Linear(8, 1))
    >>> p = Pipeline(model, stages=2, micro_batches=3, loss_fn=rg.nn.functional.mse_loss)
    >>> loss = p.step(rg.randn(6, 4), target=rg.randn(6, 1))
    >>> loss.shape, model[0].weight.grad.shape
    ((), (8, 4))
    """

    def __init__(
        self,
        model: Module,
        stages: int | None = None,
        *,
        schedule: str = "1f1b",
        micro_batches: int = 1,
        loss_fn: Callable[[Any, Any], Tensor] | None = None,
        split_spec: Mapping[str, SplitPoint] | None = None,
        transport: str = "threads",
        args_chunk_spec: Sequence[Spec] | None = None,
        kwargs_chunk_spec: dict[str, Spec] | None = None,
        target_chunk_spec: Spec | None = None,
        multi_use_param_spec: MultiUseParamSpec | None = None,
    ) -> None:
        get_schedule(schedule)
        for name, number in (("stages", stages), ("micro_batches", micro_batches)):
            if number is not None and (not isinstance(number, int) or number < 1):
                raise ValueError(f"Pipeline: {name} must be an integer of at least 1, got {number!r}")
        if "target" in (kwargs_chunk_spec or {}):
            raise ValueError("Pipeline: kwargs_chunk_spec names 'target', which is split by target_chunk_spec")
        self.model = model
        self.schedule = schedule
        self.micro_batches = micro_batches
        self.loss_fn = loss_fn
        self.timeline: Timeline | None = None
        self._stages = stages
        self._split_spec = split_spec
        self._multi_use = multi_use_param_spec
        self._args_spec = args_chunk_spec
        self._kwargs_spec = kwargs_chunk_spec or {}
        self._target_spec = target_chunk_spec or TensorChunkSpec()
        self._transport = get_transport(transport)
        self._pipes: dict[tuple, Pipe] = {}
        self._running = threading.Lock()

    @property
    def pipe(self) -> Pipe:
        """The captured model; a RuntimeError before the first batch."""
        if not self._pipes:
            raise RuntimeError("Pipeline: nothing is captured before the first step() or predict()")
        return next(iter(self._pipes.values()))

    def step(self, *args: Any, target: Any = None, **kwargs: Any) -> Tensor:
        """One forward and backward over a batch: gradients accumulate, and the mean loss is returned, 0-d.

        Micro-batches count by their sizes, so where the loss is the mean over the examples, it and the gradients
        are those of the unsplit model on the whole batch.  A loss whose mean is over something else, like
        `cross_entropy` with `ignore_index`, is averaged over micro-batches by their numbers of examples, which is
        not its mean over the batch.  Where the examples of the target have sizes of
        their own, its elements count instead.

        Dropout and other random operators draw from one generator in the order in which the ranks' threads come
        to them, so runs of a model with dropout differ, under the same seed too.  After a step, `timeline` holds
        what ran when.
        """
        loss, self.timeline = self._step(args, target, kwargs, nullcontext())
        return loss

    def costs(self, *args: Any, target: Any = None, **kwargs: Any) -> Costs:
        """Run a step with one computation at a time, and return the median seconds of each kind and stage.

        So each has the machine to itself, as if every rank had one.  Gradients accumulate as in `step`.
        """
        _, timeline = self._step(args, target, kwargs, threading.Lock())
        seconds: dict[tuple[Kind, int], list[float]] = defaultdict(list)
        for event in timeline.events:
            if event.action.kind.is_compute:
                seconds[event.action.kind, event.action.stage].append(event.end - event.start)
        return {key: median(values) for key, values in seconds.items()}

    def planned(self, costs: Costs) -> Timeline:
        """A step as the schedule promises it, where computations take what `costs()` measured and messages nothing."""

        def cost(action: Action) -> float:
            return costs[action.kind, action.stage] if action.kind.is_compute else 0.0

        return simulate(self.program(), self.pipe.carried(), cost)

    def predict(self, *args: Any, **kwargs: Any) -> Any:
        """The model's outputs for a batch, run through the pipeline forward only, without gradients."""
        batches = self._split(args, kwargs, self._kwargs_spec)
        pipes = [self._captured(batch) for batch in batches]
        results, _ = self._run(pipes, batches, None, nullcontext())
        return merge_chunks([pipe.output(results[i]) for i, pipe in enumerate(pipes)])

    def program(self) -> list[list[Action]]:
        """What every rank does in a step: the schedule with its sends and receives."""
        return _program(self.pipe, self.schedule, self.micro_batches)

    def _step(self, args: tuple, target: Any, kwargs: dict, turn: AbstractContextManager) -> tuple[Tensor, Timeline]:
        if self.loss_fn is None:
            raise RuntimeError("Pipeline.step: no loss_fn was given to the Pipeline; for outputs use predict()")
        specs = {**self._kwargs_spec, "target": self._target_spec}
        batches = self._split(args, {**kwargs, "target": target}, specs)
        targets = [batch.kwargs.pop("target") for batch in batches]
        loss_fn, pipes = self.loss_fn, [self._captured(batch) for batch in batches]

        def loss(micro_batch: int, outputs: dict[str, Any]) -> Tensor:
            value = loss_fn(pipes[micro_batch].output(outputs), targets[micro_batch])
            if not isinstance(value, Tensor) or value.ndim:
                raise ValueError(f"loss_fn must return a 0-d tensor, got {getattr(value, 'aval', value)!r}")
            return value

        shares = shares_of_elements(targets) or [batch.weight for batch in batches]
        batches = [batch._replace(weight=share) for batch, share in zip(batches, shares, strict=True)]
        losses, timeline = self._run(pipes, batches, loss, turn)
        weighted = [losses[i] * batch.weight for i, batch in enumerate(batches)]
        return sum(weighted[1:], start=weighted[0]), timeline

    def _split(self, args: Sequence[Any], kwargs: dict[str, Any], kwargs_spec: dict[str, Spec]) -> list[MicroBatch]:
        return split_args_kwargs_into_chunks(args, kwargs, self.micro_batches, self._args_spec, kwargs_spec)

    def _captured(self, batch: MicroBatch) -> Pipe:
        """The model as captured for arguments like these, in its modules' present modes (training or evaluation)."""
        arguments: Any = (batch.args, batch.kwargs)
        leaves, structure = optree.tree_flatten(arguments, none_is_leaf=True)
        modes = tuple(module.training for module in self.model.modules())
        parameters = tuple(map(id, self.model.parameters()))  # another one in the place of one is another model
        key = (modes, parameters, structure, *map(_kind_of, leaves))
        exact = (key, *[leaf.aval for leaf in leaves if isinstance(leaf, Tensor)])
        known = self._pipes.get(key) or self._pipes.get(exact)
        if known is None:
            known = self._capture(batch)
            self._pipes[exact if known.knows_sizes else key] = known
        return known

    def _capture(self, batch: MicroBatch) -> Pipe:
        capture = partial(pipeline, self.model, batch.args, batch.kwargs, multi_use_param_spec=self._multi_use)
        pipe = capture(split_spec=self._split_spec)
        if pipe.num_stages == 1 and self._stages is not None:
            pipe = capture(split_policy=split_into_equal_size(self._stages))
        if self._stages not in (None, pipe.num_stages):
            raise ValueError(f"Pipeline: the model is split into {pipe.num_stages} stages, not {self._stages}")
        return pipe

    def _run(
        self, pipes: list[Pipe], batches: list[MicroBatch], loss: Any, turn: AbstractContextManager
    ) -> tuple[dict[int, Any], Timeline]:
        if current().level is not None:
            raise NotImplementedError("Pipeline: running inside a function transform is not supported")
        if loss is not None and any(
            t.requires_grad for batch in batches for t in tensors_in((batch.args, batch.kwargs))
        ):
            raise NotImplementedError("Pipeline: gradients of the model's inputs are not supported yet; detach them")
        if any(pipe.carried() != pipes[0].carried() for pipe in pipes):
            raise RuntimeError("Pipeline: the model does something else for one micro-batch than for the first")
        program = _program(pipes[0], self.schedule, len(batches), forward_only=loss is None)
        job = Job(
            [pipe.stages for pipe in pipes],
            [pipe.inputs(batch.args, batch.kwargs) for pipe, batch in zip(pipes, batches, strict=True)],
            [batch.weight for batch in batches],
            loss,
            pipes[0].carried(),
            turn,
        )
        ranks = [Rank(rank, job, self._transport) for rank in range(len(program))]
        with self._running:
            try:
                self._transport.launch(len(ranks), lambda rank: ranks[rank].run(program[rank]))
            finally:
                for stage in (stage for pipe in pipes for stage in pipe.stages):
                    stage.forget()
        results = {key: value for rank in ranks for key, value in rank.results.items()}
        return results, Timeline([event for rank in ranks for event in rank.events], len(ranks))


def _kind_of(leaf: Any) -> Hashable:
    """What a capture depends on: a tensor's dtype and sizes in numbers, the type and value of everything else."""
    if isinstance(leaf, Tensor):
        return leaf.dtype, *[None if isinstance(size, SymbolicSize) else size for size in leaf.shape]
    try:
        hash(leaf)
    except TypeError:
        return type(leaf), repr(leaf)
    return type(leaf), leaf


def _program(pipe: Pipe, schedule: str, micro_batches: int, forward_only: bool = False) -> list[list[Action]]:
    compute = make_schedule(schedule, pipe.num_stages, micro_batches)
    if forward_only:
        compute = [[action for action in rank if action.kind is Kind.F] for rank in compute]
    edges = pipe.carried()
    program = lower(compute, edges)
    validate(program, edges)
    return program
