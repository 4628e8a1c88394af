"""Reference implementations of flips of matrices, and of matrices built from vectors."""

import numpy as np


def triangle(row, col, belongs):
    return np.transpose([(i, j) for i in range(row) for j in range(col) if belongs(i, j)])


ORACLES = {
    "tril_indices": lambda row, col, offset, dtype: triangle(row, col, lambda i, j: j - i <= offset),
    "triu_indices": lambda row, col, offset, dtype: triangle(row, col, lambda i, j: j - i >= offset),
}
