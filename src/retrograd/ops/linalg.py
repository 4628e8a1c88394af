"""Products of vectors, matrices and tensors."""

import itertools
import math

from retrograd.backend.type_info import check_factor_fits
from retrograd.core import Aval, Definition, Internal, op, registry, shape_of, xp
from retrograd.core import dtype as dtypes
from retrograd.core.aval import symbolic
from retrograd.core.graph import output_aval
from retrograd.foundation.older_forms import numbers_among_tensors
from retrograd.foundation.plain_cache import cache_plain
from retrograd.ops import batch_loop
from retrograd.ops.batching import align_batched
from retrograd.ops.diagonal import diagonal
from retrograd.ops.family import Composite, broadcast_dims, broadcast_shapes, numel, same_dtype, sum_to
from retrograd.ops.pointwise import mul, to
from retrograd.ops.reduce import sum as sum_over
from retrograd.ops.view import permute, reshape, squeeze, transpose, unsqueeze


def check_operands(name, operands, least=1):
    """Raise unless the operands of a product are tensors of one dtype with at least `least` dimensions."""
    given = [a for a in operands if a is not None]
    for a in given:
        if len(shape_of(a)) < least:
            raise ValueError(
                f"{name}: {_pytorch_ranks(name, operands)}expected tensors of at least {least} dimensions, got {a}; "
                f"for numbers there is *"
            )
    same_dtype(name, given, "expected m1 and m2 to have the same dtype: ")


def _pytorch_ranks(name, operands):
    """Return PyTorch's words for operands of `matmul` without dimensions."""
    if name != "matmul":
        return ""
    ranks = " and ".join(f"{len(shape_of(a))}D" for a in operands)
    return f"both arguments to matmul need to be at least 1D, but they are {ranks}: "


def _shape_error(name, *avals):
    listed = " and ".join(str(tuple(shape_of(a))) for a in avals if a is not None)
    return ValueError(f"{name}: shapes {listed} do not fit{_pytorch_reason(name, *map(shape_of, avals))}")


def _pytorch_reason(name, a, b, *others):
    """Return PyTorch's words for operands of `mm`, `bmm` or `dot` with the wrong number of dimensions or matrices."""
    if name == "mm":
        return ": self must be a matrix" if len(a) != 2 else ": mat2 must be a matrix"
    if name == "bmm" and len(a) == len(b) == 3:
        expected = f"[{a[0]}, {a[2]}] but got: [{b[0]}, {b[1]}]"
        return f": Expected size for first two dimensions of batch2 tensor to be: {expected}"
    if name == "bmm":
        return f": batch{1 if len(a) != 3 else 2} must be a 3D tensor"
    return f": 1D tensors expected, but got {len(a)}D and {len(b)}D tensors" if name == "dot" else ""


class Product(Definition, promotion="same"):
    """A product of operands of one dtype: nothing is promoted, and a difference is an error, as in PyTorch."""

    @classmethod
    def promote(cls, arrays):
        """Return the arrays unchanged, if their dtypes agree."""
        check_operands(cls.__name__, arrays)
        return arrays

    @classmethod
    def work(cls, avals, out):
        """Return m k n for (m, k) times (k, n): the square root of the product of the three sizes."""
        return math.sqrt(math.prod(math.prod(a.shape) for a in (*avals[:2], out)))


# -------------------------------------------------------------------------------------------- matrix product

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"  # importing `string` compiles a regular expression
NARROW = 16  # columns; up to here one product for all examples of a batch is faster, despite copies


def _transpose_hint(a, b):
    """Return the way out if the second factor would fit transposed."""
    fits = b.ndim > 1 and a.shape[-1] == b.shape[-1]
    return f", {b.shape[-2]}; its transpose, .mT, would fit" if fits else ""


def _features_hint(x, weight):
    """Return how many features there are and are wanted, if that is what does not fit."""
    if weight.ndim != 2 or x.ndim == 0 or x.shape[-1] == weight.shape[1]:
        return ""
    return f"; the last size of x is {x.shape[-1]}, and the weight takes {weight.shape[1]} features"


