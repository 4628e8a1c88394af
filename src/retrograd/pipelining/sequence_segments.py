"""Sequences that are cut into segments along their length, for pipelines under `seq1f1b`."""

import math
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from itertools import pairwise
from operator import index
from typing import Any

from retrograd import autograd
from retrograd.autograd import Function
from retrograd.core import Tensor, registry
from retrograd.core.blocks import generator_block
from retrograd.core.level import transform_level
from retrograd.foundation.describe_value import describe
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.nn import Module
from retrograd.pipelining.microbatch import chunk_sizes


def segment_lengths(length: int, segments: int, quadratic: float = 0.0) -> list[int]:
    """Return the lengths of segments that take about equally long, the earlier ones longer.

    quadratic: the seconds of attention from one token to another, divided by those of all else for a token.  The cost
     of the first t tokens is t + quadratic * t * t; 0: segments are equally long, up to one token.

    Source: "Seq1F1B" (see `seq1f1b`), section 3.4: segments of equal cost.

    Raises TypeError for numbers that are no integers, and ValueError for fewer tokens than segments, or a negative
    number.

    >>> segment_lengths(64, 4), segment_lengths(64, 4, quadratic=0.1)
    ([16, 16, 16, 16], [30, 14, 11, 9])
    """
    length, segments = index(length), index(segments)
    if not 1 <= segments <= length:
        raise ValueError(f"segment_lengths: {length} tokens can't make {segments} segments")
    if not 0 <= quadratic < math.inf:
        raise ValueError(f"segment_lengths: quadratic must be a number of at least 0, got {quadratic!r}")
    total = length + quadratic * length * length
    ends = [0]
    for number in range(1, segments + 1):
        share = total * number / segments
        end = 2 * share / (1 + math.sqrt(1 + 4 * quadratic * share))  # the root of t + quadratic t² = share
        # At least one token for this segment, and for each that follows.
        ends.append(min(max(round(end), ends[-1] + 1), length - segments + number))
    return [end - start for start, end in pairwise(ends)]


def split_segments(x: Tensor, micro_batches: int, lengths: Sequence[int], dim: int = 1) -> list[Tensor]:
    """Return the segments of all microbatches, in the order of their numbers under `seq1f1b`.

    x: a batch of sequences, divided along dimension 0 into microbatches as in `Pipeline.step`, and along `dim` into
     segments of these lengths.

    Raises ValueError if the lengths are not those of the sequences, or below 1, for more microbatches than sequences,
    and for a `dim` that `x` does not have, or that is 0.

    >>> import retrograd as rg
    >>> [part.shape for part in split_segments(rg.ones(4, 6), micro_batches=2, lengths=[4, 2])]
    [(2, 4), (2, 2), (2, 4), (2, 2)]
    """
    if not -x.ndim <= dim < x.ndim or dim % x.ndim == 0:
        raise ValueError(f"split_segments: x, of shape {x.shape}, cannot be cut into segments along dimension {dim}")
    if min(lengths, default=1) < 1:
        raise ValueError(f"split_segments: lengths {list(lengths)} must be at least 1")
    if sum(lengths) != x.shape[dim]:
        raise ValueError(f"split_segments: lengths {list(lengths)} sum up to {sum(lengths)}, not to {x.shape[dim]}")
    parts = registry["split"](x, chunk_sizes(x.shape[0], micro_batches), 0)
    return [segment for part in parts for segment in registry["split"](part, list(lengths), dim)]


_probing: ContextVar[bool] = ContextVar("probing", default=False)


@generator_block
def probing_segments() -> Iterator[None]:
    """Let segments run in the block out of their order: tokens before them are zeros, and caches do not change.

    A pipeline runs its first segment of a new length by itself, to find out what the stages return.
    """
    token = _probing.set(True)
    try:
        yield
    finally:
        _probing.reset(token)


class _Segment:
    """Keys and values of a segment, and the gradients that later segments give to them.

    length: its tokens.  level: the function transform in which it runs, if any.  pending: for each tensor, how many
    later segments have read it, and not yet given it a gradient.  backward_has_run: whether a gradient of a later
    segment would come too late.
    """

    def __init__(self, values: list[Any], length: int, level: Any) -> None:
        self.values = values
        self.length = length
        self.level = level
        self.requires_grad = [value.requires_grad for value in values]
        self.gradients: list[Any] = [None] * len(values)
        self.pending = [0] * len(values)
        self.backward_has_run = False

    def add(self, number: int, gradient: Any) -> None:
        before = self.gradients[number]
        self.gradients[number] = gradient if before is None else before + gradient
        self.pending[number] -= 1


class _Store(Function):
    """The identity, whose backward pass adds the gradients of later segments."""

    @staticmethod
    def forward(ctx: Any, value: Any, segment: _Segment, number: int) -> Any:
        ctx.segment, ctx.number = segment, number
        return registry["clone"](value)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        segment, number = ctx.segment, ctx.number
        if segment.pending[number]:
            raise RuntimeError(
                "SegmentCache: the whole backward passes of later segments must come before that of an earlier one, as "
                "under seq1f1b; a schedule with other orders, or with backward passes in halves, is not possible"
            )
        segment.backward_has_run = True
        segment.values[number] = None  # no later segment reads it
        (gradient,), later = gradients, segment.gradients[number]
        return (gradient if later is None else gradient + later), None, None


