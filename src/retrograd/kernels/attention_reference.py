"""The reference implementation of attention, by blocks of queries, so that not all scores are stored at once.

The backward pass recomputes the weights from the logsumexp of the scores: T. Dao et al., FlashAttention, arXiv
2205.14135; M. N. Rabe and C. Staats, Self-attention does not need O(n^2) memory, arXiv 2112.05682.

Rows of queries (..., rows, e) belong to components, whose offsets are `queries`; rows of keys and of values have the
offsets `keys`.  A mask is (..., queries, keys) for a single component; otherwise, or if it has one dimension less, it
is (..., pairs) with the concatenated matrices of all components.  Leading dimensions are those of the queries; other
operands may have size 1 there.
"""

import math
from itertools import pairwise

import numpy as np

from retrograd.kernels.host_values import on_host
from retrograd.kernels.overlap import separate

# Scores in memory at a time; if a component has more keys, those of one query. A device needs more of them to be busy.
BLOCK = 1 << (18 if on_host else 26)
CAUSAL_QUERIES = 64 if on_host else 1024  # in a block, which reads only keys up to its last query


@separate(2)
@np.errstate(invalid="ignore")  # as in C++, no product warns
def attend(q, k, v, attn_mask, attn_bias, queries, keys, scale, causal, out, sums):
    """Write softmax(scale q k^T + attn_bias) v to out, and the logsumexp of each query's scores to sums.

    A query attends to the keys where `attn_mask` is True; if `causal`, to those up to its own index.  For a query
    without keys, or with an attn_bias of -inf for all of them, both results are 0.
    """
    for rows, seen, masks in _blocks(q, attn_mask, attn_bias, queries, keys, causal):
        weights = np.matmul(q[rows] * q.dtype.type(scale), k[seen].swapaxes(-1, -2))
        total, sums[rows[:-1]] = attention_weights(weights, *masks)
        out[rows] = np.matmul(weights, v[seen]) / total[..., None]


@separate(4)
@np.errstate(invalid="ignore")
def attend_grad(g, g_sums, out, sums, q, k, v, attn_mask, attn_bias, queries, keys, scale, causal, dq, dk, dv, dscores):
    """Write the gradients of `attend` for q, k, v and the scores into arrays, or None, with q's leading dimensions.

    The array for the scores must hold zeros, which remain at pairs that are masked out.

    With weights P and D = g v^T they are dS = P (D - sum(g out) + of_sums), scale dS k, scale dS^T q and P^T g.
    """
    level = g_sums - np.vecdot(g, out)
    for total in (dk, dv):
        if total is not None:
            total[...] = 0
    factor = q.dtype.type(scale)
    for rows, seen, masks in _blocks(q, attn_mask, attn_bias, queries, keys, causal):
        weights = np.matmul(q[rows] * factor, k[seen].swapaxes(-1, -2))
        pulled = np.matmul(g[rows], v[seen].swapaxes(-1, -2))
        attention_pull(weights, pulled, sums[rows[:-1]], level[rows[:-1]], *masks)
        if dv is not None:
            dv[seen] += np.matmul(weights.swapaxes(-1, -2), g[rows])
        if dq is not None:
            dq[rows] = np.matmul(pulled, k[seen]) * factor
        if dk is not None:
            dk[seen] += np.matmul(pulled.swapaxes(-1, -2), q[rows] * factor)
        if dscores is not None:
            masks.mask_block(dscores)[...] = pulled


def _numbers(offsets):
    """Return offsets, an array or a list, as a list."""
    return offsets if type(offsets) is list else offsets.tolist()


def _blocks(q, attn_mask, attn_bias, queries, keys, causal):
    """Yield for each block the slices of its queries and of the keys they may attend to, and its masks."""
    count, pairs = math.prod(q.shape[:-2]), 0
    bounds = zip(pairwise(_numbers(queries)), pairwise(_numbers(keys)), strict=True)
    for (start, stop), (begin, end) in bounds:
        step = max(1, BLOCK // max(1, count * (end - begin)))
        step = min(step, CAUSAL_QUERIES) if causal else step
        for first in range(start, stop, step):
            last = min(first + step, stop)
            seen = min(end - begin, last - start) if causal else end - begin
            masks = _Masks(
                attn_mask,
                attn_bias,
                causal,
                q.ndim,
                pairs,
                (stop - start, end - begin),
                (first - start, last - start, seen),
            )
            yield (..., slice(first, last), slice(None)), (..., slice(begin, begin + seen), slice(None)), masks
        pairs += (stop - start) * (end - begin)


class _Masks:
    """The masks of a block; `block` has its first query, the end of its queries, and its number of keys."""

    def __init__(self, attn_mask, attn_bias, causal, ndim, pairs, sizes, block):
        self.ndim, self.pairs, self.sizes, self.block = ndim, pairs, sizes, block
        self.causal = causal
        self.attn_mask = None if attn_mask is None else self.mask_block(attn_mask)
        self.attn_bias = None if attn_bias is None else self.mask_block(attn_bias)

    def mask_block(self, mask):
        """Return this block's part of a mask, or of an array in the layout of masks."""
        if mask.ndim < self.ndim:
            rows, columns = self.sizes
            mask = mask[..., self.pairs : self.pairs + rows * columns].reshape(*mask.shape[:-1], rows, columns)
        first, last, seen = self.block
        return mask[..., first:last, :seen]

    def __iter__(self):
        """Return the additive mask, the boolean mask and, if causal, the offset of the queries from the first key."""
        return iter((self.attn_bias, self.attn_mask, self.block[0] if self.causal else None))


def attention_weights(scores, attn_bias, attn_mask, behind):
    """Replace scores by exp(score - the query's maximum); return the sum of these and the logsumexp of the scores.

    scores: (..., queries, keys), with which masks are broadcast; `behind` is the offset of the queries from the first
    key if each attends to keys up to its own index, or None. For a query without keys the results are 1 and 0.
    """
    _mask(scores, attn_bias, attn_mask, behind)
    top = np.max(scores, -1, keepdims=True, initial=-np.inf)
    top[np.isneginf(top)] = 0
    with np.errstate(invalid="ignore", under="ignore"):  # infinite scores give NaN
        scores -= top
        np.exp(scores, out=scores)
    total = scores.sum(-1)
    total[total == 0] = 1
    return total, (top[..., 0] + np.log(total)) * np.any(scores, axis=-1)


def attention_pull(scores, pulled, sums, level, attn_bias, attn_mask, behind):
    """Replace scores by the weights exp(score - sums), and `pulled` by weights * (pulled + level).

    scores and pulled: (..., queries, keys); sums and level: (..., queries); masks are those of `attention_weights`.
    """
    _mask(scores, attn_bias, attn_mask, behind)
    with np.errstate(invalid="ignore", under="ignore"):
        scores -= sums[..., None]
        np.exp(scores, out=scores)
    pulled += level[..., None]
    pulled *= scores


def _mask(scores, attn_bias, attn_mask, behind):
    """Add `attn_bias` to scores, and write -inf where they are masked out."""
    if attn_bias is not None:
        scores += attn_bias
    if attn_mask is not None:
        np.copyto(scores, -np.inf, where=~attn_mask)
    if behind is not None:
        np.copyto(scores, -np.inf, where=~np.tri(*scores.shape[-2:], k=behind, dtype=bool))