def _pytorch_words(a, b):
    """Return PyTorch's words for two shapes that cannot be multiplied: (3, 4) is 3x4."""
    if len(a) == len(b) == 1:
        return f": inconsistent tensor size, expected tensor {[*a]} and src {[*b]} to have the same number of elements"
    if len(a) > 2 and len(b) > 2:
        expected = f"{[math.prod(a[:-2]), a[-1]]} but got: {[math.prod(b[:-2]), b[-2]]}"
        return f": Expected size for first two dimensions of batch2 tensor to be: {expected}"
    if len(a) != 2 or len(b) > 2:
        return ""
    sizes = f"{a[0]}x{a[1]}"
    if len(b) == 1:
        return f": size mismatch, got input ({a[0]}), mat ({sizes}), vec ({b[0]})"
    return f": mat1 and mat2 shapes cannot be multiplied ({sizes} and {b[0]}x{b[1]})"


@op("matmul(Tensor a, Tensor b) -> Tensor")
class matmul(Product, linear="a b", aliases="linalg.matmul"):
    """Matrix product: (..., m, k) times (..., k, n) is (..., m, n); the leading dimensions broadcast.

    A 1-d operand is a row on the left or a column on the right, and that dimension is removed from the result.
    Both have one dtype.  ValueError if sizes do not fit, RuntimeError if dtypes differ.

    >>> import retrograd as rg
    >>> (rg.tensor([[1.0, 2.0], [3.0, 4.0]]) @ rg.tensor([1.0, 1.0])).tolist()
    [3.0, 7.0]
    """

    impl = xp.matmul

    def node_name(fn):
        return ("DotBackward0", "MvBackward0", "MmBackward0", "BmmBackward0")[min(output_aval(fn, 0).ndim, 3)]

    def shape(a, b):
        check_operands("matmul", (a, b))
        if a.shape[-1] != b.shape[-2 if b.ndim > 1 else 0]:
            raise ValueError(
                f"matmul: shapes {a.shape} and {b.shape} do not fit: the last size of the first, "
                f"{a.shape[-1]}, must be the {'last but one' if b.ndim > 1 else 'size'} of the second"
                f"{_transpose_hint(a, b)}{_pytorch_words(a.shape, b.shape)}"
            )
        rows = a.shape[-2:-1]
        columns = b.shape[-1:] if b.ndim > 1 else ()
        return Aval((*broadcast_shapes("matmul", [a.shape[:-2], b.shape[:-2]]), *rows, *columns), a.dtype)

    def vjp_a(g, b, a_aval):
        if a_aval.ndim == 1:
            return g * b if b.ndim == 1 else matmul(b, g) if b.ndim == 2 else _times_column(b, g)
        if b.ndim == 1:
            return unsqueeze(g, -1) * b
        if a_aval.ndim == 2 and b.ndim > 2:  # one product, without one matrix per element of the stack
            return rows_dot(transpose(g, -2, -1), transpose(b, -2, -1))
        return matmul(g, transpose(b, -2, -1))

    def vjp_b(g, a, b_aval):
        if b_aval.ndim == 1:
            return g * a if a.ndim == 1 else reshape(rows_dot(unsqueeze(g, -1), a), b_aval.shape)
        if a.ndim == 1:
            return unsqueeze(a, -1) * unsqueeze(g, -2)
        return rows_dot(a, g) if b_aval.ndim == 2 else matmul(transpose(a, -2, -1), g)

    def fit(g, aval):
        return sum_to(g, aval.shape)

    def dependence(i, out, a, b):
        leads = [max(x.ndim - 2, 0) for x in (a, b)]
        dims = broadcast_dims(leads[i], max(leads))
        if (a, b)[i].ndim > 1:
            dims[leads[i] + i] = out.ndim - 1 if i else max(leads)
        return dims

    def summed(a, b):
        return ({0: a.ndim - 1, 1: max(b.ndim - 2, 0)},)

    def batch(batched, n, a, b):
        ranks = a.ndim - batched[0], b.ndim - batched[1]
        if batched == (True, True) and ranks[0] == ranks[1] > 1:
            return matmul(a, b)
        if 0 in ranks:
            check_operands("matmul", batch_loop.example_avals(batched, (a, b)))
        if batched == (True, False) and (ranks[1] == 1 or ranks == (1, 2)):
            return matmul(a, b)
        if batched == (True, False) and ranks[1] == 2 and symbolic(a.shape) is not None:
            return matmul(a, b)
        if batched == (True, False) and ranks[1] == 2:  # one product of all rows
            return reshape(matmul(_as_rows(a), b), (*a.shape[:-1], b.shape[-1]))
        if batched == (False, True) and ranks in ((2, 1), (1, 1)):
            return matmul(b, transpose(a, 0, 1) if a.ndim == 2 else a)
        if batched == (False, True) and ranks[0] == 2 and b.shape[-1] <= NARROW:  # one product of all columns
            columns = transpose(b, -2, -1)
            rows = matmul(_as_rows(columns), transpose(a, 0, 1))
            return transpose(reshape(rows, (*columns.shape[:-1], a.shape[0])), -2, -1)
        return _as_matrices(a, b, batched, ranks)

    oracle = "numpy.matmul"

    def samples(r):
        yield (r(3, 4), r(4, 2)), {}
        yield (r(4), r(4)), {}
        yield (r(4), r(4, 2)), {}
        yield (r(3, 4), r(4)), {}
        yield (r(2, 3, 4), r(4, 2)), {}
        yield (r(2, 3, 4), r(2, 4, 5)), {}
        yield (r(3, 4), r(2, 4, 5)), {}
        yield (r(2, 1, 3, 4), r(5, 4, 2)), {}
        yield (r(4), r(2, 4, 3)), {}
        yield (r(2, 3, 4), r(4)), {}

    def errors(r):
        yield (r(3, 4), r(3, 4)), {}, ValueError, r"\(3, 4\) and \(3, 4\) do not fit"
        yield (r(2, 3, 4), r(3, 4, 2)), {}, ValueError, "do not broadcast"
        yield (r(3), 2.0), {}, ValueError, "at least 1 dimensions"
        yield (r(3, 4), r.ints(3, (4, 2))), {}, RuntimeError, "one dtype, got float64 and int64"


