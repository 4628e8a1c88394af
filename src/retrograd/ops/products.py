"""Tensor products: tensordot, inner, kron, cross, batched products with addition, chains, matrix powers."""

import itertools
import string

from retrograd.backend.type_info import check_number_fits
from retrograd.core import Tensor, op, registry
from retrograd.core import dtype as dtypes
from retrograd.core.hooks import conjugate
from retrograd.foundation.describe_value import describe
from retrograd.foundation.older_forms import numbers_among_tensors
from retrograd.ops.constants import constant_in
from retrograd.ops.diagonal import diagonal
from retrograd.ops.family import Composite, broadcast_shapes, canonical_dim, canonical_dims
from retrograd.ops.linalg import add_scaled, bmm, contract, einsum, matmul, mm, mv, outer
from retrograd.ops.matrix_functions import square_words
from retrograd.ops.pointwise import clone, in_dtype
from retrograd.ops.reduce import sum as sum_over
from retrograd.ops.scan import cumprod
from retrograd.ops.view import cat, expand, reshape, roll, transpose, unsqueeze

# ------------------------------------------------------------------------------------------------ contracted


@op("tensordot(Tensor a, Tensor b, any dims=2) -> Tensor")
class tensordot(Composite, aliases="linalg.tensordot"):
    """The contraction of a and b: the sum of products over some dimensions of a and as many of b.

    The remaining dimensions keep their order.  dims: n, for the last n of a and the first n of b, or two lists of
    dimensions, or a tensor of either.

    >>> import retrograd as rg
    >>> rg.tensordot(rg.ones(2, 3, 4), rg.ones(3, 4, 5)).shape
    (2, 5)
    >>> rg.tensordot(rg.ones(2, 3), rg.ones(3, 2), dims=([0, 1], [1, 0])).item()
    6.0
    """

    method = False

    def compose(a, b, *, dims):
        left, right = _contracted_dims(a, b, dims)
        for i, j in zip(left, right, strict=True):  # a size of 1 broadcasts
            if a.shape[i] != b.shape[j]:
                a = a if a.shape[i] == 1 else sum_over(a, i, keepdim=True)
                b = b if b.shape[j] == 1 else sum_over(b, j, keepdim=True)
        first, letters = string.ascii_lowercase[: a.ndim], list(string.ascii_uppercase[: b.ndim])
        for i, j in zip(left, right, strict=True):
            letters[j] = first[i]
        second = "".join(letters)
        out = "".join([c for c in first if c not in second] + [c for c in second if c not in first])
        return contract(a, b, equation=f"{first},{second}->{out}")

    def oracle(np, a, b, dims):
        """Return np.tensordot; a size of 1 broadcasts with the other operand's."""
        for i, j in zip(*dims, strict=True) if not isinstance(dims, int) else ():
            if a.shape[i] != b.shape[j]:
                a, b = (x if x.shape[d] == 1 else x.sum(d, keepdims=True) for x, d in ((a, i), (b, j)))
        return np.tensordot(a, b, dims)

    def samples(r):
        yield (r(2, 3, 4), r(3, 4, 5)), {}
        yield (r(2, 3), r(4, 2, 3)), {"dims": ((0, 1), (1, 2))}
        yield (r(2), r(3)), {"dims": 0}
        yield (r(2, 1, 4), r(4, 3, 2)), {"dims": ((1, 2), (1, 0))}

    def errors(r):
        yield (r(2, 3), r(2, 3)), {"dims": 1}, ValueError, r"tensordot: .* \(2, 3\) and \(2, 3\) .* 3 and 2"
        yield (r(2, 3), r(2, 3)), {"dims": ((0, 1), (0,))}, ValueError, "tensordot: .* 2 of the first and 1"
        yield (r(2, 3), r(2, 3)), {"dims": 3}, ValueError, "tensordot: dims 3"


