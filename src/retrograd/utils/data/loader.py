"""`DataLoader`: batches of a dataset, prefetched by workers."""

import multiprocessing
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from itertools import repeat
from multiprocessing.context import BaseContext
from typing import Any, Generic

from retrograd.backend.devices import device_named
from retrograd.foundation.describe_value import describe
from retrograd.foundation.number_arguments import check_number
from retrograd.foundation.source_location import warn_user
from retrograd.foundation.suggestions import suggests_keywords
from retrograd.ops.generator import Generator, resolve_generator
from retrograd.utils.data.collate import default_collate, default_convert, pin_batch
from retrograd.utils.data.dataset import Dataset, IterableDataset, T, note_examples
from retrograd.utils.data.sampler import BatchSampler, RandomSampler, SequentialSampler
from retrograd.utils.data.worker import Epoch, Exhausted, Failure, FetchSettings
from retrograd.utils.data.worker_pool import ProcessWorker, ThreadWorker, Worker

DEFAULT_PREFETCH_FACTOR = 2


# Attributes from which others are derived in `__init__`; setting one later would have no effect, or half of it.
_FIXED = {"batch_size", "batch_sampler", "dataset", "drop_last", "persistent_workers", "sampler"}


class _Batches:
    """An iterator over batches, whose length is that of its loader."""

    def __init__(self, loader: "DataLoader[Any]", batches: Iterator[Any]) -> None:
        self._loader = loader
        self._batches = batches  # a Failure is raised in place of its batch; the next ones follow it
        self._yielded = 0
        self.close = getattr(batches, "close", lambda: None)  # ends workers, before the iterator is collected

    def __iter__(self) -> "_Batches":
        return self

    def __next__(self) -> Any:
        batch = next(self._batches)
        if isinstance(batch, Failure):
            error = batch.error
            del batch.error  # no frame may hold the error, whose traceback holds the frames
            try:
                raise error
            finally:
                del error
        self._yielded += 1
        self._loader._check_stated_length(self._yielded)
        return pin_batch(batch) if self._loader._pins else batch

    def __len__(self) -> int:
        return len(self._loader)


