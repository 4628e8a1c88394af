"""Operators that neural networks are made of: softmax, normalisation, dropout, embedding, attention."""

import math

from retrograd.core import Aval, Definition, op, registry, xp
from retrograd.core import dtype as dtypes
from retrograd.ops.extremes import amax, amin
from retrograd.ops.family import Composite, Rowwise, canonical_dim, check_floating, check_real
from retrograd.ops.linalg import matmul
from retrograd.ops.pointwise import (
    abs,
    clamp,
    conj,
    detach,
    exp,
    ge,
    isinf,
    logical_not,
    logical_or,
    ne,
    pow,
    real_part,
    rsqrt,
    square,
    to,
    where,
)
from retrograd.ops.reduce import any as any_of
from retrograd.ops.reduce import mean, sqrt_or_zero, variance
from retrograd.ops.reduce import sum as sum_over
from retrograd.ops.view import reshape, transpose, tril

# --------------------------------------------------------------------------------------------------- softmax


def _softmax_samples(r):
    yield (r(4),), {"dim": 0}
    yield (r(2, 3, 4),), {"dim": -2}
    yield (r(3, 4) * 10,), {"dim": 1}


def _softmax_errors(r):
    yield (r(3),), {"dim": 1}, IndexError, "dim 1 is out of range"
    yield (r.ints(5, (3,)),), {"dim": 0}, TypeError, "got int64; convert"


@op("softmax(Tensor x, int dim) -> Tensor")
class softmax(Rowwise, aliases="nn.functional.softmax"):
    """exp(x) / sum(exp(x)) along dim, shifted so that it cannot overflow.

    >>> import retrograd as rg
    >>> rg.softmax(rg.tensor([0.0, 0.0]), dim=0).tolist()
    [0.5, 0.5]
    """

    def impl(xp, x, *, dim):
        check_floating("softmax", x)
        return xp.softmax(x, dim)

    def shape(x, *, dim):
        check_floating("softmax", x)
        canonical_dim("softmax", dim, x.ndim)
        return x

    def vjp_x(g, out, dim):
        return out * (g - sum_over(g * out, dim, keepdim=True))

    def jvp_x(t, out, dim):
        return out * (t - sum_over(t * out, dim, keepdim=True))  # the Jacobian, diag(s) - s s^T, is symmetric

    samples = _softmax_samples
    errors = _softmax_errors


@op("log_softmax(Tensor x, int dim) -> Tensor")
class log_softmax(Rowwise, aliases="nn.functional.log_softmax"):
    """log(softmax(x)) along dim, exact where the softmax is small.

    >>> import retrograd as rg
    >>> rg.log_softmax(rg.tensor([0.0, -1000.0]), dim=0).tolist()
    [0.0, -1000.0]
    """

    def impl(xp, x, *, dim):
        check_floating("log_softmax", x)
        return xp.log_softmax(x, dim)

    def shape(x, *, dim):
        check_floating("log_softmax", x)
        canonical_dim("log_softmax", dim, x.ndim)
        return x

    def vjp_x(g, out, dim):
        return g - exp(out) * sum_over(g, dim, keepdim=True)

    def jvp_x(t, out, dim):
        return t - sum_over(exp(out) * t, dim, keepdim=True)

    samples = _softmax_samples
    errors = _softmax_errors


# --------------------------------------------------------------------------------------------- normalisation


@op("standardize(Tensor x, int ndim=1, *, float eps=1e-05) -> Tensor")
class standardize(Definition):
    """(x - mean) / sqrt(variance + eps) over the last `ndim` dimensions; the variance is that over n.

    With r = 1 / sqrt(variance + eps) and y the result, the Jacobian is r (I - 1/n - y y^T / n): symmetric.
    """

    method = False

    def impl(xp, x, *, ndim, eps):
        _check_trailing(x, ndim)
        return xp.standardize(x, ndim, eps)

    def shape(x, *, ndim, eps):
        _check_trailing(x, ndim)
        return x

    def vjp_x(g, x, out, ndim, eps):
        return _standardize_slope(g, x, out, ndim, eps)

    jvp_x = vjp_x  # the Jacobian is symmetric

    def samples(r):
        yield (r(3, 4),), {}
        yield (r(2, 3, 4),), {"ndim": 2, "eps": 0.1}

    def errors(r):
        yield (r(3),), {"ndim": 2}, ValueError, "ndim must be from 1 to 1"


def _check_trailing(x, ndim):
    check_real("standardize", x)
    if not 0 < ndim <= x.ndim:
        raise ValueError(
            f"standardize: ndim must be from 1 to {x.ndim} for a tensor of shape {x.shape}, got {ndim}"
        )


