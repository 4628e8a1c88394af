"""Sorting, topk and kthvalue, binary search, membership, and unique elements."""

# `sorted` is a builtin; in this file it is a param of `unique` and `topk`.

from typing import Annotated

from retrograd.core import Aval, Definition, Internal, Tensor, op
from retrograd.core import dtype as dtypes
from retrograd.core.errors import OperandIndexError, OperandValueError
from retrograd.ops import batch_loop
from retrograd.ops.as_tensor import tensor
from retrograd.ops.batch_loop import DataDependent
from retrograd.ops.batching import batch_all, broadcast_batch
from retrograd.ops.create import zeros
from retrograd.ops.family import AlongDims, Composite, Rowwise, canonical_dim, numel, reduced_shape, shape_of
from retrograd.ops.gather import gather, index_select, scatter_sum, take_along_dim
from retrograd.ops.index import T, getitem, index_put_sum
from retrograd.ops.max_min import check_ordered, values_and_indices
from retrograd.ops.pointwise import clamp, eq, logical_not, to
from retrograd.ops.reduce import any as any_of
from retrograd.ops.view import movedim, reshape, unsqueeze

Distinct = Annotated[Tensor | tuple[Tensor, ...], "return_inverse return_counts"]
SIZE_UNKNOWN = "the number of distinct elements depends on the values, so there is no shape rule"


def _samples(r):
    yield (r(5),), {}
    yield (r(3, 4),), {"dim": 0}
    yield (r(3, 4),), {"descending": True}


# -------------------------------------------------------------------------------------------------- sorting


@op("argsort(Tensor x, int dim=-1, bool descending=False, bool stable=False) -> Tensor")
class argsort(Rowwise, memory="images", differentiable=False, node_name="SortBackward0"):
    """The indices that sort x along `dim`.  The sort is stable; NaN is the largest value.

    >>> import retrograd as rg
    >>> rg.argsort(rg.tensor([3.0, 1.0, 2.0])).tolist()
    [1, 2, 0]
    """

    def impl(xp, x, *, dim, descending, stable):
        check_ordered("argsort", x)
        return xp.sort_indices(x, dim, descending)

    def shape(x, *, dim, descending, stable):
        check_ordered("argsort", x)
        canonical_dim("argsort", dim, x.ndim)
        return Aval(x.shape, dtypes.int64)

    oracle = "retrograd.testing.references.sort.sort_indices"

    samples = _samples

    def errors(r):
        yield (r(3),), {"dim": 1}, IndexError, "argsort: dim 1 is out of range"


@op("sort(Tensor x, int dim=-1, bool descending=False, *, bool stable=False) -> (Tensor values, Tensor indices)")
class sort(Composite):
    """x sorted along `dim` and the indices that sort it, as a named tuple (values, indices).

    The sort is always stable: equal elements keep their order.  NaN is the largest value.

    >>> import retrograd as rg
    >>> values, indices = rg.sort(rg.tensor([3.0, 1.0, 2.0]))
    >>> values.tolist(), indices.tolist()
    ([1.0, 2.0, 3.0], [1, 2, 0])
    """

    def compose(x, *, dim, descending, stable):
        check_ordered("sort", x)
        canonical_dim("sort", dim, x.ndim)
        return values_and_indices(x, argsort, {"descending": descending, "stable": stable}, dim)

    oracle = "retrograd.testing.references.sort.sort"

    samples = _samples

    def errors(r):
        yield (r(3),), {"dim": 1}, IndexError, "^sort: dim 1 is out of range"


