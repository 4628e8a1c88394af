"""Embeddings: rows of a table by index, and their sums, means and maxima."""

import math

from retrograd.core import Aval, Internal, Tensor, op, registry, xp
from retrograd.core import dtype as dtypes
from retrograd.core.errors import AssertedValueError
from retrograd.foundation.source_location import warn_user
from retrograd.ops import batch_loop
from retrograd.ops.batching import append_dims, broadcast_batch
from retrograd.ops.family import Composite, numel
from retrograd.ops.functions import check_tensor, function, overridable
from retrograd.ops.gather import gather, index_select, index_sum, stacked_indices
from retrograd.ops.mutate import set_item
from retrograd.ops.norm import norm
from retrograd.ops.opmath import Family
from retrograd.ops.pointwise import clamp, detach, eq, gt, isnan, logical_or, ne, to, where
from retrograd.ops.scan import cumsum
from retrograd.ops.scatter import scatter_max, scatter_min
from retrograd.ops.view import cat, expand, narrow, reshape, unsqueeze

# ------------------------------------------------------------------------------------------ rows by index


@op("lookup(Tensor weight, Tensor ids) -> Tensor")
class lookup(Internal, linear="weight", elements="moved", node_name="EmbeddingBackward0"):
    """Return the rows of weight (rows, ...) at the integer indices `ids`: (*ids.shape, ...)."""

    impl = xp.lookup

    def shape(weight, ids):
        if ids.dtype.kind not in "iu":
            raise TypeError(f"embedding: ids must be integers, got {ids.dtype}; convert with .to('int64')")
        if weight.ndim == 0:
            raise ValueError("embedding: the weight has no rows: it is 0-d")
        return Aval((*ids.shape, *weight.shape[1:]), weight.dtype)

    def vjp_weight(g, ids, weight_aval):
        return sum_rows(g, ids, weight_aval.shape[0])

    def dependence(i, out, weight, ids):
        return {d: d for d in range(ids.ndim)} if i else {d: d + ids.ndim - 1 for d in range(1, weight.ndim)}

    def indexed(weight, ids):
        return 0

    def select_part(part, weight, ids):
        own, inside = part.find(ids)
        rows = lookup(weight, inside)
        return where(append_dims(own, rows.ndim), rows, 0)

    def batch(batched, n, weight, ids):
        if not batched[0]:
            return lookup(weight, ids)
        lookup.definition.shape(*batch_loop.example_avals(batched, (weight, ids)))
        if not batched[1]:
            rows = index_select(weight, 1, reshape(ids, (numel(ids.shape),)))
            return reshape(rows, (n, *ids.shape, *weight.shape[2:]))
        tables = reshape(weight, (n * weight.shape[1], *weight.shape[2:]))
        return lookup(tables, stacked_indices(ids, size=weight.shape[1], dim=0))

    def oracle(np, weight, ids):
        return weight[ids]

    def samples(r):
        yield (r(5, 3), r.ints(5, (4,))), {}
        yield (r(5, 3), r.ints(5, (2, 2))), {}
        yield (r(5), r.ints(5, ())), {}

    def errors(r):
        yield (r(5, 3), r(2)), {}, TypeError, "ids must be integers, got float64"
        yield (r(5, 3), r.ints(1, (2,)) + 5), {}, IndexError, "index 5 is out of bounds for a dimension with size 5"


@op("sum_rows(Tensor src, Tensor ids, int size) -> Tensor")
class sum_rows(Internal, Family, linear="src", elements="summed", opmath="src"):
    """Return `size` rows: row i is the sum of the rows of src whose id is i.  The transpose of `lookup`."""

    def impl(xp, src, ids, *, size):
        return xp.sum_rows(src, ids, size)

    def shape(src, ids, *, size):
        if src.shape[: ids.ndim] != ids.shape:
            raise ValueError(f"sum_rows: shapes {src.shape} and {ids.shape} do not agree in front")
        return Aval((size, *src.shape[ids.ndim :]), src.dtype)

    def vjp_src(g, ids):
        return lookup(g, ids)

    def batch(batched, n, src, ids, *, size):
        if not batched[1]:
            count = numel(ids.shape)
            src = reshape(src, (n, count, *src.shape[1 + ids.ndim :]))
            return index_sum(src, reshape(ids, (count,)), dim=1, size=size)
        src = src if batched[0] else broadcast_batch(src, n)
        out = sum_rows(src, stacked_indices(ids, size=size, dim=0), n * size)
        return reshape(out, (n, size, *out.shape[1:]))

    def oracle(np, src, ids, size):
        out = np.zeros((size, *src.shape[ids.ndim :]))
        for index in np.ndindex(ids.shape):
            out[ids[index]] += src[index]
        return out

    def samples(r):
        yield (r(4, 3), r.ints(5, (4,))), {"size": 5}
        yield (r(2, 2, 3), r.ints(3, (2, 2))), {"size": 3}
        yield (r(4), r.ints(2, (4,))), {"size": 2}


