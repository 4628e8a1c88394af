"""Householder reflections: QR factorisations in LAPACK's packed form, and products of reflections."""

from retrograd.core import op, registry
from retrograd.core.dtype import is_floating
from retrograd.core.hooks import conjugate
from retrograd.ops.complex import adjoint
from retrograd.ops.decompose import linalg_qr
from retrograd.ops.diagonal import diagonal
from retrograd.ops.family import Composite, same_dtype
from retrograd.ops.linalg import matmul
from retrograd.ops.lu import lu_of
from retrograd.ops.matrix_functions import check_matrices
from retrograd.ops.pad import constant_pad_nd
from retrograd.ops.pointwise import where
from retrograd.ops.solve import lu_parts, triangular
from retrograd.ops.view import cat, narrow, squeeze, tril, unsqueeze


def _pad_zeros(x, rows, columns):
    """Append rows and columns of zeros to matrices."""
    return constant_pad_nd(x, (0, columns, 0, rows)) if rows or columns else x


def _last_tau(packed, column, steps):
    """Return the factor of the last reflection of a square matrix: 0 for real values, else a phase minus 1."""
    if is_floating(packed.dtype):
        return registry["zeros"]((*packed.shape[:-2], 1), dtype=packed.dtype)
    above, last = narrow(column, -2, 0, steps), narrow(column, -2, steps, 1)
    done = triangular(narrow(packed, -2, 0, steps), above, upper=False, unit=True)
    return squeeze(matmul(narrow(packed, -2, steps, 1), done) - last, -1)



@op("geqrf(Tensor x) -> (Tensor a, Tensor tau)")
class geqrf(Composite):
    """Return the QR factorisation of matrices (..., m, n) as LAPACK stores it, for `ormqr` and `orgqr`.

    R is the upper triangle of `a`.  Q is the product of reflections 1 - tau_i v_i v_i^H, where v_i is 0 above the
    diagonal, 1 on it, and as column i of `a` below.  The derivative, which PyTorch lacks, needs linearly independent
    columns.

    With V the vectors, the first columns of Q minus those of the identity are V U for an upper triangular U, whose
    diagonal is -tau: G. Ballard et al., Reconstructing Householder vectors from tall-skinny QR (2015).

    >>> import retrograd as rg
    >>> a, tau = rg.geqrf(rg.tensor([[3.0, 1.0], [4.0, 2.0]]))
    >>> [[round(v, 3) for v in row] for row in a.triu().tolist()]
    [[-5.0, -2.2], [0.0, 0.4]]
    """

    def compose(x):
        check_matrices("geqrf", x)
        m, n = x.shape[-2:]
        k = min(m, n)
        Q, R = linalg_qr(x)
        Q_minus_eye = Q - registry["eye"](m, k, dtype=x.dtype)
        steps = k if m > k else max(k - 1, 0)  # the last vector of a square matrix has no elements below the diagonal
        first = narrow(Q_minus_eye, -1, 0, steps)
        packed = lu_of(first, lu_parts(first, pivot=False)[0])
        tau = -diagonal(packed, 0, -2, -1)
        if steps < k:
            tau = cat([tau, _last_tau(packed, narrow(Q_minus_eye, -1, steps, 1), steps)], -1)
        return _pad_zeros(R, m - k, 0) + _pad_zeros(tril(packed, -1), 0, n - steps), tau

    def oracle(np, x):
        h, tau = np.linalg.qr(x, mode="raw")
        return np.swapaxes(h, -1, -2), tau

    def samples(r):
        yield (r(4, 3),), {}
        yield (r(2, 3, 3),), {}

    def errors(r):
        yield (r(3),), {}, ValueError, r"geqrf: .*expected matrices, got shape \(3,\)"
        yield (r.ints(3, (2, 2)),), {}, TypeError, "geqrf: expected a floating or complex dtype"


def _vectors(packed, count):
    """Return the vectors of the first reflections as columns."""
    first = narrow(packed, -1, 0, count)
    return tril(first, -1) + registry["eye"](*first.shape[-2:], dtype=packed.dtype)


def _reflect(x, v, tau):
    """Return the reflection 1 - tau v v^H times x."""
    return x - matmul(v * unsqueeze(tau, -1), matmul(adjoint(v), x))