@suggests_keywords
class DataLoader(Generic[T]):
    """Iterates over batches of a dataset; workers prefetch, and the order does not depend on them.

    dataset: examples by index (`__getitem__` and `__len__`: a Dataset, an array, a list) or an iterable (an
    IterableDataset, or another). batch_size: examples in a batch; None: no batches, single examples. shuffle:
    in another random order each time, drawn from `generator`, by default the default one. sampler: a custom order;
    batch_sampler: a custom order of batches. drop_last: drop an incomplete last batch. collate_fn: combines a list of
    examples into a batch, by default `default_collate`; `nested_collate` accepts examples that differ in shape.

    num_workers: how many prefetch, each up to `prefetch_factor` batches, by default 2; 0: no prefetching.
    multiprocessing_context: None for threads, which share the dataset; "spawn", "fork", "forkserver" or a context of
    `multiprocessing` for processes, each with a copy of it. worker_init_fn(worker_id) runs first in each worker, where
    `get_worker_info` describes the worker; random draws there come from the worker's own generator, seeded by
    `generator` and the worker's index. timeout: maximum seconds to wait for a batch, 0 for no limit.
    persistent_workers: reuse workers in the next iteration. pin_memory: batches in pinned memory, from which copies to
    a GPU need no staging; without a GPU it has no effect, and warns if it is True. in_order, pin_memory_device: taken
    for PyTorch's calls; batches are always in order, and the device is that of `retrograd.cuda`.

    An error of the dataset or of `collate_fn` has a note with the indices of its examples; those of an iterable are
    counted from 0, in each worker. An error is raised in place of its batch, with its traceback; the next
    batches follow it. Workers end with the iteration, even if that is left early.

    Raises ValueError and TypeError for settings that conflict or are out of range.

    >>> import retrograd as rg
    >>> from retrograd.utils.data import TensorDataset
    >>> loader = DataLoader(TensorDataset(rg.arange(5)), batch_size=2)
    >>> len(loader), [x for x, in loader]
    (3, [tensor([0, 1]), tensor([2, 3]), tensor([4])])
    """

    _stated_length: int | None = None  # that of an iterable, once `len` has asked for it

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[list[Any]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None,
        multiprocessing_context: str | BaseContext | None = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        self._pins = pin_memory and device_named("cuda") is not None
        if pin_memory and not self._pins:
            warn_user("DataLoader: pin_memory has no effect, because there is no GPU to copy to")
        self.pin_memory, self.pin_memory_device = pin_memory, pin_memory_device
        self.dataset = dataset
        self._iterable = _is_iterable_only(dataset)
        if self._iterable:
            _check_iterable_arguments(dataset, shuffle, sampler, batch_sampler, num_workers)
        _check_workers(num_workers, prefetch_factor, persistent_workers, timeout)
        _check_batches(batch_size, shuffle, sampler, batch_sampler, drop_last)
        self.batch_size = None if batch_sampler is not None else batch_size
        self.drop_last = drop_last
        self.sampler = sampler if sampler is not None else self._make_sampler(shuffle, generator)
        batched = batch_size is not None and not self._iterable
        self.batch_sampler = BatchSampler(self.sampler, batch_size or 1, drop_last) if batched else None
        if batch_sampler is not None:
            self.batch_sampler = batch_sampler  # type: ignore[assignment]
        self._auto_collation = self.batch_sampler is not None or batch_size is not None
        if not (collate_fn is None or callable(collate_fn)):
            raise TypeError(
                f"DataLoader: collate_fn must be a function of a list of examples, got {describe(collate_fn)}"
            )
        self.collate_fn = collate_fn or (default_collate if self._auto_collation else default_convert)
        self.generator = generator
        self.num_workers = num_workers
        self.timeout = timeout
        self.in_order = in_order
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = _resolve_context(multiprocessing_context, num_workers)
        self.prefetch_factor = prefetch_factor or (DEFAULT_PREFETCH_FACTOR if num_workers else None)
        self.persistent_workers = persistent_workers
        self._idle_workers: list[Worker] = []
        self._complete = True

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _FIXED and "_complete" in self.__dict__:
            raise ValueError(f"DataLoader: {name} attribute should not be set after DataLoader is initialized")
        super().__setattr__(name, value)

    def __repr__(self) -> str:
        data = type(self.dataset).__name__ + (f" of {len(self.dataset)}" if hasattr(self.dataset, "__len__") else "")
        order = self.sampler if isinstance(self.batch_sampler, BatchSampler | None) else self.batch_sampler
        settings = f"batch_size={self.batch_size}, sampler={type(order).__name__}, num_workers={self.num_workers}"
        return f"DataLoader({data}, {settings})"

    def __len__(self) -> int:
        """Return the number of batches; TypeError if the dataset has no length."""
        if self.batch_sampler is not None:
            return len(self.batch_sampler)
        if not self._iterable:
            return len(self.sampler)  # type: ignore[arg-type]
        self._stated_length = len(self.dataset)
        if self.batch_size is None:
            return self._stated_length
        whole, rest = divmod(self._stated_length, self.batch_size)
        return whole + (rest > 0 and not self.drop_last)

    def _check_stated_length(self, count: int) -> None:
        """Warn if there are more batches of an iterable than it said that it has examples, when it was asked."""
        if self._stated_length is not None and count > self._stated_length:
            workers = ": each worker must yield its own part, see get_worker_info()" if self.num_workers else ""
            warn_user(
                f"Length of IterableDataset {describe(self.dataset)} was reported to be {self._stated_length} (when "
                f"accessing len(dataloader)), but {count} samples have been fetched{workers}"
            )

    def __iter__(self) -> Iterator[Any]:
        return self._get_iterator()

    def _get_iterator(self) -> Iterator[Any]:
        """Return an iterator over the batches: PyTorch's name, which subclasses override."""
        settings = FetchSettings(
            self.dataset, self.collate_fn, self._auto_collation, self._iterable, self.drop_last, self.num_workers,
            self.worker_init_fn,
        )  # fmt: skip
        # Drawn even without workers: so the order of examples does not depend on them.
        seed = int(resolve_generator(self.generator).draw("integers", 2**62))
        tasks = iter(self._tasks())
        workers = self.num_workers
        batches = self._yield_batches(settings, seed, tasks) if workers else _load_batches(settings, tasks)
        return _Batches(self, batches)

    # ------------------------------------------------------------------------------------------------ parts

    def _make_sampler(self, shuffle: bool | None, generator: Generator | None) -> Iterable[Any]:
        if self._iterable:
            return repeat(None)
        return RandomSampler(self.dataset, generator=generator) if shuffle else SequentialSampler(self.dataset)

    def _tasks(self) -> Iterable[Any]:
        """Yield the content of each batch: indices of examples; for an iterable, their number."""
        if self._iterable:
            return repeat(self.batch_size or 1)
        return self.sampler if self.batch_sampler is None else self.batch_sampler

    def _yield_batches(self, settings: FetchSettings, seed: int, tasks: Iterator[Any]) -> Iterator[Any]:
        """Yield the workers' results in task order: worker i of n does tasks i, i + n, ..."""
        workers, self._idle_workers = self._idle_workers, []  # a concurrent iteration has its own workers
        pending: deque[tuple[Worker, Any]] = deque()
        finished = False
        try:
            for number in range(len(workers), self.num_workers):
                workers.append(self._start_worker(settings, number))
            for worker in workers:
                worker.send(Epoch(seed))
            for worker, task in zip(workers * (self.prefetch_factor or DEFAULT_PREFETCH_FACTOR), tasks, strict=False):
                _submit(worker, task, pending)
            yield from self._yield_results(pending, tasks)
            finished = True
        except GeneratorExit:
            finished = True
            raise
        finally:
            self._release_workers(workers, pending, keep=finished and self.persistent_workers)

    def _yield_results(self, pending: "deque[tuple[Worker, Any]]", tasks: Iterator[Any]) -> Iterator[Any]:
        while pending:
            worker, task = pending[0]
            try:
                result = worker.receive(self.timeout or None)
            except TimeoutError:
                raise RuntimeError(f"DataLoader: no batch came within timeout={self.timeout} seconds") from None
            pending.popleft()
            if isinstance(result, Failure) and not self._iterable:
                note_examples(result.error, "a worker", task)
            if result is not Exhausted:
                for next_task in tasks:
                    _submit(worker, next_task, pending)
                    break
                yield result

    def _start_worker(self, settings: FetchSettings, number: int) -> Worker:
        context = self.multiprocessing_context
        return ThreadWorker(settings, number) if context is None else ProcessWorker(settings, number, context)

    def _release_workers(self, workers: list[Worker], pending: "deque[tuple[Worker, Any]]", keep: bool) -> None:
        """End the workers, or keep them for the next iteration after their remaining tasks."""
        try:
            for worker, _ in pending if keep else ():
                worker.receive(None)
            if keep:
                _stop(self._idle_workers)  # those of a concurrent iteration that ended before
                self._idle_workers = workers
        except BaseException:
            keep = False
            raise
        finally:
            if not keep:
                _stop(workers)

    def __del__(self) -> None:
        _stop(self.__dict__.get("_idle_workers", []))


def _load_batches(settings: FetchSettings, tasks: Iterator[Any]) -> Iterator[Any]:
    """Yield batches without workers."""
    fetch = settings.fetcher()
    for task in tasks:
        try:
            batch = fetch(task)
        except Exhausted:
            return
        except Exception as error:
            batch = Failure(error)
        yield batch


def _submit(worker: Worker, task: Any, pending: "deque[tuple[Worker, Any]]") -> None:
    worker.send(task)
    pending.append((worker, task))


def _stop(workers: list[Worker]) -> None:
    with ExitStack() as stack:  # after an interrupt, too
        for worker in workers:
            stack.callback(worker.stop)
        for worker in workers:  # all at once, before each is waited for
            worker.send(None)


# ---------------------------------------------------------------------------------------------- the settings


def _is_iterable_only(dataset: Any) -> bool:
    if isinstance(dataset, Dataset):
        return isinstance(dataset, IterableDataset)
    if hasattr(dataset, "column_names"):
        raise TypeError("DataLoader: a table has columns in the first place; ArrowDataset(table) has its rows")
    if hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__"):
        return False
    if not hasattr(dataset, "__iter__"):
        raise TypeError(f"DataLoader: expected a dataset, an array or an iterable, got {type(dataset).__name__}")
    return True


def _check_iterable_arguments(dataset: Any, shuffle: Any, sampler: Any, batch_sampler: Any, num_workers: int) -> None:
    for name, given in (("shuffle", shuffle or None), ("sampler", sampler), ("batch_sampler", batch_sampler)):
        if given is not None:
            raise ValueError(
                f"DataLoader with IterableDataset: expected unspecified {name} option, got {describe(given)}"
            )
    if not isinstance(dataset, IterableDataset) and num_workers > 1:
        raise ValueError(
            f"DataLoader: each of {num_workers} workers would yield all examples of this {type(dataset).__name__}; use "
            f"an IterableDataset that asks get_worker_info() for its part"
        )


def _check_workers(num_workers: int, prefetch_factor: int | None, persistent_workers: bool, timeout: float) -> None:
    for name, number in (("num_workers", num_workers), ("timeout", timeout)):
        check_number(f"DataLoader: {name}", float, number)
        if number < 0:
            raise ValueError(f"DataLoader: {name} option should be non-negative, but got {name}={describe(number)}")
    if prefetch_factor is not None and not num_workers:
        raise ValueError("prefetch_factor option could only be specified in multiprocessing; set num_workers, too")
    if prefetch_factor is not None and prefetch_factor < 1:
        raise ValueError(f"DataLoader: prefetch_factor must be at least 1, got {describe(prefetch_factor)}")
    if persistent_workers and not num_workers:
        raise ValueError("DataLoader: persistent_workers option needs num_workers > 0")


def _check_batches(batch_size: Any, shuffle: Any, sampler: Any, batch_sampler: Any, drop_last: Any) -> None:
    for name, given in (("sampler", sampler), ("batch_sampler", batch_sampler)):
        if isinstance(given, type) or not (given is None or hasattr(given, "__iter__")):
            raise TypeError(f"DataLoader: {name} must be an iterable of indices, got {describe(given)}")
    if sampler is not None and shuffle:
        raise ValueError("DataLoader: sampler option is mutually exclusive with shuffle; a sampler has its own order")
    if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
        raise ValueError("batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last")
    if batch_size is None and drop_last:
        raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
    if batch_size is not None and (not isinstance(batch_size, int) or batch_size < 1):
        raise ValueError(
            f"DataLoader: batch_size should be a positive integer value or None, but got {describe(batch_size)}"
        )


def _resolve_context(given: str | BaseContext | None, num_workers: int) -> BaseContext | None:
    if isinstance(given, str):
        if given not in multiprocessing.get_all_start_methods():
            raise ValueError(
                f"DataLoader: multiprocessing_context must be one of {multiprocessing.get_all_start_methods()}, a "
                f"context, or None for threads, got {given!r}"
            )
        given = multiprocessing.get_context(given)
    if given is not None and not num_workers:
        raise ValueError("DataLoader: multiprocessing_context can only be used with workers; set num_workers")
    if given is not None and not hasattr(given, "Process"):
        raise TypeError(
            f"DataLoader: multiprocessing_context option should be a valid context object or a string, got "
            f"{describe(given)}"
        )
    return given
