"""What a worker of a loader does, whether it is a thread or a process."""

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any

from retrograd.core.level import generator_block
from retrograd.ops.generator import Generator, default_generator, redirected
from retrograd.utils.data.collate import default_collate
from retrograd.utils.data.dataset import Subset, TensorDataset


@dataclass(frozen=True)
class WorkerInfo:
    """Which worker this is, of how many, its seed, and the dataset that it reads."""

    id: int
    num_workers: int
    seed: int
    dataset: Any = field(repr=False)


class _Here(threading.local):
    info: WorkerInfo | None = None


_here = _Here()


def get_worker_info() -> WorkerInfo | None:
    """In a worker of a loader which one it is: `id`, `num_workers`, `seed`, `dataset`; None elsewhere.

    >>> get_worker_info() is None
    True
    """
    return _here.info


@dataclass(frozen=True)
class Reading:
    """What to read, and how: the part of a loader's settings that workers know."""

    dataset: Any
    collate_fn: Callable[[Any], Any]
    batched: bool
    iterable: bool
    drop_last: bool
    num_workers: int
    worker_init_fn: Callable[[int], Any] | None

    def fetcher(self) -> Callable[[Any], Any]:
        """A function from a task to what the loader yields: numbers of examples, or of an iterable how many of them.

        It raises `Ended` where an iterable has no more.
        """
        if not self.iterable:
            return self._by_number
        items = iter(self.dataset)
        return lambda count: self._following(items, count)

    def _by_number(self, task: Any) -> Any:
        if not self.batched:
            return self.collate_fn(self.dataset[task])
        if self.collate_fn is default_collate and _is_tensors(self.dataset):
            return list(self.dataset[list(task)])  # all at once: the same as stacking one by one
        if hasattr(self.dataset, "__getitems__"):
            return self.collate_fn(self.dataset.__getitems__(task))
        return self.collate_fn([self.dataset[index] for index in task])

    def _following(self, items: Iterator[Any], count: int) -> Any:
        examples = list(islice(items, count))
        if not examples or (self.batched and self.drop_last and len(examples) < count):
            raise Ended
        return self.collate_fn(examples if self.batched else examples[0])


class Ended(Exception):  # noqa: N818 (no error, but news)
    """An iterable dataset has no more examples."""


@dataclass(frozen=True)
class Epoch:
    """A pass over the data begins, with this seed."""

    seed: int


@dataclass(frozen=True)
class Failure:
    """An error of a worker, on its way to the loader."""

    error: BaseException


def work(reading: Reading, worker: int, tasks: Iterable[Any]) -> Iterator[Any]:
    """The results of tasks: what the loader yields, a Failure, or Ended as a class. An Epoch has no result."""
    fetch: Callable[[Any], Any] | Failure = Failure(RuntimeError("a worker got a task before the epoch began"))
    ready = False
    for task in tasks:
        if isinstance(task, Epoch):
            _here.info = WorkerInfo(worker, reading.num_workers, task.seed + worker, reading.dataset)
            default_generator_here.manual_seed(task.seed + worker)
            fetch = _attempt(partial(_begin, reading, worker, not ready))
            ready = True
        else:
            yield fetch if isinstance(fetch, Failure) else _attempt(partial(fetch, task))


def _begin(reading: Reading, worker: int, first: bool) -> Any:
    if first and reading.worker_init_fn is not None:
        reading.worker_init_fn(worker)
    return reading.fetcher()


def _attempt(action: Callable[[], Any]) -> Any:
    try:
        return action()
    except Ended:
        return Ended
    except BaseException as error:
        return Failure(error)


class _Source(threading.local):
    """The generator that takes the place of the default one in a worker's thread."""

    def __init__(self) -> None:
        self.generator = Generator()

    def manual_seed(self, seed: int) -> None:
        """Start this worker's random numbers anew."""
        self.generator.manual_seed(seed % 2**63)


default_generator_here = _Source()


@generator_block
def own_randomness() -> Iterator[None]:
    """Inside, in this thread, what would draw from the default generator draws from the worker's own."""
    own = default_generator_here.generator
    with redirected(lambda generator: own if generator is default_generator else generator):
        yield


def _is_tensors(dataset: Any) -> bool:
    """Whether a list of numbers gets all those examples at once, put together already."""
    while type(dataset) is Subset:
        dataset = dataset.dataset
    return type(dataset) is TensorDataset
