"""Matrices whose elements are those of vectors, and solutions with the rows of bands."""

from retrograd.interop.numpy_protocol.table import O, as_floating, promote_operands, tensor, values
from retrograd.scipy._array_like import ArrayOrSequence
from retrograd.scipy._mirror import on_tensors, scipy_member
from retrograd.scipy.linalg.decompositions import eig_banded, eigh_tridiagonal, flags
from retrograd.scipy.linalg.functions import cho_solve

_linalg = on_tensors("scipy.linalg")


@_linalg
def convolution_matrix(a: ArrayOrSequence, n, mode="full"):
    """Return the matrix whose product with a vector of length n is the convolution of a with it."""
    a = tensor(a)
    size = a.shape[0]
    if a.ndim != 1 or size == 0 or n <= 0:
        raise ValueError(f"linalg.convolution_matrix: a must be a vector and n positive, got {tuple(a.shape)} and {n}")
    trim = min(n, size) - 1
    cuts = {"full": (0, 0), "same": (trim // 2, trim - trim // 2), "valid": (trim, trim)}
    if mode not in cuts:
        raise ValueError(f"linalg.convolution_matrix: mode must be 'full', 'same' or 'valid', got {mode!r}")
    first, last = cuts[mode]
    gap = O.zeros((n - 1,), dtype=a.dtype)
    rows = O.unsqueeze(O.arange(first, size + n - 1 - last), 1)
    return O.cat([gap, a, gap], 0)[rows - O.arange(n) + (n - 1)]


@_linalg
def diagsvd(s: ArrayOrSequence, M, N):
    """Return the (M, N) matrix with s on its diagonal."""
    s = tensor(s)
    size = s.shape[0]
    if size not in (M, N):
        raise ValueError(f"linalg.diagsvd: s must have M or N elements, got {size} for M={M} and N={N}")
    square = O.diag(s)
    across = O.zeros((size, N - size), dtype=s.dtype) if size == M else O.zeros((M - size, size), dtype=s.dtype)
    return O.cat([square, across], 1 if size == M else 0)


@_linalg
def fiedler(a: ArrayOrSequence):
    """Return the matrix of the distances |a[i] - a[j]|."""
    a = O.reshape(tensor(a), (-1,))
    return O.abs(O.unsqueeze(a, 1) - a)


@_linalg
def fiedler_companion(a: ArrayOrSequence):
    """Return Fiedler's companion matrix of the polynomial with coefficients a, highest first; it has 5 diagonals."""
    a = as_floating(a)
    own = scipy_member("scipy.linalg").fiedler_companion
    unit = values(O.eye(a.shape[0], dtype="float64"))
    constant = own(unit[0])
    parts = [own(unit[0] + unit[k]) - constant for k in range(1, a.shape[0])]  # the matrix is affine in a[1:] / a[0]
    slopes = O.stack([tensor(part).to(a.dtype) for part in parts], -1)
    return slopes @ (a[1:] / a[0]) + tensor(constant).to(a.dtype)


@_linalg
def leslie(f: ArrayOrSequence, s: ArrayOrSequence):
    """Return the matrix of a population with fecundities f in its first row and survivals s below the diagonal."""
    f, s = promote_operands(tensor(f), tensor(s))
    if f.ndim != 1 or s.ndim != 1 or f.shape[0] != s.shape[0] + 1:
        raise ValueError(f"linalg.leslie: f must have one element more than s, got {f.shape} and {s.shape}")
    below = O.cat([O.diag(s), O.zeros((s.shape[0], 1), dtype=s.dtype)], 1)
    return O.cat([O.unsqueeze(f, 0), below], 0)


# ------------------------------------------------------------------------------------------------ bands


@_linalg
def cho_solve_banded(cb_and_lower, b: ArrayOrSequence, **kwargs):
    """Return x with a x = b from the rows of the factor of `cholesky_banded`, a pair of them and `lower`."""
    flags("cho_solve_banded", **kwargs)
    rows, lower = cb_and_lower
    rows, b = promote_operands(as_floating(rows), as_floating(b))
    count, size = rows.shape
    diagonals = [
        O.diag(rows[k][: size - k], -k) if lower else O.diag(rows[count - 1 - k][k:], k) for k in range(count)
    ]  # fmt: skip
    return cho_solve((sum(diagonals[1:], diagonals[0]), lower), b)


@_linalg
def eigvals_banded(
    a_band: ArrayOrSequence, lower=False, overwrite_a_band=False, select="a", select_range=None, check_finite=True
):
    """Return the eigenvalues of `eig_banded`."""
    return eig_banded(a_band, lower, True, select=select, select_range=select_range)


@_linalg
def eigvalsh_tridiagonal(d: ArrayOrSequence, e: ArrayOrSequence, select="a", select_range=None, **kwargs):
    """Return the eigenvalues of `eigh_tridiagonal`."""
    return eigh_tridiagonal(d, e, True, select, select_range, **kwargs)
