"""Reference implementations of attention, embeddings and dropout, by their definitions."""

import numpy as np


def softmax(x):
    e = np.exp(x)
    return e / e.sum(-1, keepdims=True)


def cosine(x1, x2, dim, eps):
    a, b = np.broadcast_arrays(x1, x2)
    return (a * b).sum(dim) / np.sqrt((a * a).sum(dim) * (b * b).sum(dim))


def attention(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa):
    if enable_gqa:
        key, value = (np.repeat(x, query.shape[-3] // x.shape[-3], axis=-3) for x in (key, value))
    scores = np.einsum("...le,...se->...ls", query, key) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        attn_mask = np.arange(scores.shape[-1]) <= np.arange(scores.shape[-2])[:, None]
    if attn_mask is not None:
        scores = np.where(attn_mask, scores, -1e9) if attn_mask.dtype == bool else scores + attn_mask
    return np.einsum("...ls,...sd->...ld", softmax(scores), value)


def summed_rows(src, ids, size):
    out = np.zeros((size, *src.shape[ids.ndim :]))
    for place in np.ndindex(ids.shape):
        out[ids[place]] += src[place]
    return out


def embedding(ids, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse):
    return weight[ids]


def embedding_bag(ids, weight, offsets, per_sample_weights, include_last_offset, mode, padding_idx, **rest):
    factors = np.ones(ids.shape) if per_sample_weights is None else per_sample_weights
    if offsets is not None:
        cuts = offsets[1:-1] if include_last_offset else offsets[1:]
        ids, factors = np.split(ids, cuts), np.split(factors, cuts)
    bags = []
    for bag, shares in zip(ids, factors, strict=True):
        kept = np.full(len(bag), True) if padding_idx is None else bag != padding_idx
        rows = (weight[bag] * shares[:, None])[kept]
        bags.append({"sum": np.sum, "mean": np.mean, "max": np.max}[mode](rows, axis=0) if len(rows) else rows.sum(0))
    return np.stack(bags)


def sure_dropout(x, p, training=None, train=None):
    """Return dropout for p = 0 or 1, where nothing is random."""
    return x * (p < 1) if training or train else x


DROPOUTS = [
    "dropout",
    "feature_dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "alpha_dropout",
    "feature_alpha_dropout",
]
ORACLES = {
    "cosine_similarity": cosine,
    "lookup": lambda weight, ids: weight[ids],
    "sum_rows": summed_rows,
    "embedding": embedding,
    "embedding_bag": embedding_bag,
    "scaled_dot_product_attention": attention,
    **dict.fromkeys(DROPOUTS, sure_dropout),
}