@op("sorted_values(Tensor x, *, int dim, bool descending=False) -> Tensor")
class sorted_values(Internal, Rowwise, memory="images", snapshots="x", node_name="SortBackward0"):
    """x sorted along `dim`; the indices are computed only if derivatives are needed."""

    def impl(xp, x, *, dim, descending):
        check_ordered("sorted_values", x)
        return xp.sorted_values(x, dim, descending)

    def vjp_x(g, x, dim, descending):
        return scatter_sum(g, argsort(x, dim, descending), shape=x.shape, dim=dim) if x.ndim else g

    def jvp_x(t, x, dim, descending):
        return take_along_dim(t, argsort(x, dim, descending), dim) if x.ndim else t

    oracle = "retrograd.testing.references.sort.sorted_values"

    def samples(r):
        yield (r(5),), {"dim": 0}
        yield (r(3, 4),), {"dim": 0, "descending": True}


@op("msort(Tensor x) -> Tensor")
class msort(Composite):
    """x sorted along the first dimension.

    >>> import retrograd as rg
    >>> rg.msort(rg.tensor([3, 1, 2])).tolist()
    [1, 2, 3]
    """

    def compose(x):
        check_ordered("msort", x)
        return sorted_values(x, dim=0)

    def oracle(np, x):
        return np.sort(x, axis=0)

    def samples(r):
        yield (r(4, 3),), {}


# ----------------------------------------------------------------------------------------------- by rank


@op("topk_indices(Tensor x, *, int k, int dim, bool largest) -> Tensor")
class topk_indices(Internal, AlongDims, differentiable=False, node_name="TopkBackward0"):
    """The indices of the k largest, or smallest, elements along `dim`, in their order; the first of equals."""

    def impl(xp, x, *, k, dim, largest):
        _check_k("topk", x, k, dim)
        return xp.topk_indices(x, k, dim, largest)

    def shape(x, *, k, dim, largest):
        at = _check_k("topk", x, k, dim)
        return Aval((*x.shape[:at], k, *x.shape[at + 1 :]) if x.ndim else (), dtypes.int64)

    oracle = "retrograd.testing.references.sort.largest"

    def samples(r):
        yield (r(5),), {"k": 2, "dim": 0, "largest": True}
        yield (r(4, 3),), {"k": 3, "dim": 0, "largest": False}


def _check_k(name, x, k, dim):
    """`dim` as a nonnegative number; ValueError unless it has at least k elements."""
    at = canonical_dim(name, dim, x.ndim)
    size = x.shape[at] if x.ndim else 1
    if not (0 if name == "topk" and x.ndim else 1) <= k <= size:
        words = "selected index k out of range" if name == "topk" else "selected number k out of range for dimension"
        words = words if name == "topk" else f"{words} {at}"
        kind = OperandValueError if size else OperandIndexError
        raise kind(
            f"{name}: {words}: k={k} elements can't be chosen from {size}, along dimension {at} of shape {x.shape}"
        )
    return at


@op("topk(Tensor x, int k, int? dim=None, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices)")
class topk(Composite):
    """The k largest (or smallest) elements along `dim` (None: the last), and their indices, sorted by rank.

    If elements are equal, the first are chosen.  NaN is the largest value.

    >>> import retrograd as rg
    >>> values, indices = rg.topk(rg.tensor([3.0, 1.0, 2.0]), 2)
    >>> values.tolist(), indices.tolist()
    ([3.0, 2.0], [0, 2])
    """

    def compose(x, *, k, dim, largest, sorted):
        check_ordered("topk", x)
        dim = -1 if dim is None else dim
        return values_and_indices(x, topk_indices, {"k": k, "largest": largest}, dim)

    oracle = "retrograd.testing.references.sort.topk"

    def samples(r):
        yield (r(5),), {"k": 2}
        yield (r(4, 3),), {"k": 3, "dim": 0, "largest": False}

    def errors(r):
        yield (r(3),), {"k": 4}, ValueError, "topk: .*k=4 elements can't be chosen from 3"


