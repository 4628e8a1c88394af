"""Multi-head attention as a function: projections, masks, heads, and learned additional keys and values.

A. Vaswani et al., Attention is all you need, NeurIPS 2017.
"""

import math
from functools import reduce

from retrograd.core import Tensor, registry
from retrograd.core import dtype as dtypes
from retrograd.core.errors import AssertedValueError, OperandValueError
from retrograd.foundation.suggestions import suggest_keywords
from retrograd.ops.dropout import dropout
from retrograd.ops.functions import function, overridable
from retrograd.ops.linalg import linear
from retrograd.ops.nn import attention_weights, scaled_dot_product_attention
from retrograd.ops.pad import constant_pad_nd
from retrograd.ops.pointwise import logical_and, logical_not, logical_or
from retrograd.ops.split import chunk
from retrograd.ops.view import cat, expand, flatten, reshape, squeeze, transpose, tril, unflatten, unsqueeze


def attend_heads(q, k, v, masks, causal, dropout_p, need_weights):
    """Return the attention of each head, and its weights, or None for these unless `need_weights`.

    q, k and v are (n, heads, positions, head size).  Masks are booleans, True where attention is forbidden, or values
    to be added to the scores, or None.
    """
    if q.is_nested:
        masks = [mask if mask is None else registry["nested.cut_mask"](mask, q, k) for mask in masks]
    attn_mask, attn_bias = _combine_boolean_masks(masks), _combine_additive_masks(masks)
    given = [mask for mask in (attn_mask, attn_bias) if mask is not None]
    if not need_weights and len(given) + causal < 2:
        return scaled_dot_product_attention(q, k, v, given[0] if given else None, dropout_p, causal), None
    scale = 1 / math.sqrt(q.shape[-1])
    if causal:
        past = tril(registry["ones_like"](q @ transpose(k, -2, -1), dtype="bool"))
        attn_mask = past if attn_mask is None else logical_and(attn_mask, past)
    weights = dropout(attention_weights(q, k, attn_mask, attn_bias, scale=scale), dropout_p)
    return weights @ v, weights if need_weights else None


def _combine_boolean_masks(masks):
    """Return True where no boolean mask forbids attention; None without boolean masks."""
    forbidden = [mask for mask in masks if mask is not None and mask.dtype.kind == "b"]
    return logical_not(reduce(logical_or, forbidden)) if forbidden else None


def _combine_additive_masks(masks):
    """Return the sum of the floating masks, or None."""
    numbers = [mask for mask in masks if mask is not None and mask.dtype.kind != "b"]
    return sum(numbers[1:], numbers[0]) if numbers else None


def mask_per_head(mask, heads):
    """Return an attention mask that broadcasts against (n, heads, queries, keys)."""
    check_mask_dtype("attn_mask", mask)
    return unflatten(mask, 0, (-1, heads)) if mask is not None and mask.ndim == 3 else mask


def mask_per_key(mask, batched):
    """Return a padding mask that broadcasts against (n, heads, queries, keys)."""
    if mask is None:
        return None
    check_mask_dtype("key_padding_mask", mask)
    return unsqueeze(unsqueeze(mask if batched else unsqueeze(mask, 0), 1), 1)


def check_mask_dtype(name, mask):
    """Raise TypeError for a mask of integers: added to the scores, its zeros and ones would forbid nothing."""
    if mask is not None and mask.dtype != dtypes.bool_ and not dtypes.is_floating(mask.dtype):
        raise TypeError(
            f"only bool and floating types of {name} are supported, got {mask.dtype}; {name}.bool() is True where "
            f"attention is forbidden"
        )


def append_key_value(k, v, masks, more_k, more_v):
    """Return keys and values with one more appended in each batch entry, which no mask forbids."""
    k, v = (
        cat([x, expand(extra, (*x.shape[:-2], 1, x.shape[-1]))], -2) for x, extra in ((k, more_k), (v, more_v))
    )
    return k, v, tuple([mask if mask is None else constant_pad_nd(mask, (0, 1), 0) for mask in masks])


