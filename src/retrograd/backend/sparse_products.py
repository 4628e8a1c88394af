"""Products of sparse matrices with dense ones, by SciPy's kernels."""

import numpy as np

from retrograd.backend.sparse import scipy_sparse


def times_dense(values, dense, pattern):
    """Return the product of a sparse matrix, given by values and coordinates, and a dense one."""
    if not values.size or not dense.size:
        return np.zeros((pattern.sizes[0], dense.shape[1]), np.result_type(values, dense))
    return np.ascontiguousarray(matrix_of(values, pattern) @ dense)


def matrix_of(values, pattern):
    """Return a sparse array of SciPy with these values at the coordinates of a pattern, which may repeat."""
    order, columns, starts = pattern.by_rows
    return scipy_sparse().csr_array((values if order is None else values[order], columns, starts), shape=pattern.sizes)


def sampled(a, b, indices):
    """Return the elements of a @ b.T at some coordinates."""
    return np.einsum("ij,ij->i", a[indices[0]], b[indices[1]])


def pair(rows, columns):
    """Return coordinates from the indices of rows and of columns."""
    return np.stack([rows, columns])
