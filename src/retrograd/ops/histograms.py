"""Histograms: counts of integers, and of values in bins."""

# In this file, range, min and max are arguments with PyTorch's names, not Python's functions.

from collections.abc import Sequence

from retrograd.core import Aval, Internal, Tensor, op
from retrograd.core.errors import OperandDtypeError
from retrograd.foundation.result_classes import NamedResults
from retrograd.foundation.suggestions import suggest_keywords
from retrograd.ops import batch_loop
from retrograd.ops.as_tensor import as_tensor
from retrograd.ops.batch_loop import PerExample
from retrograd.ops.batching import batch_all
from retrograd.ops.family import Composite, cast_to, check_real, numel
from retrograd.ops.functions import function, overridable
from retrograd.ops.gather import stacked_indices
from retrograd.ops.index import T, getitem
from retrograd.ops.view import reshape


@op("bincount(Tensor x, Tensor? weights=None, int minlength=0) -> Tensor")
class bincount(
    PerExample, linear="weights", elements="summed", vmap_fallback="without minlength each example decides on the size"
):
    """Count each integer from 0 to the largest in x, or add up its weights; the size is at least `minlength`.

    Weights of float32 are summed in float32, others in float64.

    >>> import retrograd as rg
    >>> rg.bincount(rg.tensor([1, 2, 1])).tolist()
    [0, 2, 1]
    """

    def impl(xp, x, weights, *, minlength):
        _check_bincount(x, weights, minlength)
        return xp.count_values(x, weights, minlength)

    @classmethod
    def bind_widened(cls, namespace):
        """Return the kernel itself, which sums weights of bfloat16 in float64."""
        return cls.bind(namespace)

    def shape(x, weights, *, minlength):
        _check_bincount(x, weights, minlength)
        raise NotImplementedError("bincount: the size of the result depends on the values")

    def vjp_weights(g, x, weights_aval):
        return cast_to(getitem(g, [x], spec=(T,)), weights_aval.dtype)

    @classmethod
    def batch(cls, batched, n, /, x, weights, *, minlength):
        """Join the examples if their results have one size; else loop over them, since sizes may agree."""
        _check_bincount(*batch_loop.example_avals(batched, (x, weights)), minlength)  # type: ignore[call-arg]
        size = bincount(reshape(x, (numel(x.shape),)), None, minlength).shape[0]
        if batched[0] and size > minlength:
            return super().batch(batched, n, x, weights, minlength=minlength)
        x, weights = batch_all((x, weights), batched, n)
        ids = reshape(stacked_indices(x, size=size, dim=0), (numel(x.shape),))
        weights = weights if weights is None else reshape(weights, ids.shape)
        return reshape(bincount(ids, weights, n * size), (n, size))

    exempt = {
        "shape float32 bfloat16 integers empty": "the size of the result depends on the values: no shape rule",
    }

    def oracle(np, x, weights, minlength):
        """Return the total weight of each integer."""
        size = max(minlength, int(x.max()) + 1)
        return np.array([sum((weights if weights is not None else np.ones(len(x)))[x == i]) for i in range(size)])

    def samples(r):
        yield (r.ints(5, (6,)), None), {"minlength": 7}
        yield (r.ints(5, (6,)), r(6)), {}

    def errors(r):
        yield (r(3), None), {}, TypeError, "bincount: expected integers, got float64"
        yield (r.ints(5, (3, 2)), None), {}, ValueError, "bincount: expected one dimension"
        yield (r.ints(5, (3,)) - 9, None), {}, RuntimeError, "bincount: expected no negative numbers, got -"
        yield (r.ints(5, (3,)), r(2)), {}, ValueError, r"bincount: weights has shape \(2,\), x has shape \(3,\)"


def _check_bincount(x, weights, minlength):
    if x.dtype.kind not in "iu":
        raise OperandDtypeError(f"bincount: expected integers, got {x.dtype}")
    if x.ndim != 1:
        raise ValueError(f"bincount: expected one dimension, got shape {x.shape}")
    if weights is not None and weights.shape != x.shape:
        raise ValueError(f"bincount: weights has shape {weights.shape}, x has shape {x.shape}")
    if weights is not None and weights.dtype.kind == "c":
        raise TypeError(f"bincount: weights must be real, got {weights.dtype}")
    if minlength < 0:
        raise ValueError(f"bincount: minlength must not be negative, got {minlength}")


