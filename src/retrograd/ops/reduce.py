"""Reductions: sums, means, variances, products, and logical and counting reductions over dimensions."""

# Several operators have the names of builtins (sum, any, all).  In this file these names are the operators.

import math

from retrograd.backend.type_info import finfo
from retrograd.core import Aval, Internal, op, registry, xp
from retrograd.core import dtype as dtypes
from retrograd.core.aval import symbolic
from retrograd.core.dispatch import call_fast
from retrograd.core.hooks import conjugate
from retrograd.ops.create import tensor
from retrograd.ops.family import (
    Composite,
    Reduction,
    canonical_dims,
    cast_to,
    check_floating,
    check_real,
    numel,
    pointwise,
    reduced_shape,
    restore_dims,
)
from retrograd.ops.pointwise import exp, isinf, isnan, logical_not, ne, real_part, where
from retrograd.ops.view import cat, expand, narrow, permute, reshape


def numpy_axes(x, dim):
    """`dim` as NumPy's axis: None for all dimensions, and for dim 0 or -1 of a tensor without dimensions."""
    if x.ndim == 0:
        canonical_dims("sum", dim, 0)  # the shape rule checks again, with the operator's name
        return None
    return dim or None


def reduced_aval(name, x, dim, keepdim, dtype):
    """The aval of x after the reduction over `dim`."""
    return Aval(reduced_shape(x.shape, canonical_dims(name, dim, x.ndim), keepdim), dtype)


def reduced_count(shape, dim, name="reduction"):
    """The number of elements per reduced slice; `name` is used in errors."""
    return numel(shape[d] for d in canonical_dims(name, dim, len(shape)))


def sum_dtype(x, dtype):
    """The dtype of a sum: int64 for integers and booleans."""
    return dtype or (dtypes.int64 if x.dtype.kind in "biu" else x.dtype)


def truth_dtype(dtype):
    """The dtype of a logical reduction: bool, but uint8 for uint8, in which PyTorch once kept masks."""
    return dtype if dtype == dtypes.uint8 else dtypes.bool_


def in_dtype(xp, x, dtype):
    """x cast to `dtype` if that is of a lower category, which NumPy does not cast to by itself."""
    lower = dtype is not None and dtypes.category(dtype) < dtypes.category(x.dtype)
    return xp.cast(x, dtype) if lower else x


def _expand_cotangent(g, x_aval, dim, keepdim):
    """The cotangent of a sum's input: g broadcast to the input's shape."""
    if not dim:
        return call_fast(filled, (cast_to(g, x_aval.dtype),), {"shape": x_aval.shape})
    return expand(cast_to(restore_dims(g, x_aval, dim, keepdim), x_aval.dtype), x_aval.shape)


def _symbolic_count(x_aval, dim, keepdim):
    """The number of elements per reduced slice; as a tensor if a size is symbolic."""
    dims = canonical_dims("mean", dim, x_aval.ndim)
    if symbolic([x_aval.shape[d] for d in dims]) is None:
        return reduced_count(x_aval.shape, dim)
    return sum(filled(registry["ones"]((), dtype=x_aval.dtype), shape=x_aval.shape), dim, keepdim)


@op("filled(Tensor x, *, int[] shape) -> Tensor")
class filled(Internal, linear="x", elements="moved"):
    """A tensor of `shape` filled with the one element of x; the transpose of the sum over all elements."""

    impl = xp.fill_shape

    def shape(x, *, shape):
        return Aval(shape, x.dtype)

    def vjp_x(g, x_aval):
        return registry["reshape"](sum(g), x_aval.shape)

    def batch(batched, n, x, *, shape):
        return expand(reshape(x, (n, *(1,) * len(shape))), (n, *shape))

    def oracle(np, x, shape):
        return np.full(shape, x.item())

    def samples(r):
        yield (r(),), {"shape": (2, 3)}
        yield (r(1, 1),), {"shape": (4,)}