def _as_matrices(a, b, batched, ranks):
    """Multiply examples, with vectors as matrices of one row or column."""
    a = unsqueeze(a, -2) if ranks[0] == 1 else a
    b = unsqueeze(b, -1) if ranks[1] == 1 else b
    if a.ndim != b.ndim or batched != (True, True):
        a, b = align_batched((a, b), batched, (2, 2))
    out = matmul(a, b)
    added = tuple([d for d, rank in zip((-2, -1), ranks, strict=True) if rank == 1])
    return squeeze(out, added) if added else out


def _times_column(b, g):
    return squeeze(matmul(b, unsqueeze(g, -1)), -1)


@op("rows_dot(Tensor a, Tensor b) -> Tensor")
class rows_dot(Product, linear="a b"):
    """The sum over all rows of their outer products: (..., k) and (..., n) to (k, n), as one matrix product.

    This is the weight gradient of dense layers, for inputs of any number of dimensions.
    """

    method = False

    impl = xp.rows_dot

    def shape(a, b):
        check_operands("rows_dot", (a, b))
        if a.shape[:-1] != b.shape[:-1]:
            raise ValueError(f"rows_dot: shapes {a.shape} and {b.shape} must agree in all but the last size")
        return Aval((a.shape[-1], b.shape[-1]), a.dtype)

    def vjp_a(g, b):
        return linear(b, g)

    def vjp_b(g, a):
        return linear(a, transpose(g, 0, 1))

    def dependence(i, out, a, b):
        return {a.ndim - 1: i}

    def summed(a, b):
        return [{0: d, 1: d} for d in range(a.ndim - 1)]

    def batch(batched, n, a, b):
        rows_dot.definition.shape(*batch_loop.example_avals(batched, (a, b)))
        if all(x.ndim - is_batched == 1 for x, is_batched in zip((a, b), batched, strict=True)):
            return unsqueeze(a, -1) * unsqueeze(b, -2)
        a, b = (_as_rows(x, is_batched) for x, is_batched in zip((a, b), batched, strict=True))
        return matmul(transpose(a, -2, -1), b)

    def oracle(np, a, b):
        return a.reshape(-1, a.shape[-1]).T @ b.reshape(-1, b.shape[-1])

    def samples(r):
        yield (r(3, 4), r(3, 2)), {}
        yield (r(2, 3, 4), r(2, 3, 5)), {}
        yield (r(4), r(2)), {}

    def errors(r):
        yield (r(3, 4), r(2, 4)), {}, ValueError, "agree in all but the last"


