"""Indexing along one dimension by index tensors, of slices or of single elements, and its transposes."""

from typing import NamedTuple

from retrograd.core import Aval, Definition, Internal, NotBatchedError, op, registry
from retrograd.core import dtype as dtypes
from retrograd.core.errors import OperandIndexError
from retrograd.ops import batch_loop
from retrograd.ops.batching import at_least_1d, batch_all, broadcast_batch
from retrograd.ops.family import Composite, Rowwise, View, canonical_dim, numel, shape_without
from retrograd.ops.index import check_index_dtype
from retrograd.ops.opmath import Family
from retrograd.ops.pointwise import ge, logical_and, lt, to, where
from retrograd.ops.view import movedim, reshape


class Part(NamedTuple):
    """The indices from low to high of a dimension of some size, which a tensor has."""

    low: int
    high: int
    size: int

    def find(self, index):
        """Return which indices into the whole dimension are in the part, and those into the part, 0 for others.

        Indices that are out of range for the whole dimension are so for the part.
        """
        index = to(index, dtypes.int64)
        own = logical_and(ge(index, self.low), lt(index, self.high))
        valid = logical_and(ge(index, 0), lt(index, self.size))
        return own, where(own, index - self.low, where(valid, 0, index))

# ----------------------------------------------------------------------------------------------------- slices


@op("stacked_indices(Tensor index, *, int size, int dim) -> Tensor")
class stacked_indices(Internal, Rowwise, differentiable=False):
    """Convert indices into tables of one size, one per slice along `dim`, to indices into all tables joined."""

    def impl(xp, index, *, size, dim):
        return xp.stacked_indices(index, size, canonical_dim("stacked_indices", dim, index.ndim))

    def shape(index, *, size, dim):
        canonical_dim("stacked_indices", dim, index.ndim)
        return Aval(index.shape, dtypes.int64)

    def oracle(np, index, size, dim):
        return index + size * np.indices(index.shape)[dim]

    def samples(r):
        yield (r.ints(4, (3, 2)),), {"size": 4, "dim": 0}
        yield (r.ints(4, (3, 2)),), {"size": 5, "dim": 1}

    def errors(r):
        yield (r.ints(1, (2, 2)) + 3,), {"size": 3, "dim": 0}, IndexError, "index: index 3 is out of bounds"


@op("index_select(Tensor x, int dim, Tensor index) -> Tensor")
class index_select(Definition, linear="x", elements="moved"):
    """Select slices along `dim` by a 1-d integer tensor, in its order; negative indices are errors.

    >>> import retrograd as rg
    >>> rg.index_select(rg.tensor([[1.0, 2.0], [3.0, 4.0]]), 1, rg.tensor([1, 1, 0])).tolist()
    [[2.0, 2.0, 1.0], [4.0, 4.0, 3.0]]
    """

    def impl(xp, x, index, *, dim):
        at = check_slice_index("index_select", x, index, dim)
        return xp.index_select(x, index, at) if x.ndim else xp.index_select(x.reshape(1), index, at).reshape(())

    def shape(x, index, *, dim):
        at = check_slice_index("index_select", x, index, dim)
        if x.ndim == 0:
            return x
        return Aval((*x.shape[:at], numel(index.shape), *x.shape[at + 1 :]), x.dtype)

    def vjp_x(g, x_aval, index, dim):
        if x_aval.ndim == 0:
            return reshape(index_sum(reshape(g, (1,)), index, dim=dim, size=1), ())
        return index_sum(g, index, dim=dim, size=x_aval.shape[dim])

    def batch(batched, n, x, index, *, dim):
        at = check_slice_index("index_select", *batch_loop.example_avals(batched, (x, index)), dim)  # type: ignore[call-arg]
        if x.ndim == batched[0]:  # x of an example has no dimensions, and is one slice
            rows = reshape(x, (n, 1) if batched[0] else (1,))
            return reshape(index_select.definition.batch(batched, n, rows, index, dim=0), (n,))
        if not batched[1]:
            return index_select(x, at + 1, index)
        if batched[0]:
            x, index = movedim(x, at + 1, 1), stacked_indices(index, size=x.shape[at + 1], dim=0)
            out = index_select(reshape(x, (n * x.shape[1], *x.shape[2:])), 0, reshape(index, (numel(index.shape),)))
            return movedim(reshape(out, (n, numel(index.shape[1:]), *out.shape[1:])), 1, at + 1)
        out = index_select(x, at, reshape(index, (numel(index.shape),)))
        return movedim(reshape(out, (*x.shape[:at], n, numel(index.shape[1:]), *x.shape[at + 1 :])), at, 0)

    def oracle(np, x, index, dim):
        return np.take(x, index.ravel(), axis=dim) if x.ndim else x

    def samples(r):
        yield (r(2, 3, 4), r.ints(3, (5,))), {"dim": 1}
        yield (r(3), r.ints(3, ())), {"dim": -1}
        yield (r(), r.ints(1, (1,))), {"dim": 0}

    def errors(r):
        yield (r(), r.ints(1, (2,))), {"dim": 0}, ValueError, "index_select: a tensor without dimensions is one slice"
        yield (r(3, 4), r.ints(3, (2, 2))), {"dim": 0}, ValueError, r"index_select: .* 1-d, got shape \(2, 2\)"
        yield (r(3, 4), r.booleans(3)), {"dim": 0}, TypeError, "index_select: .* integers, got bool"
        yield (r(3), r.ints(1, (2,)) - 1), {"dim": 0}, IndexError, "index_select: index -1 is out of bounds"