def _contracted_dims(a, b, dims):
    """The contracted dimensions of each tensor."""
    if isinstance(dims, Tensor):
        dims = dims.tolist() if dims.size > 1 else int(dims)
    if isinstance(dims, int):
        if not 0 <= dims <= min(a.ndim, b.ndim):
            raise ValueError(f"tensordot: dims {dims} for tensors of {a.ndim} and {b.ndim} dimensions")
        left, right = tuple(range(a.ndim - dims, a.ndim)), tuple(range(dims))
    else:
        if not isinstance(dims, (tuple, list)) or len(dims) != 2:
            raise ValueError(f"tensordot: dims must be a number, or the dimensions of each of the two, got {dims!r}")
        dims_a, dims_b = ([d] if isinstance(d, int) else d for d in dims)
        left = canonical_dims("tensordot", tuple(dims_a), a.ndim) if dims_a else ()
        right = canonical_dims("tensordot", tuple(dims_b), b.ndim) if dims_b else ()
    if len(left) != len(right):
        raise ValueError(f"tensordot: dims {dims} names {len(left)} of the first and {len(right)} of the second")
    for i, j in zip(left, right, strict=True):
        if a.shape[i] != b.shape[j] and 1 not in (a.shape[i], b.shape[j]):
            raise ValueError(
                f"tensordot: shapes {a.shape} and {b.shape} do not fit: {a.shape[i]} and {b.shape[j]} are paired"
            )
    return left, right


@op("inner(Tensor a, Tensor b) -> Tensor")
class inner(Composite):
    """The sum of products over the last dimensions of a and b; a tensor without dimensions multiplies elementwise."""

    def compose(a, b):
        return tensordot(a, b, ((-1,), (-1,))) if a.ndim and b.ndim else a * b

    oracle = "numpy.inner"

    def samples(r):
        yield (r(2, 4), r(3, 4)), {}
        yield (r(4), r(4)), {}
        yield (r(2), r()), {}

    def errors(r):
        yield (r(2, 3), r(2)), {}, ValueError, "3 and 2 are paired"


@op("linalg.vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor")
class linalg_vecdot(Composite, aliases="vecdot"):
    """The dot product of vectors, the sum of conj(x) * y along `dim`; x and y broadcast.

    >>> import retrograd as rg
    >>> rg.linalg.vecdot(rg.tensor([[1.0, 2.0], [3.0, 4.0]]), rg.tensor([1.0, 1.0])).tolist()
    [3.0, 7.0]
    """

    method = False

    def compose(x, y, *, dim):
        return sum_over(conjugate(x) * y, dim)

    def oracle(np, x, y, dim):
        return (x.conj() * y).sum(dim)

    def samples(r):
        yield (r(3, 4), r(3, 4)), {}
        yield (r(3, 4), r(3, 1)), {"dim": 0}


@op("kron(Tensor a, Tensor b) -> Tensor")
class kron(Composite):
    """The Kronecker product: blocks of b, each multiplied by an element of a.

    >>> import retrograd as rg
    >>> rg.kron(rg.tensor([1, 10]), rg.tensor([1, 2, 3])).tolist()
    [1, 2, 3, 10, 20, 30]
    """

    def compose(a, b):
        ndim = max(a.ndim, b.ndim)
        left, right = ((1,) * (ndim - x.ndim) + x.shape for x in (a, b))
        pairs = list(zip(left, right, strict=True))
        outer_shape = [size for m, _ in pairs for size in (m, 1)]
        inner_shape = [size for _, n in pairs for size in (1, n)]
        product = reshape(a, tuple(outer_shape)) * reshape(b, tuple(inner_shape))
        return reshape(product, tuple(m * n for m, n in pairs))

    oracle = "numpy.kron"

    def samples(r):
        yield (r(2, 3), r(3, 2)), {}
        yield (r(2), r(2, 3)), {}


def _cross(name, a, b, dim):
    if a.ndim != b.ndim:
        raise ValueError(f"{name}: expected as many dimensions in both, got {a.shape} and {b.shape}")
    shape = broadcast_shapes(name, (a.shape, b.shape))
    dim = canonical_dim(name, dim, len(shape))
    if not shape or {x.shape[dim - len(shape)] for x in (a, b) if x.ndim >= len(shape) - dim} != {3}:
        raise ValueError(f"{name}: dimension {dim} must have size 3 in both, got {a.shape} and {b.shape}")
    dim -= len(shape)
    return roll(a, -1, dim) * roll(b, 1, dim) - roll(a, 1, dim) * roll(b, -1, dim)