def _as_rows(x, batched=False):
    """Return all rows of a tensor, or of each example, as a matrix."""
    if x.ndim - batched == 2:
        return x
    rows = x.shape[batched:-1]
    return reshape(x, (*x.shape[:batched], numel(rows) if symbolic(rows) is None else -1, x.shape[-1]))


@op("linear(Tensor x, Tensor weight, Tensor? bias=None) -> Tensor")
class linear(Product, aliases="nn.functional.linear"):
    """Affine map x @ weight.T + bias: x (..., in), weight (out, in), bias (out,) to (..., out), as one matrix product.

    Without a bias, the weight may also be a vector (in,); the result is then (...).

    >>> import retrograd as rg
    >>> rg.linear(rg.tensor([1.0, 2.0]), rg.tensor([[1.0, 1.0], [0.0, 3.0]]), rg.tensor([0.5, 0.0])).tolist()
    [3.5, 6.0]
    """

    method = False

    impl = xp.linear

    def node_name(fn):
        has_bias, ndim = fn.edges[2] is not None, output_aval(fn, 0).ndim
        if ndim == 0:
            return "DotBackward0"
        if ndim == 2:
            return "AddmmBackward0" if has_bias else "MmBackward0"
        return "ViewBackward0" if has_bias else "UnsafeViewBackward0"

    def shape(x, weight, bias=None):
        check_operands("linear", (x, weight, bias))
        fits = weight.ndim == 2 or (weight.ndim == 1 and bias is None)
        if not fits or x.shape[-1] != weight.shape[-1] or (bias is not None and bias.shape != weight.shape[:1]):
            raise ValueError(
                f"linear: x {x.shape}, weight {weight.shape}"
                + (f", bias {bias.shape}" if bias is not None else "")
                + " do not fit: expected (..., in), (out, in), (out,)"
                + _features_hint(x, weight)
                + _pytorch_words((math.prod(x.shape[:-1]), x.shape[-1]), weight.shape[::-1])
            )  # fmt: skip
        return Aval((*x.shape[:-1], *weight.shape[:-1]), x.dtype)

    def vjp_x(g, weight):
        return unsqueeze(g, -1) * weight if weight.ndim == 1 else matmul(g, weight)

    def vjp_weight(g, x):
        return rows_dot(g, x) if g.ndim == x.ndim else matmul.definition.vjp_b(g, x, Aval(x.shape[-1:], x.dtype))

    def vjp_bias(g):
        return sum_to(g, g.shape[-1:])

    def jvp(op, primals, tangents, out, params):
        x, weight, _ = primals
        t_x, t_weight, t_bias = tangents
        if t_weight is not None:  # the bias is added by one of the products
            t = linear(x, t_weight, t_bias)
            return t if t_x is None else t + linear(t_x, weight)
        return registry["expand"](t_bias, out.shape) if t_x is None else linear(t_x, weight, t_bias)

    def dependence(i, out, x, weight, bias=None):
        if i:
            return {0: out.ndim - 1} if weight.ndim == 2 else {}
        return {d: d for d in range(x.ndim - 1)}

    def summed(x, weight, bias=None):
        return ({0: x.ndim - 1, 1: weight.ndim - 1},)

    def batch(batched, n, x, weight, bias=None):
        if not batched[1] and not batched[2]:
            return linear(x, weight, bias)
        linear.definition.shape(*batch_loop.example_avals(batched, (x, weight, bias)))
        if weight.ndim - batched[1] == 1:
            return matmul.definition.batch(batched[:2], n, x, weight)
        weight = transpose(weight, -2, -1)
        out = matmul.definition.batch(batched[:2], n, x, weight) if any(batched[:2]) else matmul(x, weight)
        if bias is None:
            return out
        return registry["add"].definition.batch((any(batched[:2]), batched[2]), n, out, bias)

    def oracle(np, x, weight, bias):
        if weight.ndim == 1:
            return np.einsum("...i,i->...", x, weight)
        return np.einsum("...i,oi->...o", x, weight) + (0 if bias is None else bias)

    def samples(r):
        yield (r(3, 4), r(2, 4), r(2)), {}
        yield (r(2, 3, 4), r(5, 4), None), {}
        yield (r(4), r(2, 4), r(2)), {}
        yield (r(2, 3, 4), r(4), None), {}
        yield (r(3, 4), r(4), None), {}
        yield (r(4), r(4), None), {}

    def errors(r):
        yield (r(3, 4), r(4, 2), None), {}, ValueError, r"x \(3, 4\), weight \(4, 2\) do not fit"
        yield (r(3, 4), r(5), None), {}, ValueError, r"x \(3, 4\), weight \(5,\) do not fit"
        yield (r(3, 4), r(4), r(4)), {}, ValueError, r"weight \(4,\), bias \(4,\) do not fit"
        yield (r(3, 4), r(2, 4), r(3)), {}, ValueError, r"bias \(3,\)"
        yield (r.ints(3, (3, 4)), r(2, 4), None), {}, RuntimeError, "one dtype"


