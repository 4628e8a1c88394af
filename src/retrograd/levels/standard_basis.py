"""The standard basis of the joint space of several tensors: cotangents for Jacobian rows, tangents for columns."""

from collections.abc import Sequence

from retrograd.core import Tensor, registry


def basis(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return for each tensor its part of all unit vectors, stacked along a new first dimension."""
    return units(tensors, 0, sum(t.numel() for t in tensors))


def units(tensors: Sequence[Tensor], start: int, stop: int) -> list[Tensor]:
    """Return for each tensor its part of the unit vectors number `start` to before `stop`, stacked likewise."""
    parts, first = [], 0
    for t in tensors:
        parts.append(_ones_along(stop - start, start - first, t))
        first += t.numel()
    return parts


def _ones_along(count: int, offset: int, like: Tensor) -> Tensor:
    """Return `count` one-hot tensors like `like`; the k-th has its 1 at flat index k + offset, if in range."""
    rows = registry["eye"](count + max(offset, 0), like.numel() + max(-offset, 0), dtype=like.dtype)
    rows = rows[max(offset, 0) :, max(-offset, 0) :]
    return registry["reshape"](rows, (count, *like.shape))
