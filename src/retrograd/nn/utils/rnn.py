"""Sequences of different lengths, padded into one tensor or packed step by step."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from retrograd.core import Tensor, operator_named
from retrograd.core import dtype as dtypes
from retrograd.core.errors import OperandTypeError, OperandValueError
from retrograd.foundation.describe_value import describe
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.ops.as_tensor import as_tensor
from retrograd.ops.create import tensor

_cat = operator_named("cat")
_index_select = operator_named("index_select")
_pad = operator_named("pad")
_stack = operator_named("stack")


class _PackedFields(NamedTuple):
    data: Any
    batch_sizes: Any
    sorted_indices: Any = None
    unsorted_indices: Any = None


class PackedSequence(_PackedFields):
    """Sequences, the longest first, as rows: those of the first step, of the second step, and so on.

    `data` has shape (rows, ...). `batch_sizes` counts the sequences that have a row in each step. `sorted_indices` are
    the indices of the sorted sequences among the given ones, `unsorted_indices` the inverse, by default that of
    `sorted_indices`; None if they were given sorted.

    >>> import retrograd as rg
    >>> from retrograd.nn.utils.rnn import pack_sequence
    >>> packed = pack_sequence([rg.tensor([1, 2, 3]), rg.tensor([4])])
    >>> packed.data.tolist(), packed.batch_sizes.tolist()
    ([1, 4, 2, 3], [2, 1, 1])
    """

    __slots__ = ()

    def __new__(
        cls, data: Any, batch_sizes: Any = None, sorted_indices: Any = None, unsorted_indices: Any = None
    ) -> "PackedSequence":
        """Return the sequences; without the unsorted indices, those that invert the sorted ones."""
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> "PackedSequence":
        """Convert `data` as `Tensor.to` does, and move the indices to its device; return self if nothing changes."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        moved = [None if i is None else i.to(data.device) for i in (self.sorted_indices, self.unsorted_indices)]
        return PackedSequence(data, self.batch_sizes, *moved)

    def cpu(self) -> "PackedSequence":
        """Move to host memory."""
        return self.to("cpu")

    def cuda(self, device: Any = "cuda") -> "PackedSequence":
        """Move to a CUDA device; RuntimeError without one."""
        return self.to(device)

    def double(self) -> "PackedSequence":
        """Convert `data` to float64."""
        return self.to(dtypes.float64)

    def float(self) -> "PackedSequence":
        """Convert `data` to float32."""
        return self.to(dtypes.float32)

    def half(self) -> "PackedSequence":
        """Convert `data` to float16."""
        return self.to(dtypes.float16)

    def long(self) -> "PackedSequence":
        """Convert `data` to int64."""
        return self.to(dtypes.int64)

    def int(self) -> "PackedSequence":
        """Convert `data` to int32."""
        return self.to(dtypes.int32)

    def short(self) -> "PackedSequence":
        """Convert `data` to int16."""
        return self.to(dtypes.int16)

    def char(self) -> "PackedSequence":
        """Convert `data` to int8."""
        return self.to(dtypes.int8)

    def byte(self) -> "PackedSequence":
        """Convert `data` to uint8."""
        return self.to(dtypes.uint8)

    @property
    def is_cuda(self) -> bool:
        """Whether `data` is on a CUDA device."""
        return bool(self.data.is_cuda)

    def is_pinned(self) -> bool:
        """Whether `data` is in pinned host memory."""
        return bool(self.data.is_pinned())

    def pin_memory(self) -> "PackedSequence":
        """Copy all tensors to pinned host memory, where there are devices."""
        return PackedSequence(*(None if part is None else part.pin_memory() for part in self))


