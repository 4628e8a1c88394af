"""Kernels of linear algebra that NumPy lacks, or whose errors in NumPy do not name the operator.

If SciPy is installed, its LAPACK computes large matrices: it returns LU factors, and has single precision, where NumPy
computes in double.  Small matrices go through NumPy, a whole stack at once.
"""

from functools import cache

import numpy as np

from retrograd.kernels.host_values import on_host

__all__ = [
    "LinAlgError",
    "cholesky_lower",
    "cholesky_partial",
    "cofactors",
    "copy_result",
    "determinant",
    "eigen",
    "eigen_hermitian",
    "eigenvalues",
    "eigenvalues_hermitian",
    "first_indefinite_minor",
    "invert",
    "invert_or_nan",
    "least_squares",
    "log_determinant",
    "lu_factors",
    "matrix_exponential",
    "orthogonal_triangular",
    "pseudo_inverse",
    "row_order",
    "singular_values",
    "singular_vectors",
    "solve_factored",
    "solve_factors",
    "solve_triangular",
]

BLOCK = 32  # up to here NumPy's calls cost more than the arithmetic


class LinAlgError(RuntimeError, np.linalg.LinAlgError):
    """A matrix is singular, or not positive definite, or an iteration did not converge; also NumPy's error."""


@cache
def scipy_linalg():
    """Return the module scipy.linalg, imported at the first call; None without SciPy."""
    try:
        import scipy.linalg
    except ImportError:
        return None
    return scipy.linalg


def lapack():
    """Return SciPy's LAPACK and BLAS as (lapack, blas); None without SciPy."""
    linalg = scipy_linalg()
    return linalg and (linalg.lapack, linalg.blas)


def _routine(library, name, dtype):
    return getattr(library, "sdcz"["fdFD".index(dtype.char)] + name)


def _name_operator(name, function, reason):
    """Wrap NumPy's function so that its errors name the operator."""

    def kernel(a, *args, **params):
        check_precision(name, a)
        try:
            return function(a, *args, **params)
        except np.linalg.LinAlgError as error:
            raise LinAlgError(f"{name}: {reason}") from error

    return kernel


def check_square(name, a):
    """Raise unless `a` is a stack of square matrices of a dtype that LAPACK supports."""
    check_precision(name, a)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(f"{name}: expected square matrices, got shape {a.shape}")


def check_precision(name, a):
    """Raise unless LAPACK supports the dtype; NumPy would compute integers in double precision."""
    if a.dtype.char not in "fdFD":
        raise TypeError(
            f"{name}: expected a floating or complex dtype of at least 32 bits, got {a.dtype}; convert with .to(dtype)"
        )


def _single_precision(function, scipy_function):
    """Return a kernel: NumPy's function, or SciPy's for large single-precision matrices, which NumPy upcasts."""

    def kernel(a, *args):
        if a.dtype.char not in "fF" or a.ndim < 2 or min(a.shape[-2:]) <= BLOCK or not a.size or not lapack():
            return function(a, *args)
        if a.ndim == 2:
            return scipy_function(scipy_linalg(), a, *args)
        found = [scipy_function(scipy_linalg(), x, *args) for x in _stack(a)]
        if isinstance(found[0], tuple):
            return tuple(_unstack(np.stack(parts), a) for parts in zip(*found, strict=True))
        return _unstack(np.stack(found), a)

    return kernel


def _unstack(x, a):
    return x.reshape(*a.shape[:-2], *x.shape[1:])


def _scipy_qr(linalg, a, mode):
    return linalg.qr(a, mode="economic" if mode == "reduced" else "full", check_finite=False)


_SINGULAR = "The solver failed because the input matrix is singular: the matrix is singular"
_NOT_INVERTIBLE = (
    "A diagonal element is zero, the inversion could not be completed because the input matrix is singular: the "
    "matrix is "
    "singular"
)
_STUCK = "the iteration did not converge; is there a NaN?"
_INDEFINITE = (
    "The factorization could not be completed because the input is not positive-definite: the matrix is not positive "
    "definite"
)
_ODD = "the matrix holds inf or NaN, or the iteration did not converge"

