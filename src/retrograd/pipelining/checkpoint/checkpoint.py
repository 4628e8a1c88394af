"""Checkpoints of training: each rank writes the tensors it trains; a checkpoint is complete or absent."""

import os
import re
import secrets
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from retrograd.foundation.source_location import warn_user
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.interop.atomic_write import name_in_errors, sync_folder
from retrograd.interop.file_locks import open_locked, remove_unlocked
from retrograd.interop.json_values import StorageError
from retrograd.nn import Module
from retrograd.nn.parameter import is_on_meta
from retrograd.ops.generator import default_generator
from retrograd.optim import Optimizer
from retrograd.pipelining.checkpoint.manifest import (
    Content,
    find_damage,
    read,
    write_common,
    write_manifest,
    write_part,
)
from retrograd.pipelining.checkpoint.matching import (
    Scheduler,
    groups_of,
    load_states,
    match_state,
    states_of,
    stored_names,
)
from retrograd.pipelining.pipeline_trainer import Pipeline

_STEP = re.compile(r"step-(\d{8}|[1-9]\d{8,})")
_UNFINISHED = ".step-*.tmp"


class Restored(NamedTuple):
    """The result of `restore`: the step to continue after, and the `extra` that was passed to `save`."""

    step: int
    extra: Any


class Checkpoints:
    """The checkpoints of one training run, in their own folder.

    folder: created when first needed.  If ranks are processes, all of them must see the same folder.
    keep: how many checkpoints to retain; older ones are deleted once a new one is complete.  None: all.

    A checkpoint holds the model's parameters and buffers under the model's own names, the optimizer's state by
    parameter name, and the state of the default random generator.  It can be restored with any number of stages and
    ranks, any transport, and the unsplit model.  Loading executes no code from a file.

    Raises ValueError for `keep` below 1.

    >>> import retrograd as rg, tempfile
    >>> from retrograd.pipelining import Pipeline
    >>> model = rg.nn.Sequential(rg.nn.Linear(4, 8), rg.nn.Tanh(), rg.nn.Linear(8, 1))
    >>> optimizer = rg.optim.AdamW(model.parameters())
    >>> p = Pipeline(model, stages=2, loss_fn=rg.nn.functional.mse_loss)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     checkpoints = Checkpoints(folder)
    ...     restored = checkpoints.restore(p, optimizer)
    ...     for step in range(restored.step + 1 if restored else 0, 3):
    ...         loss = p.step(rg.randn(6, 4), target=rg.randn(6, 1))
    ...         optimizer.step()
    ...         optimizer.zero_grad()
    ...         checkpoints.save(step, p, optimizer)
    ...     checkpoints.steps(), checkpoints.restore(model)
    ([1, 2], Restored(step=2, extra=None))
    """

    def __init__(self, folder: str | os.PathLike[str], keep: int | None = 2) -> None:
        if keep is not None and (not isinstance(keep, int) or keep < 1):
            raise ValueError(f"Checkpoints: keep must be an integer of at least 1, or None, got {keep!r}")
        self.folder = Path(folder)
        self.keep = keep
        # The checkpoints after the restored one, which the next `save` deletes: the identity of the folder by step.
        self._abandoned: dict[int, tuple[int, int] | None] = {}

    def steps(self) -> list[int]:
        """Return the sorted steps that have a checkpoint; unfinished checkpoints are not listed."""
        if not self.folder.is_dir():
            return []
        found = [(path, _STEP.fullmatch(path.name)) for path in self.folder.iterdir()]
        return sorted(int(match[1]) for path, match in found if match and path.is_dir())

    def latest(self) -> int | None:
        """Return the last step that has a checkpoint, or None."""
        return max(self.steps(), default=None)

    # -------------------------------------------------------------------------------------------------- writing

    def save(
        self,
        step: int,
        pipeline: Pipeline | Module,
        optimizer: Optimizer | None = None,
        scheduler: Scheduler | None = None,
        extra: Any = None,
    ) -> None:
        """Write a checkpoint of a step, best after the optimizer's step: gradients are not saved.

        pipeline: a pipeline, or a plain model in a script of one process.  If ranks are processes, all must call this.
        scheduler: anything with `state_dict` and `load_state_dict` of plain data.
        extra: other values that the script needs to resume: numbers, text, bytes, and lists, tuples and dicts of
         them; NumPy arrays come back as lists.  The value of rank 0 is saved.

        If the process is killed at any moment, the earlier checkpoints remain, with or without the new one.  After an
        earlier step was restored, the first `save` deletes the checkpoints that were later then, because they belong to
        the abandoned run.

        Raises FileExistsError if there is otherwise a checkpoint of this or a later step, ValueError for optimizer
        parameters that the model lacks, and on all ranks if they save other steps, FileNotFoundError if they have other
        folders, TypeError or StorageError for values that cannot be stored, and OSError that
        names the checkpoint if it cannot be written.
        """
        if type(step) is not int or step < 0:
            raise ValueError(f"save: step must be an integer of at least 0, got {step!r}")
        ranks = _ranks(pipeline)
        stored = stored_names(ranks.model)
        groups = None if optimizer is None else groups_of(optimizer, ranks.model)
        common = write_common(stored, groups, None if scheduler is None else scheduler.state_dict(), extra)
        tensors, homes = ranks.model.state_dict(), ranks.homes()
        states = {} if optimizer is None else states_of(optimizer, ranks.model)
        locks: list[int | None] = []
        begun = ranks.on_ranks(lambda rank: (self._begin(step, locks) if rank == 0 else None, step))
        unfinished, target = self.folder / begun[0][0], self.folder / _name(step)

        def write(rank: int) -> dict[str, Any]:
            # The remainder is needed because a process with all ranks may count fewer ranks than the pipeline will
            # have.
            self._check_alike(begun[0][1], step, unfinished, rank)
            mine = {name for name, home in homes.items() if home % len(begun) == rank}
            own = {name: tensor for name, tensor in tensors.items() if name in mine and stored[name] == name}
            with name_in_errors(target):
                return write_part(unfinished, rank, own, {name: states[name] for name in states if name in mine})

        try:
            parts = ranks.on_ranks(write)
            ranks.on_ranks(_on_rank_0(lambda: self._finish(unfinished, step, parts, common)))
        except Exception:
            if ranks.rank == 0:  # stop before writing the manifest if the disk is full
                shutil.rmtree(unfinished, ignore_errors=True)
            raise
        finally:
            for lock in locks:
                if lock is not None:
                    os.close(lock)

    def _check_alike(self, of_first: int, step: int, unfinished: Path, rank: int) -> None:
        """Raise ValueError for another step than that of rank 0, FileNotFoundError for another folder."""
        if step != of_first:
            raise ValueError(
                f"save: rank {rank} saves step {step}, and rank 0 step {of_first}; all ranks must save the same step"
            )
        if not unfinished.is_dir():
            raise FileNotFoundError(
                f"save: rank 0 does not write to {self.folder}, which is the folder of rank {rank}; all ranks must "
                f"pass the same folder and see it"
            )

    def _begin(self, step: int, locks: list[int | None]) -> str:
        """Delete leftovers of killed saves, and return the name of a new folder, whose lock is added to `locks`.

        The operating system frees the lock of a process that is killed, so a folder without one is a leftover.
        """
        later = [one for one in self.steps() if one >= step and not self._is_abandoned(one)]
        if later:
            raise FileExistsError(
                f"save: {self.folder} has checkpoints of step {', '.join(map(str, later))}, which step {step} would "
                f"not follow; restore() an earlier one first, or use another folder"
            )
        self.folder.mkdir(parents=True, exist_ok=True)
        for leftover in self.folder.glob(_UNFINISHED):
            remove_unlocked(leftover)
        unfinished = self.folder / _temporary_name(_name(step))
        with name_in_errors(self.folder / _name(step)):
            locks.append(open_locked(unfinished, folder=True))
        return unfinished.name

    def _finish(self, unfinished: Path, step: int, parts: list[Any], common: dict[str, Any]) -> None:
        """Turn the written files into a checkpoint, and delete checkpoints that are no longer wanted."""
        target = self.folder / _name(step)
        with name_in_errors(target):
            write_manifest(unfinished, step, parts, common)
            if self._is_abandoned(step):
                self._delete(step)
            os.replace(unfinished, target)  # an error if another job has saved this step meanwhile
            sync_folder(self.folder)
        earlier = [one for one in self.steps() if one <= step]
        unwanted = [] if self.keep is None else earlier[: -self.keep]
        for one in [*unwanted, *filter(self._is_abandoned, self.steps())]:
            self._delete(one)
        self._abandoned = {}

    def _is_abandoned(self, step: int) -> bool:
        """Return whether a checkpoint is of the run that a `restore` of an earlier step has left."""
        identity = self._identity(step)
        return identity is not None and self._abandoned.get(step) == identity

    def _identity(self, step: int) -> tuple[int, int] | None:
        """Return what differs for each folder of a checkpoint; None if there is none."""
        try:
            found = (self.folder / _name(step)).stat()
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_mtime_ns

    def _delete(self, step: int) -> None:
        """Rename a checkpoint, then delete it, so that an interruption leaves no incomplete one."""
        path = self.folder / _name(step)
        renamed = path.with_name(_temporary_name(path.name))
        os.replace(path, renamed)
        shutil.rmtree(renamed, ignore_errors=True)

    # -------------------------------------------------------------------------------------------------- reading

    def restore(
        self,
        pipeline: Pipeline | Module,
        optimizer: Optimizer | None = None,
        scheduler: Scheduler | None = None,
        *,
        step: int | None = None,
    ) -> Restored | None:
        """Load a checkpoint into the model, the optimizer, the learning rate scheduler and the default generator.

        step: the step to restore; by default the last undamaged one, with a warning for each damaged one.

        Returns None if there is no checkpoint.  Given the same data, the losses that follow are equal to those of
        an uninterrupted run, to the last bit.  If ranks are processes, all of them must call this, and each gets the
        full model state.  If a model is on the device "meta", a process reads only the tensors that have memory, with
        their optimizer states: call `Pipeline.materialize` first.  If the number of ranks has changed, all generators
        continue from the state of rank 0.

        Raises ValueError, before anything has changed, if names or shapes of the model or groups and settings of the
        optimizer differ, and lists them; FileNotFoundError if there is no checkpoint of `step`; and StorageError if it
        is damaged, if all are, or if a later release wrote it.  All of these name the checkpoint.
        """
        ranks = _ranks(pipeline)
        steps = ranks.on_ranks(_on_rank_0(lambda: self._candidates(step)))
        found = self._first_valid(ranks, steps[0], len(steps))
        if found is None:
            return None
        path = self.folder / _name(found)
        here: list[tuple[Content, Any]] = []

        def prepare(rank: int) -> None:
            if rank == ranks.rank:
                content = read(path, _names_on_meta(ranks.model))
                here.append((content, match_state(str(path), content, ranks.model, optimizer, scheduler)))

        ranks.on_ranks(prepare)
        [(content, optimizer_state)] = here
        try:
            load_states(content, optimizer_state, optimizer, scheduler)
        except Exception as error:
            raise StorageError(f"restore: {path} has a state that can't be loaded: {error}") from error
        ranks.load_state_dict(content.model)
        default_generator._set_plain_state(content.rng[ranks.rank if len(content.rng) == len(steps) else 0])
        ranks.on_ranks(_on_rank_0(lambda: self._abandon(found)))
        return Restored(found, content.extra)

    def _abandon(self, step: int) -> None:
        """Let the next `save` delete the checkpoints after a step that exist now."""
        self._abandoned = {one: self._identity(one) for one in self.steps() if one > step}

    def _candidates(self, step: int | None) -> list[int]:
        """Return the checkpoints to try, the best one first."""
        steps = self.steps()
        if step is not None and step not in steps:
            raise FileNotFoundError(
                f"restore: {self.folder} has no checkpoint of step {step}; there are: {', '.join(map(str, steps))}"
            )
        return steps[::-1] if step is None else [step]

    def _first_valid(self, ranks: "_ShardedModel", steps: list[int], count: int) -> int | None:
        """Return the first undamaged checkpoint; each rank verifies a share of the checksums, and all agree on the
        result."""
        problems = list[str]()
        for step in steps:
            path = self.folder / _name(step)
            damages = ranks.on_ranks(partial(_find_damage, path, count))
            problem = next((damage_found for damage_found in damages if damage_found is not None), None)
            if problem is None:
                self._warn(ranks, problems)
                return step
            problems.append(f"{path} is damaged: {problem}")
        if problems:
            raise StorageError("restore: " + "; ".join(problems))
        return None

    def _warn(self, ranks: "_ShardedModel", problems: list[str]) -> None:
        for problem in problems if ranks.rank == 0 else ():
            warn_user(f"{problem}; the one before is restored", RuntimeWarning)


