"""LOBPCG: some eigenvalues and eigenvectors of symmetric matrices, by iteration."""

from types import SimpleNamespace

from retrograd.backend.type_info import finfo
from retrograd.core import Aval, Internal, Tensor, op, registry
from retrograd.core import dtype as dtypes
from retrograd.ops.create import as_tensor
from retrograd.ops.family import check_real
from retrograd.ops.functions import check_tensor, function, overridable
from retrograd.ops.linalg import matmul
from retrograd.ops.matrix_functions import MatrixOperator, check_square, mT
from retrograd.ops.pointwise import detach
from retrograd.ops.reduce import sum as sum_over
from retrograd.ops.solve import broadcast_stacks, linalg_solve
from retrograd.ops.view import expand, movedim, narrow, squeeze, unsqueeze

STEPS = 1000  # PyTorch's default limit



@op(
    "extreme_eigenpairs(Tensor A, Tensor? B, Tensor? iK, Tensor X, *, int niter, float tol, bool largest, "
    "any tracker=None) -> (Tensor E, Tensor X)"
)
class extreme_eigenpairs(Internal, MatrixOperator, differentiable=False):
    """Return the largest or smallest eigenvalues e of A x = e B x, and the vectors x, from a first guess X."""

    def impl(xp, A, B, iK, X, *, niter, tol, largest, tracker):
        _check_guess(A, B, iK, X)
        return xp.extreme_eigenpairs(A, B, iK, X, niter, tol, largest, tracker)

    def shape(A, B, iK, X, *, niter, tol, largest, tracker):
        _check_guess(A, B, iK, X)
        return Aval((*X.shape[:-2], X.shape[-1]), X.dtype), X

    def observe(E, X):
        return E, matmul(X, mT(X))

    oracle = "retrograd.testing.references.lobpcg.extreme_eigenpairs"

    def samples(r):
        A = _symmetric_sample(r, 7)
        yield (A, None, None, r(7, 2)), {"niter": 30, "tol": 1e-14, "largest": True}
        yield (A, _positive_definite_sample(r, 7), None, r(7, 2)), {"niter": 30, "tol": 1e-14, "largest": False}


def _symmetric_sample(r, n):
    """Return a sample of symmetric matrices with distinct eigenvalues."""
    A = r(n, n)
    return (A + mT(A)) * 0.1 + registry["diag"](registry["arange"](0, n, 1, dtype=dtypes.float64))


def _positive_definite_sample(r, n):
    A = r(n, n)
    return matmul(A, mT(A)) * 0.05 + registry["eye"](n, dtype=dtypes.float64)


def _check_guess(A, B, iK, X):
    check_square("extreme_eigenpairs", A, *[x for x in (B, iK, X) if x is not None])
    check_real("extreme_eigenpairs", A)
    if any(x is not None and x.shape != A.shape for x in (B, iK)) or X.shape[:-1] != A.shape[:-1]:
        shapes = ", ".join(str(x.shape) for x in (A, B, iK, X) if x is not None)
        raise ValueError(f"extreme_eigenpairs: shapes {shapes} do not fit: (m, m) for A, B and iK, (m, n) for X")


# ------------------------------------------------------------------------------------------------- derivatives

# With R = dA x - e dB x: de = x^T R, and dx = -M^-1 (R - de B x) - (x^T dB x) x / 2 for M = A - e B + B x x^T B,
# which differs from the singular A - e B only where the right side has no component.


