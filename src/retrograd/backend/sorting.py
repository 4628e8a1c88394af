"""Kernels of sorting, searching, scans and statistics.

Orders are stable, and total: NaN is above every number, zeros of either sign are equal.
"""

import math
from functools import lru_cache

import numpy as np

from retrograd import kernels
from retrograd.backend import elementary
from retrograd.backend.special import logaddexp
from retrograd.kernels.host_values import on_host

__all__ = [
    "count_into_bins",
    "count_into_boxes",
    "count_values",
    "insertion_indices",
    "is_among",
    "kth_indices",
    "linear_recurrence",
    "lower_median",
    "median_indices",
    "mode_indices",
    "nansum_over",
    "order_statistics",
    "rank_indices",
    "run_starts",
    "running_extremes",
    "running_logsumexp",
    "sort_indices",
    "sorted_run_starts",
    "sorted_values",
    "topk_indices",
    "unique_values_and_counts",
]  # fmt: skip

LOW_HALF = 2**32 - 1
FEW = 512  # elements up to which NumPy's stable sort is faster than other ways
SEVERAL = 8  # ranks from which on a full sort is faster than several selections
SEARCHES = 16  # a search for an extreme element takes a 16th or less of the time of a selection, in rows of 16 or more


# ---------------------------------------------------------------------------------------------------- orders


def _rows(x, dim):
    """Return x with `dim` and the last dimension swapped; a number as a row. NumPy's `moveaxis` takes much longer."""
    if dim in (-1, x.ndim - 1) and x.ndim:
        return x
    return (x if x.ndim else x.reshape(1)).swapaxes(dim, -1)


def _keys(x, dim, descending=False):
    """Return integers along the last dimension in the order of x along `dim`, or in the opposite one."""
    x = _rows(x, dim)
    keys = _keys_of_floats(x) if x.dtype.kind == "f" else x.view(np.uint8) if x.dtype.kind == "b" else x
    keys = np.ascontiguousarray(keys)
    return ~keys if descending else keys


def _keys_of_floats(x):
    """Return the bits of a float as an integer in the order of the floats: negative numbers' are inverted."""
    integer = np.dtype(f"i{x.dtype.itemsize}")
    bits = np.add(x, 0, order="C").view(integer)  # -0 + 0 is 0
    keys = bits >> (8 * integer.itemsize - 1)
    keys &= np.iinfo(integer).max
    keys ^= bits
    holes = np.isnan(x)
    if not on_host or holes.any():
        keys[holes] = np.iinfo(integer).max
    return keys


def _order(keys):
    """Return the indices that sort the rows; stable."""
    if not on_host or keys.size <= FEW or keys.dtype.itemsize <= 2:
        return np.argsort(keys, axis=-1, kind="stable")
    if keys.dtype.itemsize == 4 or _span(keys) < 2**31:  # key and index in one integer: far faster than argsort
        low = 0 if keys.dtype.itemsize == 4 else keys.min()
        return _sort_packed_keys(keys - low if low else keys, np.arange(keys.shape[-1]))
    order = np.argsort(keys, axis=-1)
    ranked = np.take_along_axis(keys, order, -1)
    differ = ranked[..., 1:] != ranked[..., :-1]
    if differ.all():
        return order
    groups = np.zeros(keys.shape, np.int64)
    np.cumsum(differ, axis=-1, out=groups[..., 1:])
    return _sort_packed_keys(groups, order)


def _is_few(x):
    return on_host and x.size <= FEW


def _order_of_few(x, dim, descending, k=None):
    """Return the first k indices (None: all) that sort few elements, without keys.

    In descending order these are the last ones that sort the reversed rows.
    """
    rows = _rows(x, dim)
    if not descending:
        return rows.argsort(-1, "stable")[..., :k]
    order = rows[..., ::-1].argsort(-1, "stable")
    return _descending(rows.shape[-1]).take(order[..., ::-1] if k is None else order[..., : -k - 1 : -1])


@lru_cache(64)
def _descending(n):
    """Return the integers below n from the largest to 0."""
    return np.arange(n - 1, -1, -1)


