"""Datasets: examples by index, or as an iterable."""

import math
import operator
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from itertools import accumulate, chain
from typing import Any, Generic, TypeVar

from retrograd.core import Tensor
from retrograd.foundation.number_arguments import check_number
from retrograd.foundation.source_location import warn_user
from retrograd.foundation.suggestions import suggest_in_module, suggests_keywords
from retrograd.ops.as_tensor import as_tensor
from retrograd.ops.generator import Generator
from retrograd.ops.random import randperm

T = TypeVar("T", covariant=True)


@suggests_keywords
class Dataset(Generic[T]):
    """Examples by index: a subclass defines `__getitem__(index)`, and `__len__` if their number is known.

    If `__getitems__(indices)` is defined, which returns a list of examples, a loader asks for a whole batch at once.
    """

    def __getitem__(self, index: Any) -> T:
        raise NotImplementedError(f"{type(self).__name__} has no __getitem__(index); define it to return an example")

    def __add__(self, other: "Dataset[Any]") -> "ConcatDataset":
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T]):
    """Examples as an iterable: a subclass defines `__iter__`.

    Each worker of a loader iterates over all of it; `get_worker_info()` says which part to yield.
    """

    def __iter__(self) -> Iterator[T]:
        raise NotImplementedError(f"{type(self).__name__} has no __iter__(); define it to yield examples")

    def __add__(self, other: "Dataset[Any]") -> "ChainDataset":  # type: ignore[override]
        return ChainDataset([self, other])


class DatasetError(ValueError, AssertionError):
    """The error for datasets that cannot be combined; AssertionError in PyTorch."""


class IterableDatasetError(TypeError, AssertionError):
    """The error for an IterableDataset where examples are read by number; AssertionError in PyTorch."""


class ExampleIndexError(IndexError, ValueError):
    """The error for the index of an example that does not exist; ValueError in PyTorch for negative ones."""


def _describe(dataset: Any) -> str:
    """Return the class and the number of examples."""
    return f"{type(dataset).__name__}({len(dataset)} examples)"


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """A dataset of tuples of slices, one from each tensor, at an index along the first dimension.

    tensors: tensors, NumPy arrays, whose memory is shared, or nested tensors, whose components are the examples; all
    of one length. Raises ValueError for none, for a 0-d one and for lengths that differ.

    >>> import retrograd as rg
    >>> data = TensorDataset(rg.ones(3, 2), rg.arange(3))
    >>> len(data), data[1]
    (3, (tensor([1., 1.]), tensor(1)))
    """

    def __init__(self, *tensors: Any) -> None:
        self.tensors = tuple(as_tensor(tensor) for tensor in tensors)
        if not tensors or any(not tensor.ndim for tensor in self.tensors):
            raise DatasetError("TensorDataset: expected tensors with dimensions; the first one counts the examples")
        if len({len(tensor) for tensor in self.tensors}) > 1:
            lengths = ", ".join(str(len(tensor)) for tensor in self.tensors)
            raise DatasetError(f"TensorDataset: Size mismatch between tensors: they differ in length: {lengths}")

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __repr__(self) -> str:
        return _describe(self)

    def __len__(self) -> int:
        return len(self.tensors[0])


def examples_at(dataset: Any, indices: Sequence[int]) -> list[Any]:
    """Return the examples of a dataset at these indices, all at once if it has `__getitems__`; see `example_at`."""
    if hasattr(dataset, "__getitems__"):
        examples: list[Any] = example_at(dataset, indices, lambda dataset, indices: dataset.__getitems__(indices))
        return examples
    return [example_at(dataset, index) for index in indices]


def example_at(dataset: Any, index: Any, read: Callable[[Any, Any], Any] = operator.getitem) -> Any:
    """Return the example of a dataset at an index; its errors get a note with the index."""
    try:
        return read(dataset, index)
    except Exception as error:
        note_examples(error, "the dataset", index)
        raise


def note_examples(error: BaseException, source: str, indices: Any) -> None:
    """Add to an error which examples it was raised for: an index, or the indices of a batch."""
    shown = str(indices)
    shown = shown if len(shown) <= 80 else f"{shown[:77]}..."
    error.add_note(f"DataLoader: raised by {source} for the example{'s' * isinstance(indices, list | tuple)} {shown}")


