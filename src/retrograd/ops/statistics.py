"""Medians, modes, quantiles, covariances and correlations."""

# round is a builtin; in this file it is the operator.

import math

from retrograd.core import Aval, Internal, op
from retrograd.core import dtype as dtypes
from retrograd.ops.as_tensor import as_tensor, tensor
from retrograd.ops.batching import at_least_1d
from retrograd.ops.diagonal import diagonal
from retrograd.ops.family import (
    AlongDims,
    Composite,
    Reduction,
    canonical_dim,
    canonical_dims,
    cast_to,
    check_real,
    numel,
    reduced_shape,
    restore_dims,
)
from retrograd.ops.floats import lerp
from retrograd.ops.gather import gather, scatter_sum, take_along_dim
from retrograd.ops.linalg import matmul
from retrograd.ops.max_min import (
    ChosenAlongDim,
    check_nonempty,
    check_ordered,
    split_among_ties,
    values_and_indices,
)
from retrograd.ops.pointwise import (
    ceil,
    clamp,
    conj,
    detach,
    eq,
    floor,
    isnan,
    logical_not,
    real_part,
    round,
    sqrt,
    to,
    where,
)
from retrograd.ops.reduce import any as any_of
from retrograd.ops.reduce import mean, name_of_overload, reduced_aval
from retrograd.ops.reduce import sum as sum_over
from retrograd.ops.sort import argsort, sorted_values
from retrograd.ops.view import cat, expand, movedim, narrow, reshape, transpose, unsqueeze


@op("within(Tensor x, *, str what, number low, number high) -> Tensor")
class within(Internal, elements="moved"):
    """x itself if all elements are from low to high; else ValueError."""

    def impl(xp, x, *, what, low, high):
        xp.real_only("within", x)
        if xp.on_host and not ((x >= low) & (x <= high)).all():
            raise ValueError(f"{what} must be from {low} to {high}, got {x.min()} to {x.max()}")
        return x.copy()

    def shape(x, *, what, low, high):
        return x

    def batch(batched, n, x, *, what, low, high):
        return within(x, what=what, low=low, high=high)

    def vjp_x(g):
        return g

    jvp_x = vjp_x

    def oracle(np, x, what, low, high):
        return np.array(x)

    def samples(r):
        yield (r(3, within=(0.05, 0.95)),), {"what": "parts", "low": 0, "high": 1}


# -------------------------------------------------------------------------------------------- medians, modes


@op("middle(Tensor x, int[]? dim=None, bool keepdim=False, *, bool skip_nan=False) -> Tensor")
class middle(Internal, Reduction):
    """The lower median over `dim` (None: all); tied elements share the gradient.  NaN wins, unless it is skipped."""

    def impl(xp, x, *, dim, keepdim, skip_nan):
        _check_median(x, dim)
        return xp.lower_median(x, canonical_dims("median", dim, x.ndim), keepdim, skip_nan)

    def node_name(fn):
        return name_of_overload("Nanmedian" if fn.params["skip_nan"] else "Median", fn)

    def shape(x, *, dim, keepdim, skip_nan):
        _check_median(x, dim)
        return reduced_aval("median", x, dim, keepdim, x.dtype)

    def vjp_x(g, x, out, dim, keepdim):
        return split_among_ties(restore_dims(g, x, dim, keepdim), x, out, dim, keepdim)

    def jvp_x(t, x, out, dim, keepdim):
        return sum_over(split_among_ties(t, x, out, dim, keepdim), dim, keepdim)

    oracle = "retrograd.testing.references.statistics.middle"

    def samples(r):
        yield (r(5),), {}
        yield (r(3, 4),), {"skip_nan": True}
        yield (r(),), {}
        yield (r(3, 4),), {"dim": (0,)}
        yield (_nan_sample(r),), {"dim": (1,), "skip_nan": True, "keepdim": True}


