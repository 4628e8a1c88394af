"""Hessenberg's form, the cosine-sine decomposition, and further functions of bases: orthogonal columns and angles."""

from retrograd.implicit.closures import example_of
from retrograd.interop.numpy_protocol.table import O, as_floating, only_default, promote_operands, refuse, values
from retrograd.scipy._array_like import ArrayOrSequence
from retrograd.scipy._mirror import on_tensors, scipy_member
from retrograd.scipy.linalg.decompositions import flags, qr
from retrograd.scipy.linalg.factor_rules import (
    Factorization,
    adjoint,
    balance_tangents,
    cossin_tangents,
    factors_of,
    hessenberg_tangents,
    null_space_tangents,
    rsf2csf_tangents,
)

_linalg = on_tensors("scipy.linalg")


@_linalg
def hessenberg(a: ArrayOrSequence, calc_q=False, overwrite_a=False, check_finite=True):
    """Return H of a = Q H Q^H, which is zero below its first subdiagonal, and with calc_q=True also the unitary Q.

    Both are differentiable to any order, where no element of the subdiagonal is 0.

    >>> import retrograd as rg
    >>> from retrograd.scipy import linalg
    >>> linalg.hessenberg(rg.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [0.0, 0.0, 1.0]]))[2]
    tensor([0., 0., 1.])
    """
    rule = Factorization(lambda a: scipy_member("scipy.linalg.hessenberg")(a, calc_q=True), hessenberg_tangents)
    H, Q = factors_of(rule, as_floating(a))
    return (H, Q) if calc_q else H


@_linalg
def rsf2csf(T: ArrayOrSequence, Z: ArrayOrSequence, check_finite=True):
    """Return the complex Schur form of the real one: upper triangular T and unitary Z; see `schur`."""
    T, Z = promote_operands(as_floating(T), as_floating(Z))
    return factors_of(Factorization(lambda T, Z: scipy_member("scipy.linalg.rsf2csf")(T, Z), rsf2csf_tangents), T, Z)


@_linalg
def cossin(X: ArrayOrSequence, p=None, q=None, separate=False, swap_sign=False, compute_u=True, compute_vh=True):
    """Return the cosine-sine decomposition of a unitary matrix: U, CS and V^H, U and V in two blocks on the diagonal.

    X: (m, m), with the sizes p and q of its first block of rows and columns, or its four blocks.  With separate=True
    the result is ((U1, U2), angles, (V1^H, V2^H)).  Derivatives are those for changes that keep X unitary; angles must
    be distinct and between 0 and pi / 2.  Signs and phases of columns are LAPACK's, and constant.  compute_u and
    compute_vh must be true.

    >>> import retrograd as rg
    >>> from retrograd.scipy import linalg
    >>> angle = rg.tensor(0.5, dtype=rg.float64, requires_grad=True)
    >>> turn = rg.stack([rg.stack([angle.cos(), -angle.sin()]), rg.stack([angle.sin(), angle.cos()])])
    >>> _, found, _ = linalg.cossin(turn, 1, 1, separate=True)
    >>> rg.autograd.grad(found.sum(), angle)
    (tensor(1., dtype=float64),)
    """
    only_default("linalg.cossin", compute_u=(compute_u, True), compute_vh=(compute_vh, True))
    if isinstance(X, (tuple, list)):
        x11, x12, x21, x22 = promote_operands(*[as_floating(block) for block in X])
        (p, q), X = x11.shape, O.cat([O.cat([x11, x12], 1), O.cat([x21, x22], 1)], 0)
    X = as_floating(X)

    def compute(x):
        return scipy_member("scipy.linalg.cossin")(x, p, q, swap_sign=swap_sign)

    size = X.shape[-1]
    if p is None or q is None or not (0 < p < size and 0 < q < size):
        raise ValueError(f"linalg.cossin: p and q must be between 0 and {size}, got {p} and {q}")
    U, CS, Vh = factors_of(Factorization(compute, cossin_tangents(p, q)), X)
    if not separate:
        return U, CS, Vh
    return (U[:p, :p], U[p:, p:]), _angles(CS, p, q), (Vh[:q, :q], Vh[q:, q:])


def _angles(CS, p, q):
    """Return the angles of the cosines, which follow the ones on the diagonal of the first block."""
    size = CS.shape[-1]
    count = min(p, q, size - p, size - q)
    first = min(p, q) - count
    cosines = O.diagonal(CS)[first : first + count]
    sines = O.sqrt(O.sum(O.square(CS[p:, first : first + count]), 0))  # one in each column
    return O.atan2(sines, cosines)