@op("kth_indices(Tensor x, *, int k, int dim) -> Tensor")
class kth_indices(Internal, AlongDims, differentiable=False, node_name="KthvalueBackward0"):
    """The index of the k-th smallest element along `dim`, which remains as a dimension of size 1."""

    def impl(xp, x, *, k, dim):
        _check_k("kthvalue", x, k, dim)
        return xp.kth_indices(x, k, dim)

    def shape(x, *, k, dim):
        return Aval(reduced_shape(x.shape, (_check_k("kthvalue", x, k, dim),), True), dtypes.int64)

    oracle = "retrograd.testing.references.sort.ranked"

    def samples(r):
        yield (r(5),), {"k": 2, "dim": 0}
        yield (r(4, 3),), {"k": 4, "dim": 0}


@op("kthvalue(Tensor x, int k, int? dim=None, bool keepdim=False) -> (Tensor values, Tensor indices)")
class kthvalue(Composite):
    """The k-th smallest element (k from 1) along `dim` (None: the last), and its index.

    Equal elements are ranked by index.  NaN is the largest value.

    >>> import retrograd as rg
    >>> rg.kthvalue(rg.tensor([3.0, 1.0, 2.0]), 2).values.item()
    2.0
    """

    def compose(x, *, k, dim, keepdim):
        check_ordered("kthvalue", x)
        dim = -1 if dim is None else dim
        return values_and_indices(x, kth_indices, {"k": k}, dim, keepdim)

    oracle = "retrograd.testing.references.sort.kthvalue"

    def samples(r):
        yield (r(5),), {"k": 2}
        yield (r(4, 3),), {"k": 1, "dim": 0, "keepdim": True}

    def errors(r):
        yield (r(3),), {"k": 0}, ValueError, "kthvalue: .*k=0 elements can't be chosen from 3"


# ------------------------------------------------------------------------------------------------ searching


@op("insertion_indices(Tensor sequence, Tensor values, Tensor? sorter, *, bool right) -> Tensor")
class insertion_indices(Internal, differentiable=False):
    """The insertion index of each value in the sorted rows."""

    def impl(xp, sequence, values, sorter, *, right):
        _check_rows(sequence, values, sorter)
        return xp.insertion_indices(sequence, values, sorter, right)

    def shape(sequence, values, sorter, *, right):
        _check_rows(sequence, values, sorter)
        return Aval(shape_of(values), dtypes.int64)

    def batch(batched, n, sequence, values, sorter, *, right):
        if not batched[0] and not batched[2] and sequence.ndim == 1:
            return insertion_indices(sequence, values, sorter, right=right)
        _check_rows(*batch_loop.example_avals(batched, (sequence, values, sorter)))
        sequence, sorter = batch_all((sequence, sorter), (batched[0], batched[2]), n)
        rows = _rows(values, batched[1], n, sequence.ndim - 1)
        return reshape(insertion_indices(sequence, rows, sorter, right=right), (n, *shape_of(values)[batched[1] :]))

    oracle = "retrograd.testing.references.sort.insertion_index"

    def samples(r):
        yield (tensor([0, 1, 2, 3, 4]), r.ints(5, (2, 3)), None), {"right": False}
        sequence = r(2, 4)
        yield (sequence, r(2, 3), argsort(sequence, -1)), {"right": True}


def _rows(values, batched, n, ndim):
    """The values of each example (or one number), with the dimensions after the first `ndim` flattened."""
    if not hasattr(values, "dtype"):
        values = tensor(values, dtype=dtypes.float64 if isinstance(values, float) else None)
    values = values if batched else broadcast_batch(values, n)
    return reshape(values, (*values.shape[:ndim], numel(values.shape[ndim:])))


def _check_numbers_ordered(name, *given):
    for x in given:
        if hasattr(x, "dtype"):
            check_ordered(name, x)


