"""Scans along a dimension: cumulative sums, products, maxima, minima and integrals; differences and slopes."""

from retrograd.core import Aval, Internal, Tensor, op, registry
from retrograd.core import dtype as dtypes
from retrograd.core.errors import OperandIndexError
from retrograd.ops.as_tensor import as_tensor, tensor
from retrograd.ops.family import (
    AlongDims,
    Composite,
    Rowwise,
    canonical_dim,
    canonical_dims,
    cast_to,
    check_floating,
    numel,
)
from retrograd.ops.gather import scatter_sum, take_along_dim
from retrograd.ops.index import select
from retrograd.ops.max_min import check_ordered
from retrograd.ops.pointwise import detach, exp, isfinite, isinf, logical_and, logical_or, logical_xor, real_part, where
from retrograd.ops.reduce import in_dtype, sum_dtype
from retrograd.ops.reduce import sum as sum_over
from retrograd.ops.view import cat, flip, narrow, reshape


def _dim_errors(r):
    yield (r(2, 3),), {"dim": 2}, IndexError, "dim 2 is out of range"


def _samples(r):
    yield (r(5),), {"dim": 0}
    yield (r(2, 3, 4),), {"dim": -2}


def check_dimension(name, x, dim):
    """`dim` as a nonnegative number, for an operator that needs at least one dimension."""
    if x.ndim == 0:
        raise OperandIndexError(f"{name}: expected at least one dimension, got a tensor that has none")
    return canonical_dim(name, dim, x.ndim)


# ------------------------------------------------------------------------------------- linear recurrences


@op("linear_recurrence(Tensor b, Tensor a, *, int dim) -> Tensor")
class linear_recurrence(Internal, AlongDims, linear="b", opmath="b a"):
    """h[i] = b[i] + a[i] h[i - 1] along `dim`; derivatives of cumprod and logcumsumexp use it."""

    def impl(xp, b, a, *, dim):
        canonical_dim("linear_recurrence", dim, b.ndim)
        return xp.linear_recurrence(b, a, dim)

    def shape(b, a, *, dim):
        if b.shape != a.shape:
            raise ValueError(f"linear_recurrence: shapes {b.shape} and {a.shape} differ")
        canonical_dim("linear_recurrence", dim, b.ndim)
        return b

    def vjp_b(g, a, dim):
        return transposed_recurrence(g, a, dim)

    def vjp_a(g, a, out, dim):
        return transposed_recurrence(g, a, dim) * shift_by_one(out, dim, 0)

    def jvp_a(t, a, out, dim):
        return linear_recurrence(t * shift_by_one(out, dim, 0), a, dim=dim)

    def oracle(np, b, a, dim):
        """Return h[i] = b[i] + a[i] h[i - 1]."""
        h, before = np.empty_like(b), 0
        for i in range(b.shape[dim]):
            at = (slice(None),) * dim + (i,)
            h[at] = before = b[at] + a[at] * before
        return h

    def samples(r):
        yield (r(5), r(5)), {"dim": 0}
        yield (r(2, 3, 4), r(2, 3, 4)), {"dim": 1}
        yield (r(1), r(1)), {"dim": 0}


def transposed_recurrence(g, a, dim):
    """The transpose of `linear_recurrence`: h[i] = g[i] + a[i + 1] h[i + 1]."""
    return flip(linear_recurrence(flip(g, dim), shift_by_one(flip(a, dim), dim, 0), dim=dim), dim) if g.ndim else g


def shift_by_one(x, dim, first):
    """x shifted by one index along `dim`, with the value `first` in front."""
    n = x.shape[dim] if x.ndim else 1
    if n <= 1:
        return registry["full_like"](x, first)
    front = registry["full_like"](narrow(x, dim, 0, 1), first)
    return cat([front, narrow(x, dim, 0, n - 1)], dim=dim)


# -------------------------------------------------------------------------------------- sums and products