def reduction_samples(r, within=(-2.0, 2.0)):
    """Samples over all dimensions, several, one with keepdim, and of a tensor without dimensions."""
    yield (r(3, 4, within=within),), {}
    yield (r(2, 3, 4, within=within),), {"dim": (0, -1)}
    yield (r(2, 3, 4, within=within),), {"dim": (1,), "keepdim": True}
    yield (r(within=within),), {}


# -------------------------------------------------------------------------------------------- sums and means


def name_of_overload(name, fn):
    """Return the node name of a reduction with PyTorch's number of the overload: 0 reduces all elements, 1 `dim`."""
    return f"{name}Backward{0 if fn.params['dim'] is None else 1}"


@op("sum(Tensor x, int[]? dim=None, bool keepdim=False, *, dtype? dtype=None) -> Tensor")
class sum(Reduction, linear="x"):
    """The sum of elements over `dim` (None or (): all).  Integers and booleans are summed in int64.

    >>> import retrograd as rg
    >>> rg.sum(rg.tensor([[1, 2], [3, 4]]), dim=0).tolist()
    [4, 6]
    """

    def impl(xp, x, *, dim, keepdim, dtype):
        if dim is None and dtype is None and x.dtype.char in "fd":  # fast path: most losses end with it
            return xp.add_up(x, None, None, None, keepdim)
        x = in_dtype(xp, x, dtype)
        return xp.sum(x, axis=numpy_axes(x, dim), dtype=sum_dtype(x, dtype), keepdims=keepdim)

    def node_name(fn):
        return name_of_overload("Sum", fn)

    def shape(x, *, dim, keepdim, dtype):
        return reduced_aval("sum", x, dim, keepdim, sum_dtype(x, dtype))

    def summed(x, *, dim, keepdim, dtype):
        return [{0: d} for d in canonical_dims("sum", dim, x.ndim)]

    def vjp_x(g, x_aval, dim, keepdim):
        return _expand_cotangent(g, x_aval, dim, keepdim)

    oracle = "numpy.sum"

    def samples(r):
        yield from reduction_samples(r)
        yield (r(3, 2),), {"dim": (), "keepdim": True}

    def errors(r):
        yield (r(2, 3),), {"dim": 2}, IndexError, "dim 2 is out of range"
        yield (r(2, 3),), {"dim": (1, -1)}, ValueError, "named twice"


def _check_mean_dtype(dtype):
    if not dtypes.is_differentiable(dtype):
        raise TypeError(
            f"mean: could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: "
            f"{dtypes.scalar_name(dtype)}: expected a floating or complex dtype, got {dtype}; convert with "
            f".to(dtype), or pass dtype="
        )


@op("mean(Tensor x, int[]? dim=None, bool keepdim=False, *, dtype? dtype=None) -> Tensor")
class mean(Reduction, linear="x"):
    """The mean of elements over `dim` (None or (): all); NaN for empty slices.

    >>> import retrograd as rg
    >>> rg.mean(rg.tensor([[1.0, 2.0], [3.0, 4.0]]), dim=1).tolist()
    [1.5, 3.5]
    """

    def impl(xp, x, *, dim, keepdim, dtype):
        _check_mean_dtype(dtype or x.dtype)
        x = in_dtype(xp, x, dtype)
        return xp.mean(x, axis=numpy_axes(x, dim), dtype=dtype, keepdims=keepdim)

    def node_name(fn):
        return name_of_overload("Mean", fn)

    def shape(x, *, dim, keepdim, dtype):
        _check_mean_dtype(dtype or x.dtype)
        return reduced_aval("mean", x, dim, keepdim, dtype or x.dtype)

    def vjp_x(g, x_aval, dim, keepdim):
        return _expand_cotangent(g / _symbolic_count(x_aval, dim, keepdim), x_aval, dim, keepdim)

    def compose_divided(x, *, dim, keepdim, dtype):
        dtype = dtype or x.dtype
        total = sum(cast_to(x, dtypes.opmath_of(dtype)), dim, keepdim)
        return cast_to(total / math.prod([x.shape[d] for d in canonical_dims("mean", dim, x.ndim)]), dtype)

    oracle = "numpy.mean"

    samples = reduction_samples

    def errors(r):
        yield (r.ints(5, (3,)),), {}, TypeError, "got int64; convert"