def _check_ranks(name, fits, *operands):
    if not fits:
        raise _shape_error(name, *operands)


def _ndims(*operands):
    return tuple(len(shape_of(a)) for a in operands)


@op("mm(Tensor a, Tensor b) -> Tensor")
class mm(Composite):
    """Product of two matrices, (m, k) and (k, n)."""

    def compose(a, b):
        _check_ranks("mm", _ndims(a, b) == (2, 2), a, b)
        return matmul(a, b)

    def oracle(np, a, b):
        return np.einsum("ij,jk->ik", a, b)

    def samples(r):
        yield (r(3, 4), r(4, 2)), {}

    def errors(r):
        yield (r(4), r(4, 2)), {}, ValueError, r"mm: shapes \(4,\) and \(4, 2\) do not fit"


@op("bmm(Tensor a, Tensor b) -> Tensor")
class bmm(Composite):
    """Products of the matrices of two equal stacks, (b, m, k) and (b, k, n)."""

    def compose(a, b):
        _check_ranks("bmm", _ndims(a, b) == (3, 3) and a.shape[0] == b.shape[0], a, b)
        return matmul(a, b)

    def oracle(np, a, b):
        return np.einsum("bij,bjk->bik", a, b)

    def samples(r):
        yield (r(2, 3, 4), r(2, 4, 5)), {}

    def errors(r):
        yield (r(1, 3, 4), r(2, 4, 5)), {}, ValueError, "bmm: shapes"


@op("mv(Tensor a, Tensor b) -> Tensor")
class mv(Composite):
    """Product of a matrix (m, k) and a vector (k,)."""

    def compose(a, b):
        _check_ranks("mv", _ndims(a, b) == (2, 1), a, b)
        return matmul(a, b)

    def oracle(np, a, b):
        return (a * b).sum(1)

    def samples(r):
        yield (r(3, 4), r(4)), {}

    def errors(r):
        yield (r(3, 4), r(4, 1)), {}, ValueError, "mv: shapes"


@op("dot(Tensor a, Tensor b) -> Tensor")
class dot(Composite):
    """Dot product of two vectors of equal size; nothing is conjugated."""

    def compose(a, b):
        _check_ranks("dot", _ndims(a, b) == (1, 1), a, b)
        return matmul(a, b)

    def oracle(np, a, b):
        return (a * b).sum()

    def samples(r):
        yield (r(4), r(4)), {}

    def errors(r):
        yield (r(4), r(2, 4)), {}, ValueError, "dot: shapes"


@op("outer(Tensor a, Tensor b) -> Tensor")
class outer(Composite, aliases="ger linalg.outer"):
    """Outer product of two vectors, (m,) and (n,) to (m, n)."""

    def compose(a, b):
        _check_ranks("outer", _ndims(a, b) == (1, 1), a, b)
        return mul(unsqueeze(a, 1), b)

    oracle = "numpy.outer"

    def samples(r):
        yield (r(3), r(4)), {}

    def errors(r):
        yield (r(3), r(4, 1)), {}, ValueError, "outer: shapes"


