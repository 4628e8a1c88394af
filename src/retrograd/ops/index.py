"""Indexing, and its transpose, which adds values at indices."""

import operator
from typing import Annotated, Any

from retrograd import backend
from retrograd.core import Aval, Internal, NotBatchedError, Tensor, call, graph_level, op, registry
from retrograd.core import dtype as dtypes
from retrograd.core.dispatch import call_fast
from retrograd.core.op import compound
from retrograd.core.overrides import foreign_objects, override_result
from retrograd.ops.batch_loop import DataDependent
from retrograd.ops.batching import align_batched, broadcast_batch, unsqueeze_n
from retrograd.ops.create import as_tensor
from retrograd.ops.family import Composite, View, canonical_dim
from retrograd.ops.layout import array_device, place
from retrograd.ops.opmath import Family
from retrograd.ops.pointwise import to
from retrograd.ops.view import movedim, reshape


class Slot:
    """The placeholder of an index tensor in a static index."""

    def __repr__(self):
        return "T"

    def __reduce__(self):
        return "T"


T = Slot()
WHOLE = slice(None)


def fill_slots(spec, ids):
    """Return the index for NumPy: each slot of the static part is replaced by the next index array."""
    rest = iter(ids)
    return tuple(next(rest) if s is T else s for s in spec)


@op("getitem(Tensor x, Tensor[] ids, *, any spec) -> Tensor")
class getitem(Internal, linear="x", elements="moved", node_name="IndexBackward0"):
    """x[spec], where each T in the static spec is replaced by the next index tensor, integer or boolean."""

    def impl(xp, x, *ids, spec):
        if len(ids) == 1 and spec.count(WHOLE) == len(spec) - 1:
            return xp.take_along_one(x, ids[0], spec.index(T))
        return xp.asarray(x[fill_slots(spec, ids)], order="C")  # NumPy's result may be in another memory order

    def shape(x, *ids, spec):
        return Aval(indexed_shape(x, ids, spec), x.dtype)

    def vjp_x(g, x_aval, ids, spec):
        return index_put_sum(g, ids, shape=x_aval.shape, spec=spec)

    def batch(batched, n, x, *ids, spec):
        layout = IndexLayout(spec, x.ndim - batched[0], ids, batched[1:])
        if batched[0]:
            ids, spec = layout.of_examples(n)
            return layout.examples_first(getitem(x, ids, spec=spec))
        first = 0 if layout.apart else layout.before
        return movedim(getitem(x, layout.aligned(), spec=spec), first, 0)

    oracle = "retrograd.testing.references.index.getitem"

    def samples(r):
        yield (r(4, 3), r.ints(3, (2, 2))), {"spec": (slice(None), T)}
        yield (r(4, 3, 5), r.ints(3, (2, 2)), r.ints(5, (2, 2))), {"spec": (slice(None), T, T)}
        yield (r(4, 3, 5), r.ints(4, (2,)), r.ints(5, (2,))), {"spec": (T, slice(0, 2), T)}

    def errors(r):
        yield (r(2, 3), r.ints(3, (2,)) + 4), {"spec": (T,)}, IndexError, "out of"


@op("slice(Tensor x, *, any spec) -> Tensor")
class basic_slice(Internal, View, linear="x"):
    """x[spec] for integers, slices, None and the ellipsis: a view."""

    def impl(xp, x, *, spec):
        # Without an ellipsis NumPy returns a scalar, a copy, where integers name one element.
        return x[spec] if Ellipsis in spec else x[(*spec, ...)]

    def node_name(fn):
        steps = [s for s in fn.params["spec"] if s is not Ellipsis and s != slice(None)]  # PyTorch's, one node each
        if not steps:
            return "AliasBackward0"
        last = steps[-1]
        return f"{'Unsqueeze' if last is None else 'Slice' if isinstance(last, slice) else 'Select'}Backward0"

    def shape(x, *, spec):
        return Aval(indexed_shape(x, (), spec), x.dtype)

    def vjp_x(g, x_aval, spec):
        return call(index_put_sum, (g,), {"shape": x_aval.shape, "spec": spec})

    def batched_views(batch_shape, *, spec):
        return (("slice", {"spec": (slice(None), *spec)}),)

    def oracle(np, x, spec):
        return x[spec]

    def samples(r):
        yield (r(4, 3),), {"spec": (slice(1, 3), None, -1)}
        yield (r(4, 3),), {"spec": (Ellipsis, slice(None, None, 2))}
        yield (r(4),), {"spec": (slice(None, None, -1),)}
        yield (r(4),), {"spec": (2,)}

    def errors(r):
        yield (r(4),), {"spec": (7,)}, IndexError, "out of"
        yield (r(4),), {"spec": (0, 0)}, IndexError, "too many"