@op("nansum(Tensor x, int[]? dim=None, bool keepdim=False, *, dtype? dtype=None) -> Tensor")
class nansum(Reduction, opmath="x"):
    """The sum over `dim` (None or (): all) of the elements that are not NaN; real dtypes only.

    >>> import retrograd as rg
    >>> rg.nansum(rg.tensor([1.0, float("nan"), 2.0])).item()
    3.0
    """

    def impl(xp, x, *, dim, keepdim, dtype):
        xp.real_only("nansum", x)
        return xp.nansum_over(x, numpy_axes(x, dim), keepdim, sum_dtype(x, dtype))

    def shape(x, *, dim, keepdim, dtype):
        return reduced_aval("nansum", x, dim, keepdim, sum_dtype(x, dtype))

    def vjp_x(g, x, dim, keepdim):
        return cast_to(restore_dims(g, x, dim, keepdim), x.dtype) * cast_to(logical_not(isnan(x)), x.dtype)

    def jvp_x(t, x, dim, keepdim, dtype):
        return sum(t * cast_to(logical_not(isnan(x)), x.dtype), dim, keepdim, dtype=dtype)

    oracle = "numpy.nansum"

    def samples(r):
        yield from reduction_samples(r)
        yield (where(tensor([True, False, True]), r(2, 3), math.nan),), {"dim": 1}


@op("nanmean(Tensor x, int[]? dim=None, bool keepdim=False, *, dtype? dtype=None) -> Tensor")
class nanmean(Composite):
    """The mean over `dim` (None or (): all) of the elements that are not NaN; NaN if there are none.

    >>> import retrograd as rg
    >>> rg.nanmean(rg.tensor([1.0, float("nan"), 2.0])).item()
    1.5
    """

    def compose(x, *, dim, keepdim, dtype):
        check_real("nanmean", x)
        check_floating("nanmean", Aval((), dtype or x.dtype))
        canonical_dims("nanmean", dim, x.ndim)
        total = nansum(x, dim, keepdim, dtype=dtype)
        count = cast_to(sum(logical_not(isnan(x)), dim, keepdim), total.dtype)
        return total / where(count == 0, math.nan, count)

    oracle = "numpy.nanmean"

    def samples(r):
        yield from reduction_samples(r)
        yield (where(tensor([True, False, True]), r(2, 3), math.nan),), {"dim": 1, "keepdim": True}

    def errors(r):
        yield (r.ints(5, (3,)),), {}, TypeError, "nanmean: .*int64"
        yield (r(3),), {"dtype": "int64"}, TypeError, "nanmean: .*int64"


@op("variance(Tensor x, int[]? dim=None, bool keepdim=False, *, number correction=1) -> Tensor")
class variance(Internal, Reduction, opmath="x", node_name="VarBackward0"):
    """The variance with divisor n - correction; real for complex x, too."""

    def impl(xp, x, *, dim, keepdim, correction):
        check_floating("var", x)
        return xp.var(x, axis=numpy_axes(x, dim), ddof=correction, keepdims=keepdim)

    def shape(x, *, dim, keepdim, correction):
        check_floating("var", x)
        return reduced_aval("var", x, dim, keepdim, dtypes.real_of(x.dtype))

    def vjp_x(g, x, dim, keepdim, correction):
        return restore_dims(g, x, dim, keepdim) * _variance_derivative(x, dim, correction)

    def jvp_x(t, x, dim, keepdim, correction):
        return real_part(sum(t * _variance_derivative(x, dim, correction), dim, keepdim))

    oracle = "retrograd.testing.references.reduce.moments"

    def samples(r):
        yield (r(3, 4),), {}
        yield (r(2, 3, 4),), {"dim": (0, -1)}
        yield (r(2, 3, 4),), {"dim": (1,), "keepdim": True}
        yield (r(3, 4),), {"dim": 1, "correction": 0}


