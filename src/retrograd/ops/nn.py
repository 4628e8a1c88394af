"""Softmax, normalization to unit length, cosine similarity, and scaled dot-product attention."""

import math

from retrograd.core import Aval, Internal, op, registry
from retrograd.core import dtype as dtypes
from retrograd.foundation.older_forms import dim_by_rank
from retrograd.ops.attention import group_queries, masked_attention, supports_attention
from retrograd.ops.dropout import dropout
from retrograd.ops.family import Composite, Rowwise, broadcast_shapes, canonical_dim, cast_to, check_floating
from retrograd.ops.linalg import matmul
from retrograd.ops.norm import norm
from retrograd.ops.pointwise import (
    clamp,
    detach,
    exp,
    logical_not,
    logical_or,
    where,
)
from retrograd.ops.reduce import any as any_of
from retrograd.ops.reduce import logsumexp
from retrograd.ops.reduce import sum as sum_over
from retrograd.ops.view import expand, flatten, reshape, transpose, tril, unsqueeze

# --------------------------------------------------------------------------------------------------- softmax


def _softmax_samples(r):
    yield (r(4),), {"dim": 0}
    yield (r(2, 3, 4),), {"dim": -2}
    yield (r(3, 4) * 10,), {"dim": 1}
    yield (r(3, 4),), {"dim": 1, "dtype": "float64"}


def _softmax_errors(r):
    yield (r(3),), {"dim": 1}, IndexError, "dim 1 is out of range"
    yield (r.ints(5, (3,)),), {"dim": 0}, TypeError, "got int64; convert"


class _CastsInput(Rowwise):
    """Base of operators along `dim` that compute x in `dtype` (None: its own)."""

    @classmethod
    def fit(cls, g, aval):
        """The cotangent in the dtype of the input."""
        return cast_to(g, aval.dtype)

    @classmethod
    def shape(cls, x, *, dim, dtype):
        """The shape of the input."""
        canonical_dim(cls.__name__, dim, x.ndim)
        return Aval(x.shape, _compute_dtype(cls.__name__, x, dtype))


def _compute_dtype(name, x, dtype):
    """The floating dtype of the computation; None stands for that of x."""
    dtype = x.dtype if dtype is None else dtype
    check_floating(name, Aval((), dtype))
    if x.dtype.kind == "c" and dtype.kind != "c":
        raise TypeError(f"{name}: complex numbers would lose their imaginary parts in {dtype}")
    return dtype


@op("softmax(Tensor x, int dim, dtype? dtype=None) -> Tensor")
class softmax(_CastsInput, aliases="nn.functional.softmax special.softmax", opmath="x"):
    """The softmax exp(x) / sum(exp(x)) along dim, without overflow; computed in `dtype` (None: that of x).

    >>> import retrograd as rg
    >>> rg.softmax(rg.tensor([0.0, 0.0]), dim=0).tolist()
    [0.5, 0.5]
    """

    older_form = staticmethod(dim_by_rank)

    def impl(xp, x, *, dim, dtype):
        if dtype is None and x.dtype.char in "fd":  # the common case
            return xp.softmax(x, dim)
        return xp.softmax(xp.cast(x, _compute_dtype("softmax", x, dtype)), dim)

    def vjp_x(g, out, dim):
        return softmax_grad(g, out, dim=dim)

    def jvp_x(t, out, dim):
        return softmax_grad(cast_to(t, out.dtype), out, dim=dim)  # the Jacobian, diag(s) - s s^T, is symmetric

    def compose_divided(x, *, dim, dtype):
        dtype = _compute_dtype("softmax", x, dtype)
        return cast_to(exp(log_softmax(cast_to(x, dtypes.opmath_of(dtype)), dim)), dtype)

    def oracle(np, x, dim, dtype):
        return np.exp(x) / np.exp(x).sum(dim, keepdims=True)

    samples = _softmax_samples
    errors = _softmax_errors