@op("linalg.cross(Tensor x, Tensor other, *, int dim=-1) -> Tensor")
class linalg_cross(Composite):
    """The cross product of 3-vectors along `dim`; the other dimensions broadcast.

    >>> import retrograd as rg
    >>> rg.linalg.cross(rg.tensor([1.0, 0.0, 0.0]), rg.tensor([0.0, 1.0, 0.0])).tolist()
    [0.0, 0.0, 1.0]
    """

    def compose(x, other, *, dim):
        return _cross("linalg.cross", x, other, dim)

    oracle = "retrograd.testing.references.products.cross"

    def samples(r):
        yield (r(1, 3), r(2, 3)), {}
        yield (r(3, 2), r(3, 2)), {"dim": 0}

    def errors(r):
        yield (r(2), r(2)), {}, ValueError, "linalg.cross: dimension 0 must have size 3"


@op("cross(Tensor x, Tensor other, int? dim=None) -> Tensor")
class cross(Composite):
    """The cross product `linalg.cross`; without `dim`, along the first dimension of size 3."""

    def compose(x, other, *, dim):
        if dim is None:
            if 3 not in x.shape:
                raise ValueError(f"cross: no dimension has size 3 in {x.shape}")
            dim = x.shape.index(3)
        return _cross("cross", x, other, dim)

    oracle = "retrograd.testing.references.products.cross"

    def samples(r):
        yield (r(2, 3), r(2, 3)), {}
        yield (r(3, 2, 3), r(3, 2, 3)), {"dim": 2}

    def errors(r):
        yield (r(2, 4), r(2, 4)), {}, ValueError, r"cross: no dimension has size 3 in \(2, 4\)"


@op("bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor")
class bilinear(Composite, home="nn.functional", aliases="bilinear", method=False, opmath="input1 input2 weight bias"):
    """input1^T weight[k] input2 + bias[k] for each k: (..., m), (..., n), (k, m, n), (k,) to (..., k)."""

    def compose(input1, input2, weight, bias):
        _check_bilinear(input1.shape, input2.shape, weight.shape, bias)
        out = einsum("...m,kmn,...n->...k", [input1, weight, input2]).contiguous()
        return out if bias is None else out + bias

    def oracle(np, input1, input2, weight, bias):
        out = np.einsum("...i,kij,...j->...k", input1, weight, input2)
        return out if bias is None else out + bias

    def samples(r):
        yield (r(2, 3), r(2, 4), r(5, 3, 4), r(5)), {}
        yield (r(3), r(4), r(2, 3, 4), None), {}

    def errors(r):
        pattern = r"bilinear: input1 \(\.\.\., m\), input2 .* do not go together"
        yield (r(2, 3), r(2, 4), r(5, 3, 5), None), {}, ValueError, pattern
        yield (r(2, 3), r(3, 4), r(5, 3, 4), None), {}, ValueError, pattern
        yield (r(2, 3), r(2, 4), r(3, 4), None), {}, ValueError, pattern
        yield (r(2, 3), r(2, 4), r(5, 3, 4), r(4)), {}, ValueError, pattern


def _check_bilinear(one, two, weight, bias):
    fits = len(weight) == 3 and one and two and one[:-1] == two[:-1] and weight[1:] == (one[-1], two[-1])
    if not fits or (bias is not None and bias.shape != weight[:1]):
        bias_shape = "None" if bias is None else bias.shape
        raise ValueError(
            f"bilinear: input1 (..., m), input2 (..., n), weight (k, m, n) and bias (k,) of shapes {one}, {two}, "
            f"{weight} and {bias_shape} do not go together"
        )


# --------------------------------------------------------------------------------- added, scaled by beta and alpha

_BETA_ALPHA = "*, number beta=1, number alpha=1) -> Tensor"