def _variance_derivative(x, dim, correction):
    freedom = reduced_count(x.shape, dim) - correction
    return conjugate(x - mean(x, dim, keepdim=True)) * (2 / freedom if freedom > 0 else math.nan)


# PyTorch's older keyword: unbiased=True means correction=1, unbiased=False correction=0.  Passed as the second
# positional argument it takes the position of `dim`.
_VAR = "(Tensor x, dims? dim=None, bool? unbiased=None, bool keepdim=False, *, number? correction=None) -> Tensor"


def _var(name, x, dim, unbiased, keepdim, correction):
    """Return the variance and the dimensions that it reduces."""
    if isinstance(dim, bool):
        if unbiased is not None:
            raise TypeError(f"{name}: dim must be integers, got {dim}, which stands for unbiased, and that is given")
        dim, unbiased = None, dim
    if unbiased is not None and correction is not None:
        raise TypeError(f"{name}: unbiased={unbiased} and correction={correction} say the same; pass one of them")
    check_floating(name, x)
    canonical_dims(name, dim, x.ndim)
    correction = int(unbiased) if unbiased is not None else 1 if correction is None else correction
    return call_fast(variance, (x,), {"dim": dim, "keepdim": keepdim, "correction": correction}), dim


@op("var" + _VAR)
class var(Composite):
    """The variance over `dim` (None: all): sum(|x - mean(x)|^2) / (n - correction).

    >>> import retrograd as rg
    >>> rg.tensor([1.0, 2.0, 6.0]).var().item()
    7.0
    """

    def compose(x, *, dim, unbiased, keepdim, correction):
        return _var("var", x, dim, unbiased, keepdim, correction)[0]

    oracle = "retrograd.testing.references.reduce.moments"

    def samples(r):
        yield (r(3, 4),), {"dim": 1, "unbiased": False}
        yield (r(3, 4),), {"dim": False}

    def errors(r):
        yield (r.ints(5, (3,)),), {}, TypeError, "got int64"
        yield (r(3),), {"dim": True, "unbiased": True}, TypeError, "var: dim must be integers, got True"
        yield (r(3),), {"unbiased": False, "correction": 1}, TypeError, "var: unbiased=False and correction=1"


@op("std" + _VAR)
class std(Composite, opmath="x"):
    """The standard deviation over `dim`, the square root of `var`.  Its derivative where it is 0 is taken as 0."""

    def compose(x, *, dim, unbiased, keepdim, correction):
        return sqrt_or_zero(_var("std", x, dim, unbiased, keepdim, correction)[0])

    oracle = "retrograd.testing.references.reduce.std"

    def samples(r):
        yield (r(3, 4),), {}
        yield (r(3, 4),), {"dim": 0, "keepdim": True, "correction": 0}



@op("var_mean" + _VAR.replace("-> Tensor", "-> (Tensor, Tensor)"))
class var_mean(Composite):
    """The variance and the mean over `dim`, as a tuple."""

    method = False

    def compose(x, *, dim, unbiased, keepdim, correction):
        squared, dim = _var("var_mean", x, dim, unbiased, keepdim, correction)
        return squared, mean(x, dim, keepdim)

    oracle = "retrograd.testing.references.reduce.var_mean"

    def samples(r):
        yield (r(3, 4),), {"dim": 1}
        yield (r(3, 4),), {"unbiased": False, "keepdim": True}



@op("std_mean" + _VAR.replace("-> Tensor", "-> (Tensor, Tensor)"))
class std_mean(Composite, opmath="x"):
    """The standard deviation and the mean over `dim`, as a tuple."""

    method = False

    def compose(x, *, dim, unbiased, keepdim, correction):
        squared, dim = _var("std_mean", x, dim, unbiased, keepdim, correction)
        return sqrt_or_zero(squared), mean(x, dim, keepdim)

    oracle = "retrograd.testing.references.reduce.std_mean"

    def samples(r):
        yield (r(3, 4),), {"dim": (0, 1)}
        yield (r(3, 4),), {"dim": 0, "correction": 0}
        yield (r(3, 4),), {"dim": True}

    def errors(r):
        yield (r.ints(5, (3,)),), {}, TypeError, "std_mean: .*int64"
        yield (r(3),), {"dim": 1}, IndexError, "std_mean: dim 1 is out of range"