@op("index_put_sum(Tensor src, Tensor[] ids, *, int[] shape, any spec) -> Tensor")
class index_put_sum(Internal, Family, linear="src", elements="summed", opmath="src"):
    """Zeros of `shape` with src added at [spec]: the transpose of indexing.  Values at repeated indices add up."""

    def impl(xp, src, *ids, shape, spec):
        return xp.scatter_add(src, fill_slots(spec, ids), shape)

    def shape(src, *ids, shape, spec):
        return Aval(shape, src.dtype)

    def vjp_src(g, ids, spec):
        return apply_index(g, ids, spec)

    def batch(batched, n, src, *ids, shape, spec):
        layout = IndexLayout(spec, len(shape), ids, batched[1:])
        src = src if batched[0] else broadcast_batch(src, n)
        ids, spec = layout.of_examples(n)
        return index_put_sum(layout.examples_last(src), ids, shape=(n, *shape), spec=spec)

    exempt = {"no_dimensions": "the transpose of indexing: its src always has the indexed shape"}

    oracle = "retrograd.testing.references.index.index_put_sum"

    def samples(r):
        yield (r(4, 2), r.ints(5, (2,))), {"shape": (4, 5), "spec": (slice(None), T)}
        yield (r(3), r.ints(2, (3,))), {"shape": (2,), "spec": (T,)}
        yield (r(2, 3),), {"shape": (4, 3), "spec": (slice(1, 3),)}


class IndexLayout:
    """Finds where the dimensions of index tensors, some of them batched, are in the result of x[spec].

    NumPy puts them at the first index tensor or integer, or in front if a slice separates them from each other.
    """

    def __init__(self, spec, ndim, ids, batched):
        if any(i.dtype == dtypes.bool_ for i in ids):
            raise NotBatchedError("index: how many elements a mask selects depends on its values; use where()")
        advanced = [n for n, s in enumerate(spec) if s is T or isinstance(s, (int, bool))]
        self.spec, self.ids, self.batched = spec, ids, batched
        self.apart = _are_separated(spec) if ids else False
        self.before = _result_ndim(spec[: advanced[0]], ndim - sum(map(_consumed_dims, spec))) if ids else 0
        self.rank = max([i.ndim - b for i, b in zip(ids, batched, strict=True)], default=0)

    def aligned(self):
        """Return the index tensors, all with a batch dimension, or none."""
        return align_batched(self.ids, self.batched) if True in self.batched else self.ids

    def alone(self):
        """Return the avals of the index tensors of one example."""
        return [Aval(i.shape[b:], i.dtype) for i, b in zip(self.ids, self.batched, strict=True)]

    def of_examples(self, n):
        """Return index tensors and spec that apply the same index to each of n examples."""
        if True not in self.batched:
            return self.ids, (slice(None), *self.spec)
        rows = unsqueeze_n(registry["arange"](0, n, 1), self.rank)
        return [rows, *self.aligned()], (T, *self.spec)

    def examples_first(self, out):
        """Reorder NumPy's result for `of_examples` to the order of dimensions of single examples."""
        return movedim(out, *self._moves()) if self._moves() else out

    def examples_last(self, src):
        """Undo `examples_first`."""
        return movedim(src, *reversed(self._moves())) if self._moves() else src

    def _moves(self):
        """Return source and destination of the dimensions to be moved, if any."""
        if not self.ids:
            return ()
        if True not in self.batched:
            return (self.rank, 0) if self.apart and self.rank else ()
        if self.apart or not self.before or not self.rank:
            return ()
        return tuple(range(1, self.rank + 1)), tuple(range(self.before + 1, self.before + self.rank + 1))