def _names_on_meta(model: Module) -> set[str]:
    """Return the names of the parameters and buffers that have no memory here."""
    return {name for name, x in model.state_dict(keep_vars=True).items() if is_on_meta(x)}


# ------------------------------------------------------------------------------------------------------ ranks


class _ShardedModel(Protocol):
    """The interface of a pipeline that checkpoints use."""

    model: Module

    @property
    def rank(self) -> int: ...

    def homes(self) -> dict[str, int]: ...

    def on_ranks(self, work: Callable[[int], Any]) -> list[Any]: ...

    def load_state_dict(self, state_dict: dict[str, Any]) -> Any: ...


class _UnsplitModel:
    """A model that is not split: this process is its only rank."""

    rank = 0

    def __init__(self, model: Module) -> None:
        self.model = model
        self.load_state_dict = model.load_state_dict

    def homes(self) -> dict[str, int]:
        return dict.fromkeys(self.model.state_dict(), 0)

    def on_ranks(self, work: Callable[[int], Any]) -> list[Any]:
        return [work(0)]


def _ranks(pipeline: Any) -> _ShardedModel:
    if not isinstance(pipeline, (Pipeline, Module)):
        raise TypeError(f"Checkpoints: expected a Pipeline or a Module, got {type(pipeline).__name__}")
    return _UnsplitModel(pipeline) if isinstance(pipeline, Module) else pipeline


def _on_rank_0(work: Callable[[], Any]) -> Callable[[int], Any]:
    return lambda rank: work() if rank == 0 else None


def _find_damage(folder: Path, ranks: int, rank: int) -> str | None:
    return find_damage(folder, slice(rank, None, ranks))


def _name(step: int) -> str:
    return f"step-{step:08}"


def _temporary_name(name: str) -> str:
    """Return a unique name for a temporary or deleted folder, which readers ignore."""
    return f".{name}.{secrets.token_hex(4)}.tmp"


suggest_in_module(globals())