@op("log_softmax(Tensor x, int dim, dtype? dtype=None) -> Tensor")
class log_softmax(_CastsInput, aliases="nn.functional.log_softmax special.log_softmax", opmath="x"):
    """The logarithm of the softmax along dim, accurate for small values; computed in `dtype` (None: that of x).

    >>> import retrograd as rg
    >>> rg.log_softmax(rg.tensor([0.0, -1000.0]), dim=0).tolist()
    [0.0, -1000.0]
    """

    older_form = staticmethod(dim_by_rank)

    def impl(xp, x, *, dim, dtype):
        if dtype is None and x.dtype.char in "fd":
            return xp.log_softmax(x, dim)
        return xp.log_softmax(xp.cast(x, _compute_dtype("log_softmax", x, dtype)), dim)

    def vjp_x(g, out, dim):
        return log_softmax_grad(g, out, dim=dim)

    def jvp_x(t, out, dim):
        t = cast_to(t, out.dtype)
        return t - sum_over(exp(out) * t, dim, keepdim=True)

    def compose_divided(x, *, dim, dtype):
        dtype = _compute_dtype("log_softmax", x, dtype)
        wide = cast_to(x, dtypes.opmath_of(dtype))
        shifted = wide - detach(logsumexp(wide, dim, keepdim=True))
        return cast_to(shifted - logsumexp(shifted, dim, keepdim=True), dtype)  # without what the shift was rounded by

    def oracle(np, x, dim, dtype):
        return x - np.log(np.exp(x).sum(dim, keepdims=True))

    samples = _softmax_samples
    errors = _softmax_errors


class _PairOperator(Internal, Rowwise):
    """Base of operators on two tensors of equal shape and dtype."""

    @classmethod
    def shape(cls, t, y, *, dim):
        """The shape of both inputs."""
        check_floating(cls.__name__, y)
        canonical_dim(cls.__name__, dim, y.ndim)
        if t.shape != y.shape or t.dtype != y.dtype:
            raise ValueError(f"{cls.__name__}: {t} and {y} differ")
        return y

    def samples(r):
        yield (r(4), r(4)), {"dim": 0}
        yield (r(2, 3, 4), r(2, 3, 4)), {"dim": -2}
        yield (r(3, 4), r(3, 4)), {"dim": 1}


@op("softmax_grad(Tensor t, Tensor y, *, int dim) -> Tensor")
class softmax_grad(_PairOperator, opmath="t y"):
    """The derivative of `softmax`, from its output y, times t: (diag(y) - y y^T) t."""

    def impl(xp, t, y, *, dim):
        check_floating("softmax_grad", y)
        return xp.softmax_grad(t, y, dim)

    def vjp_t(g, y, dim):
        return softmax_grad(g, y, dim=dim)

    def vjp_y(g, t, y, dim):
        return g * (t - sum_over(t * y, dim, keepdim=True)) - t * sum_over(g * y, dim, keepdim=True)

    def jvp_t(t, y, dim):
        return softmax_grad(t, y, dim=dim)

    def jvp_y(t_y, t, y, dim):
        return t_y * (t - sum_over(t * y, dim, keepdim=True)) - y * sum_over(t * t_y, dim, keepdim=True)

    def oracle(np, t, y, dim):
        return y * t - y * (y * t).sum(dim, keepdims=True)


@op("log_softmax_grad(Tensor t, Tensor y, *, int dim) -> Tensor")
class log_softmax_grad(_PairOperator, opmath="t y"):
    """The transposed derivative of `log_softmax`, from its output y, times t: t - exp(y) sum(t)."""

    def impl(xp, t, y, *, dim):
        check_floating("log_softmax_grad", y)
        return xp.log_softmax_grad(t, y, dim)

    def vjp_t(g, y, dim):
        return g - sum_over(g * exp(y), dim, keepdim=True)

    def vjp_y(g, t, y, dim):
        return -g * exp(y) * sum_over(t, dim, keepdim=True)

    def jvp_t(t, y, dim):
        return log_softmax_grad(t, y, dim=dim)

    def jvp_y(t_y, t, y, dim):
        return -t_y * exp(y) * sum_over(t, dim, keepdim=True)

    def oracle(np, t, y, dim):
        return t - np.exp(y) * t.sum(dim, keepdims=True)


# ------------------------------------------------------------------------------------------ of length 1


