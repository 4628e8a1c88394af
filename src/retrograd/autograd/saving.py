"""Hooks that pack and unpack saved tensors, and writes to saved tensors."""

from collections.abc import Callable
from typing import Any
from weakref import WeakSet, WeakValueDictionary

from retrograd.autograd.grad_mode import Mode
from retrograd.core import Tensor, current, override_state
from retrograd.core.blocks import Block, HookBlock
from retrograd.core.graph import Snapshot, snapshot_of
from retrograd.core.tensor import count_of


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


def _is_copied(snapshot: Snapshot) -> bool:
    """Return whether a write has copied the content; above the ground, values are never overwritten."""
    return snapshot.version is None and snapshot.level is None


class allow_mutation_on_saved_tensors(Block):
    """Allow writes to saved tensors in the block: the backward pass uses copies of the old content.

    The copy is made when the write happens, and only then; also when it happens after the block.  The value of the
    `with` statement lists the saved tensors: `cloned` has those that were copied, `original` the others, by handles
    that live as long as the graph.  A tensor that is saved several times in one version has one handle.

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
        self._handles: WeakSet[Snapshot] = WeakSet()
        self.tid_to_weakhandle: WeakValueDictionary[tuple[int, int], Snapshot] = WeakValueDictionary()

    @property
    def cloned(self) -> dict[Snapshot, Tensor]:
        """The copies of saved tensors that were written to since, by their handles."""
        return {handle: handle.unpack() for handle in self._handles if _is_copied(handle)}

    @property
    def original(self) -> dict[Snapshot, Tensor]:
        """The saved tensors that were not written to, by their handles."""
        return {handle: handle.unpack() for handle in self._handles if not _is_copied(handle)}

    def clear(self) -> None:
        """Forget all handles, as at the end of the block; graphs keep theirs."""
        self._handles.clear()
        self.tid_to_weakhandle.clear()

    def _pack(self, tensor: Tensor) -> Snapshot:
        """Return the handle of a tensor, which later writes to it copy first."""
        tid = id(tensor.value), count_of(tensor)
        handle = self.tid_to_weakhandle.get(tid)
        # A handle that was copied has another array: the number of its old one may be that of a newer array.
        if handle is None or handle.value is not tensor.value or handle.version is not tensor.version:
            self.tid_to_weakhandle[tid] = handle = snapshot_of(tensor)
            self._handles.add(handle)
        return handle

    def _enter(self) -> "allow_mutation_on_saved_tensors":
        """Start to save snapshots."""
        outer: Any = current().saving
        while outer is not None:
            if isinstance(getattr(outer.pack, "__self__", None), allow_mutation_on_saved_tensors):
                raise RuntimeError(
                    "allow_mutation_on_saved_tensors contexts cannot be nested: another one is entered here"
                )
            outer = getattr(outer, "outer", None)
        self._hooks = saved_tensors_hooks(self._pack, _unpack_snapshot)._block()
        self._hooks.__enter__()
        return self

    def _leave(self, *exception: Any) -> None:
        """Stop saving snapshots, and forget the handles."""
        self.clear()
        if self._hooks is not None:
            self._hooks.__exit__(*exception)
            self._hooks = None
