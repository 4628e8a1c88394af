"""Scattering: write, add or merge values at indices.

`scatter` and its variants take an index per element along one dimension, `index_add` and its variants index whole
slices, `put` and `index_put` single elements.
"""

import math
from collections.abc import Sequence

from retrograd.backend.type_info import check_number_fits, iinfo
from retrograd.core import Aval, Internal, Tensor, call, op, registry
from retrograd.core import dtype as dtypes
from retrograd.core.errors import OperandIndexError
from retrograd.foundation.lazy_imports import add_attribute
from retrograd.foundation.suggestions import suggest_keywords
from retrograd.ops.create import as_tensor
from retrograd.ops.family import AlongDims, Composite, broadcast_dims, canonical_dim, cast_to, numel, same_dtype
from retrograd.ops.functions import function, overridable
from retrograd.ops.gather import add_slices, check_gather_index, check_slice_index, gather, scalar_to_slice, scatter_sum
from retrograd.ops.index import T, check_index_dtype, index_put_sum, indexed_shape, static_index
from retrograd.ops.masked import scalar_like
from retrograd.ops.mutate import index_put, write_into
from retrograd.ops.pointwise import eq, isnan, logical_or, where
from retrograd.ops.sparsity_rules import Labels, number_elements
from retrograd.ops.view import cat, expand, flip, narrow, reshape


class Scatter(Internal, AlongDims):
    """Base of operators that send each element of src to the index of x that `index` holds, along dim."""

    @classmethod
    def shape(cls, x, index, src, *, dim):
        """The shape of x."""
        check_scatter(x, index, src, dim)
        return x

    @classmethod
    def dependence(cls, i, out, /, x, index, src, *, dim):
        """Each element depends on the same element of x, and on those of src that are sent to it."""
        if i == 0:
            return broadcast_dims(x.ndim, x.ndim)
        return Labels(None, gather(number_elements(out.shape), dim, index)) if isinstance(index, Tensor) else {}


def check_scatter(x, index, src, dim):
    """`dim` as a nonnegative number; an error unless index fits x, and src (array, aval or number) fits both."""
    at = check_gather_index("scatter", x.shape, index, dim)
    if hasattr(src, "dtype"):
        same_dtype("scatter", (x, src))
        if src.shape != index.shape:
            raise ValueError(f"scatter: index of shape {index.shape} and src of shape {src.shape} do not match")
    return at


@op("scatter_set(Tensor x, Tensor index, Tensor src, *, int dim) -> Tensor")
class scatter_set(Scatter, linear="x,src", elements="moved", node_name="ScatterBackward0"):
    """x with src, a tensor or a number, written at the indices; of duplicates the last is written."""

    def impl(xp, x, index, src, *, dim):
        return xp.scatter_set(x, index, src, check_scatter(x, index, src, dim))

    def vjp_x(g, index, dim):
        return scatter_set(g, index, 0.0, dim=dim)

    def vjp_src(g, index, dim):
        return gather(g, dim, index)

    oracle = "retrograd.testing.references.scatter.scatter_set"

    def samples(r):
        yield (r(3, 4), as_tensor([[3, 1], [0, 2], [1, 0]]), r(3, 2)), {"dim": 1}
        yield (r(3, 4), r.ints(3, (5, 2)), 0.0), {"dim": 0}


@op("scatter_prod(Tensor x, Tensor index, Tensor src, *, int dim) -> Tensor")
class scatter_prod(Scatter, linear="x", node_name="ScatterReduceBackward0"):
    """x multiplied by the elements of src at the indices; derivatives of every order hold where factors are 0."""

    def impl(xp, x, index, src, *, dim):
        return xp.scatter_prod(x, index, src, check_scatter(x, index, src, dim))

    def vjp_x(g, index, src, dim):
        return scatter_prod(g, index, src, dim=dim)

    def vjp_src(g, x, index, src, dim):
        return gather(g * x, dim, index) * _products_of_others(src, index, dim)

    def jvp_src(t, x, index, src, dim):
        return x * scatter_sum(t * _products_of_others(src, index, dim), index, shape=x.shape, dim=dim)

    oracle = "retrograd.testing.references.scatter.scatter_prod"

    def samples(r):
        yield (r(3, 4), r.ints(3, (5, 2)), r(5, 2)), {"dim": 0}
        yield (r(3), as_tensor([1, 1, 1, 0]), r(4) * as_tensor([1, 0, 0, 1])), {"dim": 0}


