"""Norms of vectors and matrices, condition numbers, ranks, and slices limited to a norm."""

import math

from retrograd.core import Internal, op, registry
from retrograd.core import dtype as dtypes
from retrograd.core.hooks import conjugate
from retrograd.foundation.describe_value import describe
from retrograd.ops.constants import constant_without_gradient
from retrograd.ops.eigen import linalg_eigvalsh
from retrograd.ops.family import (
    Composite,
    Reduction,
    as_number,
    canonical_dims,
    cast_to,
    check_floating,
    check_real,
    reduced_shape,
    restore_dims,
)
from retrograd.ops.matrix_functions import (
    check_matrices,
    check_square,
    linalg_inv_ex,
    rank_tolerances,
    unsqueeze_per_matrix,
)
from retrograd.ops.max_min import amax, amin, check_nonempty
from retrograd.ops.pointwise import POSITIVE, abs, detach, gt, logical_or, ne, pow, real_part, where
from retrograd.ops.reduce import numpy_axes, reduction_samples
from retrograd.ops.reduce import sum as sum_over
from retrograd.ops.svd import linalg_svdvals
from retrograd.ops.view import movedim, reshape, unsqueeze

# ------------------------------------------------------------------------------------------------------ vectors


@op("euclidean_norm(Tensor x, int[]? dim=None, bool keepdim=False) -> Tensor")
class euclidean_norm(
    Internal, Reduction, result="real", opmath="x", in_stages=True, node_name="LinalgVectorNormBackward0"
):
    """The square root of the sum of |x|^2 over `dim`.  The derivative at 0 is taken as 0."""

    def impl(xp, x, *, dim, keepdim):
        check_floating("norm", x)
        return xp.euclidean_norm(x, numpy_axes(x, dim), keepdim)

    def vjp_x(g, x, out, dim, keepdim):
        return _euclidean_derivative(x, out, dim, keepdim) * restore_dims(g, x, dim, keepdim)

    def jvp_x(t, x, out, dim, keepdim):
        return real_part(sum_over(_euclidean_derivative(x, out, dim, keepdim) * t, dim, keepdim))

    oracle = "retrograd.testing.references.norm.euclidean_norm"

    samples = reduction_samples


def _euclidean_derivative(x, out, dim, keepdim):
    """The derivative of the norm by each element: the element's conjugate divided by the norm."""
    out = restore_dims(out, x, dim, keepdim)
    return conjugate(x) / where(out == 0, math.inf, out)


def _vector_norm(name, x, p, dim, keepdim, dtype):
    x = _cast(name, x, dtype)
    if isinstance(p, bool) or not isinstance(p, (int, float)):
        raise ValueError(f"{name}: the order of a vector's norm must be a number, got {describe(p)}")
    if p == 2:
        return euclidean_norm(x, dim, keepdim)
    if p == 0:
        return constant_without_gradient(sum_over(ne(x, 0), dim, keepdim, dtype=dtypes.real_of(x.dtype)), x)
    if p < 0 or math.isinf(p):
        check_nonempty(name, x, dim)
    if math.isinf(p):
        return (amax if p > 0 else amin)(abs(x), dim, keepdim)
    return sum_over(abs(x), dim, keepdim) if p == 1 else power_norm(abs(x), p, dim, keepdim)


def _cast(name, x, dtype):
    """x cast to the given dtype; an error for complex to real, or the reverse."""
    if dtype is not None:
        if not dtypes.is_differentiable(dtype) or (x.dtype.kind == "c") != (dtype.kind == "c"):
            raise TypeError(f"{name}: dtype {dtype} does not suit {x.dtype}: both must be real, or both complex")
        x = cast_to(x, dtype)
    check_floating(name, x)
    return x


@op("power_norm(Tensor x, number p, int[]? dim=None, bool keepdim=False) -> Tensor")
class power_norm(Internal, Reduction, opmath="x", node_name="LinalgVectorNormBackward0"):
    """sum(|x|^p)^(1/p) over `dim`, p neither 0 nor infinite.  The derivative at 0 is taken as 0."""

    def impl(xp, x, *, p, dim, keepdim):
        check_real("power_norm", x)
        return xp.power_norm(x, p, numpy_axes(x, dim), keepdim)

    def vjp_x(g, x, out, p, dim, keepdim):
        return _power_derivative(x, out, p, dim, keepdim) * restore_dims(g, x, dim, keepdim)

    def jvp_x(t, x, out, p, dim, keepdim):
        return sum_over(_power_derivative(x, out, p, dim, keepdim) * t, dim, keepdim)

    oracle = "retrograd.testing.references.norm.power_norm"

    def samples(r):
        yield (r(3, 4, within=POSITIVE),), {"p": 3}
        yield (r(2, 3, 4, within=POSITIVE),), {"p": 1.5, "dim": (0, -1), "keepdim": True}
        yield (r(3, 4, within=POSITIVE),), {"p": -0.5, "dim": (1,)}


