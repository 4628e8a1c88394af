"""Reference implementations of reductions."""

import math

import numpy as np

from retrograd.testing.references.common import axis


def moments(x, dim, keepdim, correction, unbiased=None):
    """Return the variance, by its definition."""
    dim, unbiased = (None, dim) if isinstance(dim, bool) else (dim, unbiased)
    correction = 1 if correction is None else correction
    away = x - x.mean(axis=axis(dim), keepdims=True)
    n = x.size / max(away.sum(axis=axis(dim)).size, 1)
    freedom = n - (correction if unbiased is None else unbiased)
    return (away**2).sum(axis=axis(dim), keepdims=keepdim) / (freedom or math.nan)


def std(*args, **params):
    return np.sqrt(moments(*args, **params))


def var_mean(x, dim, unbiased, keepdim, correction):
    return (
        moments(x, dim, keepdim, correction, unbiased),
        x.mean(axis=axis(dim), keepdims=keepdim),
    )


def std_mean(x, dim, unbiased, keepdim, correction):
    return (
        np.sqrt(moments(x, dim, keepdim, correction, unbiased)),
        x.mean(axis=None if isinstance(dim, bool) else dim, keepdims=keepdim),
    )