def _standardize_slope(g, x, out, ndim, eps):
    dims = tuple(range(-ndim, 0))
    scale = rsqrt(variance(x, dims, keepdim=True, correction=0) + eps)
    return (g - mean(g, dims, keepdim=True) - out * mean(g * out, dims, keepdim=True)) * scale


@op(
    "layer_norm(Tensor x, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05) "
    "-> Tensor"
)
class layer_norm(Composite, aliases="nn.functional.layer_norm"):
    """x with mean 0 and variance 1 over its last dimensions, `normalized_shape`; times weight, plus bias.

    weight and bias have the shape `normalized_shape`.  J. L. Ba, J. R. Kiros and G. E. Hinton, Layer
    normalization, arXiv 1607.06450.

    >>> import retrograd as rg
    >>> rg.layer_norm(rg.tensor([[-1.0, 1.0]]), [2], eps=0.0).tolist()
    [[-1.0, 1.0]]
    """

    method = False

    def compose(x, weight, bias, *, normalized_shape, eps):
        ndim = len(normalized_shape)
        if ndim == 0 or x.shape[-ndim:] != normalized_shape:
            raise ValueError(
                f"layer_norm: normalized_shape {normalized_shape} is not how shape {x.shape} ends"
            )
        for name, given in (("weight", weight), ("bias", bias)):
            if given is not None and given.shape != normalized_shape:
                raise ValueError(
                    f"layer_norm: {name} has shape {given.shape}, not normalized_shape {normalized_shape}"
                )
        out = standardize(x, ndim, eps=eps)
        out = out if weight is None else out * weight
        return out if bias is None else out + bias

    def samples(r):
        yield (r(3, 4), r(4), r(4)), {"normalized_shape": (4,)}
        yield (r(2, 3, 4), None, None), {"normalized_shape": (3, 4)}

    def errors(r):
        yield (
            (r(3, 4), None, None),
            {"normalized_shape": (3,)},
            ValueError,
            r"\(3,\) is not how shape \(3, 4\) ends",
        )
        yield (r(3, 4), r(3), None), {"normalized_shape": (4,)}, ValueError, r"weight has shape \(3,\)"


@op("norm(Tensor x, any p=2, int[]? dim=None, bool keepdim=False) -> Tensor")
class norm(Composite):
    """The p-norm of vectors, sum(abs(x)^p)^(1/p) over `dim` (None: all elements as one vector).

    p: a number, infinity or its negative for the largest or smallest absolute value, 0 for the number of
    elements that are not 0, or "fro" for 2.  The derivative at 0 is taken as 0.

    >>> import retrograd as rg
    >>> rg.norm(rg.tensor([3.0, 4.0])).item()
    5.0
    """

    def compose(x, *, p, dim, keepdim):
        check_floating("norm", x)
        p = _order(p)
        if p == 2:
            return sqrt_or_zero(sum_over(_squared_size(x), dim, keepdim))
        if p == 0:
            return sum_over(ne(x, 0), dim, keepdim, dtype=dtypes.real_of(x.dtype))
        if math.isinf(p):
            return (amax if p > 0 else amin)(abs(x), dim, keepdim)
        return sum_over(abs(x), dim, keepdim) if p == 1 else _general_norm(abs(x), p, dim, keepdim)

    def samples(r):
        yield (r(3, 4),), {}
        yield (r(3, 4),), {"p": 1, "dim": 1}
        yield (r(3, 4),), {"p": 3.5, "dim": 0, "keepdim": True}
        yield (r(3, 4),), {"p": math.inf, "dim": 1}

    def errors(r):
        yield (r(3),), {"p": "nuc"}, ValueError, "p must be a number or 'fro'"


def _squared_size(x):
    """|x|^2, also of complex numbers with its second derivative at 0, which abs has not."""
    return square(x) if x.dtype.kind == "f" else real_part(x * conj(x))


def _order(p):
    if p == "fro":
        return 2
    if isinstance(p, (int, float)):
        return p
    raise ValueError(f"norm: p must be a number or 'fro', got {p!r}")


def _general_norm(size, p, dim, keepdim):
    zero = size == 0
    total = sum_over(where(zero, 0 if p > 0 else math.inf, pow(where(zero, 1, size), p)), dim, keepdim)
    none = logical_or(total == 0, isinf(total))
    return where(none, 0, pow(where(none, 1, total), 1 / p))