@op("baddbmm(Tensor x, Tensor batch1, Tensor batch2, " + _BETA_ALPHA)
class baddbmm(Composite, in_place=True):
    """beta * x + alpha * bmm(batch1, batch2); x broadcasts."""

    older_form = numbers_among_tensors("beta", "alpha")

    def compose(x, batch1, batch2, *, beta, alpha):
        return add_scaled(x, bmm(batch1, batch2), beta, alpha)

    def oracle(np, x, a, b, beta, alpha):
        return beta * x + alpha * (a @ b)

    def samples(r):
        yield (r(4), r(2, 3, 5), r(2, 5, 4)), {}
        yield (r(2, 3, 4), r(2, 3, 5), r(2, 5, 4)), {"beta": 0.5, "alpha": 2}


@op("addbmm(Tensor x, Tensor batch1, Tensor batch2, " + _BETA_ALPHA)
class addbmm(Composite, in_place=True):
    """beta * x + alpha * sum of bmm(batch1, batch2) over the batch; x broadcasts."""

    older_form = numbers_among_tensors("beta", "alpha")

    def compose(x, batch1, batch2, *, beta, alpha):
        fits = batch1.ndim == batch2.ndim == 3 and batch1.shape[0] == batch2.shape[0]
        if not fits or batch1.shape[2] != batch2.shape[1]:
            raise ValueError(f"addbmm: stacks {batch1.shape} and {batch2.shape} do not fit: (b, m, k) and (b, k, n)")
        return add_scaled(x, contract(batch1, batch2, equation="bmk,bkn->mn"), beta, alpha)

    def oracle(np, x, a, b, beta, alpha):
        return beta * x + alpha * (a @ b).sum(0)

    def samples(r):
        yield (r(4), r(2, 3, 5), r(2, 5, 4)), {}
        yield (r(3, 4), r(2, 3, 5), r(2, 5, 4)), {"beta": 0.5, "alpha": 2}

    def errors(r):
        yield (r(4), r(2, 3, 5), r(3, 5, 4)), {}, ValueError, "addbmm: stacks"


@op("addmv(Tensor x, Tensor mat, Tensor vec, " + _BETA_ALPHA)
class addmv(Composite, in_place=True):
    """beta * x + alpha * mv(mat, vec); x broadcasts."""

    older_form = numbers_among_tensors("beta", "alpha")

    def compose(x, mat, vec, *, beta, alpha):
        check_number_fits("addmv: beta", beta, x.dtype)
        check_number_fits("addmv: alpha", alpha, x.dtype)
        return add_scaled(x, mv(mat, vec), beta, alpha)

    def oracle(np, x, a, b, beta, alpha):
        return beta * x + alpha * (a @ b)

    def samples(r):
        yield (r(3), r(3, 4), r(4)), {}
        yield (r(), r(3, 4), r(4)), {"beta": 0.5, "alpha": 2}


@op("addr(Tensor x, Tensor vec1, Tensor vec2, " + _BETA_ALPHA)
class addr(Composite, in_place=True):
    """beta * x + alpha * outer(vec1, vec2); x broadcasts."""

    older_form = numbers_among_tensors("beta", "alpha")

    def compose(x, vec1, vec2, *, beta, alpha):
        dtype = dtypes.result_type(x, vec1, vec2)
        for name, number in (("beta", beta), ("alpha", alpha)):
            if dtype.kind in "biu" and not isinstance(number, int):
                raise RuntimeError(f"addr: {name} must be an int for integer tensors, got {describe(number)}")
            check_number_fits(f"addr: {name}", number, dtype)
        return add_scaled(in_dtype(x, dtype), outer(in_dtype(vec1, dtype), vec2), beta, alpha)

    def oracle(np, x, a, b, beta, alpha):
        return beta * x + alpha * np.outer(a, b)

    def samples(r):
        yield (r(3, 4), r(3), r(4)), {}
        yield (r(4), r(3), r(4)), {"beta": 0.5, "alpha": 2}


# --------------------------------------------------------------------------------------------- chains and powers


