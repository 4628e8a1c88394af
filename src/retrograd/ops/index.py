"""Indexing, and its transpose: adding into places."""

import operator

from retrograd import backend
from retrograd.core import Aval, Definition, Tensor, graph_level, op, registry
from retrograd.core import dtype as dtypes
from retrograd.ops.create import as_tensor
from retrograd.ops.family import Composite, View, canonical_dim, numel
from retrograd.ops.pointwise import to


class Slot:
    """The place of an index tensor in a static index."""

    def __repr__(self):
        return "T"

    def __reduce__(self):
        return "T"


T = Slot()


def fill(spec, ids):
    """The index that NumPy takes: each slot of the static part filled with the next index array."""
    rest = iter(ids)
    return tuple(next(rest) if s is T else s for s in spec)


@op("getitem(Tensor x, Tensor[] ids, *, any spec) -> Tensor")
class getitem(Definition, linear="x"):
    """x[spec], where each T in the static spec stands for the next index tensor, integer or boolean."""

    public = False
    method = False

    def impl(xp, x, *ids, spec):
        return x[fill(spec, ids)]

    def shape(x, *ids, spec):
        return Aval(indexed_shape(x, ids, spec), x.dtype)

    def vjp_x(g, x_aval, ids, spec):
        return index_put_sum(g, ids, shape=x_aval.shape, spec=spec)

    def samples(r):
        yield (r(4, 3), r.ints(3, (2, 2))), {"spec": (slice(None), T)}
        yield (r(4, 3, 5), r.ints(3, (2, 2)), r.ints(5, (2, 2))), {"spec": (slice(None), T, T)}
        yield (r(4, 3, 5), r.ints(4, (2,)), r.ints(5, (2,))), {"spec": (T, slice(0, 2), T)}

    def errors(r):
        yield (r(2, 3), r.ints(3, (2,)) + 4), {"spec": (T,)}, IndexError, "out of"


@op("slice(Tensor x, *, any spec) -> Tensor")
class basic_slice(View, linear="x"):
    """x[spec] for integers, slices, None and the ellipsis: a view."""

    public = False
    method = False

    def impl(xp, x, *, spec):
        # Without an ellipsis NumPy answers a scalar, a copy, where integers name one element.
        return x[spec] if Ellipsis in spec else x[(*spec, ...)]

    def shape(x, *, spec):
        return Aval(indexed_shape(x, (), spec), x.dtype)

    def vjp_x(g, x_aval, spec):
        return index_put_sum(g, (), shape=x_aval.shape, spec=spec)

    def samples(r):
        yield (r(4, 3),), {"spec": (slice(1, 3), None, -1)}
        yield (r(4, 3),), {"spec": (Ellipsis, slice(None, None, 2))}
        yield (r(4),), {"spec": (slice(None, None, -1),)}
        yield (r(4),), {"spec": (2,)}

    def errors(r):
        yield (r(4),), {"spec": (7,)}, IndexError, "out of"
        yield (r(4),), {"spec": (0, 0)}, IndexError, "too many"


@op("index_put_sum(Tensor src, Tensor[] ids, *, int[] shape, any spec) -> Tensor")
class index_put_sum(Definition, linear="src"):
    """Zeros of `shape` with src added at [spec]: the transpose of indexing.  A place named twice gets both."""

    public = False
    method = False

    def impl(xp, src, *ids, shape, spec):
        return xp.scatter_add(src, fill(spec, ids), shape)

    def shape(src, *ids, shape, spec):
        return Aval(shape, src.dtype)

    def vjp_src(g, ids, spec):
        return indexed(g, ids, spec)

    def samples(r):
        yield (r(4, 2), r.ints(5, (2,))), {"shape": (4, 5), "spec": (slice(None), T)}
        yield (r(3), r.ints(2, (3,))), {"shape": (2,), "spec": (T,)}
        yield (r(2, 3),), {"shape": (4, 3), "spec": (slice(1, 3),)}


def indexed_shape(x, ids, spec):
    """The shape of x[spec] for index tensors of the given avals."""
    return backend.indexed_shape(x.shape, fill(spec, [i.shape for i in ids]))


