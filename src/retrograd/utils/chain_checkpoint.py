"""Checkpoint chains under a budget of bytes: a binomial plan decides which values between steps are saved."""

from collections.abc import Callable
from typing import Any

import optree

from retrograd.autograd import enable_grad
from retrograd.autograd.graph import saved_tensors_hooks
from retrograd.core import Tensor
from retrograd.core.state import override_state
from retrograd.utils import revolve
from retrograd.utils.recompute import CheckpointInputs, Frame, Options, RepeatableRun, generators_of


def run_chain(steps: list[Callable], x: Any, budget: int, options: Options) -> Any:
    """Return the last step's result; each step gets the result of the one before, the first one `x`.

    At most `budget` bytes of values between steps, including the input, are saved.
    """
    return _Chain(steps, budget, options).run_forward(x)


class _Chain:
    """The steps of an executed chain, and its saved states.

    State i is the input of step i.  Each step but the last leaves placeholders in the graph.  To fill those of
    step i, the chain runs from the latest saved state up to state i, and saves more states if there is
    room.  Since a backward pass reaches the steps in reverse order, that is `revolve.plan`.

    States are saved without their graph, so a chain does not hold the graph that holds it.
    """

    def __init__(self, steps: list[Callable], budget: int, options: Options) -> None:
        self.steps = steps
        self.budget = budget
        self.options = options
        self.largest = 0  # bytes of the largest state so far
        self.saved_indices: set[int] = set()  # the states to save in the forward pass, if no larger one comes
        self.saved_states: dict[int, _SavedState] = {}
        self.runs: list[RepeatableRun] = []

    def run_forward(self, x: Any) -> Any:
        """Run the forward pass; the last step is recorded normally, because the backward pass starts with it."""
        for number, step in enumerate(self.steps[:-1]):
            self._save_if_planned(number, x)
            run = RepeatableRun(step, generators_of(x, self.options), self.options)
            self.runs.append(run)
            x = Frame(run, _Input(self, number), self.options).run_forward((x,), {})
        return self.steps[-1](x)

    def _save_if_planned(self, number: int, x: Any) -> None:
        """Save a state if the plan says so; a larger one than before leaves room for fewer."""
        size = max(1, num_bytes(x))
        if size > self.budget:
            raise ValueError(
                f"checkpoint: budget_bytes={self.budget} is too small: the input of step {number} takes {size} "
                f"bytes, and one such value must be kept; give at least {size}"
            )
        if size > self.largest:
            self.largest = size
            self.saved_indices = set(revolve.snapshot_indices(len(self.steps), self.budget // size))
            self.saved_states = {
                index: state for index, state in self.saved_states.items() if index in self.saved_indices
            }
        if number in self.saved_indices:
            self.saved_states[number] = _SavedState(x)

    def state(self, number: int) -> Any:
        """Return state `number`, recomputed from the latest one before it; later ones are no longer needed."""
        for later in [index for index in self.saved_states if index > number]:
            self.saved_states.pop(later, None)
        start = max(self.saved_states)
        x = self.saved_states[start].load()
        room = self.budget // self.largest - len(self.saved_states) + 1
        saved_indices = {start + stop for stop in revolve.snapshot_indices(number - start + 1, room)}
        for index in range(start, number):
            x = self._advance(index, x)
            if index + 1 in saved_indices:
                with override_state("saving", None):
                    self.saved_states[index + 1] = _SavedState(x)
        return x

    def _advance(self, number: int, x: Any) -> Any:
        """Run a step for its result only: the tensors it saves live only while it runs."""
        saved: list[Tensor] = []

        def pack(tensor: Tensor) -> int:
            saved.append(tensor)
            return len(saved) - 1

        with enable_grad(), saved_tensors_hooks(pack, saved.__getitem__):
            result = self.runs[number].run_again((x,), {})
        saved.clear()
        return result


class _Input:
    """The argument of one step of a chain, loaded on demand."""

    def __init__(self, chain: _Chain, number: int) -> None:
        self._chain = chain
        self._number = number

    def __call__(self) -> tuple[tuple, dict[str, Any]]:
        return (self._chain.state(self._number),), {}


class _SavedState:
    """A value between steps, saved without its graph."""

    def __init__(self, x: Any) -> None:
        self._requires_grad = [tensor.requires_grad for tensor in _tensors(x)]
        self._tree = CheckpointInputs(optree.tree_map(_detach_leaf, x, none_is_leaf=True))

    def load(self) -> Any:
        """Return the value; its tensors require grad as before."""
        requires_grad = iter(self._requires_grad)

        def leaf(x: Any) -> Any:
            return x.detach().requires_grad_(next(requires_grad)) if isinstance(x, Tensor) else x

        return optree.tree_map(leaf, self._tree.load(), none_is_leaf=True)


def num_bytes(x: Any) -> int:
    """Return the bytes of a pytree's tensors.

    >>> import retrograd as rg
    >>> num_bytes((rg.zeros(3), [rg.zeros(2, dtype=rg.float64)], None))
    28
    """
    return sum(tensor.numel() * tensor.dtype.itemsize for tensor in _tensors(x))


def _tensors(x: Any) -> list[Tensor]:
    return [leaf for leaf in optree.tree_leaves(x, none_is_leaf=True) if isinstance(leaf, Tensor)]


def _detach_leaf(leaf: Any) -> Any:
    return leaf.detach() if isinstance(leaf, Tensor) else leaf
