"""The captures of a pipeline's model: one for all microbatches of the same kind."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import optree

from retrograd import autograd
from retrograd.core import Tensor
from retrograd.core.aval import SymbolicSize, symbolic
from retrograd.fx import Interpreter, Node
from retrograd.nn import Module
from retrograd.pipelining.microbatch import MicroBatch, tensors_in
from retrograd.pipelining.runtime.randomness import Draw, draw_indices, recorded
from retrograd.pipelining.split.manual_stages import AnyPipe
from retrograd.pipelining.split.mutations import WRITE
from retrograd.pipelining.split.pipe import Pipe


class Captured:
    """A model as captured for microbatches of one kind.

    random: whether it draws random values.  draws: its draws.  places: for each stage, the indices of its draws in the
    program, in order; None if unknown.
    """

    def __init__(self, pipe: AnyPipe, batch: MicroBatch, random: bool) -> None:
        self.pipe = pipe
        self.random = random
        self.draws: list[Draw] = []
        self.places: list[list[int]] | None = None
        self._rows = ragged_rows(batch)
        if random and isinstance(pipe, Pipe):
            self._find_draws(pipe, batch)

    def _find_draws(self, pipe: Pipe, batch: MicroBatch) -> None:
        """Run the program node by node, without side effects, to find the draws of each stage."""
        run = _DrawRecorder(pipe.captured)
        with autograd.no_grad():
            run.run(*batch.args, **batch.kwargs)
        self.draws = run.draws
        self.places = draw_indices(
            run.by_node, [pipe.get_stage_module(stage.stage_index) for stage in pipe.stages], len(self.draws)
        )

    def draws_of(self, batch: MicroBatch) -> list[Draw]:
        """Return the program's draws for a microbatch, scaled to its number of rows if ragged."""
        rows = ragged_rows(batch)
        if rows == self._rows:
            return self.draws
        return [draw._replace(args=draw.of_size(_scaled(draw.size, self._rows, rows))) for draw in self.draws]


class _DrawRecorder(Interpreter):
    """Runs a captured program and records the draws of each node; buffers do not change."""

    def __init__(self, captured: Any) -> None:
        super().__init__(captured)
        self.by_node: dict[str, list[int]] = {}
        self.draws: list[Draw] = []

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Run, and restore the generators."""
        with recorded() as self.draws:
            return super().run(*args, **kwargs)

    def run_node(self, node: Node) -> Any:
        """Return the result of one node, without writes."""
        before = len(self.draws)
        if node.target is WRITE:
            return self.fetch_args_kwargs_from_env(node)[1]["target"]
        out = super().run_node(node)
        self.by_node[node.name] = list(range(before, len(self.draws)))
        return out


class Captures:
    """Captures a model for each microbatch of a new kind.

    capture: makes the pipe from a microbatch and the first pipe, if there is one.  before: called first, to check
    preconditions.
    """

    def __init__(
        self, model: Module, capture: Callable[[MicroBatch, AnyPipe | None], AnyPipe], before: Callable[[], None]
    ) -> None:
        self._model = model
        self._capture = capture
        self._before = before
        self._known: dict[tuple, Captured] = {}

    def __len__(self) -> int:
        return len(self._known)

    @property
    def first(self) -> Captured | None:
        """Return the first capture, or None."""
        return next(iter(self._known.values()), None)

    def of(self, batch: MicroBatch) -> Captured:
        """Return the capture for arguments of this kind, in the modules' present modes (training or evaluation)."""
        arguments: Any = (batch.args, batch.kwargs)
        leaves, structure = optree.tree_flatten(arguments, none_is_leaf=True)
        modes = tuple(module.training for module in self._model.modules())
        parameters = tuple(map(id, self._model.parameters()))  # replaced parameters make another model
        key = (modes, parameters, structure, *map(_cache_key, leaves))
        exact = (key, *[leaf.aval for leaf in leaves if isinstance(leaf, Tensor)])
        known = self._known.get(key) or self._known.get(exact)
        if known is None:
            self._before()
            with recorded() as draws:
                pipe = self._capture(batch, None if self.first is None else self.first.pipe)
            known = Captured(pipe, batch, random=bool(draws))
            self._known[exact if pipe.knows_sizes else key] = known
        return known


def _cache_key(leaf: Any) -> Hashable:
    """Return what a capture depends on: a tensor's dtype and constant sizes, the type and value of other leaves."""
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
    return [t.values().shape[0] for t in tensors]  # type: ignore[attr-defined]


def _scaled(size: tuple[int, ...] | None, before: Sequence[int], after: Sequence[int]) -> tuple[int, ...]:
    """Convert a size to another ragged microbatch: a leading size equal to a tensor's rows is replaced."""
    now = dict(zip(before, after, strict=True))
    return tuple([now.get(n, n) if d == 0 else n for d, n in enumerate(size or ())])