def _products_of_others(src, index, dim):
    """For each element, the product of all others for the same index; without division, so that zeros are safe."""
    order = group_order(index, dim=dim)
    src, groups = gather(src, dim, order), gather(index, dim, order)
    before = _products_before(src, groups, dim)
    after = flip(_products_before(flip(src, dim), flip(groups, dim), dim), dim)
    return gather(before * after, dim, group_order(order, dim=dim))


def _products_before(x, groups, dim):
    """The product of the earlier elements of each group, by doubling the reach in each step."""
    out, step = _shift_in_group(x, groups, dim, 1), 1
    while step < x.shape[dim]:
        out, step = out * _shift_in_group(out, groups, dim, step), 2 * step
    return out


def _shift_in_group(x, groups, dim, step):
    """The element `step` positions earlier in the same group; 1 if there is none."""
    rest = max(x.shape[dim] - step, 0)
    same = eq(narrow(groups, dim, x.shape[dim] - rest, rest), narrow(groups, dim, 0, rest))
    first = registry["ones_like"](narrow(x, dim, 0, x.shape[dim] - rest))
    return cat([first, where(same, narrow(x, dim, 0, rest), 1)], dim=dim)


@op("group_order(Tensor index, *, int dim) -> Tensor")
class group_order(Internal, AlongDims, differentiable=False):
    """The permutation along dim that makes equal indices adjacent, and the inverse of such a permutation."""

    def impl(xp, index, *, dim):
        return xp.argsort(index, axis=dim, kind="stable")

    def shape(index, *, dim):
        canonical_dim("group_order", dim, index.ndim)
        return Aval(index.shape, dtypes.int64)

    def oracle(np, index, dim):
        return np.argsort(index, axis=dim, kind="stable")

    def samples(r):
        yield (r.ints(3, (2, 6)),), {"dim": 1}


class ScatterExtreme(Scatter):
    """Base of scatter_max and scatter_min; tied elements of x and src share the gradient equally."""

    @staticmethod
    def vjp_x(g, x, index, src, out, dim):
        """The cotangent of x: its share of g."""
        return g * _tie_shares(x, index, src, out, dim)[0]

    @staticmethod
    def vjp_src(g, x, index, src, out, dim):
        """The cotangent of src: the share of each element."""
        return gather(g, dim, index) * _tie_shares(x, index, src, out, dim)[1]

    @staticmethod
    def jvp_x(t, x, index, src, out, dim):
        """The tangent of x times its share of the result."""
        return t * _tie_shares(x, index, src, out, dim)[0]

    @staticmethod
    def jvp_src(t, x, index, src, out, dim):
        """The tangents of src times their shares of the result."""
        return scatter_sum(t * _tie_shares(x, index, src, out, dim)[1], index, shape=x.shape, dim=dim)

    @staticmethod
    def samples(r):
        """Samples with indices that occur once, several times, and not at all."""
        yield (r(3, 4), r.ints(3, (5, 2)), r(5, 2)), {"dim": 0}
        yield (r(4), as_tensor([1, 1, 0]), r(3)), {"dim": -1}


def _tie_shares(x, index, src, out, dim):
    """The shares of x, and of each element of src, in each result."""
    x_share = cast_to(logical_or(eq(x, out), isnan(x)), x.dtype)
    theirs = cast_to(logical_or(eq(src, gather(out, dim, index)), isnan(src)), x.dtype)
    count = x_share + scatter_sum(theirs, index, shape=x.shape, dim=dim)
    return x_share / count, theirs / gather(count, dim, index)


@op("scatter_max(Tensor x, Tensor index, Tensor src, *, int dim) -> Tensor")
class scatter_max(ScatterExtreme, node_name="ScatterReduceBackward0"):
    """The maximum of x and the elements of src for each index.  NaN wins."""

    def impl(xp, x, index, src, *, dim):
        return xp.scatter_max(x, index, src, check_scatter(x, index, src, dim))

    oracle = "retrograd.testing.references.scatter.scatter_max"