_inverse = _single_precision(np.linalg.inv, lambda linalg, a: linalg.inv(a, check_finite=False))
_cholesky = _single_precision(np.linalg.cholesky, lambda linalg, a: linalg.cholesky(a, lower=True, check_finite=False))
invert = _name_operator("linalg.inv", _inverse, _NOT_INVERTIBLE)
determinant = _name_operator("linalg.det", np.linalg.det, "the matrix is not square")
cholesky_lower = _name_operator("linalg.cholesky", _cholesky, _INDEFINITE)
eigenvalues_hermitian = _name_operator("linalg.eigh", np.linalg.eigvalsh, _STUCK)
singular_values = _name_operator(
    "linalg.svd",
    _single_precision(np.linalg.svdvals, lambda linalg, a: linalg.svdvals(a, check_finite=False)),
    _STUCK,
)
_qr = _name_operator("linalg.qr", _single_precision(np.linalg.qr, _scipy_qr), "the factorisation failed")
_eigh = _name_operator(
    "linalg.eigh",
    _single_precision(
        np.linalg.eigh, lambda linalg, a, uplo: linalg.eigh(a, lower=uplo == "L", driver="evd", check_finite=False)
    ),
    _STUCK,
)
_svd = _name_operator(
    "linalg.svd",
    _single_precision(np.linalg.svd, lambda linalg, a, full: linalg.svd(a, full_matrices=full, check_finite=False)),
    _STUCK,
)
_slogdet = _name_operator("linalg.slogdet", np.linalg.slogdet, "the matrix is not square")
_eig = _name_operator("linalg.eig", np.linalg.eig, _ODD)
_eigvals = _name_operator("linalg.eig", np.linalg.eigvals, _ODD)
_lstsq = _name_operator("linalg.lstsq", np.linalg.lstsq, _STUCK)
_solve = _name_operator("linalg.solve", np.linalg.solve, _SINGULAR)


def eigen_hermitian(a, uplo):
    """Return the eigenvalues in ascending order, and the eigenvectors."""
    return tuple(_eigh(a, uplo))


def orthogonal_triangular(a, mode):
    """Return the factors Q and R of matrices with at least as many rows as columns."""
    if a.ndim < 2 or a.shape[-2] < a.shape[-1]:
        raise ValueError(f"linalg.qr: expected matrices that are not wide, got shape {a.shape}")
    return tuple(_qr(a, mode))


def singular_vectors(a, full_matrices):
    """Return the factors U, S and Vh."""
    return tuple(_svd(a, full_matrices))


def log_determinant(a):
    """Return the sign of the determinant, and the logarithm of its absolute value."""
    return tuple(_slogdet(a))


def copy_result(a, x):
    """Return a copy of x, an already computed result for the matrices a."""
    if a.ndim < 2:
        raise ValueError(f"expected matrices, got shape {a.shape}")
    return x.copy(order="C")


def _complex_like(x, a):
    return x.astype(np.result_type(a.dtype, np.complex64), copy=False)


def eigen(a):
    """Return the eigenvalues and eigenvectors, always complex."""
    values, vectors = _eig(a)
    return _complex_like(values, a), _complex_like(vectors, a)


def eigenvalues(a):
    """Return the eigenvalues, always complex."""
    return _complex_like(_eigvals(a), a)


def _stack(x):
    """Return the matrices as one stack of three dimensions."""
    return x.reshape(int(np.prod(x.shape[:-2])), *x.shape[-2:])


# -------------------------------------------------------------------------------------------------------- LU


