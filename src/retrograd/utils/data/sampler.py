"""Samplers: the order of a dataset's examples."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice, repeat
from typing import Any, Generic, TypeVar

from retrograd.core import registry
from retrograd.foundation.describe_value import describe
from retrograd.foundation.suggestions import suggests_keywords
from retrograd.ops.as_tensor import as_tensor
from retrograd.ops.generator import Generator
from retrograd.ops.random import randint, randperm

T = TypeVar("T", covariant=True)


@suggests_keywords
class Sampler(Generic[T]):
    """The order of examples: a subclass defines `__iter__`, which yields their indices, or lists of them."""

    def __iter__(self) -> Iterator[T]:
        raise NotImplementedError(f"{type(self).__name__} has no __iter__(); define it to yield numbers of examples")


def length_of(dataset: Any) -> int:
    """Return the number of examples; TypeError for a dataset that does not say it."""
    if not hasattr(dataset, "__len__"):
        raise TypeError(
            f"{type(dataset).__name__} has no length: define __len__, or make it an IterableDataset with __iter__"
        )
    return len(dataset)


class SequentialSampler(Sampler[int]):
    """The indices of all examples, from the first to the last."""

    def __init__(self, data_source: Any) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(length_of(self.data_source)))

    def __len__(self) -> int:
        return length_of(self.data_source)


class RandomSampler(Sampler[int]):
    """The indices of examples in random order, another one each time.

    replacement: draw each from all, so that some repeat. num_samples: how many, by default the number of
    examples; without replacement, more than that iterates over all examples again. generator: the source of random
    draws, by default the default one.

    Raises TypeError for a `replacement` that is not a bool, and ValueError for `num_samples` below 1 and empty data.

    >>> import retrograd as rg
    >>> sorted(RandomSampler("abc", generator=rg.Generator(0)))
    [0, 1, 2]
    """

    def __init__(
        self,
        data_source: Any,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        if not isinstance(replacement, bool):
            raise TypeError(f"RandomSampler: replacement should be a boolean value, but got {describe(replacement)}")
        self.data_source = data_source
        self.replacement = replacement
        self.generator = generator
        self._num_samples = None if num_samples is None else _count("RandomSampler", num_samples)
        if num_samples is None and not hasattr(data_source, "__len__"):
            raise TypeError(f"RandomSampler: data_source must have a length, __len__(), got {describe(data_source)}")
        if not self.num_samples:
            raise ValueError("RandomSampler: num_samples should be a positive integer value, but the data is empty")

    @property
    def num_samples(self) -> int:
        """Return the number of indices."""
        return length_of(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        count = length_of(self.data_source)
        if self.replacement:
            return iter(randint(count, (self.num_samples,), generator=self.generator).tolist())
        rounds = (randperm(count, generator=self.generator).tolist() for _ in repeat(None))
        return islice(chain.from_iterable(rounds), self.num_samples)

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """Given indices of examples, in random order."""

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for position in randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[position]

    def __len__(self) -> int:
        return len(self.indices)


class ReplacementError(TypeError, ValueError):
    """The error for a `replacement` of weighted draws that is not a bool; ValueError in PyTorch."""


class WeightedRandomSampler(Sampler[int]):
    """Indices of examples, drawn with probabilities proportional to their weights.

    Raises ValueError for weights that are not a vector, and TypeError and ValueError as RandomSampler does.

    >>> import retrograd as rg
    >>> list(WeightedRandomSampler([0.0, 1.0, 0.0], 4))
    [1, 1, 1, 1]
    """

    def __init__(
        self,
        weights: Sequence[float],
        num_samples: int,
        replacement: bool = True,
        generator: Generator | None = None,
    ) -> None:
        if not isinstance(replacement, bool):
            raise ReplacementError(
                f"WeightedRandomSampler: replacement should be a boolean, got {describe(replacement)}"
            )
        self.weights = as_tensor(weights).to("float64")
        if self.weights.ndim != 1:
            raise ValueError(f"WeightedRandomSampler: weights should be a 1d sequence, got shape {self.weights.shape}")
        self.num_samples = _count("WeightedRandomSampler", num_samples)
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        sampled = registry["multinomial"](self.weights, self.num_samples, self.replacement, generator=self.generator)
        return iter(sampled.tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """The indices of a sampler in lists of `batch_size`; an incomplete last one is dropped with `drop_last`.

    >>> list(BatchSampler(range(5), 2, False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        self.sampler = sampler
        self.batch_size = _count("BatchSampler", batch_size, "batch_size")
        if not isinstance(drop_last, bool):
            raise ValueError(
                f"BatchSampler: drop_last should be a boolean value, but got drop_last={describe(drop_last)}"
            )
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        numbers = iter(self.sampler)
        while batch := list(islice(numbers, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        count = len(self.sampler)  # type: ignore[arg-type]
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)


def _no_ranks() -> int:
    raise ValueError(
        "DistributedSampler: Default process group has not been initialized, please make sure to call "
        "init_process_group, or pass num_replicas and rank"
    )


class default_ranks:
    """The rank of this process and the number of ranks; `retrograd.distributed`, when it is imported, sets both."""

    rank: Callable[[], int] = staticmethod(_no_ranks)
    size: Callable[[], int] = staticmethod(_no_ranks)


class DistributedSampler(Sampler[int]):
    """The part of one replica, of several that train on one dataset: disjoint parts of equal size.

    num_replicas, rank: their number, and the index of this one; by default those of the process group. shuffle: in
    random order, the same for all replicas, determined by `seed` and `set_epoch`. drop_last: drop examples that would
    make parts unequal; otherwise some repeat. Raises ValueError for a rank that is not below
    num_replicas, and without a process group to ask for them.

    >>> [list(DistributedSampler(range(5), 2, rank, shuffle=False)) for rank in range(2)]
    [[0, 2, 4], [1, 3, 0]]
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        num_replicas = default_ranks.size() if num_replicas is None else num_replicas
        rank = default_ranks.rank() if rank is None else rank
        if not 0 <= rank < num_replicas:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.shuffle = shuffle
        self.seed = seed
        self.drop_last = drop_last
        self.epoch = 0
        if not hasattr(dataset, "__len__"):
            raise TypeError(f"DistributedSampler: dataset must have a length, __len__(), got {describe(dataset)}")
        share = len(dataset) / num_replicas
        self.num_samples = math.floor(share) if drop_last else math.ceil(share)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self) -> Iterator[int]:
        count = len(self.dataset)
        generator = Generator(self.seed + self.epoch)
        order = randperm(count, generator=generator).tolist() if self.shuffle else range(count)
        indices = chain.from_iterable(repeat(order)) if count else iter(())
        return islice(indices, self.rank, self.total_size, self.num_replicas)

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Select the random order by the index of the epoch."""
        self.epoch = epoch


def _count(name: str, value: Any, what: str = "num_samples") -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name}: {what} should be a positive integer value, but got {what}={describe(value)}")
    return value
