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


def attend(q, k, v, allowed, added, plan):
    """Return the attention's results, and the logsumexp of each query's scores; 0 for a query without keys."""
    masks = [attention.with_ndim(mask, q.ndim - 1) for mask in (allowed, added)]
    return attention.attend(q, k, v, *masks, plan.look)


def attend_backward(g, g_sums, q, k, v, allowed, added, out, sums, plan, wanted):
    """Return the `wanted` cotangents of q, k, v and `added`; for the others an empty array, (0,)."""
    allowed = attention.with_ndim(allowed, q.ndim - 1)
    raised = attention.with_ndim(added, q.ndim - 1)
    *found, d_added = attention.attend_backward(g, g_sums, q, k, v, allowed, raised, out, sums, plan.look, wanted)
    return *found, d_added.reshape(added.shape) if wanted[3] else d_added