def _power_derivative(x, out, p, dim, keepdim):
    """(x / out)^(p - 1), computed without overflow or underflow; 0 where x or out is 0."""
    out = restore_dims(out, x, dim, keepdim)
    none = logical_or(x == 0, out == 0)
    x, out = where(none, 1, x), where(none, 1, out)
    return where(none, 0, pow(x, p - 1) / pow(out, p - 1) if 1 < p < 2 else pow(x / out, p - 1))


@op("linalg.vector_norm(Tensor x, number ord=2, int[]? dim=None, bool keepdim=False, *, dtype? dtype=None) -> Tensor")
class linalg_vector_norm(Composite):
    """The vector norm sum(abs(x)^ord)^(1/ord) over `dim` (None: all elements as one vector).

    ord: inf or -inf for the maximum or minimum absolute value, 0 for the number of nonzero elements.  Where there is no
    derivative, at 0, it is taken as 0.  Tied maxima or minima share it.

    >>> import retrograd as rg
    >>> rg.linalg.vector_norm(rg.tensor([3.0, 4.0])).item()
    5.0
    """

    def compose(x, *, ord, dim, keepdim, dtype):
        return _vector_norm("linalg.vector_norm", x, ord, dim, keepdim, dtype)

    oracle = "retrograd.testing.references.norm.linalg_vector_norm"

    def samples(r):
        yield (r(3, 4),), {}
        yield (r(3, 4),), {"ord": 1, "dim": 1}
        yield (r(3, 4),), {"ord": 3.5, "dim": 0, "keepdim": True}
        yield (r(3, 4),), {"ord": math.inf, "dim": 1}
        yield (r(3, 4),), {"ord": -1.5}
        yield (r(3, 4),), {"ord": 0, "dim": 0}

    def errors(r):
        yield (r(3, 0),), {"ord": math.inf}, ValueError, "linalg.vector_norm: .*nothing to choose from"
        yield (r.ints(3, (2,)),), {}, TypeError, "linalg.vector_norm: expected a floating or complex dtype"
        yield (r(2),), {"dtype": "complex64"}, TypeError, "linalg.vector_norm: dtype complex64 does not suit float64"


# ----------------------------------------------------------------------------------------------------- matrices


def _matrix_norm(name, A, p, dim, keepdim):
    rows, columns = _two_dims(name, dim, A.ndim)
    if p == "fro" or (p in (1, 2, math.inf) and 0 in (A.shape[rows], A.shape[columns])):  # none: 0
        return euclidean_norm(A, (rows, columns), keepdim)
    if p == "nuc" or p in (2, -2):
        values = linalg_svdvals(movedim(A, (rows, columns), (-2, -1)))
        if p == -2:
            check_nonempty(name, values, (-1,))
        out = sum_over(values, -1) if p == "nuc" else (amax if p > 0 else amin)(values, -1)
        return reshape(out, reduced_shape(A.shape, (rows, columns), True)) if keepdim else out
    if p not in (1, -1, math.inf, -math.inf):
        raise ValueError(f"{name}: the order must be 'fro', 'nuc', 1, 2, inf or the negative of these, got {p!r}")
    first, second = (columns, rows) if math.isinf(p) else (rows, columns)
    sums = sum_over(abs(A), first, keepdim=True)
    check_nonempty(name, sums, (second,))
    out = (amax if p > 0 else amin)(sums, second, keepdim=True)
    return out if keepdim else reshape(out, reduced_shape(A.shape, (rows, columns), False))


def _two_dims(name, dim, ndim):
    if dim is None or len(dim) != 2 or ndim < 2:
        raise ValueError(f"{name}: expected two dimensions, got dim {dim} of a tensor of {ndim} dimensions")
    return canonical_dims(name, dim, ndim)


