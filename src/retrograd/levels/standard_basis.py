"""The standard basis of what several tensors hold together: cotangents for rows of Jacobians, tangents for columns."""

from collections.abc import Sequence

from retrograd.core import Tensor, registry


def basis(tensors: Sequence[Tensor]) -> list[Tensor]:
    """For each tensor its part of all unit vectors, which lie along the first dimension, one for each element."""
    return units(tensors, 0, sum(t.numel() for t in tensors))


def units(tensors: Sequence[Tensor], start: int, stop: int) -> list[Tensor]:
    """The same of the unit vectors from one to another."""
    parts, first = [], 0
    for t in tensors:
        parts.append(_ones_along(stop - start, start - first, t))
        first += t.numel()
    return parts


def _ones_along(count: int, offset: int, like: Tensor) -> Tensor:
    """So many tensors like one, the k-th with a one at the place k + offset, if there is such a place."""
    rows = registry["eye"](count + max(offset, 0), like.numel() + max(-offset, 0), dtype=like.dtype)
    rows = rows[max(offset, 0) :, max(-offset, 0) :]
    return registry["reshape"](rows, (count, *like.shape))
