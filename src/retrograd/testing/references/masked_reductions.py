"""Reference implementations of masked reductions: the unmasked elements, slice by slice."""

import numpy as np


def over(function, empty):
    """Map a function over the unmasked elements of every slice along some dimensions; `empty` where none is left."""

    def oracle(x, mask, dim=None, keepdim=False, dtype=None, **params):
        mask = np.broadcast_to(True if mask is None else mask, x.shape)
        dims = range(x.ndim) if dim is None else np.atleast_1d(dim) % x.ndim
        kept = [d for d in range(x.ndim) if d not in dims]
        rows, left = (np.transpose(a, (*kept, *dims)).reshape(*(x.shape[d] for d in kept), -1) for a in (x, mask))
        out = np.empty(rows.shape[:-1])
        for i in np.ndindex(out.shape):
            there = rows[i][left[i]]
            out[i] = function(there, **params) if there.size else empty
        return np.expand_dims(out, tuple(int(d) for d in sorted(dims))) if keepdim else out

    return oracle


def position(function, worst):
    """Return the index of an extreme, where masked elements count as the worst."""

    def oracle(x, mask, dim, keepdim, dtype):
        return function(x if mask is None else np.where(mask, x, worst), dim, keepdims=keepdim)

    return oracle


def variance(x, unbiased=None, correction=None):
    return np.var(x, ddof=(unbiased is not False) if correction is None else correction)


def scan(function, identity):
    def oracle(x, mask, dim, dtype):
        return function(x if mask is None else np.where(mask, x, identity), dim)

    return oracle


def masked_softmax(x, mask, dim, dtype=None, sign=1):
    weights = np.exp(sign * x) * (1 if mask is None else mask)
    return weights / weights.sum(dim, keepdims=True)


masked_sum = over(np.sum, 0)


masked_prod = over(np.prod, 1)


masked_amax = over(np.max, -np.inf)


masked_amin = over(np.min, np.inf)


masked_argmax = position(np.argmax, -np.inf)


masked_argmin = position(np.argmin, np.inf)


masked_mean = over(np.mean, np.nan)


masked_median = over(lambda x: np.sort(x)[(x.size - 1) // 2], np.nan)


masked_logsumexp = over(lambda x: np.log(np.exp(x).sum()), -np.inf)


masked_norm = over(lambda x, ord: np.linalg.norm(x, ord), 0)


masked_var = over(variance, np.nan)


masked_std = over(lambda x, **params: np.sqrt(variance(x, **params)), np.nan)


masked_cumsum = scan(np.cumsum, 0)


masked_cumprod = scan(np.cumprod, 1)


def masked_log_softmax(x, mask, dim, dtype):
    return np.log(masked_softmax(x, mask, dim))


def masked_softmin(x, mask, dim, dtype):
    return masked_softmax(x, mask, dim, sign=-1)
