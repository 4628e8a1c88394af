"""Forward passes that keep only the inputs of their stage, and are repeated before the backward pass."""

from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from typing import Any, NamedTuple

from retrograd import autograd
from retrograd.autograd.graph import saved_tensors_hooks
from retrograd.core import Tensor
from retrograd.core.blocks import generator_block
from retrograd.core.tensor import count_of
from retrograd.nn import Module


class _BufferState(NamedTuple):
    """A buffer before a forward pass: where it is, its version, and a copy."""

    members: MutableMapping[str, Any]
    name: str
    buffer: Tensor
    version: int
    copy: Tensor

    def is_current(self) -> bool:
        """Return whether the buffer has not been written to or replaced since."""
        return self.members[self.name] is self.buffer and count_of(self.buffer) == self.version

    def restore(self) -> None:
        """Put the buffer back with the values that it had."""
        if not self.is_current():
            self.members[self.name] = self.buffer
            self.buffer.copy_(self.copy)


class BufferStates:
    """The buffers of a stage before its forward passes: a pass may write to them, and its repetition may not.

    States share the copy of a buffer that has not changed between them.
    """

    def __init__(self, module: Any) -> None:
        self._modules = list(module.modules()) if isinstance(module, Module) else []
        self._latest: dict[tuple[int, str], _BufferState] = {}

    def record(self) -> list[_BufferState]:
        """Return the state of all buffers."""
        found = []
        for number, module in enumerate(self._modules):
            members = module._buffers
            for name, buffer in list(members.items()):
                if isinstance(buffer, Tensor):
                    state = self._latest.get((number, name))
                    if state is None or state.buffer is not buffer or not state.is_current():
                        with autograd.no_grad():
                            state = _BufferState(members, name, buffer, count_of(buffer), buffer.detach().clone())
                        self._latest[number, name] = state
                    found.append(state)
        return found


@generator_block
def restored(states: Sequence[_BufferState]) -> Iterator[None]:
    """Run the block with buffers as they were, and drop what it writes to them."""
    changed = [state for state in states if not state.is_current()]
    now = [state.members[state.name] for state in changed]
    try:
        for state in changed:
            state.members[state.name] = state.copy
        yield
    finally:
        for state, buffer in zip(changed, now, strict=True):
            state.members[state.name] = buffer


class InputVersions:
    """The versions of a stage's inputs, which nothing may write to until the forward pass is repeated."""

    def __init__(self, inputs: Iterable[Any]) -> None:
        self._versions = [(value, count_of(value)) for value in inputs if isinstance(value, Tensor)]

    def check(self) -> None:
        """Raise RuntimeError if an input was written to."""
        for value, version in self._versions:
            if count_of(value) != version:
                raise RuntimeError(
                    f"the forward pass can't be repeated: an input of shape {value.shape} has been modified by an "
                    f"inplace operation since; clone in the stage what it writes to"
                )


def saving_nothing() -> saved_tensors_hooks:
    """Record a graph whose saved tensors are dropped: it shows what requires grad, and can't run backward."""
    return saved_tensors_hooks(lambda tensor: None, _unreadable)


def _unreadable(packed: None) -> Tensor:
    raise AssertionError("this forward pass is repeated before its backward pass")