@op("linalg.multi_dot(Tensor[] tensors) -> Tensor")
class linalg_multi_dot(Composite):
    """The product of several matrices, in the order with the fewest multiplications.

    The first may be a vector (a row), and the last one, too (a column).  T. H. Cormen et al., Introduction to
    Algorithms, 15.2.

    >>> import retrograd as rg
    >>> rg.linalg.multi_dot([rg.ones(2, 3), rg.ones(3, 4), rg.ones(4)]).tolist()
    [12.0, 12.0]
    """

    def compose(*tensors):
        return _chain_matrices("linalg.multi_dot", tensors)

    def oracle(np, *tensors):
        return np.linalg.multi_dot(tensors)

    def samples(r):
        yield (r(2, 3), r(3, 4), r(4, 2), r(2, 5)), {}
        yield (r(3), r(3, 4), r(4)), {}
        yield (r(2, 3), r(3, 2)), {}

    def errors(r):
        yield (r(2, 3),), {}, ValueError, "linalg.multi_dot: expected at least 2 tensors"
        yield (r(2, 3), r(2, 3)), {}, ValueError, r"linalg.multi_dot: .* \(2, 3\) and \(2, 3\) do not fit"
        yield (r(2, 3), r(3), r(3, 2)), {}, ValueError, "linalg.multi_dot: tensor 1 .* matrix"


@op("chain_matmul(Tensor[] matrices) -> Tensor")
class chain_matmul(Composite):
    """The product `linalg.multi_dot` of matrices, passed as separate arguments."""

    method = False

    def compose(*matrices):
        return clone(matrices[0]) if len(matrices) == 1 else _chain_matrices("chain_matmul", matrices)

    def oracle(np, *matrices):
        return np.linalg.multi_dot(matrices) if len(matrices) > 1 else matrices[0]

    def samples(r):
        yield (r(2, 3), r(3, 4), r(4, 2)), {}


def _chain_matrices(name, tensors):
    _check_chain(name, tensors)
    row, column = tensors[0].ndim == 1, tensors[-1].ndim == 1
    matrices = list(tensors)
    if row:
        matrices[0] = unsqueeze(matrices[0], 0)
    if column:
        matrices[-1] = unsqueeze(matrices[-1], 1)
    sizes = [m.shape[0] for m in matrices] + [matrices[-1].shape[1]]
    out = _multiply_chain(matrices, _cheapest_splits(sizes), 0, len(matrices) - 1)
    return reshape(out, (() if row else out.shape[:1]) + (() if column else out.shape[1:]))


def _check_chain(name, tensors):
    if len(tensors) < 2:
        raise ValueError(f"{name}: expected at least 2 tensors, got {len(tensors)}")
    for i, t in enumerate(tensors):
        if t.ndim != 2 and not (t.ndim == 1 and i in (0, len(tensors) - 1)):
            raise ValueError(
                f"{name}: tensor {i} must be 2D but got {t.ndim}D: tensor {i} of shape {t.shape} must be a matrix; the "
                f"ends may be vectors"
            )
    for a, b in itertools.pairwise(tensors):
        if a.shape[-1] != b.shape[0]:
            raise ValueError(f"{name}: shapes {a.shape} and {b.shape} do not fit")


def _cheapest_splits(sizes):
    """For each subchain i to j, the matrix after which to split it at the lowest cost."""
    n = len(sizes) - 1
    cost = {(i, i): 0 for i in range(n)}
    split = {}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            choices = [(cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)]
            cost[i, j], split[i, j] = min(choices)
    return split


def _multiply_chain(matrices, split, i, j):
    if i == j:
        return matrices[i]
    k = split[i, j]
    return mm(_multiply_chain(matrices, split, i, k), _multiply_chain(matrices, split, k + 1, j))