def _check_median(x, dim):
    check_ordered("middle", x)
    if not dtypes.is_floating(x.dtype):  # the median of no elements is NaN
        check_nonempty("median", x, dim)


@op("median_indices(Tensor x, *, int dim, bool skip_nan=False) -> Tensor")
class median_indices(Internal, AlongDims, differentiable=False):
    """The index of the lower median along `dim`, with keepdim; of the first NaN, if any."""

    def impl(xp, x, *, dim, skip_nan):
        check_nonempty("median", x, (dim,))
        return xp.median_indices(x, dim, skip_nan)

    def node_name(fn):
        return "NanmedianBackward1" if fn.params["given"]["skip_nan"] else "MedianBackward1"

    def shape(x, *, dim, skip_nan):
        return _index_aval("median", x, dim)

    oracle = "retrograd.testing.references.statistics.median_indices"

    def samples(r):
        yield (r(3, 4),), {"dim": 1}
        yield (r(3, 4),), {"dim": 0, "skip_nan": True}


def _index_aval(name, x, dim):
    check_nonempty(name, x, (dim,))
    return Aval(reduced_shape(x.shape, (canonical_dim(name, dim, x.ndim),), True), dtypes.int64)


def _median(name, x, dim, keepdim, skip_nan):
    check_ordered(name, x)
    if dim is None:
        return middle(x, skip_nan=skip_nan)
    check_nonempty(name, x, (dim,))
    return values_and_indices(x, median_indices, {"skip_nan": skip_nan}, dim, keepdim)


@op("median(Tensor x, int? dim=None, bool keepdim=False) -> Tensor")
class median(Composite, result_fields="values indices"):
    """The median, the lower of two in the middle; along `dim`, a named tuple (values, indices).  NaN wins.

    Over all elements, tied ones share the gradient.  Along a dimension it goes to the element at `indices`; equal
    elements are ranked by index.

    >>> import retrograd as rg
    >>> rg.median(rg.tensor([4.0, 1.0, 3.0, 2.0])).item()
    2.0
    >>> rg.median(rg.tensor([[3.0, 1.0, 2.0]]), dim=1).indices.tolist()
    [2]
    """

    def compose(x, *, dim, keepdim) -> ChosenAlongDim:
        return _median("median", x, dim, keepdim, False)

    oracle = "retrograd.testing.references.statistics.median"

    def samples(r):
        yield (r(5),), {}
        yield (r(3, 4),), {"dim": 1}
        yield (r(3, 4),), {"dim": 0, "keepdim": True}

    def errors(r):
        yield (r(0, 3),), {"dim": 0}, ValueError, "median: .*nothing to choose from"


@op("nanmedian(Tensor x, int? dim=None, bool keepdim=False) -> Tensor")
class nanmedian(Composite, result_fields="values indices"):
    """The `median` of the elements that are not NaN; NaN if there are none.

    >>> import retrograd as rg
    >>> rg.nanmedian(rg.tensor([1.0, float("nan"), 2.0])).item()
    1.0
    """

    def compose(x, *, dim, keepdim) -> ChosenAlongDim:
        return _median("nanmedian", x, dim, keepdim, True)

    oracle = "retrograd.testing.references.statistics.nanmedian"

    def samples(r):
        yield (r(5),), {}
        yield (_nan_sample(r),), {}
        yield (_nan_sample(r),), {"dim": 1}


def _nan_sample(r):
    return where(tensor([[True, False, True, True], [True] * 4, [False, True, True, False]]), r(3, 4), math.nan)


@op("mode_indices(Tensor x, *, int dim) -> Tensor")
class mode_indices(Internal, AlongDims, differentiable=False, node_name="ModeBackward0"):
    """The last index of the most frequent value along `dim`, with keepdim."""

    def impl(xp, x, *, dim):
        check_nonempty("mode", x, (dim,))
        return xp.mode_indices(x, dim)

    def shape(x, *, dim):
        return _index_aval("mode", x, dim)

    oracle = "retrograd.testing.references.statistics.mode_indices"

    def samples(r):
        yield (r.ints(3, (3, 7)),), {"dim": 1}