# ------------------------------------------------------------------------------------------------- bases and angles


@_linalg
def orth(A: ArrayOrSequence, rcond=None):
    """Return an orthonormal basis of the columns of A, (rows, rank); directions inside the basis are SciPy's."""
    A = as_floating(A)
    U, s, _ = O.linalg.svd(A, full_matrices=False)
    return U[:, : _rank(A, s, rcond)]


def _rank(A, s, rcond):
    """Return the number of singular values above SciPy's limit."""
    plain = values(example_of(O.detach(s)))
    epsilon = scipy_member("scipy.linalg").lapack.dlamch("e") if plain.dtype.itemsize == 8 else 1.2e-7
    limit = (2 * epsilon if rcond is None else rcond) * max(A.shape) * plain.max(initial=0)
    return int((plain > limit).sum())


@_linalg
def orthogonal_procrustes(A: ArrayOrSequence, B: ArrayOrSequence, check_finite=True):
    """Return the orthogonal R for which A R is nearest to B, and the sum of the singular values of A^H B."""
    A, B = promote_operands(as_floating(A), as_floating(B))
    if A.ndim != 2 or A.shape != B.shape:
        raise ValueError(f"linalg.orthogonal_procrustes: expected matrices of one shape, got {A.shape} and {B.shape}")
    U, s, Vh = O.linalg.svd(adjoint(A) @ B)
    return U @ Vh, O.sum(s)


@_linalg
def subspace_angles(A: ArrayOrSequence, B: ArrayOrSequence):
    """Return the angles between the spaces of the columns of A and B, the largest first.

    They are arccosines, and arcsines where these are accurate.  Angles of 0 and pi / 2 have no derivative.
    """
    A, B = promote_operands(as_floating(A), as_floating(B))
    if A.ndim != 2 or B.ndim != 2 or A.shape[0] != B.shape[0]:
        raise ValueError(f"linalg.subspace_angles: expected matrices with the same rows, got {A.shape} and {B.shape}")
    if A.shape[1] < B.shape[1]:
        A, B = B, A
    first, second = (qr(x, mode="economic")[0] for x in (A, B))
    across = adjoint(first) @ second
    cosines = O.flip(O.linalg.svdvals(across), (0,))
    rest = second - first @ across
    sines = O.linalg.svdvals(rest)
    wide = O.detach(cosines) < 0.8
    return O.where(wide, O.acos(O.where(wide, cosines, 0.5)), O.asin(O.where(wide, 0.5, sines)))


@_linalg
def qr_multiply(a: ArrayOrSequence, c: ArrayOrSequence, mode="right", pivoting=False, conjugate=False, **kwargs):
    """Return c Q, or with mode="left" Q c, and R, for the thin factors a = Q R; pivoting and conjugate are refused."""
    flags("qr_multiply", **kwargs)
    only_default("linalg.qr_multiply", pivoting=(pivoting, False), conjugate=(conjugate, False))
    if mode not in ("left", "right"):
        raise ValueError(f"linalg.qr_multiply: mode must be 'left' or 'right', got {mode!r}")
    a, c = promote_operands(as_floating(a), as_floating(c))
    if a.shape[0] < a.shape[1]:
        refuse("linalg.qr_multiply", f"a of shape {tuple(a.shape)} has more columns than rows; multiply by qr(a)[0]")
    Q, R = qr(a, mode="economic")
    return (Q @ c if mode == "left" else c @ Q), R


@_linalg
def null_space(A: ArrayOrSequence, rcond=None, **kwargs):
    """Return an orthonormal basis of the vectors x with A x = 0; its derivative is orthogonal to the basis."""
    flags("null_space", **{k: v for k, v in kwargs.items() if k != "lapack_driver"})
    rule = Factorization(lambda a: (scipy_member("scipy.linalg.null_space")(a, rcond),), null_space_tangents)
    return factors_of(rule, as_floating(A))[0]


@_linalg
def matrix_balance(A: ArrayOrSequence, permute=True, scale=True, separate=False, overwrite_a=False):
    """Return T^-1 A T and T, whose elements are powers of two and constants; separate is refused."""
    only_default("linalg.matrix_balance", separate=(separate, False))
    rule = Factorization(lambda a: scipy_member("scipy.linalg.matrix_balance")(a, permute, scale), balance_tangents)
    return factors_of(rule, as_floating(A))