def check_slice_index(name, x, index, dim):
    """Return `dim` from the front; an error unless `index` can select slices."""
    check_index_dtype(name, index)
    if index.ndim > 1:
        raise OperandIndexError(
            f"{name}: Index is supposed to be a vector: index must be 1-d, got shape {index.shape}; reshape it with "
            ".flatten()"
        )
    if x.ndim == 0 and numel(index.shape) != 1:
        raise ValueError(f"{name}: a tensor without dimensions is one slice, but index has shape {index.shape}")
    return canonical_dim(name, dim, x.ndim)


def scalar_to_slice(x):
    """Return a tensor without dimensions as one slice, others unchanged."""
    return x if x.ndim else reshape(x, (1,))


@op("index_sum(Tensor src, Tensor index, *, int dim, int size) -> Tensor")
class index_sum(Internal, Family, linear="src", elements="summed", opmath="src"):
    """Zeros of `size` slices along `dim`, plus each slice of src at its index: the transpose of index_select."""

    def impl(xp, src, index, *, dim, size):
        return xp.index_sum(src, index.reshape(-1), _check_one_index_per_slice("index_add", src, index, dim), size)

    def shape(src, index, *, dim, size):
        at = _check_one_index_per_slice("index_add", src, index, dim)
        return Aval((*src.shape[:at], size, *src.shape[at + 1 :]), src.dtype)

    def vjp_src(g, index, dim):
        return index_select(g, dim, index)

    def batch(batched, n, src, index, *, dim, size):
        at = _check_one_index_per_slice("index_add", *batch_loop.example_avals(batched, (src, index)), dim)  # type: ignore[call-arg]
        if not batched[1]:
            return index_sum(src, index, dim=at + 1, size=size)
        src = movedim(src if batched[0] else broadcast_batch(src, n), at + 1, 1)
        index = reshape(stacked_indices(index, size=size, dim=0), (numel(index.shape),))
        out = index_sum(reshape(src, (n * src.shape[1], *src.shape[2:])), index, dim=0, size=n * size)
        return movedim(reshape(out, (n, size, *out.shape[1:])), 1, at + 1)

    oracle = "retrograd.testing.references.scatter.index_sum"

    def samples(r):
        yield (r(2, 3, 4), r.ints(5, (3,))), {"dim": 1, "size": 5}
        yield (r(4, 10), r.ints(2, (4,))), {"dim": 0, "size": 2}


