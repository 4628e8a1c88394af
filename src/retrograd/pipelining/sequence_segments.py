"""Sequences that are cut into segments along their length, for pipelines under `seq1f1b`."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from retrograd import autograd
from retrograd.autograd import Function
from retrograd.core import Tensor, registry
from retrograd.foundation.suggestions import suggest_in_module


def segment_lengths(length: int, segments: int, quadratic: float = 0.0) -> list[int]:
    """Return the lengths of segments that take about equally long, the earlier ones longer.

    quadratic: the seconds of attention from one token to another, divided by those of all else for a token.  The cost
     of the first t tokens is t + quadratic * t * t; 0: segments are equally long, up to one token.

    Source: "Seq1F1B" (see `seq1f1b`), section 3.4: segments of equal cost.

    Raises ValueError for fewer tokens than segments, or a negative number.

    >>> segment_lengths(64, 4), segment_lengths(64, 4, quadratic=0.1)
    ([16, 16, 16, 16], [30, 14, 11, 9])
    """
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

    x: a batch of sequences, divided along dimension 0 into microbatches, and along `dim` into segments of these
     lengths.

    Raises ValueError if the lengths are not those of the sequences.

    >>> import retrograd as rg
    >>> [part.shape for part in split_segments(rg.ones(4, 6), micro_batches=2, lengths=[4, 2])]
    [(2, 4), (2, 2), (2, 4), (2, 2)]
    """
    if sum(lengths) != x.shape[dim]:
        raise ValueError(f"split_segments: lengths {list(lengths)} sum up to {sum(lengths)}, not to {x.shape[dim]}")
    parts = registry["chunk"](x, micro_batches, 0)
    return [segment for part in parts for segment in registry["split"](part, list(lengths), dim)]


class _Segment:
    """Keys and values of a segment, and the gradients that later segments give to them.

    pending: for each, how many later segments have read it, and not yet given it a gradient.
    """

    def __init__(self, values: list[Any]) -> None:
        self.values = values
        self.gradients: list[Any] = [None] * len(values)
        self.pending = [0] * len(values)

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
        if ctx.segment.pending[ctx.number]:
            raise RuntimeError(
                "SegmentCache: the whole backward passes of later segments must come before that of an earlier one, as "
                "under seq1f1b; a schedule with other orders, or with backward passes in halves, is not possible"
            )
        (gradient,), later = gradients, ctx.segment.gradients[ctx.number]
        return (gradient if later is None else gradient + later), None, None


class SegmentCache:
    """The keys and values of one attention layer for the segments of a microbatch before the present one.

    Call it in the forward pass of a stage with the position of the segment's first token, which the stages pass on with
    the segment; 0 begins another microbatch.  It returns keys and values of all segments so far, joined along `dim`.
    Gradients of earlier segments' keys and values reach them in their own backward pass, which comes later (as
    `seq1f1b` has it), so the gradients are those of whole sequences.

    Raises ValueError for a position that is not the length of the segments so far; without gradients, missing tokens
    are NaN.  Raises RuntimeError in the backward pass if an earlier segment comes first, or if it is in two halves.

    >>> import retrograd as rg
    >>> cache = SegmentCache(dim=1)
    >>> first, second = (rg.ones(2, length, 8, requires_grad=True) for length in (3, 2))
    >>> keys, values = cache(0, first, first)
    >>> keys, values = cache(3, second, second)
    >>> keys.shape
    (2, 5, 8)
    """

    def __init__(self, dim: int = -2) -> None:
        self.dim = dim
        self._segments: list[_Segment] = []

    def __call__(self, start: Any, *values: Any) -> list[Any]:
        """Return keys and values, or any tensors, of the segments before joined with those of the present one."""
        begin = int(start)
        if begin == 0:
            self._segments = []
        length = sum(segment.values[0].shape[self.dim] for segment in self._segments)
        if begin > length and not autograd.is_grad_enabled():
            self._segments.append(_Segment([self._unknown(value, begin - length) for value in values]))
        elif begin != length:
            raise ValueError(f"SegmentCache: a segment begins at {begin}, but those before it have {length} tokens")
        present = _Segment([value.detach() for value in values])
        earlier = list(self._segments)
        self._segments.append(present)
        return [self._joined(earlier, present, number, value) for number, value in enumerate(values)]

    def _unknown(self, value: Any, length: int) -> Any:
        """Return NaN for tokens that are missing: a pipeline runs its first segment of a new length by itself, to find
        out what the stages return."""
        shape = list(value.shape)
        shape[self.dim] = length
        return registry["full"](shape, math.nan, dtype=value.dtype)

    def _joined(self, earlier: Sequence[_Segment], present: _Segment, number: int, value: Any) -> Any:
        if not autograd.is_grad_enabled():
            return registry["cat"]([*(one.values[number] for one in earlier), value], self.dim)
        stored = _Store.apply(value, present, number)
        return registry["cat"]([*(_read(one, number) for one in earlier), stored], self.dim)


def _read(segment: _Segment, number: int) -> Any:
    """Return keys or values of an earlier segment as a leaf, whose gradient is added to the segment."""
    segment.pending[number] += 1
    leaf = segment.values[number].detach()
    leaf.requires_grad = True
    leaf.register_hook(lambda gradient: segment.add(number, gradient))
    return leaf


suggest_in_module(globals())
