"""Indexing, and its transpose: adding into places."""

import operator

from retrograd import backend
from retrograd.core import Aval, Definition, Tensor, graph_level, op, registry
from retrograd.core import dtype as dtypes
from retrograd.ops.create import as_tensor
from retrograd.ops.family import Composite, View, canonical_dim
from retrograd.ops.pointwise import to, where


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
    """x[key], for everything that NumPy takes as a key, with tensors among the indices."""
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
    if isinstance(k, list) or hasattr(k, "dtype"):
        return _index_tensor(k)
    if hasattr(k, "__index__"):
        return operator.index(k)
    raise IndexError(f"index: expected integers, slices, None, ... or integer tensors, got {type(k).__name__}")


def _index_tensor(k):
    """A list, an array or a tensor as an index tensor; of no dimensions, booleans and NumPy's integers are numbers."""
    i = as_tensor(k)
    if isinstance(k, list) and 0 in i.shape:
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
class nonzero(Composite):
    """The places of the elements that are not zero, as one (n, ndim) tensor or as one tensor per dimension."""

    def compose(x, *, as_tuple):
        places = nonzero_indices(x)
        return tuple(basic_slice(places, spec=(slice(None), d)) for d in range(x.ndim)) if as_tuple else places

    def samples(r):
        yield (r.booleans(3, 4),), {}


@op("select(Tensor x, int dim, int index) -> Tensor")
class select(Composite):
    """The slice at `index` along `dim`, without that dimension; a view."""

    def compose(x, *, dim, index):
        at = canonical_dim("select", dim, x.ndim)
        return basic_slice(x, spec=(*(slice(None),) * at, index))

    def samples(r):
        yield (r(2, 3, 4),), {"dim": 1, "index": -1}


@op("index_select(Tensor x, int dim, Tensor index) -> Tensor")
class index_select(Composite):
    """The slices along `dim` that a 1-d integer tensor names, in its order."""

    def compose(x, index, *, dim):
        at = canonical_dim("index_select", dim, x.ndim)
        if index.dtype.kind not in "iu":
            raise TypeError(f"index_select: index must hold integers, got {index.dtype}; convert with .to('int64')")
        if index.ndim != 1:
            raise ValueError(f"index_select: index must be 1-d, got shape {index.shape}; reshape it with .flatten()")
        return getitem(x, [index], spec=(*(slice(None),) * at, T))

    def samples(r):
        yield (r(2, 3, 4), r.ints(3, (5,))), {"dim": 1}

    def errors(r):
        yield (r(3, 4), r.ints(3, (2, 2))), {"dim": 0}, ValueError, r"index_select: .* 1-d, got shape \(2, 2\)"
        yield (r(3, 4), r.booleans(3)), {"dim": 0}, TypeError, "index_select: .* integers, got bool"


# ------------------------------------------------------------------------------------- along one dimension


@op("take_along_dim(Tensor x, Tensor indices, int dim) -> Tensor")
class take_along_dim(Definition, linear="x"):
    """Per position of `indices`, the element of x at that place along `dim`; other dimensions match one to one."""

    def impl(xp, x, indices, *, dim):
        _check_along(x, indices, dim)
        return xp.take_along_axis(x, indices, axis=dim)

    def shape(x, indices, *, dim):
        _check_along(x, indices, dim)
        return Aval(indices.shape, x.dtype)

    def vjp_x(g, x_aval, indices, dim):
        return scatter_sum(g, indices, shape=x_aval.shape, dim=dim)

    def samples(r):
        yield (r(3, 4), r.ints(4, (3, 2))), {"dim": 1}
        yield (r(3, 4), r.ints(3, (5, 4))), {"dim": 0}

    def errors(r):
        yield (r(3, 4), r.ints(4, (1, 2))), {"dim": 1}, ValueError, r"indices of shape \(1, 2\) do not match"
        yield (r(3, 4), r(3, 2)), {"dim": 1}, TypeError, "take_along_dim: indices must be integers, got float64"


def _check_along(x, indices, dim):
    at = canonical_dim("take_along_dim", dim, x.ndim)
    if indices.dtype.kind not in "iu":
        raise TypeError(f"take_along_dim: indices must be integers, got {indices.dtype}; convert with .to('int64')")
    if x.ndim == 0 or indices.ndim != x.ndim or _without(indices.shape, at) != _without(x.shape, at):
        raise ValueError(
            f"take_along_dim: indices of shape {indices.shape} do not match x of shape {x.shape} outside dimension {at}"
        )


def _without(shape, at):
    return shape[:at] + shape[at + 1 :]


@op("gather(Tensor x, int dim, Tensor index) -> Tensor")
class gather(Composite):
    """`take_along_dim` with PyTorch's order of arguments; `index` may be smaller than x in the other dimensions."""

    def compose(x, index, *, dim):
        at = canonical_dim("gather", dim, x.ndim)
        for d, size in enumerate(index.shape):
            x = x if d == at or x.shape[d] == size else registry["narrow"](x, d, 0, size)
        return take_along_dim(x, index, dim)

    def samples(r):
        yield (r(3, 4), r.ints(4, (2, 2))), {"dim": 1}


@op("scatter_sum(Tensor src, Tensor indices, *, int[] shape, int dim) -> Tensor")
class scatter_sum(Definition, linear="src"):
    """Zeros of `shape` with each element of src added at its index along `dim`: take_along_dim transposed."""

    public = False
    method = False

    def impl(xp, src, indices, *, shape, dim):
        return xp.scatter_along(src, indices, shape, dim)

    def shape(src, indices, *, shape, dim):
        return Aval(shape, src.dtype)

    def vjp_src(g, indices, dim):
        return take_along_dim(g, indices, dim)

    def samples(r):
        yield (r(3, 2), r.ints(4, (3, 2))), {"shape": (3, 4), "dim": 1}


@op("index_add(Tensor x, int dim, Tensor index, Tensor source) -> Tensor")
class index_add(Composite, in_place=True):
    """x with the slices of `source` added at the places along `dim` that a 1-d integer tensor names."""

    def compose(x, index, source, *, dim):
        spec = (*(slice(None),) * canonical_dim("index_add", dim, x.ndim), T)
        return x + index_put_sum(source, [index], shape=x.shape, spec=spec)

    def samples(r):
        yield (r(3, 4), r.ints(4, (2,)), r(3, 2)), {"dim": 1}


# ----------------------------------------------------------------------------------------------------- masks


@op("masked_fill(Tensor x, Tensor mask, number value) -> Tensor")
class masked_fill(Composite, in_place=True):
    """`value` where the mask is true, x elsewhere."""

    def compose(x, mask, *, value):
        return where(mask, value, x)

    def samples(r):
        yield (r(3, 4), r.booleans(4)), {"value": -1.5}


@op("masked_select(Tensor x, Tensor mask) -> Tensor")
class masked_select(Composite):
    """The elements of x where the mask is true, as a 1-d tensor; the two broadcast."""

    def compose(x, mask):
        x, mask = registry["broadcast_tensors"]([x, mask])
        return index(x, mask)

    def samples(r):
        yield (r(3, 4), r.booleans(4)), {}


@op("one_hot(Tensor x, int num_classes=-1) -> Tensor")
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