@op("add_slices(Tensor x, Tensor src, Tensor index, *, int dim) -> Tensor")
class add_slices(Internal, Family, linear="x,src", elements="summed", opmath="x src", node_name="IndexAddBackward0"):
    """x plus each slice of src at its index along `dim`."""

    def impl(xp, x, src, index, *, dim):
        return xp.add_slices(x, src, index.reshape(-1), _check_one_index_per_slice("index_add", src, index, dim))

    def shape(x, src, index, *, dim):
        _check_one_index_per_slice("index_add", src, index, dim)
        return x

    def vjp_x(g):
        return g

    def vjp_src(g, index, dim):
        return index_select(g, dim, index)

    def batch(batched, n, x, src, index, *, dim):
        x, src = (a if is_batched else broadcast_batch(a, n) for a, is_batched in zip((x, src), batched, strict=False))
        at = canonical_dim("index_add", dim, x.ndim - 1)
        if not batched[2]:
            return add_slices(x, src, index, dim=at + 1)
        return x + index_sum.definition.batch((True, True), n, src, index, dim=at, size=x.shape[at + 1])

    oracle = "retrograd.testing.references.scatter.add_slices"

    def samples(r):
        yield (r(2, 5, 4), r(2, 3, 4), r.ints(5, (3,))), {"dim": 1}
        yield (r(2, 10), r(4, 10), r.ints(2, (4,))), {"dim": 0}


def _check_one_index_per_slice(name, src, index, dim):
    at = check_slice_index(name, src, index, dim)
    if src.shape[at] != numel(index.shape):
        raise ValueError(
            f"{name}: index of shape {index.shape} does not fit source of shape {src.shape} at dimension {at}"
        )
    return at


# --------------------------------------------------------------------------------------------------- elements


@op("gather(Tensor x, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor")
class gather(Definition, linear="x", elements="moved", saves_input=True, memory="rows", snapshots="index"):
    """Gather elements of x along `dim`: for each position of `index`, the element at that index; not negative.

    The index has as many dimensions as x, and is no larger except along `dim`.  Gradients are never sparse.

    >>> import retrograd as rg
    >>> rg.gather(rg.tensor([[1.0, 2.0], [3.0, 4.0]]), 1, rg.tensor([[0], [1]])).tolist()
    [[1.0], [4.0]]
    """

    def impl(xp, x, index, *, dim, sparse_grad):
        return xp.gather(x, index, check_gather_index("gather", x.shape, index, dim))

    def shape(x, index, *, dim, sparse_grad):
        check_gather_index("gather", x.shape, index, dim)
        return Aval(index.shape, x.dtype)

    def vjp_x(g, x_aval, index, dim):
        return scatter_sum(g, index, shape=x_aval.shape, dim=dim)

    def batch(batched, n, x, index, *, dim, sparse_grad):
        (example,) = batch_loop.example_avals(batched[1:], (index,))
        at = check_gather_index("gather", x.shape[batched[0] :], example, dim)
        if not batched[0]:
            return _gather_unbatched(x, index, at)
        x, wide = (at_least_1d(a) for a in batch_all((x, index), batched, n))
        return reshape(gather(x, at + 1, wide), (n, *index.shape[batched[1] :]))

    oracle = "retrograd.testing.references.scatter.gather"

    def samples(r):
        yield (r(3, 4), r.ints(4, (2, 2))), {"dim": 1}
        yield (r(3, 4), r.ints(3, (5, 4))), {"dim": 0}
        yield (r(2, 3, 2), r.ints(3, (2, 1, 2))), {"dim": -2}

    def errors(r):
        yield (r(3, 4), r.ints(4, (4, 2))), {"dim": 1}, ValueError, r"gather: .*index of shape \(4, 2\) is larger"
        yield (r(3, 4), r.ints(4, (2,))), {"dim": 1}, ValueError, r"gather: .*index of shape \(2,\) .* dimensions"
        yield (r(3, 4), r(3, 2)), {"dim": 1}, TypeError, "gather: index must hold integers, got float64"
        yield (r(3), r.ints(1, (2,)) - 1), {"dim": 0}, IndexError, "gather: index -1 is out of bounds"


def _gather_unbatched(x, index, at):
    """Gather a batch of indices from one tensor, by joining the batch along the dimension."""
    indices = movedim(at_least_1d(index), 0, at)
    joined = reshape(indices, (*indices.shape[:at], numel(indices.shape[at : at + 2]), *indices.shape[at + 2 :]))
    out = gather(x if x.ndim else reshape(x, (1,)), at, joined)
    return reshape(movedim(reshape(out, indices.shape), at, 0), index.shape)


