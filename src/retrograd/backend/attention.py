"""Attention of dense arrays: calls of the kernels, and allocation of their results."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from retrograd import kernels
from retrograd.kernels import empty
from retrograd.kernels.host_values import on_host

empty_like = kernels.caching(np.empty_like)


class AttentionLayout(NamedTuple):
    """Which keys each query attends to: int64 offsets of the components' rows, and the options of the kernels."""

    queries: object
    keys: object
    scale: float
    causal: bool


def full_attention(q, k, scale, causal):
    """Return the `AttentionLayout` for which all rows of queries attend to all rows of keys."""
    return AttentionLayout(_offsets(q.shape[-2]), _offsets(k.shape[-2]), scale, causal)


@lru_cache
def _offsets(n):
    """Return the offsets of one component of n rows: as the kernels take them, which read them, or the references."""
    return np.array([0, n]) if on_host else [0, n]


def matrices(mask, q, k):
    """Return a mask (or None) with a row for each query and a column for each key, for `full_attention`; a view."""
    if mask is None:
        return None
    front = mask.shape[:-2]
    return with_ndim(np.broadcast_to(mask, (*front, q.shape[-2], k.shape[-2])), q.ndim)


def with_ndim(x, ndim):
    """Return an array, or None, with at least `ndim` dimensions."""
    return x if x is None or x.ndim >= ndim else x.reshape((1,) * (ndim - x.ndim) + x.shape)


def head_order(q):
    """Return "K" if the heads of each position are contiguous in q, so that those of the result join without a copy.

    Otherwise return "C": the result is in row-major order, as in PyTorch.
    """
    return "K" if q.ndim == 4 and q.strides[-1] == q.itemsize and 0 not in q.strides else "C"


def attend(q, k, v, attn_mask, attn_bias, look, order="K"):
    """Return softmax(scale q k^T + attn_bias) v within components, and the logsumexp of the scores of each query.

    The other operands may have size 1 in the leading dimensions of q, and are broadcast.  For masks see
    `matrices` and `kernels.reference`.
    """
    k, v = with_ndim(k, q.ndim), with_ndim(v, q.ndim)
    out = empty_like(q, shape=(*q.shape[:-1], v.shape[-1]), order=order)
    sums = empty(q.shape[:-1], q.dtype)
    kernels.attend(q, k, v, attn_mask, attn_bias, *look, out, sums)
    return out, sums


def attend_backward(g, g_sums, q, k, v, attn_mask, attn_bias, out, sums, look, output_mask):
    """Return the cotangents that `output_mask` asks for, of q, k, v and `attn_bias`; for others an array (0,)."""
    front, shapes = q.shape[:-2], [None if x is None else x.shape for x in (q, k, v, attn_bias)]
    grads = [
        empty_like(x, shape=(*front, *x.shape[-2:])) if w else None
        for x, w in zip((q, k, v), output_mask, strict=False)
    ]
    grads.append(np.zeros((*front, *attn_bias.shape[q.ndim - 2 :]), q.dtype) if output_mask[3] else None)
    k, v = with_ndim(k, q.ndim), with_ndim(v, q.ndim)
    kernels.attend_grad(g, g_sums, out, sums, q, k, v, attn_mask, attn_bias, *look, *grads)
    found = zip(grads, shapes, strict=True)
    return tuple([np.zeros(0, q.dtype) if d is None else sum_to_shape(d, shape) for d, shape in found])


def sum_to_shape(x, shape):
    """Return x summed over the dimensions in which an operand of this shape has size 1, or no dimension."""
    lead = x.ndim - len(shape)
    dims = (*range(lead), *(lead + d for d, size in enumerate(shape) if size == 1 and x.shape[lead + d] != 1))
    return np.add.reduce(x, axis=dims, keepdims=True).reshape(shape) if dims else x