@op("mode(Tensor x, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)")
class mode(Composite):
    """The most frequent value along `dim`, the smallest if tied, and its last index.  NaN equals nothing.

    >>> import retrograd as rg
    >>> values, indices = rg.mode(rg.tensor([3, 1, 3, 2]))
    >>> values.item(), indices.item()
    (3, 2)
    """

    def compose(x, *, dim, keepdim):
        check_ordered("mode", x)
        return values_and_indices(x, mode_indices, {}, dim, keepdim)

    oracle = "retrograd.testing.references.statistics.mode"

    def samples(r):
        yield (r.ints(3, (3, 7)),), {}
        yield (r(4, 3),), {"dim": 0, "keepdim": True}

    def errors(r):
        yield (r(3, 0),), {}, ValueError, "mode: .*nothing to choose from"


# ------------------------------------------------------------------------------------------------ quantiles


@op("order_statistics(Tensor x, Tensor ranks, *, int dim) -> Tensor")
class order_statistics(Internal, snapshots="x"):
    """The elements of rank `ranks` (from 0) of x along `dim`; all NaN if one element is."""

    def impl(xp, x, ranks, *, dim):
        _check_ranks(x, dim)
        return xp.order_statistics(x, ranks, dim)

    def shape(x, ranks, *, dim):
        at = _check_ranks(x, dim)
        return Aval((*x.shape[:at], *ranks.shape, *x.shape[at + 1 :]), x.dtype)

    def vjp_x(g, x, ranks, dim):
        return scatter_sum(g, rank_indices(x, ranks, dim=dim), shape=x.shape, dim=dim)

    def jvp_x(t, x, ranks, dim):
        return take_along_dim(t, rank_indices(x, ranks, dim=dim), dim)

    def batch(batched, n, x, ranks, *, dim):
        return _batch_by_sorting(order_statistics, sorted_values, batched, n, x, ranks, dim)

    def oracle(np, x, ranks, dim):
        return np.take(np.sort(x, axis=dim), ranks, axis=dim)

    def samples(r):
        yield (r(3, 5), as_tensor([0, 3])), {"dim": 1}
        yield (r(12), as_tensor([9, 0, 8, 1, 7, 2, 6, 3, 5])), {"dim": 0}


@op("rank_indices(Tensor x, Tensor ranks, *, int dim) -> Tensor")
class rank_indices(Internal, differentiable=False):
    """The indices of the elements that `order_statistics` returns."""

    def impl(xp, x, ranks, *, dim):
        return xp.rank_indices(x, ranks, dim)

    def shape(x, ranks, *, dim):
        at = _check_ranks(x, dim)
        return Aval((*x.shape[:at], *ranks.shape, *x.shape[at + 1 :]), dtypes.int64)

    def batch(batched, n, x, ranks, *, dim):
        return _batch_by_sorting(rank_indices, argsort, batched, n, x, ranks, dim)

    def oracle(np, x, ranks, dim):
        return np.take(np.argsort(x, axis=dim), ranks, axis=dim)

    def samples(r):
        yield (r(3, 5), as_tensor([0, 3])), {"dim": 1}


