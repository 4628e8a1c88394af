"""Functions of a matrix: inverse, pseudo-inverse, determinant, exponential."""

import math

from retrograd.core import Aval, Definition, Internal, Tensor, call, op, registry, xp
from retrograd.core import dtype as dtypes
from retrograd.core.hooks import conjugate
from retrograd.ops.as_tensor import as_tensor
from retrograd.ops.batching import batch_all
from retrograd.ops.complex import complex, imag
from retrograd.ops.complex import conjugate_transpose as adjoint
from retrograd.ops.family import Composite, CoreDims, Gufunc, cast_to, check_floating, numel, same_dtype, sum_to
from retrograd.ops.linalg import matmul
from retrograd.ops.pointwise import log, where
from retrograd.ops.reduce import sum as sum_over
from retrograd.ops.view import cat, narrow, reshape, transpose, unsqueeze


def mT(x):
    """The transposed matrices, not conjugated."""
    return transpose(x, -2, -1)


def first_columns(x, size):
    """The first `size` columns of matrices; x itself if these are all."""
    return narrow(x, -1, 0, size) if x.shape[-1] != size else x


def first_rows(x, size):
    """The first `size` rows of matrices; x itself if these are all."""
    return narrow(x, -2, 0, size) if x.shape[-2] != size else x


def unsqueeze_per_matrix(x):
    """One value per matrix, unsqueezed to broadcast against the matrices."""
    return unsqueeze(unsqueeze(x, -1), -1)


def machine_epsilon(dtype):
    """The machine epsilon of the dtype; for complex dtypes that of their parts."""
    return math.ldexp(1.0, -23 if dtypes.real_of(dtype) == dtypes.float32 else -52)


def check_matrices(name, *tensors):
    """Check for matrices in float32, float64, complex64 or complex128, all of one dtype."""
    for x in tensors:
        check_floating(name, x)
        if x.ndim < 2:
            raise ValueError(
                f"{name}: The input tensor A must have at least 2 dimensions: expected matrices, got shape {x.shape}"
            )
        if dtypes.is_half(x.dtype):
            raise TypeError(f"{name}: {x.dtype} is not supported; convert with .to(dtype) first")
    same_dtype(name, tensors)


def square_words(shape):
    """Return the message for matrices that are not square."""
    sizes = f", but they are {shape[-2]} by {shape[-1]} matrices" if len(shape) > 1 else ""
    return f"A must be batches of square matrices{sizes}: expected square matrices, got shape {shape}"


def check_square(name, A, *others):
    """Check as `check_matrices` does, and that the first matrix is square."""
    check_matrices(name, A, *others)
    if A.shape[-1] != A.shape[-2]:
        raise ValueError(f"{name}: {square_words(A.shape)}")


class MatrixOperator(Definition):
    """Base of operators on batches of matrices, where all inputs have equal batch dimensions."""

    @classmethod
    def batch(cls, batched, n, /, *args, **params):
        """Add the examples to the batch dimensions of all inputs."""
        return call(registry[cls.__name__], tuple(batch_all(args, batched, n)), params)


def dominant_matrix(r, n, *lead):
    """Sample matrices with a dominant diagonal, which are well-conditioned."""
    return r(*lead, n, n) + 5 * registry["eye"](n, dtype=dtypes.float64)


def _square_samples(r):
    yield (dominant_matrix(r, 3),), {}
    yield (dominant_matrix(r, 2, 2),), {}


class Inverse(Gufunc, fit=None):
    """Base of inverses of square matrices; `impl` decides what singular ones give."""

    core = "(m,m)->(m,m)"

    @staticmethod
    def vjp_A(g, out):
        """The cotangent -A^-T g A^-T."""
        return -matmul(mT(out), matmul(g, mT(out)))

    @staticmethod
    def jvp_A(t, out):
        """The tangent -A^-1 t A^-1."""
        return -matmul(out, matmul(t, out))

    samples = staticmethod(_square_samples)


@op("linalg.inv(Tensor A) -> Tensor")
class linalg_inv(Inverse, aliases="inverse", node_name="LinalgInvExBackward0"):
    """The inverse of square matrices; LinAlgError if one is singular.  To solve A X = B, prefer `linalg.solve`.

    >>> import retrograd as rg
    >>> rg.linalg.inv(rg.tensor([[2.0, 0.0], [0.0, 4.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """

    impl = xp.invert

    def errors(r):
        yield (r(2, 3),), {}, ValueError, r"linalg.inv: .*shapes \(2, 3\) do not fit \(m,m\)->\(m,m\)"
        yield (r(2, 2) * 0,), {}, RuntimeError, "linalg.inv: .*the matrix is singular"
        yield (r.ints(3, (2, 2)),), {}, TypeError, "linalg.inv: expected a floating or complex dtype"

    def oracle(np, A):
        return np.linalg.solve(A, np.eye(A.shape[-1]))