# ------------------------------------------------------------------------------------------------ the function


@function("nn.functional.multi_head_attention_forward")
@overridable
@suggest_keywords
def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training=True,
    key_padding_mask=None,
    need_weights=True,
    attn_mask=None,
    use_separate_proj_weight=False,
    q_proj_weight=None,
    k_proj_weight=None,
    v_proj_weight=None,
    static_k=None,
    static_v=None,
    average_attn_weights=True,
    is_causal=False,
):
    """Return the output of multi-head attention and its weights, None unless `need_weights`.

    query is (L, N, E), key and value are (S, N, ...), or all come without N; E must be `embed_dim_to_check`.
    `in_proj_weight` (3 E, E), or with use_separate_proj_weight the three others, project to queries, keys and values of
    `num_heads` heads.  static_k and static_v (N * num_heads, S, E / num_heads) replace the projected keys and values.
    bias_k and bias_v, of E elements, add one key and value; add_zero_attn adds one of zeros.  key_padding_mask (N, S)
    and attn_mask (L, S) or (N * num_heads, L, S) are True where attention is forbidden, or values to be added to the
    scores.  is_causal states that attn_mask, which must be given, is causal.  Queries that may attend to no key give 0,
    where PyTorch gives NaN if weights are needed.  The weights are (N, L, S), the mean over heads, or (N, num_heads, L,
    S).

    >>> import retrograd as rg
    >>> x, w = rg.ones(3, 1, 4), rg.eye(4)
    >>> attend = rg.nn.functional.multi_head_attention_forward
    >>> out, weights = attend(x, x, x, 4, 2, rg.cat([w, w, w]), None, None, None, False, 0.0, w, None)
    >>> out.shape, weights.shape
    ((3, 1, 4), (1, 3, 3))
    """
    batched = is_batched(_NAME, query, key, value, key_padding_mask, attn_mask)
    _check_sizes(query, key, value, embed_dim_to_check, num_heads, use_separate_proj_weight)
    if is_causal and attn_mask is None:
        raise RuntimeError(f"{_NAME}: Need attn_mask if specifying the is_causal hint, which only says what it is")
    parts = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else (in_proj_weight,)
    inputs = [x if batched else unsqueeze(x, 1) for x in (query, key, value)]
    q, k, v = _project_heads(inputs, parts, in_proj_bias, num_heads)
    k, v = (_static_heads(own, static, q) for own, static in ((k, static_k), (v, static_v)))
    check_mask_shapes(_NAME, attn_mask, key_padding_mask, q, k)
    causal = is_causal and key_padding_mask is None and not need_weights
    masks = (None if causal else mask_per_head(attn_mask, num_heads), mask_per_key(key_padding_mask, batched))
    for more_k, more_v in _extra_keys_values(bias_k, bias_v, add_zero_attn, static_k, static_v, k, num_heads):
        k, v, masks = append_key_value(k, v, masks, more_k, more_v)
    out, weights = attend_heads(q, k, v, masks, causal, dropout_p if training else 0.0, need_weights)
    out = linear(transpose(flatten(transpose(out, 1, 2), 2), 0, 1), out_proj_weight, out_proj_bias)
    out = out if batched else squeeze(out, 1)
    if weights is None:
        return out, None
    weights = weights.mean(1) if average_attn_weights else weights
    return out, weights if batched else squeeze(weights, 0)


_NAME = "multi_head_attention_forward"


