"""Reference implementations of factorisations in LAPACK's packed forms: LAPACK itself."""

import numpy as np

from retrograd.core import registry
from retrograd.testing.oracle_law import oracle_of


def each(function):
    """Map a function of matrices that returns several arrays over a stack."""

    def oracle(*args, **params):
        if args[0].ndim == 2:
            return function(*args, **params)
        return tuple(map(np.stack, zip(*(oracle(*one, **params) for one in zip(*args, strict=True)), strict=True)))

    return oracle


@each
def factor(A, hermitian=False, check_errors=False):
    from scipy.linalg import lapack

    LD, pivots, info = (lapack.dsytrf if not np.iscomplexobj(A) else lapack.zhetrf)(A, lower=1)
    return np.tril(LD), np.where(pivots < 0, pivots, pivots + (pivots == 0)), info


def ldl_swaps(pivots):
    """Return the order of rows after swapping them step by step; columns are permuted the same way."""
    if pivots.ndim > 1:
        return tuple(map(np.stack, zip(*map(ldl_swaps, pivots), strict=True)))
    n = len(pivots)
    order, blocks, source = list(range(n)), np.zeros(n, bool), [list(range(n)) for _ in range(n)]
    done = 0
    while done < n:
        two = pivots[done] < 0
        a, b = done + two, abs(pivots[done]) - 1
        blocks[done] = two
        for rows in (order, *source[:done]):
            rows[a], rows[b] = rows[b], rows[a]
        done += 1 + two
    return order, blocks, np.transpose(source)


def linalg_ldl_solve(LD, pivots, B, hermitian):
    from scipy.linalg import lapack

    lead = np.broadcast_shapes(LD.shape[:-2], B.shape[:-2])
    out = np.broadcast_to(B, (*lead, *B.shape[-2:])).copy()
    LD, pivots = np.broadcast_to(LD, (*lead, *LD.shape[-2:])), np.broadcast_to(pivots, (*lead, pivots.shape[-1]))
    for i in np.ndindex(*lead):
        out[i] = lapack.dsytrs(LD[i], pivots[i], out[i], lower=1)[0]
    return out


def ormqr(x, tau, other, left, transpose):
    m = x.shape[-2]
    wide = np.zeros((*x.shape[:-2], m, m))
    wide[..., : tau.shape[-1]] = x[..., : tau.shape[-1]]
    Q = oracle_of(registry["linalg.householder_product"])(wide, tau)
    Q = np.swapaxes(Q, -1, -2) if transpose else Q
    return Q @ other if left else other @ Q


def packed_ldl(A, LD, blocks, hermitian):
    return factor(A)[0]


def linalg_ldl_factor(A, hermitian):
    return factor(A)[:2]
