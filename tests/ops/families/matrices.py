"""Reference implementations of flips of matrices, and of matrices built from vectors."""

import numpy as np


def embedded(x, offset, dim1, dim2):
    n = x.shape[-1] + abs(offset)
    rows = np.zeros((*x.shape[:-1], n, n))
    for i in range(x.shape[-1]):
        rows[..., i + max(-offset, 0), i + max(offset, 0)] = x[..., i]
    return np.moveaxis(rows, (-2, -1), (dim1, dim2))


def triangle(row, col, belongs):
    return np.transpose([(i, j) for i in range(row) for j in range(col) if belongs(i, j)])


ORACLES = {
    "flipud": lambda x: x[::-1],
    "fliplr": lambda x: x[:, ::-1],
    "rot90": lambda x, k, dims: np.rot90(x, k, dims),
    "diag_embed": embedded,
    "diag": lambda x, diagonal: np.diag(x, diagonal),
    "diagflat": lambda x, offset: np.diagflat(x, offset),
    "tril_indices": lambda row, col, offset, dtype: triangle(row, col, lambda i, j: j - i <= offset),
    "triu_indices": lambda row, col, offset, dtype: triangle(row, col, lambda i, j: j - i >= offset),
    "vander": lambda x, N, increasing: np.vander(x, N, increasing),
}
