"""Solvers of linear systems with sparse matrices, by SciPy: factorizations that are kept, and iterative methods."""

import numpy as np

from retrograd.backend.sparse import scipy_sparse
from retrograd.backend.sparse_pattern import Coordinates
from retrograd.backend.sparse_products import matrix_of
from retrograd.foundation.lazy_imports import lazy_module
from retrograd.foundation.source_location import warn_user


def linalg():
    """Return the module scipy.sparse.linalg, imported at the first call."""
    scipy_sparse()  # names the extra if SciPy is missing
    return lazy_module("scipy.sparse.linalg")


class Solver:
    """A way to solve A x = b; `solve` gets A by its entries and b as a matrix, and returns x."""

    def solve(self, values, pattern, b, transposed):
        """Return the solution of A x = b, or of the transposed system."""
        matrix = matrix_of(values, pattern)
        return self.run(matrix.T if transposed else matrix, b, transposed)

    def run(self, matrix, b, transposed):
        """Return the solution of matrix x = b; `transposed` says that the matrix is that of the user, transposed."""
        raise NotImplementedError


class Factorization(Solver):
    """LU factors by SuperLU (Demmel et al., 1999), kept for further systems with the same values."""

    def __init__(self, **options):
        self.options = options
        self._values = self._factors = None

    def factors(self, values, pattern):
        """Return SciPy's object with the factors."""
        if self._factors is None or self._values is not values:
            self._factors = linalg().splu(matrix_of(values, pattern).tocsc(), **self.options)
            self._values = values
        return self._factors

    def solve(self, values, pattern, b, transposed):
        """Solve by the factors."""
        return self.factors(values, pattern).solve(np.ascontiguousarray(b), "T" if transposed else "N")


class Triangular(Solver):
    """Substitution with a triangular matrix."""

    def __init__(self, lower, **options):
        self.lower = lower
        self.options = options

    def run(self, matrix, b, transposed):
        """Solve by SciPy's function."""
        return linalg().spsolve_triangular(matrix.tocsr(), b, lower=self.lower != transposed, **self.options)


class Iterative(Solver):
    """A Krylov method of SciPy, column by column; `info` is 0 if the last solution converged for each column."""

    def __init__(self, name, preconditioner, start, **options):
        self.name = name
        self.preconditioner = preconditioner
        self.start = start  # for the first system only, which is the user's
        self.options = options
        self.info = None

    def run(self, matrix, b, transposed):
        """Solve by SciPy's function; warn if a system of a derivative did not converge."""
        given, start = {**self.options}, self.start
        if self.preconditioner is not None:
            given["M"] = self.preconditioner.T if transposed else self.preconditioner
        first, self.start = self.info is None, None
        if not first:
            given.pop("callback", None)
        out, infos = np.empty_like(b), [0]
        for column in range(b.shape[1]):
            out[:, column], info = getattr(linalg(), self.name)(matrix, b[:, column], start, **given)
            infos.append(info)
        found = max(infos, key=abs)
        if first:
            self.info = found
        elif found:
            warn_user(
                f"{self.name} did not converge in the linear system of a derivative (info={found}), so the derivative "
                f"is inexact; allow more iterations by maxiter, or give a preconditioner M",
                RuntimeWarning,
            )
        return out


def lower_triangle(size):
    """Return the coordinates of the lower triangle of a matrix, with its diagonal."""
    return Coordinates(np.stack(np.tril_indices(size)), (size, size), True)


def with_diagonal(pattern):
    """Return coordinates with those of the diagonal appended, which are then there twice."""
    diagonal = np.tile(np.arange(pattern.sizes[0]), (2, 1))
    return Coordinates(np.concatenate([pattern.indices, diagonal], 1), pattern.sizes)


def bordered(pattern, count):
    """Return coordinates of [[A, B], [B.T, C]], with a dense border of `count` columns, in this order: A, B, B.T, C."""
    (size, _), whole = pattern.sizes, pattern.sizes[0] + count
    rows, columns = np.indices((size, count)).reshape(2, -1) + np.array([[0], [size]])
    corner = np.indices((count, count)).reshape(2, -1) + size
    indices = [pattern.indices, np.stack([rows, columns]), np.stack([columns, rows]), corner]
    return Coordinates(np.concatenate(indices, 1), (whole, whole))


def as_linear_operator(given):
    """Return a matrix, dense or sparse, or a linear operator, as a linear operator of SciPy; None as None."""
    return None if given is None else linalg().aslinearoperator(given)


def eigenpairs(values, pattern, count, options):
    """Return eigenvectors of a symmetric matrix by SciPy's eigsh, each followed by its eigenvalue, as a vector."""
    w, v = linalg().eigsh(matrix_of(values, pattern), count, **options)
    return np.concatenate([v, w[None]]).T.astype(values.dtype, copy=False).reshape(-1)
