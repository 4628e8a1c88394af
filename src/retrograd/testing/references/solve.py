"""Reference implementations of linear systems, inverses and determinants: NumPy's and SciPy's, or an equation."""

import numpy as np

from retrograd.testing.references.common import mH


def linalg_solve(A, B, left=True):
    vector = B.ndim == 1 or B.shape == A.shape[:-1]
    B = B[..., None] if vector else B
    inverse = np.linalg.inv(A)
    X = inverse @ B if left else B @ inverse
    return X[..., 0] if vector else X


def linalg_solve_ex(A, B, left, check_errors):
    return linalg_solve(A, B, left), np.zeros(A.shape[:-2])


def map_matrices(function):
    """Map a function of one matrix over a stack, for SciPy's functions."""

    def oracle(x, **params):
        flat = x.reshape(-1, *x.shape[-2:])
        results = [function(m, **params) for m in flat]
        if isinstance(results[0], tuple):
            return tuple(np.reshape(r, (*x.shape[:-2], *r[0].shape)) for r in map(np.stack, zip(*results, strict=True)))
        return np.reshape(results, (*x.shape[:-2], *results[0].shape))

    return oracle


@map_matrices
def lu_parts(A, pivot):
    if pivot:
        import scipy.linalg

        lu, swaps = scipy.linalg.lu_factor(A)
        return lu, swaps, np.array(0)
    lu, steps = A.copy(), min(A.shape)
    for j in range(steps):
        lu[j + 1 :, j] /= lu[j, j]
        lu[j + 1 :, j + 1 :] -= np.outer(lu[j + 1 :, j], lu[j, j + 1 :])
    return lu, np.arange(steps), np.array(0)


def triangle(A, upper, unit):
    T = np.triu(A, int(unit)) if upper else np.tril(A, -int(unit))
    return T + np.eye(A.shape[-1]) if unit else T


def triangular(A, B, upper, unit):
    return np.linalg.inv(triangle(A, upper, unit)) @ B


def linalg_solve_triangular(A, B, upper, left, unitriangular):
    inverse = np.linalg.inv(triangle(A, upper, unitriangular))
    return inverse @ B if left else B @ inverse


def gram(L, upper):
    return mH(L) @ L if upper else L @ mH(L)


def row_order(swaps, rows, back):
    out = []
    for one in swaps.reshape(-1, swaps.shape[-1]):
        order = list(range(rows))
        for j, i in enumerate(one):
            order[j], order[i] = order[i], order[j]
        out.append([order.index(k) for k in range(rows)] if back else order)
    return np.reshape(out, (*swaps.shape[:-1], rows))


def multiply_lu(LU, pivots):
    """Return A of P A = L U."""
    n = LU.shape[-1]
    order = row_order(pivots - 1, n, True)
    product = triangle(LU, False, True) @ np.triu(LU)
    return np.take_along_axis(product, order[..., None], -2)


def linalg_lu_solve(LU, pivots, B, left, adjoint):
    A = multiply_lu(LU, pivots)
    return linalg_solve(mH(A) if adjoint else A, B, left)


def least_squares(A, B, rcond):
    return np.linalg.pinv(A) @ B, np.linalg.matrix_rank(A)


def linalg_lstsq(A, B, rcond, driver):
    vector = B.shape == A.shape[:-1]
    B = B[..., None] if vector else B
    X, rank = least_squares(A, B, rcond)
    tells = A.shape[-2] > A.shape[-1] and driver in ("gels", "gelsd", "gelss")
    residuals = ((A @ X - B) ** 2).sum(-2) if tells else np.zeros(0)
    none = np.zeros(0)
    values = np.linalg.svd(A, compute_uv=False) if driver in ("gelsd", "gelss") else none
    return X[..., 0] if vector else X, residuals, none if driver == "gels" else rank, values


def linalg_det(A):
    """Return the determinant by expansion along the first row."""
    if A.shape[-1] == 1:
        return A[..., 0, 0]
    minors = [np.delete(A[..., 1:, :], j, -1) for j in range(A.shape[-1])]
    return sum((-1) ** j * A[..., 0, j] * linalg_det(m) for j, m in enumerate(minors))


def slogdet(A):
    return np.sign(linalg_det(A)), np.log(np.abs(linalg_det(A)))


def cofactor(A):
    out = np.empty_like(A)
    for i, j in np.ndindex(A.shape[-2:]):
        out[..., i, j] = (-1) ** (i + j) * linalg_det(np.delete(np.delete(A, i, -2), j, -1))
    return out


def cholesky_inverse(L, upper):
    return np.linalg.inv(gram(np.triu(L) if upper else np.tril(L), upper))


def cholesky_solve(x, L, upper):
    return np.linalg.inv(gram(np.triu(L) if upper else np.tril(L), upper)) @ x


def triangular_solve(b, A, upper, transpose, unitriangular):
    return (
        linalg_solve_triangular(np.swapaxes(A, -1, -2) if transpose else A, b, upper != transpose, True, unitriangular),
        A,
    )


def logdet(A):
    return np.log(linalg_det(A))


def lu_solve(x, LU_data, LU_pivots):
    return np.linalg.inv(multiply_lu(LU_data, LU_pivots)) @ x