# ------------------------------------------------------------------------------------------------ x[...]


def index(x, key):
    """x[key], for everything that NumPy takes as a key, with tensors among the indices.

    The order of dimensions is NumPy's too: where integers and index tensors stand apart, as in x[0, :, [1, 2]], theirs
    comes first; in PyTorch integers do not count for that.
    """
    spec, ids = static_index(x, key if isinstance(key, tuple) else (key,))
    return indexed(x, ids, spec)


def indexed(x, ids, spec):
    """x[spec] as a view where there are neither tensors nor booleans among the indices."""
    copies = ids or any(isinstance(s, bool) for s in spec)
    return getitem(x, ids, spec=spec) if copies else basic_slice(x, spec=spec)


def static_index(x, key):
    """A key as its static part, with T for each index tensor, and these tensors.  Masks become indices."""
    key = [_as_index(k) for k in key]
    spec, ids = [], []
    for n, k in enumerate(key):
        if isinstance(k, Tensor) and k.dtype == dtypes.bool_:
            _check_mask(k, x, _begins(key, n, x.ndim))
            places = nonzero(k, as_tuple=True)
            ids += places
            spec += [T] * len(places)
        else:
            ids += [k] if isinstance(k, Tensor) else []
            spec.append(T if isinstance(k, Tensor) else k)
    return tuple(spec), ids


def _as_index(k):
    """One part of a key as an integer, a slice, None, the ellipsis, a boolean, or a tensor with dimensions."""
    if k is None or k is Ellipsis or isinstance(k, (slice, bool)):
        return k
    if isinstance(k, (list, tuple, range)) or hasattr(k, "dtype"):
        return _index_tensor(k)
    if hasattr(k, "__index__"):
        return operator.index(k)
    raise IndexError(f"index: expected integers, slices, None, ... or integer tensors, got {type(k).__name__}")


def _index_tensor(k):
    """A sequence, an array or a tensor as an index; of no dimensions, booleans and NumPy's integers are numbers."""
    i = as_tensor(k)
    if 0 in i.shape and not hasattr(k, "dtype"):
        i = to(i, dtypes.int64)
    if i.dtype.kind not in "iub":
        raise IndexError(f"index: tensors used as indices must be integer or boolean, got {i.dtype}")
    if i.ndim == 0 and (i.dtype == dtypes.bool_ or not isinstance(k, Tensor) or graph_level() is None):
        return i.item()
    return i


def _begins(key, n, ndim):
    """The dimension of the indexed tensor at which part n of a key begins."""
    if any(k is Ellipsis for k in key[:n]):
        return ndim - sum(map(_covered, key[n:]))
    return sum(map(_covered, key[:n]))


def _covered(k):
    """How many dimensions of the indexed tensor a part of a key stands for; the ellipsis for what is left."""
    if k is None or k is Ellipsis or isinstance(k, bool):
        return 0
    return k.ndim if isinstance(k, Tensor) and k.dtype == dtypes.bool_ else 1


def _check_mask(mask, x, at):
    if x.shape[at : at + mask.ndim] != mask.shape:
        raise IndexError(
            f"index: a mask of shape {mask.shape} does not fit a tensor of shape {x.shape} at dimension {at}"
        )


@op("nonzero_indices(Tensor x) -> Tensor")
class nonzero_indices(Definition, differentiable=False):
    """The places of the elements that are not zero: one row per element, one column per dimension."""

    public = False
    method = False

    def impl(xp, x):
        return xp.argwhere(x)

    def shape(x):
        raise NotImplementedError("nonzero: how many elements are not zero depends on their values")

    def samples(r):
        yield (r.booleans(3, 4),), {}