def lu_factors(a, pivot=True):
    """Return packed LU factors, the row swapped in at each step (from 0), and the first zero pivot (from 1).

    Singular matrices raise no error; the third result is 0 for regular ones.
    """
    stack = _stack(a)
    steps = min(stack.shape[1:])
    if pivot and steps > BLOCK and lapack():
        lu, swaps = _lu_by_lapack(stack)
    else:
        lu, swaps = _lu_in_blocks(stack.copy(), steps, pivot)
    zero = np.diagonal(lu, axis1=1, axis2=2) == 0
    info = np.where(zero.any(axis=1), zero.argmax(axis=1) + 1, 0) if steps else np.zeros(len(stack))
    return (
        lu.reshape(a.shape),
        swaps.reshape(*a.shape[:-2], steps).astype(np.int32),
        info.reshape(a.shape[:-2]).astype(np.int32),
    )


def _lu_by_lapack(stack):
    count, m, n = stack.shape
    getrf = _routine(lapack()[0], "getrf", stack.dtype)
    factored = [getrf(x) for x in stack]
    swaps = np.stack([f[1] for f in factored]) if count else np.zeros((0, min(m, n)))
    if count == 1:  # LAPACK's layout is preserved, which avoids copies in later solves
        return factored[0][0][None], swaps
    return (np.stack([f[0] for f in factored]) if count else stack.copy()), swaps


def _lu_in_blocks(a, steps, pivot):
    """Factor all matrices of a stack at once, in place: the columns of a block, then the rest by matrix products."""
    swaps = np.zeros((len(a), steps), np.int32)
    for start in range(0, steps, BLOCK):
        stop = min(start + BLOCK, steps)
        for j in range(start, stop):
            swaps[:, j] = _eliminate(a, j, stop, pivot)
        a[:, start:stop, stop:] = solve_triangular(
            a[:, start:stop, start:stop], a[:, start:stop, stop:], upper=False, unit=True
        )
        a[:, stop:, stop:] -= a[:, stop:, start:stop] @ a[:, start:stop, stop:]
    return a, swaps


def _eliminate(a, j, stop, pivot):
    """Eliminate column j within the columns up to `stop`; return the rows swapped with row j."""
    each = np.arange(len(a))
    rows = np.full(len(a), j)
    if pivot:
        column = a[:, j:, j]
        size = np.abs(column.real) + np.abs(column.imag) if a.dtype.kind == "c" else np.abs(column)  # as LAPACK does
        rows = j + size.argmax(axis=1)
        a[each, rows], a[:, j] = a[:, j].copy(), a[each, rows]
    head = a[:, j, j]
    a[:, j + 1 :, j] /= np.where(head == 0, 1, head)[:, None]
    a[:, j + 1 :, j + 1 : stop] -= a[:, j + 1 :, j, None] * a[:, j, None, j + 1 : stop]
    return rows


def row_order(swaps, rows):
    """Return the row permutation that the swaps produce from 0, 1, ..., rows - 1."""
    flat = swaps.reshape(int(np.prod(swaps.shape[:-1])), swaps.shape[-1])
    order = np.tile(np.arange(rows), (len(flat), 1))
    each = np.arange(len(flat))
    for j in range(flat.shape[1]):
        order[:, j], order[each, flat[:, j]] = order[each, flat[:, j]], order[:, j].copy()
    return order.reshape(*swaps.shape[:-1], rows)


# ----------------------------------------------------------------------------------------- systems of equations


def solve_factors(a):
    """Return what solves with a and its transpose share: LU and pivots of the transpose, or that itself if it is small.

    The transpose of an array in the order of rows is in the order of LAPACK, which would copy the array itself.
    """
    check_square("linalg.solve", a)
    turned = np.swapaxes(a, -1, -2)
    if on_host and a.shape[-1] <= BLOCK:
        return turned.copy(), np.full(a.shape[:-1], -1, np.int32)
    lu, swaps, info = lu_factors(turned)
    if on_host and info.any():
        raise LinAlgError(f"linalg.solve: the matrix is singular: pivot {info.max()} is 0")
    return lu, swaps