@op("cumsum(Tensor x, int dim, *, dtype? dtype=None) -> Tensor")
class cumsum(AlongDims, linear="x", in_place=True, opmath="x"):
    """The cumulative sum of x along `dim`.  Integers and booleans are summed in int64.

    >>> import retrograd as rg
    >>> rg.cumsum(rg.tensor([1, 2, 3]), dim=0).tolist()
    [1, 3, 6]
    """

    def impl(xp, x, *, dim, dtype):
        x = in_dtype(xp, x, dtype)
        return xp.cumsum(x, axis=dim, dtype=sum_dtype(x, dtype)).reshape(x.shape)

    def shape(x, *, dim, dtype):
        canonical_dim("cumsum", dim, x.ndim)
        return Aval(x.shape, sum_dtype(x, dtype))

    def vjp_x(g, x_aval, dim):
        g = cast_to(g, x_aval.dtype)
        return flip(cumsum(flip(g, dim), dim), dim) if g.ndim else g

    def oracle(np, x, dim, dtype):
        return np.cumsum(x, axis=dim)

    samples = _samples
    errors = _dim_errors


@op("cumprod(Tensor x, int dim, *, dtype? dtype=None) -> Tensor")
class cumprod(AlongDims, in_place=True, opmath="x", snapshots="out"):
    """The cumulative product of x along `dim`; derivatives of every order hold where factors are 0.

    >>> import retrograd as rg
    >>> rg.cumprod(rg.tensor([1, 2, 3, 4]), dim=0).tolist()
    [1, 2, 6, 24]
    """

    def impl(xp, x, *, dim, dtype):
        x = in_dtype(xp, x, dtype)
        return xp.cumprod(x, axis=dim, dtype=sum_dtype(x, dtype)).reshape(x.shape)

    def shape(x, *, dim, dtype):
        canonical_dim("cumprod", dim, x.ndim)
        return Aval(x.shape, sum_dtype(x, dtype))

    # Factor i is in every product from index i on: out[i - 1] (1 + x[i + 1] + x[i + 1] x[i + 2] + ...).

    def vjp_x(g, x, out, dim):
        return cast_to(shift_by_one(out, dim, 1) * transposed_recurrence(g, cast_to(x, g.dtype), dim), x.dtype)

    def jvp_x(t, x, out, dim):
        return linear_recurrence(shift_by_one(out, dim, 1) * t, cast_to(x, out.dtype), dim=dim)

    def oracle(np, x, dim, dtype):
        return np.cumprod(x, axis=dim)

    samples = _samples
    errors = _dim_errors


@op("logcumsumexp(Tensor x, int dim) -> Tensor")
class logcumsumexp(Rowwise, opmath="x"):
    """log(cumsum(exp(x))) along `dim`; neither values nor derivatives overflow.

    >>> import retrograd as rg
    >>> [round(v, 3) for v in rg.logcumsumexp(rg.tensor([1000.0, 1000.0]), dim=0).tolist()]
    [1000.0, 1000.693]
    """

    def impl(xp, x, *, dim):
        check_floating("logcumsumexp", x)
        return xp.running_logsumexp(x, dim)

    def shape(x, *, dim):
        check_floating("logcumsumexp", x)
        canonical_dim("logcumsumexp", dim, x.ndim)
        return x

    # The weight of x[j] in out[i] is exp(x[j] - out[j]) times all decays from j + 1 to i; none is more than 1.

    def vjp_x(g, x, dim):
        weight, decay = _weights(x, dim)
        return weight * transposed_recurrence(g, decay, dim)

    def jvp_x(t, x, dim):
        weight, decay = _weights(x, dim)
        return linear_recurrence(weight * t, decay, dim=dim)

    def oracle(np, x, dim):
        return np.logaddexp.accumulate(x, axis=dim)

    def samples(r):
        yield from _samples(r)
        yield (r(6) * 100,), {"dim": 0}

    def errors(r):
        yield (r.ints(5, (3,)),), {"dim": 0}, TypeError, "logcumsumexp: .*int64"


