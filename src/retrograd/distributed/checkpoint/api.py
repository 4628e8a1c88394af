"""`save`, `load` and `async_save` of checkpoints that all ranks write and read together."""

import os
from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path
from threading import Thread
from typing import Any

from retrograd.autograd import no_grad
from retrograd.core import Tensor
from retrograd.distributed.checkpoint import layout
from retrograd.distributed.groups import initialized_group
from retrograd.distributed.local_slice import LocalSlice, with_slices
from retrograd.distributed.objects import all_gather_object, broadcast_object_list
from retrograd.nn.parameter import is_on_meta
from retrograd.pipelining.transports import get_transport
from retrograd.pipelining.transports.process_group import ProcessGroup, default_group

StateDict = Mapping[str, Any]


def save(
    state_dict: StateDict,
    *,
    checkpoint_id: str | os.PathLike[str],
    process_group: ProcessGroup | None = None,
    no_dist: bool = False,
) -> None:
    """Write a state dict into a folder, each rank its slices; all ranks must call it.

    state_dict: nested dicts and lists of tensors, `LocalSlice` (as of `sharded_state_dict`), numbers, text and None.
    A tensor is the same on all ranks, which write a part of it each, except the parameters of `fully_shard`, which are
    slices.  Values that are no tensors are those of rank 0.
    checkpoint_id: the folder, which all ranks reach.  Its earlier checkpoint stays valid until the new one is complete.
    no_dist: this process alone; so too without a process group.

    Raises, on every rank, the first error of a rank: OSError, TypeError for values that JSON and safetensors do not
    hold, ValueError for slices that have gaps or overlap.

    >>> import retrograd as rg, tempfile
    >>> import retrograd.distributed.checkpoint as checkpoint
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     checkpoint.save({"model": {"weight": rg.ones(3)}, "step": 7}, checkpoint_id=folder)
    ...     state = {"model": {"weight": rg.zeros(3)}, "step": 0}
    ...     checkpoint.load(state, checkpoint_id=folder)
    >>> state
    {'model': {'weight': tensor([1., 1., 1.])}, 'step': 7}
    """
    group = _group(process_group, no_dist)
    plan = _Plan(state_dict, group)
    _write(plan, Path(checkpoint_id), group)


def async_save(
    state_dict: StateDict,
    *,
    checkpoint_id: str | os.PathLike[str],
    process_group: ProcessGroup | None = None,
    no_dist: bool = False,
) -> "PendingSave":
    """Copy a state dict, and write the copy in the background; return the handle.

    The step is held up by the copy, before which the ranks agree on the save; none waits for the copy of another.  The
    files are written by a thread of each rank; the checkpoint is valid when
    `result()` of the handle has returned, which all ranks must call.  Until then the folder has the earlier one.

    Raises TypeError as `save` does; other errors are raised by `result()`.
    """
    group = _group(process_group, no_dist)
    return PendingSave(_Plan(state_dict, group), Path(checkpoint_id), group)


class PendingSave:
    """The handle of a save in the background."""

    def __init__(self, plan: "_Plan", folder: Path, group: ProcessGroup) -> None:
        self._plan, self._folder, self._group = plan, folder, group
        self._rows: Future[dict[str, Any]] = Future()
        self._ended = False
        self._number = _prepare(folder, group)
        try:
            plan.copy()
        except Exception as error:  # as MemoryError: all ranks learn of it by `result()`
            self._rows.set_exception(error)
        else:
            Thread(target=self._write, daemon=True).start()

    def done(self) -> bool:
        """Return whether this rank has written its files."""
        return self._rows.done()

    def result(self) -> None:
        """Wait for the files of all ranks, and complete the checkpoint; all ranks must call it.

        Raises, on every rank, the first error of a rank.
        """
        if self._ended:
            return
        self._ended = True
        error, rows = self._rows.exception(), None
        if error is None:
            rows = self._rows.result()
        _complete(self._plan, self._folder, self._number, self._group, rows, error)

    def _write(self) -> None:
        try:
            rank = self._group.rank()
            self._rows.set_result(layout.write_part(self._folder, self._number, rank, self._plan.slices))
        except BaseException as error:
            self._rows.set_exception(error)


def load(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str],
    process_group: ProcessGroup | None = None,
    no_dist: bool = False,
) -> None:
    """Read a checkpoint into the tensors and slices of a state dict, in place; other values are replaced.

    Each rank reads only the elements that it has, whatever ranks and slices have saved them.  Only the names of the
    state dict are read.

    Raises FileNotFoundError if the folder has no complete checkpoint, KeyError for a name that it lacks, ValueError for
    another shape or dtype, before anything is changed.
    """
    folder = Path(checkpoint_id)
    manifest = layout.read_manifest(folder)
    targets = list(with_slices(layout.leaves(state_dict)))
    for path, target in targets:
        _check_target(layout.name_of(path), target, manifest)
    with no_grad():
        for path, target in targets:
            name = layout.name_of(path)
            if isinstance(target, Tensor | LocalSlice):
                read_into(layout.as_slice(target), folder, name, manifest["tensors"][name])
            else:
                _assign(state_dict, path, manifest["values"][name])