@op("linalg.householder_product(Tensor A, Tensor tau) -> Tensor")
class linalg_householder_product(Composite, aliases="orgqr"):
    """First n columns of the product of reflections 1 - tau_i v_i v_i^H, with v_i stored below the diagonal of A.

    v_i is 0 above the diagonal and 1 on it; A is (..., m, n) with m >= n, tau (..., k) with k <= n.
    """

    def compose(A, tau):
        check_matrices("linalg.householder_product", A)
        *lead, m, n = A.shape
        k = tau.shape[-1] if tau.ndim else -1
        if m < n or not 0 <= k <= n or tau.shape[:-1] != tuple(lead):
            raise ValueError(
                f"linalg.householder_product: shapes {A.shape} and {tau.shape} do not fit: (m, n), m >= n, and (k,)"
            )
        vectors = _vectors(A, k)
        out = registry["eye"](m, n, dtype=A.dtype)
        for i in reversed(range(k)):
            out = _reflect(out, narrow(vectors, -1, i, 1), narrow(tau, -1, i, 1))
        return out if k else where(False, A, out)

    def oracle(np, A, tau):
        """Multiply all reflections from the left."""
        m, n = A.shape[-2:]
        Q = np.eye(m)
        for i in range(tau.shape[-1]):
            v = np.where(np.arange(m) > i, A[..., :, i], np.arange(m) == i)
            Q = Q @ (np.eye(m) - tau[..., i, None, None] * v[..., :, None] * v[..., None, :])
        return Q[..., :n]

    def samples(r):
        yield (r(4, 3), r(3)), {}
        yield (r(2, 3, 3), r(2, 2)), {}

    def errors(r):
        yield (r(2, 3), r(2)), {}, ValueError, r"linalg.householder_product: shapes \(2, 3\) and \(2,\) do not fit"


@op("ormqr(Tensor x, Tensor tau, Tensor other, bool left=True, bool transpose=False) -> Tensor")
class ormqr(Composite):
    """Multiply `other` by Q (m, m), the product of reflections from `geqrf`: Q other, or, with left=False, other Q.

    x is (..., m, k), with vectors below its diagonal, and tau (..., min(m, k)); `other` is (..., m, n), or (..., n, m)
    with left=False, with equal leading dimensions.  `transpose` takes Q^H for Q.

    >>> import retrograd as rg
    >>> x = rg.tensor([[3.0, 1.0], [4.0, 2.0]])
    >>> rg.allclose(rg.ormqr(*rg.geqrf(x), rg.geqrf(x).a.triu()), x, atol=1e-6)
    True
    """

    def compose(x, tau, other, *, left, transpose):
        _check_product(x, tau, other, left)
        count = tau.shape[-1]
        vectors, out = _vectors(x, count), other if left else adjoint(other)
        conjugated = transpose if left else not transpose  # other Q is (Q^H other^H)^H
        tau = conjugate(tau) if conjugated else tau
        for i in range(count) if conjugated else reversed(range(count)):
            out = _reflect(out, narrow(vectors, -1, i, 1), narrow(tau, -1, i, 1))
        return (out if left else adjoint(out)) if count else other.clone()

    oracle = "retrograd.testing.references.ldl.ormqr"

    def samples(r):
        for transpose in (False, True):
            yield (r(4, 3), r(3), r(4, 2)), {"transpose": transpose}
            yield (r(2, 3, 4), r(2, 3), r(2, 2, 3)), {"left": False, "transpose": transpose}

    def errors(r):
        x, tau = r(4, 3), r(3)
        yield (x, tau, r(3, 2)), {}, ValueError, r"ormqr: shapes \(4, 3\), \(3,\) and \(3, 2\) do not fit"
        yield (x, r(2), r(4, 2)), {}, ValueError, r"ormqr: shapes \(4, 3\), \(2,\) and \(4, 2\) do not fit"
        yield (x, tau, r(4)), {}, ValueError, "ormqr: .*expected matrices"
        yield (x, tau, registry["to"](r(4, 2), "float32")), {}, RuntimeError, "ormqr: .*operands must have one dtype"


def _check_product(x, tau, other, left):
    check_matrices("ormqr", x, other)
    same_dtype("ormqr", (x, tau, other))
    m, k = x.shape[-2:]
    if other.shape[-2 if left else -1] != m or tau.shape != (*x.shape[:-2], min(m, k)) or other.ndim != x.ndim:
        raise ValueError(
            f"ormqr: shapes {x.shape}, {tau.shape} and {other.shape} do not fit: (m, k), (min(m, k),) and "
            f"{'(m, n)' if left else '(n, m)'}"
        )
    if other.shape[:-2] != x.shape[:-2]:
        raise ValueError(f"ormqr: shapes {x.shape} and {other.shape} differ in the dimensions in front of the matrices")
