"""`save`, `load` and `async_save` of checkpoints that all ranks write and read together."""

import os
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

from retrograd.autograd import no_grad
from retrograd.core import Tensor
from retrograd.distributed.checkpoint import layout
from retrograd.distributed.checkpoint.default_planner import DefaultLoadPlanner, DefaultSavePlanner
from retrograd.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter
from retrograd.distributed.checkpoint.running_saves import RunningSave, remove_leftovers
from retrograd.distributed.checkpoint.stateful import Stateful
from retrograd.distributed.groups import initialized_group
from retrograd.distributed.local_slice import LocalSlice
from retrograd.distributed.objects import all_gather_object, broadcast_object_list
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.nn.parameter import is_on_meta
from retrograd.pipelining.transports import get_transport
from retrograd.pipelining.transports.process_group import ProcessGroup, default_group

StateDict = Mapping[str, Any]


def save(
    state_dict: StateDict,
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_writer: FileSystemWriter | None = None,
    planner: DefaultSavePlanner | None = None,
    process_group: ProcessGroup | None = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> None:
    """Write a state dict into a folder, each rank its parts; all ranks must call it.

    state_dict: nested dicts and lists of tensors, `DTensor`s, numbers, text and None, and objects with `state_dict` and
    `load_state_dict`, such as models and `Stateful` ones.  Each rank has a part of a `DTensor`, such as a parameter of
    `fully_shard` and a state of its optimizer; another tensor is the same on all ranks that have one of its name, which
    write a part of it each.
    Values that are no tensors are those of the first rank that has them.
    checkpoint_id: the folder, which all ranks reach; or storage_writer, which has it.  Its earlier checkpoint stays
    valid until the new one is complete.
    no_dist: this process alone; so too without a process group.  planner and use_collectives have no effect.

    Raises, on every rank, the first error of a rank: OSError, TypeError for values that JSON and safetensors do not
    hold and for keys such as 1 and "1" of one dict, ValueError for parts with gaps or overlaps, or without a folder.

    >>> import retrograd as rg, tempfile
    >>> import retrograd.distributed.checkpoint as checkpoint
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     checkpoint.save({"model": {"weight": rg.ones(3)}, "step": 7}, checkpoint_id=folder)
    ...     state = {"model": {"weight": rg.zeros(3)}, "step": 0}
    ...     checkpoint.load(state, checkpoint_id=folder)
    >>> state
    {'model': {'weight': tensor([1., 1., 1.])}, 'step': 7}
    """
    group, folder = _group(process_group, no_dist), _folder("save", checkpoint_id, storage_writer)
    _write(_Plan(state_dict), folder, group)


def async_save(
    state_dict: StateDict,
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_writer: FileSystemWriter | None = None,
    planner: DefaultSavePlanner | None = None,
    process_group: ProcessGroup | None = None,
    async_checkpointer_type: Any = None,
    async_stager: Any = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> "PendingSave":
    """Copy a state dict, and write the copy in the background; return a future.

    The step is held up by the copy, before which the ranks agree on the save; none waits for the copy of another.  The
    files are written by a thread of each rank; the checkpoint is valid when
    `result()` of the future has returned, which all ranks must call.  Until then the folder has the earlier one.
    `destroy_process_group` calls it for saves whose result nobody has asked for.  Arguments that `save` does not have
    are without effect.

    Raises TypeError as `save` does; other errors are raised by `result()`.
    """
    group, folder = _group(process_group, no_dist), _folder("async_save", checkpoint_id, storage_writer)
    return PendingSave(_Plan(state_dict), folder, group)


class PendingSave:
    """The future of a save in the background."""

    def __init__(self, plan: "_Plan", folder: Path, group: ProcessGroup) -> None:
        self._plan, self._folder, self._group = plan, folder, group
        self._rows: Future[dict[str, Any]] = Future()
        self._ended = False
        self._running = _prepare(plan, folder, group)
        self._registered = (default_group() or group).before_destroy
        self._registered.append(self.result)
        try:
            plan.copy()
        except Exception as error:  # as MemoryError: all ranks learn of it by `result()`
            self._rows.set_exception(error)
        else:
            Thread(target=self._write, daemon=True).start()

    def done(self) -> bool:
        """Return whether this rank has written its files."""
        return self._rows.done()

    def result(self, timeout: float | None = None) -> None:
        """Wait for the files of all ranks, and complete the checkpoint; all ranks must call it.

        Raises, on every rank, the first error of a rank.  `timeout` has no effect.
        """
        if self._ended:
            return
        self._ended = True
        self._registered.remove(self.result)
        error, rows = self._rows.exception(), None
        if error is None:
            rows = self._rows.result()
        _complete(self._plan, self._folder, self._running, self._group, rows, error)

    def _write(self) -> None:
        try:
            self._rows.set_result(_write_part(self._plan, self._folder, self._running, self._group))
        except BaseException as error:
            self._rows.set_exception(error)


def load(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_reader: FileSystemReader | None = None,
    planner: DefaultLoadPlanner | None = None,
    process_group: ProcessGroup | None = None,
    no_dist: bool = False,
) -> None:
    """Read a checkpoint into the tensors and parts of a state dict, in place; other values are replaced.

    Each rank reads only the elements that it has, whatever ranks and parts have saved them, and those between them in a
    file where these are at most a page.  Only the names of the state dict are read.
    Objects with `state_dict` and `load_state_dict` get their state by the latter.
    planner: with `DefaultLoadPlanner(allow_partial_load=True)`, names that the checkpoint lacks are left as they are.

    Raises FileNotFoundError if the folder has no complete checkpoint, KeyError for a name that it lacks, ValueError for
    another shape or dtype, before anything is changed, and without a folder.
    """
    folder = _folder("load", checkpoint_id, storage_reader)
    manifest = layout.read_manifest(folder)
    states = _states(state_dict)
    layout.expect_stored(states, manifest)
    found = [(path, target) for path, target in layout.leaves(states) if not isinstance(target, dict | list | tuple)]
    if planner is not None and planner.allow_partial_load:
        found = [(path, target) for path, target in found if layout.has(manifest, layout.name_of(path))]
    for path, target in found:
        _check_target(layout.name_of(path), target, manifest)
    with no_grad():
        for path, target in found:
            name = layout.name_of(path)
            if isinstance(target, Tensor | LocalSlice):
                layout.read_into(layout.as_slice(target), folder, manifest["tensors"][name])
            else:
                _replaced(states, path, manifest["values"][name])
    for key, value in state_dict.items():
        if isinstance(value, Stateful):
            value.load_state_dict(states[key])
        else:
            state_dict[key] = states[key]


def _states(state_dict: StateDict) -> dict[str, Any]:
    """Return the state dict with the states of objects in their place."""
    return {key: value.state_dict() if isinstance(value, Stateful) else value for key, value in state_dict.items()}


class _Plan:
    """The slices and values that a rank writes, by name; values are no tensors.  paths: the keys of each name."""

    def __init__(self, state_dict: StateDict) -> None:
        self.slices: dict[str, LocalSlice] = {}
        self.values: dict[str, Any] = {}
        self.paths: dict[str, layout.Keys] = {}
        for path, value in layout.leaves(_states(state_dict)):
            name = layout.name_of(path)
            if name in self.paths:
                raise TypeError(f"checkpoint: the keys {self.paths[name]} and {path} have the same name, {name!r}")
            self.paths[name] = path
            if isinstance(value, Tensor | LocalSlice):
                piece = layout.as_slice(value).share()
                self.slices[name] = replace(piece, tensor=piece.tensor.detach())
            elif value is None or isinstance(value, bool | int | float | str | dict | list | tuple):  # empty ones
                self.values[name] = value
            else:
                raise TypeError(f"checkpoint: {name} is a {type(value).__name__}, which a checkpoint cannot hold")

    def ranges(self) -> set[tuple[Any, ...]]:
        """Return the names of this rank's slices, with their box, their first element and the one after the last."""
        return {(name, piece.box, piece.low, piece.high) for name, piece in self.slices.items()}

    def share_copies(self, rank: int, ranges: Sequence[Collection[tuple[Any, ...]]]) -> None:
        """Leave to this rank an equal part of what other ranks have too, given the `ranges` of all.

        The first rank saves tensors without elements.
        """
        pieces, self.slices = self.slices, {}
        for name, piece in pieces.items():
            owners = [other for other, each in enumerate(ranges) if (name, piece.box, piece.low, piece.high) in each]
            own = replace(piece, copy=owners.index(rank), copies=len(owners)).share()
            if own.tensor.numel() or (own.low == 0 and rank == owners[0]):
                self.slices[name] = own

    def copy(self) -> None:
        """Replace the tensors by copies."""
        self.slices = {
            name: replace(piece, tensor=piece.tensor.detach().clone()) for name, piece in self.slices.items()
        }


def _write(plan: _Plan, folder: Path, group: ProcessGroup) -> None:
    running = _prepare(plan, folder, group)
    error, rows = None, None
    try:
        rows = _write_part(plan, folder, running, group)
    except Exception as failure:
        error = failure
    _complete(plan, folder, running, group, rows, error)


def _write_part(plan: _Plan, folder: Path, running: RunningSave, group: ProcessGroup) -> dict[str, Any]:
    """Write the file of this rank, and return what the manifest says of it."""
    running.check_folder(folder, group.rank())
    return layout.write_part(folder, running.number, group.rank(), plan.slices)


def _prepare(plan: _Plan, folder: Path, group: ProcessGroup) -> RunningSave:
    """Make the folder, share what several ranks have, and return the save, which has the same number on all ranks."""
    running, error = None, None
    if group.rank() == 0:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            running = RunningSave.begin(folder)
        except (OSError, ValueError) as failure:
            error = failure
    found: list[Any] = [None] * group.size()
    all_gather_object(found, (running and running.number, error, plan.ranges()), group)
    number, error, _ = found[0]
    if error is not None:
        raise error
    plan.share_copies(group.rank(), [ranges for *_, ranges in found])
    return running or RunningSave(number)


def _complete(
    plan: _Plan,
    folder: Path,
    running: RunningSave,
    group: ProcessGroup,
    rows: dict[str, Any] | None,
    error: BaseException | None,
) -> None:
    """Write the manifest when all ranks have written their files; raise the first error of a rank on all of them."""
    found: list[Any] = [None] * group.size()
    all_gather_object(found, (rows, plan.values, plan.paths, error), group)
    failure = next((failed for *_, failed in found if failed is not None), None)
    if group.rank() == 0:
        try:
            if failure is None:
                rows_of, values, paths, _ = zip(*found, strict=True)
                layout.write_manifest(folder, running.number, rows_of, layout.merged(values), layout.merged(paths))
        except Exception as failed:
            failure = failed
        try:
            running.end(folder)
            remove_leftovers(folder)
        except (OSError, ValueError) as failed:
            failure = failure or failed
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


def _replaced(tree: Any, path: layout.Keys, value: Any) -> Any:
    """Return nested dicts and lists with another value, in place; tuples are replaced."""
    if not path:
        return value
    key, rest = path[0], path[1:]
    if isinstance(tree, tuple):
        return tuple(_replaced(x, rest, value) if index == key else x for index, x in enumerate(tree))
    tree[key] = _replaced(tree[key], rest, value)
    return tree


def _folder(
    call: str, given: str | os.PathLike[str] | None, storage: FileSystemWriter | FileSystemReader | None
) -> Path:
    """Return the folder of a checkpoint, which is given as such or by its writer or reader."""
    path = given if storage is None or given is not None else storage.path
    if path is None:
        raise ValueError(f"{call}: no folder is given; pass checkpoint_id=PATH, or a FileSystemWriter or -Reader of it")
    return Path(path)


def _group(given: ProcessGroup | None, alone: bool) -> ProcessGroup:
    if alone or (given is None and default_group() is None):
        return ProcessGroup(get_transport("threads"))
    return initialized_group(given)


suggest_in_module(globals())