@op(
    "linalg.matrix_norm(Tensor A, any ord='fro', int[] dim=[-2, -1], bool keepdim=False, *, dtype? dtype=None) "
    "-> Tensor"
)
class linalg_matrix_norm(Composite):
    """The matrix norm over the two dimensions `dim`.

    ord: "fro", the square root of the sum of squares; "nuc", the sum of singular values; 2 or -2, the largest or
    smallest singular value; 1 or -1, the largest or smallest sum of absolute values over a column; inf or -inf, over a
    row.  Where there is no derivative, that of "fro" at 0 is taken as 0, and tied values share that of the others.

    >>> import retrograd as rg
    >>> A = rg.tensor([[1.0, -2.0], [3.0, 4.0]])
    >>> rg.linalg.matrix_norm(A, 1).item(), rg.linalg.matrix_norm(A, float("inf")).item()
    (6.0, 7.0)
    """

    def compose(A, *, ord, dim, keepdim, dtype):
        return _matrix_norm("linalg.matrix_norm", _cast("linalg.matrix_norm", A, dtype), ord, dim, keepdim)

    oracle = "retrograd.testing.references.norm.linalg_matrix_norm"

    def samples(r):
        yield (r(2, 3, 4),), {}
        yield (r(3, 4),), {"ord": 1}
        yield (r(3, 4),), {"ord": -math.inf, "keepdim": True}
        yield (r(2, 3, 2) * registry["eye"](2, dtype=dtypes.float64)[:, None],), {"ord": "nuc", "dim": (0, 2)}
        yield (r(3, 3) * registry["eye"](3, dtype=dtypes.float64),), {"ord": 2}
        yield (r(3, 3) * registry["eye"](3, dtype=dtypes.float64),), {"ord": -2, "keepdim": True}

    def errors(r):
        yield (r(3, 3),), {"ord": 3}, ValueError, "linalg.matrix_norm: the order .* got 3"
        yield (r(3),), {}, ValueError, r"linalg.matrix_norm: expected two dimensions"
        yield (r.ints(3, (2, 2)),), {}, TypeError, "linalg.matrix_norm: expected a floating or complex dtype"


@op("linalg.norm(Tensor A, any ord=None, int[]? dim=None, bool keepdim=False, *, dtype? dtype=None) -> Tensor")
class linalg_norm(Composite):
    """The vector norm along one dimension, or the matrix norm over two.

    Without ord, the square root of the sum of squares over `dim`, or over all elements.  With ord, `linalg.vector_norm`
    along one dimension or of a 1-d tensor, `linalg.matrix_norm` over two.

    >>> import retrograd as rg
    >>> rg.linalg.norm(rg.tensor([[3.0, 0.0], [0.0, 4.0]]), ord=2).item()
    4.0
    """

    def compose(A, *, ord, dim, keepdim, dtype):
        name = "linalg.norm"
        if dim is not None and len(dim) not in (1, 2):
            raise ValueError(f"{name}: dim must name one or two dimensions, got {dim}")
        if ord is None:
            return _vector_norm(name, A, 2, dim, keepdim, dtype)
        if dim is None and A.ndim not in (1, 2):
            raise ValueError(f"{name}: with ord and without dim expected 1 or 2 dimensions, got shape {A.shape}")
        if (A.ndim if dim is None else len(dim)) == 1:
            return _vector_norm(name, A, ord, dim, keepdim, dtype)
        return _matrix_norm(name, _cast(name, A, dtype), ord, (0, 1) if dim is None else dim, keepdim)

    def oracle(np, A, ord=None, dim=None, keepdim=False, dtype=None):
        return np.linalg.norm(A, ord, dim[0] if dim is not None and len(dim) == 1 else dim, keepdim)

    def samples(r):
        yield (r(2, 3, 4),), {}
        yield (r(2, 3, 4),), {"dim": (0, 1), "keepdim": True}
        yield (r(4),), {"ord": 3}
        yield (r(3, 4),), {"ord": math.inf}
        yield (r(3, 4),), {"ord": 1, "dim": -1}
        yield (r(2, 3, 4),), {"ord": -1, "dim": (2, 0)}

    def errors(r):
        yield (r(2, 2, 2),), {"ord": 2}, ValueError, "linalg.norm: .* expected 1 or 2 dimensions, got shape"
        yield (r(2, 2, 2),), {"dim": (0, 1, 2)}, ValueError, "linalg.norm: dim must name one or two dimensions"
        yield (r(2),), {"ord": "fro"}, ValueError, "linalg.norm: the order of a vector's norm .* 'fro'"