def _batch_by_sorting(operator, ordered, batched, n, x, ranks, dim):
    """The batching rule of both operators; `ordered(x, dim=)` gives the results at all ranks."""
    at = _check_ranks(Aval(x.shape[batched[0] :], x.dtype), dim)
    if not batched[1]:
        return operator(at_least_1d(x), ranks, dim=at + 1)
    if not batched[0]:
        found = operator(x, reshape(ranks, (numel(ranks.shape),)), dim=dim)
        return movedim(reshape(found, (*x.shape[:at], *ranks.shape, *x.shape[at + 1 :])), at, 0)
    x = at_least_1d(x)
    every, size = ordered(x, dim=at + 1), x.shape[at + 1]
    ranks = reshape(ranks, (n, *(1,) * at, ranks.shape[1], *(1,) * (x.ndim - at - 2)))
    found = gather(every, at + 1, expand(ranks, (*x.shape[: at + 1], ranks.shape[at + 1], *x.shape[at + 2 :])))
    return where(any_of(isnan(x), at + 1, keepdim=True), narrow(every, at + 1, size - 1, 1), found)


def _check_ranks(x, dim):
    check_nonempty("quantile", x, (dim,))
    return canonical_dim("quantile", dim, x.ndim)


_INTERPOLATIONS = ("linear", "lower", "higher", "nearest", "midpoint")
_QUANTILE = '(Tensor x, Tensor q, int? dim=None, bool keepdim=False, *, str interpolation="linear") -> Tensor'


@op("quantile" + _QUANTILE)
class quantile(Composite):
    """The quantiles of x at q (from 0 to 1) along `dim` (None: of all).

    Between two elements `interpolation` decides: "linear", "lower", "higher", "nearest" (the even rank if tied),
    "midpoint".  A 1-d tensor q adds a first dimension.  NaN wins.  Differentiable in x and, between elements, in q.

    >>> import retrograd as rg
    >>> rg.quantile(rg.tensor([1.0, 2.0, 4.0]), 0.75).item()
    3.0
    """

    def compose(x, q, *, dim, keepdim, interpolation):
        return _quantile("quantile", x, q, dim, keepdim, interpolation, _quantiles)

    def oracle(np, x, q, dim, keepdim, interpolation):
        return np.quantile(x, q, axis=dim, keepdims=keepdim, method=interpolation)

    def samples(r):
        yield (r(5), 0.4), {}
        yield (r(3, 4), r(2, within=(0.05, 0.95))), {"dim": 1}
        yield (r(3, 4), r(within=(0.05, 0.95))), {"dim": 0, "keepdim": True, "interpolation": "midpoint"}
        yield (r(3, 4), 0.3), {"keepdim": True, "interpolation": "lower"}
        yield (r(6), 0.3), {"interpolation": "nearest"}
        yield (r(6), 0.3), {"interpolation": "higher"}

    def errors(r):
        yield (r(3), 1.5), {}, ValueError, "quantile: q must be from 0 to 1, got 1.5 to 1.5"
        yield (r(3), 0.5), {"interpolation": "cubic"}, ValueError, "quantile: interpolation must be one of .*'cubic'"
        yield (r.ints(5, (3,)), 0.5), {}, TypeError, "quantile: expected a real floating dtype, got int64"
        yield (r(0), 0.5), {}, ValueError, "quantile: .*nothing to choose from"


@op("nanquantile" + _QUANTILE)
class nanquantile(Composite):
    """The `quantile` of the elements that are not NaN; NaN if there are none.

    >>> import retrograd as rg
    >>> rg.nanquantile(rg.tensor([1.0, float("nan"), 2.0]), 0.5).item()
    1.5
    """

    def compose(x, q, *, dim, keepdim, interpolation):
        return _quantile("nanquantile", x, q, dim, keepdim, interpolation, _nan_quantiles)

    def oracle(np, x, q, dim, keepdim, interpolation):
        return np.nanquantile(x, q, axis=dim, keepdims=keepdim, method=interpolation)

    def samples(r):
        yield (r(5), 0.4), {}
        yield (_nan_sample(r), r(2, within=(0.05, 0.95))), {"dim": 1}
        yield (_nan_sample(r), 0.4), {"keepdim": True}


