"""The locally optimal block preconditioned conjugate gradient method, for some eigenpairs of large matrices.

A. V. Knyazev, SIAM J. Sci. Comput. 23 (2001); bases are made orthonormal as by A. Stathopoulos and K. Wu, SIAM J. Sci.
Comput. 23 (2002).
"""

import numpy as np

__all__ = ["extreme_eigenpairs"]


def extreme_eigenpairs(a, b, ik, x, niter, tol, largest, tracker):
    """Return eigenvalues (..., n) and eigenvectors (..., m, n) of A x = e B x, from a first guess x (..., m, n).

    `ik` approximates the inverse of A.  The iteration ends when all residuals, relative to |A| + |e| |B|, are below
    `tol`, or after `niter` steps (-1: never).  `tracker` is called with a dict of
    each step's state, and ends the iteration by returning True.
    """
    values, vectors = np.empty((*x.shape[:-2], x.shape[-1]), x.dtype), np.empty(x.shape, x.dtype)
    for place in np.ndindex(x.shape[:-2]):
        given = [None if matrix is None else matrix[place] for matrix in (a, b, ik)]
        if x.size:
            values[place], vectors[place] = _iterate(*given, x[place], niter, tol, largest, tracker)
            vectors[place] *= _signs(vectors[place])
    return values, vectors


def _signs(x):
    """Return the signs that make the largest element of each column positive."""
    return np.sign(np.take_along_axis(x, np.abs(x).argmax(axis=0)[None], 0))


def _times(matrix, x):
    """Return matrix @ x, where None is the identity."""
    return x if matrix is None else matrix @ x


def _iterate(a, b, ik, x, niter, tol, largest, tracker):
    count, step = x.shape[1], 0
    sizes = [np.linalg.norm(_times(matrix, x)) / np.linalg.norm(x) for matrix in (a, b)]  # estimates from the guess
    x = _orthonormal(b, x)
    if x.shape[1] < count:
        raise ValueError(f"lobpcg: the first guess has rank {x.shape[1]}, expected {count} independent columns")
    values, x, directions = _best(a, x, count, largest)
    directions = directions[:, :0]
    while True:
        residual = a @ x - _times(b, x) * values
        error = np.linalg.norm(residual, axis=0)
        error = error / np.maximum(
            np.linalg.norm(x, axis=0) * (sizes[0] + np.abs(values) * sizes[1]), np.finfo(x.dtype).tiny
        )
        converged = int(np.cumprod(error < tol).sum())
        state = {"istep": step, "converged_count": converged, "E": values, "X": x, "R": residual, "rerr": error}
        if (tracker is not None and tracker(state)) or converged == count or step == niter:
            return values, x
        basis = _extend_basis(b, x, np.concatenate([_times(ik, residual), directions], axis=1))
        values, x, directions = _best(a, basis, count, largest)
        step += 1


def _extend_basis(b, x, more):
    """Return the orthonormal columns x, followed by orthonormal ones for the part of `more` outside their span."""
    for _ in range(2):  # the second pass removes the rounding errors of the first
        more = more - x @ (_times(b, x).T @ more)
        more = _orthonormal(b, more)
    return np.concatenate([x, more], axis=1)


def _orthonormal(b, x):
    """Return columns that are orthonormal with respect to B and span those of x, without the dependent ones."""
    for _ in range(2):
        size = np.sqrt(np.maximum(np.einsum("ij,ij->j", x, _times(b, x)), 0))
        x = x[:, size > np.finfo(x.dtype).tiny ** 0.5] / size[size > np.finfo(x.dtype).tiny ** 0.5]
        weights, turns = np.linalg.eigh(x.T @ _times(b, x))
        kept = weights > weights.max(initial=0) * np.finfo(x.dtype).eps * max(x.shape)
        x = x @ (turns[:, kept] / np.sqrt(weights[kept]))
    return x


def _best(a, basis, count, largest):
    """Return the best eigenpairs in the span of a basis, and the directions that led there from its first columns."""
    values, turns = np.linalg.eigh(basis.T @ a @ basis)
    if largest:
        values, turns = values[::-1], turns[:, ::-1]
    turns = turns[:, :count]
    return values[:count], basis @ turns, basis[:, count:] @ turns[count:]