@op("normalize(Tensor x, number p=2, int dim=1, float eps=1e-12) -> Tensor")
class normalize(Composite, aliases="nn.functional.normalize"):
    """x divided by its p-norm along dim, or by eps where the norm is less.

    >>> import retrograd as rg
    >>> rg.normalize(rg.tensor([3.0, 4.0]), dim=0).tolist()
    [0.6000000238418579, 0.800000011920929]
    """

    method = False

    def compose(x, *, p, dim, eps):
        return x / clamp(norm(x, p, dim, keepdim=True), min=eps)

    def samples(r):
        yield (r(3, 4),), {}
        yield (r(3, 4),), {"p": 1, "dim": 0}


@op("cosine_similarity(Tensor a, Tensor b, int dim=1, float eps=1e-08) -> Tensor")
class cosine_similarity(Composite, aliases="nn.functional.cosine_similarity"):
    """sum(a * b) / (norm(a) * norm(b)) along dim, each norm at least eps; a and b broadcast.

    >>> import retrograd as rg
    >>> rg.cosine_similarity(rg.tensor([1.0, 0.0]), rg.tensor([0.0, 2.0]), dim=0).item()
    0.0
    """

    method = False

    def compose(a, b, *, dim, eps):
        a, b = (x / clamp(norm(x, 2, dim, keepdim=True), min=eps) for x in (a, b))
        return sum_over(a * b, dim)

    def samples(r):
        yield (r(3, 4), r(3, 4)), {}
        yield (r(3, 4), r(4)), {"dim": -1}


# ----------------------------------------------------------------------------------------------- dropout


@op("dropout(Tensor x, float p=0.5, bool training=True) -> Tensor")
class dropout(Composite, aliases="nn.functional.dropout"):
    """Each element 0 with probability p, else divided by 1 - p; x itself when not training.

    N. Srivastava et al., Dropout, JMLR 15 (2014).

    >>> import retrograd as rg
    >>> rg.dropout(rg.tensor([1.0, 2.0]), 0.5, training=False).tolist()
    [1.0, 2.0]
    """

    method = False

    def compose(x, *, p, training):
        if not 0 <= p <= 1:
            raise ValueError(f"dropout: p must be from 0 to 1, got {p}")
        if not training or p == 0:
            return x
        if p == 1:
            return x * 0
        return x * (to(ge(registry["rand"](x.shape), p), x.dtype) / (1 - p))

    def samples(r):
        yield (r(3, 4),), {"training": False}
        yield (r(3, 4),), {"p": 1.0}

    def errors(r):
        yield (r(3),), {"p": 1.5}, ValueError, "p must be from 0 to 1, got 1.5"


# --------------------------------------------------------------------------------------------- embedding


@op("lookup(Tensor weight, Tensor ids) -> Tensor")
class lookup(Definition, linear="weight"):
    """The rows of weight (rows, ...) that the integers `ids` name: (*ids.shape, ...)."""

    public = False
    method = False

    impl = xp.lookup

    def shape(weight, ids):
        if ids.dtype.kind not in "iu":
            raise TypeError(f"embedding: ids must be integers, got {ids.dtype}; convert with .to('int64')")
        if weight.ndim == 0:
            raise ValueError("embedding: the weight has no rows: it is 0-d")
        return Aval((*ids.shape, *weight.shape[1:]), weight.dtype)

    def vjp_weight(g, ids, weight_aval):
        return sum_rows(g, ids, weight_aval.shape[0])

    def samples(r):
        yield (r(5, 3), r.ints(5, (4,))), {}
        yield (r(5, 3), r.ints(5, (2, 2))), {}
        yield (r(5), r.ints(5, ())), {}

    def errors(r):
        yield (r(5, 3), r(2)), {}, TypeError, "ids must be integers, got float64"
        yield (r(5, 3), r.ints(1, (2,)) + 5), {}, IndexError, "5 to 5 are named, but there are 0 to 4"


@op("sum_rows(Tensor src, Tensor ids, int size) -> Tensor")
class sum_rows(Definition, linear="src"):
    """`size` rows: row i is the sum of the rows of src whose id is i.  The transpose of `lookup`."""

    public = False
    method = False

    def impl(xp, src, ids, *, size):
        return xp.sum_rows(src, ids, size)

    def shape(src, ids, *, size):
        if src.shape[: ids.ndim] != ids.shape:
            raise ValueError(f"sum_rows: shapes {src.shape} and {ids.shape} do not agree in front")
        return Aval((size, *src.shape[ids.ndim :]), src.dtype)

    def vjp_src(g, ids):
        return lookup(g, ids)

    def samples(r):
        yield (r(4, 3), r.ints(5, (4,))), {"size": 5}
        yield (r(2, 2, 3), r.ints(3, (2, 2))), {"size": 3}
        yield (r(4), r.ints(2, (4,))), {"size": 2}


