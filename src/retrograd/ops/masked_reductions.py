"""Masked reductions, scans and normalizations, over the elements where a mask is true, as in torch.masked.

Elements where the mask is false count as the identity of the operation, 0 for a sum, so that a slice without any true
element gives the identity.  Where there is no identity, as for a mean or a median, such a slice gives NaN.
"""

import math

from retrograd.backend.type_info import iinfo
from retrograd.core import dtype as dtypes
from retrograd.core import op, registry
from retrograd.ops.activation import softmin
from retrograd.ops.create import tensor
from retrograd.ops.family import Composite, canonical_dims, cast_to, check_floating
from retrograd.ops.max_min import amax, amin, argmax, argmin
from retrograd.ops.norm import linalg_vector_norm
from retrograd.ops.pointwise import clone, conj, isnan, logaddexp, logical_and, maximum, real_part, sqrt
from retrograd.ops.pointwise import where as choose
from retrograd.ops.reduce import any as any_of
from retrograd.ops.reduce import logsumexp, prod, reduced_count
from retrograd.ops.reduce import sum as sum_over
from retrograd.ops.scan import cumprod, cumsum
from retrograd.ops.statistics import nanmedian
from retrograd.ops.view import broadcast_to


class MaskedReduction(Composite):
    """Base of operators on the elements where `mask` (None: everywhere) is true."""


def _broadcast_mask(name, x, mask):
    """Return the mask as booleans in the shape of x: a copy, so that the mask may be written to after."""
    if mask.ndim > x.ndim:
        raise IndexError(f"{name}: the mask of shape {mask.shape} has more dimensions than the input of {x.shape}")
    return cast_to(broadcast_to(clone(mask), x.shape), dtypes.bool_)


def _fill_masked(name, x, mask, identity):
    """Return x with the identity where the mask is false."""
    return x if mask is None else choose(_broadcast_mask(name, x, mask), x, identity)


def _max_identity(name, x):
    """Return the identity of the maximum."""
    if dtypes.category(x.dtype) not in (1, 2):
        raise TypeError(f"{name}: {x.dtype} numbers have no smallest one; expected real numbers")
    return -math.inf if dtypes.is_floating(x.dtype) else iinfo(x.dtype).min


def _min_identity(name, x):
    """Return the identity of the minimum."""
    if dtypes.category(x.dtype) not in (1, 2):
        raise TypeError(f"{name}: {x.dtype} numbers have no largest one; expected real numbers")
    return math.inf if dtypes.is_floating(x.dtype) else iinfo(x.dtype).max


def _in_dtype(x, dtype):
    return x if dtype is None else cast_to(x, dtype)


_MASK = [[True, False, True, True], [True, True, False, False], [False, True, True, True]]  # in each row and column


def _samples(*several, **params):
    """Return samples with masks of the shape of x, that broadcast, and None, for each of several params."""

    def samples(r):
        for extra in several or ({},):
            yield (r(3, 4), tensor(_MASK)), {**params, **extra}
        yield (r(2, 3, 4), tensor(_MASK)), {**params, **(several[-1] if several else {})}
        yield (r(3, 4), None), {**params, **(several[0] if several else {})}

    return samples


def _errors(**params):
    def errors(r):
        yield (r(3), r.booleans(2, 3)), params, IndexError, r"the mask of shape \(2, 3\) has more dimensions"
        yield (r(3, 4), r.booleans(3)), params, ValueError, r"shape \(3,\) does not expand to \(3, 4\)"

    return errors


# ---------------------------------------------------------------------------------------------------- reductions

_REDUCTION_PARAMS = "int[]? dim=None, *, bool keepdim=False, dtype? dtype=None, Tensor? mask=None) -> Tensor"
_ARG_PARAMS = "int? dim=None, *, bool keepdim=False, dtype? dtype=None, Tensor? mask=None) -> Tensor"
_REDUCTION_SAMPLES = ({}, {"dim": 1}, {"dim": (0, -1), "keepdim": True})


