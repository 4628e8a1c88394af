"""Attention within the components of ragged arrays, a block of queries at a time: no component's scores are ever whole.

The backward pass makes the weights again, from the logarithms of the sums of exponentials: T. Dao et al.,
FlashAttention, arXiv 2205.14135; M. N. Rabe and C. Staats, Self-attention does not need O(n^2) memory, arXiv
2112.05682.
"""

import math
from typing import NamedTuple

import numpy as np

from retrograd.backend.ragged_products import Part, paired

BLOCK = 1 << 18  # scores that are held at a time; of components with more keys, those of one query
CAUSAL_QUERIES = 64  # in a block: each block looks only at keys up to its last query
SAFE = 60.0  # exponentials of numbers up to this, and sums of them, are finite and normal in single precision


class Plan(NamedTuple):
    """The rows of the components in the buffers of queries and of keys, and how the queries look at these."""

    queries: object
    keys: object
    scale: float
    causal: bool


def may_look(plan):
    """Of each pair of a query and a key of one component whether the key comes no later, one pair behind the other."""
    sizes = zip(plan.queries.lengths.tolist(), plan.keys.lengths.tolist(), strict=True)
    return np.concatenate([np.tri(*size, dtype=bool).ravel() for size in sizes] or [np.zeros(0, bool)])


# ----------------------------------------------------------------------------------------------------- kernels


def attend(q, k, v, allowed, added, plan):
    """The attention's results, and for each query the logarithm of the sum of its exponentials; 0 where it has none.

    The dimensions of q in front of the rows are those of all, among which the others may have 1.
    """
    run = _Run(q, k, v, allowed, added, plan)
    out, sums = run.like_queries(v.shape[-1]), np.empty(q.shape[:-1], q.dtype)
    tops = None if run.small() else np.zeros_like(sums)
    for block in run.blocks():
        scores = run.scores(block, np.multiply(run.q[block.rows], plan.scale), block.k.swapaxes(-1, -2))
        if tops is not None:
            tops[block.queries] = run.shifted(scores)
        np.exp(scores, out=scores)
        np.matmul(scores, run.ones[: scores.shape[-1]], out=sums[block.queries])
        np.matmul(scores, block.v, out=out[block.rows])
    nowhere = sums == 0
    if nowhere.any():
        sums[nowhere] = 1
    out /= sums[..., None]
    np.log(sums, out=sums)
    return out, sums if tops is None else np.add(sums, tops, out=sums)


def attend_backward(g, of_sums, q, k, v, allowed, added, out, sums, plan, wanted):
    """The cotangents of q, k, v and what is added to the scores, those that are `wanted`; of others nothing, (0,).

    With P the weights and D = g v^T they are dS = P (D - sum(g out) + of_sums), scale dS k, scale dS^T q and P^T g.
    """
    run = _Run(q, k, v, allowed, added, plan)
    level = of_sums - np.vecdot(g, out)
    made = (np.empty_like, np.zeros_like, np.zeros_like, np.zeros_like)  # of keys, values and masks they are sums
    dq, dk, dv, d_added = [
        make(x) if w else np.zeros(0, q.dtype) for make, x, w in zip(made, (q, k, v, added), wanted, strict=True)
    ]
    masks = Part("both", run.pairs).pieces(run.raised(d_added, 1)) if wanted[3] else None
    whole = wanted[0] or wanted[1] or wanted[3]
    for block in run.blocks(with_ones=True):
        queries = _beside(run.q[block.rows], plan.scale, -sums[block.queries])
        weights = run.scores(block, queries, block.k_ones.swapaxes(-1, -2))
        np.exp(weights, out=weights)
        cotangent = g[block.rows]
        if wanted[2]:
            run.add(dv, block, weights, cotangent)
        if not whole:
            continue
        pulled = run.second(weights.shape)
        np.matmul(_beside(cotangent, 1, level[block.queries]), block.v_ones.swapaxes(-1, -2), out=pulled)
        pulled *= weights
        if wanted[0]:
            np.matmul(pulled, block.k, out=dq[block.rows])
        if wanted[1]:
            run.add(dk, block, pulled, queries[..., :-1])
        if wanted[3]:
            _gather(masks[block.number][..., block.first : block.last, : pulled.shape[-1]], pulled)
    if wanted[0]:
        dq *= plan.scale
    return dq, dk, dv, d_added


# ------------------------------------------------------------------------------------------------------ blocks


class _Block(NamedTuple):
    """Some queries of a component: which of it, which of the buffer, and the keys and values that they may see."""

    number: int
    first: int
    last: int
    queries: tuple
    rows: tuple
    keys: tuple
    k: object
    v: object
    k_ones: object
    v_ones: object