@op("scatter_min(Tensor x, Tensor index, Tensor src, *, int dim) -> Tensor")
class scatter_min(ScatterExtreme, node_name="ScatterReduceBackward0"):
    """The minimum of x and the elements of src for each index.  NaN wins."""

    def impl(xp, x, index, src, *, dim):
        return xp.scatter_min(x, index, src, check_scatter(x, index, src, dim))

    oracle = "retrograd.testing.references.scatter.scatter_min"


# -------------------------------------------------------------------------------------- an index per element


def _scatter(into, x, index, src, dim, **params):
    """`into(x, index, src, dim)` for tensors with at least one dimension, with src cut to the size of the index."""
    shape = x.shape
    if not (shape and index.ndim):
        x, index = (a if a.ndim else reshape(a, (1,)) for a in (x, index))
    if into is _scatter_set and type(src) in (bool, int, float):
        out = call(scatter_set, (x, index, src), {"dim": dim})
        return out if shape else reshape(out, shape)
    if not hasattr(src, "ndim"):
        src = expand(scalar_like("scatter", src, x), index.shape)
    src = src if src.ndim else reshape(src, (1,))
    for d, size in enumerate(index.shape if src.ndim == index.ndim else ()):
        src = narrow(src, d, 0, size) if src.shape[d] > size else src
    out = into(x, index, src, dim, **params)
    return out if shape else reshape(out, shape)


def _scatter_set(x, index, src, dim):
    return scatter_set(x, index, src, dim=dim)


def _scatter_add(x, index, src, dim):
    check_scatter(x.aval, index.aval, src.aval, dim)
    return x + scatter_sum(src, index, shape=x.shape, dim=dim)


def _scatter_multiply(x, index, src, dim):
    return scatter_prod(x, index, src, dim=dim)


_INTO = {None: _scatter_set, "add": _scatter_add, "multiply": _scatter_multiply}  # by the param `reduce`


def _lookup(choices, name, word):
    """The table's entry for a word; ValueError lists the known words."""
    if word not in choices:
        raise ValueError(f"{name}: reduce must be one of {', '.join(map(repr, choices))}, got {word!r}")
    return choices[word]


@op("scatter(Tensor x, int dim, Tensor index, Tensor? src=None, *, number? value=None, str? reduce=None) -> Tensor")
class scatter(Composite, in_place=True):
    """x with the elements of src, or one value, written at `index` along `dim`; the counterpart of gather.

    `index` has as many dimensions as x and src.  It is no larger than src, and except along dim no larger than x.
    reduce="add" or "multiply" combines with the elements of x.  If indices repeat, the last is written, and the
    gradient goes to all of them: use each index once.

    >>> import retrograd as rg
    >>> rg.scatter(rg.zeros(3), 0, rg.tensor([2, 0]), rg.tensor([5.0, 6.0])).tolist()
    [6.0, 0.0, 5.0]
    """

    def compose(x, index, src, *, dim, value, reduce):
        if (src is None) == (value is None):
            raise TypeError("scatter: expected either src or value")
        into = _lookup(_INTO, "scatter", reduce)
        check_number_fits("scatter", value if src is None else src, x.dtype)
        return _scatter(into, x, index, value if src is None else src, dim)

    oracle = "retrograd.testing.references.scatter.scatter"

    def samples(r):
        yield (r(3, 4), as_tensor([[3, 1], [0, 2]]), r(3, 2)), {"dim": 1}
        yield (r(3, 4), as_tensor([[1, 0, 2, 0]]), -1.5), {"dim": 0}
        yield (r(4), as_tensor([1, 1, 0]), r(3)), {"dim": 0, "reduce": "add"}
        yield (r(4), as_tensor([1, 3, 0]), r(3)), {"dim": 0, "reduce": "multiply"}

    def errors(r):
        yield (r(3), r.ints(3, (2,)), None), {"dim": 0}, TypeError, "scatter: expected either src or value"
        yield (r(3), r.ints(3, (2,)), r(1)), {"dim": 0}, ValueError, r"scatter: index of shape \(2,\) and src"
        yield (r(3), r.ints(1, (2,)) - 1, r(2)), {"dim": 0}, IndexError, "scatter: index -1 is out of bounds"
        yield (r(3), r.ints(3, (2,)), r.ints(3, (2,))), {"dim": 0}, RuntimeError, "scatter: .*operands must have one"
        yield (r(3), r.ints(3, (2,)), r(2)), {"dim": 0, "reduce": "max"}, ValueError, "reduce must be .*'add'"


