"""The captures of a pipeline's model: one for microbatches of the same kind that take the same branches."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import optree

from retrograd import autograd
from retrograd.core import Tensor
from retrograd.core.aval import SymbolicSize, symbolic
from retrograd.fx import Interpreter, Node, trace
from retrograd.nn import Module
from retrograd.ops.layout import making_on
from retrograd.pipelining.microbatch import MicroBatch, tensors_in
from retrograd.pipelining.runtime.randomness import Draw, draw_indices, record_draws
from retrograd.pipelining.split.manual_stages import AnyPipe
from retrograd.pipelining.split.meta_model import by_shapes, check_constants, zeros_on_host
from retrograd.pipelining.split.mutations import WRITE
from retrograd.pipelining.split.pipe import Pipe
from retrograd.pipelining.split.value_guards import Reading, ValueGuards


class Captured:
    """A model as captured for microbatches of one kind.

    random: whether it draws random values.  draws: its draws.  draw_positions: for each stage, the indices of its draws
    in the program, in order; None if unknown.  guards: the values that it depends on; None if it is not traced.
    micro_batches: how many it was chosen for.  compared: what the ranks compare of it, from `runtime.agreement`.
    """

    def __init__(self, pipe: AnyPipe, batch: MicroBatch, random: bool, training: bool) -> None:
        self.pipe = pipe
        self.random = random
        self.draws: list[Draw] = []
        self.draw_positions: list[list[int]] | None = None
        self.guards = ValueGuards(pipe.captured) if pipe.captured is not None else None
        self.micro_batches = 0
        self.compared: Any = None
        self._training = training
        self._inputs = tuple([str(tensor.aval) for tensor in tensors_in((batch.args, batch.kwargs))])
        self._rows = ragged_rows(batch)
        if random and isinstance(pipe, Pipe):
            self._find_draws(pipe, batch)

    def _find_draws(self, pipe: Pipe, batch: MicroBatch) -> None:
        """Run the program node by node, without side effects, to find the draws of each stage."""
        run = _DrawRecorder(pipe.captured)
        with autograd.no_grad():
            run.run(*batch.args, **batch.kwargs)
        self.draws = run.draws
        self.draw_positions = draw_indices(
            run.by_node, [pipe.get_stage_module(stage.stage_index) for stage in pipe.stages], len(self.draws)
        )

    @property
    def expected(self) -> list[Reading]:
        """Return those values that the code read in the trace and that are known before a run."""
        return [] if self.guards is None else self.guards.expected

    def report(self) -> "CaptureReport":
        """Return the report on this capture."""
        return CaptureReport(self._training, self._inputs, tuple(self.expected), self.micro_batches)

    def draws_of(self, batch: MicroBatch) -> list[Draw]:
        """Return the program's draws for a microbatch, scaled to its number of rows if ragged."""
        rows = ragged_rows(batch)
        if rows == self._rows:
            return self.draws
        return [draw._replace(args=draw.of_size(_scale_size(draw.size, self._rows, rows))) for draw in self.draws]