def is_batched(name, query, key, value, key_padding_mask, attn_mask):
    """Return whether queries have a batch dimension; AssertedValueError unless the other operands fit to that."""
    if query.ndim not in (2, 3):
        raise AssertedValueError(
            f"{name}: query should be unbatched 2D or batched 3D tensor but received {query.ndim}-D query tensor, of "
            f"shape {query.shape}"
        )
    given = f"{name}: For {'batched' if query.ndim == 3 else 'unbatched'} ({query.ndim}-D) `query`, expected"
    if not query.ndim == key.ndim == value.ndim:
        raise AssertedValueError(
            f"{given} `key` and `value` to be {query.ndim}-D but found {key.ndim}-D and {value.ndim}-D tensors "
            f"respectively, of shapes {key.shape} and {value.shape}"
        )
    if key_padding_mask is not None and key_padding_mask.ndim != query.ndim - 1:
        raise AssertedValueError(
            f"{given} `key_padding_mask` to be `None` or {query.ndim - 1}-D but found {key_padding_mask.ndim}-D tensor "
            f"instead, of shape {key_padding_mask.shape}"
        )
    if attn_mask is not None and attn_mask.ndim not in (2, 3):
        raise AssertedValueError(
            f"{given} `attn_mask` to be `None`, 2-D or 3-D but found {attn_mask.ndim}-D tensor instead, of shape "
            f"{attn_mask.shape}"
        )
    return query.ndim == 3


def _check_sizes(query, key, value, embed_dim, num_heads, separate):
    if query.shape[-1] != embed_dim:
        raise AssertedValueError(f"{_NAME}: was expecting embedding dimension of {embed_dim}, got shape {query.shape}")
    if embed_dim % num_heads:
        raise AssertedValueError(f"{_NAME}: {num_heads} heads do not divide the size {embed_dim}")
    if (key.shape[:-1] != value.shape[:-1]) if separate else (key.shape != value.shape):
        raise ValueError(f"{_NAME}: key and value do not fit: their shapes are {key.shape} and {value.shape}")


def _project_heads(inputs, weights, bias, num_heads):
    """Return queries, keys and values as (n, heads, positions, head size)."""
    if any(weight is None for weight in weights):
        raise ValueError(f"{_NAME}: expected in_proj_weight, or with use_separate_proj_weight all three others")
    weights = weights if len(weights) == 3 else chunk(weights[0], 3)
    biases = (None,) * 3 if bias is None else chunk(bias, 3)
    projected = [linear(x, w, b) for x, w, b in zip(inputs, weights, biases, strict=True)]
    return [transpose(unflatten(transpose(x, 0, 1), -1, (num_heads, -1)), 1, 2) for x in projected]


def _static_heads(own, static, q):
    """Return the given keys or values in the shape of heads, else the projected ones."""
    if static is None:
        return own
    n, heads, _, size = q.shape
    if static.ndim != 3 or static.shape[0] != n * heads or static.shape[2] != size:
        raise ValueError(f"{_NAME}: static_k and static_v must be ({n * heads}, S, {size}), got {static.shape}")
    return reshape(static, (n, heads, static.shape[1], size))


def check_mask_shapes(name, attn_mask, key_padding_mask, q, k):
    """Raise OperandValueError unless masks of 1 to 3 dimensions fit to queries and keys (n, heads, positions, size)."""
    n, heads, queries, _ = q.shape
    shape = (queries, k.shape[2])
    if attn_mask is not None and attn_mask.ndim < 4 and attn_mask.shape not in (shape, (n * heads, *shape)):
        raise OperandValueError(
            f"{name}: The shape of the {attn_mask.ndim}D attn_mask is {attn_mask.shape}, but should be {shape} or "
            f"{(n * heads, *shape)}"
        )
    if key_padding_mask is not None and key_padding_mask.shape not in ((n, shape[1]), (shape[1],)):
        raise AssertedValueError(
            f"{name}: expected `key_padding_mask` of shape {(n, shape[1])}, got {key_padding_mask.shape}"
        )


def _extra_keys_values(bias_k, bias_v, add_zero_attn, static_k, static_v, k, num_heads):
    """Yield the keys and values to append to the others."""
    if (bias_k is None) != (bias_v is None):
        raise ValueError(f"{_NAME}: expected both bias_k and bias_v, or neither")
    if bias_k is not None:
        if static_k is not None or static_v is not None:
            raise AssertedValueError(f"{_NAME}: bias cannot be added to static key or value")
        yield tuple([reshape(bias, (1, num_heads, 1, -1)) for bias in (bias_k, bias_v)])
    if add_zero_attn:
        zero = registry["zeros"]((1,), dtype=k.dtype)
        yield zero, zero
