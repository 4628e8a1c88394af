"""Checkpoints of training: every rank writes what it trains, and all of it is there at once or not at all."""

import os
import re
import secrets
import shutil
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from retrograd.core.atomic_write import naming
from retrograd.export.json_values import StorageError
from retrograd.nn import Module
from retrograd.ops.generator import default_generator
from retrograd.optim import Optimizer
from retrograd.pipelining.checkpoint.manifest import (
    Content,
    damage,
    read,
    sync_folder,
    write_common,
    write_manifest,
    write_part,
)
from retrograd.pipelining.checkpoint.matching import Scheduler, fitted, groups_of, states_of, stored_names, take_over
from retrograd.pipelining.pipeline_trainer import Pipeline

_STEP = re.compile(r"step-(\d{8}|[1-9]\d{8,})")
_UNFINISHED = ".step-*.tmp"


class Restored(NamedTuple):
    """Where training goes on: after this step, and with what `save` got as `extra`."""

    step: int
    extra: Any


class Checkpoints:
    """The checkpoints of one training run, in a folder of its own.

    folder: made when it is first needed.  Where ranks are processes, all of them must see the same one.
    keep: how many checkpoints stay; older ones are deleted once a new one is whole.  None: all.

    A checkpoint has the model's parameters and buffers under the model's own names, the optimizer's state by the names
    of the parameters, and the state of the default generator of random numbers.  So it fits any number of stages and
    ranks, any transport, and the unsplit model.  No code from a file runs.

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
        self._at: int | None = None  # the step that was saved or restored last

    def steps(self) -> list[int]:
        """The steps of which there are checkpoints, in order; none of them is torn."""
        if not self.folder.is_dir():
            return []
        found = [(path, _STEP.fullmatch(path.name)) for path in self.folder.iterdir()]
        return sorted(int(match[1]) for path, match in found if match and path.is_dir())

    def latest(self) -> int | None:
        """The last step of which there is a checkpoint; None if there is none."""
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
        """Write a checkpoint of a step, best after the optimizer's step: gradients are not in it.

        pipeline: also a plain model, in a script of one process.  Where ranks are processes, all of them call this.
        scheduler: anything with `state_dict` and `load_state_dict` of plain data.
        extra: what else the script needs to go on: numbers, text, bytes, and lists, tuples and dicts of them; NumPy's
            arrays come back as lists.  Rank 0's is kept.

        Killed at any moment, this leaves what was there, or the new checkpoint as well.  Where an earlier step was
        restored, later checkpoints go with the first `save`: they belong to what was given up.

        Raises FileExistsError if there is a checkpoint of this step or a later one otherwise, ValueError for parameters
        of the optimizer that the model lacks, TypeError or StorageError for what can't be stored, and OSError that
        names the checkpoint where it can't be written.
        """
        if type(step) is not int or step < 0:
            raise ValueError(f"save: step must be an integer of at least 0, got {step!r}")
        ranks = _ranks(pipeline)
        stored = stored_names(ranks.model)
        groups = None if optimizer is None else groups_of(optimizer, ranks.model)
        common = write_common(stored, groups, None if scheduler is None else scheduler.state_dict(), extra)
        tensors, homes = ranks.model.state_dict(), ranks.homes()
        states = {} if optimizer is None else states_of(optimizer, ranks.model)
        begun = ranks.on_ranks(_at_first(lambda: self._begin(step)))
        unfinished, target = self.folder / begun[0], self.folder / _name(step)

        def write(rank: int) -> dict[str, Any]:
            # The remainder: a process that has all ranks may count fewer than there will be.
            mine = {name for name, home in homes.items() if home % len(begun) == rank}
            own = {name: tensor for name, tensor in tensors.items() if name in mine and stored[name] == name}
            with naming(target):
                return write_part(unfinished, rank, own, {name: states[name] for name in states if name in mine})

        try:
            parts = ranks.on_ranks(write)
            ranks.on_ranks(_at_first(lambda: self._finish(unfinished, step, parts, common)))
        except Exception:
            if ranks.rank == 0:  # a full disk has no room for what can't be finished
                shutil.rmtree(unfinished, ignore_errors=True)
            raise
        self._at = step

    def _begin(self, step: int) -> str:
        """Clean up, and make a folder to write to."""
        later = [one for one in self.steps() if one >= step]
        if later and (self._at is None or step <= self._at):
            raise FileExistsError(
                f"save: {self.folder} has checkpoints of step {', '.join(map(str, later))}, which step {step} would "
                f"not follow; restore() an earlier one first, or use another folder"
            )
        self.folder.mkdir(parents=True, exist_ok=True)
        for torn in self.folder.glob(_UNFINISHED):
            shutil.rmtree(torn, ignore_errors=True)
        unfinished = self.folder / _hidden(_name(step))
        with naming(self.folder / _name(step)):
            unfinished.mkdir()
        return unfinished.name

    def _finish(self, unfinished: Path, step: int, parts: list[Any], common: dict[str, Any]) -> None:
        """Make what was written a checkpoint, and delete others that are no longer wanted."""
        target = self.folder / _name(step)
        with naming(target):
            write_manifest(unfinished, step, parts, common)
            if target.exists():
                self._delete(step)
            os.replace(unfinished, target)
            sync_folder(self.folder)
        steps = self.steps()
        earlier = [one for one in steps if one <= step]
        kept = earlier if self.keep is None else earlier[-self.keep :]
        for one in steps:
            if one not in kept:
                self._delete(one)

    def _delete(self, step: int) -> None:
        """Take a checkpoint out of sight, then delete it: killed in between, it is not half there."""
        path = self.folder / _name(step)
        hidden = path.with_name(_hidden(path.name))
        os.replace(path, hidden)
        shutil.rmtree(hidden, ignore_errors=True)

    # -------------------------------------------------------------------------------------------------- reading

    def restore(
        self,
        pipeline: Pipeline | Module,
        optimizer: Optimizer | None = None,
        scheduler: Scheduler | None = None,
        *,
        step: int | None = None,
    ) -> Restored | None:
        """Put the model, the optimizer, the schedule and the default generator where a checkpoint has them.

        step: of this one; by default the last that is whole, with a warning for each that is damaged.

        Returns None where there is none.  Training goes on as it would have: with the same data, the losses that
        follow are the same to the last bit.  Where ranks are processes, all of them call this, and the model of each
        has the whole state.  With another number of ranks than before, all generators go on from rank 0's state.

        Raises ValueError, before anything has changed, where names or shapes of the model, or the groups and settings
        of the optimizer, are others, and lists them; FileNotFoundError where there is no checkpoint of `step`, and
        StorageError where it is damaged, all are, or one is of a later release. All of them name the checkpoint.
        """
        ranks = _ranks(pipeline)
        steps = ranks.on_ranks(_at_first(lambda: self._candidates(step)))
        found = self._undamaged(ranks, steps[0], len(steps))
        if found is None:
            return None
        path = self.folder / _name(found)
        here: list[tuple[Content, Any]] = []

        def prepare(rank: int) -> None:
            if rank == ranks.rank:
                content = read(path)
                here.append((content, fitted(str(path), content, ranks.model, optimizer, scheduler)))

        ranks.on_ranks(prepare)
        [(content, optimizer_state)] = here
        try:
            take_over(content, optimizer_state, optimizer, scheduler)
        except Exception as error:
            raise StorageError(f"restore: {path} has a state that can't be loaded: {error}") from error
        ranks.load_state_dict(content.model)
        default_generator.set_state(content.rng[ranks.rank if len(content.rng) == len(steps) else 0])
        self._at = found
        return Restored(found, content.extra)

    def _candidates(self, step: int | None) -> list[int]:
        """The checkpoints to try, the best one first."""
        steps = self.steps()
        if step is not None and step not in steps:
            raise FileNotFoundError(
                f"restore: {self.folder} has no checkpoint of step {step}; there are: {', '.join(map(str, steps))}"
            )
        return steps[::-1] if step is None else [step]

    def _undamaged(self, ranks: "_Ranks", steps: list[int], count: int) -> int | None:
        """The first checkpoint that is whole by its checksums, of which each rank computes some; the same for all."""
        problems = list[str]()
        for step in steps:
            path = self.folder / _name(step)
            verdicts = ranks.on_ranks(partial(_damage, path, count))
            problem = next((verdict for verdict in verdicts if verdict is not None), None)
            if problem is None:
                self._warn(ranks, problems)
                return step
            problems.append(f"{path} is damaged: {problem}")
        if problems:
            raise StorageError("restore: " + "; ".join(problems))
        return None

    def _warn(self, ranks: "_Ranks", problems: list[str]) -> None:
        for problem in problems if ranks.rank == 0 else ():
            warnings.warn(f"{problem}; the one before is restored", RuntimeWarning, stacklevel=4)


# ------------------------------------------------------------------------------------------------------ ranks


class _Ranks(Protocol):
    """What a checkpoint asks of a pipeline."""

    model: Module

    @property
    def rank(self) -> int: ...

    def homes(self) -> dict[str, int]: ...

    def on_ranks(self, work: Callable[[int], Any]) -> list[Any]: ...

    def load_state_dict(self, state_dict: dict[str, Any]) -> Any: ...


class _Whole:
    """A model that is not split: its only rank is this process."""

    rank = 0

    def __init__(self, model: Module) -> None:
        self.model = model
        self.load_state_dict = model.load_state_dict

    def homes(self) -> dict[str, int]:
        return dict.fromkeys(self.model.state_dict(), 0)

    def on_ranks(self, work: Callable[[int], Any]) -> list[Any]:
        return [work(0)]


def _ranks(pipeline: Any) -> _Ranks:
    if not isinstance(pipeline, (Pipeline, Module)):
        raise TypeError(f"Checkpoints: expected a Pipeline or a Module, got {type(pipeline).__name__}")
    return _Whole(pipeline) if isinstance(pipeline, Module) else pipeline


def _at_first(work: Callable[[], Any]) -> Callable[[int], Any]:
    return lambda rank: work() if rank == 0 else None


def _damage(folder: Path, ranks: int, rank: int) -> str | None:
    return damage(folder, slice(rank, None, ranks))


def _name(step: int) -> str:
    return f"step-{step:08}"


def _hidden(name: str) -> str:
    """A name that no other process uses, of what is not to be read."""
    return f".{name}.{secrets.token_hex(4)}.tmp"