@op("normalize(Tensor x, number p=2, int[] dim=1, float eps=1e-12) -> Tensor")
class normalize(Composite, aliases="nn.functional.normalize", opmath="x"):
    """x divided by its p-norm over dim, or by eps where the norm is smaller.

    >>> import retrograd as rg
    >>> rg.normalize(rg.tensor([3.0, 4.0]), dim=0).tolist()
    [0.6000000238418579, 0.800000011920929]
    """

    method = False

    def compose(x, *, p, dim, eps):
        return x / clamp(norm(x, p, dim, keepdim=True), min=eps)

    def oracle(np, x, p, dim, eps):
        return x / (np.abs(x) ** p).sum(axis=dim, keepdims=True) ** (1 / p)

    def samples(r):
        yield (r(3, 4),), {}
        yield (r(3, 4),), {"p": 1, "dim": 0}
        yield (r(2, 3, 2),), {"dim": (0, -1)}


@op("cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor")
class cosine_similarity(Composite, aliases="nn.functional.cosine_similarity", opmath="x1 x2"):
    """The cosine similarity sum(x1 * x2) / (norm(x1) * norm(x2)) along dim, each norm at least eps; x1, x2 broadcast.

    >>> import retrograd as rg
    >>> rg.cosine_similarity(rg.tensor([1.0, 0.0]), rg.tensor([0.0, 2.0]), dim=0).item()
    0.0
    """

    method = False

    def compose(x1, x2, *, dim, eps):
        if x1.shape != x2.shape:  # a broadcast element counts several times
            shape = broadcast_shapes("cosine_similarity", [x1.shape, x2.shape])
            x1, x2 = expand(x1, shape), expand(x2, shape)
        dtype = dtypes.result_type(x1, x2)
        x1, x2 = (x / clamp(norm(x, 2, dim, keepdim=True), min=eps) for x in (cast_to(x1, dtype), cast_to(x2, dtype)))
        return sum_over(x1 * x2, dim)

    def oracle(np, x1, x2, dim, eps):
        a, b = np.broadcast_arrays(x1, x2)
        return (a * b).sum(dim) / np.sqrt((a * a).sum(dim) * (b * b).sum(dim))

    def samples(r):
        yield (r(3, 4), r(3, 4)), {}
        yield (r(3, 4), r(4)), {"dim": -1}
        yield (r(3, 1), r(4)), {"dim": 1}


# --------------------------------------------------------------------------------------------- attention


@op(
    "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, "
    "float dropout_p=0.0, bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor"
)
class scaled_dot_product_attention(
    Composite,
    method=False,
    aliases="nn.functional.scaled_dot_product_attention",
    opmath="query key value attn_mask",
):
    """Attention, softmax(scale * query key^T + mask) value: (..., l, e), (..., s, e), (..., s, d) to (..., l, d).

    attn_mask: booleans, True where a query may attend, or values that are added; broadcasts to (..., l, s).  is_causal:
    query i attends to keys 0 to i.  scale: 1 / sqrt(e) if None.  Queries that may attend to no key give 0.  enable_gqa:
    the heads, dimension -3, of key and value are fewer, and each serves equally many heads of the query.  A. Vaswani et
    al., Attention is all you need, arXiv 1706.03762.

    >>> import retrograd as rg
    >>> q = k = v = rg.tensor([[1.0], [3.0]])
    >>> rg.scaled_dot_product_attention(q, k, v, is_causal=True)[0].item()
    1.0
    """

    def compose(query, key, value, attn_mask, *, dropout_p, is_causal, scale, enable_gqa):
        if is_causal and attn_mask is not None:
            raise RuntimeError("scaled_dot_product_attention: give attn_mask or is_causal, not both")
        if attn_mask is not None and attn_mask.dtype != dtypes.bool_ and not dtypes.is_floating(attn_mask.dtype):
            raise RuntimeError(
                f"scaled_dot_product_attention: Expected attn_mask dtype to be bool or float or to match query dtype, "
                f"but got attn_mask.dtype: {attn_mask.dtype} and query.dtype: {query.dtype}; attn_mask.bool() is True "
                f"where a query may attend"
            )
        _check_attention(query, key, value)
        scale = 1 / math.sqrt(max(query.shape[-1], 1)) if scale is None else scale
        if not dropout_p and supports_attention(query, key, value, attn_mask):
            return _fused_attention(query, key, value, attn_mask, scale, is_causal, enable_gqa)
        if enable_gqa:
            key, value = _repeat_heads(query, key), _repeat_heads(query, value)
        if is_causal:
            attn_mask = tril(registry["ones"]((query.shape[-2], key.shape[-2]), dtype=dtypes.bool_))
        attn_bias = None
        if attn_mask is not None and attn_mask.dtype.kind != "b":
            attn_mask, attn_bias = None, attn_mask
        return matmul(dropout(attention_weights(query, key, attn_mask, attn_bias, scale=scale), dropout_p), value)

    oracle = "retrograd.testing.references.attention.scaled_dot_product_attention"

    def samples(r):
        yield (r(3, 4), r(5, 4), r(5, 2), None), {}
        yield (r(2, 3, 4), r(2, 3, 4), r(2, 3, 2), None), {"is_causal": True, "scale": 0.7}
        yield (r(2, 3, 4), r(2, 5, 4), r(2, 5, 2), r.booleans(3, 5)), {}
        yield (r(3, 4), r(5, 4), r(5, 2), r(3, 5)), {}
        yield (r(4, 3, 2), r(2, 3, 2), r(2, 3, 2), None), {"enable_gqa": True}

    def errors(r):
        yield (r(3, 4), r(5, 3), r(5, 2), None), {}, ValueError, "query .* key .* value .* do not fit"
        yield (r(3, 4), r(3, 4), r(3, 2), r(3, 3)), {"is_causal": True}, RuntimeError, "not both"
        yield (r(3, 4), r(3, 4), r(3, 2), r.ints(2, (3, 3))), {}, RuntimeError, r"attn_mask.bool\(\)"
        yield (r(3, 2, 1), r(2, 2, 1), r(2, 2, 1), None), {"enable_gqa": True}, ValueError, "3 heads .* 2 heads"