@op("inverse_or_nan(Tensor A) -> Tensor")
class inverse_or_nan(Internal, Inverse, node_name="LinalgInvExBackward0"):
    """The inverse of square matrices; NaN for singular ones."""

    impl = xp.invert_or_nan

    def oracle(np, A):
        return np.linalg.solve(A, np.eye(A.shape[-1]))



@op("linalg.inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)")
class linalg_inv_ex(Composite):
    """The inverse, and `info`: the first zero pivot, from 1, in int32; 0 if A is not singular.

    Singular matrices give NaN, or with check_errors a LinAlgError.
    """

    def compose(A, *, check_errors):
        inverse = linalg_inv(A) if check_errors else inverse_or_nan(A)
        return inverse, registry["lu_parts"](A, pivot=True)[2]

    def oracle(np, A, check_errors):
        return (np.linalg.solve(A, np.eye(A.shape[-1])), np.zeros(A.shape[:-2]))

    samples = _square_samples


# ------------------------------------------------------------------------------------------------- pseudo-inverses


def pinv_vjp(A, P, g):
    """The cotangent of A, from that of its pseudo-inverse P.

    G. H. Golub and V. Pereyra, The differentiation of pseudo-inverses, SIAM J. Numer. Anal. 10 (1973).
    """
    Ph, Pt, Gh = adjoint(P), mT(P), mT(g)  # G is PyTorch's gradient, the conjugate of g
    out = -matmul(Pt, matmul(g, Pt))
    rows = matmul(matmul(Gh - matmul(A, matmul(P, Gh)), P), Ph)
    columns = matmul(Ph, matmul(P, Gh - matmul(matmul(Gh, P), A)))
    return out + conjugate(rows + columns)


@op("pseudo_inverse(Tensor A, Tensor atol, Tensor rtol, *, bool hermitian=False) -> Tensor")
class pseudo_inverse(Internal, Gufunc, fit=None, node_name="LinalgPinvBackward0"):
    """The pseudo-inverse by the singular values above max(atol, rtol * the largest), bounds for each matrix."""

    core = "(m,n),(),()->(n,m)"

    def impl(xp, A, atol, rtol, *, hermitian):
        return xp.pseudo_inverse(A, atol, rtol, hermitian)

    def vjp_A(g, A, out):
        return sum_to(pinv_vjp(A, out, g), A.shape)

    def jvp_A(t, A, out):
        P, Ph, th = out, adjoint(out), adjoint(t)
        rows = matmul(P, matmul(Ph, th - matmul(matmul(th, A), P)))
        columns = matmul(matmul(th - matmul(P, matmul(A, th)), Ph), P)
        return rows + columns - matmul(P, matmul(t, P))

    # The rank is constant between the bounds at which a singular value is dropped.

    def vjp_atol(g, atol_aval):
        return registry["zeros"](atol_aval.shape, dtype=atol_aval.dtype)

    def jvp_atol(t, out):
        return registry["zeros_like"](out)

    def vjp_rtol(g, rtol_aval):
        return registry["zeros"](rtol_aval.shape, dtype=rtol_aval.dtype)

    jvp_rtol = jvp_atol

    def oracle(np, A, atol, rtol, hermitian):
        return np.linalg.pinv(A)

    def samples(r):
        yield (r(4, 3), as_tensor(1e-3, dtype=dtypes.float64), as_tensor(0.0, dtype=dtypes.float64)), {}
        yield (r(2, 2, 3), as_tensor([1e-3, 1e-4], dtype=dtypes.float64), as_tensor(0.0, dtype=dtypes.float64)), {}


def rank_tolerances(name, A, atol, rtol):
    """The absolute and the relative bound up to which singular values of matrices count as 0; numbers or tensors."""
    for bound in (atol, rtol):
        if isinstance(bound, Tensor) and bound.dtype.kind == "c":
            raise RuntimeError(f"{name}: atol and rtol are real, got {bound.dtype}")
    if rtol is None:
        default = machine_epsilon(A.dtype) * max(A.shape[-2:])
        rtol = where(atol > 0, 0.0, default) if isinstance(atol, Tensor) else 0.0 if atol else default
    return 0.0 if atol is None else atol, rtol


