"""Hooks that pack and unpack saved tensors, and writes to saved tensors."""

from collections.abc import Callable
from typing import Any

from retrograd.autograd.grad_mode import Mode
from retrograd.core import Tensor, current, override_state
from retrograd.core.blocks import Block, HookBlock
from retrograd.core.graph import Snapshot, snapshot_of


class saved_tensors_hooks(Mode):
    """Pass every tensor that operators in the block save through `pack_hook`, and read it back by `unpack_hook`.

    `pack_hook(tensor)` gets the tensor outside its graph and returns anything; `unpack_hook` gets that whenever the
    value is read and returns a tensor of the same shape and dtype, which replaces the saved one in the graph.  Only the
    innermost of nested pairs applies.  A pack hook that writes to its tensor raises a RuntimeError.

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
        block = HookBlock(self.pack_hook, self.unpack_hook)
        block.check()
        return block


def _push_saved_tensors_default_hooks(pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
    """Enter a pair of saved-tensor hooks; `_pop_saved_tensors_default_hooks` leaves it."""
    saved_tensors_hooks(pack_hook, unpack_hook)._block().__enter__()


def _pop_saved_tensors_default_hooks() -> None:
    """Leave the innermost pair of saved-tensor hooks; raise RuntimeError if there is none."""
    block: Any = current().saving
    if block is None:
        raise RuntimeError("_pop_saved_tensors_default_hooks: no saved-tensor hooks are active")
    block.__exit__(None, None, None)


class save_on_cpu(saved_tensors_hooks):
    """Move tensors that are saved in the block to the CPU, and back to their device for the backward pass.

    On the CPU they stay where they are.  `pin_memory` and `device_type` are accepted as in PyTorch, and have
    no effect.

    >>> import retrograd as rg
    >>> x = rg.tensor([2.0], requires_grad=True)
    >>> with rg.autograd.graph.save_on_cpu():
    ...     y = x.exp()
    >>> y.backward()
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
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


def _unpack_snapshot(snapshot: Snapshot) -> Tensor:
    """Return the tensor of a snapshot, after checking that it has not changed since."""
    if snapshot.is_overwritten():
        raise RuntimeError(
            f"a tensor of shape {snapshot.value.shape} that was saved under allow_mutation_on_saved_tensors has been "
            f"modified by an inplace operation after that: it is at version {snapshot.version.count}; expected "
            f"version {snapshot.count} instead"
        )
    return snapshot.unpack()


class allow_mutation_on_saved_tensors(Block):
    """Allow writes to saved tensors in the block: the backward pass uses copies of the old content.

    The copy is made when the write happens, and only then; also when it happens after the block.

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
        self._hooks: HookBlock | None = None

    def _enter(self) -> "allow_mutation_on_saved_tensors":
        """Start to save snapshots."""
        outer: Any = current().saving
        while outer is not None:
            if outer.pack is snapshot_of:
                raise RuntimeError(
                    "allow_mutation_on_saved_tensors contexts cannot be nested: another one is entered here"
                )
            outer = getattr(outer, "outer", None)
        self._hooks = saved_tensors_hooks(snapshot_of, _unpack_snapshot)._block()
        self._hooks.__enter__()
        return self

    def _leave(self, *exception: Any) -> None:
        """Stop saving snapshots."""
        if self._hooks is not None:
            self._hooks.__exit__(*exception)
            self._hooks = None