@op("scatter_add(Tensor x, int dim, Tensor index, Tensor src) -> Tensor")
class scatter_add(Composite, in_place=True):
    """x with the elements of src added at `index` along `dim`; sizes as in `scatter`.

    >>> import retrograd as rg
    >>> rg.scatter_add(rg.zeros(2), 0, rg.tensor([1, 1, 0]), rg.tensor([1.0, 2.0, 4.0])).tolist()
    [4.0, 3.0]
    """

    def compose(x, index, src, *, dim):
        return _scatter(_scatter_add, x, index, src, dim)

    oracle = "retrograd.testing.references.scatter.scatter_add"

    def samples(r):
        yield (r(3, 4), r.ints(4, (2, 5)), r(2, 5)), {"dim": 1}
        yield (r(3, 4), r.ints(3, (5, 2)), r(6, 4)), {"dim": -2}

    def errors(r):
        yield (r(3), r(2), r(2)), {"dim": 0}, TypeError, "scatter: index must hold integers, got float64"


@op("scatter_reduce(Tensor x, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> Tensor")
class scatter_reduce(Composite, in_place=True):
    """x with the elements of src reduced into `index` along `dim`: "sum", "prod", "mean", "amax" or "amin".

    Without include_self, elements of x at indices that occur are not included in the reduction; the others keep their
    values.  For amax and amin, tied elements share the gradient.

    >>> import retrograd as rg
    >>> x, index, src = rg.ones(2), rg.tensor([1, 1]), rg.tensor([3.0, 5.0])
    >>> rg.scatter_reduce(x, 0, index, src, "mean", include_self=False).tolist()
    [1.0, 4.0]
    """

    def compose(x, index, src, *, dim, reduce, include_self):
        return _scatter(_lookup(_MERGES, "scatter_reduce", reduce), x, index, src, dim, include_self=include_self)

    oracle = "retrograd.testing.references.scatter.scatter_reduce"

    def samples(r):
        for reduce in _MERGES:
            yield (r(3, 4), r.ints(3, (5, 2)), r(5, 2)), {"dim": 0, "reduce": reduce}
            yield (r(4), as_tensor([1, 1, 0]), r(5)), {"dim": 0, "reduce": reduce, "include_self": False}

    def errors(r):
        yield (r(3), r.ints(3, (2,)), r(2)), {"dim": 0, "reduce": "add"}, ValueError, "scatter_reduce: .* got 'add'"


def _reduce_sum(x, index, src, dim, include_self):
    return _scatter_add(x if include_self else scatter_set(x, index, 0, dim=dim), index, src, dim)


def _reduce_mean(x, index, src, dim, include_self):
    count = _scatter_add(registry["ones_like"](x), index, registry["ones_like"](src), dim)
    if not include_self:
        count = where(eq(count, 1), count, count - 1)
    total = _reduce_sum(x, index, src, dim, include_self)
    return total / count if dtypes.is_differentiable(x.dtype) else registry["floor_divide"](total, count)


def _define_merge(operator, neutral):
    """A reduction of `scatter_reduce`; `neutral(dtype)` replaces elements of x that are not included."""

    def merge(x, index, src, dim, include_self):
        start = x if include_self else scatter_set(x, index, neutral(x.dtype), dim=dim)
        return operator(start, index, src, dim=dim)

    return merge


_MERGES = {
    "sum": _reduce_sum,
    "prod": _define_merge(scatter_prod, lambda dtype: 1),
    "mean": _reduce_mean,
    "amax": _define_merge(scatter_max, lambda dtype: -math.inf if dtypes.is_floating(dtype) else iinfo(dtype).min),
    "amin": _define_merge(scatter_min, lambda dtype: math.inf if dtypes.is_floating(dtype) else iinfo(dtype).max),
}


# ----------------------------------------------------------------------------------------- an index per slice


def _check_source(name, x, index, source, dim):
    """`dim` as a nonnegative number; an error unless source has one slice, shaped like those of x, per index."""
    same_dtype(name, (x, source))
    at = check_slice_index(name, x, index, dim)
    expected = (*x.shape[:at], numel(index.shape), *x.shape[at + 1 :])
    if source.shape != expected:
        raise OperandIndexError(f"{name}: source must have shape {expected}, got {source.shape}")
    return at


