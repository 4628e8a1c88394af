"""Reference implementations of factorisations: NumPy's and SciPy's, with signs and phases if LAPACK is shared."""

import numpy as np

from .solve import lu_parts, order_of_rows


def h(x):
    return np.swapaxes(x, -1, -2).conj()


def cholesky(A, upper=False, check=True, check_errors=False):
    """Compute the Cholesky factor by its definition, column by column."""
    L = np.zeros_like(A)
    for j in range(A.shape[-1]):
        rest = A[..., j:, j] - np.einsum("...ik,...k->...i", L[..., j:, :j], L[..., j, :j])
        L[..., j:, j] = rest / np.sqrt(rest[..., :1])
    return h(L) if upper else L


def qr(A, mode="reduced"):
    Q, R = np.linalg.qr(A, mode if mode != "r" else "reduced")
    return (np.zeros(0) if mode == "r" else Q), R


def permutation(pivots, m):
    """Return P with P[i, j] = 1 where row j of L U is row i of A."""
    order = order_of_rows(pivots, m, False)
    return np.swapaxes(np.eye(m)[order], -1, -2)


def lu_factor_ex(A, pivot, check_errors=False):
    LU, swaps, info = lu_parts(A, pivot=pivot)
    return LU, swaps + 1, info


def unpacked(LU):
    k = min(LU.shape[-2:])
    return np.tril(LU[..., :k], -1) + np.eye(LU.shape[-2], k), np.triu(LU[..., :k, :])


def lu(A, pivot):
    LU, swaps, _ = lu_parts(A, pivot=pivot)
    return (permutation(swaps, A.shape[-2]) if pivot else np.zeros(0), *unpacked(LU))


def lu_unpack(LU_data, LU_pivots, unpack_data, unpack_pivots):
    P = permutation(LU_pivots - 1, LU_data.shape[-2]) if unpack_pivots else np.zeros(0)
    return (P, *(unpacked(LU_data) if unpack_data else (np.zeros(0), np.zeros(0))))


def older_svd(x, some, compute_uv):
    U, S, Vh = np.linalg.svd(x, not some)
    return U, S, h(Vh)


ORACLES = {
    "cholesky_factor": cholesky,
    "linalg.cholesky": cholesky,
    "linalg.cholesky_ex": lambda A, upper, check_errors: (cholesky(A, upper), np.zeros(A.shape[:-2])),
    "linalg.lu": lu,
    "linalg.lu_factor": lambda A, pivot: lu_factor_ex(A, pivot)[:2],
    "linalg.lu_factor_ex": lu_factor_ex,
    "linalg.qr": qr,
    "linalg.svdvals": lambda A, driver: np.sqrt(
        np.linalg.eigvalsh(A @ h(A) if A.shape[-2] <= A.shape[-1] else h(A) @ A)
    )[..., ::-1],
    "lu_of": lambda A, LU: lu_parts(A, pivot=False)[0],
    "lu_unpack": lu_unpack,
    "qr": lambda x, some: qr(x, "reduced" if some else "complete"),
    "qr_factors": qr,
    "svd": older_svd,
}