def _check_attention(query, key, value):
    lacks_dims = min(query.ndim, key.ndim, value.ndim) < 2
    if lacks_dims or query.shape[-1] != key.shape[-1] or key.shape[-2] != value.shape[-2]:
        raise ValueError(
            f"scaled_dot_product_attention: query {query.shape}, key {key.shape} and value {value.shape} do not fit: "
            f"expected (..., l, e), (..., s, e) and (..., s, d)"
        )


def _fused_attention(query, key, value, mask, scale, causal, by_groups):
    """The attention by the operator that does not compute weights; `by_groups`: query heads share keys and values."""
    if by_groups and (_query_heads_per_head(query, key), _query_heads_per_head(query, value)) != (1, 1):
        if query.ndim == key.ndim == value.ndim and key.shape[-3] == value.shape[-3]:
            return flatten(masked_attention(*group_queries(query, key, value, mask), scale, causal), -4, -3)  # type: ignore[call-arg]
        key, value = _repeat_heads(query, key), _repeat_heads(query, value)
    return masked_attention(query, key, value, mask, scale, causal)


def _query_heads_per_head(query, x):
    """The number of query heads per head of x; ValueError if it is not an integer."""
    query_heads, heads = (t.shape[-3] if t.ndim > 2 else 1 for t in (query, x))
    if heads == 0 or query_heads % heads:
        raise ValueError(f"scaled_dot_product_attention: {query_heads} heads of the query can't share {heads} heads")
    return query_heads // heads


def _repeat_heads(query, x):
    """x with each head repeated, to have one for every head of the query."""
    times = _query_heads_per_head(query, x)
    if times == 1:
        return x
    lead, rest = x.shape[:-2], x.shape[-2:]
    return reshape(expand(unsqueeze(x, -3), (*lead, times, *rest)), (*lead[:-1], query.shape[-3], *rest))


def attention_weights(q, k, attn_mask=None, attn_bias=None, *, scale):
    """softmax(scale * q k^T + attn_bias) over the keys where `attn_mask` is True; 0 for queries without any."""
    scores = matmul(q * scale, transpose(k, -2, -1))
    scores = scores if attn_bias is None else scores + attn_bias
    if attn_mask is None:
        return softmax(scores, -1)
    nowhere = logical_not(any_of(attn_mask, -1, keepdim=True))
    weights = softmax(where(logical_or(attn_mask, nowhere), scores, -math.inf), -1)
    return where(nowhere, 0, weights)