@op(
    "linalg.pinv(Tensor A, Tensor? rcond=None, bool hermitian=False, *, Tensor? atol=None, Tensor? rtol=None) -> Tensor"
)
class linalg_pinv(Composite):
    """The Moore-Penrose pseudo-inverse of matrices of any shape.

    Singular values up to max(atol, rtol * the largest) count as 0.  rtol (or rcond) defaults to the machine epsilon
    times the larger size if neither it nor atol is given.  Each is a number, or a tensor with one for each matrix.
    hermitian: A is Hermitian, and eigenvalues of its lower triangle are used.  The derivative holds where the rank is
    constant.

    >>> import retrograd as rg
    >>> rg.linalg.pinv(rg.tensor([[2.0, 0.0], [0.0, 0.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.0]]
    """

    def compose(A, rcond, atol, rtol, *, hermitian):
        check_matrices("linalg.pinv", A)
        given = rank_tolerances("linalg.pinv", A, atol, rcond if rtol is None else rtol)
        return pseudo_inverse(A, *[cast_to(as_tensor(b), A.dtype) for b in given], hermitian=hermitian)

    def oracle(np, A, rcond, atol, rtol, hermitian):
        return np.linalg.pinv(A, 1e-15 if rtol is None else rtol)

    def samples(r):
        yield (r(4, 3), None, None, None), {}
        yield (r(2, 2, 3), None, None, None), {}
        yield (r(3, 3), None, None, 1e-3), {}

    def errors(r):
        yield (r(3), None, None, None), {}, ValueError, "linalg.pinv: .*expected matrices"


@op("pinverse(Tensor x, number rcond=1e-15) -> Tensor")
class pinverse(Composite):
    """The pseudo-inverse `linalg.pinv`, under its older name."""

    def compose(x, *, rcond):
        return linalg_pinv(x, rcond)

    def oracle(np, x, rcond):
        return np.linalg.pinv(x)

    def samples(r):
        yield (r(4, 3),), {}


@op("linalg.tensorinv(Tensor A, int ind=2) -> Tensor")
class linalg_tensorinv(Composite):
    """The inverse of A as a linear map: the first `ind` dimensions are rows, the others columns."""

    def compose(A, *, ind):
        check_floating("linalg.tensorinv", A)
        if not 0 < ind <= A.ndim or numel(A.shape[:ind]) != numel(A.shape[ind:]):
            raise ValueError(f"linalg.tensorinv: the first {ind} sizes of {A.shape} must have the others' product")
        n = numel(A.shape[:ind])
        return reshape(linalg_inv(reshape(A, (n, n))), A.shape[ind:] + A.shape[:ind])

    def oracle(np, A, ind):
        return np.linalg.tensorinv(A, ind)

    def samples(r):
        yield (reshape(dominant_matrix(r, 6), (6, 2, 3)),), {"ind": 1}
        yield (reshape(dominant_matrix(r, 6), (2, 3, 6)),), {}

    def errors(r):
        yield (r(2, 3, 5),), {}, ValueError, r"linalg.tensorinv: the first 2 sizes of \(2, 3, 5\)"


# --------------------------------------------------------------------------------------------------- determinants


@op("linalg.det(Tensor A) -> Tensor")
class linalg_det(Gufunc, fit=None, aliases="det"):
    """The determinants of square matrices; the derivative holds for singular ones, too.

    >>> import retrograd as rg
    >>> rg.linalg.det(rg.tensor([[1.0, 2.0], [3.0, 5.0]])).round().item()
    -1.0
    """

    core = "(m,m)->()"
    impl = xp.determinant

    def vjp_A(g, A):
        return unsqueeze_per_matrix(g) * cofactor(A)

    def jvp_A(t, A):
        return sum_over(cofactor(A) * t, (-2, -1))

    oracle = "retrograd.testing.references.solve.linalg_det"

    samples = _square_samples

    def errors(r):
        yield (r(2, 3),), {}, ValueError, r"linalg.det: .*shapes \(2, 3\) do not fit"
        yield (r.ints(3, (2, 2)),), {}, TypeError, "linalg.det: expected a floating or complex dtype"


@op("cofactor(Tensor A) -> Tensor")
class cofactor(Internal, Gufunc, fit=None):
    """det(A) A^-T, the derivative of the determinant, also of singular matrices; differentiable only for others."""

    core = "(m,m)->(m,m)"
    impl = xp.cofactors

    def vjp_A(g, A, out):
        inverse = mT(linalg_inv(A))
        return inverse * sum_over(g * out, (-2, -1), keepdim=True) - matmul(inverse, matmul(mT(g), out))

    def jvp_A(t, A, out):
        inverse = mT(linalg_inv(A))
        return out * sum_over(inverse * t, (-2, -1), keepdim=True) - matmul(out, matmul(mT(t), inverse))

    oracle = "retrograd.testing.references.solve.cofactor"

    samples = _square_samples



