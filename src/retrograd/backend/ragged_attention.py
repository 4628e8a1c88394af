"""Attention within the components of ragged arrays."""

from typing import NamedTuple

import numpy as np

from retrograd.backend import attention


class Plan(NamedTuple):
    """The rows of the components in the buffers of queries and of keys, and how the queries look at these."""

    queries: object
    keys: object
    scale: float
    causal: bool

    @property
    def look(self):
        """The same for the kernels."""
        return attention.Look(self.queries.offsets, self.keys.offsets, self.scale, self.causal)


def may_look(plan):
    """Return for each (query, key) pair of one component, flattened, whether the key comes no later."""
    sizes = zip(plan.queries.lengths.tolist(), plan.keys.lengths.tolist(), strict=True)
    return np.concatenate([np.tri(*size, dtype=bool).ravel() for size in sizes] or [np.zeros(0, bool)])


def attend(q, k, v, allowed, added, plan):
    """The attention's results, and for each query the logarithm of the sum of its exponentials; 0 where it has none."""
    masks = [attention.raised(mask, q.ndim - 1) for mask in (allowed, added)]
    return attention.attend(q, k, v, *masks, plan.look)


def attend_backward(g, of_sums, q, k, v, allowed, added, out, sums, plan, wanted):
    """The cotangents of q, k, v and what is added to the scores, those that are `wanted`; of others nothing, (0,)."""
    allowed = attention.raised(allowed, q.ndim - 1)
    raised = attention.raised(added, q.ndim - 1)
    *found, d_added = attention.attend_backward(g, of_sums, q, k, v, allowed, raised, out, sums, plan.look, wanted)
    return *found, d_added.reshape(added.shape) if wanted[3] else d_added
