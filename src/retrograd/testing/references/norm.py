"""Reference implementations of norms and operators derived from them, by their definitions."""

import numpy as np


def linalg_vector_norm(x, ord=2, dim=None, keepdim=False, dtype=None):
    size = np.abs(x)
    if ord == 0:
        return (x != 0).sum(axis=dim, keepdims=keepdim)
    if np.isinf(ord):
        return (np.max if ord > 0 else np.min)(size, axis=dim, keepdims=keepdim)
    return (size**ord).sum(axis=dim, keepdims=keepdim) ** (1 / ord)


def linalg_matrix_norm(A, ord, dim=(-2, -1), keepdim=False, dtype=None):
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


def norm(x, p, dim, keepdim, dtype):
    if p == "nuc":
        return linalg_matrix_norm(x, "nuc", (0, 1))
    return linalg_vector_norm(x, 2 if p == "fro" else p, dim, keepdim)


def renorm(x, p, dim, maxnorm):
    rest = tuple(d for d in range(x.ndim) if d != dim % x.ndim)
    size = linalg_vector_norm(x, p, rest, True)
    return np.where(size > maxnorm, x * maxnorm / (size + 1e-7), x)


def norm_except_dim(v, pow, dim):
    return (
        linalg_vector_norm(v, pow)
        if dim == -1
        else linalg_vector_norm(v, pow, tuple(d for d in range(v.ndim) if d != dim), True)
    )


def euclidean_norm(x, dim, keepdim):
    return linalg_vector_norm(x, 2, dim, keepdim)


def frobenius_norm(x, dim, keepdim):
    return linalg_vector_norm(x, 2, dim, keepdim)


def nuclear_norm(x, dim, keepdim):
    return linalg_matrix_norm(x, "nuc", (0, 1), keepdim)


def power_norm(x, p, dim, keepdim):
    return linalg_vector_norm(x, p, dim, keepdim)