# ------------------------------------------------------------------------------------------------- one by one


def _check_ids(name, dtype):
    """Raise TypeError unless PyTorch too takes ids of this dtype: not a table of another kind, or of pixels."""
    if dtype not in (dtypes.int64, dtypes.int32):
        raise TypeError(
            f"{name}: ids must be integers of 64 or 32 bits, got {dtype}; convert with .to('int64'): Expected tensor "
            f"for argument #1 'indices' to have one of the following scalar types: Long, Int"
        )


def _padding_row(name, padding_idx, rows):
    """Return the row that padding_idx names, which may count from the end; None without one."""
    if padding_idx is None:
        return None
    if -rows <= padding_idx < rows:
        return padding_idx % rows
    raise AssertedValueError(
        f"{name}: padding_idx must be within the number of embeddings, {-rows} through {rows - 1}, but got "
        f"{padding_idx}; Padding_idx must be within num_embeddings"
    )


def _renormalize(name, weight, ids, max_norm, norm_type):
    """Scale down, in place, the looked-up rows whose norm is greater than max_norm."""
    if max_norm is None:
        return
    weight, ids = detach(weight), reshape(ids, (-1,))
    rows = lookup(weight, ids)
    sizes = norm(rows, norm_type, -1, keepdim=True)
    set_item(weight, ids, rows * where(sizes > max_norm, max_norm / (sizes + 1e-7), 1))


@function()
@overridable
def embedding_renorm_(input, indices, max_norm, norm_type) -> Tensor:
    """Scale down, in place, the rows of a table (rows, size) at indices to a norm_type-norm of at most max_norm."""
    check_tensor("embedding_renorm_", input)
    _check_ids("embedding_renorm_", check_tensor("embedding_renorm_", indices).dtype)
    _renormalize("embedding_renorm_", input, indices, max_norm, norm_type)
    return input


def _lookup(name, weight, ids, scale_grad_by_freq, sparse, padding_idx=None):
    """Return the rows; with scale_grad_by_freq, gradients are divided by how often each row is looked up."""
    if sparse:
        if scale_grad_by_freq:
            raise RuntimeError(f"{name}: embedding_backward: scale_grad_by_freq not supported with sparse gradients")
        return registry["sparse.lookup"](weight, ids, padding_idx=padding_idx)
    out = lookup(weight, ids)
    if not scale_grad_by_freq:
        return out
    counts = sum_rows(to(eq(ids, ids), out.dtype), ids, weight.shape[0])
    shared = out / reshape(lookup(counts, ids), (*ids.shape, *(1,) * (out.ndim - ids.ndim)))
    return detach(out) + (shared - detach(shared))  # the value is that of `out`: the difference is 0


@op(
    "embedding(Tensor ids, Tensor weight, int? padding_idx=None, float? max_norm=None, float norm_type=2.0, "
    "bool scale_grad_by_freq=False, bool sparse=False) -> Tensor"
)
class embedding(Composite, home="nn.functional"):
    """Return the rows of weight (rows, size) at the integer indices `ids`: (*ids.shape, size).

    padding_idx: a constant row, which receives no gradient.  IndexError for ids out of range.
    max_norm: looked-up rows with a larger norm_type-norm are first scaled down to it, in place.
    scale_grad_by_freq: the gradient of a row is divided by how often it is looked up.
    sparse: the gradient of weight is a sparse tensor with an entry for each index; not with scale_grad_by_freq.

    >>> import retrograd as rg
    >>> rg.nn.functional.embedding(rg.tensor([2, 0]), rg.tensor([[0.0], [1.0], [2.0]])).tolist()
    [[2.0], [0.0]]
    """

    def compose(ids, weight, *, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse):
        if weight.ndim != 2:
            raise ValueError(f"embedding: expected weight (rows, size), got shape {weight.shape}; 'weight' must be 2-D")
        _check_ids("embedding", ids.dtype)
        padding_idx = _padding_row("embedding", padding_idx, weight.shape[0])
        _renormalize("embedding", weight, ids, max_norm, norm_type)
        out = _lookup("embedding", weight, ids, scale_grad_by_freq, sparse, padding_idx)
        if padding_idx is None or sparse:
            return out
        return where(append_dims(ids == padding_idx, out.ndim), detach(out), out)

    def oracle(np, ids, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse):
        return weight[ids]

    def samples(r):
        yield (r.ints(5, (2, 3)), r(5, 4)), {}
        yield (r.ints(3, (6,)), r(3, 4)), {"padding_idx": 1}

    def errors(r):
        yield (r.ints(5, (2,)), r(5, 4)), {"padding_idx": 5}, AssertionError, "-5 through 4, but got 5"
        yield (r(2), r(5, 4)), {}, TypeError, "ids must be integers of 64 or 32 bits, got float64"
        both = {"sparse": True, "scale_grad_by_freq": True}
        yield (r.ints(5, (2,)), r(5, 4)), both, RuntimeError, "scale_grad_by_freq not supported with sparse"