def _check_rows(sequence, values, sorter):
    _check_numbers_ordered("insertion_indices", sequence, values)
    if not sequence.ndim:
        raise ValueError("searchsorted: expected a sorted sequence, got a tensor without dimensions")
    if sequence.ndim > 1 and sequence.shape[:-1] != shape_of(values)[:-1]:
        raise ValueError(
            f"searchsorted: the sequences, of shape {sequence.shape}, and the values, of shape {shape_of(values)}, "
            "must agree except in the last dimension"
        )
    if sorter is not None and (sorter.shape != sequence.shape or sorter.dtype.kind not in "iu"):
        raise ValueError(
            f"searchsorted: sorter must hold indices into the sequence, of shape {sequence.shape}, "
            f"got {sorter.dtype} of shape {sorter.shape}"
        )


def _search(sequence, values, sorter, right, out_int32):
    indices = insertion_indices(sequence, values, sorter, right=right)
    return to(indices, dtypes.int32) if out_int32 else indices


@op(
    "searchsorted(Tensor sorted_sequence, Tensor input, *, bool out_int32=False, bool right=False, "
    "str? side=None, Tensor? sorter=None) -> Tensor"
)
class searchsorted(Composite):
    """The index at which each value is inserted into a sorted sequence; `right`, or side="right": after equal elements.

    The sequence has one dimension, or one row for each row of the values.  NaN is the largest value.  `sorter` holds
    the indices that sort the sequence, such as `argsort` returns.

    >>> import retrograd as rg
    >>> rg.searchsorted(rg.tensor([1.0, 3.0, 5.0]), rg.tensor([0.0, 3.0, 9.0])).tolist()
    [0, 1, 3]
    """

    method = False

    def compose(sorted_sequence, input, sorter, *, out_int32, right, side):
        if side not in (None, "left", "right"):
            raise ValueError(f"searchsorted: side must be 'left' or 'right', got {side!r}")
        _check_numbers_ordered("searchsorted", sorted_sequence, input)
        if right and side == "left":
            raise ValueError("searchsorted: right=True and side='left' contradict each other")
        return _search(sorted_sequence, input, sorter, right or side == "right", out_int32)

    oracle = "retrograd.testing.references.sort.insertion_index"

    def samples(r):
        yield (tensor([0, 1, 2, 3, 4]), r.ints(5, (2, 3)), None), {"right": True}
        yield (tensor([0, 1, 2, 3, 4]), r(2, 3), None), {"out_int32": True}
        yield (sorted_values(r(2, 4), dim=1), r(2, 3), None), {"side": "right"}
        yield (r.ints(9, (1,)), r.ints(9, (4,)), r.ints(1, (1,))), {}

    def errors(r):
        yield (r(3), r(2), None), {"side": "middle"}, ValueError, "side must be 'left' or 'right', got 'middle'"
        yield (r(3), r(2), None), {"side": "left", "right": True}, ValueError, "contradict"
        yield (r(2, 3), r(2), None), {}, ValueError, "searchsorted: .* must agree except in the last dimension"
        yield (r(3), r(2), r.ints(2, (2,))), {}, ValueError, "searchsorted: sorter must hold indices"


@op("bucketize(Tensor x, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor")
class bucketize(Composite):
    """The index of the bucket between sorted boundaries for each element of x: `searchsorted` with arguments swapped.

    >>> import retrograd as rg
    >>> rg.bucketize(rg.tensor([0.5, 2.0]), rg.tensor([1.0, 2.0, 3.0])).tolist()
    [0, 1]
    """

    method = False

    def compose(x, boundaries, *, out_int32, right):
        if boundaries.ndim != 1:
            raise ValueError(f"bucketize: boundaries must be 1-d, got shape {boundaries.shape}")
        _check_numbers_ordered("bucketize", x, boundaries)
        return _search(boundaries, x, None, right, out_int32)

    oracle = "retrograd.testing.references.sort.bucketize"

    def samples(r):
        yield (r(2, 3), tensor([0, 1, 2, 3, 4])), {}
        yield (r.ints(5, (4,)), tensor([0, 1, 2, 3, 4])), {"right": True, "out_int32": True}

    def errors(r):
        yield (r(3), r(2, 2)), {}, ValueError, r"bucketize: boundaries must be 1-d, got shape \(2, 2\)"