@op("nonzero(Tensor x, *, bool as_tuple=False) -> Tensor")
class nonzero(Composite, aliases="argwhere"):
    """The places of the elements that are not zero, as one (n, ndim) tensor or as one tensor per dimension.

    >>> import retrograd as rg
    >>> rg.nonzero(rg.tensor([[0, 3], [4, 0]])).tolist()
    [[0, 1], [1, 0]]
    """

    def compose(x, *, as_tuple):
        if not as_tuple:
            return nonzero_indices(x)
        places = nonzero_indices(x if x.ndim else registry["reshape"](x, (1,)))
        return tuple(basic_slice(places, spec=(slice(None), d)) for d in range(max(x.ndim, 1)))

    def samples(r):
        yield (r.booleans(3, 4),), {}
        yield (r.booleans(3, 4),), {"as_tuple": True}


@op("select(Tensor x, int dim, int index) -> Tensor")
class select(Composite):
    """The slice at `index` along `dim`, without that dimension; a view."""

    def compose(x, *, dim, index):
        at = canonical_dim("select", dim, x.ndim)
        return basic_slice(x, spec=(*(slice(None),) * at, index))

    def samples(r):
        yield (r(2, 3, 4),), {"dim": 1, "index": -1}


@op("take(Tensor x, Tensor index) -> Tensor")
class take(Composite):
    """The elements at the places that `index` names in x as one row, in the shape of index; -1 is the last.

    >>> import retrograd as rg
    >>> rg.take(rg.tensor([[1.0, 2.0], [3.0, 4.0]]), rg.tensor([0, -1])).tolist()
    [1.0, 4.0]
    """

    def compose(x, index):
        check_places("take", index)
        return getitem(registry["reshape"](x, (-1,)), [index], spec=(T,))

    def samples(r):
        yield (r(3, 4), r.ints(12, (2, 3)) - 4), {}
        yield (r(3), r.ints(3, ())), {}

    def errors(r):
        yield (r(3), r(2)), {}, TypeError, "take: index must hold integers, got float64"
        yield (r(3), r.ints(1, (2,)) + 3), {}, IndexError, "out of"


# ------------------------------------------------------------------------------- along one dimension: slices


def check_places(name, index):
    """Refuse what is no place."""
    if index.dtype.kind not in "iu":
        raise TypeError(f"{name}: index must hold integers, got {index.dtype}; convert with .to('int64')")


@op("index_select(Tensor x, int dim, Tensor index) -> Tensor")
class index_select(Definition, linear="x"):
    """The slices along `dim` that a 1-d integer tensor names, in its order; places count from 0.

    >>> import retrograd as rg
    >>> rg.index_select(rg.tensor([[1.0, 2.0], [3.0, 4.0]]), 1, rg.tensor([1, 1, 0])).tolist()
    [[2.0, 2.0, 1.0], [4.0, 4.0, 3.0]]
    """

    def impl(xp, x, index, *, dim):
        return xp.index_select(x, index, check_slices("index_select", x, index, dim))

    def shape(x, index, *, dim):
        at = check_slices("index_select", x, index, dim)
        return Aval((*x.shape[:at], numel(index.shape), *x.shape[at + 1 :]), x.dtype)

    def vjp_x(g, x_aval, index, dim):
        return index_sum(g, index, dim=dim, size=x_aval.shape[dim])

    def samples(r):
        yield (r(2, 3, 4), r.ints(3, (5,))), {"dim": 1}
        yield (r(3), r.ints(3, ())), {"dim": -1}

    def errors(r):
        yield (r(3, 4), r.ints(3, (2, 2))), {"dim": 0}, ValueError, r"index_select: .* 1-d, got shape \(2, 2\)"
        yield (r(3, 4), r.booleans(3)), {"dim": 0}, TypeError, "index_select: .* integers, got bool"
        yield (r(3), r.ints(1, (2,)) - 1), {"dim": 0}, IndexError, "index_select: -1 to -1 are named"


def check_slices(name, x, index, dim):
    """`dim` from the front, where `index` can name slices."""
    check_places(name, index)
    if index.ndim > 1:
        raise ValueError(f"{name}: index must be 1-d, got shape {index.shape}; reshape it with .flatten()")
    if x.ndim == 0:
        raise ValueError(f"{name}: a tensor without dimensions has no slices")
    return canonical_dim(name, dim, x.ndim)