@op("index_add(Tensor x, int dim, Tensor index, Tensor source, *, number alpha=1) -> Tensor")
class index_add(Composite, in_place=True):
    """x with the slices of source, times alpha, added at the indices along `dim` in a 1-d integer tensor.

    >>> import retrograd as rg
    >>> rg.index_add(rg.zeros(2, 2), 0, rg.tensor([1, 1]), rg.tensor([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [[0.0, 0.0], [4.0, 6.0]]
    """

    def compose(x, index, source, *, dim, alpha):
        slices, source = scalar_to_slice(x), scalar_to_slice(source)
        at = _check_source("index_add", slices, index, source, dim)
        check_number_fits("index_add", alpha, x.dtype)
        source = source if alpha == 1 else cast_to(source * alpha, x.dtype)
        out = add_slices(slices, source, index, dim=at)
        return out if x.ndim else reshape(out, ())

    oracle = "retrograd.testing.references.scatter.index_add"

    def samples(r):
        yield (r(3, 4), r.ints(4, (2,)), r(3, 2)), {"dim": 1}
        yield (r(3, 4), r.ints(3, (5,)), r(5, 4)), {"dim": 0, "alpha": -0.5}
        yield (r(), as_tensor([0]), r()), {"dim": 0}

    def errors(r):
        yield (r(3, 4), r.ints(3, (2,)), r(2, 1)), {"dim": 0}, ValueError, r"index_add: source must have shape \(2, 4\)"
        yield (r(3), r.ints(3, (2,)), r.ints(9, (2,))), {"dim": 0}, RuntimeError, "index_add: .*operands must have one"


@op("index_copy(Tensor x, int dim, Tensor index, Tensor source) -> Tensor")
class index_copy(Composite, in_place=True):
    """x with the slices of source written at the indices along `dim` in a 1-d integer tensor, which are unique."""

    def compose(x, index, source, *, dim):
        slices, source = scalar_to_slice(x), scalar_to_slice(source)
        at = _check_source("index_copy", slices, index, source, dim)
        out = index_put(slices, source, [reshape(index, (-1,))], spec=(*(slice(None),) * at, T))
        return out if x.ndim else reshape(out, ())

    oracle = "retrograd.testing.references.scatter.index_copy"

    def samples(r):
        yield (r(), as_tensor([0]), r()), {"dim": 0}
        yield (r(3, 4), as_tensor([3, 0]), r(3, 2)), {"dim": 1}
        yield (r(3), as_tensor([1]), r(1)), {"dim": 0}

    def errors(r):
        yield (r(3), r.ints(3, (2,)), r(3)), {"dim": 0}, ValueError, r"index_copy: source must have shape \(2,\)"
        yield (r(3), r.ints(1, (2,)) + 3, r(2)), {"dim": 0}, IndexError, "out of"


@op("index_fill(Tensor x, int dim, Tensor index, Tensor value) -> Tensor")
class index_fill(Composite, in_place=True):
    """x with a number, or a tensor without dimensions, written at the indices along `dim`; -1 is the last."""

    def compose(x, index, value, *, dim):
        value, slices = scalar_like("index_fill", value, x), scalar_to_slice(x)
        at = check_slice_index("index_fill", slices, index, dim)
        out = index_put(slices, value, [reshape(index, (-1,))], spec=(*(slice(None),) * at, T))
        return out if x.ndim else reshape(out, ())

    oracle = "retrograd.testing.references.scatter.index_fill"

    def samples(r):
        yield (r(3, 4), r.ints(3, (2,)) - 2, -1.5), {"dim": 1}
        yield (r(3), as_tensor(1), r()), {"dim": 0}
        yield (r(), as_tensor([0, 0]), r()), {"dim": -1}
        yield (r(3, 4), as_tensor([0, 2, 0]), r()), {"dim": 1}
        yield (r(), as_tensor([0]), r()), {"dim": 0}

    def errors(r):
        yield (r(3), r.ints(3, (2,)), r(1)), {"dim": 0}, ValueError, r"index_fill: .*the value must be a number"


