"""Products of sparse matrices with dense ones, by SciPy's kernels."""

import numpy as np

from retrograd.backend.sparse import scipy_sparse


def times_dense(values, dense, indices, shape):
    """Return the product of a sparse matrix, given by values and coordinates, and a dense one."""
    if not values.size or not dense.size:
        return np.zeros((shape[0], dense.shape[1]), np.result_type(values, dense))
    matrix = scipy_sparse().coo_array((values, (indices[0], indices[1])), shape=shape)
    return np.ascontiguousarray(matrix.tocsr() @ dense)


def sampled(a, b, indices):
    """Return the elements of a @ b.T at some coordinates."""
    return np.einsum("ij,ij->i", a[indices[0]], b[indices[1]])


def pair(rows, columns):
    """Return coordinates from the indices of rows and of columns."""
    return np.stack([rows, columns])