def add_scaled(x, product, beta, alpha):
    """Return beta * x + alpha * product; with beta 0, x is ignored, even where it is NaN.

    The dtype is preserved, as in PyTorch: for integers, beta and alpha are truncated; for booleans, they are booleans.
    """
    if x.dtype.kind == product.dtype.kind == "b":
        beta, alpha = bool(beta), bool(alpha)
    dtype = dtypes.result_type(x, product)
    for number in (beta, alpha):
        check_factor_fits("beta and alpha", number, dtype)
    if x.dtype.kind in "iu" and product.dtype.kind in "iu":
        beta, alpha = math.trunc(beta), math.trunc(alpha)
    product = product if alpha == 1 else alpha * product
    if beta == 0:
        return product
    return x + product if beta == 1 else beta * x + product


@op("addmm(Tensor x, Tensor mat1, Tensor mat2, *, number beta=1, number alpha=1) -> Tensor")
class addmm(Composite, in_place=True):
    """Add a matrix product: beta * x + alpha * (mat1 @ mat2), for (m, k) and (k, n); x broadcasts to (m, n)."""

    older_form = numbers_among_tensors("beta", "alpha")

    def compose(x, mat1, mat2, *, beta, alpha):
        return add_scaled(x, mm(mat1, mat2), beta, alpha)

    def oracle(np, x, a, b, beta, alpha):
        return beta * x + alpha * np.dot(a, b)

    def samples(r):
        yield (r(2), r(3, 4), r(4, 2)), {}
        yield (r(3, 2), r(3, 4), r(4, 2)), {"beta": 0.5, "alpha": 2}

    def errors(r):
        yield (r(2), r(3, 4), r(3, 4)), {}, ValueError, "do not fit"


# --------------------------------------------------------------------------------------------------- einsum

# `einsum` parses the equation and reduces it, by diagonals, sums and expanded ellipses, to what `contract` accepts:
# letters once per term, each in at least two terms.  Such equations are closed under derivatives.


def _letters(names):
    """Return the term of an equation for a list of numbers and `...`; ValueError for numbers outside of 0 to 51."""
    if not all(name is ... or (isinstance(name, int) and 0 <= name < 52) for name in names):
        raise ValueError(f"einsum: dimensions are numbers from 0 to 51 or ..., got {list(names)}; not within range")
    return "".join("..." if name is ... else chr(65 + name if name < 26 else 71 + name) for name in names)


@op("einsum(str equation, Tensor[] operands) -> Tensor")
class einsum(Composite):
    """Sum of products in Einstein's notation: letters name dimensions; those not in the result are summed over.

    equation: "ij,jk->ik"; a letter twice in a term takes the diagonal; "..." names dimensions that broadcast;
    without "->", the result has the letters that occur once, in alphabetical order. Operands that are summed over a
    letter they share must have one dtype; others are promoted.

    >>> import retrograd as rg
    >>> a = rg.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> rg.einsum("ij,ij->i", [a, a]).tolist()
    [5.0, 25.0]
    >>> rg.einsum("ii", [a]).item()
    5.0
    """

    method = False

    def older_form(name, args, kwargs):
        """Return the equation for operands that are followed by lists of numbers or `...`, which name dimensions."""
        *terms, result = args if len(args) % 2 else (*args, None)
        lists = [*terms[1::2], *([] if result is None else [result])]
        if kwargs or not lists or not all(isinstance(names, (list, tuple)) for names in lists):
            return None
        inputs = ",".join(map(_letters, terms[1::2]))
        return (inputs if result is None else f"{inputs}->{_letters(result)}", terms[::2]), {}

    def compose(*operands, equation):
        terms, out = read_equation(equation, tuple(x.shape for x in operands))
        pairs = [_take_diagonals(x, term) for x, term in zip(operands, terms, strict=True)]
        pairs = _squeeze_broadcast(pairs, out)
        pairs = [_sum_unshared(i, pairs, out) for i in range(len(pairs))]
        while len(pairs) > 1:
            pairs = _contract_cheapest(pairs, out)
        x, term = pairs[0]
        return x if term == out else permute(x, tuple(term.index(c) for c in out))

    def oracle(np, *operands, equation):
        return np.einsum(equation, *operands)

    def samples(r):
        yield (r(3, 4), r(4, 2)), {"equation": "ij,jk->ik"}
        yield (r(3, 4), r(4, 2), r(2, 3)), {"equation": "ij,jk,ki->i"}
        yield (r(2, 3, 4), r(2, 4, 5)), {"equation": "...ij,...jk"}
        yield (r(3, 3), r(3, 2)), {"equation": "ii,ij->ij"}
        yield (r(3, 4, 2),), {"equation": "abc->ca"}
        yield (r(3), r(4)), {"equation": "i,j->ij"}
        yield (r(1, 3, 4), r(2, 4)), {"equation": "b...k,bk->b..."}

    def errors(r):
        yield (r(3, 4), r(3, 2)), {"equation": "ij,jk"}, ValueError, "j is 4 in operand 0 and 3 in operand 1"
        yield (r(3),), {"equation": "i,j"}, ValueError, "2 terms for 1 operand"
        yield (r(3),), {"equation": "ij"}, ValueError, "operand 0 .* 1 dimensions"
        yield (r(3),), {"equation": "i->k"}, ValueError, "'k' of the result"
        yield (r(3),), {"equation": "i->ii"}, ValueError, "twice in the result"
        yield (r(3),), {"equation": "1"}, ValueError, "'1'"