# ----------------------------------------------------------------------------------------- what is there twice


@op("isin(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> Tensor")
class isin(Definition, differentiable=False):
    """Whether each of `elements` is (`invert`: is not) in `test_elements`; one of the two may be a number.

    `assume_unique` states that neither has duplicates, which may save time.  NaN equals nothing.

    >>> import retrograd as rg
    >>> rg.isin(rg.tensor([1, 2, 3]), rg.tensor([2, 9])).tolist()
    [False, True, False]
    """

    method = False

    def impl(xp, elements, test_elements, *, assume_unique, invert):
        return xp.is_among(elements, test_elements, assume_unique, invert)

    def shape(elements, test_elements, *, assume_unique, invert):
        return Aval(shape_of(elements), dtypes.bool_)

    def batch(batched, n, elements, test_elements, *, assume_unique, invert):
        if not batched[1]:
            return isin(elements, test_elements, assume_unique=assume_unique, invert=invert)
        rows, others = _rows(elements, batched[0], n, 1), _rows(test_elements, True, n, 1)
        found = reshape(_isin_rows(rows, others), (n, *shape_of(elements)[batched[0] :]))
        return logical_not(found) if invert else found

    def oracle(np, elements, test_elements, assume_unique, invert):
        return np.vectorize(lambda e: (e in np.ravel(test_elements).tolist()) != invert)(elements)

    def samples(r):
        yield (r.ints(5, (2, 3)), r.ints(5, (2,))), {}
        yield (r.ints(5, (4,)), 2), {"invert": True}
        yield (r(3), r(2)), {"assume_unique": True}


def _isin_rows(x, rows):
    """Whether each element of a row of x is in the corresponding row of the other."""
    if rows.shape[1] == 0:
        return zeros(x.shape, dtype=dtypes.bool_)
    if "c" in (x.dtype.kind, rows.dtype.kind):  # complex numbers have no order to search by
        return any_of(eq(unsqueeze(x, 2), unsqueeze(rows, 1)), 2)
    ranked = sorted_values(rows, dim=1)
    indices = insertion_indices(ranked, x, None, right=False)
    return eq(gather(ranked, 1, clamp(indices, max=rows.shape[1] - 1)), x)


def _raise_unknown_size(name):
    raise NotImplementedError(f"{name}: how many different elements there are depends on their values")


@op("unique_values(Tensor x, *, bool counted=False) -> (Tensor values, Tensor counts)")
class unique_values(Internal, DataDependent, node_name="Unique2Backward0"):
    """The unique elements of a 1-d tensor, sorted, and optionally their counts.

    Their indices are computed only if derivatives are needed.
    """

    def impl(xp, x, *, counted):
        check_ordered("unique_values", x)
        return xp.unique_values_and_counts(x, counted)

    def shape(x, *, counted):
        check_ordered("unique_values", x)
        _raise_unknown_size("unique")

    def vjp_x(g, x):
        return index_put_sum(g[0], [unique_indices(x)[0]], shape=x.shape, spec=(T,))

    def jvp_x(t, x):
        return getitem(t, [unique_indices(x)[0]], spec=(T,)), None

    exempt = {"shape float32 integers empty vmap": SIZE_UNKNOWN}

    def oracle(np, x, counted):
        return (np.array(sorted(set(x.tolist()))), np.unique(x, return_counts=True)[1] if counted else np.empty(0),)

    def samples(r):
        yield (r.ints(5, (6,)),), {"counted": True}
        yield (r(4),), {}