sqrt_or_zero = pointwise("sqrt_or_zero(Tensor x) -> Tensor", xp.sqrt,
    "The square root of x, with derivative 0 at 0.",
    vjp=lambda g, out: registry["share_grad"](g, out * 2),
    promotion="float", internal=True, in_place=False, domain=(0.2, 3.0),
    oracle=lambda np, x: x**0.5)  # fmt: skip


# -------------------------------------------------------------------------------------------------- products


@op("prod(Tensor x, int[]? dim=None, bool keepdim=False, *, dtype? dtype=None) -> Tensor")
class prod(Reduction, opmath="x", in_stages=True):
    """The product of elements over `dim` (None or (): all); derivatives of every order hold where factors are 0.

    >>> import retrograd as rg
    >>> rg.prod(rg.tensor([[1, 2], [3, 4]]), dim=1).tolist()
    [2, 12]
    """

    def impl(xp, x, *, dim, keepdim, dtype):
        x = in_dtype(xp, x, dtype)
        return xp.prod(x, axis=numpy_axes(x, dim), dtype=sum_dtype(x, dtype), keepdims=keepdim)

    def node_name(fn):
        return name_of_overload("Prod", fn)

    def shape(x, *, dim, keepdim, dtype):
        return reduced_aval("prod", x, dim, keepdim, sum_dtype(x, dtype))

    def vjp_x(g, x, dim, keepdim):
        return cast_to(restore_dims(g, x, dim, keepdim), x.dtype) * product_of_others(x, dim)

    def jvp_x(t, x, dim, keepdim, dtype):
        return sum(t * product_of_others(x, dim), dim, keepdim, dtype=dtype)

    oracle = "numpy.prod"

    def samples(r):
        yield from reduction_samples(r)
        yield (r(5) * (r.ints(2, (5,)) * 2 - 1),), {}


def product_of_others(x, dim):
    """For each element, the product of all others in its slice; without division, so that zeros are safe."""
    dims = canonical_dims("prod", dim, x.ndim)
    order = (*(d for d in range(x.ndim) if d not in dims), *dims)
    rows = permute(x, order)
    flat = reshape(rows, (*rows.shape[: x.ndim - len(dims)], reduced_count(x.shape, dim)))
    others = reshape(_product_of_others_in_row(flat), rows.shape)
    return permute(others, tuple(order.index(d) for d in range(x.ndim)))


def _product_of_others_in_row(x):
    """The products of others in each row: halve by multiplying pairs, recurse, multiply by the pair's other factor."""
    n = x.shape[-1]
    if n <= 1:
        return registry["ones_like"](x)
    half = (n + 1) // 2
    a, b = narrow(x, -1, 0, half), narrow(x, -1, half, n - half)
    if n % 2:
        b = cat([b, registry["ones"]((*x.shape[:-1], 1), dtype=x.dtype)], dim=-1)
    rest = _product_of_others_in_row(a * b)
    return narrow(cat([rest * b, rest * a], dim=-1), -1, 0, n)


# ------------------------------------------------------------------------------------------- truth, counting


def _axes_or_none(x, dim):
    """`dim` as axes, where () means no dimension (for `sum` it means all)."""
    return () if dim == () else numpy_axes(x, dim)


class LogicalReduction(Reduction, differentiable=False):
    """Base of logical reductions over `dim` (None: all; (): elementwise)."""

    @classmethod
    def shape(cls, x, *, dim, keepdim):
        """That of x without the reduced dimensions."""
        dtype = truth_dtype(x.dtype)
        return Aval(x.shape, dtype) if dim == () else reduced_aval(cls.__name__, x, dim, keepdim, dtype)

    @classmethod
    def batch(cls, batched, n, /, x, *, dim=None, keepdim=False):
        """The dimensions count from behind the examples; none is none there too."""
        if dim == ():
            return registry[cls.__name__](x, ())
        return super().batch(batched, n, x, dim=dim, keepdim=keepdim)

    @staticmethod
    def samples(r):
        """Samples over all dimensions, several, one, and none."""
        yield from reduction_samples(r)
        yield (r.ints(2, (3, 2)),), {"dim": (0, 1)}
        yield (r.ints(2, (3, 2)),), {"dim": ()}
        yield (cast_to(r.ints(2, (3, 2)), dtypes.uint8),), {"dim": 0}