def _result_ndim(spec, rest):
    """Return the number of result dimensions of slices, None and the ellipsis, which has `rest`."""
    return sum(rest if k is Ellipsis else 1 for k in spec)


def indexed_shape(x, ids, spec):
    """Return the shape of x[spec] for index tensors of the given avals."""
    return backend.indexed_shape(x.shape, fill_slots(spec, [i.shape for i in ids]))


# ------------------------------------------------------------------------------------------------ x[...]


PLAIN = frozenset((int, slice, type(None), type(Ellipsis)))  # the types of keys without index tensors


def index(x, key):
    """Return x[key], for all keys that PyTorch accepts, with tensors among the indices.

    Integers select before index tensors do, as in PyTorch: the result of x[0, :, [1, 2]] is that of x[0][:, [1, 2]].
    In NumPy the dimensions of an integer and an index array that a slice separates come first.
    """
    try:
        if type(key) in PLAIN:  # the most frequent keys need no further look
            return call_fast(basic_slice, (x,), {"spec": (key,)})
        if type(key) is tuple and PLAIN.issuperset(map(type, key)):
            return call_fast(basic_slice, (x,), {"spec": key})
        spec, ids = static_index(x, key_as_tuple(key))
        if not ids and bool not in map(type, spec):
            return basic_slice(x, spec=spec)
        if len(ids) < len(spec) and is_separated(spec):
            selection, spec = split_integers(spec)
            x = basic_slice(x, spec=selection)
        if has_mixed_ranks(ids):
            (first, numbers), (spec, ids) = split_scalars(spec, ids)
            x = getitem(x, numbers, spec=first)
        return apply_index(x, ids, spec)
    except (TypeError, IndexError):
        if foreign := foreign_in_key(key):
            return override_result(Tensor.__getitem__, foreign, (x, key), {})
        raise


def key_as_tuple(key):
    """Return a key as a tuple; a list counts as one unless it has only numbers, as in PyTorch."""
    if isinstance(key, tuple):
        return key
    if isinstance(key, list) and len(key) < 32 and any(_is_key(k) for k in key):
        return tuple(key)
    return (key,)


def _is_key(k):
    return k is None or k is Ellipsis or isinstance(k, (Tensor, list, tuple, slice)) or getattr(k, "ndim", 0) > 0


def is_separated(spec):
    """Whether slices separate integers from index tensors, so that NumPy and PyTorch order dimensions differently."""
    kinds = [bool if s is T else type(s) for s in spec]
    return int in kinds and bool in kinds and _are_separated(spec)


def _are_separated(spec):
    """Whether something else is between the integers, booleans and index tensors of a key."""
    advanced = [n for n, s in enumerate(spec) if s is T or isinstance(s, (int, bool))]
    return advanced[-1] - advanced[0] >= len(advanced)


def split_integers(spec):
    """Split a key into two steps: integers and slices, then index tensors among full slices."""
    first = tuple(slice(None) if s is T else s for s in spec if not isinstance(s, bool))
    remaining = [s for s in spec if type(s) is not int]
    then = tuple(s if s is T or s is Ellipsis or isinstance(s, bool) else slice(None) for s in remaining)
    return first, then


def has_mixed_ranks(ids):
    """Whether index tensors without dimensions, which count as integers, occur with others."""
    return len(ids) > 1 and len({i.ndim == 0 for i in ids}) > 1


def split_scalars(spec, ids):
    """Split a key into two steps, each with its index tensors: first those without dimensions, then the others."""
    rest = iter(ids)
    pairs = [(s, s is T and next(rest).ndim == 0) for s in spec]
    first = tuple(slice(None) if s is T and not number else s for s, number in pairs if not isinstance(s, bool))
    remaining = [s for s, number in pairs if not number and type(s) is not int]
    then = tuple(s if s is T or isinstance(s, bool) else slice(None) for s in remaining)
    return (first, [i for i in ids if i.ndim == 0]), (then, [i for i in ids if i.ndim])


def foreign_in_key(key):
    """Return the objects in a key whose classes override operators."""
    parts = key if isinstance(key, tuple) else (key,)
    return foreign_objects([(k.start, k.stop, k.step) if isinstance(k, slice) else k for k in parts])