@op("unique_indices(Tensor x, *, bool consecutive=False) -> (Tensor places, Tensor inverse, Tensor counts)")
class unique_indices(Internal, DataDependent, differentiable=False):
    """The unique slices along the first dimension: index of the first occurrence, inverse indices, counts."""

    def impl(xp, x, *, consecutive):
        return (xp.run_starts if consecutive else xp.sorted_run_starts)(x)

    def shape(x, *, consecutive):
        _raise_unknown_size("unique_consecutive" if consecutive else "unique")

    exempt = {"shape float32 integers empty vmap": SIZE_UNKNOWN}

    oracle = "retrograd.testing.references.sort.unique_indices"

    def samples(r):
        yield (r.ints(5, (6,)),), {}
        yield (r.ints(2, (6, 2)),), {}
        yield (r.ints(2, (6,)),), {"consecutive": True}


@op(
    "unique(Tensor x, bool sorted=True, bool return_inverse=False, bool return_counts=False, int? dim=None) -> Tensor"
)
class unique(Composite):
    """The unique elements of x, sorted; with `dim`, the unique slices along it.

    `return_inverse` adds the index in the result of each element, `return_counts` the number of occurrences; the
    results are then a tuple.  The gradient goes to the first of equal elements.  NaN equals nothing.

    >>> import retrograd as rg
    >>> values, counts = rg.unique(rg.tensor([3, 1, 3]), return_counts=True)
    >>> values.tolist(), counts.tolist()
    ([1, 3], [1, 2])
    """

    def compose(x, *, sorted, return_inverse, return_counts, dim) -> Distinct:
        check_ordered("unique", x)
        if dim is None and not return_inverse:
            values, counts = unique_values(reshape(x, (-1,)), counted=return_counts)
            return (values, counts) if return_counts else values
        return _unique("unique", x, False, return_inverse, return_counts, dim)

    exempt = {"vmap": "the size of the result depends on the values"}

    def oracle(np, x, sorted, return_inverse, return_counts, dim):
        values, inverse, counts = np.unique(x, return_inverse=True, return_counts=True, axis=dim)
        inverse = inverse.reshape(x.shape if dim is None else -1)  # in NumPy 2.0, it has the dimensions of x
        return (values, *[inverse] * return_inverse, *[counts] * return_counts)

    def samples(r):
        yield (r.ints(5, (2, 3)),), {}
        yield (r(4),), {}
        yield (r.ints(5, (2, 3)),), {"return_inverse": True, "return_counts": True}
        yield (r.ints(2, (5, 2)),), {"dim": 0, "return_inverse": True}
        yield (r(2, 3),), {"dim": -1}

    def errors(r):
        yield (r(3),), {"dim": 1}, IndexError, "unique: dim 1 is out of range"


@op(
    "unique_consecutive(Tensor x, bool return_inverse=False, bool return_counts=False, int? dim=None) -> Tensor"
)
class unique_consecutive(Composite):
    """The elements of x without consecutive duplicates; with `dim`, the slices along it.

    The other results and the derivative are as for `unique`.

    >>> import retrograd as rg
    >>> rg.unique_consecutive(rg.tensor([1, 1, 3, 1])).tolist()
    [1, 3, 1]
    """

    def compose(x, *, return_inverse, return_counts, dim) -> Distinct:
        return _unique("unique_consecutive", x, True, return_inverse, return_counts, dim)

    exempt = {"vmap": "the size of the result depends on the values"}

    oracle = "retrograd.testing.references.sort.unique_consecutive"

    def samples(r):
        yield (r.ints(2, (8,)),), {"return_counts": True}
        yield (r.ints(2, (6, 2)),), {"dim": 0, "return_inverse": True}
        yield (r(3, 2),), {}


def _unique(name, x, consecutive, return_inverse, return_counts, dim):
    at = 0 if dim is None else canonical_dim(name, dim, x.ndim)
    slices = reshape(x, (-1,)) if dim is None else movedim(x, at, 0)
    indices, inverse, counts = unique_indices(slices, consecutive=consecutive)
    values = index_select(x if dim is not None else slices, at, indices)
    inverse = reshape(inverse, x.shape) if dim is None else inverse
    requested = (values, *[inverse] * return_inverse, *[counts] * return_counts)
    return requested if len(requested) > 1 else values
