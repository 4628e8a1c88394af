"""Sparse Jacobians as SciPy's arrays: which elements depend on which unknowns, and matrices from their compressed form.

A dependence is a boolean array with a row for each element and a column for each unknown.
"""

import math
from itertools import pairwise

import numpy as np


def scipy_sparse():
    """The module scipy.sparse, imported when first needed; ImportError names the extra to install."""
    try:
        import scipy.sparse
    except ImportError as error:
        raise ImportError("sparse Jacobians and Hessians need SciPy: pip install 'retrograd[scipy]'") from error
    return scipy.sparse


# ------------------------------------------------------------------------------------------------ dependences


def on_itself(n):
    """The dependence of n unknowns: each on itself."""
    return _rows(np.ones(n, np.intp), np.arange(n), n)


def on_nothing(n, unknowns):
    """The dependence of n elements that have no derivative."""
    return _rows(np.zeros(n, np.intp), np.empty(0, np.intp), unknowns)


def _rows(counts, columns, width):
    """Return the compressed rows with `counts` entries each, in these columns."""
    starts = np.concatenate([[0], np.cumsum(counts)])
    return scipy_sparse().csr_array((np.ones(len(columns), bool), columns, starts), shape=(len(counts), width))


def stacked(dependences):
    """The dependence of the elements of several tensors, one after the other."""
    return dependences[0] if len(dependences) == 1 else scipy_sparse().vstack(dependences, format="csr")


def alike(shape, out, dims):
    """Labels, for elements of `shape` and of `out`, that are equal where all `dims` agree.

    `dims` says of dimensions of the first which one of the second each is; sizes of 1 broadcast.
    """
    sizes = [shape[d] for d in dims]
    numbers = np.arange(math.prod(sizes)).reshape(sizes)
    return _laid_out(numbers, list(dims), shape), _laid_out(numbers, list(dims.values()), out)


def _laid_out(numbers, at, shape):
    """Numbers along some dimensions of a shape, repeated along the others; flat."""
    sizes = [1] * len(shape)
    for d, size in zip(at, numbers.shape, strict=True):
        sizes[d] = size
    return np.broadcast_to(numbers.transpose(np.argsort(at)).reshape(sizes), shape).reshape(-1)


def as_labels(array, rows):
    """Labels that an operator computed, as integers: 1 is the first, 0 is none; -1 here."""
    numbers = np.real(array).round().astype(np.int64) - 1
    return numbers.reshape(rows, -1) if rows else numbers.reshape(0, 1)


def linked(dependence, into, out, rows):
    """The dependence of `rows` elements, each on those that have one of its labels; None: it is its own label."""
    count = dependence.shape[0]
    if into is not None:
        count = rows if out is None else 1 + max(into.max(initial=-1), out.max(initial=-1))
        dependence = _chosen(into, count).T.tocsr() @ dependence
    return dependence if out is None else _chosen(out, count) @ dependence


def _chosen(labels, count):
    """A row for each element, with entries at its labels."""
    labels = labels[:, None] if labels.ndim < 2 else labels
    there = labels >= 0
    assert labels.max(initial=-1) < count, "labels are numbers of elements"  # SciPy does not look
    return _rows(there.sum(1), labels[there], count)


def as_pattern(matrix):
    """A SciPy sparse array, or a dense one, as a boolean one in row order; zeros that are stored count as entries."""
    pattern = scipy_sparse().csr_array(matrix)
    pattern = scipy_sparse().csr_array(
        (np.ones(pattern.indices.size, bool), pattern.indices, pattern.indptr), shape=pattern.shape, copy=True
    )
    pattern.sum_duplicates()
    return pattern


def symmetric(pattern):
    """The pattern with the mirror image of each entry."""
    return as_pattern(pattern + transposed(pattern))


# ----------------------------------------------------------------------------------------- compressed matrices


def lists(pattern):
    """Per row the columns of its entries."""
    columns, starts = pattern.indices.tolist(), pattern.indptr.tolist()
    return [columns[a:b] for a, b in pairwise(starts)]


def transposed(pattern):
    """The pattern with rows and columns exchanged, in row order."""
    return pattern.T.tocsr()


def most_in_a_row(pattern):
    """The number of entries of the fullest row."""
    return int(np.diff(pattern.indptr).max(initial=0))


def as_colors(colors):
    """Colours as an array of integers."""
    return np.array(colors, np.intp)


def seeds(colors, count, dtype, shape):
    """An array of `shape` for each colour, with ones where that is."""
    out = np.zeros((count, len(colors)), dtype)
    there = np.flatnonzero(colors >= 0)
    out[colors[there], there] = 1
    return out.reshape(count, *shape)


def entries(pattern, colors, products, by):
    """The entries of a matrix, in the order of its pattern, from sums of its columns, or rows, of each colour."""
    rows = np.repeat(np.arange(pattern.shape[0]), np.diff(pattern.indptr))
    columns = pattern.indices
    if by == "rows":
        return products[colors[rows], columns]
    if by == "columns":
        return products[colors[columns], rows]
    alone = _alone(rows, colors[columns], len(products))
    return np.where(alone, products[colors[columns], rows], products[colors[rows], columns])


def _alone(rows, colors, count):
    """Whether an entry is the only one of its colour in its row."""
    places = rows * count + colors
    _, inverse, repeats = np.unique(places, return_inverse=True, return_counts=True)
    return repeats[inverse] == 1


def assembled(pattern, data, dtype):
    """A sparse array with these entries, in memory of its own."""
    return scipy_sparse().csr_array(
        (data.astype(dtype), pattern.indices.copy(), pattern.indptr.copy()), shape=pattern.shape
    )
