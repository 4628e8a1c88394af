"""Reference implementations of norms and operators derived from them, by their definitions."""

import numpy as np


def vector_norm(x, ord=2, dim=None, keepdim=False, dtype=None):
    size = np.abs(x)
    if ord == 0:
        return (x != 0).sum(axis=dim, keepdims=keepdim)
    if np.isinf(ord):
        return (np.max if ord > 0 else np.min)(size, axis=dim, keepdims=keepdim)
    return (size**ord).sum(axis=dim, keepdims=keepdim) ** (1 / ord)


def matrix_norm(A, ord, dim=(-2, -1), keepdim=False, dtype=None):
    """Return matrix norms by NumPy's singular values, or the sums of rows and columns."""
    matrices = np.abs(np.moveaxis(A, dim, (-2, -1)))
    if ord == "fro":
        out = np.sqrt((matrices**2).sum((-2, -1)))
    elif ord in ("nuc", 2, -2):
        values = np.linalg.svd(np.moveaxis(A, dim, (-2, -1)))[1]
        out = {"nuc": values.sum(-1), 2: values.max(-1), -2: values.min(-1)}[ord]
    else:
        sums = matrices.sum(-1 if np.isinf(ord) else -2)
        out = (np.max if ord > 0 else np.min)(sums, -1)
    return np.expand_dims(out, tuple(d % A.ndim for d in dim)) if keepdim else out


def older_norm(x, p, dim, keepdim, dtype):
    if p == "nuc":
        return matrix_norm(x, "nuc", (0, 1))
    return vector_norm(x, 2 if p == "fro" else p, dim, keepdim)


def renorm(x, p, dim, maxnorm):
    rest = tuple(d for d in range(x.ndim) if d != dim % x.ndim)
    size = vector_norm(x, p, rest, True)
    return np.where(size > maxnorm, x * maxnorm / (size + 1e-7), x)


def norm_except_dim(v, pow, dim):
    return vector_norm(v, pow) if dim == -1 else vector_norm(v, pow, tuple(d for d in range(v.ndim) if d != dim), True)


ORACLES = {
    "euclidean_norm": lambda x, dim, keepdim: vector_norm(x, 2, dim, keepdim),
    "frobenius_norm": lambda x, dim, keepdim: vector_norm(x, 2, dim, keepdim),
    "linalg.matrix_norm": matrix_norm,
    "linalg.vector_norm": vector_norm,
    "norm": older_norm,
    "norm_except_dim": norm_except_dim,
    "nuclear_norm": lambda x, dim, keepdim: matrix_norm(x, "nuc", (0, 1), keepdim),
    "power_norm": lambda x, p, dim, keepdim: vector_norm(x, p, dim, keepdim),
    "renorm": renorm,
}