def solve_factored(lu, swaps, b, transposed):
    """Return X with A X = B, or A^T X = B, from the LU factors and pivots of A, or A itself and negative pivots."""
    if on_host and swaps.size and swaps.flat[0] < 0:
        return _solve(np.swapaxes(lu, -1, -2) if transposed else lu, b)
    if lapack() and b.size and lu.shape[-1] > BLOCK:
        getrs = _routine(lapack()[0], "getrs", lu.dtype)
        matrices = zip(_stack(lu), _stack(swaps[..., None])[..., 0], _stack(b), strict=True)
        found = [getrs(f, s, x, trans=int(transposed))[0] for f, s, x in matrices]
        return found[0].reshape(b.shape) if len(found) == 1 else np.stack(found).reshape(b.shape)
    return _solve_by_triangles(lu, swaps, b, transposed)


def _solve_by_triangles(lu, swaps, b, transposed):
    order = row_order(swaps, lu.shape[-1])[..., None]
    if not transposed:
        y = solve_triangular(lu, np.take_along_axis(b, order, -2), upper=False, unit=True)
        return solve_triangular(lu, y, upper=True, unit=False)
    turned = np.swapaxes(lu, -1, -2)
    y = solve_triangular(turned, b, upper=False, unit=False)
    x = solve_triangular(turned, y, upper=True, unit=True)
    return np.take_along_axis(x, np.argsort(order, axis=-2), -2)


def solve_triangular(a, b, upper, unit):
    """Return X with A X = B from one triangle of A, recursively by halves; `unit`: ones on the diagonal."""
    n = a.shape[-1]
    if a.ndim == b.ndim == 2 and n > BLOCK and b.size and lapack():
        return _solve_by_blas(a, b, upper, unit)
    if n <= BLOCK // 2:
        return _substitute(a, b, upper, unit)
    h = n // 2
    first, second = (slice(h, None), slice(h)) if upper else (slice(h), slice(h, None))
    x = solve_triangular(a[..., first, first], b[..., first, :], upper, unit)
    rest = b[..., second, :] - a[..., second, first] @ x
    y = solve_triangular(a[..., second, second], rest, upper, unit)
    return np.concatenate([y, x] if upper else [x, y], axis=-2)


def _solve_by_blas(a, b, upper, unit):
    trsm = _routine(lapack()[1], "trsm", a.dtype)
    if a.flags.c_contiguous:  # BLAS expects column order: pass the transpose, without a copy
        return trsm(1, a.T, b, lower=int(upper), trans_a=1, diag=int(unit))
    return trsm(1, a, b, lower=int(not upper), diag=int(unit))


def _substitute(a, b, upper, unit):
    n = a.shape[-1]
    out = np.empty((*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), *b.shape[-2:]), b.dtype)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # a zero on the diagonal gives inf or NaN
        for i in reversed(range(n)) if upper else range(n):
            done = slice(i + 1, None) if upper else slice(i)
            row = b[..., i, :] - (a[..., i, None, done] @ out[..., done, :])[..., 0, :]
            out[..., i, :] = row if unit else row / a[..., i, i, None]
    return out


# ------------------------------------------------------------------------------- singular matrices allowed


def _or_nan(name, function, a):
    """Apply a function to stacked square matrices; if that fails, to each alone, with NaN where it fails again."""
    check_square(name, a)
    try:
        return function(a)
    except np.linalg.LinAlgError:
        pass
    out = np.empty_like(a)
    for place in np.ndindex(a.shape[:-2]):
        try:
            out[place] = function(a[place])
        except np.linalg.LinAlgError:
            out[place] = np.nan
    return out


def invert_or_nan(a):
    """Return the inverse; NaN for singular matrices."""
    return _or_nan("linalg.inv_ex", np.linalg.inv, a)


def cholesky_partial(a):
    """Return the lower Cholesky factor; of other matrices the columns found before the first minor that is indefinite.

    Its further columns have the lower triangle of the Schur complement, as LAPACK's potrf leaves them.
    """
    out = _or_nan("linalg.cholesky_ex", np.linalg.cholesky, a)
    for place in np.argwhere(np.isnan(out).any((-2, -1)) & ~np.isnan(a).any((-2, -1))):
        with np.errstate(all="ignore"):  # a matrix may have infinite elements
            out[tuple(place)] = _leading_columns(a[tuple(place)])
    return out


