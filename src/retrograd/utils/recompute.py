"""Recomputation of saved tensors: the implementation of all kinds of checkpoints."""

import pickle
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import count
from typing import Any
from weakref import ReferenceType, WeakKeyDictionary, ref

import optree

from retrograd.autograd import enable_grad
from retrograd.autograd.graph import saved_tensors_hooks
from retrograd.core import Tensor, at, current
from retrograd.core.blocks import generator_block
from retrograd.core.graph import Packed
from retrograd.core.tensor import count_of
from retrograd.ops.random import Generator, default_generator
from retrograd.utils.operator_log import OperatorLog, side_by_side


class CheckpointError(RuntimeError):
    """The error if recomputation gave other tensors than the forward pass."""


class _AllRecomputedError(BaseException):
    """All required tensors have been recomputed; not an Exception, so user code does not catch it."""


ContextPair = tuple[AbstractContextManager[Any], AbstractContextManager[Any]]


@dataclass(frozen=True)
class Options:
    """How to recompute: the arguments of `checkpoint` in the forward pass."""

    context_fn: Callable[[], ContextPair]
    describe: Callable[[Tensor], Any]
    debug: bool
    early_stop: bool
    preserve_rng_state: bool


# ------------------------------------------------------------------------------------------ what a run starts from


class CheckpointInput:
    """An input of a run, saved as by a node: saved-tensor hooks store it, and a later write is an error."""

    def __init__(self, tensor: Tensor) -> None:
        hooks = current().saving
        self._tensor = tensor if hooks is None else Packed(hooks, tensor)
        self._version = count_of(tensor)

    def load(self) -> Tensor:
        """Return the tensor, connected to its graph."""
        tensor = self._tensor
        if not isinstance(tensor, Tensor):
            return tensor.unpack()
        if count_of(tensor) != self._version:
            raise RuntimeError(
                f"checkpoint: can't recompute: the input of shape {tensor.shape} has been modified by an inplace "
                f"operation: it is at version {count_of(tensor)}; expected version {self._version} instead. Write "
                f"to a copy, x.clone(), or make the write part of the checkpointed function that made it."
            )
        return tensor


class CheckpointInputs:
    """The inputs of a run, a pytree whose tensors are saved as by nodes; other leaves stay as they are."""

    def __init__(self, tree: Any) -> None:
        leaves, self._structure = optree.tree_flatten(tree, none_is_leaf=True)
        self._leaves = [CheckpointInput(leaf) if isinstance(leaf, Tensor) else leaf for leaf in leaves]

    def load(self) -> Any:
        """Return the pytree."""
        leaves = [leaf.load() if isinstance(leaf, CheckpointInput) else leaf for leaf in self._leaves]
        return optree.tree_unflatten(self._structure, leaves)


_replay_lock = threading.RLock()  # the default generator is shared: one thread at a time replays it


class RandomState:
    """The states of random generators at the start of a run, for a recomputation that draws the same values."""

    def __init__(self, generators: list[Generator]) -> None:
        self._states = [(generator, _state(generator)) for generator in generators]

    def drop_unused(self) -> None:
        """After the run, drop the generators that it did not draw from."""
        self._states = [(generator, state) for generator, state in self._states if _state(generator) != state]

    @generator_block
    def replay(self) -> Iterator[None]:
        """Draw the same values in the block, then restore the generators."""
        if not self._states:
            yield
            return
        with _replay_lock:
            now = [(generator, _state(generator)) for generator, _ in self._states]
            _restore(self._states)
            try:
                yield
            finally:
                _restore(now)


def _state(generator: Generator) -> bytes:
    """Return a generator's state as bytes, which are small and comparable."""
    return pickle.dumps(generator._plain_state())


def _restore(states: list[tuple[Generator, bytes]]) -> None:
    for generator, state in states:
        generator._set_plain_state(pickle.loads(state))


def generators_of(arguments: Any, options: Options) -> list[Generator]:
    """Return the generators to replay: the default one, and those among the arguments."""
    if not options.preserve_rng_state:
        return []
    leaves = optree.tree_leaves(arguments, none_is_leaf=True)
    return list(dict.fromkeys([default_generator, *(leaf for leaf in leaves if isinstance(leaf, Generator))]))


