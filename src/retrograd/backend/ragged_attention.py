"""Attention within the components of ragged arrays."""

from typing import NamedTuple

import numpy as np

from retrograd.backend import attention


class Plan(NamedTuple):
    """The structures of the buffers of queries and of keys, the scale, and whether attention is causal."""

    queries: object
    keys: object
    scale: float
    causal: bool

    @property
    def look(self):
        """The same as the kernels' argument."""
        return attention.AttentionLayout(self.queries.offsets, self.keys.offsets, self.scale, self.causal)


def may_look(plan):
    """Return for each (query, key) pair of one component, flattened, whether the key comes no later."""
    sizes = zip(plan.queries.lengths.tolist(), plan.keys.lengths.tolist(), strict=True)
    return np.concatenate([np.tri(*size, dtype=bool).ravel() for size in sizes] or [np.zeros(0, bool)])


def attend(q, k, v, attn_mask, attn_bias, plan):
    """Return the attention's results, and the logsumexp of each query's scores; 0 for a query without keys."""
    masks = [attention.with_ndim(mask, q.ndim - 1) for mask in (attn_mask, attn_bias)]
    return attention.attend(q, k, v, *masks, plan.look)


def attend_backward(g, g_sums, q, k, v, attn_mask, attn_bias, out, sums, plan, output_mask):
    """Return the cotangents that `output_mask` asks for, of q, k, v and `attn_bias`; for others an array (0,)."""
    attn_mask = attention.with_ndim(attn_mask, q.ndim - 1)
    raised = attention.with_ndim(attn_bias, q.ndim - 1)
    *found, d_bias = attention.attend_backward(g, g_sums, q, k, v, attn_mask, raised, out, sums, plan.look, output_mask)
    return *found, d_bias.reshape(attn_bias.shape) if output_mask[3] else d_bias
