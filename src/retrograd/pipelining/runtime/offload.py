"""Saved tensors of a forward pass that move to a file, and back into memory before the backward pass."""

import weakref
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol

from retrograd.autograd.graph import saved_tensors_hooks
from retrograd.core import Tensor
from retrograd.core.blocks import Block
from retrograd.interop.stored_arrays import StoredArrays
from retrograd.ops.as_tensor import from_numpy


class _Saved:
    """A saved tensor in a graph; None while it is in the file."""

    __slots__ = ("__weakref__", "tensor")

    def __init__(self, tensor: Tensor) -> None:
        self.tensor: Tensor | None = tensor


class OffloadableRun:
    """The saved tensors of one forward pass, which can move to a temporary file and back."""

    def __init__(self) -> None:
        self._saved: list[weakref.ref[_Saved]] = []  # weak, because the graph frees them one by one
        self._stored: StoredArrays | None = None

    def recording(self) -> saved_tensors_hooks:
        """Return the context manager for the forward pass."""
        return saved_tensors_hooks(self._pack, _unpack)

    def _pack(self, tensor: Tensor) -> _Saved:
        saved = _Saved(tensor)
        self._saved.append(weakref.ref(saved))
        return saved

    def offload(self, others: Iterable[Any]) -> None:
        """Write the saved tensors to a file and free their memory, except memory that `others` use too."""
        alive = [saved for reference in self._saved if (saved := reference()) is not None]
        arrays = [saved.tensor.value for saved in alive if saved.tensor is not None]
        stored = StoredArrays(arrays, [other.value for other in others if isinstance(other, Tensor)])
        moved = [saved for saved, is_stored in zip(alive, stored.is_stored, strict=True) if is_stored]
        for saved in moved:
            saved.tensor = None
        self._saved, self._stored = [weakref.ref(saved) for saved in alive], stored

    def fetch(self) -> None:
        """Read the saved tensors back, and remove the file."""
        assert self._stored is not None, "a schedule offloads what it fetches"
        for reference, array in zip(self._saved, self._stored.load(), strict=True):
            saved = reference()
            if saved is not None and array is not None:
                saved.tensor = from_numpy(array)

    def close(self) -> None:
        """Remove the file of a step that was interrupted."""
        if self._stored is not None:
            self._stored.close()


def _unpack(saved: _Saved) -> Tensor:
    assert saved.tensor is not None, "a schedule fetches saved tensors before the backward pass"
    return saved.tensor


class _Offloading(Protocol):
    """A stage whose saved tensors move."""

    def offload(self, micro_batch: int) -> None: ...

    def fetch(self, micro_batch: int) -> None: ...


class BackgroundMoves(Block):
    """The moves of a rank in one step: a thread runs them one after the other, while the rank computes.

    A move that writes waits for the one before, so that at most one microbatch is being written.  A failure of a move
    is raised where the rank waits for it.  At the end of the block all moves have finished.
    """

    def __init__(self) -> None:
        self._thread: ThreadPoolExecutor | None = None
        self._write: Future[None] | None = None
        self._reads: dict[tuple[_Offloading, int], Future[None]] = {}

    def offload(self, stage: _Offloading, micro_batch: int) -> None:
        """Begin to move what a forward pass has saved to a file, when the move before has finished."""
        if self._write is not None:
            self._write.result()
        self._write = self._submit(stage.offload, micro_batch)

    def fetch(self, stage: _Offloading, micro_batch: int) -> None:
        """Begin to move it back."""
        self._reads[stage, micro_batch] = self._submit(stage.fetch, micro_batch)

    def await_fetch(self, stage: _Offloading, micro_batch: int) -> None:
        """Wait until it is back."""
        if self._write is not None and self._write.done():
            self._write.result()
        self._reads.pop((stage, micro_batch)).result()

    def _submit(self, move: Callable[[int], None], micro_batch: int) -> "Future[None]":
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="offload")
        return self._thread.submit(move, micro_batch)

    def _enter(self) -> "BackgroundMoves":
        return self

    def _leave(self, *_: object) -> None:
        if self._thread is not None:
            self._thread.shutdown(wait=True, cancel_futures=True)