@op("linalg.matrix_power(Tensor A, int n) -> Tensor")
class linalg_matrix_power(Composite, aliases="matrix_power"):
    """The n-th power of square matrices, by repeated squaring; of the inverses for negative n.

    >>> import retrograd as rg
    >>> rg.linalg.matrix_power(rg.tensor([[1.0, 1.0], [0.0, 1.0]]), 10).tolist()
    [[1.0, 10.0], [0.0, 1.0]]
    """

    def compose(A, *, n):
        if A.ndim < 2 or A.shape[-1] != A.shape[-2]:
            raise ValueError(f"linalg.matrix_power: {square_words(A.shape)}")
        if n == 0:
            return constant_in(expand(registry["eye"](A.shape[-1], dtype=A.dtype), A.shape).contiguous(), A)
        if n == 1:
            return clone(A)
        A, n = (A, n) if n > 0 else (registry["linalg.inv"](A), -n)
        out = None
        while n:
            if n % 2:
                out = A if out is None else matmul(out, A)
            n //= 2
            A = matmul(A, A) if n else A
        return out

    def oracle(np, A, n):
        return np.linalg.matrix_power(A, n)

    def samples(r):
        for n in (3, 6, 1, 0):
            yield (r(2, 3, 3),), {"n": n}
        yield (r(3, 3) + 3 * registry["eye"](3, dtype="float64"),), {"n": -2}

    def errors(r):
        yield (r(2, 3),), {"n": 2}, ValueError, r"linalg.matrix_power: .*expected square matrices, got shape \(2, 3\)"


@op("linalg.vander(Tensor x, int? N=None) -> Tensor")
class linalg_vander(Composite):
    """The Vandermonde matrix: powers 0 to N - 1 (N: the size of x) of each element, in a new last dimension.

    A tensor without dimensions, which needs N, gives shape (1, N).

    >>> import retrograd as rg
    >>> rg.linalg.vander(rg.tensor([2, 3]), N=4).tolist()
    [[1, 2, 4, 8], [1, 3, 9, 27]]
    """

    def compose(x, *, N):
        if (x.ndim == 0 and N is None) or (N is not None and N < 0):
            raise ValueError(f"linalg.vander: expected N from 0, and N for a number, got shape {x.shape}, N {N}")
        x = x if x.ndim else reshape(x, (1,))
        count = x.shape[-1] if N is None else N
        factors = expand(unsqueeze(x, -1), (*x.shape, max(count - 1, 0)))
        ones = registry["ones"]((*x.shape, min(count, 1)), dtype=x.dtype)
        return cumprod(cat([ones, factors], dim=-1), -1)

    def oracle(np, x, N):
        x = np.atleast_1d(x)
        N = x.shape[-1] if N is None else N
        return x[..., None] ** np.arange(N)

    def samples(r):
        yield (r(3),), {}
        yield (r(2, 3),), {"N": 5}
        yield (r(2),), {"N": 2}
        yield (r(),), {"N": 3}

    def errors(r):
        yield (r(),), {}, ValueError, "linalg.vander: expected N from 0, and N for a number"


# ---------------------------------------------------------------------------------------- matrices of a stack


@op("linalg.diagonal(Tensor A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor")
class linalg_diagonal(Composite):
    """A view of the diagonals of matrices, the last two dimensions."""

    def compose(A, *, offset, dim1, dim2):
        return diagonal(A, offset, dim1, dim2)

    def oracle(np, A, offset, dim1, dim2):
        return np.diagonal(A, offset, dim1, dim2)

    def samples(r):
        yield (r(2, 3, 4),), {"offset": 1}


@op("linalg.trace(Tensor A, *, int offset=0) -> Tensor")
class linalg_trace(Composite):
    """The sum of the diagonal of each matrix, the last two dimensions, as in NumPy."""

    def compose(A, *, offset):
        return sum_over(diagonal(A, offset, -2, -1), -1)

    def oracle(np, A, offset):
        return np.trace(A, offset, -2, -1)

    def samples(r):
        yield (r(2, 3, 4),), {"offset": -1}


@op("linalg.matrix_transpose(Tensor A) -> Tensor")
class linalg_matrix_transpose(Composite, aliases="matrix_transpose"):
    """A view of matrices, the last two dimensions, with rows and columns swapped, as in NumPy."""

    method = False

    def compose(A):
        return transpose(A, -2, -1)

    def oracle(np, A):
        return np.swapaxes(A, -1, -2)

    def samples(r):
        yield (r(2, 3, 4),), {}
