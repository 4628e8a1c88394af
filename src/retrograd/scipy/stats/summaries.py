"""Summary statistics of `scipy.stats` that take tensors: means, moments and entropies along an axis."""

import math
from typing import Any

from retrograd.core import Tensor
from retrograd.interop.numpy_protocol.table import O, as_floating, only_default, promote_operands
from retrograd.scipy._array_like import ArrayLike
from retrograd.scipy._mirror import on_tensors

_stats = on_tensors("scipy.stats")


def _along(name: str, x: Any, axis: int | None, options: dict) -> tuple[Tensor, int]:
    """Return x as a tensor, flat for axis=None, and the axis; refuse options that change the result."""
    only_default(f"stats.{name}", nan_policy=(options.pop("nan_policy", "propagate"), "propagate"))
    keep = options.pop("keepdims", False)
    only_default(f"stats.{name}", keepdims=(keep, False), **{key: (value, None) for key, value in options.items()})
    x = as_floating(x)
    return (O.reshape(x, (-1,)), 0) if axis is None else (x, axis)


def _weighted_mean(x: Tensor, axis: int, weights: Any) -> Tensor:
    if weights is None:
        found: Tensor = O.mean(x, axis)
        return found
    x, w = promote_operands(x, as_floating(weights))
    if w.ndim == 1 and x.ndim > 1:
        w = O.movedim(O.expand(w, O.movedim(x, axis, -1).shape), -1, axis)
    found = O.sum(w * x, axis) / O.sum(w, axis)
    return found


@_stats
def gmean(a: ArrayLike, axis: int | None = 0, dtype: Any = None, weights: Any = None, **options: Any) -> Tensor:
    """Return the geometric mean."""
    only_default("stats.gmean", dtype=(dtype, None))
    x, axis = _along("gmean", a, axis, options)
    found: Tensor = O.exp(_weighted_mean(O.log(x), axis, weights))
    return found


@_stats
def hmean(a: ArrayLike, axis: int | None = 0, dtype: Any = None, *, weights: Any = None, **options: Any) -> Tensor:
    """Return the harmonic mean."""
    only_default("stats.hmean", dtype=(dtype, None))
    x, axis = _along("hmean", a, axis, options)
    found: Tensor = 1 / _weighted_mean(1 / x, axis, weights)
    return found


@_stats
def pmean(
    a: ArrayLike, p: Any, *, axis: int | None = 0, dtype: Any = None, weights: Any = None, **options: Any
) -> Tensor:
    """Return the power mean, (mean of a^p)^(1/p); for p = 0 the geometric mean."""
    only_default("stats.pmean", dtype=(dtype, None))
    if not isinstance(p, Tensor) and p == 0:
        return gmean(a, axis, weights=weights, **options)
    x, axis = _along("pmean", a, axis, options)
    found: Tensor = _weighted_mean(x**p, axis, weights) ** (1 / p)
    return found


def _central(x: Tensor, axis: int, order: int) -> Tensor:
    """Return the central moment of an order."""
    found: Tensor = O.mean((x - O.mean(x, axis, True)) ** order, axis)
    return found


@_stats
def moment(a: ArrayLike, order: int = 1, axis: int | None = 0, *, center: Any = None, **options: Any) -> Tensor:
    """Return the mean of (a - center)^order; the center is the mean unless given."""
    x, axis = _along("moment", a, axis, options)
    if center is None:
        return _central(x, axis, order)
    found: Tensor = O.mean((x - center) ** order, axis)
    return found


@_stats
def skew(a: ArrayLike, axis: int | None = 0, bias: bool = True, **options: Any) -> Tensor:
    """Return the skewness, with bias=False that of the population."""
    x, axis = _along("skew", a, axis, options)
    n = x.shape[axis]
    found: Tensor = _central(x, axis, 3) / _central(x, axis, 2) ** 1.5
    return found if bias or n < 3 else found * ((n - 1) * n) ** 0.5 / (n - 2)


@_stats
def kurtosis(a: ArrayLike, axis: int | None = 0, fisher: bool = True, bias: bool = True, **options: Any) -> Tensor:
    """Return the kurtosis, with fisher=True minus 3, with bias=False that of the population."""
    x, axis = _along("kurtosis", a, axis, options)
    n = x.shape[axis]
    found: Tensor = _central(x, axis, 4) / _central(x, axis, 2) ** 2
    if not bias and n > 3:
        found = ((n * n - 1) * found - 3 * (n - 1) ** 2) / ((n - 2) * (n - 3)) + 3
    return found - 3 if fisher else found


@_stats
def sem(a: ArrayLike, axis: int | None = 0, ddof: int = 1, **options: Any) -> Tensor:
    """Return the standard error of the mean."""
    x, axis = _along("sem", a, axis, options)
    found: Tensor = _deviation(x, axis, ddof) / x.shape[axis] ** 0.5
    return found


def _deviation(x: Tensor, axis: int, ddof: int) -> Tensor:
    n = x.shape[axis]
    found: Tensor = O.sqrt(_central(x, axis, 2) * (n / (n - ddof)))
    return found


@_stats
def variation(
    a: ArrayLike, axis: int | None = 0, nan_policy: str = "propagate", ddof: int = 0, **options: Any
) -> Tensor:
    """Return the standard deviation over the mean."""
    x, axis = _along("variation", a, axis, {"nan_policy": nan_policy, **options})
    found: Tensor = _deviation(x, axis, ddof) / O.mean(x, axis)
    return found


@_stats
def zscore(a: ArrayLike, axis: int | None = 0, ddof: int = 0, nan_policy: str = "propagate") -> Tensor:
    """Return the distances from the mean in standard deviations."""
    only_default("stats.zscore", nan_policy=(nan_policy, "propagate"))
    x = as_floating(a)
    flat, along = (O.reshape(x, (-1,)), 0) if axis is None else (x, axis)
    centered = flat - O.mean(flat, along, True)
    found: Tensor = centered / O.unsqueeze(_deviation(flat, along, ddof), along)
    return O.reshape(found, x.shape)


@_stats
def entropy(pk: ArrayLike, qk: Any = None, base: float | None = None, axis: int = 0, **options: Any) -> Tensor:
    """Return the entropy of probabilities, which are normalized first; with qk the relative entropy."""
    p, axis = _along("entropy", pk, axis, options)
    if qk is not None:
        p, q = promote_operands(p, as_floating(qk))
        q = q / O.sum(q, axis, True)
    p = p / O.sum(p, axis, True)
    terms = O.special.entr(p) if qk is None else O.special.xlogy(p, p) - O.special.xlogy(p, q)
    found: Tensor = O.sum(terms, axis)
    return found if base is None else found / math.log(base)