@op("norm(Tensor x, any p='fro', int[]? dim=None, bool keepdim=False, *, dtype? dtype=None) -> Tensor")
class norm(Composite):
    """The p-norm `linalg.vector_norm` over `dim` (None: all elements as one vector).

    "fro" means 2.  "nuc" is the sum of singular values of matrices, over two dimensions.

    >>> import retrograd as rg
    >>> rg.norm(rg.tensor([3.0, 4.0])).item()
    5.0
    """

    def compose(x, *, p, dim, keepdim, dtype):
        if p == "nuc":
            dim = tuple(range(x.ndim)) if dim is None else dim
            return _matrix_norm("norm", _cast("norm", x, dtype), p, dim, keepdim)
        p = as_number(p)
        return _vector_norm("norm", x, 2 if p in ("fro", None) else p, dim, keepdim, dtype)

    oracle = "retrograd.testing.references.norm.norm"

    def samples(r):
        yield (r(3, 4),), {}
        yield (r(3, 4),), {"p": 1, "dim": 1}
        yield (r(3, 4),), {"p": 3.5, "dim": 0, "keepdim": True}
        yield (r(3, 4),), {"p": math.inf, "dim": 1}
        yield (r(3, 3) * registry["eye"](3, dtype=dtypes.float64),), {"p": "nuc"}

    def errors(r):
        yield (r(3),), {"p": "max"}, ValueError, "norm: the order .* must be a number, got 'max'"
        yield (r(3, 3, 3),), {"p": "nuc"}, ValueError, "norm: expected two dimensions"


@op("nuclear_norm(Tensor x, int[]? dim=None, bool keepdim=False) -> Tensor")
class nuclear_norm(Composite):
    """The nuclear norm, the sum of singular values, of a matrix or over two dimensions."""

    method = False

    def compose(x, *, dim, keepdim):
        check_floating("nuclear_norm", x)
        return _matrix_norm("nuclear_norm", x, "nuc", tuple(range(x.ndim)) if dim is None else dim, keepdim)

    oracle = "retrograd.testing.references.norm.nuclear_norm"

    def samples(r):
        yield (r(3, 3) * registry["eye"](3, dtype=dtypes.float64),), {}
        yield (r(3, 3) * registry["eye"](3, dtype=dtypes.float64),), {"dim": (0, 1), "keepdim": True}


@op("frobenius_norm(Tensor x, int[] dim, bool keepdim=False) -> Tensor")
class frobenius_norm(Composite):
    """The Frobenius norm, the square root of the sum of squares, over `dim`."""

    method = False

    def compose(x, *, dim, keepdim):
        return _vector_norm("frobenius_norm", x, 2, dim, keepdim, None)

    oracle = "retrograd.testing.references.norm.frobenius_norm"

    def samples(r):
        yield (r(2, 3, 4),), {"dim": (0, 1)}


# -------------------------------------------------------------------------------------------------- made of norms


@op("linalg.cond(Tensor A, any p=None) -> Tensor")
class linalg_cond(Composite):
    """The condition numbers of matrices: norm(A) * norm(inv(A)), infinite for singular matrices.

    p: the order as in `linalg.matrix_norm`.  None, 2 and -2 give ratios of singular values, for matrices of any shape.

    >>> import retrograd as rg
    >>> rg.linalg.cond(rg.tensor([[4.0, 0.0], [0.0, 2.0]])).item()
    2.0
    """

    def compose(A, *, p):
        check_matrices("linalg.cond", A)
        if 0 in A.shape[-2:]:
            return registry["zeros"](A.shape[:-2], dtype=dtypes.real_of(A.dtype))
        if p in (None, 2, -2):
            values = linalg_svdvals(A)
            largest, smallest = values[..., 0], values[..., -1]
            return smallest / largest if p == -2 else largest / smallest
        check_square("linalg.cond", A)
        inverse, info = linalg_inv_ex(A)
        singular = ne(info, 0)
        inverse = where(unsqueeze_per_matrix(singular), 0, inverse)
        sizes = [_matrix_norm("linalg.cond", x, p, (-2, -1), False) for x in (A, inverse)]
        return where(singular, math.inf, sizes[0] * sizes[1])

    def oracle(np, A, p):
        return np.linalg.cond(A, p)

    def samples(r):
        diagonal = registry["eye"](3, dtype=dtypes.float64)
        yield (r(3, 3) * diagonal,), {}
        yield (r(2, 3, 3) * diagonal,), {"p": -2}
        yield (r(3, 3) + 3 * diagonal,), {"p": "fro"}
        yield (r(3, 3) + 3 * diagonal,), {"p": 1}

    def errors(r):
        yield (r(3, 2),), {"p": "fro"}, ValueError, "linalg.cond: .*expected square matrices"
        yield (r(3),), {}, ValueError, "linalg.cond: .*expected matrices"