class _DrawRecorder(Interpreter):
    """Runs a captured program and records the draws of each node; buffers do not change."""

    def __init__(self, captured: Any) -> None:
        super().__init__(captured)
        self.by_node: dict[str, list[int]] = {}
        self.draws: list[Draw] = []

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Run, and restore the generators."""
        with record_draws() as self.draws:
            return super().run(*args, **kwargs)

    def run_node(self, node: Node) -> Any:
        """Return the result of one node, without writes."""
        before = len(self.draws)
        if node.target is WRITE:
            return self.fetch_args_kwargs_from_env(node)[1]["target"]
        out = super().run_node(node)
        if len(self.draws) == before and draws_numbers(node):  # by shapes, no numbers are drawn
            args, kwargs = self.fetch_args_kwargs_from_env(node)
            with making_on(None):
                node.target(*zeros_on_host(args), **zeros_on_host(kwargs))
        self.by_node[node.name] = list(range(before, len(self.draws)))
        return out


class CaptureReport(NamedTuple):
    """A capture of a pipeline's model, and how often it was chosen.

    training: whether a module was in training mode.  inputs: the dtypes and shapes of the tensors.  guards: the values
    that the code read, as in `if x.sum() > 0`, with their lines.  micro_batches: how many it was chosen for.
    """

    training: bool
    inputs: tuple[str, ...]
    guards: tuple[Reading, ...]
    micro_batches: int


class Captures:
    """Captures a model for each microbatch of a new kind, and for each new combination of branches that it takes.

    capture: makes the pipe from a microbatch and the earlier pipes.  synchronize: called first, and before values that
    depend on parameters are computed, to bring the parameters up to date.  max_captures: the captures for microbatches
    of one kind, which differ in the values that the code reads.
    """

    def __init__(
        self,
        model: Module,
        capture: Callable[[MicroBatch, Sequence[AnyPipe]], AnyPipe],
        synchronize: Callable[[], None],
        max_captures: int,
    ) -> None:
        self._model = model
        self._capture = capture
        self._synchronize = synchronize
        self._max_captures = max_captures
        self._by_key: dict[tuple, list[Captured]] = {}

    def __len__(self) -> int:
        return len(self.all())

    def all(self) -> list[Captured]:
        """Return all captures."""
        return [one for candidates in self._by_key.values() for one in candidates]

    @property
    def first(self) -> Captured | None:
        """Return the first capture, or None."""
        return next(iter(self.all()), None)

    def of(self, batch: MicroBatch) -> Captured:
        """Return the capture for arguments of this kind, in the modules' current modes (training or evaluation)."""
        arguments: Any = (batch.args, batch.kwargs)
        leaves, structure = optree.tree_flatten(arguments, none_is_leaf=True)
        modes = tuple(module.training for module in self._model.modules())
        parameters = tuple(map(id, self._model.parameters()))  # replaced parameters make another model
        key = (modes, parameters, structure, *map(_cache_key, leaves))
        # A graph that depends on ragged sizes serves only microbatches with the same ones.
        exact = (key, *[leaf.aval for leaf in leaves if isinstance(leaf, Tensor)])
        candidates = self._by_key.get(key) or self._by_key.get(exact) or []
        found = self._find_matching(candidates, batch)
        if found is None:
            found = self._capture_new(batch, any(modes))
            candidates = self._by_key.setdefault(exact if found.pipe.knows_sizes else key, [])
            candidates.append(found)
        found.micro_batches += 1
        return found

    def _find_matching(self, candidates: Sequence[Captured], batch: MicroBatch) -> Captured | None:
        """Return the capture whose values the microbatch has; None if there is none yet.

        The most used is tried first.  RuntimeError if there is none and no more are permitted.
        """
        if any(one.guards is not None and one.guards.reads_parameters for one in candidates):
            self._synchronize()
        remaining = sorted(candidates, key=lambda one: -one.micro_batches)
        read: list[Reading] = []
        while remaining:
            one = remaining.pop(0)
            read = _common_readings(one, batch)
            if read == one.expected:
                return one
            # Captures with the same readings up to the first difference took the same branches so far.
            remaining = [other for other in remaining if other.expected[: len(read)] == read]
        if len(candidates) >= self._max_captures:
            raise RuntimeError(
                f"Pipeline: {read[-1]}, for which the model is not captured, and there are {len(candidates)} captures "
                f"for inputs of this kind already. Raise max_captures, or compute with tensors, as where() does, if "
                f"the values are many"
            )
        return None

    def _capture_new(self, batch: MicroBatch, training: bool) -> Captured:
        self._synchronize()
        with by_shapes(self._model, batch) as example:
            with record_draws() as draws:
                pipe = self._capture(example, [one.pipe for one in self.all()])
            if example is not batch:
                check_constants(pipe, self._model)
            return Captured(pipe, example, bool(draws) or (example is not batch and _may_draw(pipe)), training)


def _may_draw(pipe: AnyPipe) -> bool:
    """Return whether a pipe that was captured by shapes, without draws, has operators that draw random numbers."""
    return pipe.captured is None or any(map(draws_numbers, pipe.captured.graph.find_nodes(op="call_function")))


def draws_numbers(node: Node) -> bool:
    """Return whether a node's operator draws random numbers."""
    return bool(getattr(node.target, "random", False))


def draws_of_program(model: Module, batch: MicroBatch) -> list[Draw]:
    """Return the random draws of a model for a microbatch."""
    with by_shapes(model, batch) as example, autograd.no_grad():
        with record_draws() as draws:
            traced = trace(model, *example.args, **example.kwargs)
        if example is batch:
            return draws
        run = _DrawRecorder(traced)
        run.run(*example.args, **example.kwargs)
        return run.draws


def _common_readings(one: Captured, batch: MicroBatch) -> list[Reading]:
    """Return the values that a microbatch has at the guards of a capture, up to the first that differs."""
    found: list[Reading] = []
    if one.guards is not None:
        with autograd.no_grad():
            for reading, expected in zip(one.guards.readings(batch), one.expected, strict=False):
                found.append(reading)
                if reading != expected:
                    break
    return found


def _cache_key(leaf: Any) -> Hashable:
    """Return the part of a leaf that a capture depends on.

    This is the dtype and the constant sizes of a tensor, and the type and the value of another leaf.
    """
    if isinstance(leaf, Tensor):
        return leaf.dtype, *[None if isinstance(size, SymbolicSize) else size for size in leaf.shape]
    try:
        hash(leaf)
    except TypeError:
        return type(leaf), repr(leaf)
    return type(leaf), leaf


def ragged_rows(batch: MicroBatch) -> list[int]:
    """Return the total rows of each ragged tensor among the arguments."""
    tensors = [t for t in tensors_in((batch.args, batch.kwargs)) if symbolic(t.shape) is not None]
    return [t.values().shape[0] for t in tensors]


def _scale_size(size: tuple[int, ...] | None, before: Sequence[int], after: Sequence[int]) -> tuple[int, ...]:
    """Convert a size to another ragged microbatch: a leading size equal to a tensor's rows is replaced."""
    now = dict(zip(before, after, strict=True))
    return tuple([now.get(n, n) if d == 0 else n for d, n in enumerate(size or ())])
