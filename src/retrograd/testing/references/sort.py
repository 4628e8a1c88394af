"""Reference implementations of sorting and searching, by Python's own sort and search."""

import bisect

import numpy as np


def along(function, *, keep=True):
    """Map a function of lists over the rows along `dim`; its result (or a number) replaces the row."""

    def oracle(x, dim, **params):
        rows = np.moveaxis(x, dim, -1)
        found = np.array([function(rows[i].tolist(), **params) for i in np.ndindex(rows.shape[:-1])])
        out = found.reshape(*rows.shape[:-1], -1)
        return np.moveaxis(out, -1, dim) if keep else out[..., 0]

    return oracle


def order(row, descending=False, **ignored):
    return sorted(range(len(row)), key=lambda i: -row[i] if descending else row[i])


sort_indices = along(order)


def values_and_indices(places_of):
    def oracle(x, dim=None, **params):
        dim = -1 if dim is None else dim
        keepdim = params.pop("keepdim", True)
        found = places_of(x, dim, **params)
        both = np.take_along_axis(x, found, dim), found
        return both if keepdim else tuple(b.squeeze(dim) for b in both)

    return oracle


ranked = along(lambda row, k: [order(row)[k - 1]])
largest = along(lambda row, k, largest, sorted=True: order(row, largest)[:k])


def insertion_index(sequence, values, sorter, right, **ignored):
    search = bisect.bisect_right if right or ignored.get("side") == "right" else bisect.bisect_left
    if sequence.ndim == 1:
        sequence = sequence if sorter is None else sequence[sorter]
        return np.vectorize(lambda v: search(sequence.tolist(), v), otypes=[int])(values)
    rows = zip(sequence, values, [None] * len(values) if sorter is None else sorter, strict=True)
    return np.stack([insertion_index(*row, right, **ignored) for row in rows])


def runs(slices):
    """Return the first index of each run, the run of each element, and the lengths of the runs."""
    starts, numbers = [], []
    for i, s in enumerate(slices):
        if not i or not np.array_equal(s, slices[i - 1]):
            starts.append(i)
        numbers.append(len(starts) - 1)
    return starts, numbers, np.bincount(numbers)


def unique_indices(x, consecutive=False):
    if consecutive:
        return runs(list(x))
    _, first, inverse, counts = np.unique(x, True, True, True, axis=0)
    return first, inverse.reshape(-1), counts


def unique_consecutive(x, return_inverse, return_counts, dim):
    slices = x.ravel() if dim is None else np.moveaxis(x, dim, 0)
    starts, numbers, counts = runs(list(slices))
    values = slices[starts] if dim is None else np.moveaxis(slices[starts], 0, dim)
    return (values, *[numbers] * return_inverse, *[counts] * return_counts)


sort = values_and_indices(sort_indices)


def sorted_values(x, dim, descending):
    return np.take_along_axis(x, sort_indices(x, dim, descending=descending), dim)


topk = values_and_indices(largest)


kthvalue = values_and_indices(ranked)


def bucketize(x, boundaries, out_int32, right):
    return insertion_index(boundaries, x, None, right)
