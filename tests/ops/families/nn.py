"""Reference implementations of attention, embeddings and dropout, by their definitions."""

import numpy as np


def softmax(x):
    e = np.exp(x)
    return e / e.sum(-1, keepdims=True)


def attention(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa):
    if enable_gqa:
        key, value = (np.repeat(x, query.shape[-3] // x.shape[-3], axis=-3) for x in (key, value))
    scores = np.einsum("...le,...se->...ls", query, key) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        attn_mask = np.arange(scores.shape[-1]) <= np.arange(scores.shape[-2])[:, None]
    if attn_mask is not None:
        scores = np.where(attn_mask, scores, -1e9) if attn_mask.dtype == bool else scores + attn_mask
    return np.einsum("...ls,...sd->...ld", softmax(scores), value)


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
    "scaled_dot_product_attention": attention,
    **dict.fromkeys(DROPOUTS, sure_dropout),
}
