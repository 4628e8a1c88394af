"""Tables of padding and resizing: linear maps along one dimension, by indices and weights, in host memory."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

FEW = 4  # up to here slices are faster than a list of indices
BLOCK = 16  # indices of the result computed by one matrix product
CUBIC = -0.75  # the coefficient of Keys' cubic convolution, IEEE Trans. ASSP 29 (1981), as in PyTorch
SMOOTH = -0.5  # the one for antialiasing


class Table(NamedTuple):
    """A linear map: result[i] = sum of weights[j][i] * x[places[j][i]] over j; without weights all are 1."""

    indices: np.ndarray
    weights: np.ndarray | None


class Row(NamedTuple):
    """One j of a table, prepared: `pieces` are slices (of the result, of x) that copy x[places], if few suffice."""

    indices: np.ndarray
    pieces: list | None
    weights: np.ndarray | None
    targets: np.ndarray | None  # indices of the result to add to; None: all


class Block(NamedTuple):
    """Consecutive indices of the result, the range of x that they depend on, and the matrix that maps it to them."""

    target: slice
    source: slice
    matrix: np.ndarray


# ------------------------------------------------------------------------------------ the maps, and their tables

# Each takes the size of the source, the size of the result, and further parameters.


def _reflect(size, out, before):
    indices = np.abs(np.arange(out) - before)
    return Table(np.minimum(indices, 2 * (size - 1) - indices)[None], None)


def _replicate(size, out, before):
    return Table(np.clip(np.arange(out) - before, 0, size - 1)[None], None)


def _circular(size, out, before):
    return Table((np.arange(out) - before)[None] % size, None)


def _step(size, out, scale):
    """Return the distance in the source of neighbouring indices of the result."""
    return 1.0 / scale if scale > 0 else size / out


def _nearest(size, out, scale, shift):
    """Return the source indices of the nearest neighbours, in single precision like PyTorch, because they jump."""
    step = np.float32(_step(size, out, scale))
    at = (np.arange(out, dtype=np.float32) + np.float32(shift)) * step
    return Table(np.minimum(np.floor(at).astype(np.int64), size - 1)[None], None)


def _source(size, out, scale, align):
    """Return the positions in the source of the centres of the result."""
    if align:
        return np.arange(out) * ((size - 1) / (out - 1) if out > 1 else 0.0)
    return (np.arange(out) + 0.5) * _step(size, out, scale) - 0.5


def _linear(size, out, scale, align):
    at = np.maximum(_source(size, out, scale, align), 0.0)
    low = np.minimum(at.astype(np.int64), size - 1)
    share = np.clip(at - low, 0.0, 1.0)
    return Table(np.stack([low, np.minimum(low + 1, size - 1)]), np.stack([1 - share, share]))


def _cubic(size, out, scale, align):
    at = _source(size, out, scale, align)
    low = np.floor(at).astype(np.int64)
    indices = np.clip(low + np.arange(-1, 3)[:, None], 0, size - 1)
    return Table(indices, np.stack([_bump(at - low + 1 - j) for j in range(4)]))


def _bump(d, a=CUBIC):
    """Return Keys' cubic convolution kernel at distance d; 0 from 2 on."""
    d = np.minimum(np.abs(d), 2)
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d <= 1, near, far)


def _tent(d):
    """Return the weights of linear interpolation at distances `d`."""
    return np.maximum(1 - np.abs(d), 0)


def _antialias_table(size, out, scale, align, kernel, reach):
    """Return a table of weighted means; the kernel is widened to the step in the source, if that exceeds 1."""
    step = (size - 1) / max(out - 1, 1) if align else _step(size, out, scale)
    wide = max(step, 1.0)
    centre = step * (np.arange(out) + 0.5)
    first = np.maximum((centre - reach * wide + 0.5).astype(np.int64), 0)
    count = np.minimum((centre + reach * wide + 0.5).astype(np.int64), size) - first
    indices = first + np.arange(count.max(initial=0))[:, None]
    weights = np.where(indices < first + count, kernel((indices - centre + 0.5) / wide), 0.0)
    return Table(np.minimum(indices, size - 1), weights / weights.sum(0))


def _smooth_linear(size, out, scale, align):
    return _antialias_table(size, out, scale, align, _tent, 1)


def _smooth_cubic(size, out, scale, align):
    return _antialias_table(size, out, scale, align, lambda d: _bump(d, SMOOTH), 2)