def _weights(x, dim):
    """exp(x - out), and the decay of earlier weights in each step; without inf - inf.

    They do not change if a number is added to x, and are computed with a largest element of 0: `out` is rounded to its
    own size, and the difference from it of numbers around 10000 has three digits in single precision, none in half.
    """
    if numel(x.shape):
        top = registry["amax"](real_part(detach(x)), dim, keepdim=True)
        x = x - where(isfinite(top), top, 0)
    out = logcumsumexp(x, dim)
    infinite = isinf(out)
    restarts = logical_or(infinite, shift_by_one(infinite, dim, True))
    out = where(logical_and(infinite, real_part(out) < 0), 0, out)  # where the sum is inf, finite x have no weight
    decay = exp(where(restarts, 0, shift_by_one(out, dim, 0) - out))
    return exp(x - out), where(restarts, 0, decay)


# ------------------------------------------------------------------------------------------------ extremes


@op("running_extremes(Tensor x, *, int dim, bool largest) -> (Tensor values, Tensor indices)")
class running_extremes(Internal, Rowwise):
    """The cumulative maximum or minimum, and the index of its last occurrence so far.  NaN wins."""

    def impl(xp, x, *, dim, largest):
        check_ordered("running_extremes", x)
        return xp.running_extremes(x, dim, largest)

    def node_name(fn):
        return "CummaxBackward0" if fn.params["largest"] else "CumminBackward0"

    def shape(x, *, dim, largest):
        check_ordered("running_extremes", x)
        canonical_dim("cummax" if largest else "cummin", dim, x.ndim)
        return x, Aval(x.shape, dtypes.int64)

    def vjp_x(g, indices, x_aval, dim):
        return scatter_sum(g[0], detach(indices), shape=x_aval.shape, dim=dim) if x_aval.ndim else g[0]

    def jvp_x(t, out, dim):
        return take_along_dim(t, detach(out[1]), dim) if t.ndim else t, None

    oracle = "retrograd.testing.references.scan.running_extremes"

    def samples(r):
        yield (r(3, 4),), {"dim": 1, "largest": True}
        yield (r(3, 4),), {"dim": 0, "largest": False}


@op("cummax(Tensor x, int dim) -> (Tensor values, Tensor indices)")
class cummax(Composite):
    """The cumulative maximum of x along `dim`, and the index of its last occurrence so far.  NaN wins.

    >>> import retrograd as rg
    >>> values, indices = rg.cummax(rg.tensor([1.0, 3.0, 2.0]), dim=0)
    >>> values.tolist(), indices.tolist()
    ([1.0, 3.0, 3.0], [0, 1, 1])
    """

    def compose(x, *, dim):
        check_ordered("cummax", x)
        return running_extremes(x, dim=dim, largest=True)

    oracle = "retrograd.testing.references.scan.cummax"

    samples = _samples
    errors = _dim_errors


@op("cummin(Tensor x, int dim) -> (Tensor values, Tensor indices)")
class cummin(Composite):
    """The cumulative minimum of x along `dim`, and the index of its last occurrence so far.  NaN wins."""

    def compose(x, *, dim):
        check_ordered("cummin", x)
        return running_extremes(x, dim=dim, largest=False)

    oracle = "retrograd.testing.references.scan.cummin"

    samples = _samples
    errors = _dim_errors


# ----------------------------------------------------------------------------------------------- integrals


@op("trapezoid(Tensor y, Tensor? x=None, *, number? dx=None, int dim=-1) -> Tensor")
class trapezoid(Composite, aliases="trapz"):
    """The integral of y along `dim` by the trapezoidal rule, at the points x or with spacing dx (default 1).

    x has one dimension, or broadcasts against y.

    >>> import retrograd as rg
    >>> rg.trapezoid(rg.tensor([1.0, 2.0, 4.0]), rg.tensor([0.0, 1.0, 3.0])).item()
    7.5
    """

    method = False

    def compose(y, x, *, dx, dim):
        at, step = _spacings("trapezoid", y, x, dx, dim)
        n = y.shape[at]
        if n == 0:  # nothing is divided, and nothing recorded
            return registry["zeros"](y.shape[:at] + y.shape[at + 1 :], dtype=y.dtype)
        if x is not None:
            return sum_over(_adjacent_sums(y, at) * step, (at - y.ndim,)) / 2
        ends = [select(y, at, i) for i in (0, n - 1)]
        return (sum_over(y, (at,)) - (ends[0] + ends[1]) / 2) * step

    oracle = "retrograd.testing.references.scan.trapezoid"

    def samples(r):
        yield (r(5), None), {}
        yield (r(3, 5), r(5)), {}
        yield (r(3, 4), None), {"dx": 0.5, "dim": 0}
        yield (r(3, 4), r(3, 4)), {"dim": 0}

    def errors(r):
        yield (r(3), r(2)), {}, ValueError, "trapezoid: 2 coordinates x for 3 values"
        yield (r(3), r(3)), {"dx": 1}, TypeError, "trapezoid: .* x or dx"
        yield (r(), None), {}, IndexError, "trapezoid: expected at least one dimension"