def apply_index(x, ids, spec):
    """Return x[spec], as a view if there are neither tensors nor booleans among the indices."""
    copies = ids or any(isinstance(s, bool) for s in spec)
    return call(getitem, (x, *ids), {"spec": spec}) if copies else basic_slice(x, spec=spec)


def static_index(x, key):
    """Split a key into its static part, with T for each index tensor, and these tensors.

    Masks become indices, except for compound tensors, which index component by component.
    """
    key = [_as_index(k) for k in key]
    spec: list[Any] = []
    ids: list[Tensor] = []
    for n, k in enumerate(key):
        if not isinstance(k, Tensor):
            spec.append(k)
        elif k.dtype == dtypes.bool_ and compound(k) is None:
            check_mask(k, x, _start_dim(key, n, x.ndim))
            indices = nonzero(k, as_tuple=True) if k._overrides else index_columns(k)
            ids += indices
            spec += [T] * len(indices)
        else:
            ids.append(k)
            spec.append(T)
    if ids and Ellipsis in spec:  # in NumPy even an ellipsis of no dimensions would separate the others
        n = spec.index(Ellipsis)
        spec[n : n + 1] = [slice(None)] * (x.ndim - sum(map(_consumed_dims, key)))
    if ids and isinstance(x, Tensor) and array_device(x) is not None:  # as in PyTorch, indices may be in host memory
        ids = [place(i, array_device(x)) for i in ids]
    return tuple(spec), ids


def _as_index(k):
    """Return one item of a key as an integer, a slice, None, the ellipsis, a boolean, or a tensor with dimensions."""
    if type(k) is Tensor and k.ndim and k.dtype in (dtypes.int64, dtypes.bool_):
        return k
    if k is None or k is Ellipsis or isinstance(k, (slice, bool)):
        return k
    if isinstance(k, (list, tuple, range)) or hasattr(k, "dtype"):
        return _index_tensor(k)
    if hasattr(k, "__index__"):
        return operator.index(k)
    raise IndexError(
        f"index: expected integers, slices, None, ... or integer tensors, got {type(k).__name__}; only integers, "
        "slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices"
    )


def _index_tensor(k):
    """Return a sequence, array or tensor as an index; without dimensions, booleans and integers become Python's."""
    i = as_tensor(k)
    if 0 in i.shape and not hasattr(k, "dtype"):
        i = to(i, dtypes.int64)
    if i.dtype.kind not in "iub":
        raise IndexError(
            f"index: tensors used as indices must be integer or boolean, got {i.dtype}; tensors used as indices must "
            "be long, int, byte or bool tensors"
        )
    if i.dtype == dtypes.uint8:
        i = to(i, dtypes.bool_)  # uint8 is a mask in PyTorch, which once had no booleans
    if i.ndim == 0 and (i.dtype == dtypes.bool_ or not isinstance(k, Tensor) or graph_level() is None):
        return i.item()
    return i


def _start_dim(key, n, ndim):
    """Return the dimension of the indexed tensor at which item n of a key begins."""
    if n == 0:
        return 0
    if any(k is Ellipsis for k in key[:n]):
        return ndim - sum(map(_consumed_dims, key[n:]))
    return sum(map(_consumed_dims, key[:n]))


def _consumed_dims(k):
    """Return the number of dimensions of the indexed tensor that an item of a key uses; 0 for the ellipsis."""
    if k is None or k is Ellipsis or isinstance(k, bool):
        return 0
    return k.ndim if isinstance(k, Tensor) and k.dtype == dtypes.bool_ else 1


def check_mask(mask, x, at):
    """Raise unless a mask has the sizes of x from dimension `at` on."""
    if x.shape[at : at + mask.ndim] != mask.shape:
        raise IndexError(
            f"index: The shape of the mask {list(mask.shape)} at index {_first_unequal(mask.shape, x.shape[at:])} "
            f"does not match the shape of the indexed tensor {list(x.shape)} at index "
            f"{at + _first_unequal(mask.shape, x.shape[at:])}: a mask of shape {mask.shape} does not fit {x.shape}"
        )