@op(f"masked.sum(Tensor x, {_REDUCTION_PARAMS}")
class masked_sum(MaskedReduction):
    """Return the sum over `dim` (None: all) of the elements where the mask, which broadcasts, is true.

    Integers add up in int64 unless `dtype` says otherwise.

    >>> import retrograd as rg
    >>> x, mask = rg.tensor([[1.0, 2.0], [3.0, 4.0]]), rg.tensor([[True, False], [False, False]])
    >>> rg.masked.sum(x, 1, mask=mask).tolist()
    [1.0, 0.0]
    """

    def compose(x, mask, *, dim, keepdim, dtype):
        return sum_over(_fill_masked("masked.sum", x, mask, 0), dim, keepdim, dtype=dtype)

    oracle = "retrograd.testing.references.masked_reductions.masked_sum"

    samples = _samples(*_REDUCTION_SAMPLES)
    errors = _errors()


@op(f"masked.prod(Tensor x, {_REDUCTION_PARAMS}")
class masked_prod(MaskedReduction):
    """Return the product over `dim` (None: all) of the elements where the mask is true; 1 where none is."""

    def compose(x, mask, *, dim, keepdim, dtype):
        return prod(_fill_masked("masked.prod", x, mask, 1), dim, keepdim, dtype=dtype)

    oracle = "retrograd.testing.references.masked_reductions.masked_prod"

    samples = _samples(*_REDUCTION_SAMPLES)
    errors = _errors()


@op(f"masked.amax(Tensor x, {_REDUCTION_PARAMS}")
class masked_amax(MaskedReduction):
    """Return the maximum over `dim` (None: all) of the elements where the mask is true.

    Where none is, -inf, or the smallest integer of the dtype.

    >>> import retrograd as rg
    >>> rg.masked.amax(rg.tensor([1.0, 5.0]), mask=rg.tensor([True, False])).item()
    1.0
    """

    def compose(x, mask, *, dim, keepdim, dtype):
        filled = _fill_masked("masked.amax", x, mask, None if mask is None else _max_identity("masked.amax", x))
        return _in_dtype(amax(filled, dim, keepdim), dtype)

    oracle = "retrograd.testing.references.masked_reductions.masked_amax"

    samples = _samples(*_REDUCTION_SAMPLES)
    errors = _errors()


@op(f"masked.amin(Tensor x, {_REDUCTION_PARAMS}")
class masked_amin(MaskedReduction):
    """Return the minimum over `dim` (None: all) of the elements where the mask is true.

    Where none is, inf, or the largest integer of the dtype.
    """

    def compose(x, mask, *, dim, keepdim, dtype):
        filled = _fill_masked("masked.amin", x, mask, None if mask is None else _min_identity("masked.amin", x))
        return _in_dtype(amin(filled, dim, keepdim), dtype)

    oracle = "retrograd.testing.references.masked_reductions.masked_amin"

    samples = _samples(*_REDUCTION_SAMPLES)
    errors = _errors()


@op(f"masked.argmax(Tensor x, {_ARG_PARAMS}")
class masked_argmax(MaskedReduction):
    """Return the index of the maximum along `dim` (None: of all, flattened) where the mask is true, 0 where none is.

    As in PyTorch, the indices have the dtype of x unless `dtype` is given.
    """

    def compose(x, mask, *, dim, keepdim, dtype):
        filled = _fill_masked("masked.argmax", x, mask, None if mask is None else _max_identity("masked.argmax", x))
        return cast_to(argmax(filled, dim, keepdim), dtype or x.dtype)

    oracle = "retrograd.testing.references.masked_reductions.masked_argmax"

    samples = _samples({}, {"dim": 1}, {"dim": 0, "keepdim": True, "dtype": "int64"})


@op(f"masked.argmin(Tensor x, {_ARG_PARAMS}")
class masked_argmin(MaskedReduction):
    """Return the index of the minimum along `dim` (None: of all, flattened) where the mask is true, 0 where none is.

    As in PyTorch, the indices have the dtype of x unless `dtype` is given.
    """

    def compose(x, mask, *, dim, keepdim, dtype):
        filled = _fill_masked("masked.argmin", x, mask, None if mask is None else _min_identity("masked.argmin", x))
        return cast_to(argmin(filled, dim, keepdim), dtype or x.dtype)

    oracle = "retrograd.testing.references.masked_reductions.masked_argmin"

    samples = _samples({}, {"dim": 1}, {"dim": 0, "keepdim": True, "dtype": "int64"})


def _divide_or_nan(total, count):
    """Return total / count, NaN where the count is 0."""
    if not hasattr(count, "dtype"):
        return total / (count or math.nan)
    count = cast_to(count, dtypes.real_of(total.dtype))
    return total / choose(count == 0, math.nan, count)


