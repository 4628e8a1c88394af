"""`Join`: training with different numbers of batches on the ranks."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from types import TracebackType
from typing import Any, NamedTuple

from retrograd.core import Tensor
from retrograd.distributed.collectives import all_reduce
from retrograd.distributed.groups import initialized_group
from retrograd.distributed.work import Work
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.ops.functions import functions
from retrograd.pipelining.transports.process_group import ProcessGroup


class JoinHook:
    """The hook of a `Joinable`, by which a rank without batches takes part in the operations of the others."""

    def main_hook(self) -> None:
        """Take part in the operations of one iteration of the ranks that have batches."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Finish, when no rank has batches; is_last_joiner: whether this rank was among the last that had some."""


class JoinConfig(NamedTuple):
    """How an object takes part in a `Join`; is_first: it tells the others that this rank has a batch."""

    enable: bool = False
    throw_on_early_termination: bool = False
    is_first: bool = False
    is_only: bool = False


class Joinable(ABC):
    """An object with operations between ranks in each iteration, which a `Join` can hold.

    Before these operations it calls `Join.notify_join_context(self)`.

    >>> import retrograd as rg
    >>> import retrograd.distributed as dist
    >>> from retrograd.distributed.algorithms.join import Join, Joinable, JoinHook
    >>> class Counter(Joinable, JoinHook):
    ...     total = 0
    ...     def count(self, number=1):
    ...         if number:
    ...             Join.notify_join_context(self)
    ...         found = rg.tensor(number)
    ...         dist.all_reduce(found)
    ...         self.total += found.item()
    ...     def main_hook(self):
    ...         self.count(0)
    ...     def join_hook(self, **kwargs):
    ...         return self
    ...     join_device, join_process_group = rg.device("cpu"), None
    >>> def script():
    ...     counter = Counter()
    ...     with Join([counter]):
    ...         for _ in range(1 + dist.get_rank()):
    ...             counter.count()
    ...     return counter.total
    >>> dist.run_threads(script, 3)
    [6, 6, 6]
    """

    _join_config = JoinConfig()

    @abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Return the hook of this object; kwargs: those of the `Join`."""

    @property
    @abstractmethod
    def join_device(self) -> Any:
        """Return the device of its tensors."""

    @property
    @abstractmethod
    def join_process_group(self) -> ProcessGroup | None:
        """Return its ranks; None: all."""


class Join:
    """A context in which a rank that has no more batches takes part in the operations of the others.

    joinables: each has a hook that takes part in its operations, in this order: the first one is the one whose
    operations come first in an iteration.  `DistributedDataParallel` and `ZeroRedundancyOptimizer` are such objects.
    enable: False has no effect on them.  throw_on_early_termination: raise RuntimeError on all ranks as soon as one is
    done.  kwargs: for all hooks, such as divide_by_initial_world_size, as in `DistributedDataParallel.join`.

    Raises ValueError for no objects, and for objects of different groups; TypeError for others.

    >>> import retrograd as rg
    >>> import retrograd.distributed as dist
    >>> from retrograd.distributed.algorithms.join import Join
    >>> def script():
    ...     model = rg.nn.parallel.DistributedDataParallel(rg.nn.Linear(2, 1))
    ...     with Join([model]):
    ...         for _ in range(1 + dist.get_rank()):
    ...             model.zero_grad()
    ...             model(rg.ones(4, 2)).mean().backward()
    ...     return model.module.bias.grad.item()
    >>> dist.run_threads(script, 2)
    [1.0, 0.5]
    """

    def __init__(
        self,
        joinables: Sequence[Joinable],
        enable: bool = True,
        throw_on_early_termination: bool = False,
        **kwargs: Any,
    ) -> None:
        if not joinables:
            raise ValueError("The join context manager requires at least one joinable")
        for one in joinables:
            if not isinstance(one, Joinable):
                raise TypeError(f"Join: expected Joinable objects, got {type(one).__name__}")
        if any(one.join_process_group is not joinables[0].join_process_group for one in joinables):
            raise ValueError("Using join context manager with multiple process groups")
        self._joinables, self._enable, self._throw = joinables, enable, throw_on_early_termination
        self._hooks = [one.join_hook(**kwargs) for one in joinables]
        self._set_configs(enable)

    def _set_configs(self, enable: bool) -> None:
        is_only = len(self._joinables) == 1
        for number, one in enumerate(self._joinables):
            one._join_config = JoinConfig(enable, self._throw, number == 0, is_only)

    def __enter__(self) -> None:
        """Begin; the configuration was made before."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if self._enable and kind is None:
                self._take_part()
        finally:
            self._set_configs(False)

    def _take_part(self) -> None:
        is_last = True
        while self._any_has_batches():
            for hook in self._hooks:
                hook.main_hook()
            is_last = False
        for hook in self._hooks:
            hook.post_hook(is_last)

    def _any_has_batches(self) -> bool:
        flags, work = _exchange_flags(self._joinables[0], False)
        work.wait()
        if self._throw:
            _raise_if_some_are_done(self._joinables[0], flags)
        return any(flags.tolist())

    @staticmethod
    def notify_join_context(joinable: Joinable) -> Work | None:
        """Tell the ranks without batches that this one has one; return the handle, None outside of a `Join`.

        Raises RuntimeError, on every rank, if one has none and throw_on_early_termination is set.
        """
        config = joinable._join_config
        if not (config.enable and config.is_first):
            return None
        flags, work = _exchange_flags(joinable, True)
        if config.throw_on_early_termination:
            work.wait()
            _raise_if_some_are_done(joinable, flags)
        return work


def _exchange_flags(joinable: Joinable, has_batch: bool) -> tuple[Tensor, Work]:
    """Start to exchange which ranks have a batch; return these flags by rank, and the handle."""
    group = _members(joinable)
    flags = functions["zeros"](group.size(), dtype="int32")
    flags[group.rank()] = int(has_batch)
    work = all_reduce(flags, group=group, async_op=True)
    assert work is not None  # this rank belongs to the group
    return flags, work


def _raise_if_some_are_done(joinable: Joinable, flags: Tensor) -> None:
    active = flags.tolist()
    if 0 < sum(active) < len(active):
        rank = _members(joinable).ranks[active.index(0)]
        raise RuntimeError(
            f"join: rank {rank} has no more batches, while other ranks have; "
            f"all ranks stop because of throw_on_early_termination"
        )


def _members(joinable: Joinable) -> ProcessGroup:
    return initialized_group(joinable.join_process_group)


suggest_in_module(globals())