@op(
    "count_into_bins(Tensor x, Tensor? edges, Tensor? weight, *, int bins=0, number low=0, number high=0, "
    "bool density=False) -> (Tensor hist, Tensor bin_edges)"
)
class count_into_bins(
    Internal,
    PerExample,
    differentiable=False,
    vmap_fallback="NumPy makes one histogram at a time",
    opmath="x edges weight",
):
    """A histogram and its edges: those given, or `bins` equal bins from low to high, by default the extremes."""

    def impl(xp, x, edges, weight, *, bins, low, high, density):
        _check_histogram("count_into_bins", x, edges, weight)
        return xp.count_into_bins(x, bins if edges is None else edges, low, high, weight, density)

    def shape(x, edges, weight, *, bins, low, high, density):
        _check_histogram("count_into_bins", x, edges, weight)
        n = bins if edges is None else edges.shape[0] - 1
        return Aval((n,), x.dtype), Aval((n + 1,), x.dtype)

    oracle = "retrograd.testing.references.histograms.count_into_bins"

    def samples(r):
        yield (r(9), None, None), {"bins": 4}
        yield (r(3, 3), as_tensor([-1.0, 0.5, 2.0]), r(3, 3)), {"density": True}


def _check_histogram(name, x, edges, weight):
    check_real(name, x)
    if edges is not None and (edges.ndim != 1 or edges.shape[0] < 2):
        raise ValueError(f"histogram: expected at least two edges in one dimension, got shape {edges.shape}")
    if weight is not None and weight.shape != x.shape:
        raise ValueError(f"histogram: weight has shape {weight.shape}, x has shape {x.shape}")


def _check_bins(name, bins):
    if not isinstance(bins, int) or bins < 1:
        raise ValueError(f"{name}: bins must be a positive integer, got {bins!r}")


@op("histc(Tensor x, int bins=100, number min=0, number max=0) -> Tensor")
class histc(Composite):
    """Count elements in `bins` equal bins from min to max; if these are equal, from the extremes of x.

    Elements outside are not counted.

    >>> import retrograd as rg
    >>> rg.histc(rg.tensor([1.0, 2.0, 1.0]), bins=4, min=0, max=3).tolist()
    [0.0, 2.0, 1.0, 0.0]
    """

    def compose(x, *, bins, min, max):
        check_real("histc", x)
        _check_bins("histc", bins)
        if max < min:
            raise ValueError(f"histc: max must not be less than min, got {max} and {min}")
        return count_into_bins(x, None, None, bins=bins, low=min, high=max)[0]

    oracle = "retrograd.testing.references.histograms.histc"

    def samples(r):
        yield (r(9),), {"bins": 3}
        yield (r(3, 3),), {"bins": 5, "min": -1, "max": 1}

    def errors(r):
        yield (r(3),), {"bins": 0}, ValueError, "histc: bins must be a positive integer, got 0"
        yield (r(3),), {"min": 2, "max": 1}, ValueError, "histc: max must not be less than min"



@op(
    "histogram(Tensor x, any bins=100, *, any range=None, Tensor? weight=None, bool density=False) "
    "-> (Tensor hist, Tensor bin_edges)"
)
class histogram(Composite):
    """Count elements in bins; return the counts and the edges of the bins, as a named tuple (hist, bin_edges).

    bins: the number of bins, of equal width over `range` (low, high) (default: the extremes of x), or a tensor of
    edges.  A bin includes its left edge, the last one its right edge too.  `weight` is the weight of each element;
    density=True divides by the total and by the widths.

    >>> import retrograd as rg
    >>> rg.histogram(rg.tensor([1.0, 2.0, 1.0]), 2).hist.tolist()
    [2.0, 1.0]
    """

    def compose(x, weight, *, bins, range, density):
        check_real("histogram", x)
        if isinstance(bins, Tensor):
            return count_into_bins(x, bins, weight, density=density)
        _check_bins("histogram", bins)
        low, high = range or (0, 0)
        return count_into_bins(x, None, weight, bins=bins, low=low, high=high, density=density)

    exempt = {"jvp vjp no_dimensions": "the edges move with the extremes, but without derivatives, as in PyTorch"}

    oracle = "retrograd.testing.references.histograms.histogram"

    def samples(r):
        yield (r(9), None), {"bins": 4}
        yield (r(9), r(9, within=(0.2, 2.0))), {"bins": 4, "range": (-1.0, 1.0), "density": True}

    def errors(r):
        yield (r(3), None), {"bins": 0}, ValueError, "histogram: bins must be a positive integer, got 0"
        yield (r(3), r(2)), {"bins": 2}, ValueError, r"histogram: weight has shape \(2,\)"