@op("cumulative_trapezoid(Tensor y, Tensor? x=None, *, number? dx=None, int dim=-1) -> Tensor")
class cumulative_trapezoid(Composite):
    """The cumulative integral of y along `dim` by the trapezoidal rule, from the second point on.

    >>> import retrograd as rg
    >>> rg.cumulative_trapezoid(rg.tensor([1.0, 2.0, 4.0])).tolist()
    [1.5, 4.5]
    """

    method = False

    def compose(y, x, *, dx, dim):
        at, step = _spacings("cumulative_trapezoid", y, x, dx, dim)
        return cumsum(_adjacent_sums(y, at) * step, at - y.ndim) / 2

    oracle = "retrograd.testing.references.scan.cumulative_trapezoid"

    def samples(r):
        yield (r(5), None), {"dx": 2}
        yield (r(3, 4), r(3)), {"dim": 0}

    def errors(r):
        yield (r(3), r(2)), {}, ValueError, "cumulative_trapezoid: 2 coordinates x for 3 values"


def _spacings(name, y, x, dx, dim):
    """The dimension as a nonnegative number, and the spacings along it."""
    at = check_dimension(name, y, dim)
    if x is None:
        return at, 1 if dx is None else dx
    if dx is not None:
        raise TypeError(f"{name}: give x or dx, not both")
    if x.ndim == 1:
        if x.shape[0] != y.shape[at]:
            raise ValueError(f"{name}: {x.shape[0]} coordinates x for {y.shape[at]} values along dimension {at}")
        x = reshape(x, (-1,) + (1,) * (y.ndim - 1 - at))
    return at, _differences(x, at - y.ndim)


def _adjacent(x, dim):
    """x without its last, and x without its first index along `dim`."""
    rest = max(x.shape[dim] - 1, 0)
    return narrow(x, dim, 0, rest), narrow(x, dim, x.shape[dim] - rest, rest)


def _adjacent_sums(y, dim):
    first, second = _adjacent(y, dim)
    return first + second


def _differences(x, dim):
    first, second = _adjacent(x, dim)
    return logical_xor(first, second) if x.dtype.kind == "b" else second - first


# --------------------------------------------------------------------------------------------- differences


@op("diff(Tensor x, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor")
class diff(Composite):
    """The n-th difference of adjacent elements along `dim`, after x is extended by `prepend` and `append`.

    >>> import retrograd as rg
    >>> rg.diff(rg.tensor([1, 3, 6])).tolist()
    [2, 3]
    """

    def compose(x, prepend, append, *, n, dim):
        at = check_dimension("diff", x, dim)
        if n < 0:
            raise ValueError(f"diff: n must not be negative, got {n}")
        if n == 0:  # and x is not extended, as in NumPy and PyTorch
            return registry["clone"](x)
        parts = [part for part in (prepend, x, append) if part is not None]
        x = cat(parts, dim=at) if len(parts) > 1 else x
        for _ in range(min(n, x.shape[at])):
            x = _differences(x, at)
        return x

    def oracle(np, x, prepend, append, n, dim):
        return np.diff(np.concatenate([p for p in (prepend, x, append) if p is not None], axis=dim), n, dim)

    def samples(r):
        yield (r(5), None, None), {}
        yield (r(3, 5), None, None), {"n": 2, "dim": 0}
        yield (r(3, 5), r(3, 1), r(3, 2)), {}
        yield (r(3), None, None), {"n": 0}

    def errors(r):
        yield (r(3), None, None), {"n": -1}, ValueError, "diff: n must not be negative"
        yield (r(), None, None), {}, IndexError, "diff: expected at least one dimension"