@cache_plain
def read_equation(equation, shapes):
    """Return the terms and the result of an equation as plain letters, without ellipses; check the sizes."""
    left, arrow, out = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(shapes):
        raise ValueError(f"einsum: {equation!r} has {len(terms)} terms for {len(shapes)} operands")
    _check_letters(equation, [*terms, out])
    depths = [len(s) - len(t.replace("...", "")) for t, s in zip(terms, shapes, strict=True)]
    _check_depths(equation, terms, shapes, depths)
    deepest = max((d for t, d in zip(terms, depths, strict=True) if "..." in t), default=0)
    dots = [c for c in LETTERS if c not in equation][:deepest]
    terms = [t.replace("...", "".join(dots[deepest - d :])) for t, d in zip(terms, depths, strict=True)]
    out = out.replace("...", "".join(dots)) if arrow else "".join(dots) + _implicit_output("".join(terms), dots)
    _check_sizes(equation, terms, out, shapes)
    return tuple(terms), out


def _implicit_output(letters, dots):
    return "".join(sorted(c for c in set(letters) if letters.count(c) == 1 and c not in dots))


def _check_letters(equation, parts):
    for part in parts:
        odd = set(part.replace("...", "", 1)) - set(LETTERS)
        if odd:
            raise ValueError(
                f"einsum: {equation!r}: {min(odd)!r} is no letter; a term has letters and at most one '...'"
            )


def _check_depths(equation, terms, shapes, depths):
    for i, (term, shape, depth) in enumerate(zip(terms, shapes, depths, strict=True)):
        if depth < 0 or (depth and "..." not in term):
            raise ValueError(f"einsum: {equation!r}: operand {i} has {len(shape)} dimensions, its term is {term!r}")


def _check_sizes(equation, terms, out, shapes):
    sizes = {}
    for i, (term, shape) in enumerate(zip(terms, shapes, strict=True)):
        for letter, size in zip(term, shape, strict=True):
            first, known = sizes.get(letter, (i, size))
            if size != known and (first == i or 1 not in (size, known)):
                raise ValueError(
                    f"einsum: {equation!r}: {letter} is {known} in operand {first} and {size} in operand {i}"
                )
            sizes[letter] = (i, size) if known == 1 else (first, known)
    for letter in out:
        if letter not in sizes or out.count(letter) > 1:
            problem = "comes twice in the result" if letter in sizes else "of the result is in no term"
            raise ValueError(f"einsum: {equation!r}: {letter!r} {problem}")


def _take_diagonals(x, term):
    """Take diagonals for letters that occur twice in a term."""
    for letter in term:
        while term.count(letter) > 1:
            first = term.index(letter)
            second = term.index(letter, first + 1)
            x = diagonal(x, 0, first, second)
            term = term.replace(letter, "", 2) + letter
    return x, term