@op("nonzero_indices(Tensor x) -> Tensor")
class nonzero_indices(Internal, DataDependent, differentiable=False):
    """Return the indices of the nonzero elements: one row per element, one column per dimension."""

    def impl(xp, x):
        return xp.argwhere(x)

    def shape(x):
        raise NotImplementedError("nonzero: how many elements are not zero depends on their values")

    exempt = {
        "shape float32 integers empty no_dimensions vmap": "the size depends on the values, so there is no shape rule",
    }

    oracle = "numpy.argwhere"

    def samples(r):
        yield (r.booleans(3, 4),), {}


def index_columns(x):
    """Return the indices of the nonzero elements, one tensor per dimension; of a number, as one of a vector."""
    indices = call_fast(nonzero_indices, (x if x.ndim else reshape(x, (1,)),), {})
    columns = [{"spec": (slice(None), d)} for d in range(max(x.ndim, 1))]
    return tuple([call_fast(basic_slice, (indices,), column) for column in columns])


@op("nonzero(Tensor x, *, bool as_tuple=False) -> Tensor")
class nonzero(Composite, aliases="argwhere"):
    """Return the indices of the nonzero elements, as one (n, ndim) tensor or as one tensor per dimension.

    >>> import retrograd as rg
    >>> rg.nonzero(rg.tensor([[0, 3], [4, 0]])).tolist()
    [[0, 1], [1, 0]]
    """

    def compose(x, *, as_tuple) -> Annotated[Tensor | tuple[Tensor, ...], "as_tuple"]:
        if not as_tuple:
            return nonzero_indices(x)
        return index_columns(x)

    exempt = {"vmap": "how many there are depends on the values, and so the size of the result"}

    def oracle(np, x, as_tuple):
        return np.nonzero(x) if as_tuple else np.argwhere(x)

    def samples(r):
        yield (r.booleans(3, 4),), {}
        yield (r.booleans(3, 4),), {"as_tuple": True}


@op("select(Tensor x, int dim, int index) -> Tensor")
class select(Composite):
    """Return the slice at `index` along `dim`, without that dimension; a view."""

    def compose(x, *, dim, index):
        if x.ndim == 0:
            raise IndexError("select() cannot be applied to a 0-dim tensor")
        at = canonical_dim("select", dim, x.ndim)
        if type(index) is int and type(x.shape[at]) is int and not -x.shape[at] <= index < x.shape[at]:
            raise IndexError(
                f"select(): index {index} out of range for tensor of size {list(x.shape)} at dimension {at}: it is out "
                f"of bounds"
            )
        return basic_slice(x, spec=(*(slice(None),) * at, index))

    def oracle(np, x, dim, index):
        return np.take(x, index, axis=dim)

    def samples(r):
        yield (r(2, 3, 4),), {"dim": 1, "index": -1}


def _first_unequal(mask, shape):
    """Return the first dimension in which a mask's size differs."""
    return next((d for d, size in enumerate(mask) if d >= len(shape) or size != shape[d]), 0)


def check_index_dtype(name, index):
    """Raise unless the index is an integer tensor."""
    if index.dtype.kind not in "iu":
        kinds = "int32 or int64" if name.startswith("index_") else "int32/int64"
        raise TypeError(
            f"{name}(): Expected dtype {kinds} for index: {name}: index must hold integers, got {index.dtype}; "
            f"convert with .to('int64')"
        )


@op("take(Tensor x, Tensor index) -> Tensor")
class take(Composite):
    """Return the elements of x at flat indices, in the shape of `index`; -1 is the last element.

    >>> import retrograd as rg
    >>> rg.take(rg.tensor([[1.0, 2.0], [3.0, 4.0]]), rg.tensor([0, -1])).tolist()
    [1.0, 4.0]
    """

    def compose(x, index):
        check_index_dtype("take", index)
        try:
            return getitem(reshape(x, (-1,)), [index], spec=(T,))
        except IndexError as error:
            raise IndexError(f"take: out of range: {error}") from None

    def oracle(np, x, index):
        return x.ravel()[index]

    def samples(r):
        yield (r(3, 4), r.ints(12, (2, 3)) - 4), {}
        yield (r(3), r.ints(3, ())), {}

    def errors(r):
        yield (r(3), r(2)), {}, TypeError, "take: index must hold integers, got float64"
        yield (r(3), r.ints(1, (2,)) + 3), {}, IndexError, "out of"