# ---------------------------------------------------------------------------------------------------- in bags


@op(
    "embedding_bag(Tensor ids, Tensor weight, Tensor? offsets=None, float? max_norm=None, float norm_type=2.0, "
    "bool scale_grad_by_freq=False, str mode='mean', bool sparse=False, Tensor? per_sample_weights=None, "
    "bool include_last_offset=False, int? padding_idx=None) -> Tensor"
)
class embedding_bag(Composite, home="nn.functional"):
    """Return the sum, mean or maximum ("sum", "mean", "max") of the rows of weight in each bag of ids: (bags, size).

    ids (bags, n), one bag per row; or (n,), with the offsets at which bags begin (include_last_offset: and the end
    of the last).  An empty bag gives 0.  per_sample_weights, in the shape of ids, multiply the rows before the sum.
    padding_idx: an id that is skipped.  max_norm, scale_grad_by_freq, sparse: as in `embedding`; no sparse gradients
    with "max".

    >>> import retrograd as rg
    >>> ids, weight = rg.tensor([0, 1, 2]), rg.tensor([[1.0], [2.0], [4.0]])
    >>> rg.nn.functional.embedding_bag(ids, weight, rg.tensor([0, 1]), mode="sum").tolist()
    [[1.0], [6.0]]
    """

    def compose(ids, weight, offsets, per_sample_weights, *, max_norm, norm_type, scale_grad_by_freq, mode, sparse,
                include_last_offset, padding_idx):  # fmt: skip
        if ids.dtype.kind == "f" and weight.dtype.kind in "iu":
            warn_user("embedding_bag: the first two arguments are swapped: pass the ids first, then weight")
            ids, weight = weight, ids
        _check_bags(ids, weight, offsets, per_sample_weights, mode, scale_grad_by_freq, sparse)
        padding_idx = _padding_row("embedding_bag", padding_idx, weight.shape[0])
        _renormalize("embedding_bag", weight, ids, max_norm, norm_type)
        bag, starts = _bag_indices(ids, offsets, include_last_offset)
        ids = reshape(ids, (-1,))
        counted = eq(ids, ids) if padding_idx is None else ne(ids, padding_idx)
        rows = _lookup("embedding_bag", weight, ids, scale_grad_by_freq, sparse, padding_idx)
        if mode == "max":
            return _bag_maxima(rows, bag, starts, counted)
        if per_sample_weights is not None:
            rows = rows * reshape(per_sample_weights, (-1, 1))
        count = starts.shape[0]
        rows = rows if padding_idx is None else where(unsqueeze(counted, 1), rows, 0)
        total = sum_rows(rows, bag, count)
        if mode == "sum":
            return total
        return total / unsqueeze(clamp(sum_rows(to(counted, rows.dtype), bag, count), min=1), 1)

    def oracle(np, ids, weight, offsets, per_sample_weights, include_last_offset, mode, padding_idx, **rest):
        factors = np.ones(ids.shape) if per_sample_weights is None else per_sample_weights
        if offsets is not None:
            cuts = offsets[1:-1] if include_last_offset else offsets[1:]
            ids, factors = np.split(ids, cuts), np.split(factors, cuts)
        bags = []
        for bag, shares in zip(ids, factors, strict=True):
            is_counted = np.full(len(bag), True) if padding_idx is None else bag != padding_idx
            rows = (weight[bag] * shares[:, None])[is_counted]
            bags.append(getattr(rows, mode if len(rows) else "sum")(axis=0))
        return np.stack(bags)

    def samples(r):
        yield (r.ints(5, (3, 2)), r(5, 4), None, None), {}
        yield (r.ints(5, (6,)), r(5, 4), _offsets(0, 2, 2, 5), None), {"padding_idx": 1}
        yield (r.ints(5, (3, 2)), r(5, 4), None, r(3, 2)), {"mode": "sum"}
        ended = {"mode": "max", "include_last_offset": True}
        yield (r.ints(5, (6,)), r(5, 4), _offsets(0, 2, 2, 6), None), ended

    def errors(r):
        ids, weight = r.ints(5, (6,)), r(5, 4)
        yield (ids, weight, None, None), {}, ValueError, "offsets"
        most = {"mode": "max", "sparse": True}
        yield (ids, weight, _offsets(0), None), most, ValueError, "max mode does not support sparse weights"
        yield (ids, weight, _offsets(0), None), {"mode": "median"}, ValueError, "mode must be 'sum', 'mean' or 'max'"
        yield (ids, weight, _offsets(0), r(6)), {}, NotImplementedError, "per_sample_weights .* 'sum'"
        yield (ids, weight, _offsets(0), r(5)), {"mode": "sum"}, ValueError, "must have the shape of ids"