@op("gradient(Tensor x, *, any spacing=1, int[]? dim=None, int edge_order=1) -> Tensor[]")
class gradient(Composite):
    """The numerical derivative of a sampled function along each dimension, as a tuple; second order in the interior.

    `spacing` is the spacing, or a list with one entry per dimension, each a number or a tensor of coordinates.  At the
    boundary the slope is that of the line through two points, or with edge_order=2 of the parabola through three.

    >>> import retrograd as rg
    >>> rg.gradient(rg.tensor([1.0, 2.0, 4.0]), spacing=2.0)[0].tolist()
    [0.5, 0.75, 1.0]
    """

    method = False

    def compose(x, *, spacing, dim, edge_order):
        dims = canonical_dims("gradient", dim, x.ndim)
        if edge_order not in (1, 2):
            raise ValueError(f"gradient: edge_order must be 1 or 2, got {edge_order}")
        spacing = 1 if spacing is None else spacing
        if isinstance(spacing, Tensor) or not isinstance(spacing, (list, tuple)):
            spacing = [spacing] * len(dims)
        if len(spacing) != len(dims):
            raise ValueError(f"gradient: {len(spacing)} spacings for {len(dims)} dimensions")
        return tuple(_gradient_along(x, at, h, edge_order) for at, h in zip(dims, spacing, strict=True))

    exempt = {"bfloat16": "coordinates of float32 make the slopes float32, by promotion"}

    def oracle(np, x, spacing, dim, edge_order):
        spacing = spacing if isinstance(spacing, list) else [1 if spacing is None else spacing] * x.ndim
        out = np.gradient(x, *[np.asarray(s, float) for s in spacing], axis=dim, edge_order=edge_order)
        return out if isinstance(out, (tuple, list)) else [out]

    def samples(r):
        yield (r(5),), {"spacing": 0.5}
        yield (r(3, 4),), {"edge_order": 2}
        yield (r(3, 4),), {"spacing": [2.0], "dim": 1}
        yield (r(3, 4),), {"spacing": None}
        yield (r(4, 3),), {"spacing": [tensor([0.0, 1.0, 3.0, 3.5])], "dim": 0, "edge_order": 2}

    def errors(r):
        yield (r(2),), {"edge_order": 2}, ValueError, "gradient: dimension 0 has size 2, but 3 is needed"
        yield (r(3),), {"edge_order": 3}, ValueError, "edge_order must be 1 or 2"
        yield (r(3, 3),), {"spacing": [2.0]}, ValueError, "1 spacings for 2 dimensions"


def _gradient_along(x, at, spacing, edge_order):
    n = x.shape[at]
    if n <= edge_order:
        raise ValueError(f"gradient: dimension {at} has size {n}, but {edge_order + 1} is needed")
    inside, first, last = (_nonuniform_slopes if getattr(spacing, "ndim", 0) else _uniform_slopes)(x, at, spacing)
    if edge_order == 2:  # the slope of a parabola is linear; its mean over the first step is `first`
        first, last = 2 * first - narrow(inside, at, 0, 1), 2 * last - narrow(inside, at, n - 3, 1)
    return cat([first, inside, last], dim=at)


def _uniform_slopes(x, at, step):
    """The slopes at interior points, and over the first and the last step."""
    n = x.shape[at]
    inside = (narrow(x, at, 2, n - 2) - narrow(x, at, 0, n - 2)) / (2 * step)
    return inside, *(_differences(narrow(x, at, i, 2), at) / step for i in (0, n - 2))


def _nonuniform_slopes(x, at, coordinates):
    n = x.shape[at]
    steps = _differences(reshape(as_tensor(coordinates), (n,) + (1,) * (x.ndim - 1 - at)), -(x.ndim - at))
    slopes = _differences(x, at) / steps
    before, after = narrow(steps, 0, 0, n - 2), narrow(steps, 0, 1, n - 2)
    left, right = narrow(slopes, at, 0, n - 2), narrow(slopes, at, 1, n - 2)
    inside = (after * left + before * right) / (before + after)
    return inside, narrow(slopes, at, 0, 1), narrow(slopes, at, n - 2, 1)