def _count(name, x, mask, dim, keepdim):
    """Return the number of elements that are reduced."""
    return reduced_count(x.shape, dim) if mask is None else sum_over(_broadcast_mask(name, x, mask), dim, keepdim)


@op(f"masked.mean(Tensor x, {_REDUCTION_PARAMS}")
class masked_mean(MaskedReduction):
    """Return the mean over `dim` (None: all) of the elements where the mask is true; NaN where none is.

    >>> import retrograd as rg
    >>> rg.masked.mean(rg.tensor([1.0, 3.0, 8.0]), mask=rg.tensor([True, True, False])).item()
    2.0
    """

    def compose(x, mask, *, dim, keepdim, dtype):
        x = _in_dtype(x, dtype)
        check_floating("masked.mean", x)
        canonical_dims("masked.mean", dim, x.ndim)
        total = sum_over(_fill_masked("masked.mean", x, mask, 0), dim, keepdim)
        count = _count("masked.mean", x, mask, dim, keepdim)
        return _divide_or_nan(total, count)

    oracle = "retrograd.testing.references.masked_reductions.masked_mean"

    samples = _samples(*_REDUCTION_SAMPLES)

    def errors(r):
        yield (r.ints(5, (3,)), None), {}, TypeError, "masked.mean: expected a floating or complex dtype"
        yield (r(3), r.booleans(2, 3)), {}, IndexError, "masked.mean: the mask"


@op("masked.median(Tensor x, int dim=-1, *, bool keepdim=False, dtype? dtype=None, Tensor? mask=None) -> Tensor")
class masked_median(MaskedReduction):
    """Return the median along `dim`, the lower of two in the middle, of the elements where the mask is true.

    NaN where none is, which is a ValueError for integers.  NaN in x do not count.
    """

    def compose(x, mask, *, dim, keepdim, dtype):
        floating = x if dtypes.is_floating(x.dtype) else cast_to(x, dtypes.float_of(x.dtype))
        out = nanmedian(_fill_masked("masked.median", floating, mask, math.nan), dim, keepdim).values
        if dtypes.is_floating(x.dtype):
            return out
        if any_of(isnan(out)).item():
            raise ValueError(f"masked.median: the mask is false for a whole row, whose median {x.dtype} can't hold")
        return cast_to(out, dtype or x.dtype)

    oracle = "retrograd.testing.references.masked_reductions.masked_median"

    samples = _samples({}, {"dim": 1, "keepdim": True})

    def errors(r):
        yield (r.ints(5, (3,)), r(3) * 0), {}, ValueError, "masked.median: .* whole row"


@op(f"masked.logsumexp(Tensor x, {_REDUCTION_PARAMS}")
class masked_logsumexp(MaskedReduction):
    """Return log(sum(exp(x))) over `dim` (None: all) of the elements where the mask is true; -inf where none is."""

    def compose(x, mask, *, dim, keepdim, dtype):
        identity = iinfo(x.dtype).min if x.dtype.kind in "iu" else -math.inf
        out = logsumexp(_fill_masked("masked.logsumexp", x, mask, identity), dim, keepdim)
        return cast_to(out, dtype or x.dtype)

    oracle = "retrograd.testing.references.masked_reductions.masked_logsumexp"

    samples = _samples(*_REDUCTION_SAMPLES)
    errors = _errors()


@op(
    "masked.norm(Tensor x, number ord=2.0, int[]? dim=None, *, bool keepdim=False, dtype? dtype=None, "
    "Tensor? mask=None) -> Tensor"
)
class masked_norm(MaskedReduction):
    """Return `linalg.vector_norm` over `dim` (None: all) of the elements where the mask is true.

    Where none is, 0, or inf for the order -inf.
    """

    def compose(x, mask, *, ord, dim, keepdim, dtype):
        if ord == -math.inf and x.dtype.kind == "c" and mask is not None:
            raise TypeError(f"masked.norm: the order -inf has no identity for {x.dtype}; expected real numbers")
        filled = _fill_masked("masked.norm", x, mask, math.inf if ord == -math.inf else 0)
        return linalg_vector_norm(filled, ord, dim, keepdim, dtype=dtype)

    oracle = "retrograd.testing.references.masked_reductions.masked_norm"

    samples = _samples({}, {"ord": 3.0, "dim": 1}, {"ord": -math.inf, "dim": (0, 1), "keepdim": True})
    errors = _errors()


# ----------------------------------------------------------------------------------------------------- deviations


