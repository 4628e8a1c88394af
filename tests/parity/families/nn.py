"""PyTorch's calls and known differences of dropout, embeddings and attention."""

from torch.nn.functional import embedding_bag, scaled_dot_product_attention


def _attention(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa):
    return scaled_dot_product_attention(
        query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
    )


CALLS = {"embedding_bag": embedding_bag, "scaled_dot_product_attention": _attention}  # torch's are called otherwise
NO_COUNTERPART = dict.fromkeys(["dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout"], "random")
# PyTorch's gradient by the others cannot be differentiated again.
NO_GRADIENT = {"embedding_bag": ("per_sample_weights",)}
