"""The work of a loader's worker, in a thread or a process."""

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any

from retrograd.core.blocks import generator_block
from retrograd.ops.generator import Generator, default_generator, redirect_draws
from retrograd.utils.data.collate import default_collate
from retrograd.utils.data.dataset import Subset, TensorDataset, example_at, examples_at, note_examples


@dataclass(frozen=True)
class WorkerInfo:
    """The index of a worker, the number of workers, its seed, and its dataset."""

    id: int
    num_workers: int
    seed: int
    dataset: Any = field(repr=False)


class _ThreadLocalInfo(threading.local):
    info: WorkerInfo | None = None


_local = _ThreadLocalInfo()


def get_worker_info() -> WorkerInfo | None:
    """Return the description of the worker this runs in: `id`, `num_workers`, `seed`, `dataset`; None elsewhere.

    >>> get_worker_info() is None
    True
    """
    return _local.info


def thread_safe_generator() -> Generator | None:
    """Return the generator of the loader's worker that this runs in; None elsewhere: the default one may be used.

    >>> thread_safe_generator() is None
    True
    """
    return None if _local.info is None else worker_generator.generator


@dataclass(frozen=True)
class FetchSettings:
    """The part of a loader's settings that workers need."""

    dataset: Any
    collate_fn: Callable[[Any], Any]
    batched: bool
    iterable: bool
    drop_last: bool
    num_workers: int
    worker_init_fn: Callable[[int], Any] | None

    def fetcher(self) -> Callable[[Any], Any]:
        """Return a function from a task to a batch: a task is indices of examples, or for an iterable their number.

        It raises `Exhausted` at the end of an iterable. Errors of the dataset and of `collate_fn` get a note with the
        indices of their examples; the examples of an iterable are counted from 0.
        """
        if not self.iterable:
            return self._fetch_by_index
        items = enumerate(_note_errors(self.dataset))
        return lambda count: self._fetch_next(items, count)

    def _fetch_by_index(self, task: Any) -> Any:
        if self.batched and self.collate_fn is default_collate and _is_tensors(self.dataset):
            return list(example_at(self.dataset, list(task)))  # all at once: the same as stacking single ones
        return self._collate((examples_at if self.batched else example_at)(self.dataset, task), task)

    def _fetch_next(self, items: Iterator[tuple[int, Any]], count: int) -> Any:
        numbered = list(islice(items, count))
        if not numbered or (self.batched and self.drop_last and len(numbered) < count):
            raise Exhausted
        numbers, examples = zip(*numbered, strict=True)
        return self._collate(list(examples), list(numbers)) if self.batched else self._collate(examples[0], numbers[0])

    def _collate(self, examples: Any, indices: Any) -> Any:
        try:
            return self.collate_fn(examples)
        except Exception as error:
            note_examples(error, "collate_fn", indices)
            raise


def _note_errors(dataset: Iterable[Any]) -> Iterator[Any]:
    """Yield the examples of an iterable; an error of it gets a note with the index of the example."""
    index = 0
    try:
        for example in dataset:
            yield example
            index += 1
    except Exception as error:
        note_examples(error, "the dataset", index)
        raise


class Exhausted(Exception):  # noqa: N818 (a signal, not an error)
    """An iterable dataset has no more examples."""


@dataclass(frozen=True)
class Epoch:
    """The start of an epoch, with this seed."""

    seed: int


@dataclass
class Failure:
    """An error of a worker, sent to the loader."""

    error: BaseException


def work(settings: FetchSettings, worker: int, tasks: Iterable[Any]) -> Iterator[Any]:
    """Yield the results of tasks: a batch, a Failure, or the class Ended. An Epoch has no result."""
    fetch: Callable[[Any], Any] | Failure = Failure(RuntimeError("a worker got a task before the epoch began"))
    ready = False
    for task in tasks:
        if isinstance(task, Epoch):
            _local.info = WorkerInfo(worker, settings.num_workers, task.seed + worker, settings.dataset)
            worker_generator.manual_seed(task.seed + worker)
            fetch = _run_or_fail(partial(_start_epoch, settings, worker, not ready))
            ready = True
        else:
            yield fetch if isinstance(fetch, Failure) else _run_or_fail(partial(fetch, task))


def _start_epoch(settings: FetchSettings, worker: int, first: bool) -> Any:
    if first and settings.worker_init_fn is not None:
        settings.worker_init_fn(worker)
    return settings.fetcher()


def _run_or_fail(action: Callable[[], Any]) -> Any:
    try:
        return action()
    except Exhausted:
        return Exhausted
    except BaseException as error:
        return Failure(error)


class _ThreadLocalGenerator(threading.local):
    """The generator that replaces the default one in a worker's thread."""

    def __init__(self) -> None:
        self.generator = Generator()

    def manual_seed(self, seed: int) -> None:
        """Reseed this worker's generator."""
        self.generator.manual_seed(seed % 2**63)


worker_generator = _ThreadLocalGenerator()


@generator_block
def use_worker_generator() -> Iterator[None]:
    """In this thread, redirect draws from the default generator to the worker's own."""
    own = worker_generator.generator
    with redirect_draws(lambda generator: own if generator is default_generator else generator):
        yield


def _is_tensors(dataset: Any) -> bool:
    """Whether a list of indices gives all those examples at once, already stacked."""
    while type(dataset) is Subset:
        dataset = dataset.dataset
    return type(dataset) is TensorDataset
