"""Hooks that pack and unpack saved tensors, and writes to saved tensors."""

import weakref
from collections.abc import Callable
from typing import Any

from retrograd.autograd.grad_mode import Mode
from retrograd.core import Tensor, current, override_state, registry
from retrograd.core.level import Block, HookBlock
from retrograd.core.tensor import count_of


class saved_tensors_hooks(Mode):
    """Pass every tensor that operators in the block save through `pack_hook`, and read it back by `unpack_hook`.

    `pack_hook(tensor)` gets the tensor outside its graph and returns anything; `unpack_hook` gets that whenever the
    value is read and returns a tensor of the same shape and dtype, which takes its place in the graph again.  Of
    nested pairs the innermost counts.  A pack hook that writes to its tensor is a RuntimeError.

    >>> import retrograd as rg
    >>> x = rg.tensor([2.0], requires_grad=True)
    >>> with rg.autograd.graph.saved_tensors_hooks(lambda t: t.tolist(), lambda packed: rg.tensor(packed)):
    ...     y = x * x
    >>> y.backward()
    >>> x.grad
    tensor([4.])
    """

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        super().__init__()
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def _block(self) -> HookBlock:
        if current().saving_refused is not None:
            raise RuntimeError(current().saving_refused)
        return HookBlock(self.pack_hook, self.unpack_hook)


class save_on_cpu(saved_tensors_hooks):
    """Move tensors that are saved in the block to the CPU, and back to their device for the backward pass.

    On the CPU they stay where they are.  `pin_memory` is accepted as in PyTorch, and has no effect.

    >>> import retrograd as rg
    >>> x = rg.tensor([2.0], requires_grad=True)
    >>> with rg.autograd.graph.save_on_cpu():
    ...     y = x.exp()
    >>> y.backward()
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cpu") -> None:
        super().__init__(lambda tensor: tensor, lambda tensor: tensor)


class disable_saved_tensors_hooks(Mode):
    """Make `saved_tensors_hooks` raise a RuntimeError with the given message in the block.

    >>> import retrograd as rg
    >>> with rg.autograd.graph.disable_saved_tensors_hooks("not here"):
    ...     with rg.autograd.graph.save_on_cpu():
    ...         pass
    Traceback (most recent call last):
    RuntimeError: not here
    """

    def __init__(self, error_message: str) -> None:
        super().__init__()
        self._message = error_message

    def _block(self) -> override_state:
        if current().saving is not None:
            raise RuntimeError(f"{self._message} (disable_saved_tensors_hooks: hooks are in use here already)")
        return override_state("saving_refused", self._message)


class _Kept:
    """A saved tensor, and a copy of its content from before the first later write."""

    __slots__ = ("__weakref__", "_copy", "_count", "_tensor")

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor
        self._count = count_of(tensor)
        self._copy = None if tensor.level is None else tensor  # above the ground values are never overwritten

    def save(self) -> None:
        """Copy the content, because the memory is about to be written to."""
        if self._copy is None:
            self._copy = registry["clone"](self._tensor)

    def value(self) -> Tensor:
        """Return the tensor as it was saved."""
        if self._copy is not None:
            return self._copy
        if count_of(self._tensor) != self._count:
            raise RuntimeError(
                f"a tensor of shape {self._tensor.shape} that was saved under allow_mutation_on_saved_tensors has been "
                f"modified by an inplace operation after that: it is at version {count_of(self._tensor)}; expected "
                f"version {self._count} instead"
            )
        return self._tensor


class allow_mutation_on_saved_tensors(Block):
    """Allow writes to saved tensors in the block: the backward pass uses copies of the old content.

    The copy is made when the write happens, and only then.

    >>> import retrograd as rg
    >>> x = rg.tensor([2.0, 3.0], requires_grad=True)
    >>> with rg.autograd.graph.allow_mutation_on_saved_tensors():
    ...     y = x * 1
    ...     z = (y * y).sum()
    ...     _ = y.zero_()
    ...     z.backward()
    >>> x.grad
    tensor([4., 6.])
    """

    def __init__(self) -> None:
        self._kept: dict[int, weakref.WeakSet[_Kept]] = {}  # by the id of the array that owns a tensor's memory
        self._blocks: list[Any] = []

    def _enter(self) -> "allow_mutation_on_saved_tensors":
        """Start to observe writes."""
        if current().on_write is not None:
            raise RuntimeError("allow_mutation_on_saved_tensors: another one is entered here; they cannot be nested")
        hooks = saved_tensors_hooks(self._pack, _Kept.value)._block()
        self._blocks = [hooks, override_state("on_write", self._on_write)]
        for block in self._blocks:
            block.__enter__()
        return self

    def _leave(self, *exception: Any) -> None:
        """Stop observing writes, and drop the saved content."""
        for block in reversed(self._blocks):
            block.__exit__(*exception)
        self._blocks = []
        self._kept.clear()

    def _pack(self, tensor: Tensor) -> _Kept:
        kept = _Kept(tensor)
        if tensor.level is None:
            self._kept.setdefault(_memory(tensor), weakref.WeakSet()).add(kept)
        return kept

    def _on_write(self, tensor: Tensor) -> None:
        for kept in self._kept.pop(_memory(tensor), ()):
            kept.save()


def _memory(tensor: Tensor) -> int:
    """Return the id of the array that owns the memory of a tensor."""
    array = tensor.value
    return id(array if array.base is None else array.base)