class RepeatableRun:
    """A function with the state of its runs except arguments: random generators, and a context."""

    def __init__(self, function: Callable[..., Any], generators: list[Generator], options: Options) -> None:
        self._function = function
        self._forward_context, self._recompute_context = options.context_fn()
        self._random = RandomState(generators)

    def run_forward(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Run it the first time; the result is used."""
        with self._forward_context:
            result = self._function(*args, **kwargs)
            self._random.drop_unused()
            return result
        raise RuntimeError(  # reached only if `__exit__` returned true
            "checkpoint: the forward context provided by context_fn suppressed an exception raised during the "
            "checkpointed forward, which then has no result. Let the exception pass, and catch it outside checkpoint."
        )

    def run_again(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Run it again."""
        with self._random.replay(), self._recompute_context:
            return self._function(*args, **kwargs)


class SavedLevels:
    """The levels in which a run begins, for a recomputation when some of them may have ended."""

    def __init__(self) -> None:
        self._innermost = current().level
        self._outer_levels: list[tuple[Any, Any, bool]] = []  # level, its parent, grad mode there
        level = self._innermost
        while level is not None:
            self._outer_levels.append((level, level.parent, level.parent_grad_enabled))
            level = level.parent

    def record(self) -> bool:
        """Return whether the present graph is that of a level in which the run began, not of a transform within it."""
        level = current().level
        return level is self._innermost or level is None or any(level is outer for outer, _, _ in self._outer_levels)

    @generator_block
    def resume(self) -> Iterator[None]:
        """Reactivate the levels in the block, with their former nesting."""
        now = [(level, level.parent, level.parent_grad_enabled, level.active) for level, _, _ in self._outer_levels]
        for level, parent, recording in self._outer_levels:
            level.parent, level.parent_grad_enabled, level.active = parent, recording, True
        try:
            with at(self._innermost, True):
                yield
        finally:
            for level, parent, recording, active in now:
                level.parent, level.parent_grad_enabled, level.active = parent, recording, active


# ------------------------------------------------------------------------------------------------------- the frame


class Placeholder:
    """The stand-in for a saved tensor in a node: its index among all that the frame's run saved."""

    __slots__ = ("__weakref__", "number")

    def __init__(self, number: int) -> None:
        self.number = number


Values = WeakKeyDictionary[Placeholder, Tensor]
_events = count()  # counts starts and ends of frames, like creation numbers of nodes


_group: ContextVar["GraphExecGroup | None"] = ContextVar("group", default=None)


class GraphExecGroup:
    """A block of backward passes that recompute each checkpoint at most once in all.

    For passes over different parts of one checkpoint's graph, such as one for the inputs and one for the parameters.
    Recomputed tensors live until the nodes that read them are freed, at most until the block ends.  Blocks can't be
    nested.

    >>> import retrograd as rg
    >>> from retrograd.utils.checkpoint import checkpoint
    >>> x = rg.tensor([1.0, 2.0], requires_grad=True)
    >>> a, b = checkpoint(lambda x: (x.sin(), x.cos()), x, use_reentrant=False)
    >>> with GraphExecGroup():
    ...     a.sum().backward()
    ...     b.sum().backward()
    """

    def __enter__(self) -> "GraphExecGroup":
        if _group.get() is not None:
            raise RuntimeError("GraphExecGroup contexts cannot be nested: end the first block before the second begins")
        self.values: WeakKeyDictionary[Frame, Values] = WeakKeyDictionary()
        self._token = _group.set(self)
        return self

    def __exit__(self, *error: object) -> None:
        _group.reset(self._token)
        self.values.clear()


class _RecomputedInPass:
    """The tensors recomputed in one backward pass; stored in the callbacks of the pass, so it lives as long as it."""

    def __init__(self) -> None:
        self.values: WeakKeyDictionary[Frame, Values] = WeakKeyDictionary()

    def __call__(self) -> None:
        """At the end of the pass, drop this callback, and with it the tensors."""


def _values_of(running: Any) -> WeakKeyDictionary["Frame", Values]:
    for callback in running.callbacks:
        if isinstance(callback, _RecomputedInPass):
            return callback.values
    running.callbacks.append(_RecomputedInPass())
    return running.callbacks[-1].values


class Frame:
    """One run whose saved tensors were dropped: how to repeat it, and which of them may still be read.

    Tensors recomputed in a backward pass are freed with the nodes that read them, and at the latest, with
    `retain_graph`, when the pass reaches a frame that ended before this one began.
    """

    def __init__(self, run: RepeatableRun, load: Callable[[], Any], options: Options) -> None:
        self.run = run
        self.load = load  # returns args and kwargs
        self.options = options
        self.complete = False
        self.placeholders: list[ReferenceType[Placeholder]] = []
        self.descriptions: list[Any] = []
        self.log = OperatorLog() if options.debug else None
        self.levels = SavedLevels()
        self._start = next(_events)
        self._end: float = float("inf")

    def run_forward(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Run the first time, and leave placeholders in the graph."""
        with saved_tensors_hooks(self._pack, self._unpack), self.log or nullcontext():
            result = self.run.run_forward(args, kwargs)
        self.complete = True
        self._end = next(_events)
        return result

    def _pack(self, tensor: Tensor) -> Placeholder | Tensor:
        if not self.levels.record():
            return tensor  # a transform within the run reads it, and the run is not complete
        placeholder = Placeholder(len(self.placeholders))
        self.placeholders.append(ref(placeholder))
        self.descriptions.append(self.options.describe(tensor))
        return placeholder

    def _unpack(self, placeholder: Placeholder | Tensor) -> Tensor:
        if isinstance(placeholder, Tensor):
            return placeholder
        running = current().running
        if running is None:  # read outside a backward pass: nothing limits how long tensors are needed
            return self._recompute()[placeholder]
        group = _group.get()
        values = _values_of(running) if group is None else group.values
        if placeholder not in values.get(self, ()):
            if group is None:  # in a group, a later pass may read the tensors of any frame
                for frame in [frame for frame in values if frame._start > self._end]:
                    del values[frame]
            values[self] = self._recompute()
        return values[self][placeholder]

    def _recompute(self) -> Values:
        recomputation = _Recomputation(self)
        try:
            with self.levels.resume():
                recomputation.run()
            recomputation.check()
        except CheckpointError as error:
            if self.log is None or recomputation.log is None:
                raise
            operators = side_by_side(self.log.entries, recomputation.log.entries)
            raise CheckpointError(DEBUG_MESSAGE.format(error=error, operators=operators)) from None
        return recomputation.values


def _stop() -> None:
    """End a recomputation: at once, or where a watcher needs the result of the operator that saves, after it."""
    for watcher in current().watchers or ():
        if getattr(watcher, "needs_results", False) and watcher.end_after_operator(_AllRecomputedError()):
            return
    raise _AllRecomputedError


class _Recomputation:
    """A repeated run of a frame, with the tensors that it saves."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.log = OperatorLog() if frame.options.debug else None
        self.values: Values = WeakKeyDictionary()
        self.count = 0

    def run(self) -> None:
        args, kwargs = self.frame.load()
        try:
            with enable_grad(), saved_tensors_hooks(self._pack, _identity), self.log or nullcontext():
                self.frame.run.run_again(args, kwargs)
        except _AllRecomputedError:
            pass

    def _pack(self, tensor: Tensor) -> Tensor:
        frame, number = self.frame, self.count
        if not frame.levels.record():
            return tensor
        self.count += 1
        if number < len(frame.placeholders):
            placeholder = frame.placeholders[number]()
            if placeholder is not None:
                self.values[placeholder] = tensor
            if self.count == len(frame.placeholders) and frame.options.early_stop:
                _stop()
        elif frame.complete:
            raise CheckpointError(
                f"checkpoint: trying to save more tensors during recomputation than during the original forward pass, "
                f"which saved {len(frame.placeholders)}. {HINT}"
            )
        return tensor

    def check(self) -> None:
        """Check that the recomputed tensors have the same number and kind as the original ones."""
        frame = self.frame
        if self.count < len(frame.placeholders):
            raise CheckpointError(
                f"checkpoint: A different number of tensors was saved during the original forward and recomputation: "
                f"the function saved a different number of tensors when it ran again.\n"
                f"forward: {len(frame.placeholders)}\nrecomputation: {self.count}\n{HINT}"
            )
        different = [
            line for placeholder, tensor in self.values.items() if (line := self._differs(placeholder, tensor))
        ]
        if different:
            raise CheckpointError(
                "checkpoint: Recomputed values for the following tensors have different metadata than during the "
                "forward pass:\n" + "\n".join(different) + f"\n{HINT}"
            )

    def _differs(self, placeholder: Placeholder, tensor: Tensor) -> str:
        before, now = self.frame.descriptions[placeholder.number], self.frame.options.describe(tensor)
        if before == now:
            return ""
        return f"  position {placeholder.number}: saved metadata: {before}, recomputed metadata: {now}"


HINT = (
    "The function must do the same each time: it may not depend on what changes in between, such as global state, "
    "modules switched between train() and eval(), or random numbers of Python's or NumPy's own generators.\n"
    "Tip: To see a more detailed error message, either pass `debug=True` to checkpoint or enter "
    "set_checkpoint_debug_enabled(True): the operators of both runs are listed."
)

DEBUG_MESSAGE = (
    "An error happened while unpacking tensors: {error}\n\n{operators}\n\n"
    "You are seeing this error because you passed `debug=True` to checkpoint. The operators of the original forward "
    "and those of the recomputation are listed above, in the order of execution. Look for the first line that differs."
)


def _identity(tensor: Tensor) -> Tensor:
    return tensor


def run_with_recomputation(function: Callable[..., Any], args: tuple, kwargs: dict[str, Any], options: Options) -> Any:
    """Run a function so that its saved tensors are dropped, and recomputed when they are read."""
    run = RepeatableRun(function, generators_of((args, kwargs), options), options)
    return Frame(run, CheckpointInputs((args, kwargs)).load, options).run_forward(args, kwargs)