@op("index_sum(Tensor src, Tensor index, *, int dim, int size) -> Tensor")
class index_sum(Definition, linear="src"):
    """Zeros of `size` slices along `dim`, each slice of src added where `index` says: index_select transposed."""

    public = False
    method = False

    def impl(xp, src, index, *, dim, size):
        return xp.index_sum(src, index.reshape(-1), _one_each("index_add", src, index, dim), size)

    def shape(src, index, *, dim, size):
        at = _one_each("index_add", src, index, dim)
        return Aval((*src.shape[:at], size, *src.shape[at + 1 :]), src.dtype)

    def vjp_src(g, index, dim):
        return index_select(g, dim, index)

    def samples(r):
        yield (r(2, 3, 4), r.ints(5, (3,))), {"dim": 1, "size": 5}
        yield (r(4, 10), r.ints(2, (4,))), {"dim": 0, "size": 2}


def _one_each(name, src, index, dim):
    at = check_slices(name, src, index, dim)
    if src.shape[at] != numel(index.shape):
        raise ValueError(
            f"{name}: index of shape {index.shape} does not fit source of shape {src.shape} at dimension {at}"
        )
    return at


# ----------------------------------------------------------------------------- along one dimension: elements


@op("gather(Tensor x, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor")
class gather(Definition, linear="x"):
    """Per position of `index`, the element of x at that place along `dim`; places count from 0.

    The index has as many dimensions as x, and is no larger but along `dim`.  Gradients are never sparse.

    >>> import retrograd as rg
    >>> rg.gather(rg.tensor([[1.0, 2.0], [3.0, 4.0]]), 1, rg.tensor([[0], [1]])).tolist()
    [[1.0], [4.0]]
    """

    def impl(xp, x, index, *, dim, sparse_grad):
        return xp.gather(x, index, check_along("gather", x.shape, index, dim))

    def shape(x, index, *, dim, sparse_grad):
        check_along("gather", x.shape, index, dim)
        return Aval(index.shape, x.dtype)

    def vjp_x(g, x_aval, index, dim):
        return scatter_sum(g, index, shape=x_aval.shape, dim=dim)

    def samples(r):
        yield (r(3, 4), r.ints(4, (2, 2))), {"dim": 1}
        yield (r(3, 4), r.ints(3, (5, 4))), {"dim": 0}
        yield (r(2, 3, 2), r.ints(3, (2, 1, 2))), {"dim": -2}

    def errors(r):
        yield (r(3, 4), r.ints(4, (4, 2))), {"dim": 1}, ValueError, r"gather: index of shape \(4, 2\) is larger"
        yield (r(3, 4), r.ints(4, (2,))), {"dim": 1}, ValueError, r"gather: index of shape \(2,\) .* dimensions"
        yield (r(3, 4), r(3, 2)), {"dim": 1}, TypeError, "gather: index must hold integers, got float64"
        yield (r(3), r.ints(1, (2,)) - 1), {"dim": 0}, IndexError, "gather: -1 to -1 are named"


def check_along(name, shape, index, dim):
    """`dim` from the front; an error unless `index` has the dimensions of `shape` and is larger at most along it."""
    at = canonical_dim(name, dim, len(shape))
    check_places(name, index)
    if max(index.ndim, 1) != max(len(shape), 1):
        raise ValueError(
            f"{name}: index of shape {index.shape} must have as many dimensions as the tensor of shape {tuple(shape)}"
        )
    if any(d != at and size > shape[d] for d, size in enumerate(index.shape)):
        raise ValueError(
            f"{name}: index of shape {index.shape} is larger than the tensor of shape {tuple(shape)} in another "
            f"dimension than {at}"
        )
    return at