def _variance(name, x, mask, dim, unbiased, correction, keepdim, dtype):
    if unbiased is not None and correction is not None:
        raise ValueError(f"{name}: unbiased={unbiased} and correction={correction} say the same; pass one of them")
    correction = (0 if unbiased is False else 1) if correction is None else correction
    x = cast_to(x, dtype or (x.dtype if dtypes.is_differentiable(x.dtype) else dtypes.float_of(x.dtype)))
    canonical_dims(name, dim, x.ndim)
    count = _count(name, x, mask, dim, True)
    mean = _divide_or_nan(sum_over(_fill_masked(name, x, mask, 0), dim, True), count)
    deviations = _fill_masked(name, x - mean, mask, 0)
    total = sum_over(cast_to(real_part(deviations * conj(deviations)), x.dtype), dim, keepdim)
    freedom = registry["full"]((), count) if mask is None else count
    freedom = maximum(cast_to(freedom, dtypes.real_of(x.dtype)) - correction, 0.0)
    freedom = freedom if keepdim or mask is None else registry["reshape"](freedom, total.shape)
    unbounded = logical_and(freedom == 0, total != 0)
    return choose(unbounded, math.inf, _divide_or_nan(total, freedom))


_VARIANCE_PARAMS = (
    "(Tensor x, int[]? dim=None, bool? unbiased=None, *, number? correction=None, bool keepdim=False, "
    "dtype? dtype=None, Tensor? mask=None) -> Tensor"
)
_VARIANCE_SAMPLES = ({}, {"dim": 1, "unbiased": False}, {"dim": (0, 1), "keepdim": True, "correction": 2})


@op("masked.var" + _VARIANCE_PARAMS)
class masked_var(MaskedReduction):
    """Return the variance over `dim` (None: all) of the elements where the mask is true.

    `correction` (1 unless given; 0 for unbiased=False) is subtracted from their count n; inf or NaN where n is not
    larger.  The result of complex numbers is complex, as in PyTorch.
    """

    def compose(x, mask, *, dim, unbiased, correction, keepdim, dtype):
        return _variance("masked.var", x, mask, dim, unbiased, correction, keepdim, dtype)

    oracle = "retrograd.testing.references.masked_reductions.masked_var"

    samples = _samples(*_VARIANCE_SAMPLES)

    def errors(r):
        yield (r(3), None), {"unbiased": True, "correction": 1}, ValueError, "masked.var: unbiased=True and"


@op("masked.std" + _VARIANCE_PARAMS)
class masked_std(MaskedReduction):
    """Return the square root of `masked.var`."""

    def compose(x, mask, *, dim, unbiased, correction, keepdim, dtype):
        return sqrt(_variance("masked.std", x, mask, dim, unbiased, correction, keepdim, dtype))

    oracle = "retrograd.testing.references.masked_reductions.masked_std"

    samples = _samples({}, {"dim": (0, 1), "unbiased": False, "keepdim": True})


# ------------------------------------------------------------------------------------- scans and normalisations

_DIM_PARAMS = "int dim, *, dtype? dtype=None, Tensor? mask=None) -> Tensor"


@op(f"masked.cumsum(Tensor x, {_DIM_PARAMS}")
class masked_cumsum(MaskedReduction):
    """Return the cumulative sum along `dim` of the elements where the mask is true; in the dtype of x if none is given.

    >>> import retrograd as rg
    >>> rg.masked.cumsum(rg.tensor([1, 2, 3]), 0, mask=rg.tensor([True, False, True])).tolist()
    [1, 1, 4]
    """

    def compose(x, mask, *, dim, dtype):
        return cast_to(cumsum(_fill_masked("masked.cumsum", x, mask, 0), dim, dtype=dtype or x.dtype), dtype or x.dtype)

    oracle = "retrograd.testing.references.masked_reductions.masked_cumsum"

    samples = _samples(dim=1)
    errors = _errors(dim=0)


@op(f"masked.cumprod(Tensor x, {_DIM_PARAMS}")
class masked_cumprod(MaskedReduction):
    """Return the cumulative product along `dim` of the elements where the mask is true."""

    def compose(x, mask, *, dim, dtype):
        dtype = dtype or x.dtype
        return cast_to(cumprod(_fill_masked("masked.cumprod", x, mask, 1), dim, dtype=dtype), dtype)

    oracle = "retrograd.testing.references.masked_reductions.masked_cumprod"

    samples = _samples(dim=1)
    errors = _errors(dim=0)


