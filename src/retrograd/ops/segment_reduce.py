"""Reductions of consecutive parts of a dimension: segments of given lengths, or between given offsets."""

import math

from retrograd.core import Tensor, registry
from retrograd.core.errors import OperandDtypeError, OperandValueError
from retrograd.ops.family import canonical_dim
from retrograd.ops.functions import check_tensor, function, overridable
from retrograd.ops.pad import constant_pad_nd
from retrograd.ops.pointwise import clamp, to, where
from retrograd.ops.scan import cumsum
from retrograd.ops.view import expand, narrow, reshape

_STARTS = {"sum": 0, "mean": 0, "prod": 1, "max": -math.inf, "amax": -math.inf, "min": math.inf, "amin": math.inf}
_MERGES = {"sum": "sum", "mean": "sum", "prod": "prod", "max": "amax", "amax": "amax", "min": "amin", "amin": "amin"}


@function()
@overridable
def segment_reduce(
    data, reduce: str, *, lengths=None, indices=None, offsets=None, axis: int = 0, unsafe: bool = False, initial=None
) -> Tensor:
    """Return the "sum", "mean", "max", "min" or "prod" of each segment of `data` along a dimension.

    lengths (..., segments): how many elements each segment has; axis is its last dimension, and the dimensions in front
    are those of data. Or offsets (..., segments + 1): where segments begin, and where the last one ends. initial: a
    number that each segment starts with. Empty segments give that, or the neutral element, NaN for means. Raises
    RuntimeError for other shapes, and for lengths that are negative or that have another sum than the size of data,
    unless `unsafe`; then data after the last segment is skipped. `indices` must be None.

    >>> import retrograd as rg
    >>> rg.segment_reduce(rg.tensor([1.0, 2.0, 4.0]), "sum", lengths=rg.tensor([2, 0, 1]))
    tensor([3., 0., 4.])
    """
    _check(data, reduce, lengths, indices, offsets)
    given = lengths if offsets is None else offsets
    axis = canonical_dim("segment_reduce", axis, data.ndim)
    if axis != given.ndim - 1 or given.shape[:-1] != data.shape[:axis]:
        raise OperandValueError(
            f"segment_reduce: Expected axis to be the last dimension of lengths but got {axis}: data has shape "
            f"{data.shape}, lengths or offsets {given.shape}"
        )
    if offsets is None:
        if not unsafe:
            _check_lengths(lengths, data.shape[axis])
        offsets = constant_pad_nd(cumsum(lengths, -1), (1, 0), 0)
    start = _STARTS[reduce] if initial is None else initial
    merged = _merge(data, _MERGES[reduce], offsets, axis, start)
    return merged if reduce != "mean" else _divide(merged, offsets, math.nan if initial is None else initial)


def _check(data, reduce, lengths, indices, offsets):
    check_tensor("segment_reduce", data)
    if not isinstance(reduce, str):
        raise TypeError(f"segment_reduce: reduce must be the name of a reduction, got {type(reduce).__name__}")
    if reduce not in _STARTS:
        raise OperandValueError(
            f"segment_reduce: reduce argument must be either sum, prod, mean, max, amax, min or amin, got {reduce}"
        )
    if indices is not None:
        raise OperandValueError("segment_reduce: indices based reduction is not supported, give lengths or offsets")
    if lengths is None and offsets is None:
        raise OperandValueError("segment_reduce: Either lengths or offsets must be defined.")
    if data.dtype.kind != "f" and data.dtype.name != "bfloat16":
        raise OperandDtypeError(f"segment_reduce: not implemented for {data.dtype}; convert with .to('float32')")


def _check_lengths(lengths, size):
    if (lengths < 0).any():
        raise OperandValueError("segment_reduce: lengths contains negative value!")
    if (lengths.sum(-1) != size).any():
        raise OperandValueError(
            f"segment_reduce: Expected all rows of lengths along axis to sum to {size}, the size of data along axis"
        )


def _merge(data, how, offsets, axis, start):
    """Return each segment's elements, merged into a start; elements outside segments are merged into one more."""
    count, rest = offsets.shape[-1] - 1, data.shape[axis + 1 :]
    positions = expand(registry["arange"](0, data.shape[axis], 1), data.shape[: axis + 1])
    segments = registry["searchsorted"](offsets, to(positions, offsets.dtype), right=True) - 1
    segments = where(segments < 0, count, segments)
    index = expand(reshape(segments, (*segments.shape, *(1,) * len(rest))), data.shape)
    starts = registry["full"]((*data.shape[:axis], count + 1, *rest), start, dtype=data.dtype)
    return narrow(registry["scatter_reduce"](starts, axis, index, data, how), axis, 0, count).contiguous()


def _divide(total, offsets, empty):
    """Return sums divided by the lengths of their segments, and `empty` for those without elements."""
    count = offsets.shape[-1] - 1
    lengths = narrow(offsets, -1, 1, count) - narrow(offsets, -1, 0, count)
    lengths = reshape(lengths, (*lengths.shape, *(1,) * (total.ndim - lengths.ndim)))
    return where(lengths > 0, total / to(clamp(lengths, min=1), total.dtype), empty)