@op(
    "linalg.matrix_rank(Tensor A, Tensor? tol=None, bool hermitian=False, *, Tensor? atol=None, Tensor? rtol=None) "
    "-> Tensor"
)
class linalg_matrix_rank(Composite):
    """The ranks of matrices: the number of singular values above max(atol, rtol * the largest), in int64.

    rtol defaults to eps of the dtype times the larger size if neither rtol nor atol is given.  tol is atol alone.
    Each is a number, or a tensor with one for each matrix.  hermitian: the matrices are Hermitian; absolute
    eigenvalues of the lower triangles count.

    >>> import retrograd as rg
    >>> rg.linalg.matrix_rank(rg.tensor([[1.0, 2.0], [2.0, 4.0]])).item()
    1
    """

    def compose(A, tol, atol, rtol, *, hermitian):
        check_matrices("linalg.matrix_rank", A)
        A = detach(A)
        atol, rtol = rank_tolerances("linalg.matrix_rank", A, tol if atol is None else atol, rtol)
        values = abs(linalg_eigvalsh(A)) if hermitian else linalg_svdvals(A)
        if values.shape[-1] == 0:
            values = registry["zeros"]((*A.shape[:-2], 1), dtype=values.dtype)
        least = amax(values, -1) * rtol
        return sum_over(gt(values, unsqueeze(where(least > atol, least, atol), -1)), -1)

    def oracle(np, A, tol, atol, rtol, hermitian):
        values = np.linalg.svd(A)[1]
        given = tol if tol is not None else atol
        least = values.max(-1, keepdims=True) * (1e-14 if rtol is None else rtol)
        return (values > (least if given is None else np.asarray(given)[..., None])).sum(-1)

    def samples(r):
        yield (r(2, 3, 2) * r.booleans(2, 1, 1), None, None, None), {}
        yield (r(3, 3), 1.0, None, None), {}
        yield (r(2, 3, 3), None, r(2, within=(0.5, 1.0)), None), {}
        yield (registry["eye"](3, dtype=dtypes.float64) * r(3), None, None, 0.5), {"hermitian": True}

    def errors(r):
        yield (r(3), None, None, None), {}, ValueError, "linalg.matrix_rank: .*expected matrices"


@op("renorm(Tensor x, number p, int dim, number maxnorm) -> Tensor")
class renorm(Composite, in_place=True, opmath="x"):
    """x with each slice along `dim` scaled down to the p-norm maxnorm if its norm is larger.

    >>> import retrograd as rg
    >>> rg.renorm(rg.tensor([[3.0, 4.0], [0.3, 0.4]]), p=2, dim=0, maxnorm=1.0).round(decimals=3).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.30000001192092896, 0.4000000059604645]]
    """

    def compose(x, *, p, dim, maxnorm):
        if x.ndim < 2 or p <= 0 or maxnorm < 0:
            raise ValueError(
                f"renorm: expected at least 2 dimensions, p above 0 and maxnorm from 0, got shape {x.shape}, p {p}, "
                f"maxnorm {maxnorm}"
            )
        (dim,) = canonical_dims("renorm", (dim,), x.ndim)
        size = _vector_norm("renorm", x, p, tuple(d for d in range(x.ndim) if d != dim), True, None)
        return (x * where(size > maxnorm, maxnorm / (size + 1e-7), 1)).contiguous()

    oracle = "retrograd.testing.references.norm.renorm"

    def samples(r):
        yield (r(3, 4),), {"p": 2, "dim": 0, "maxnorm": 1.5}
        yield (r(2, 3, 2),), {"p": 1, "dim": -1, "maxnorm": 5.0}

    def errors(r):
        yield (r(3),), {"p": 2, "dim": 0, "maxnorm": 1.0}, ValueError, r"renorm: expected .* got shape \(3,\)"


@op("norm_except_dim(Tensor v, int pow=2, int dim=0) -> Tensor")
class norm_except_dim(Composite):
    """The norm of order `pow` over all dimensions except `dim`, with keepdim; over all dimensions for dim -1."""

    method = False

    def compose(v, *, pow, dim):
        if dim == -1:
            return _vector_norm("norm_except_dim", v, pow, None, False, None)
        rest = tuple(d for d in range(v.ndim) if d != canonical_dims("norm_except_dim", (dim,), v.ndim)[0])
        return _vector_norm("norm_except_dim", v, pow, rest, True, None)

    oracle = "retrograd.testing.references.norm.norm_except_dim"

    def samples(r):
        yield (r(3, 4, 2),), {}
        yield (r(3, 4),), {"dim": -1}