def check_gather_index(name, shape, index, dim):
    """Return `dim` from the front; an error unless `index` fits `shape`, with any size along `dim`."""
    at = canonical_dim(name, dim, len(shape))
    check_index_dtype(name, index)
    if index.ndim == len(shape) and index.shape[:at] == shape[:at] and index.shape[at + 1 :] == shape[at + 1 :]:
        return at
    if max(index.ndim, 1) != max(len(shape), 1):
        if numel(index.shape) == 0:  # PyTorch accepts an empty index in any shape
            return at
        raise ValueError(
            f"{name}: Index tensor must have the same number of dimensions as input tensor: index of shape "
            f"{index.shape} must have as many dimensions as the tensor of shape {tuple(shape)}"
        )
    if any(d != at and size > shape[d] for d, size in enumerate(index.shape)):
        other = next(d for d, size in enumerate(index.shape) if d != at and size > shape[d])
        raise ValueError(
            f"{name}: Size does not match at dimension {other} expected index {list(index.shape)} to be no larger than "
            f"self {list(shape)} apart from dimension {at}: index of shape {index.shape} is larger than the tensor of "
            f"shape {tuple(shape)} in another dimension than {at}"
        )
    return at


@op("scatter_sum(Tensor src, Tensor indices, *, int[] shape, int dim) -> Tensor")
class scatter_sum(Internal, Family, linear="src", elements="summed", opmath="src"):
    """Zeros of `shape`, plus each element of src at its index along `dim`: the transpose of gather."""

    def impl(xp, src, indices, *, shape, dim):
        return xp.scatter_along(src, indices, shape, _check_matching(src, indices, shape, dim))

    def shape(src, indices, *, shape, dim):
        _check_matching(src, indices, shape, dim)
        return Aval(shape, src.dtype)

    def vjp_src(g, indices, dim):
        return gather(g, dim, indices)

    def batch(batched, n, src, indices, *, shape, dim):
        at = _check_matching(*batch_loop.example_avals(batched, (src, indices)), shape, dim)  # type: ignore[call-arg]
        src, indices = (at_least_1d(a) for a in batch_all((src, indices), batched, n))
        return reshape(scatter_sum(src, indices, shape=(n, *(shape or (1,))), dim=at + 1), (n, *shape))

    def oracle(np, src, indices, shape, dim):
        out = np.zeros(shape)
        for position in np.ndindex(src.shape):
            target = list(position)
            target[dim] = indices[position]
            out[tuple(target)] += src[position]
        return out

    def samples(r):
        yield (r(3, 2), r.ints(4, (3, 2))), {"shape": (3, 4), "dim": 1}
        yield (r(2, 2), r.ints(4, (2, 2))), {"shape": (3, 4), "dim": 1}


def _check_matching(src, index, shape, dim):
    if src.shape != index.shape:
        raise ValueError(f"scatter_add: index of shape {index.shape} and src of shape {src.shape} do not match")
    return check_gather_index("scatter_add", shape, index, dim)


@op("wrap_indices(Tensor index, *, int size) -> Tensor")
class wrap_indices(Internal, View):
    """Convert negative indices to ones counted from the front; the tensor itself if there are none."""

    def impl(xp, index, *, size):
        return xp.wrap_indices(index, size)

    def shape(index, *, size):
        return Aval(index.shape, dtypes.int64)

    def batched_views(batch_shape, *, size):
        return (("wrap_indices", {"size": size}),)

    def oracle(np, index, size):
        return index % size

    def samples(r):
        yield (r.ints(6, (4,)) - 3,), {"size": 3}