def _span(keys):
    return int(keys.max()) - int(keys.min())


def _sort_packed_keys(keys, indices):
    """Return the indices sorted by key, then by index."""
    packed = keys.astype(np.int64)
    packed <<= 32
    packed |= indices
    packed.sort(axis=-1)
    packed &= LOW_HALF
    return packed


def _move_to_dim(indices, x, dim):
    """Swap the last dimension of indices back with `dim`, in row-major order, as results of operators are."""
    return np.ascontiguousarray(_rows(indices, dim)) if x.ndim else indices.reshape(())


def sort_indices(x, dim, descending):
    """Return the indices that sort x along `dim`."""
    order = _order_of_few(x, dim, descending) if _is_few(x) else _order(_keys(x, dim, descending))
    return _move_to_dim(order, x, dim)


def sorted_values(x, dim, descending):
    """Return x sorted along `dim`."""
    if x.ndim == 0:
        return x.copy()
    out = np.sort(x, axis=dim)
    return np.flip(out, dim).copy() if descending else out


def topk_indices(x, k, dim, largest):
    """Return the indices of the k largest or smallest elements along `dim`, in order; the first of equal ones."""
    if _is_few(x):
        return _move_to_dim(_order_of_few(x, dim, largest, k), x, dim)
    found = _extremes(_rows(x, dim), k, largest)
    if found is not None:
        return _move_to_dim(found, x, dim)
    keys = _keys(x, dim, descending=largest)
    n = keys.shape[-1]
    if not on_host or keys.size <= FEW or 8 * k > n or k == 0:
        return _move_to_dim(_order(keys)[..., :k], x, dim)
    bound = np.partition(keys, k - 1, axis=-1)[..., k - 1 : k]
    chosen = keys <= bound
    if (np.count_nonzero(chosen, axis=-1) > k).any():  # more elements equal the bound than are needed
        below, equal = keys < bound, keys == bound
        wanted = k - np.count_nonzero(below, axis=-1, keepdims=True)
        chosen = below | (equal & (np.cumsum(equal, axis=-1) <= wanted))
    places = np.nonzero(chosen)[-1].reshape(*keys.shape[:-1], k)
    order = _order(np.take_along_axis(keys, places, -1))
    return _move_to_dim(np.take_along_axis(places, order, -1), x, dim)


