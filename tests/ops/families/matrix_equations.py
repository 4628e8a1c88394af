"""Oracles of `ops/matrix_equations.py`: the equations themselves."""

import numpy as np


def solve_sylvester(A, B, Q):
    """Solve the system of linear equations that is equivalent to the matrix equation."""
    whole = np.kron(A, np.eye(len(B))) + np.kron(np.eye(len(A)), B.T)
    return np.linalg.solve(whole, Q.ravel()).reshape(Q.shape)


def sqrtm(A):
    """Return the square root by eigenvalues."""
    values, vectors = np.linalg.eig(A)
    root = vectors * np.sqrt(values.astype(complex)) @ np.linalg.inv(vectors)
    return root if A.dtype.kind == "c" else root.real


ORACLES = {"solve_sylvester": solve_sylvester, "sqrtm": sqrtm}