@op(
    "count_into_boxes(Tensor x, Tensor? weight, Tensor[] edges, *, any counts=None, any spans=None, "
    "bool density=False) -> (Tensor hist, Tensor[] bin_edges)"
)
class count_into_boxes(Internal, PerExample, differentiable=False, vmap_fallback="NumPy makes one histogram at a time"):
    """The histogram of the rows of a matrix, and the edges along each of its columns."""

    def impl(xp, x, weight, *edges, counts, spans, density):
        _check_rows(x, weight, edges or counts)
        return xp.count_into_boxes(x, edges, counts, spans, weight, density)

    def shape(x, weight, *edges, counts, spans, density):
        _check_rows(x, weight, edges or counts)
        sizes = [e.shape[0] - 1 for e in edges] if edges else counts
        return Aval(tuple(sizes), x.dtype), *(Aval((n + 1,), x.dtype) for n in sizes)

    oracle = "retrograd.testing.references.histograms.count_into_boxes"

    def samples(r):
        yield (r(9, 2), None), {"counts": (2, 3)}
        yield (r(9, 2), r(9), as_tensor([-1.0, 0.5, 2.0]), as_tensor([-2.0, 2.0])), {"density": True}


def _check_rows(x, weight, bins):
    check_real("count_into_boxes", x)
    if x.ndim != 2 or len(bins) != x.shape[1]:
        raise ValueError(f"histogramdd: expected a matrix with a column per bins, got shape {x.shape} and {len(bins)}")
    if weight is not None and weight.shape != x.shape[:1]:
        raise ValueError(f"histogramdd: weight has shape {weight.shape}, x has {x.shape[0]} rows")


class HistogramDD(NamedResults, name="histogramdd"):
    """The results of `histogramdd`."""

    __slots__ = ()
    hist: Tensor
    bin_edges: tuple[Tensor, ...]


@function("histogramdd")
@overridable
@suggest_keywords
def histogramdd(input: Tensor, bins: int | Sequence, *, range=None, weight=None, density=False) -> HistogramDD:
    """Count points, the rows of matrices, in multidimensional bins, as a named tuple (hist, bin_edges).

    bins: the number of bins for all columns, or a list of one number, or of one tensor of edges, per column;
    `range` lists the lower and upper end for one column after the other.  Otherwise as `histogram`.

    >>> import retrograd as rg
    >>> rg.histogramdd(rg.tensor([[0.0, 1.0], [1.0, 0.0]]), [2, 2]).hist.tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    check_real("histogramdd", input)
    if input.ndim < 2:
        raise ValueError(f"histogramdd: expected at least 2 dimensions, got shape {input.shape}")
    if weight is not None and weight.shape != input.shape[:-1]:
        raise ValueError(f"histogramdd: weight has shape {weight.shape}, but there are {input.shape[:-1]} points")
    input = reshape(input, (-1, input.shape[-1]))
    weight = None if weight is None else reshape(weight, (-1,))
    bins = [bins] * input.shape[-1] if isinstance(bins, int) else list(bins)
    if all(isinstance(b, Tensor) for b in bins):
        hist, *edges = count_into_boxes(input, weight, bins, density=density)
    else:
        for b in bins:
            _check_bins("histogramdd", b)
        spans = list(zip(range[::2], range[1::2], strict=True)) if range else None
        hist, *edges = count_into_boxes(input, weight, [], counts=tuple(bins), spans=spans, density=density)
    return HistogramDD(hist, tuple(edges))
