"""Sylvester equations, matrix square roots and logarithms, with SciPy's kernels."""

from retrograd.core import Aval, Internal, op, registry
from retrograd.core import dtype as dtypes
from retrograd.ops.batch_loop import PerExample
from retrograd.ops.family import check_floating, same_dtype
from retrograd.ops.view import cat, narrow, transpose

_MISSING = "pip install 'retrograd[scipy]'"


def _scipy_kernel(name):
    try:
        import scipy.linalg
    except ImportError as error:
        raise ImportError(f"linalg.{name} needs SciPy: {_MISSING}") from error
    return getattr(scipy.linalg, name)


def _check_square(name, *avals):
    for aval in avals:
        check_floating(name, aval)
        if aval.ndim != 2 or aval.shape[0] != aval.shape[1]:
            raise ValueError(f"{name}: expected a square matrix, got shape {aval.shape}")


@op("solve_sylvester(Tensor A, Tensor B, Tensor Q) -> Tensor")
class solve_sylvester(
    Internal, PerExample, linear="Q", vmap_fallback="SciPy takes one matrix at a time"
):
    """The solution X of A X + X B = Q, for square A and B without a common eigenvalue of A and -B.

    R. H. Bartels and G. W. Stewart, Solution of the matrix equation AX + XB = C, CACM 15 (1972).
    """

    def impl(xp, A, B, Q):
        solve_sylvester.definition.shape(A, B, Q)
        return xp.run_on_host(_scipy_kernel("solve_sylvester"), A, B, Q).astype(Q.dtype, copy=False)

    def shape(A, B, Q):
        _check_square("solve_sylvester", A, B)
        same_dtype("solve_sylvester", (A, B, Q))
        if Q.shape != (A.shape[0], B.shape[0]):
            raise ValueError(f"solve_sylvester: shapes {A.shape}, {B.shape} and {Q.shape} do not fit A X + X B = Q")
        return Aval(Q.shape, Q.dtype)

    def vjp_A(g, A, B, out):
        return -(_sylvester_vjp(g, A, B) @ transpose(out, 0, 1))

    def vjp_B(g, A, B, out):
        return -(transpose(out, 0, 1) @ _sylvester_vjp(g, A, B))

    def vjp_Q(g, A, B):
        return _sylvester_vjp(g, A, B)

    def jvp_A(t, A, B, out):
        return solve_sylvester(A, B, -(t @ out))

    def jvp_B(t, A, B, out):
        return solve_sylvester(A, B, -(out @ t))

    def oracle(np, A, B, Q):
        """Solve the system of linear equations that is equivalent to the matrix equation."""
        system = np.kron(A, np.eye(len(B))) + np.kron(np.eye(len(A)), B.T)
        return np.linalg.solve(system, Q.ravel()).reshape(Q.shape)

    def samples(r):
        yield (r(3, 3, within=(0.2, 2.0)) + 3 * _identity_matrix(3), r(2, 2) + 3 * _identity_matrix(2), r(3, 2)), {}

    def errors(r):
        yield (r(2, 3), r(2, 2), r(2, 2)), {}, ValueError, r"solve_sylvester: expected a square matrix"
        yield (r(3, 3), r(2, 2), r(2, 2)), {}, ValueError, r"solve_sylvester: shapes .* do not fit"


def _sylvester_vjp(g, A, B):
    return solve_sylvester(transpose(A, 0, 1), transpose(B, 0, 1), g)


@op("sqrtm(Tensor A) -> Tensor")
class sqrtm(Internal, PerExample, vmap_fallback="SciPy takes one matrix at a time"):
    """The principal square root of a matrix; if it is not real, a real matrix must be converted to complex first.

    A. Bjorck and S. Hammarling, A Schur method for the square root of a matrix, Lin. Alg. Appl. 52/53 (1983).
    """

    def impl(xp, A):
        _check_square("sqrtm", A)
        root = xp.run_on_host(_scipy_kernel("sqrtm"), A)
        if root.dtype.kind == "c" and A.dtype.kind != "c":
            raise ValueError("sqrtm: the root of this real matrix is not real; convert it to a complex dtype first")
        return root.astype(A.dtype, copy=False)

    def shape(A):
        _check_square("sqrtm", A)
        return Aval(A.shape, A.dtype)

    def vjp_A(g, out):
        return _sylvester_vjp(g, out, out)

    def jvp_A(t, out):
        return solve_sylvester(out, out, t)

    def oracle(np, A):
        return _by_eigenvalues(np, A, np.sqrt)

    def samples(r):
        yield (r(3, 3, within=(0.1, 0.9)) + 3 * _identity_matrix(3),), {}

    def errors(r):
        yield (r(2, 3),), {}, ValueError, r"sqrtm: expected a square matrix, got shape \(2, 3\)"


@op("logm(Tensor A) -> Tensor")
class logm(Internal, PerExample, vmap_fallback="SciPy takes one matrix at a time"):
    """The principal logarithm of a matrix; if it is not real, a real matrix must be converted to complex first.

    The derivative is a block of the logarithm of a matrix of twice the size (N. J. Higham, Functions of Matrices,
    2008, theorem 3.6).
    """

    def impl(xp, A):
        _check_square("logm", A)
        wide = A.astype("D" if A.dtype.kind == "c" else "d")  # in single precision it warns
        found = xp.run_on_host(_scipy_kernel("logm"), wide)
        if found.dtype.kind == "c" and A.dtype.kind != "c":
            raise ValueError("logm: the logarithm of this real matrix is not real; convert it to a complex dtype first")
        return found.astype(A.dtype, copy=False)

    def shape(A):
        _check_square("logm", A)
        return Aval(A.shape, A.dtype)

    def vjp_A(g, A):
        return _logm_jvp(transpose(A, 0, 1), g)

    def jvp_A(t, A):
        return _logm_jvp(A, t)

    def oracle(np, A):
        return _by_eigenvalues(np, A, np.log)

    def samples(r):
        yield (r(3, 3, within=(0.1, 0.9)) + 3 * _identity_matrix(3),), {}

    def errors(r):
        yield (r(2, 3),), {}, ValueError, r"logm: expected a square matrix, got shape \(2, 3\)"


def _by_eigenvalues(np, A, function):
    """Return a function of a diagonalizable matrix, computed from its eigenvalues."""
    values, vectors = np.linalg.eig(A)
    found = vectors * function(values.astype(complex)) @ np.linalg.inv(vectors)
    return found if A.dtype.kind == "c" else found.real


def _logm_jvp(A, t):
    """The derivative of the logarithm of A along t: the upper right block of logm([[A, t], [0, A]])."""
    n = A.shape[0]
    rows = [cat([A, t], dim=1), cat([registry["zeros_like"](A), A], dim=1)]
    return narrow(narrow(logm(cat(rows, dim=0)), 0, 0, n), 1, n, n)


def _identity_matrix(n):
    return registry["eye"](n, dtype=dtypes.float64)