def pack_padded_sequence(
    input: Tensor, lengths: Tensor | Sequence[int], batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack the first `lengths[i]` steps of the sequences of a padded (T, N, ...), or (N, T, ...) if `batch_first`.

    Raises RuntimeError if lengths increase despite `enforce_sorted`, are below 1, or are not N values.

    >>> import retrograd as rg
    >>> from retrograd.nn.utils.rnn import pack_padded_sequence
    >>> pack_padded_sequence(rg.tensor([[1, 3], [2, 0]]), [2, 1]).data.tolist()
    [1, 3, 2]
    """
    rows = input.transpose(0, 1) if batch_first else input
    counts = [int(n) for n in as_tensor(lengths).tolist()]
    _check_lengths(counts, rows.shape, enforce_sorted)
    order = None
    if not enforce_sorted:
        order = sorted(range(len(counts)), key=lambda i: -counts[i])
        counts = [counts[i] for i in order]
        rows = _index_select(rows, 1, tensor(order))
    sizes = step_sizes(counts)
    data = _cat([rows[step, :size] for step, size in enumerate(sizes)])
    if order is None:
        return PackedSequence(data, tensor(sizes))
    return PackedSequence(data, tensor(sizes), tensor(order), tensor(inverse_permutation(order)))


def _check_lengths(counts: list[int], shape: tuple[int, ...], enforce_sorted: bool) -> None:
    steps, batch = shape[:2]
    if len(counts) != batch:
        raise RuntimeError(f"pack_padded_sequence: {len(counts)} lengths for {batch} sequences")
    if not counts or min(counts) < 1 or max(counts) > steps:
        raise RuntimeError(
            f"pack_padded_sequence: lengths must lie between 1 and the {steps} steps, got {counts}: "
            "Length of all samples has to be greater than 0"
        )
    if enforce_sorted and counts != sorted(counts, reverse=True):
        raise RuntimeError(
            f"pack_padded_sequence: `lengths` array must be sorted in decreasing order when `enforce_sorted` is True, "
            f"got {counts}; sort the sequences or pass enforce_sorted=False"
        )


def step_sizes(lengths: Sequence[int]) -> list[int]:
    """Return the number of sequences that have a row in each step; they are sorted, the longest first.

    >>> step_sizes([3, 1])
    [2, 1, 1]
    """
    sizes, number = [], len(lengths)
    for step in range(lengths[0] if lengths else 0):
        while lengths[number - 1] <= step:
            number -= 1
        sizes.append(number)
    return sizes


def inverse_permutation(order: Sequence[int]) -> list[int]:
    """Return the inverse of a permutation.

    >>> inverse_permutation([1, 2, 0])
    [2, 0, 1]
    """
    inverse = [0] * len(order)
    for position, number in enumerate(order):
        inverse[number] = position
    return inverse


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """Return the inverse of a permutation, both as tensors of integers; None gives None.

    >>> import retrograd as rg
    >>> invert_permutation(rg.tensor([1, 2, 0]))
    tensor([2, 0, 1])
    """
    return None if permutation is None else tensor(inverse_permutation([int(i) for i in permutation.tolist()]))


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Any, Any]:
    """Return the padded tensor (T, N, ...), or (N, T, ...) if `batch_first`, and the lengths, in the given order.

    `total_length`: pad to that many steps; ValueError if it is less than the longest sequence has.

    >>> import retrograd as rg
    >>> from retrograd.nn.utils.rnn import pack_sequence, pad_packed_sequence
    >>> packed = pack_sequence([rg.tensor([1, 2]), rg.tensor([3])])
    >>> padded, lengths = pad_packed_sequence(packed, batch_first=True)
    >>> padded.tolist(), lengths.tolist()
    ([[1, 2], [3, 0]], [2, 1])
    """
    sizes = sequence.batch_sizes.tolist()
    if total_length is not None and total_length < len(sizes):
        raise ValueError(f"pad_packed_sequence: total_length is {total_length}, but the longest has {len(sizes)} steps")
    rows = sequence.data.split(sizes)
    width, rest = sizes[0], (0, 0) * (sequence.data.ndim - 1)
    steps = [_pad(row, (*rest, 0, width - row.shape[0]), value=padding_value) for row in rows]
    missing = (len(sizes) if total_length is None else total_length) - len(sizes)
    padded = _pad(_stack(steps), (*rest, 0, 0, 0, missing), value=padding_value)
    lengths = tensor([sum(size > number for size in sizes) for number in range(width)])
    if sequence.unsorted_indices is not None:
        padded = _index_select(padded, 1, sequence.unsorted_indices)
        lengths = lengths[sequence.unsorted_indices]
    return (padded.transpose(0, 1) if batch_first else padded), lengths


def pad_sequence(
    sequences: Iterable[Tensor], batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Any:
    """Pad sequences (T_i, ...) into one tensor (T, N, ...), or (N, T, ...) if `batch_first`.

    >>> import retrograd as rg
    >>> from retrograd.nn.utils.rnn import pad_sequence
    >>> pad_sequence([rg.tensor([1, 2]), rg.tensor([3])], batch_first=True).tolist()
    [[1, 2], [3, 0]]
    """
    if padding_side not in ("right", "left"):
        raise OperandValueError(f"pad_sequence: padding_side must be 'right' or 'left', got {padding_side!r}")
    if not isinstance(sequences, Iterable):
        raise OperandTypeError(f"pad_sequence: Expected iterable for input sequences, got {describe(sequences)}")
    parts = list(sequences)
    if any(part.ndim == 0 for part in parts):
        raise OperandValueError(f"pad_sequence: expected a list of sequences, got {describe(sequences)}")
    if not parts:
        raise OperandValueError("pad_sequence: expected at least one sequence, got none")
    longest = max(part.shape[0] for part in parts)
    padded = []
    for part in parts:
        missing = longest - part.shape[0]
        ends = (0, missing) if padding_side == "right" else (missing, 0)
        padded.append(_pad(part, (*(0, 0) * (part.ndim - 1), *ends), value=padding_value))
    return _stack(padded, 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor | Sequence[int], batch_first: bool = False) -> list[Any]:
    """Return the first `lengths[i]` steps of each sequence of a padded tensor, as a list.

    >>> import retrograd as rg
    >>> from retrograd.nn.utils.rnn import unpad_sequence
    >>> [part.tolist() for part in unpad_sequence(rg.tensor([[1, 2], [3, 0]]), [2, 1], batch_first=True)]
    [[1, 2], [3]]
    """
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    counts = as_tensor(lengths).tolist()
    return [row[: int(count)] for row, count in zip(rows.unbind(0), counts, strict=True)]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack sequences (T_i, ...), given longest first unless `enforce_sorted` is False.

    >>> import retrograd as rg
    >>> from retrograd.nn.utils.rnn import pack_sequence
    >>> pack_sequence([rg.tensor([1]), rg.tensor([2, 3])], enforce_sorted=False).data.tolist()
    [2, 1, 3]
    """
    parts = list(sequences)
    return pack_padded_sequence(pad_sequence(parts), [len(part) for part in parts], enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Any]:
    """Return the packed sequences, in the given order.

    >>> import retrograd as rg
    >>> from retrograd.nn.utils.rnn import pack_sequence, unpack_sequence
    >>> [part.tolist() for part in unpack_sequence(pack_sequence([rg.tensor([1, 2]), rg.tensor([3])]))]
    [[1, 2], [3]]
    """
    return unpad_sequence(*pad_packed_sequence(packed_sequences, batch_first=True), batch_first=True)


suggest_in_module(globals())
