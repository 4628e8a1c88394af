"""PyTorch's calls of factorisations.  Signs of vectors depend on LAPACK, so PyTorch's are set to NumPy's."""

import numpy as np
import torch

DIAGONAL = "PyTorch's gradient has imaginary parts on the diagonal, where A has none"


def _signs(theirs, reference):
    """Return 1 or -1 for each column, assuming that both agree up to signs."""
    array = theirs.detach().numpy()
    return torch.tensor(np.sign((array * reference).sum(-2, keepdims=True)))


def _eigh(A, UPLO):
    L, V = torch.linalg.eigh(A, UPLO)
    return L, V if V.is_complex() else V * _signs(V, np.linalg.eigh(A.detach().numpy(), UPLO)[1])


def _svd(A, full_matrices, driver):
    U, S, Vh = torch.linalg.svd(A, full_matrices)
    if U.is_complex():
        return U, S, Vh
    left, _, right = np.linalg.svd(A.detach().numpy(), full_matrices)
    return U * _signs(U, left), S, (Vh.mT * _signs(Vh.mT, np.swapaxes(right, -1, -2))).mT


def _older_svd(x, some, compute_uv):
    U, S, Vh = _svd(x, not some, None)
    return U, S, Vh.mH


def _lu(A, pivot):
    """Call lu; on the CPU PyTorch always pivots, but the samples without pivoting need none."""
    P, L, U = torch.linalg.lu(A)
    return P if pivot else P.new_zeros(0), L, U


def _qr(A, mode):
    """Call qr; mode "r" has no derivative in PyTorch."""
    Q, R = torch.linalg.qr(A, "reduced" if mode == "r" else mode)
    return (Q.new_zeros(0) if mode == "r" else Q), R


CALLS = {
    "linalg.eigh": _eigh,
    "linalg.lu": _lu,
    "linalg.lu_factor": lambda A, pivot: torch.linalg.lu_factor(A),
    "linalg.lu_factor_ex": lambda A, pivot, check_errors: torch.linalg.lu_factor_ex(A),
    "linalg.qr": _qr,
    "linalg.svd": _svd,
    "qr": lambda x, some: torch.linalg.qr(x, "reduced" if some else "complete"),
    "svd": _older_svd,
}

NO_COUNTERPART = {
    "linalg.eig": "PyTorch refuses losses that depend on phases: test_linalg_parity.py compares some that do not",
}

KNOWN = {
    ("linalg.cholesky", "gradient"): DIAGONAL,
    ("linalg.cholesky", "second order"): DIAGONAL,
    ("linalg.cholesky_ex", "gradient"): DIAGONAL,
    ("linalg.cholesky_ex", "second order"): DIAGONAL,
}