@op("take_along_dim(Tensor x, Tensor indices, int? dim=None) -> Tensor")
class take_along_dim(Composite):
    """Gather elements along `dim`: for each position of `indices`, the element of x there; other dimensions broadcast.

    Negative indices count from the end.  Without dim, x and indices are flattened first.

    >>> import retrograd as rg
    >>> rg.take_along_dim(rg.tensor([[1.0, 5.0], [7.0, 2.0]]), rg.tensor([[-1, 0]]), 1).tolist()
    [[5.0, 1.0], [2.0, 7.0]]
    """

    def compose(x, indices, *, dim):
        if dim is None:
            x, indices, dim = reshape(x, (-1,)), reshape(indices, (-1,)), 0
        check_index_dtype("take_along_dim", indices)
        at = canonical_dim("take_along_dim", dim, x.ndim)
        if indices.ndim != x.ndim or shape_without(indices.shape, at) != shape_without(x.shape, at):
            x, indices = _broadcast_along(x, indices, at)
        return gather(x, at, wrap_indices(indices, size=x.shape[at] if x.ndim else 1))

    oracle = "retrograd.testing.references.scatter.take_along_dim"

    def samples(r):
        yield (r(3, 4), r.ints(4, (3, 2))), {"dim": 1}
        yield (r(3, 4), r.ints(3, (5, 4)) - 3), {"dim": 0}
        yield (r(3, 1), r.ints(3, (1, 2))), {"dim": 0}
        yield (r(3, 2), r.ints(6, (2, 2))), {}

    def errors(r):
        yield (r(3, 4), r.ints(4, (2, 2))), {"dim": 1}, ValueError, r"take_along_dim: indices of shape \(2, 2\)"
        yield (r(3, 4), r.ints(4, (3,))), {"dim": 1}, ValueError, r"take_along_dim: indices of shape \(3,\)"
        yield (r(3, 4), r(3, 2)), {"dim": 1}, TypeError, "take_along_dim: index must hold integers, got float64"


def _broadcast_along(x, indices, at):
    """Broadcast both to a common shape in their dimensions other than `at`."""
    if x.ndim != indices.ndim:
        raise ValueError(f"take_along_dim: indices of shape {indices.shape} and x of shape {x.shape} do not match")
    sizes = [{a, b} - {1} for a, b in zip(x.shape, indices.shape, strict=True)]
    if any(len(s) > 1 for i, s in enumerate(sizes) if i != at):
        raise ValueError(
            f"take_along_dim: indices of shape {indices.shape} do not match x of shape {x.shape} outside dimension {at}"
        )
    common = [s.pop() if len(s) == 1 else 1 for s in sizes]
    expand = registry["expand"]
    return tuple(expand(a, (*common[:at], a.shape[at], *common[at + 1 :])) for a in (x, indices))


@op("one_hot(Tensor tensor, int num_classes=-1) -> Tensor")
class one_hot(Definition, differentiable=False, aliases="nn.functional.one_hot"):
    """One-hot encode integer classes in a new last dimension, in int64."""

    def impl(xp, x, *, num_classes):
        _check_integers(x)
        if num_classes < -1:
            raise ValueError(f"one_hot: num_classes must be -1, to count them, or positive, got {num_classes}")
        if num_classes == -1 and 0 in x.shape:
            raise ValueError("one_hot: Can not infer total number of classes from empty tensor; give num_classes")
        return xp.one_hot(x, num_classes)

    def shape(x, *, num_classes):
        _check_integers(x)
        if num_classes < 0:
            raise ValueError("one_hot: without num_classes the shape depends on the values; give num_classes")
        return Aval((*x.shape, num_classes), dtypes.int64)

    def dependence(i, out, x, *, num_classes):
        return {d: d for d in range(x.ndim)}

    def batch(batched, n, x, *, num_classes):
        if num_classes < 0:
            raise NotBatchedError("one_hot: how many classes there are depends on the values; give num_classes")
        return one_hot(x, num_classes)

    def oracle(np, x, num_classes):
        return np.eye(x.max() + 1 if num_classes == -1 else num_classes, dtype=int)[x]

    def samples(r):
        yield (r.ints(3, (2, 2)),), {"num_classes": 4}

    def errors(r):
        yield (r(3),), {"num_classes": 4}, TypeError, "one_hot: .*expected integers, got float64"


def _check_integers(x):
    if x.dtype.kind not in "iu":
        raise TypeError(
            f"one_hot: one_hot is only applicable to index tensor of type LongTensor: expected integers, got "
            f"{x.dtype}; convert with .to('int64')"
        )