def _leading_columns(a):
    out = np.tril(a)
    known = int(first_indefinite_minor(a)) - 1
    if known > 0:
        factor = np.linalg.cholesky(a[:known, :known])
        below = np.linalg.solve(factor, a[known:, :known].conj().T).conj().T
        out[:known, :known], out[known:, :known] = factor, below
        out[known:, known:] -= np.tril(below @ below.conj().T)
    return out


def _is_definite(a):
    try:
        return not np.isnan(np.linalg.cholesky(a)).any()
    except np.linalg.LinAlgError:
        return False


def first_indefinite_minor(a):
    """Return the order of the first leading minor that is not positive definite; 0 if all are."""
    out = np.zeros(a.shape[:-2], np.int32)
    for place in np.ndindex(out.shape):
        good, bad = 0, a.shape[-1] + 1
        while bad - good > 1:  # bisection: minors are positive definite up to some order
            middle = (good + bad) // 2
            good, bad = (middle, bad) if _is_definite(a[place][:middle, :middle]) else (good, middle)
        out[place] = bad if bad <= a.shape[-1] else 0
    return out


def cofactors(a):
    """Return det(A) inv(A)^T; it is a polynomial, so for singular A it is computed from the singular vectors."""
    check_square("linalg.det", a)
    try:
        inverse = _inverse(a)
    except np.linalg.LinAlgError:
        return _or_nan("linalg.det", _cofactors_by_svd, a)
    with np.errstate(all="ignore"):
        size = np.max(np.abs(a).sum(axis=-2), axis=-1, initial=0) * np.max(
            np.abs(inverse).sum(axis=-2), axis=-1, initial=0
        )
    if not on_host or not (size < np.finfo(a.dtype).eps ** -0.5).all():
        return _or_nan("linalg.det", _cofactors_by_svd, a)
    return np.swapaxes(inverse, -1, -2) * np.linalg.det(a)[..., None, None]


def _cofactors_by_svd(a):
    u, s, vh = _svd(a)
    n = s.shape[-1]
    others = np.prod(np.where(np.eye(n, dtype=bool), np.ones((), s.dtype), s[..., None, :]), axis=-1)
    turn = np.linalg.det(u) * np.linalg.det(vh)
    return (u.conj() * (others * turn[..., None])[..., None, :]) @ vh.conj()


def pseudo_inverse(a, atol, rtol, hermitian):
    """Return the inverse over singular values (if `hermitian`, eigenvalues) above max(atol, rtol * largest)."""
    if hermitian:
        s, u = _eigh(a)
        v = u
    else:
        u, s, vh = _svd(a, False)
        v = np.swapaxes(vh, -1, -2).conj()
    size = np.abs(s)
    atol, rtol = (np.real(bound)[..., None] for bound in (atol, rtol))
    kept = size > np.maximum(atol, rtol * np.max(size, axis=-1, keepdims=True, initial=0))
    inverse = np.where(kept, 1 / np.where(kept, s, 1), 0).astype(s.dtype)
    return (v * inverse[..., None, :]) @ np.swapaxes(u, -1, -2).conj()


def least_squares(a, b, rcond):
    """Return the X of least norm that minimises |A X - B|, and the rank of A."""
    x = np.empty((*a.shape[:-2], a.shape[-1], b.shape[-1]), b.dtype)
    rank = np.empty(a.shape[:-2], np.int64)
    for place in np.ndindex(rank.shape):
        x[place], _, rank[place], _ = _lstsq(a[place], b[place], rcond)
    return x, rank


def matrix_exponential(a):
    """Return the exponential of square matrices, by SciPy.

    N. J. Higham, The scaling and squaring method for the matrix exponential revisited (2005).
    """
    check_square("linalg.matrix_exp", a)
    if scipy_linalg() is None:
        raise ImportError("linalg.matrix_exp needs SciPy: pip install 'retrograd[scipy]'")
    return scipy_linalg().expm(a).astype(a.dtype, copy=False)