class _Plan:
    """The slices and values that a rank writes, by name; values are no tensors."""

    def __init__(self, state_dict: StateDict, group: ProcessGroup) -> None:
        self.slices: dict[str, LocalSlice] = {}
        self.values: dict[str, Any] = {}
        for path, value in with_slices(layout.leaves(state_dict)):
            name = layout.name_of(path)
            if isinstance(value, LocalSlice):
                self._add(name, value)
            elif isinstance(value, Tensor):
                self._add(name, LocalSlice(value.detach(), tuple(value.shape), 0, group.rank(), group.size()))
            elif value is None or isinstance(value, bool | int | float | str):
                self.values[name] = value
            else:
                raise TypeError(f"checkpoint: {name} is a {type(value).__name__}, which a checkpoint cannot hold")

    def _add(self, name: str, value: LocalSlice) -> None:
        """Add what this rank saves of a slice; the first rank saves tensors without elements."""
        own = value.share()
        if own.tensor.numel() or (value.low == 0 and value.copy == 0):
            self.slices[name] = own

    def copy(self) -> None:
        """Replace the tensors by copies."""
        self.slices = {
            name: LocalSlice(piece.tensor.detach().clone(), piece.shape, piece.low)
            for name, piece in self.slices.items()
        }


def _write(plan: _Plan, folder: Path, group: ProcessGroup) -> None:
    number = _prepare(folder, group)
    error, rows = None, None
    try:
        rows = layout.write_part(folder, number, group.rank(), plan.slices)
    except Exception as failure:
        error = failure
    _complete(plan, folder, number, group, rows, error)


def _prepare(folder: Path, group: ProcessGroup) -> int:
    """Make the folder, and return the number of the save, which is the same on all ranks."""
    found: list[Any] = [None, None]
    if group.rank() == 0:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            found[0] = layout.start_save(folder)
        except OSError as error:
            found[1] = error
    broadcast_object_list(found, group=group, group_src=0)
    if found[1] is not None:
        raise found[1]
    number: int = found[0]
    return number


def _complete(
    plan: _Plan,
    folder: Path,
    number: int,
    group: ProcessGroup,
    rows: dict[str, Any] | None,
    error: BaseException | None,
) -> None:
    """Write the manifest when all ranks have written their files; raise the first error of a rank on all of them."""
    found: list[Any] = [None] * group.size()
    all_gather_object(found, (rows, error), group)
    failure = next((failed for _, failed in found if failed is not None), None)
    if failure is None and group.rank() == 0:
        try:
            layout.write_manifest(folder, number, [written for written, _ in found], plan.values)
        except Exception as failed:
            failure = failed
    outcome = [failure]
    broadcast_object_list(outcome, group=group, group_src=0)
    if outcome[0] is not None:
        raise outcome[0]


def _check_target(name: str, target: Any, manifest: Mapping[str, Any]) -> None:
    kind = "tensors" if isinstance(target, Tensor | LocalSlice) else "values"
    if name not in manifest[kind]:
        raise KeyError(f"load: the checkpoint has no {kind[:-1]} {name!r}")
    if kind == "tensors":
        entry, piece = manifest[kind][name], layout.as_slice(target)
        if is_on_meta(piece.tensor):
            raise ValueError(f"load: {name} is on 'meta' and has no memory; call to_empty(device='cpu') of its module")
        if list(piece.shape) != entry["shape"] or str(piece.tensor.dtype) != entry["dtype"]:
            raise ValueError(
                f"load: {name} is {entry['dtype']}{entry['shape']} in the checkpoint, and "
                f"{piece.tensor.dtype}{list(piece.shape)} here"
            )


def read_into(piece: LocalSlice, folder: Path, name: str, entry: Mapping[str, Any]) -> None:
    """Read the elements of a slice from a checkpoint; entry: the manifest's, of the tensor of this name."""
    target = piece.tensor.detach()
    flat = target.reshape(-1) if target.is_contiguous() else target.contiguous().reshape(-1)
    for start, values in layout.read_slice(folder, name, entry, piece.low, piece.high):
        flat[start - piece.low : start - piece.low + values.numel()].copy_(values)
    if not target.is_contiguous():
        target.copy_(flat.reshape(target.shape))


def _assign(tree: Any, path: tuple[Any, ...], value: Any) -> None:
    """Replace a value in nested dicts and lists."""
    for key in path[:-1]:
        tree = tree[key]
    tree[path[-1]] = value


def _group(given: ProcessGroup | None, alone: bool) -> ProcessGroup:
    if alone or (given is None and default_group() is None):
        return ProcessGroup(get_transport("threads"))
    return initialized_group(given)