def _area(size, out):
    """Return the table of means of source indices floor(i * size / out) to ceil((i + 1) * size / out)."""
    start = np.arange(out) * size // out
    count = -(-np.arange(1, out + 1) * size // out) - start
    indices = start + np.arange(count.max(initial=0))[:, None]
    weights = np.where(indices < start + count, 1 / np.maximum(count, 1), 0.0)
    return Table(np.minimum(indices, size - 1), weights)


_MAPS = {
    "area": _area,
    "circular": _circular,
    "cubic": _cubic,
    "linear": _linear,
    "nearest": _nearest,
    "reflect": _reflect,
    "replicate": _replicate,
    "smooth cubic": _smooth_cubic,
    "smooth linear": _smooth_linear,
}


def _table(how, transposed):
    name, *rest = how
    table = _MAPS[name](*rest)
    return _transpose_table(table, how[1]) if transposed else table


def _transpose_table(table, size):
    """Return the table of the transposed map, padded with entries of weight 0 to rows of equal length."""
    indices, weights = table
    weights = np.ones(indices.shape) if weights is None else weights
    nonzero = weights != 0
    sources, targets = indices[nonzero], np.broadcast_to(np.arange(indices.shape[1]), indices.shape)[nonzero]
    order = np.argsort(sources, kind="stable")
    counts = np.bincount(sources, minlength=size)
    row = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    shape = (counts.max(initial=0), size)
    back, shares = np.zeros(shape, np.int64), np.zeros(shape)
    back[row, sources[order]], shares[row, sources[order]] = targets[order], weights[nonzero][order]
    return Table(back, shares)


@lru_cache(256)
def rows_of(how, transposed):
    """Return the prepared rows of a table."""
    indices, weights = _table(how, transposed)
    if weights is None:
        return [_row(p, None) for p in indices]
    return [_row(p, w) for p, w in zip(indices, weights, strict=True)]


def _row(indices, weights):
    """Return a row without entries of weight 0, so that not even infinite values at them matter."""
    targets = None
    if weights is not None and not weights.all():
        targets = np.flatnonzero(weights)
        indices, weights = indices[targets], weights[targets]
    return Row(indices, _pieces(indices), None if weights is None or (weights == 1).all() else weights, targets)


def _pieces(indices):
    """Return slices (of the result, of the source) that copy the source to these indices; None if too many."""
    repeated = int(np.argmax(indices != indices[:1])) if len(indices) else 0  # repetitions of the first index
    if 1 < repeated <= FEW and np.array_equal(indices, np.arange(len(indices)) // repeated):
        return [(slice(i, None, repeated), slice(0, len(indices[i::repeated]))) for i in range(repeated)]
    pieces, start = [], 0
    while start < len(indices) and len(pieces) < FEW:
        stop = start + _progression_length(indices[start:])
        pieces.append((slice(start, stop), _progression(indices[start:stop])))
        start = stop
    return pieces if start == len(indices) else None


def _progression_length(indices):
    """Return how many leading indices are equally spaced, or all equal."""
    steps = np.diff(indices)
    other = np.flatnonzero(steps != steps[:1])
    return int(other[0]) + 1 if len(other) else len(indices)


def _progression(indices):
    """Return the slice of equally spaced indices; of one index, if all are equal."""
    first, last = int(indices[0]), int(indices[-1])
    step = int(indices[1]) - first if len(indices) > 1 else 1
    stop = last + 1 if step >= 0 else last - 1
    return slice(first, None if stop < 0 else stop, step or 1)


@lru_cache(256)
def blocks_of(how, transposed, dtype):
    """Return the blocks of a table's matrix."""
    table = _table(how, transposed)
    return [_block(table, slice(i, i + BLOCK), dtype) for i in range(0, table.indices.shape[1], BLOCK)]


def _block(table, target, dtype):
    indices, weights = table.indices[:, target], table.weights[:, target]
    nonzero = weights != 0
    used = indices[nonzero]
    first = used.min(initial=table.indices.max(initial=0))
    matrix = np.zeros((indices.shape[1], used.max(initial=first - 1) + 1 - first), dtype)
    np.add.at(matrix, (np.nonzero(nonzero)[1], used - first), weights[nonzero])
    return Block(target, slice(first, first + matrix.shape[1]), matrix)


def source_indices(how, transposed=False):
    """Return the source indices, from 1, that each index of the result depends on; 0 pads the columns."""
    indices, weights = _table(how, transposed)
    return indices + 1 if weights is None else np.where(weights != 0, indices + 1, 0)
