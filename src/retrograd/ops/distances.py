"""Distances between points."""

from retrograd.core import Internal, op, registry
from retrograd.ops.constants import constant_in
from retrograd.ops.family import Composite, Gufunc, check_real, numel
from retrograd.ops.index import T, getitem, nonzero
from retrograd.ops.linalg import matmul
from retrograd.ops.losses import share_grad
from retrograd.ops.max_min import amax
from retrograd.ops.pointwise import abs, detach, eq, isinf, logical_or, maximum, where
from retrograd.ops.reduce import mean
from retrograd.ops.reduce import sum as sum_over
from retrograd.ops.view import reshape, transpose, triu, unsqueeze


@op("dist(Tensor x, Tensor other, number p=2) -> Tensor")
class dist(Composite):
    """The p-norm of x - other over all elements; the derivative where they are equal is 0.

    >>> import retrograd as rg
    >>> rg.dist(rg.tensor([1.0, 5.0]), rg.tensor([4.0, 1.0])).item()
    5.0
    """

    def compose(x, other, *, p):
        return registry["norm"](x - other, p)

    oracle = "retrograd.testing.references.distances.dist"

    def samples(r):
        yield (r(3, 4), r(3, 4)), {}
        yield (r(3), r(2, 1)), {"p": 1}
        yield (r(3), r(3)), {"p": float("inf")}


def _check_points(name, x1, x2):
    for x in (x1, x2):
        check_real(name, x)
        if x.ndim < 2:
            raise ValueError(f"{name}: expected at least 2 dimensions, got shape {x.shape}")
    if x1.shape[-1] != x2.shape[-1]:
        raise ValueError(f"{name}: the rows have {x1.shape[-1]} and {x2.shape[-1]} elements")


@op("row_distances(Tensor x1, Tensor x2) -> Tensor")
class row_distances(Internal, Gufunc, opmath="x1 x2"):
    """The Euclidean distance between each row of x1 and each row of x2; the derivative at distance 0 is 0."""

    core = "(m,d),(n,d)->(m,n)"

    def impl(xp, x1, x2):
        _check_points("row_distances", x1, x2)
        return xp.row_distances(x1, x2)

    @classmethod
    def promote(cls, arrays):
        """Return the arrays unchanged, if their dtypes are real and equal."""
        _check_points("row_distances", *arrays)
        return super().promote(arrays)

    # With weights w = g / out, the cotangents are sums of w (x1 - x2), where the origin of x1 and x2 is arbitrary.
    # They are divided by a scale, so that the weights and their derivatives stay in the range of the dtype.

    def vjp_x1(g, x1, x2, out):
        x1, x2, scale = _center_and_scale(x1, x2)
        w = share_grad(g * scale, out)
        return x1 * sum_over(w, -1, keepdim=True) - matmul(w, x2)

    def vjp_x2(g, x1, x2, out):
        x1, x2, scale = _center_and_scale(x1, x2)
        w = transpose(share_grad(g * scale, out), -1, -2)
        return x2 * sum_over(w, -1, keepdim=True) - matmul(w, x1)

    def jvp_x1(t, x1, x2, out):
        x1, x2, scale = _center_and_scale(x1, x2)
        return share_grad((sum_over(x1 * t, -1, keepdim=True) - matmul(t, transpose(x2, -1, -2))) * scale, out)

    def jvp_x2(t, x1, x2, out):
        x1, x2, scale = _center_and_scale(x1, x2)
        return share_grad((unsqueeze(sum_over(x2 * t, -1), -2) - matmul(x1, transpose(t, -1, -2))) * scale, out)

    exempt = {"nested": "it takes matrices; `cdist` takes the rows of a nested tensor one by one"}

    oracle = "retrograd.testing.references.distances.table"

    def samples(r):
        yield (r(3, 2), r(4, 2)), {}
        yield (r(2, 1, 3, 2), r(3, 1, 2)), {}

    def errors(r):
        yield (r(3, 2), r(3, 3)), {}, ValueError, "row_distances: the rows have 2 and 3"


def _center_and_scale(x1, x2):
    """Subtract a point among those of x2 to reduce cancellation, and divide by a scale; return all three."""
    x1, x2 = _center(x1, x2)
    if not numel(x1.shape) or not numel(x2.shape):
        return x1, x2, 1.0
    largest = maximum(amax(abs(detach(x1))), amax(abs(detach(x2))))
    scale = where(logical_or(eq(largest, 0), isinf(largest)), 1.0, largest)
    return x1 / scale, x2 / scale, scale


