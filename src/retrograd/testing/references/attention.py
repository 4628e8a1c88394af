"""Reference implementations of attention, which compute the whole weight matrix."""

import numpy as np

from retrograd.testing.references.common import softmax


def scores(attn_mask, q, k, attn_bias, scale, causal):
    """Return the scores of all pairs, -inf where a query may not attend to a key."""
    out = scale * np.einsum("...le,...se->...ls", q, np.broadcast_to(k, (*q.shape[:-2], *k.shape[-2:])))
    out = out if attn_bias is None else out + attn_bias
    seen = np.ones(out.shape, bool) if attn_mask is None else np.broadcast_to(attn_mask, out.shape).copy()
    if causal:
        seen &= np.arange(out.shape[-2])[:, None] >= np.arange(out.shape[-1])
    return np.where(seen, out, -np.inf)


def attend(attn_mask, q, k, v, attn_bias=None, *, scale, causal):
    s = scores(attn_mask, q, k, attn_bias, scale, causal)
    weights = np.exp(s)
    totals = weights.sum(-1, keepdims=True)
    alone = totals == 0
    out = np.where(alone, 0, weights / np.where(alone, 1, totals)) @ v
    return out, np.where(alone, 0, np.log(np.where(alone, 1, totals)))[..., 0]


def sum_to_shape(x, shape):
    """Return the sum over the dimensions in which an operand broadcasts."""
    while x.ndim > len(shape):
        x = x.sum(0)
    for d, size in enumerate(shape):
        if size == 1:
            x = x.sum(d, keepdims=True)
    return x


def attend_backward(attn_mask, g, of_sums, out, sums, q, k, v, attn_bias=None, *, scale, causal, output_mask):
    weights = np.exp(scores(attn_mask, q, k, attn_bias, scale, causal) - sums[..., None])
    inner = np.einsum("...ld,...sd->...ls", g, np.broadcast_to(v, (*g.shape[:-2], *v.shape[-2:])))
    slopes = weights * (inner + (of_sums - (g * out).sum(-1))[..., None])
    parts = [
        scale * slopes @ k,
        scale * np.swapaxes(slopes, -1, -2) @ q,
        np.swapaxes(weights, -1, -2) @ g,
        slopes,
    ]
    operands = zip(parts, (q, k, v, attn_bias), output_mask, strict=True)
    return [sum_to_shape(part, x.shape) if w else np.zeros(0) for part, x, w in operands]


def scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa):
    if enable_gqa:
        key, value = (np.repeat(x, query.shape[-3] // x.shape[-3], axis=-3) for x in (key, value))
    scores = np.einsum("...le,...se->...ls", query, key) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        attn_mask = np.arange(scores.shape[-1]) <= np.arange(scores.shape[-2])[:, None]
    if attn_mask is not None:
        scores = np.where(attn_mask, scores, -1e9) if attn_mask.dtype == bool else scores + attn_mask
    return np.einsum("...ls,...sd->...ld", softmax(scores, -1), value)