def _quantile(name, x, q, dim, keepdim, interpolation, at_ranks):
    check_real(name, x)
    if interpolation not in _INTERPOLATIONS:
        raise ValueError(f"{name}: interpolation must be one of {', '.join(_INTERPOLATIONS)}, got {interpolation!r}")
    q = within(_quantile_tensor(name, x, q), what=f"{name}: q", low=0, high=1)
    rows = reshape(x, (-1,)) if dim is None or not x.ndim else x
    at = canonical_dim(name, dim or 0, rows.ndim)
    check_nonempty(name, rows, (at,))
    values = at_ranks(rows, reshape(q, (-1,)), at, interpolation)
    shape = reduced_shape(x.shape, range(x.ndim) if dim is None or not x.ndim else (at,), keepdim)
    return reshape(values, q.shape + shape)


def _quantile_tensor(name, x, q):
    """q as a tensor; a Python number keeps its precision."""
    if not hasattr(q, "dtype"):
        return as_tensor(float(q), dtypes.float64)
    if q.dtype != x.dtype or q.ndim > 1:
        raise TypeError(f"{name}: q must be a number, or {x.dtype} with one dimension at most, got {q.dtype}{q.shape}")
    return as_tensor(q)


def _quantiles(x, q, dim, interpolation):
    """The quantiles along `dim`, in the first dimension."""
    low, high, weight = _adjacent_ranks(q * (x.shape[dim] - 1), interpolation)
    if low is high:
        return movedim(order_statistics(x, low, dim=dim), dim, 0)
    found = movedim(order_statistics(x, cat([low, high]), dim=dim), dim, 0)
    n = low.shape[0]
    return _lerp(narrow(found, 0, 0, n), narrow(found, 0, n, n), reshape(weight, (n,) + (1,) * (x.ndim - 1)))


def _nan_quantiles(x, q, dim, interpolation):
    """The quantiles without NaN, which sort to the end, so that the ranks differ between rows."""
    count = sum_over(logical_not(isnan(x)), dim)
    ranks = reshape(q, (-1,) + (1,) * (x.ndim - 1)) * clamp(count - 1, 0)
    low, high, weight = _adjacent_ranks(ranks, interpolation)
    ordered = movedim(sorted_values(x, dim=dim), dim, 0)
    return _lerp(take_along_dim(ordered, low, 0), take_along_dim(ordered, high, 0), weight)


def _adjacent_ranks(ranks, interpolation):
    """The two adjacent ranks, and the weight of the second."""
    if interpolation in ("lower", "higher", "nearest"):
        rank = to({"lower": floor, "higher": ceil, "nearest": round}[interpolation](detach(ranks)), dtypes.int64)
        return rank, rank, 0
    low = detach(floor(ranks))
    weight = ranks - low if interpolation == "linear" else ranks * 0 + 0.5
    return to(low, dtypes.int64), to(ceil(detach(ranks)), dtypes.int64), weight


def _lerp(low, high, weight):
    return lerp(low, high, cast_to(weight, low.dtype)) if hasattr(weight, "dtype") else low


# --------------------------------------------------------------------------------------------- covariances


@op("cov(Tensor x, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) -> Tensor")
class cov(Composite, opmath="x fweights aweights"):
    """The covariance matrix of variables, the rows of x, observed in its columns; the variance if there is one row.

    fweights: the number of times that each column was observed; aweights: its weight.  The divisor is n - correction,
    with n the number of observations (see numpy.cov for n with aweights).

    >>> import retrograd as rg
    >>> rg.cov(rg.tensor([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]])).tolist()
    [[1.0, 2.0], [2.0, 4.0]]
    """

    def compose(x, fweights, aweights, *, correction):
        return _covariances("cov", x, fweights, aweights, correction)

    def oracle(np, x, fweights, aweights, correction):
        return np.cov(x, ddof=correction, fweights=fweights, aweights=aweights)

    def samples(r):
        yield (r(3, 5), None, None), {}
        yield (r(5), None, None), {"correction": 0}
        yield (r(3, 5), r.ints(3, (5,)) + 1, None), {}
        yield (r(3, 5), r.ints(3, (5,)) + 1, r(5, within=(0.2, 2.0))), {}

    def errors(r):
        yield (r(2, 2, 2), None, None), {}, ValueError, "cov: expected at most 2 dimensions, got 3"
        yield (r(3, 4), r(4), None), {}, TypeError, "cov: fweights must hold integers, got float64"
        yield (r(3, 4), r.ints(3, (4,)) - 9, None), {}, ValueError, "cov: weights must be from 0 to inf, got -"
        yield (r(3, 4), None, r(3)), {}, ValueError, r"cov: aweights has shape \(3,\), but there are 4 observations"