def _offsets(*offsets):
    return registry["stack"]([registry["full"]((), n) for n in offsets])


def _check_bags(ids, weight, offsets, per_sample_weights, mode, scale_grad_by_freq, sparse):
    if mode not in ("sum", "mean", "max"):
        raise ValueError(f"embedding_bag: mode must be 'sum', 'mean' or 'max', got {mode!r}")
    if weight.ndim != 2 or ids.ndim not in (1, 2) or (ids.ndim == 1) != (offsets is not None and offsets.ndim == 1):
        raise ValueError(
            f"embedding_bag: expected weight (rows, size) and ids (bags, n), or (n,) and offsets (bags,), got "
            f"{weight.shape}, {ids.shape} and {None if offsets is None else offsets.shape}"
        )
    _check_ids("embedding_bag", ids.dtype if offsets is None else dtypes.promote(ids.dtype, offsets.dtype))
    if per_sample_weights is not None and per_sample_weights.dtype != weight.dtype:
        raise TypeError(
            f"embedding_bag: expected weight to have the same type as per_sample_weights, got {weight.dtype} and "
            f"{per_sample_weights.dtype}"
        )
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(f"embedding_bag: per_sample_weights are for mode 'sum', got {mode!r}")
    if per_sample_weights is not None and per_sample_weights.shape != ids.shape:
        raise ValueError(
            f"embedding_bag: per_sample_weights {per_sample_weights.shape} must have the shape of ids, {ids.shape}"
        )
    if sparse and mode == "max":
        raise ValueError("embedding_bag: max mode does not support sparse weights; use sparse=False")
    if scale_grad_by_freq and mode == "max":
        raise ValueError("embedding_bag: max mode does not support scaling the gradient by the frequency")


def _bag_indices(ids, offsets, include_last_offset):
    """Return the bag index of each id, and the offset of each bag."""
    if offsets is None:
        n, size = ids.shape
        numbers = registry["arange"](0, n, 1)
        return reshape(expand(unsqueeze(numbers, 1), (n, size)), (-1,)), numbers * size
    starts = narrow(offsets, 0, 0, offsets.shape[0] - 1) if include_last_offset else offsets
    begun = sum_rows(to(eq(starts, starts), "int64"), starts, ids.shape[0] + 1)
    return narrow(cumsum(begun, 0), 0, 0, ids.shape[0]) - 1, starts


def _bag_maxima(rows, bag, starts, counted):
    """Return the maximum of each bag's rows, per column, the first of equals; 0 for an empty bag."""
    n, (count,) = rows.shape[0], starts.shape
    rows = where(unsqueeze(counted, 1), rows, -math.inf)
    into = expand(unsqueeze(bag, 1), rows.shape)
    nothing = registry["full"]((1, rows.shape[1]), -math.inf, dtype=rows.dtype)
    shape, found = (count, rows.shape[1]), detach(rows)
    best = lookup(scatter_max(expand(nothing, shape), into, found, dim=0), bag)
    is_best = logical_or(eq(found, best), isnan(found))
    indices = where(is_best, unsqueeze(registry["arange"](0, n, 1), 1), n)
    first = scatter_min(registry["full"](shape, n), into, indices, dim=0)
    values = gather(cat([rows, nothing]), 0, first)
    return where(unsqueeze(gt(sum_rows(to(counted, "int64"), bag, count), 0), 1), values, 0)