def _center(x1, x2):
    """Subtract a point among those of x2 from both; the mean of smaller values does not overflow."""
    points = reshape(detach(x2), (-1, x2.shape[-1])) if numel(x2.shape) else x2
    centre = mean(points * 2.0**-15, 0) * 2.0**15 if numel(x2.shape) else 0
    return x1 - centre, x2 - centre


_COMPUTE_MODES = (
    "use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist"
)  # fmt: skip


@op("cdist(Tensor x1, Tensor x2, float p=2.0, str? compute_mode=None) -> Tensor")
class cdist(Composite):
    """The p-norm distance between each row of x1, (..., m, d), and each row of x2, (..., n, d): (..., m, n).

    The derivative at distance 0 is 0.  Euclidean distances are computed with one matrix product, and recomputed from
    the differences where they cancel; so `compute_mode` has no effect.

    >>> import retrograd as rg
    >>> rg.cdist(rg.tensor([[0.0, 0.0]]), rg.tensor([[3.0, 4.0], [1.0, 0.0]])).tolist()
    [[5.0, 1.0]]
    """

    method = False

    def compose(x1, x2, *, p, compute_mode):
        _check_points("cdist", x1, x2)
        if compute_mode not in (None, *_COMPUTE_MODES):
            raise ValueError(f"cdist: compute_mode must be one of {', '.join(_COMPUTE_MODES)}, got {compute_mode!r}")
        if p < 0:
            raise ValueError(f"cdist: p must not be negative, got {p}")
        if p == 2:
            return row_distances(x1, x2)
        differences = unsqueeze(x1, -2) - unsqueeze(x2, -3)
        distances = registry["norm"](differences, p, -1)
        return distances if p else constant_in(detach(distances), differences)  # PyTorch's gradient is zeros, not None

    oracle = "retrograd.testing.references.distances.table"

    def samples(r):
        yield (r(3, 2), r(4, 2)), {}
        yield (r(2, 1, 3, 2), r(3, 1, 2)), {}
        yield (r(3, 2), r(4, 2)), {"p": 1.0}
        yield (r(3, 2), r(4, 2)), {"p": 3.0}
        yield (r(3, 2), r(4, 2)), {"p": float("inf")}

    def errors(r):
        yield (r(3), r(4, 3)), {}, ValueError, r"cdist: expected at least 2 dimensions, got shape \(3,\)"
        yield (r(3, 2), r(4, 3)), {}, ValueError, "cdist: the rows have 2 and 3 elements"
        yield (r(3, 2), r(4, 2)), {"p": -1.0}, ValueError, "cdist: p must not be negative"
        yield (r(3, 2), r(4, 2)), {"compute_mode": "mm"}, ValueError, "cdist: compute_mode must be one of .* got 'mm'"


@op("pdist(Tensor x, float p=2.0) -> Tensor")
class pdist(Composite, aliases="nn.functional.pdist"):
    """The p-norm distance between each row of a matrix and each later one: the upper triangle of `cdist`, row by row.

    >>> import retrograd as rg
    >>> rg.pdist(rg.tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]])).round().tolist()
    [5.0, 1.0, 4.0]
    """

    method = False

    def compose(x, *, p):
        if x.ndim != 2:
            raise ValueError(f"pdist: expected a matrix, got shape {x.shape}")
        check_real("pdist", x)
        later = triu(registry["ones"]((x.shape[0],) * 2, dtype="bool"), 1)
        return getitem(cdist(x, x, p), nonzero(later, as_tuple=True), spec=(T, T))

    oracle = "retrograd.testing.references.distances.pdist"

    def samples(r):
        yield (r(4, 2),), {}
        yield (r(4, 2),), {"p": 1.0}

    def errors(r):
        yield (r(4),), {}, ValueError, r"pdist: expected a matrix, got shape \(4,\)"


@op("pairwise_distance(Tensor x1, Tensor x2, float p=2.0, float eps=1e-06, bool keepdim=False) -> Tensor")
class pairwise_distance(Composite, aliases="nn.functional.pairwise_distance"):
    """The p-norm of x1 - x2 + eps along the last dimension; the two broadcast.

    >>> import retrograd as rg
    >>> rg.pairwise_distance(rg.tensor([[1.0, 5.0]]), rg.tensor([[4.0, 1.0]])).round().tolist()
    [5.0]
    """

    method = False

    def compose(x1, x2, *, p, eps, keepdim):
        return registry["norm"](x1 - x2 + eps, p, -1, keepdim)

    oracle = "retrograd.testing.references.distances.pairwise_distance"

    def samples(r):
        yield (r(3, 4), r(3, 4)), {}
        yield (r(3, 4), r(4)), {"p": 1.0, "keepdim": True}
        yield (r(3, 4), r(3, 4)), {"p": 3.0, "eps": 0.1}