@op("embedding(Tensor ids, Tensor weight, int? padding_idx=None) -> Tensor")
class embedding(Composite, aliases="nn.functional.embedding"):
    """The rows of weight (rows, size) that the integers `ids` name: (*ids.shape, size).

    padding_idx: a row that is a constant: no gradient flows to it.  IndexError for ids that name no row.

    >>> import retrograd as rg
    >>> rg.embedding(rg.tensor([2, 0]), rg.tensor([[0.0], [1.0], [2.0]])).tolist()
    [[2.0], [0.0]]
    """

    method = False

    def compose(ids, weight, *, padding_idx):
        out = lookup(weight, ids)
        if padding_idx is None:
            return out
        padding = canonical_dim("embedding", padding_idx, weight.shape[0])
        flag = reshape(ids == padding, (*ids.shape, *(1,) * (out.ndim - ids.ndim)))
        return where(flag, detach(out), out)

    def samples(r):
        yield (r.ints(5, (2, 3)), r(5, 4)), {}
        yield (r.ints(3, (6,)), r(3, 4)), {"padding_idx": 1}

    def errors(r):
        yield (r.ints(5, (2,)), r(5, 4)), {"padding_idx": 5}, IndexError, "embedding"


# --------------------------------------------------------------------------------------------- attention


@op(
    "scaled_dot_product_attention(Tensor q, Tensor k, Tensor v, Tensor? attn_mask=None, float dropout_p=0.0, "
    "bool is_causal=False, *, float? scale=None) -> Tensor"
)
class scaled_dot_product_attention(Composite, aliases="nn.functional.scaled_dot_product_attention"):
    """softmax(scale * q k^T + mask) v: q (..., l, e), k (..., s, e), v (..., s, d) to (..., l, d).

    attn_mask: booleans, true where a query may look, or numbers that are added; broadcasts to (..., l, s).
    is_causal: query i sees keys 0 to i.  scale: 1 / sqrt(e) if None.  Queries that may look nowhere get 0.
    A. Vaswani et al., Attention is all you need, arXiv 1706.03762.

    >>> import retrograd as rg
    >>> q = k = v = rg.tensor([[1.0], [3.0]])
    >>> rg.scaled_dot_product_attention(q, k, v, is_causal=True)[0].item()
    1.0
    """

    method = False

    def compose(q, k, v, attn_mask, *, dropout_p, is_causal, scale):
        if is_causal and attn_mask is not None:
            raise RuntimeError("scaled_dot_product_attention: give attn_mask or is_causal, not both")
        _check_attention(q, k, v)
        scale = 1 / math.sqrt(max(q.shape[-1], 1)) if scale is None else scale
        if is_causal:
            attn_mask = tril(registry["ones"]((q.shape[-2], k.shape[-2]), dtype=dtypes.bool_))
        allowed, added = (attn_mask, None) if attn_mask is None or attn_mask.dtype.kind == "b" else (None, attn_mask)
        return matmul(dropout(attention_weights(q, k, allowed, added, scale=scale), dropout_p), v)

    def samples(r):
        yield (r(3, 4), r(5, 4), r(5, 2), None), {}
        yield (r(2, 3, 4), r(2, 3, 4), r(2, 3, 2), None), {"is_causal": True, "scale": 0.7}
        yield (r(2, 3, 4), r(2, 5, 4), r(2, 5, 2), r.booleans(3, 5)), {}
        yield (r(3, 4), r(5, 4), r(5, 2), r(3, 5)), {}

    def errors(r):
        yield (r(3, 4), r(5, 3), r(5, 2), None), {}, ValueError, "q .* k .* v .* do not fit"
        yield (r(3, 4), r(3, 4), r(3, 2), r(3, 3)), {"is_causal": True}, RuntimeError, "not both"


def _check_attention(q, k, v):
    if q.ndim < 2 or k.ndim < 2 or v.ndim < 2 or q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:
        raise ValueError(
            f"scaled_dot_product_attention: q {q.shape}, k {k.shape} and v {v.shape} do not fit: "
            f"expected (..., l, e), (..., s, e) and (..., s, d)"
        )


def attention_weights(q, k, allowed=None, added=None, *, scale):
    """softmax(scale * q k^T + added) among the keys that are `allowed`, booleans; 0 for queries that have none."""
    scores = matmul(q * scale, transpose(k, -2, -1))
    scores = scores if added is None else scores + added
    if allowed is None:
        return softmax(scores, -1)
    nowhere = logical_not(any_of(allowed, -1, keepdim=True))
    weights = softmax(where(logical_or(allowed, nowhere), scores, -math.inf), -1)
    return where(nowhere, 0, weights)