@op("scatter_sum(Tensor src, Tensor indices, *, int[] shape, int dim) -> Tensor")
class scatter_sum(Definition, linear="src"):
    """Zeros of `shape` with each element of src added at its place along `dim`: gather transposed."""

    public = False
    method = False

    def impl(xp, src, indices, *, shape, dim):
        return xp.scatter_along(src, indices, shape, _matching(src, indices, shape, dim))

    def shape(src, indices, *, shape, dim):
        _matching(src, indices, shape, dim)
        return Aval(shape, src.dtype)

    def vjp_src(g, indices, dim):
        return gather(g, dim, indices)

    def samples(r):
        yield (r(3, 2), r.ints(4, (3, 2))), {"shape": (3, 4), "dim": 1}
        yield (r(2, 2), r.ints(4, (2, 2))), {"shape": (3, 4), "dim": 1}


def _matching(src, index, shape, dim):
    if src.shape != index.shape:
        raise ValueError(f"scatter_add: index of shape {index.shape} and src of shape {src.shape} do not match")
    return check_along("scatter_add", shape, index, dim)


@op("from_front(Tensor index, *, int size) -> Tensor")
class from_front(View):
    """Places counted from the front, of those that may be counted from the end too; itself if none is."""

    public = False
    method = False

    def impl(xp, index, *, size):
        return xp.wrapped(index, size)

    def shape(index, *, size):
        return Aval(index.shape, dtypes.int64)

    def samples(r):
        yield (r.ints(6, (4,)) - 3,), {"size": 3}


@op("take_along_dim(Tensor x, Tensor indices, int? dim=None) -> Tensor")
class take_along_dim(Composite):
    """Per position of `indices`, the element of x at that place along `dim`; the other dimensions broadcast.

    -1 is the last place.  Without dim, x and indices are taken as one row each.

    >>> import retrograd as rg
    >>> rg.take_along_dim(rg.tensor([[1.0, 5.0], [7.0, 2.0]]), rg.tensor([[-1, 0]]), 1).tolist()
    [[5.0, 1.0], [2.0, 7.0]]
    """

    def compose(x, indices, *, dim):
        if dim is None:
            x, indices, dim = registry["reshape"](x, (-1,)), registry["reshape"](indices, (-1,)), 0
        check_places("take_along_dim", indices)
        at = canonical_dim("take_along_dim", dim, x.ndim)
        if indices.ndim != x.ndim or _without(indices.shape, at) != _without(x.shape, at):
            x, indices = _broadcast_along(x, indices, at)
        return gather(x, at, from_front(indices, size=x.shape[at] if x.ndim else 1))

    def samples(r):
        yield (r(3, 4), r.ints(4, (3, 2))), {"dim": 1}
        yield (r(3, 4), r.ints(3, (5, 4)) - 3), {"dim": 0}
        yield (r(3, 1), r.ints(3, (1, 2))), {"dim": 0}
        yield (r(3, 2), r.ints(6, (2, 2))), {}

    def errors(r):
        yield (r(3, 4), r.ints(4, (2, 2))), {"dim": 1}, ValueError, r"take_along_dim: indices of shape \(2, 2\)"
        yield (r(3, 4), r.ints(4, (3,))), {"dim": 1}, ValueError, r"take_along_dim: indices of shape \(3,\)"
        yield (r(3, 4), r(3, 2)), {"dim": 1}, TypeError, "take_along_dim: index must hold integers, got float64"


def _without(shape, at):
    return shape[:at] + shape[at + 1 :]


def _broadcast_along(x, indices, at):
    """Both in the common shape of their dimensions other than `at`."""
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
    """Integer classes as rows of zeros with a single one, in a new last dimension of int64."""

    def impl(xp, x, *, num_classes):
        _check_integers(x)
        return xp.one_hot(x, num_classes)

    def shape(x, *, num_classes):
        _check_integers(x)
        if num_classes < 0:
            raise ValueError("one_hot: without num_classes the shape depends on the values; give num_classes")
        return Aval((*x.shape, num_classes), dtypes.int64)

    def samples(r):
        yield (r.ints(3, (2, 2)),), {"num_classes": 4}

    def errors(r):
        yield (r(3),), {"num_classes": 4}, TypeError, "one_hot: expected integers, got float64"


def _check_integers(x):
    if x.dtype.kind not in "iu":
        raise TypeError(f"one_hot: expected integers, got {x.dtype}; convert with .to('int64')")