class StackDataset(Dataset[Any]):
    """Examples of several datasets combined: tuples of them, or dicts if the datasets have names.

    Raises ValueError for none, for both kinds at once, and for lengths that differ.

    >>> StackDataset(x=[1, 2], y="ab")[1]
    {'x': 2, 'y': 'b'}
    """

    def __init__(self, *args: Sized, **kwargs: Sized) -> None:
        if bool(args) == bool(kwargs):
            raise ValueError("StackDataset: At least one dataset should be passed, all by position or all by name")
        self.datasets: Any = args or kwargs
        lengths = [len(dataset) for dataset in args or kwargs.values()]
        if len(set(lengths)) > 1:
            raise ValueError(f"StackDataset: Size mismatch between datasets: lengths {', '.join(map(str, lengths))}")
        self._length = lengths[0]

    def __getitem__(self, index: int) -> Any:
        if isinstance(self.datasets, dict):
            return {name: dataset[index] for name, dataset in self.datasets.items()}
        return tuple(dataset[index] for dataset in self.datasets)

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        """Return the examples at these indices."""
        if isinstance(self.datasets, dict):
            columns = [examples_at(dataset, indices) for dataset in self.datasets.values()]
            return [dict(zip(self.datasets, row, strict=True)) for row in zip(*columns, strict=True)]
        return list(zip(*(examples_at(dataset, indices) for dataset in self.datasets), strict=True))

    def __repr__(self) -> str:
        return _describe(self)

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[T]):
    """The examples of several datasets, one dataset after another.

    Raises ValueError for no dataset, and TypeError for an IterableDataset, which ChainDataset is for.

    >>> data = ConcatDataset([[1, 2], [3]])
    >>> len(data), data[2], data[-3]
    (3, 3, 1)
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise DatasetError("ConcatDataset: datasets should not be an empty iterable")
        if any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise IterableDatasetError("ConcatDataset does not support IterableDataset; use ChainDataset")
        self.cumulative_sizes = list(accumulate(len(dataset) for dataset in self.datasets))

    def __getitem__(self, index: int) -> T:
        position = index + len(self) if index < 0 else index
        if not 0 <= position < len(self):
            raise ExampleIndexError(f"ConcatDataset: index {index} is out of range for {len(self)} examples")
        dataset_index = bisect_right(self.cumulative_sizes, position)
        before: int = self.cumulative_sizes[dataset_index - 1] if dataset_index else 0
        return self.datasets[dataset_index][position - before]

    def __repr__(self) -> str:
        return _describe(self)

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]


class ChainDataset(IterableDataset[T]):
    """The examples of several iterable datasets, one after another.

    Raises TypeError for a dataset that is not iterable, whose examples `ConcatDataset` joins.

    >>> list(ChainDataset(["ab", "c"]))
    ['a', 'b', 'c']
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = datasets

    def __iter__(self) -> Iterator[T]:
        return chain.from_iterable(self._checked())

    def __len__(self) -> int:
        return sum(len(dataset) for dataset in self._checked())

    def _checked(self) -> Iterator[Any]:
        for dataset in self.datasets:
            if not hasattr(dataset, "__iter__"):
                kind = type(dataset).__name__
                raise IterableDatasetError(f"ChainDataset only supports IterableDataset, got {kind}; use ConcatDataset")
            yield dataset


class Subset(Dataset[T]):
    """The examples of a dataset at given indices.

    >>> Subset("abc", [2, 0])[1]
    'a'
    """

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> T:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: Sequence[int]) -> list[T]:
        """Return the examples at these positions."""
        return examples_at(self.dataset, [self.indices[i] for i in indices])

    def __repr__(self) -> str:
        return _describe(self)

    def __len__(self) -> int:
        return len(self.indices)


def random_split(
    dataset: Sized, lengths: Sequence[int | float], generator: Generator | None = None
) -> list[Subset[Any]]:
    """Split a dataset at random into parts that do not overlap.

    lengths: the number of examples of each part, or fractions with the sum 1; the remainder after rounding goes to the
    first parts, one each. Raises ValueError for lengths whose sum is not the number of examples.

    >>> import retrograd as rg
    >>> [len(part) for part in random_split(range(10), [0.75, 0.25], rg.Generator(0))]
    [8, 2]
    """
    count = len(dataset)
    check_number("random_split: lengths", Sequence[float], lengths)
    sizes = _sizes(lengths, count)
    order = randperm(count, generator=generator).tolist()
    ends = list(accumulate(sizes))
    return [Subset(dataset, order[end - size : end]) for size, end in zip(sizes, ends, strict=True)]


def _sizes(lengths: Sequence[int | float], count: int) -> list[int]:
    """Return the number of examples of each part."""
    if any(length < 0 for length in lengths):
        raise ValueError(f"random_split: lengths must be at least 0, got {list(lengths)}")
    if math.isclose(sum(lengths), 1) and any(isinstance(length, float) for length in lengths):
        sizes = [math.floor(count * length) for length in lengths]
        remainder = count - sum(sizes)
        sizes = [size + (i < remainder) for i, size in enumerate(sizes)]
        for i, size in enumerate(sizes):
            if not size:
                warn_user(f"random_split: Length of split at index {i} is 0. This might result in an empty dataset.")
        return sizes
    if sum(lengths) != count or not all(isinstance(length, int) for length in lengths):
        raise ValueError(
            f"random_split: lengths must be whole numbers with the sum {count}, the number of examples, or fractions "
            f"with the sum 1, got {list(lengths)}: Sum of input lengths does not equal the length of the input dataset"
        )
    return [int(length) for length in lengths]


suggest_in_module(globals())