@op("index_reduce(Tensor x, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) -> Tensor")
class index_reduce(Composite, in_place=True):
    """x with the slices of source reduced into indices along `dim`: "prod", "mean", "amax", "amin".

    >>> import retrograd as rg
    >>> rg.index_reduce(rg.ones(2), 0, rg.tensor([1, 1]), rg.tensor([3.0, 5.0]), "prod").tolist()
    [1.0, 15.0]
    """

    def compose(x, index, source, *, dim, reduce, include_self):
        slices, source = scalar_to_slice(x), scalar_to_slice(source)
        at = _check_source("index_reduce", slices, index, source, dim)
        index = expand(reshape(index, (-1, *(1,) * (slices.ndim - at - 1))), source.shape)
        known = {word: merge for word, merge in _MERGES.items() if word != "sum"}
        out = _lookup(known, "index_reduce", reduce)(slices, index, source, at, include_self)
        return out if x.ndim else reshape(out, ())

    oracle = "retrograd.testing.references.scatter.index_reduce"

    def samples(r):
        yield (r(), as_tensor([0]), r()), {"dim": 0, "reduce": "prod"}
        for reduce in ("prod", "mean", "amax", "amin"):
            yield (r(3, 4), r.ints(3, (5,)), r(5, 4)), {"dim": 0, "reduce": reduce}
        yield (r(2, 4), as_tensor([1, 1, 0]), r(2, 3)), {"dim": -1, "reduce": "amax", "include_self": False}

    def errors(r):
        yield (r(3), r.ints(3, (2,)), r(2)), {"dim": 0, "reduce": "sum"}, ValueError, "index_reduce: .* got 'sum'"


# --------------------------------------------------------------------------------------- an index per element


@op("put(Tensor x, Tensor index, Tensor source, bool accumulate=False) -> Tensor")
class put(Composite, in_place=True):
    """x with the elements of source written, or added, at the indices of x in row-major order.

    >>> import retrograd as rg
    >>> rg.put(rg.zeros(2, 2), rg.tensor([1, -1]), rg.tensor([5.0, 6.0])).tolist()
    [[0.0, 5.0], [0.0, 6.0]]
    """

    def compose(x, index, source, *, accumulate):
        check_index_dtype("put", index)
        same_dtype("put", (x, source))
        if numel(index.shape) != numel(source.shape):
            raise OperandIndexError(f"put: index has {numel(index.shape)} elements, source {numel(source.shape)}")
        row, index, source = (reshape(a, (-1,)) for a in (x, index, source))
        out = put_or_add(row, source, [index], (T,), accumulate)
        return reshape(out, x.shape)

    def oracle(np, x, index, source, accumulate):
        out = x.copy()
        for i, value in zip(index.ravel(), source.ravel(), strict=True):
            out.flat[i] = value + out.flat[i] * accumulate
        return out

    def samples(r):
        yield (r(3, 4), as_tensor([[11, 0], [-2, 5]]), r(4)), {}
        yield (r(3, 4), r.ints(12, (7,)), r(7)), {"accumulate": True}

    def errors(r):
        yield (r(3), r.ints(3, (2,)), r(1)), {}, ValueError, "put: index has 2 elements, source 1"


def put_or_add(x, values, ids, spec, accumulate):
    """x with values written to, or added to, x[spec]."""
    if not accumulate:
        return index_put(x, values, ids, spec=spec)
    values = expand(values, indexed_shape(x, ids, spec))
    return x + index_put_sum(values, ids, shape=x.shape, spec=spec)


@function("index_put")
@overridable
@suggest_keywords
def index_put_of(input: Tensor, indices: Sequence[Tensor], values: Tensor | float, accumulate=False):
    """`input` with values, which broadcast, written to or added to input[indices], a tuple of index tensors.

    >>> import retrograd as rg
    >>> rg.index_put(rg.zeros(3), (rg.tensor([0, 0]),), rg.tensor(2.0), accumulate=True).tolist()
    [4.0, 0.0, 0.0]
    """
    values = as_tensor(values)
    same_dtype("index_put", (input, values))
    spec, ids = static_index(input, tuple(indices))
    return put_or_add(input, values, ids, spec, accumulate)


def _index_put_in_place(x, indices, values, accumulate=False) -> Tensor:
    """Write values to, or add them to, x[indices], a tuple of index tensors; return x."""
    return write_into("index_put_", x, index_put_of(x, indices, values, accumulate))


add_attribute(Tensor, "index_put", index_put_of)
add_attribute(Tensor, "index_put_", function("index_put_")(_index_put_in_place))