class _Run:
    """What the blocks of one call share: the operands with the same number of dimensions, and memory for scores."""

    def __init__(self, q, k, v, allowed, added, plan):
        self.plan, self.q = plan, q
        self.k, self.v = self.raised(k, 2), self.raised(v, 2)
        self.bounded = allowed is None and added is None
        self.pairs = paired(plan.queries, plan.keys)
        self.allowed, self.added = (
            None if m is None else Part("both", self.pairs).pieces(self.raised(m, 1)) for m in (allowed, added)
        )
        self.count = math.prod(q.shape[:-2])
        longest = int(plan.keys.lengths.max(initial=0))
        self.most = max(BLOCK, self.count * longest)
        self.memory = [None, None]
        self.ones = np.ones(longest, q.dtype)

    def raised(self, x, core):
        """An operand with as many dimensions in front of its last ones as the queries have."""
        missing = self.q.ndim - 2 - (x.ndim - core)
        return x.reshape((1,) * missing + x.shape) if missing else x

    def like_queries(self, width):
        """New memory in the order in which that of the queries is."""
        return np.empty_like(self.q, shape=(*self.q.shape[:-1], width))

    def small(self):
        """Whether no score can be so large that its exponential is not finite: |q k| is at most |q| |k|."""
        if not self.bounded:
            return False
        longest = [np.vecdot(x, x).max(initial=0) for x in (self.q, self.k)]
        return math.sqrt(longest[0]) * math.sqrt(longest[1]) * abs(self.plan.scale) <= SAFE

    def blocks(self, with_ones=False):
        """The blocks of all components, those of one behind each other."""
        bounds = zip(self.plan.queries.bounds(), self.plan.keys.bounds(), strict=True)
        for number, ((start, stop), (begin, end)) in enumerate(bounds):
            k, v = self.k[..., begin:end, :], self.v[..., begin:end, :]
            k_ones, v_ones = (_beside(x, 1, 1) if with_ones else x for x in (k, v))
            step = self.step(end - begin)
            for first in range(start, stop, step):
                last = min(first + step, stop)
                seen = min(end - begin, last - start) if self.plan.causal else end - begin
                yield _Block(
                    number, first - start, last - start,
                    (..., slice(first, last)), (..., slice(first, last), slice(None)),
                    (..., slice(begin, begin + seen), slice(None)),
                    *(x[..., :seen, :] for x in (k, v, k_ones, v_ones)),
                )  # fmt: skip

    def step(self, keys):
        """How many queries of a component a block has."""
        step = max(1, self.most // max(1, self.count * keys))
        return min(step, CAUSAL_QUERIES) if self.plan.causal else step

    def scores(self, block, queries, keys):
        """The products of queries and keys, with what is added; -inf where a query may not look."""
        out = self._room(0, (*self.q.shape[:-2], block.last - block.first, keys.shape[-1]))
        np.matmul(queries, keys, out=out)
        of = (..., slice(block.first, block.last), slice(keys.shape[-1]))
        if self.added is not None:
            out += self.added[block.number][of]
        if self.allowed is not None:
            np.copyto(out, -np.inf, where=~self.allowed[block.number][of])
        if self.plan.causal:
            later = out[..., block.first :]
            np.copyto(later, -np.inf, where=~np.tri(*later.shape[-2:], dtype=bool))
        return out

    def second(self, shape):
        """Room for as many numbers beside the scores."""
        return self._room(1, shape)

    def _room(self, which, shape):
        if self.memory[which] is None:
            self.memory[which] = np.empty(self.largest(), self.q.dtype)
        return self.memory[which][: math.prod(shape)].reshape(shape)

    def largest(self):
        """The number of scores in the largest block."""
        pairs = self.pairs.sizes.tolist()
        return self.count * max((min(m, self.step(n)) * n for m, n in pairs), default=0)

    def shifted(self, scores):
        """Subtract from the scores of each query the largest of them, which is returned."""
        top = scores.max(-1, keepdims=True, initial=-np.inf)
        if self.added is None or self.allowed is not None:
            top[np.isneginf(top)] = 0  # may look nowhere
        with np.errstate(invalid="ignore"):  # all are -inf, since that was added
            scores -= top
        return top[..., 0]

    def add(self, total, block, weights, rows):
        """Add weights^T rows to the cotangent of keys or values."""
        _gather(self.raised(total, 2)[block.keys], np.matmul(weights.swapaxes(-1, -2), rows))


def _gather(total, part):
    """Add to a total, which may have 1 where the part has more."""
    dims = tuple([d for d in range(part.ndim) if total.shape[d] != part.shape[d]])
    total += np.add.reduce(part, axis=dims, keepdims=True) if dims else part


def _beside(x, factor, last):
    """x times a factor with another column."""
    out = np.empty((*x.shape[:-1], x.shape[-1] + 1), x.dtype)
    np.multiply(x, factor, out=out[..., :-1])
    out[..., -1] = last
    return out