def _squeeze_broadcast(pairs, out):
    """Remove dimensions of size 1 that broadcast to a larger size in another term."""
    larger = {c for x, term in pairs for c, s in zip(term, x.shape, strict=True) if s != 1}
    slim = []
    for x, term in pairs:
        drop = [i for i, c in enumerate(term) if x.shape[i] == 1 and c in larger]
        kept_term = "".join(c for i, c in enumerate(term) if i not in drop)
        slim.append((squeeze(x, tuple(drop)) if drop else x, kept_term))
    return slim


def _sum_unshared(i, pairs, out):
    """Sum over letters that only this term has, before anything is multiplied."""
    x, term = pairs[i]
    elsewhere = out + "".join(t for k, (_, t) in enumerate(pairs) if k != i)
    unshared = tuple(k for k, c in enumerate(term) if c not in elsewhere)
    return (sum_over(x, unshared), "".join(c for c in term if c in elsewhere)) if unshared else (x, term)


def _contract_cheapest(pairs, out):
    """Multiply the two terms with the smallest product."""
    sizes = {c: s for x, term in pairs for c, s in zip(term, x.shape, strict=True)}
    choices = []
    for i, j in itertools.combinations(range(len(pairs)), 2):
        rest = [p for k, p in enumerate(pairs) if k not in (i, j)]
        needed = out + "".join(term for _, term in rest)
        product = "".join(c for c in dict.fromkeys(pairs[i][1] + pairs[j][1]) if c in needed)
        product = product if rest else out
        choices.append((numel(sizes[c] for c in product), i, j, product, rest))
    _, i, j, product, rest = min(choices, key=lambda choice: choice[:3])
    (a, left), (b, right) = pairs[i], pairs[j]
    if a.dtype != b.dtype and {*left, *right} <= {*product}:  # no sum: a product of elements, with their promotion
        a, b = (to(x, dtype=dtypes.promote(a.dtype, b.dtype)) for x in (a, b))
    return [*rest, (contract(a, b, equation=f"{left},{right}->{product}"), product)]


@op("contract(Tensor a, Tensor b, *, str equation) -> Tensor")
class contract(Internal, Product, linear="a b", node_name="ViewBackward0"):
    """An explicit einsum of two operands: each letter once per term and in at least two terms, the result included."""

    def promote(arrays):
        same_dtype("einsum", arrays)
        return arrays

    def impl(xp, a, b, *, equation):
        return xp.contract(a, b, equation)

    def shape(a, b, *, equation):
        same_dtype("einsum", (a, b))
        left, right, out = _terms(equation)
        sizes = dict(zip(left + right, a.shape + b.shape, strict=True))
        return Aval(tuple(sizes[c] for c in out), a.dtype)

    def vjp_a(g, b, equation):
        left, right, out = _terms(equation)
        return contract(g, b, equation=f"{out},{right}->{left}")

    def vjp_b(g, a, equation):
        left, right, out = _terms(equation)
        return contract(a, g, equation=f"{left},{out}->{right}")

    def dependence(i, out, a, b, *, equation):
        *terms, result = _terms(equation)
        return {d: result.index(c) for d, c in enumerate(terms[i]) if c in result}

    def summed(a, b, *, equation):
        left, right, result = _terms(equation)
        both = [c for c in left if c in right and c not in result]
        return [{0: left.index(c), 1: right.index(c)} for c in both]

    def batch(batched, n, a, b, *, equation):
        example = next(c for c in LETTERS if c not in equation)
        left, right, out = _terms(equation)
        left, right = (example * is_batched + term for is_batched, term in zip(batched, (left, right), strict=True))
        return contract(a, b, equation=f"{left},{right}->{example}{out}")

    def oracle(np, *operands, equation):
        return np.einsum(equation, *operands)

    def samples(r):
        yield (r(3, 4), r(4, 2)), {"equation": "ij,jk->ik"}
        yield (r(2, 3, 4), r(4, 3, 5, 2)), {"equation": "bij,jikb->bk"}
        yield (r(3), r(4)), {"equation": "i,j->ji"}


def _terms(equation):
    return equation.replace("->", ",").split(",")