@op("log_determinant(Tensor A) -> (Tensor sign, Tensor logabsdet)")
class log_determinant(Internal, CoreDims, node_name="LinalgSlogdetBackward0"):
    """The sign and the log absolute value of determinants, as `linalg.slogdet` returns them."""

    impl = xp.log_determinant

    def shape(A):
        check_square("linalg.slogdet", A)
        return Aval(A.shape[:-2], A.dtype), Aval(A.shape[:-2], dtypes.real_of(A.dtype))

    def vjp_A(g, A, sign):
        g_sign, g_size = g
        if A.dtype.kind == "c":
            g_size = complex(g_size, imag(sign * g_sign))
        return unsqueeze_per_matrix(g_size) * mT(linalg_inv(A))

    def jvp_A(t, A, out):
        turn = sum_over(mT(linalg_inv(A)) * t, (-2, -1))
        if A.dtype.kind != "c":
            return registry["zeros_like"](turn), turn
        return out[0] * complex(registry["zeros_like"](imag(turn)), imag(turn)), registry["real"](turn)

    oracle = "retrograd.testing.references.solve.slogdet"

    samples = _square_samples


@op("linalg.slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)")
class linalg_slogdet(Composite, aliases="slogdet"):
    """The sign, and the log of the absolute value, of determinants of square matrices, which can't overflow.

    For complex matrices the sign has absolute value 1.  Singular matrices give 0 and -inf.

    >>> import retrograd as rg
    >>> sign, logabsdet = rg.linalg.slogdet(rg.eye(100) * 0.01)
    >>> sign.item(), round(logabsdet.item(), 2)
    (1.0, -460.52)
    """

    def compose(A):
        return log_determinant(A)

    oracle = "retrograd.testing.references.solve.slogdet"

    samples = _square_samples

    def errors(r):
        yield (r(2, 3),), {}, ValueError, r"linalg.slogdet: .*expected square matrices, got shape \(2, 3\)"


@op("logdet(Tensor A) -> Tensor")
class logdet(Composite):
    """The logarithm of the determinants of square matrices; NaN where they are negative, -inf where 0."""

    def compose(A):
        sign, size = log_determinant(A)
        if A.dtype.kind == "c":
            return log(sign) + size
        return where(sign < 0, math.nan, size)

    oracle = "retrograd.testing.references.solve.logdet"

    samples = _square_samples


# --------------------------------------------------------------------------------------------------- exponential


class PowerSeries(Gufunc):
    """A power series of a matrix: its high derivatives are blocks of its value for a larger matrix (`func.series`)."""


@op("linalg.matrix_exp(Tensor A) -> Tensor")
class linalg_matrix_exp(PowerSeries, fit=None, aliases="matrix_exp", opmath="A"):
    """The matrix exponential, the sum of A^n / n!, of square matrices.  Needs SciPy.

    The derivative is a block of the exponential of a matrix of twice the size: I. Najfeld and T. F. Havel,
    Derivatives of the matrix exponential and their computation, Adv. Appl. Math. 16 (1995).

    >>> import retrograd as rg
    >>> rg.linalg.matrix_exp(rg.tensor([[0.0, 1.0], [0.0, 0.0]])).tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """

    core = "(m,m)->(m,m)"
    impl = xp.matrix_exponential

    def vjp_A(g, A):
        return _matrix_exp_jvp(mT(A), g)

    def jvp_A(t, A):
        return _matrix_exp_jvp(A, t)

    def oracle(np, A):
        term, total = np.eye(A.shape[-1]), np.eye(A.shape[-1])
        for k in range(1, 60):
            term = term @ A / k
            total = total + term
        return total

    def samples(r):
        yield (r(3, 3),), {}
        yield (r(2, 2, 2),), {}

    def errors(r):
        yield (r(2, 3),), {}, ValueError, r"linalg.matrix_exp: .*shapes \(2, 3\) do not fit"


def _matrix_exp_jvp(A, t):
    """The derivative of the exponential of A along t: the upper right block of exp([[A, t], [0, A]])."""
    n = A.shape[-1]
    upper = cat([A, t], dim=-1)
    lower = cat([registry["zeros_like"](A), A], dim=-1)
    block_exp = linalg_matrix_exp(cat([upper, lower], dim=-2))
    return narrow(narrow(block_exp, -2, 0, n), -1, n, n)
