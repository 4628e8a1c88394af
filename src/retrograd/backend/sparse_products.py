"""Products of sparse matrices with dense ones, by the sparse arrays of SciPy or of a device's library."""

import numpy as np

from retrograd.backend.sparse import scipy_sparse
from retrograd.kernels.host_values import on_host

LIBRARY_DTYPES = "fdFD"  # the dtypes of sparse arrays on a device


def times_dense(values, dense, pattern):
    """Return the product of a sparse matrix, given by values and coordinates, and a dense one."""
    if not values.size or not dense.size:
        return np.zeros((pattern.sizes[0], dense.shape[1]), np.result_type(values, dense))
    if on_host or values.dtype.char in LIBRARY_DTYPES:
        return np.ascontiguousarray(matrix_of(values, pattern) @ dense)
    rows, columns = _coordinates(pattern)
    out = np.zeros((pattern.sizes[0], dense.shape[1]), np.result_type(values, dense))
    np.add.at(out, rows, values[:, None] * dense[columns])
    return out


def matrix_of(values, pattern):
    """Return a sparse array of SciPy with these values at the coordinates of a pattern, which may repeat."""
    order, columns, starts = _in_memory_of_arrays(pattern, "by rows", lambda: pattern.by_rows)
    return scipy_sparse().csr_array((values if order is None else values[order], columns, starts), shape=pattern.sizes)


def sampled(a, b, pattern):
    """Return the elements of a @ b.T at the coordinates of a pattern."""
    rows, columns = _coordinates(pattern)
    return np.einsum("ij,ij->i", a[rows], b[columns])


def _coordinates(pattern):
    return _in_memory_of_arrays(pattern, "coordinates", lambda: tuple(pattern.indices))


def _in_memory_of_arrays(pattern, name, arrays):
    """Return index arrays of a pattern where this library's arrays are: copies, which the pattern keeps."""
    if on_host:
        return arrays()
    cache = pattern.cache
    if (np.ndarray, name) not in cache:
        cache[np.ndarray, name] = tuple([None if x is None else np.asarray(x) for x in arrays()])
    return cache[np.ndarray, name]


def pair(rows, columns):
    """Return coordinates from the indices of rows and of columns."""
    return np.stack([rows, columns])
