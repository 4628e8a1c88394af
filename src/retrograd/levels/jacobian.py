"""Jacobians from a linear map: apply it to the standard basis, then cut the results into blocks.

A row is the pullback of a unit vector of the outputs; a column is the pushforward of a unit vector of the inputs.
Every block belongs to one output and one input, and has the shape (*output.shape, *input.shape).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from retrograd.core import Tensor, registry
from retrograd.ops.layout import array_device, making_on

Blocks = list[list[Tensor]]  # by output, then by input

# ------------------------------------------------------------------------------------------------ the standard basis


def unit_vectors(x: Tensor, entry: complex = 1) -> Iterator[Tensor]:
    """Yield the unit vectors of the space of `x`, in its shape: one entry is 1, or `entry`, and the others are 0."""
    n = x.numel()
    # All are slices of one buffer of twice the size, which is faster than a buffer for each.
    with making_on(array_device(x)):
        buffer = registry["to"](registry["arange"](1 - n, max(n, 1), 1) == 0, x.dtype)
    if entry != 1:
        buffer = buffer * entry
    for k in range(n):
        unit = registry["narrow"](buffer, 0, n - 1 - k, n)
        yield unit if x.ndim == 1 else registry["reshape"](unit, x.shape)


def basis(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return for each tensor its part of all unit vectors of their joint space, stacked along a new first dimension."""
    return units(tensors, 0, sum(t.numel() for t in tensors))


def units(tensors: Sequence[Tensor], start: int, stop: int) -> list[Tensor]:
    """Return for each tensor its part of the unit vectors number `start` to before `stop`, stacked likewise."""
    parts, first = [], 0
    for t in tensors:
        parts.append(_one_hot_rows(stop - start, start - first, t))
        first += t.numel()
    return parts


def _one_hot_rows(count: int, offset: int, like: Tensor) -> Tensor:
    """Return `count` one-hot tensors like `like`; the k-th has its 1 at flat index k + offset, if in range."""
    with making_on(array_device(like)):
        rows = registry["eye"](count + max(offset, 0), like.numel() + max(-offset, 0), dtype=like.dtype)
    rows = rows[max(offset, 0) :, max(-offset, 0) :]
    return registry["reshape"](rows, (count, *like.shape))


# ------------------------------------------------------------------------------------------------ the linear map


def map_in_loop(linear: Callable, vectors: Iterable[Tensor], likes: Sequence[Tensor]) -> list[Tensor]:
    """Return the results of a linear map, one call for each vector, stacked along a new first dimension.

    `likes` have the shapes and dtypes of the results, for the case that there are no vectors.
    """
    columns = list(zip(*map(linear, vectors), strict=True))
    return [registry["stack"](column) for column in columns] if columns else _empty_batches(likes)


def map_in_chunks(
    linear: Callable, tensors: Sequence[Tensor], likes: Sequence[Tensor], chunk: int | None = None
) -> list[Tensor]:
    """Return the results of a linear map of batches, for the joint standard basis of tensors, `chunk` at a time."""
    total = sum(t.numel() for t in tensors)
    if not total:
        return _empty_batches(likes)
    step = chunk or total
    parts = [linear(units(tensors, start, min(start + step, total))) for start in range(0, total, step)]
    return [registry["cat"](list(gs)) if len(gs) > 1 else gs[0] for gs in zip(*parts, strict=True)]


def _empty_batches(likes: Sequence[Tensor]) -> list[Tensor]:
    """Return a batch of no tensors for each of `likes`."""
    return [x.new_zeros((0, *x.shape)) for x in likes]


# ------------------------------------------------------------------------------------------------ blocks


def row_blocks(rows: Sequence[Tensor], outs: Sequence[Tensor]) -> Blocks:
    """Return the blocks of a Jacobian whose rows, one for each output element, are stacked for each input."""
    by_input = [_split(g, outs, 0) for g in rows]
    return [
        [registry["reshape"](parts[i], (*out.shape, *parts[i].shape[1:])) for parts in by_input]
        for i, out in enumerate(outs)
    ]


def column_blocks(columns: Sequence[Tensor], ins: Sequence[Tensor]) -> Blocks:
    """Return the blocks of a Jacobian whose columns, one for each input element, are stacked for each output."""
    by_output = [_split(registry["movedim"](g, 0, -1), ins, -1) for g in columns]
    return [
        [registry["reshape"](part, (*part.shape[:-1], *x.shape)) for part, x in zip(parts, ins, strict=True)]
        for parts in by_output
    ]


def _split(g: Tensor, by: Sequence[Tensor], dim: int) -> Sequence[Tensor]:
    """Split a dimension that has all elements of some tensors into those of each."""
    return registry["split"](g, [x.numel() for x in by], dim) if len(by) > 1 else (g,)[: len(by)]