@op("any(Tensor x, int[]? dim=None, bool keepdim=False) -> Tensor")
class any(LogicalReduction):
    """Whether any element over `dim` (None: all, (): elementwise) is nonzero, as bool; as uint8 for uint8."""

    def impl(xp, x, *, dim, keepdim):
        found = xp.any_true(x, _axes_or_none(x, dim), keepdim)
        return found if x.dtype != dtypes.uint8 else xp.cast(found, x.dtype)

    def oracle(np, x, dim, keepdim):
        return np.any(x, axis=dim, keepdims=keepdim).astype(truth_dtype(x.dtype))


@op("all(Tensor x, int[]? dim=None, bool keepdim=False) -> Tensor")
class all(LogicalReduction):
    """Whether all elements over `dim` (None: all, (): elementwise) are nonzero, as bool; as uint8 for uint8."""

    def impl(xp, x, *, dim, keepdim):
        found = xp.all_true(x, _axes_or_none(x, dim), keepdim)
        return found if x.dtype != dtypes.uint8 else xp.cast(found, x.dtype)

    def oracle(np, x, dim, keepdim):
        return np.all(x, axis=dim, keepdims=keepdim).astype(truth_dtype(x.dtype))


@op("count_nonzero(Tensor x, int[]? dim=None) -> Tensor")
class count_nonzero(Composite):
    """The number of nonzero elements over `dim` (None or (): all), in int64."""

    def compose(x, *, dim):
        canonical_dims("count_nonzero", dim, x.ndim)
        return sum(ne(x, 0), dim)

    def oracle(np, x, dim):
        return np.count_nonzero(x, axis=None if dim == () else dim)

    def samples(r):
        yield (r.ints(2, (3, 4)),), {}
        yield (r.ints(2, (3, 4)),), {"dim": 1}


@op("logsumexp(Tensor x, int[]? dim=None, bool keepdim=False) -> Tensor")
class logsumexp(Reduction, aliases="special.logsumexp", opmath="x", in_stages=True):
    """log(sum(exp(x))) over `dim` (None or (): all), without overflow; -inf for empty slices.

    Integers are converted to floats.

    >>> import retrograd as rg
    >>> round(rg.logsumexp(rg.tensor([1000.0, 1000.0]), dim=0).item(), 3)
    1000.693
    """

    def impl(xp, x, *, dim, keepdim):
        return xp.logsumexp(xp.cast(x, dtypes.float_of(x.dtype)), numpy_axes(x, dim), keepdim)

    def shape(x, *, dim, keepdim):
        return reduced_aval("logsumexp", x, dim, keepdim, dtypes.float_of(x.dtype))

    def vjp_x(g, x, out, dim, keepdim):
        return restore_dims(g, x, dim, keepdim) * _softmax_over(x, out, dim, keepdim)

    def jvp_x(t, x, out, dim, keepdim):
        return sum(t * _softmax_over(x, out, dim, keepdim), dim, keepdim)

    def oracle(np, x, dim, keepdim):
        return np.log(np.sum(np.exp(x), axis=dim or None, keepdims=keepdim))

    def samples(r):
        yield from reduction_samples(r)
        yield (r.ints(5, (3,)),), {"dim": 0}


def _softmax_over(x, out, dim, keepdim):
    """The softmax of x, from its logsumexp; without inf - inf where that is infinite."""
    out = restore_dims(out, x, dim, keepdim)
    if out.dtype.kind != "c":  # of inf, finite numbers have no share
        out = where(out == math.inf, float(finfo(out.dtype).max), out)
    return exp(x - where(isinf(out), 0, out))