class SegmentCache(Module):
    """The keys and values of one attention layer for the segments of a microbatch before the present one.

    Call it in the forward pass of a stage with the position of the segment's first token, which the stages pass on with
    the segment; 0 begins another microbatch.  It returns keys and values of all segments so far, joined along `dim`.
    Gradients of earlier segments' keys and values reach them in their own backward pass, which comes later (as
    `seq1f1b` has it), so the gradients are those of whole sequences.  It has no parameters and no state.

    In a function transform all segments run in the same call of the function, which is differentiated as a whole.

    Raises ValueError for a position that is not the length of the segments so far, as if a stage recomputes, and for
    other numbers of tensors or tokens.  Raises RuntimeError after the backward pass of a segment before, and in the
    backward pass if an earlier segment comes first, or if it is in two halves.

    >>> import retrograd as rg
    >>> cache = SegmentCache(dim=1)
    >>> first, second = (rg.ones(2, length, 8, requires_grad=True) for length in (3, 2))
    >>> keys, values = cache(0, first, first)
    >>> keys, values = cache(3, second, second)
    >>> keys.shape
    (2, 5, 8)
    """

    def __init__(self, dim: int = -2) -> None:
        super().__init__()
        self.dim = index(dim)
        self._segments: list[_Segment] = []  # replaced, never changed: replicas begin with the same list

    def extra_repr(self) -> str:
        """Return the dimension of tokens."""
        return f"dim={self.dim}"

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_segments": []}

    def forward(self, start: Any, *values: Any) -> list[Any]:
        """Return keys and values, or any tensors, of the segments before joined with those of the present one."""
        begin, length, level = _position(start), self._length(values), transform_level()
        if _probing.get():
            return [registry["cat"]([self._unknown(value, begin), value], self.dim) for value in values]
        earlier = self._segments if begin else []
        _check_earlier(earlier, begin, len(values), level)
        present = _Segment([value if level else value.detach() for value in values], length, level)
        self._segments = [*earlier, present]
        if level or not autograd.is_grad_enabled():
            columns = zip(*(segment.values for segment in self._segments), strict=True)
            return [registry["cat"](list(column), self.dim) for column in columns]
        present.requires_grad = [value.requires_grad for value in values]
        return [self._joined(earlier, present, number, value) for number, value in enumerate(values)]

    def _length(self, values: Sequence[Any]) -> int:
        if not values:
            raise TypeError("SegmentCache: expected keys and values after the position, or other tensors")
        for value in values:
            if not isinstance(value, Tensor):
                raise TypeError(f"SegmentCache: expected tensors after the position, got {describe(value)}")
            if not -value.ndim <= self.dim < value.ndim:
                raise ValueError(f"SegmentCache: a tensor of shape {value.shape} has no dimension {self.dim} of tokens")
        lengths = [value.shape[self.dim] for value in values]
        if len(set(lengths)) > 1:
            raise ValueError(f"SegmentCache: tensors of a segment must have as many tokens each, got {lengths}")
        return int(lengths[0])

    def _unknown(self, value: Any, length: int) -> Any:
        shape = list(value.shape)
        shape[self.dim] = length
        return value.new_zeros(shape)

    def _joined(self, earlier: Sequence[_Segment], present: _Segment, number: int, value: Any) -> Any:
        stored = _Store.apply(value, present, number) if value.requires_grad else value
        return registry["cat"]([*(_read(one, number) for one in earlier), stored], self.dim)


def _position(start: Any) -> int:
    value = start.item() if isinstance(start, Tensor) and start.numel() == 1 else start
    if isinstance(value, bool) or not hasattr(value, "__index__") or isinstance(value, Tensor):
        raise TypeError(f"SegmentCache: the position of a segment must be an integer, got {describe(start)}")
    return index(value)


def _check_earlier(earlier: Sequence[_Segment], begin: int, count: int, level: Any) -> None:
    """Raise an error if the segments before are not those that the present one continues."""
    length = sum(segment.length for segment in earlier)
    in_same_call = all(segment.level is level for segment in earlier)
    if not in_same_call or (level is not None and begin != length):
        raise RuntimeError(
            f"SegmentCache: a segment begins at {begin}, but those before it did not run in the same call of a "
            f"function transform, or in the same capture; pass the stages to Pipeline as a list of modules, which are "
            f"not captured"
        )
    if begin != length:
        raise ValueError(
            f"SegmentCache: a segment begins at {begin}, but those before it have {length} tokens; segments run in "
            f"their order, and once: stages that recompute, or use checkpoint(), repeat them"
        )
    if any(segment.backward_has_run for segment in earlier):
        raise RuntimeError("SegmentCache: a segment comes after the backward pass of one before; 0 begins a microbatch")
    if any(len(segment.values) != count for segment in earlier):
        raise ValueError(f"SegmentCache: got {count} tensors, but {len(earlier[0].values)} for the segments before")


def _read(segment: _Segment, number: int) -> Any:
    """Return keys or values of an earlier segment, as a leaf whose gradient is added to the segment."""
    leaf = segment.values[number].detach()
    if segment.requires_grad[number]:
        segment.pending[number] += 1
        leaf.requires_grad = True
        leaf.register_hook(lambda gradient: segment.add(number, gradient))
    return leaf


suggest_in_module(globals())