def _covariances(name, x, fweights, aweights, correction):
    if x.ndim > 2:
        raise ValueError(f"{name}: expected at most 2 dimensions, got {x.ndim}")
    rows = cast_to(x if x.ndim == 2 else reshape(x, (1, -1)), dtypes.float_of(x.dtype))
    if aweights is not None:
        rows = cast_to(rows, dtypes.promote(rows.dtype, dtypes.float_of(aweights.dtype)))
    fweights, aweights = _combine_weights(name, rows, fweights, aweights)
    weights = fweights if aweights is None else aweights if fweights is None else fweights * aweights
    if weights is None:
        freedom, deviations = rows.shape[1] - correction, rows - mean(rows, 1, keepdim=True)
    else:
        weights = cast_to(weights, dtypes.real_of(rows.dtype))
        total = sum_over(weights)
        lost_freedom = correction
        if aweights is not None and correction:
            lost_freedom = correction * _divide(sum_over(weights * aweights), total)
        freedom, deviations = total - lost_freedom, rows - _divide(sum_over(rows * weights, 1, keepdim=True), total)
    out = matmul(deviations if weights is None else deviations * weights, conj(transpose(deviations, 0, 1)))
    dtype = dtypes.real_of(out.dtype)
    out = _divide(out, as_tensor(freedom, dtype), to(where(eq(out, 0), math.nan, math.inf), dtype))
    return reshape(out, ()) if x.ndim < 2 or x.shape[0] == 1 else out


def _divide(x, divisor, otherwise=math.nan):
    """x / by where `divisor` is positive, x * otherwise elsewhere."""
    positive = divisor > 0
    return x * where(positive, 1 / where(positive, divisor, 1), otherwise)


def _combine_weights(name, rows, fweights, aweights):
    if fweights is not None and fweights.dtype.kind not in "iu":
        raise TypeError(f"{name}: fweights must hold integers, got {fweights.dtype}")
    if aweights is not None and not dtypes.is_floating(aweights.dtype):
        raise TypeError(f"{name}: aweights must be of a floating dtype, got {aweights.dtype}")
    for word, given in (("fweights", fweights), ("aweights", aweights)):
        if given is not None and given.shape != rows.shape[1:]:
            raise ValueError(
                f"{name}: {word} has shape {given.shape}, but there are {rows.shape[1]} observations"
            )
    return (
        None if w is None else within(w, what=f"{name}: weights", low=0, high=math.inf) for w in (fweights, aweights)
    )


@op("corrcoef(Tensor x) -> Tensor")
class corrcoef(Composite, opmath="x"):
    """Pearson's correlation coefficients of variables, the rows of x.

    They are the covariances divided by the standard deviations; NaN where one of these is 0.

    >>> import retrograd as rg
    >>> rg.corrcoef(rg.tensor([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """

    def compose(x):
        c = _covariances("corrcoef", x, None, None, 1)
        if not c.ndim:
            return _divide(c, real_part(c))
        deviation = sqrt(real_part(diagonal(c)))
        return _divide(_divide(c, unsqueeze(deviation, 1)), deviation)

    oracle = "numpy.corrcoef"

    def samples(r):
        yield (r(3, 5),), {}
        yield (r(5),), {}
