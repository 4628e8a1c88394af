"""Sparse Jacobians as SciPy arrays: dependences of elements on unknowns, and decompression of matrices.

A dependence is a boolean array with a row for each element and a column for each unknown.
"""

import math
from itertools import pairwise

import numpy as np


def scipy_sparse():
    """Return the module scipy.sparse, imported at the first call; ImportError names the extra to install."""
    try:
        import scipy.sparse
    except ImportError as error:
        raise ImportError("sparse Jacobians and Hessians need SciPy: pip install 'retrograd[scipy]'") from error
    return scipy.sparse


# ------------------------------------------------------------------------------------------------ dependences


def identity_dependence(n):
    """Return the dependence of n unknowns on themselves: the identity."""
    return _rows(np.ones(n, np.intp), np.arange(n), n)


def no_dependence(n, unknowns):
    """Return the dependence of n elements without derivatives."""
    return _rows(np.zeros(n, np.intp), np.empty(0, np.intp), unknowns)


def _rows(counts, columns, width):
    """Return a sparse array whose rows have `counts` entries each, in these columns."""
    starts = np.concatenate([[0], np.cumsum(counts)])
    return scipy_sparse().csr_array((np.ones(len(columns), bool), columns, starts), shape=(len(counts), width))


def concat_dependences(dependences):
    """Return the dependence of the elements of several tensors, concatenated."""
    return dependences[0] if len(dependences) == 1 else scipy_sparse().vstack(dependences, format="csr")


def shared_labels(shape, out, dims):
    """Return labels for elements of `shape` and of `out` that are equal where all `dims` agree.

    `dims` maps dimensions of the first shape to dimensions of the second; sizes of 1 broadcast.
    """
    sizes = [shape[d] for d in dims]
    numbers = np.arange(math.prod(sizes)).reshape(sizes)
    return _broadcast_labels(numbers, list(dims), shape), _broadcast_labels(numbers, list(dims.values()), out)


def _broadcast_labels(numbers, dims, shape):
    """Return values along some dimensions of a shape, repeated along the others; flat."""
    sizes = [1] * len(shape)
    for d, size in zip(dims, numbers.shape, strict=True):
        sizes[d] = size
    return np.broadcast_to(numbers.transpose(np.argsort(dims)).reshape(sizes), shape).reshape(-1)


def as_labels(array, rows):
    """Return labels that an operator computed as integers from 0; its 0, no label, becomes -1."""
    numbers = np.real(array).round().astype(np.int64) - 1
    return numbers.reshape(rows, -1) if rows else numbers.reshape(0, 1)


def propagate_dependence(dependence, into, out, rows):
    """Return the dependence of `rows` elements on those that share a label; None: an element is its own label."""
    count = dependence.shape[0]
    if into is not None:
        count = rows if out is None else 1 + max(into.max(initial=-1), out.max(initial=-1))
        dependence = _selection_matrix(into, count).T.tocsr() @ dependence
    return dependence if out is None else _selection_matrix(out, count) @ dependence


def _selection_matrix(labels, count):
    """Return a sparse array with a row for each element and entries at its labels."""
    labels = labels[:, None] if labels.ndim < 2 else labels
    labelled = labels >= 0
    assert labels.max(initial=-1) < count, "labels are numbers of elements"  # SciPy does not check
    return _rows(labelled.sum(1), labels[labelled], count)


def as_pattern(matrix):
    """Return a SciPy sparse or dense array as a boolean CSR array; stored zeros count as entries."""
    pattern = scipy_sparse().csr_array(matrix)
    pattern = scipy_sparse().csr_array(
        (np.ones(pattern.indices.size, bool), pattern.indices, pattern.indptr), shape=pattern.shape, copy=True
    )
    pattern.sum_duplicates()
    return pattern


def symmetric(pattern):
    """Return the pattern united with its transpose."""
    return as_pattern(pattern + transpose_pattern(pattern))


# ----------------------------------------------------------------------------------------- compressed matrices


def lists(pattern):
    """Return for each row the columns of its entries."""
    columns, starts = pattern.indices.tolist(), pattern.indptr.tolist()
    return [columns[a:b] for a, b in pairwise(starts)]


def transpose_pattern(pattern):
    """Return the transposed pattern as a CSR array."""
    return pattern.T.tocsr()


def max_row_entries(pattern):
    """Return the number of entries of the fullest row."""
    return int(np.diff(pattern.indptr).max(initial=0))


def as_colors(colors):
    """Return colours as an array of integers."""
    return np.array(colors, np.intp)


def seeds(colors, count, dtype, shape):
    """Return an array of `shape` for each colour, with ones at the elements of that colour."""
    out = np.zeros((count, len(colors)), dtype)
    there = np.flatnonzero(colors >= 0)
    out[colors[there], there] = 1
    return out.reshape(count, *shape)


def entries(pattern, colors, products, direction):
    """Return the entries of a matrix, in its pattern's order, from the sums of columns or rows of each colour."""
    rows = np.repeat(np.arange(pattern.shape[0]), np.diff(pattern.indptr))
    columns = pattern.indices
    if direction == "rows":
        return products[colors[rows], columns]
    if direction == "columns":
        return products[colors[columns], rows]
    alone = _alone(rows, colors[columns], len(products))
    return np.where(alone, products[colors[columns], rows], products[colors[rows], columns])


def _alone(rows, colors, count):
    """Return whether each entry is the only one of its colour in its row."""
    cells = rows * count + colors
    _, inverse, repeats = np.unique(cells, return_inverse=True, return_counts=True)
    return repeats[inverse] == 1


def assemble(pattern, data, dtype):
    """Return a sparse array with these entries, in new memory."""
    return scipy_sparse().csr_array(
        (data.astype(dtype), pattern.indices.copy(), pattern.indptr.copy()), shape=pattern.shape
    )