def _extremes(rows, k, largest):
    """Return `topk_indices` by a search for each; None if selections are faster, or an element equals the mark."""
    n, dtype = rows.shape[-1], rows.dtype
    if not on_host or not 0 < k <= min(SEARCHES, n // SEARCHES) or (dtype.kind not in "iu" and dtype.char not in "fd"):
        return None
    low, high = (-np.inf, np.inf) if dtype.kind == "f" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    search, mark = (np.argmax, low) if largest else (np.argmin, high)
    left = kernels.row_major(rows).reshape(-1, n)
    numbers, found = np.arange(len(left)), np.empty((len(left), k), np.int64)
    for i in range(k):
        at = search(left, axis=-1)
        elements = left[numbers, at]
        if not (elements != mark if largest else elements < mark).all():  # NaN, found first, is not among the smallest
            return None
        left[numbers, at] = mark
        found[:, i] = at
    return found.reshape(*rows.shape[:-1], k)


def kth_indices(x, k, dim):
    """Return the index of the k-th smallest element along `dim`, as a dimension of size 1, by a stable sort."""
    if _is_few(x):
        return _move_to_dim(_order_of_few(x, dim, False)[..., k - 1 : k], x, dim)
    keys = _keys(x, dim)
    bound = np.partition(keys, k - 1, axis=-1)[..., k - 1 : k]
    nth = k - np.count_nonzero(keys < bound, axis=-1, keepdims=True)
    equal = keys == bound
    found = equal if on_host and (nth == 1).all() else np.cumsum(equal, axis=-1) == nth
    return _move_to_dim(np.argmax(found, axis=-1, keepdims=True), x, dim)


def median_indices(x, dim, skip_nan):
    """Return the index of the lower median along `dim`, with size 1; the first NaN's unless they are skipped."""
    n = x.shape[dim] if x.ndim else 1
    holes = np.isnan(x) if x.dtype.kind == "f" else None
    if holes is None or (on_host and not holes.any()):
        return kth_indices(x, (n + 1) // 2, dim)
    if not skip_nan:
        first = np.argmax(holes, axis=dim, keepdims=True)
        return np.where(holes.any(axis=dim, keepdims=True), first, kth_indices(x, (n + 1) // 2, dim))
    count = n - np.count_nonzero(np.atleast_1d(holes), axis=dim, keepdims=True)
    order = np.atleast_1d(sort_indices(x, dim, False))
    places = np.take_along_axis(order, np.maximum(count - 1, 0) // 2, dim)
    return places if x.ndim else places.reshape(())


def lower_median(x, dims, keepdim, skip_nan):
    """Return the lower median over dims; NaN if one is there, or if all are skipped NaN."""
    if len(dims) == x.ndim and on_host:
        out = np.asarray(_middle_of_all(x.reshape(-1), skip_nan))
    else:
        rows = np.moveaxis(x, dims, range(-len(dims), 0))
        lead = rows.shape[: x.ndim - len(dims)]
        out = _middle_of_rows(rows.reshape(*lead, math.prod(rows.shape[len(lead) :])), skip_nan)
    return np.expand_dims(out, dims) if keepdim else out


def _middle_of_rows(rows, skip_nan):
    if rows.shape[-1] == 0:
        return np.full(rows.shape[:-1], np.nan, rows.dtype)
    return np.take_along_axis(rows, median_indices(rows, -1, skip_nan), -1)[..., 0]


def _middle_of_all(x, skip_nan):
    if x.dtype.kind == "f":
        holes = np.isnan(x)
        if holes.any():
            x = x[~holes] if skip_nan else x[:0]
        if not x.size:
            return np.full((), np.nan, x.dtype)
    middle = (x.size - 1) // 2
    return np.partition(x, middle)[middle]


def mode_indices(x, dim):
    """Return the index of the last occurrence of the most frequent value along `dim`; of ties the smallest."""
    order = _order(_keys(x, dim))
    ranked = np.take_along_axis(_rows(x, dim), order, -1)
    places = np.arange(order.shape[-1])
    starts = np.zeros(order.shape, np.int64)
    np.multiply(ranked[..., 1:] != ranked[..., :-1], places[1:], out=starts[..., 1:])
    seen = places - np.maximum.accumulate(starts, axis=-1)
    most = np.argmax(seen, axis=-1, keepdims=True)
    return _move_to_dim(np.take_along_axis(order, most, -1), x, dim)


def order_statistics(x, ranks, dim):
    """Return the elements at `ranks` (from 0) of x sorted along `dim`; all NaN if x has a NaN there."""
    rows = np.moveaxis(np.atleast_1d(x), dim, -1).copy()
    wanted = np.unique(ranks) if on_host else ranks
    if not on_host or len(wanted) > SEVERAL:
        rows.sort(axis=-1)
    else:
        for i, rank in enumerate(wanted):
            start = wanted[i - 1] + 1 if i else 0
            rows[..., start:].partition(rank - start, axis=-1)
    out = rows[..., np.asarray(ranks)]
    holes = np.isnan(x)
    if not on_host or holes.any():
        out[holes.any(axis=dim).reshape(out.shape[:-1])] = np.nan
    return np.moveaxis(out, -1, dim)


def rank_indices(x, ranks, dim):
    """Return the indices of the elements of `order_statistics`; a NaN's where there is one."""
    order = np.moveaxis(np.atleast_1d(sort_indices(x, dim, False)), dim, -1)
    holes = np.isnan(x).any(axis=dim).reshape(*order.shape[:-1], 1)
    return np.moveaxis(np.where(holes, order[..., -1:], order[..., np.asarray(ranks)]), -1, dim)


# ----------------------------------------------------------------------------------------- searching, equals


def insertion_indices(sequence, values, sorter, right):
    """Return the index in the sorted rows at which to insert each value; `right`: after equal elements."""
    if sorter is not None:
        sequence = np.take_along_axis(sequence, sorter, -1)
    side = "right" if right else "left"
    if sequence.ndim == 1:
        return np.searchsorted(sequence, values, side)
    out = np.empty(values.shape, np.int64)
    for place in np.ndindex(sequence.shape[:-1]):
        out[place] = np.searchsorted(sequence[place], values[place], side)
    return out


def unique_values_and_counts(x, counted):
    """Return the distinct elements of a 1-d array in order, and their counts (empty unless `counted`)."""
    ranked = np.sort(x)
    new = np.ones(x.size, bool)
    np.not_equal(ranked[1:], ranked[:-1], out=new[1:])
    counts = np.diff(np.flatnonzero(new), append=x.size) if counted else np.empty(0, np.int64)
    return ranked[new], counts


def run_starts(x):
    """Return the runs of equal neighbouring slices of x along its first dimension, like `_runs`."""
    return _runs(x.reshape(len(x), math.prod(x.shape[1:])), None)


def sorted_run_starts(x):
    """Return the runs of equal slices of x along its first dimension, after sorting, like `_runs`."""
    rows = x.reshape(len(x), math.prod(x.shape[1:]))
    if rows.shape[1] == 1:
        return _runs(rows, _order(_keys(rows[:, 0], 0)))
    return _runs(rows, np.lexsort(rows.T[::-1]) if rows.size else np.arange(len(rows)))


def _runs(rows, order):
    """Return the first index of each run of equal rows, the run number of each row, and the lengths of the runs.

    `order` sorts the rows; None means that they are sorted already.
    """
    ranked = rows if order is None else rows[order]
    starts = np.flatnonzero(np.concatenate([np.ones(min(len(rows), 1), bool), (ranked[1:] != ranked[:-1]).any(axis=1)]))
    counts = np.diff(starts, append=len(rows))
    numbers = np.repeat(np.arange(len(starts)), counts)
    if order is None:
        return starts, numbers, counts
    inverse = np.empty_like(numbers)
    inverse[order] = numbers
    return order[starts], inverse, counts


def is_among(x, elements, assume_unique, invert):
    """Return whether each element of x is among `elements`."""
    return np.isin(x, elements, assume_unique=assume_unique, invert=invert)


# ------------------------------------------------------------------------------------------------- counting


def count_values(x, weights, minlength):
    """Return the count, or the total weight, of each integer from 0 on."""
    try:
        counts = np.bincount(x, weights, minlength)
    except ValueError as error:
        words = "bincount only supports 1-d non-negative integral inputs"
        raise RuntimeError(f"{words}: bincount: expected no negative numbers, got {x.min()}") from error
    if weights is None:
        return counts
    return counts.astype(np.float32 if weights.dtype == np.float32 else np.float64, copy=False)  # NumPy's none are ints


def count_into_bins(x, bins, low, high, weight, density):
    """Return the count or total weight of each bin, and the edges: `bins` of equal width, or as given."""
    span = None if hasattr(bins, "dtype") else _range(x, low, high)
    with np.errstate(invalid="ignore"):  # NaN: the density of no elements
        hist, edges = np.histogram(x.reshape(-1), bins, span, density, None if weight is None else weight.reshape(-1))
    return hist.astype(x.dtype), edges.astype(x.dtype)


def _range(x, low, high):
    """Return the ends of the bins: as given, else the extremes (NumPy moves them apart if they are equal)."""
    if low == high:
        low, high = (float(x.min()), float(x.max())) if x.size else (0.0, 1.0)
    if not math.isfinite(low) or not math.isfinite(high):
        raise ValueError(f"histogram: bins from {low} to {high} are not finite; give the range")
    return low, high


def count_into_boxes(x, edges, counts, spans, weight, density):
    """Return the histogram of the rows of x, and the edges along each column: given, or `counts` over `spans`."""
    if not edges:
        given = spans or [(0.0, 0.0)] * len(counts)
        spans = [_range(column, *span) for column, span in zip(x.T, given, strict=True)]
    with np.errstate(invalid="ignore"):
        hist, edges = np.histogramdd(x, edges or counts, spans, density, weight)
    return hist.astype(x.dtype), *(e.astype(x.dtype) for e in edges)


# ---------------------------------------------------------------------------------------------------- scans


def nansum_over(x, dim, keepdim, dtype):
    """Return the sum without NaN; NaN are searched only where the plain sum is NaN."""
    with np.errstate(invalid="ignore"):
        total = np.add.reduce(x, axis=dim, dtype=dtype, keepdims=keepdim)
        if total.dtype.kind == "f" and (not on_host or np.isnan(total).any()):
            return np.add.reduce(np.where(np.isnan(x), 0, x), axis=dim, dtype=dtype, keepdims=keepdim)
    return total


def running_extremes(x, dim, largest):
    """Return the running maximum or minimum and its index: the last of equal ones; NaN wins."""
    rows = np.ascontiguousarray(_rows(x, dim))
    if x.dtype.char in "fd":
        found = (kernels.cummax_rows if largest else kernels.cummin_rows)(rows)
        return tuple([_move_to_dim(part, x, dim) for part in found])
    best = (np.maximum if largest else np.minimum).accumulate(rows, axis=-1)
    hit = rows == best
    if x.dtype.kind == "f":  # half precision
        hit |= np.isnan(rows)
    if not on_host:  # how many hits there are would have to be read
        places = np.maximum.accumulate(np.where(hit, np.arange(rows.shape[-1]), 0), axis=-1)
        return _move_to_dim(best, x, dim), _move_to_dim(places, x, dim)
    hits = np.flatnonzero(hit)  # every row begins with a hit, which is valid until the next one
    places = np.repeat(hits % max(rows.shape[-1], 1), np.diff(hits, append=hit.size)).reshape(rows.shape)
    return _move_to_dim(best, x, dim), _move_to_dim(places, x, dim)


def linear_recurrence(b, a, dim):
    """Return h[i] = b[i] + a[i] h[i - 1] along `dim`, by sqrt(n) steps within blocks, then sqrt(n) between blocks.

    G. E. Blelloch, Prefix sums and their applications, CMU-CS-90-190 (1990), section 1.4.
    """
    n = b.shape[dim] if b.ndim else 1
    if n <= 1 or b.size == 0:
        return b.copy()
    width = math.isqrt(n - 1) + 1
    h, p = (_blocks(x, dim, n, width) for x in (b, a))
    for j in range(1, width):
        h[:, j] += p[:, j] * h[:, j - 1]
        p[:, j] *= p[:, j - 1]
    for i in range(1, len(h)):
        h[i] += p[i] * h[i - 1, -1]
    out = h.reshape(-1, *h.shape[2:])[:n]
    return np.moveaxis(out, 0, dim)


def _blocks(x, dim, n, width):
    """Return a copy of x with `dim` first, in blocks of that width; the last one is padded with zeros."""
    rows = np.moveaxis(x, dim, 0)
    out = np.zeros((-(-n // width) * width, *rows.shape[1:]), x.dtype)
    out[:n] = rows
    return out.reshape(-1, width, *rows.shape[1:])


def running_logsumexp(x, dim):
    """Return log(cumsum(exp(x))), each sum relative to the largest term so far to avoid overflow."""
    rows = np.moveaxis(np.atleast_1d(x), dim, 0)
    if x.dtype.kind == "c":  # a sum keeps the branch of the logarithm of its larger part
        out = np.empty_like(rows)
        for i, row in enumerate(rows):
            out[i] = logaddexp(row, out[i - 1] if i else -math.inf)
        return np.ascontiguousarray(np.moveaxis(out, 0, dim)).reshape(x.shape)
    top = np.maximum.accumulate(rows, axis=0)
    shift = np.where(np.isfinite(top), top, np.zeros((), top.dtype))
    decay = np.zeros(rows.shape, x.dtype)
    decay[1:] = elementary.exp(np.minimum(shift[:-1] - shift[1:], 0))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        out = elementary.log(linear_recurrence(elementary.exp(rows - shift), decay, 0)) + shift
    return np.ascontiguousarray(np.moveaxis(out, 0, dim)).reshape(x.shape)