@op("eigenpairs_of(Tensor A, Tensor B, Tensor E, Tensor X) -> (Tensor E, Tensor X)")
class eigenpairs_of(Internal, MatrixOperator):
    """Return given E and X, eigenvalues and vectors of A x = e B x with x^T B x = 1, with their derivative."""

    def impl(xp, A, B, E, X):
        check_real("eigenpairs_of", A)
        return xp.copy_result(A, E), xp.copy_result(A, X)

    def shape(A, B, E, X):
        check_real("eigenpairs_of", A)
        return E, X

    def vjp_A(g, A, B, out):
        gE, gX = g
        return matmul(out[1] * unsqueeze(gE, -2) + _eigenvectors_vjp(A, B, out, gX), mT(out[1]))

    def vjp_B(g, A, B, out):
        (gE, gX), (E, X) = g, out
        g_BX = (X * unsqueeze(gE, -2) + _eigenvectors_vjp(A, B, out, gX)) * unsqueeze(E, -2)
        return -matmul(g_BX + X * (sum_over(X * gX, -2, keepdim=True) * 0.5), mT(X))

    def jvp_A(t, A, B, out):
        return _eigenpairs_jvp(A, B, out, matmul(t, out[1]))

    def jvp_B(t, A, B, out):
        E, X = out
        t_BX = matmul(t, X)
        dE, dX = _eigenpairs_jvp(A, B, out, -t_BX * unsqueeze(E, -2))
        return dE, dX - X * (sum_over(X * t_BX, -2, keepdim=True) * 0.5)

    def constrain(A, B, E, X):
        A, B = ((x + mT(x)) * 0.5 for x in (A, B))
        return A, B, *extreme_eigenpairs(A, B, None, detach(X), niter=20, tol=1e-14, largest=True)

    oracle = "retrograd.testing.references.lobpcg.eigenpairs"

    def samples(r):
        A, B = _symmetric_sample(r, 6), _positive_definite_sample(r, 6)
        yield (A, B, *extreme_eigenpairs(A, B, None, r(6, 2), niter=20, tol=1e-14, largest=True)), {}


def _eigenpairs_jvp(A, B, out, R):
    """Return the tangents of eigenvalues and vectors, for the columns R."""
    X = out[1]
    dE = sum_over(X * R, -2)
    return dE, -_solve_shifted(A, B, out, R - matmul(B, X) * unsqueeze(dE, -2))


def _eigenvectors_vjp(A, B, out, gX):
    """Return the transpose of R -> dX."""
    X = out[1]
    solution = _solve_shifted(A, B, out, gX)
    return X * sum_over(matmul(B, X) * solution, -2, keepdim=True) - solution


def _solve_shifted(A, B, out, Y):
    """Return the columns M^-1 y, where M differs for each."""
    E, X = out
    columns = unsqueeze(movedim(matmul(B, X), -1, -2), -1)  # (..., n, m, 1)
    M = unsqueeze(A, -3) - unsqueeze(B, -3) * unsqueeze(unsqueeze(E, -1), -1) + matmul(columns, mT(columns))
    return movedim(squeeze(linalg_solve(M, unsqueeze(movedim(Y, -1, -2), -1)), -1), -2, -1)


# --------------------------------------------------------------------------------------------------- the function