@op(f"masked.softmax(Tensor x, {_DIM_PARAMS}")
class masked_softmax(MaskedReduction):
    """Return the softmax along `dim` of the elements where the mask is true, 0 elsewhere; NaN where none is.

    >>> import retrograd as rg
    >>> rg.masked.softmax(rg.zeros(3), 0, mask=rg.tensor([True, True, False])).tolist()
    [0.5, 0.5, 0.0]
    """

    def compose(x, mask, *, dim, dtype):
        check_floating("masked.softmax", x)
        filled = _fill_masked("masked.softmax", x, mask, None if mask is None else _max_identity("masked.softmax", x))
        return registry["softmax"](_in_dtype(filled, dtype), dim)

    oracle = "retrograd.testing.references.masked_reductions.masked_softmax"

    samples = _samples(dim=1)
    errors = _errors(dim=0)


@op(f"masked.log_softmax(Tensor x, {_DIM_PARAMS}")
class masked_log_softmax(MaskedReduction):
    """Return the logarithm of `masked.softmax`."""

    def compose(x, mask, *, dim, dtype):
        check_floating("masked.log_softmax", x)
        identity = None if mask is None else _max_identity("masked.log_softmax", x)
        filled = _fill_masked("masked.log_softmax", x, mask, identity)
        return registry["log_softmax"](_in_dtype(filled, dtype), dim)

    oracle = "retrograd.testing.references.masked_reductions.masked_log_softmax"

    def samples(r):  # of masks that are true everywhere: results of -inf can't be compared by differences
        yield (r(3, 4), r(3, 4) < math.inf), {"dim": 1}
        yield (r(3, 4), None), {"dim": 0}
    errors = _errors(dim=0)


@op(f"masked.softmin(Tensor x, {_DIM_PARAMS}")
class masked_softmin(MaskedReduction):
    """Return `masked.softmax` of -x."""

    def compose(x, mask, *, dim, dtype):
        check_floating("masked.softmin", x)
        filled = _fill_masked("masked.softmin", x, mask, None if mask is None else _min_identity("masked.softmin", x))
        return softmin(_in_dtype(filled, dtype), dim)

    oracle = "retrograd.testing.references.masked_reductions.masked_softmin"

    samples = _samples(dim=1)
    errors = _errors(dim=0)


@op(
    "masked.normalize(Tensor x, number ord, int dim, *, float eps=1e-12, dtype? dtype=None, Tensor? mask=None) "
    "-> Tensor"
)
class masked_normalize(MaskedReduction, opmath="x"):
    """Return x divided by `masked.norm` along `dim`, or by eps where that is smaller; 0 where the mask is false."""

    def compose(x, mask, *, ord, dim, eps, dtype):
        size = masked_norm(x, ord, dim, keepdim=True, dtype=dtype, mask=mask)
        return _fill_masked("masked.normalize", x, mask, 0) / maximum(size, eps)

    def oracle(np, x, mask, ord, dim, eps, dtype):
        x = x if mask is None else x * mask
        return x / np.maximum(np.linalg.norm(x, ord, dim, keepdims=True), eps)

    samples = _samples(ord=2.0, dim=1)
    errors = _errors(ord=2.0, dim=0)


@op(
    "masked.logaddexp(Tensor x, Tensor y, *, dtype? dtype=None, Tensor? input_mask=None, Tensor? other_mask=None) "
    "-> Tensor"
)
class masked_logaddexp(MaskedReduction):
    """Return log(exp(x) + exp(y)), where x or y counts as -inf if its mask is false."""

    def compose(x, y, input_mask, other_mask, *, dtype):
        x = _fill_masked("masked.logaddexp", x, input_mask, -math.inf)
        y = _fill_masked("masked.logaddexp", y, other_mask, -math.inf)
        return _in_dtype(logaddexp(x, y), dtype)

    def oracle(np, x, y, input_mask, other_mask, dtype):
        x, y = (a if m is None else np.where(m, a, -np.inf) for a, m in ((x, input_mask), (y, other_mask)))
        return np.logaddexp(x, y)

    def samples(r):
        yield (r(3, 4), r(3, 4), r.booleans(3, 4), None), {}
        yield (r(3, 4), r(4), None, r.booleans(4)), {}
        yield (r(3), r(3), None, None), {}
