"""Reference implementations of factorisations: NumPy's and SciPy's, with signs and phases if LAPACK is shared."""

import numpy as np

from retrograd.testing.references.common import mH
from retrograd.testing.references.solve import lu_parts, row_order


def cholesky(A, upper=False, check=True, check_errors=False):
    """Compute the Cholesky factor by its definition, column by column."""
    L = np.zeros_like(A)
    for j in range(A.shape[-1]):
        rest = A[..., j:, j] - np.einsum("...ik,...k->...i", L[..., j:, :j], L[..., j, :j])
        L[..., j:, j] = rest / np.sqrt(rest[..., :1])
    return mH(L) if upper else L


def linalg_qr(A, mode="reduced"):
    Q, R = np.linalg.qr(A, mode if mode != "r" else "reduced")
    return (np.zeros(0) if mode == "r" else Q), R


def permutation(pivots, m):
    """Return P with P[i, j] = 1 where row j of L U is row i of A."""
    order = row_order(pivots, m, False)
    return np.swapaxes(np.eye(m)[order], -1, -2)


def linalg_lu_factor_ex(A, pivot, check_errors=False):
    LU, swaps, info = lu_parts(A, pivot=pivot)
    return LU, swaps + 1, info


def unpack(LU):
    k = min(LU.shape[-2:])
    return np.tril(LU[..., :k], -1) + np.eye(LU.shape[-2], k), np.triu(LU[..., :k, :])


def linalg_lu(A, pivot):
    LU, swaps, _ = lu_parts(A, pivot=pivot)
    return (permutation(swaps, A.shape[-2]) if pivot else np.zeros(0), *unpack(LU))


def lu_unpack(LU_data, LU_pivots, unpack_data, unpack_pivots):
    P = permutation(LU_pivots - 1, LU_data.shape[-2]) if unpack_pivots else np.zeros(0)
    return (P, *(unpack(LU_data) if unpack_data else (np.zeros(0), np.zeros(0))))


def svd(x, some, compute_uv):
    U, S, Vh = np.linalg.svd(x, not some)
    return U, S, mH(Vh)


def linalg_cholesky_ex(A, upper, check_errors):
    return (cholesky(A, upper), np.zeros(A.shape[:-2]))


def linalg_lu_factor(A, pivot):
    return linalg_lu_factor_ex(A, pivot)[:2]


def linalg_svdvals(A, driver):
    return np.sqrt(np.linalg.eigvalsh(A @ mH(A) if A.shape[-2] <= A.shape[-1] else mH(A) @ A))[..., ::-1]


def packed_lu(A, LU):
    return lu_parts(A, pivot=False)[0]


def qr(x, some):
    return linalg_qr(x, "reduced" if some else "complete")