@function("lobpcg")
@overridable
def lobpcg(
    A,
    k=None,
    B=None,
    X=None,
    n=None,
    iK=None,
    niter=None,
    tol=None,
    largest=None,
    method=None,
    tracker=None,
    ortho_iparams=None,
    ortho_fparams=None,
    ortho_bparams=None,
) -> tuple[Tensor, Tensor]:
    """Return the k largest eigenvalues e of A x = e B x, (..., k), and their vectors x, (..., m, k), by LOBPCG.

    A (..., m, m) is symmetric, B (None: the identity) symmetric and positive definite, both float32 or float64; m must
    be at least 3 n.  X (..., m, n) is a first guess, random numbers by default, n (k) the number of its columns, k (n,
    or 1) at most that.  iK, positive definite, approximates the inverse of A, or of A less the eigenvalues.
    largest=False finds the smallest eigenvalues.  The iteration ends when residuals are below `tol` (None: the square
    root of the precision), relative to |A| + |e| |B|, or after `niter` steps (None: 1000, -1: no limit).  `method`
    "basic" and "ortho" (None) are one here, with bases made orthonormal.

    `tracker` is called at each step with an object that has PyTorch's attributes: A, B, iK, E, X, R, ivars ("istep",
    "converged_count"), tvars ("rerr") and bvars, in which "force_stop" ends the iteration.

    The derivative is that of converged eigenpairs, also by B, of A and B as symmetric matrices; it needs eigenvalues
    that are apart.

    >>> import retrograd as rg
    >>> E, X = rg.lobpcg(rg.diag(rg.tensor([1.0, 5.0, 3.0, 2.0])), k=1)
    >>> [round(v, 4) for v in E.tolist()]
    [5.0]
    """
    _check_options(method, ortho_iparams, ortho_fparams, ortho_bparams)
    check_square("lobpcg", *[check_tensor("lobpcg", x) for x in (A, B, X, iK) if x is not None])
    check_real("lobpcg", A)
    k, n = _column_counts(A, k, X, n)
    if X is None:
        X = registry["randn"]((*A.shape[:-1], n), dtype=A.dtype)
    A = (A + mT(A)) * 0.5
    B = None if B is None else broadcast_stacks("lobpcg", (B + mT(B)) * 0.5, A)[0]
    iK = None if iK is None else broadcast_stacks("lobpcg", iK, A)[0]
    tol = finfo(A.dtype).eps ** 0.5 if tol is None else tol
    options = {"niter": STEPS if niter is None else niter, "tol": tol, "largest": largest is None or largest}
    tracked = None if tracker is None else _Tracker(tracker, A, B, iK, {**options, "k": k, "n": n, "m": A.shape[-1]})
    X = expand(X, (*A.shape[:-1], X.shape[-1]))
    E, X = extreme_eigenpairs(A, B, iK, X, tracker=tracked, **options)
    E, X = narrow(E, -1, 0, k), narrow(X, -1, 0, k)
    metric = expand(registry["eye"](A.shape[-1], dtype=A.dtype), A.shape) if B is None else B
    return eigenpairs_of(A, metric, E, X)


def _check_options(method, *ortho):
    if method not in (None, "basic", "ortho"):
        raise ValueError(f"lobpcg: method must be 'basic' or 'ortho', got {method!r}")
    if any(params is not None for params in ortho):
        raise NotImplementedError(
            "lobpcg: ortho_iparams, ortho_fparams and ortho_bparams belong to PyTorch's way to make bases orthonormal; "
            "leave them out"
        )


def _column_counts(A, k, X, n):
    """Return how many eigenpairs are wanted, and how many columns the iteration has."""
    k = (1 if X is None else X.shape[-1]) if k is None else k
    n = (k if n is None else max(k, n)) if X is None else X.shape[-1]
    if X is not None and X.shape[-2] != A.shape[-1]:
        raise ValueError(f"lobpcg: shapes {A.shape} and {X.shape} do not fit: X must be (m, n)")
    if not 1 <= k <= n:
        raise ValueError(f"lobpcg: k must be from 1 to {n}, the number of columns of X, got {k}")
    if A.shape[-1] < 3 * n:
        raise ValueError(f"lobpcg: A has {A.shape[-1]} rows, expected at least 3 times the number of columns, {n}")
    return k, n


class _Tracker:
    """Calls a user's tracker with PyTorch's attributes; returns whether it asks to stop."""

    def __init__(self, tracker, A, B, iK, params):
        self.tracker = tracker
        names = {"iparams": ("m", "n", "k", "niter"), "fparams": ("tol",), "bparams": ("largest",)}
        given = {group: {name: params[name] for name in members} for group, members in names.items()}
        self.worker = SimpleNamespace(A=A, B=B, iK=iK, fvars={}, bvars={"force_stop": False}, **given)

    def __call__(self, state):
        worker = self.worker
        worker.ivars = {name: state[name] for name in ("istep", "converged_count")}
        worker.tvars = {"rerr": as_tensor(state["rerr"])}
        worker.E, worker.X, worker.R = (as_tensor(state[name]) for name in ("E", "X", "R"))
        self.tracker(worker)
        return bool(worker.bvars["force_stop"])
