"""Views with other strides: windows, reinterpreted bytes; and functions that write into a view's elements."""

from collections.abc import Sequence

from retrograd.core import Aval, Internal, Tensor, op, registry
from retrograd.core import dtype as dtypes
from retrograd.core.errors import OperandValueError
from retrograd.core.graph import default_name
from retrograd.core.views import COPIED, requires_grad_synced
from retrograd.foundation.lazy_imports import add_attribute
from retrograd.foundation.suggestions import suggest_keywords
from retrograd.ops.diagonal import diagonal
from retrograd.ops.family import AlongDims, Composite, View, canonical_dim, cast_to, numel, shift_dims, sum_to
from retrograd.ops.family import broadcast_shapes as common_shape
from retrograd.ops.functions import function
from retrograd.ops.index import T, check_index_dtype, index_put_sum
from retrograd.ops.mutate import view_scatter
from retrograd.ops.pointwise import floor_divide, remainder

# --------------------------------------------------------------------------------------------------- windows


@op("unfold_dim(Tensor x, int dimension, int size, int step) -> Tensor")
class unfold_dim(View, linear="x", aliases="unfold", node_name="UnfoldBackward0"):
    """View windows of `size` elements at every `step` along a dimension, each window in a new last dimension.

    The public name is `unfold`, as in PyTorch.  Windows that overlap can't be written to.

    >>> import retrograd as rg
    >>> rg.arange(5).unfold(0, 3, 2).tolist()
    [[0, 1, 2], [2, 3, 4]]
    """

    def impl(xp, x, *, dimension, size, step):
        at = _check_windows(x, dimension, size, step)
        return xp.moving_windows(x.reshape(x.shape or (1,)), at, size, step) if x.ndim else x.reshape(1)[:size]

    def shape(x, *, dimension, size, step):
        at = _check_windows(x, dimension, size, step)
        if x.ndim == 0:
            return Aval((size,), x.dtype)
        return Aval((*x.shape[:at], (x.shape[at] - size) // step + 1, *x.shape[at + 1 :], size), x.dtype)

    def vjp_x(g, x_aval, dimension, step):
        if x_aval.ndim == 0:
            return registry["sum"](g)
        at = canonical_dim("unfold", dimension, x_aval.ndim)
        return unfold_backward(g, dimension=at, length=x_aval.shape[at], step=step)

    def batched_views(batch_shape, *, dimension, size, step):
        at = shift_dims("unfold", dimension, len(batch_shape) - 1)
        if len(batch_shape) == 1:  # the one element is its own window
            return (("reshape", {"shape": (*batch_shape, 1)}), ("narrow", {"dim": at, "start": 0, "length": size}))
        return (("unfold_dim", {"dimension": at, "size": size, "step": step}),)

    def oracle(np, x, dimension, size, step):
        starts = range(0, x.shape[dimension] - size + 1, step)
        slices = [np.moveaxis(np.take(x, range(i, i + size), axis=dimension), dimension, -1) for i in starts]
        return np.stack(slices, axis=dimension % x.ndim)

    def samples(r):
        yield (r(7),), {"dimension": 0, "size": 3, "step": 2}
        yield (r(2, 5, 2),), {"dimension": -2, "size": 2, "step": 1}
        yield (r(2, 5),), {"dimension": 1, "size": 2, "step": 3}

    def errors(r):
        yield (r(3),), {"dimension": 0, "size": 4, "step": 1}, ValueError, "unfold: .*windows of 4 .* of size 3"
        yield (r(3),), {"dimension": 0, "size": 2, "step": 0}, ValueError, "unfold: step must be positive, got 0"


def _check_windows(x, dimension, size, step):
    at = canonical_dim("unfold", dimension, x.ndim)
    total = x.shape[at] if x.ndim else 1
    if not 0 <= size <= total:
        raise ValueError(
            f"unfold: maximum size for tensor at dimension {at} is {total} but size is {size}: windows of {size} "
            f"elements do not fit dimension {at} of size {total}"
        )
    if step < 1:
        raise ValueError(f"unfold: step must be positive, got {step}")
    return at


@op("unfold_backward(Tensor src, *, int dimension, int length, int step) -> Tensor")
class unfold_backward(Internal, AlongDims, linear="src", dims="dimension", elements="summed"):
    """Zeros of `length` along a dimension, with each window added where it came from: the transpose of unfold."""

    def impl(xp, src, *, dimension, length, step):
        _check_sum(src, dimension, length, step)
        return xp.moving_windows_sum(src, dimension, length, step)

    def shape(src, *, dimension, length, step):
        _check_sum(src, dimension, length, step)
        return Aval((*src.shape[:dimension], length, *src.shape[dimension + 1 : -1]), src.dtype)

    def vjp_src(g, src_aval, dimension, step):
        return unfold_dim(g, dimension, src_aval.shape[-1], step)

    def oracle(np, src, dimension, length, step):
        rows = np.moveaxis(src, dimension, 0)
        out = np.zeros((length, *rows.shape[1:-1]))
        for i, window in enumerate(rows):
            out[i * step : i * step + src.shape[-1]] += np.moveaxis(window, -1, 0)
        return np.moveaxis(out, 0, dimension)

    def samples(r):
        yield (r(3, 3),), {"dimension": 0, "length": 7, "step": 2}
        yield (r(2, 4, 2, 2),), {"dimension": 1, "length": 5, "step": 1}


def _check_sum(src, dimension, length, step):
    if not 0 <= dimension < src.ndim - 1 or (length - src.shape[-1]) // step + 1 != src.shape[dimension]:
        raise ValueError(f"unfold_backward: windows {src} in steps of {step} do not come from {length} elements")


@op("sliding_window_view(Tensor x, int[] window_shape, int[]? dim=None) -> Tensor")
class sliding_window_view(Composite):
    """View all windows of a shape over the dimensions `dim` (None: all), in new last dimensions, as in NumPy.

    >>> import retrograd as rg
    >>> rg.sliding_window_view(rg.arange(4), 2).tolist()
    [[0, 1], [1, 2], [2, 3]]
    """

    method = False

    def compose(x, *, window_shape, dim):
        dims = range(x.ndim) if dim is None else [canonical_dim("sliding_window_view", d, x.ndim) for d in dim]
        if len(dims) != len(window_shape):
            raise ValueError(f"sliding_window_view: {len(window_shape)} sizes for {len(dims)} dimensions")
        for at, size in zip(dims, window_shape, strict=True):
            x = unfold_dim(x, at, size, 1)
        return x

    def oracle(np, x, window_shape, dim):
        return np.lib.stride_tricks.sliding_window_view(x, window_shape, dim)

    def samples(r):
        yield (r(4, 5),), {"window_shape": (2, 3)}
        yield (r(4, 5),), {"window_shape": 2, "dim": -1}

    def errors(r):
        yield (r(4, 5),), {"window_shape": 2}, ValueError, "sliding_window_view: 1 sizes for 2 dimensions"


# --------------------------------------------------------------------------------------------------- strides


@op("strided(Tensor x, *, int[] size, int[] stride, int offset) -> Tensor")
class strided(Internal, View, linear="x", node_name="AsStridedBackward0"):
    """Elements of a vector in shape `size`: from `offset` on, along dimension d in steps of stride[d]."""

    def impl(xp, x, *, size, stride, offset):
        _check_bounds(x, size, stride, offset)
        return xp.read_strided(x, size, stride, offset)

    def shape(x, *, size, stride, offset):
        _check_bounds(x, size, stride, offset)
        return Aval(size, x.dtype)

    def vjp_x(g, x_aval, size, stride, offset):
        # Elements may occur more than once in the view, so cotangents are added up at the flat indices viewed.
        indices = strided(registry["arange"](0, x_aval.shape[0], 1), size=size, stride=stride, offset=offset)
        return index_put_sum(g, [indices], shape=x_aval.shape, spec=(T,))

    def batched_views(batch_shape, *, size, stride, offset):
        n, length = batch_shape
        _check_bounds(Aval((length,), dtypes.float64), size, stride, offset)  # must not reach into the next example
        batched = {"size": (n, *size), "stride": (length, *stride), "offset": offset}
        return (("reshape", {"shape": (n * length,)}), ("strided", batched))

    oracle = "retrograd.testing.references.as_strided.read_strided"

    def samples(r):
        yield (r(6),), {"size": (2, 3), "stride": (1, 2), "offset": 0}
        yield (r(6),), {"size": (3, 2), "stride": (0, 3), "offset": 1}
        yield (r(3),), {"size": (), "stride": (), "offset": 2}

    def errors(r):
        yield (r(4),), {"size": (3, 2), "stride": (1, 2), "offset": 0}, RuntimeError, "as_strided: .* index 4 of 4"


def _check_lengths(size, stride):
    if len(size) != len(stride):
        raise OperandValueError(
            f"as_strided: size and stride must have the same length! Got size {list(size)} and stride {list(stride)}"
        )


def _check_bounds(x, size, stride, offset):
    _check_lengths(size, stride)
    if any(step < 0 for step in stride) or any(n < 0 for n in size):
        raise ValueError(f"as_strided: size {tuple(size)} and stride {tuple(stride)} must not be negative")
    last = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    if 0 not in size and not 0 <= offset <= last < x.shape[0]:
        raise RuntimeError(
            f"as_strided: setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset} are out of "
            f"bounds for storage of size {x.shape[0]}: size {tuple(size)} and stride {tuple(stride)} from {offset} on "
            f"reach index {last} of {x.shape[0]}"
        )


_OF_MEMORY = {
    "strides": "as in PyTorch, memory with other strides than the call assumes is refused",
    "vmap": "along other dimensions than the first, the memory of an example has gaps; tests/ops/test_as_strided.py",
}


@op("as_strided(Tensor x, int[] size, int[] stride, int? storage_offset=None) -> Tensor")
class as_strided(Composite):
    """View the memory of x in another shape with other strides, in elements, from an offset on.

    If the view reaches beyond x, it is a view of the base of x, and its gradient goes there.  Gradients of elements
    that occur more than once add up, and such views can't be written to.  In `vmap`, the
    memory is that of each example; a trace records the layout of the tensors that it was made with.

    >>> import retrograd as rg
    >>> rg.as_strided(rg.arange(4), (2, 3), (1, 1)).tolist()
    [[0, 1, 2], [1, 2, 3]]
    """

    def compose(x, *, size, stride, storage_offset):
        _check_lengths(size, stride)
        source, offset = _base_and_offset(x, size, stride, storage_offset)
        for step, params in strided_chain(source, size, stride, offset):
            source = registry[step](source, **params)
        return source

    exempt = _OF_MEMORY

    oracle = "retrograd.testing.references.as_strided.as_strided"

    def samples(r):
        yield (r(6),), {"size": (2, 3), "stride": (1, 2)}
        yield (r(2, 3),), {"size": (2, 2), "stride": (3, 1), "storage_offset": 1}

    def errors(r):
        yield (r(4),), {"size": (3, 2), "stride": (1, 2)}, RuntimeError, "as_strided: .* reach index 4 of 4"
        yield (r(4),), {"size": (2,), "stride": (-1,)}, ValueError, "as_strided: .* must not be negative"


def _base_and_offset(x, size, stride, offset):
    """Return the tensor whose memory is viewed, x or if necessary its base, and the offset of x in it."""
    start = _first_example(x).storage_offset()
    offset = start if offset is None else offset
    last = offset - start + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    if x.level is not None:  # under a transform, x counts as its own base
        if 0 not in size and not start <= offset <= start + last < start + numel(x.shape):
            raise RuntimeError(
                f"as_strided: the result can access memory outside of `tensor`, of shape {x.shape}: size {tuple(size)} "
                f"and stride {tuple(stride)} from {offset - start} on reach index {last} of {numel(x.shape)}. This is "
                f"not supported inside of vmap, nor in other transforms; use other view operators"
            )
        return x, offset - start
    if x._view is None or (_memory_order(x) is not None and start <= offset and last < numel(x.shape)):
        return x, offset - start
    if x._view.creation_meta == COPIED:
        raise RuntimeError(
            f"as_strided: this tensor of shape {x.shape} is a view in PyTorch, but here a copy, whose base has other "
            f"memory; use .clone() first"
        )
    base = _base_in_dtype_kind(x)
    return base, offset - base.storage_offset()


def _base_in_dtype_kind(x):
    """Return the base of a view, in elements as x has them: its real parts, or complex numbers made of them."""
    base = x._view.base
    if base.dtype.kind == x.dtype.kind:
        return base
    return registry["view_as_real" if base.dtype.kind == "c" else "view_as_complex"](base)


def _first_example(x):
    """Return the tensor whose memory begins with that of x: below all levels, whose examples come first."""
    while x.level is not None:
        requires_grad_synced(x)  # sync a view whose base was written to
        x = x.value
    return x


def _strides(x):
    """Return the strides of the memory of x; under `vmap`, of one example's."""
    below = _first_example(x)
    return below.stride()[below.ndim - x.ndim :]


def _memory_order(x):
    """Return the dimensions in memory order, the outermost first; None if there are gaps."""
    shape = x.shape
    if 0 in shape:
        return tuple(range(x.ndim))
    steps = _strides(x)
    expected = 1
    order = sorted(range(x.ndim), key=lambda d: (steps[d], shape[d], -d))
    for d in order:
        if steps[d] != expected and shape[d] > 1:
            return None
        expected *= shape[d]
    return tuple(reversed(order))


def strided_chain(x, size, stride, offset):
    """Return the views that lead from x to those strides: its elements in memory order as a vector, then in steps."""
    order = _memory_order(x)
    if order is None:
        raise RuntimeError(
            f"as_strided: the memory of this tensor, of shape {x.shape} and strides {_strides(x)}, has gaps; use "
            f".contiguous() first"
        )
    chain = [("strided", {"size": size, "stride": stride, "offset": offset})]
    if x.ndim != 1:
        chain.insert(0, ("reshape", {"shape": (numel(x.shape),)}))
    if order != tuple(range(x.ndim)):
        chain.insert(0, ("permute", {"dims": order}))
    return chain


@op("view_as_dtype(Tensor x, dtype dtype) -> Tensor")
class view_as_dtype(Internal, View, differentiable=False):
    """View the bytes of x as another dtype; the size of the last dimension changes with the size of an element."""

    def impl(xp, x, *, dtype):
        _reinterpreted_aval(x, dtype)
        return x.view(dtype)

    def shape(x, *, dtype):
        return _reinterpreted_aval(x, dtype)

    def batch(batched, n, x, *, dtype):
        _reinterpreted_aval(Aval(x.shape[1:], x.dtype), dtype)
        return view_as_dtype(x.contiguous(), dtype)  # bytes must be adjacent within each example

    def batched_views(batch_shape, *, dtype):
        return (("view_as_dtype", {"dtype": dtype}),)

    exempt = {
        "strides": "as in PyTorch, memory with other strides than the call assumes is refused",
        "float32 bfloat16 complex": "half the bytes are other numbers",
    }

    def oracle(np, x, dtype):
        return np.frombuffer(x.tobytes(), dtype).reshape(*x.shape[:-1], -1)

    def samples(r):
        yield (r(2, 3),), {"dtype": "int64"}
        yield (r(2, 3),), {"dtype": "float32"}
        yield (registry["to"](r(2, 4), "float32"),), {"dtype": "int64"}

    def errors(r):
        yield (r(),), {"dtype": "float32"}, RuntimeError, "view: a tensor without dimensions"
        yield (registry["to"](r(3), "float32"),), {"dtype": "float64"}, RuntimeError, "view: .* does not divide"


def _reinterpreted_aval(x, dtype):
    dtypes.category(dtype)
    if dtype.itemsize == x.dtype.itemsize:
        return Aval(x.shape, dtype)
    if x.ndim == 0:
        raise RuntimeError(f"view: a tensor without dimensions of {x.dtype} can't be read as {dtype}, of another size")
    if x.shape[-1] * x.dtype.itemsize % dtype.itemsize:
        raise RuntimeError(f"view: {dtype} does not divide the last dimension of {x.dtype} of shape {x.shape}")
    if hasattr(x, "strides") and x.size and x.strides[-1] != x.itemsize:
        raise RuntimeError("view: the elements along the last dimension do not lie together; use .contiguous()")
    return Aval((*x.shape[:-1], x.shape[-1] * x.dtype.itemsize // dtype.itemsize), dtype)


def view(x, *shape, size=None, dtype=None) -> Tensor:
    """View the memory in another shape, RuntimeError if strides do not allow that; or its bytes as another dtype.

    The sizes are given one by one, as a sequence, or by the keyword `size`.

    >>> import retrograd as rg
    >>> rg.ones(2, 3).view(3, -1).shape, rg.ones(1).view(rg.int32).tolist()
    ((3, 2), [1065353216])
    """
    if len(shape) == 1 and isinstance(shape[0], (str, type, dtypes.DType)):
        dtype = shape[0]
    if size is not None:
        if dtype is not None:
            raise TypeError(f"view: expected either size or dtype, got size={size} and dtype={dtype}; make two calls")
        return registry["view"](x, *shape, size=size)
    if dtype is None:
        return registry["view"](x, *shape)
    return x if x.dtype == dtype else view_as_dtype(x, dtype)


@op("ravel(Tensor x) -> Tensor")
class ravel(Composite):
    """Flatten into one dimension in row-major order: a view of a contiguous tensor, else a copy."""

    def compose(x):
        return registry["reshape"](x.contiguous(), (-1,))

    oracle = "numpy.ravel"

    def samples(r):
        yield (r(2, 3),), {}
        yield (r(),), {}


@op("copy_in_order(Tensor x, int[] order) -> Tensor")
class copy_in_order(Internal, Composite):
    """A copy of x whose dimensions are in memory in the given order, slowest first."""

    def compose(x, *, order):
        inverse = tuple(order.index(dim) for dim in range(x.ndim))
        return registry["permute"](registry["row_major"](registry["permute"](x, order)), inverse)

    def oracle(np, x, order):
        return np.copy(x)

    def samples(r):
        yield (r(2, 3, 4),), {"order": (0, 2, 1)}


@op("view_as(Tensor x, Tensor other) -> Tensor")
class view_as(Composite):
    """View the memory in the shape of another tensor."""

    def compose(x, other):
        return view(x, other.shape)

    exempt = {"strides": "as in PyTorch, memory with other strides than the call assumes is refused"}

    def oracle(np, x, other):
        return np.reshape(x, other.shape)

    def samples(r):
        yield (r(2, 6), r(3, 4)), {}


@op("resolve_neg(Tensor x) -> Tensor")
class resolve_neg(Composite):
    """Return x itself: no lazy negation exists here, unlike in PyTorch."""

    def compose(x):
        return x

    oracle = "numpy.array"

    def samples(r):
        yield (r(3),), {}


add_attribute(Tensor, "view", view)


# ------------------------------------------------------------------------------------- writes into views


def scatter_into_views(name, x, src, chain):
    """Return x with src in the elements viewed by a chain of view operators; a ValueError unless shapes agree."""
    view_aval = x.aval
    for step, params in chain:
        view_aval = registry[step].definition.shape(view_aval, **params)
    if src.shape != view_aval.shape:
        raise ValueError(f"{name}: src must have the shape of what it replaces, {view_aval.shape}, got {src.shape}")
    return view_scatter(x, src, chain=chain, called=default_name(registry[name]))


@op("select_scatter(Tensor x, Tensor src, int dim, int index) -> Tensor")
class select_scatter(Composite):
    """Return x with src in place of x.select(dim, index).

    >>> import retrograd as rg
    >>> rg.select_scatter(rg.zeros(2, 2), rg.ones(2), 0, 1).tolist()
    [[0.0, 0.0], [1.0, 1.0]]
    """

    def compose(x, src, *, dim, index):
        spec = (*(slice(None),) * canonical_dim("select_scatter", dim, x.ndim), index)
        return scatter_into_views("select_scatter", x, src, (("slice", {"spec": spec}),))

    oracle = "retrograd.testing.references.as_strided.select_scatter"

    def samples(r):
        yield (r(3, 4), r(3)), {"dim": 1, "index": -1}

    def errors(r):
        yield (r(3, 4), r(4)), {"dim": 1, "index": 0}, ValueError, r"select_scatter: src .* \(3,\), got \(4,\)"


@op("slice_scatter(Tensor x, Tensor src, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor")
class slice_scatter(Composite):
    """Return x with src in place of x[start:end:step] along `dim`.

    >>> import retrograd as rg
    >>> rg.slice_scatter(rg.zeros(4), rg.ones(2), start=1, step=2).tolist()
    [0.0, 1.0, 0.0, 1.0]
    """

    def compose(x, src, *, dim, start, end, step):
        if step < 1:
            raise ValueError(f"slice_scatter: step must be positive, got {step}")
        spec = (*(slice(None),) * canonical_dim("slice_scatter", dim, x.ndim), slice(start, end, step))
        return scatter_into_views("slice_scatter", x, src, (("slice", {"spec": spec}),))

    oracle = "retrograd.testing.references.as_strided.slice_scatter"

    def samples(r):
        yield (r(3, 4), r(3, 2)), {"dim": 1, "start": 1, "step": 2}
        yield (r(4), r(2)), {"end": -2}

    def errors(r):
        yield (r(4), r(2)), {}, ValueError, r"slice_scatter: src .* \(4,\), got \(2,\)"


@op("diagonal_scatter(Tensor x, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor")
class diagonal_scatter(Composite):
    """Return x with src in place of x.diagonal(offset, dim1, dim2)."""

    def compose(x, src, *, offset, dim1, dim2):
        params = {"offset": offset, "dim1": dim1, "dim2": dim2}
        return scatter_into_views("diagonal_scatter", x, src, ((diagonal.name, params),))

    def oracle(np, x, src, offset, dim1, dim2):
        out = np.moveaxis(x, (dim1, dim2), (-2, -1)).copy()
        for i in range(src.shape[-1]):
            out[..., i + max(-offset, 0), i + max(offset, 0)] = src[..., i]
        return np.moveaxis(out, (-2, -1), (dim1, dim2))

    def samples(r):
        yield (r(3, 4), r(3)), {}
        yield (r(3, 2, 3), r(2, 2)), {"offset": 1, "dim1": 0, "dim2": 2}

    def errors(r):
        yield (r(3, 3), r(2)), {}, ValueError, r"diagonal_scatter: src .* \(3,\), got \(2,\)"


@op(
    "as_strided_scatter(Tensor x, Tensor src, int[] size, int[] stride, int? storage_offset=None) -> Tensor"
)
class as_strided_scatter(Composite):
    """Return x with src in place of x.as_strided(size, stride, storage_offset).

    >>> import retrograd as rg
    >>> rg.as_strided_scatter(rg.zeros(2, 2), rg.ones(2), (2,), (3,)).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    def compose(x, src, *, size, stride, storage_offset):
        offset = 0 if storage_offset is None else storage_offset - _first_example(x).storage_offset()
        return scatter_into_views("as_strided_scatter", x, src, strided_chain(x, size, stride, offset))

    exempt = _OF_MEMORY

    def oracle(np, x, src, size, stride, storage_offset):
        out = x.copy()
        for index in np.ndindex(size):
            out.flat[(storage_offset or 0) + np.dot(index, stride)] = src[index]
        return out

    def samples(r):
        yield (r(2, 2), r(2)), {"size": (2,), "stride": (3,)}
        yield (r(2, 3), r(2, 2)), {"size": (2, 2), "stride": (1, 2), "storage_offset": 1}


# --------------------------------------------------------------------------------------------------- shapes


@op("sum_to_size(Tensor x, int... shape) -> Tensor")
class sum_to_size(Composite):
    """Sum x over the dimensions along which a tensor of `shape` would be broadcast to the shape of x.

    >>> import retrograd as rg
    >>> rg.ones(2, 3).sum_to_size(2, 1).tolist()
    [[3.0], [3.0]]
    """

    def compose(x, *, shape):
        if common_shape("sum_to_size", [x.shape, shape]) != x.shape:
            raise ValueError(f"sum_to_size: shape {tuple(shape)} does not expand to {x.shape}")
        return sum_to(x, shape) if shape else registry["sum"](x)

    def oracle(np, x, shape):
        return x.sum(1, keepdims=True) if shape[-1] == 1 else x.sum(0)

    def samples(r):
        yield (r(2, 3),), {"shape": (2, 1)}
        yield (r(2, 3),), {"shape": (3,)}

    def errors(r):
        yield (r(2, 3),), {"shape": (2, 2)}, ValueError, "sum_to_size: shapes .* do not broadcast"
        yield (r(1),), {"shape": (2,)}, ValueError, r"sum_to_size: shape \(2,\) does not expand to \(1,\)"


@op("unravel_index(Tensor indices, int[] shape) -> Tensor[]")
class unravel_index(Composite):
    """Convert flat indices in a tensor of `shape` to a tuple of coordinates; indices wrap around.

    >>> import retrograd as rg
    >>> [x.tolist() for x in rg.unravel_index(rg.tensor([1, 5]), (2, 3))]
    [[0, 1], [1, 2]]
    """

    method = False

    def compose(indices, *, shape):
        check_index_dtype("unravel_index", indices)
        if any(size < 0 for size in shape):
            raise OperandValueError(f"unravel_index: 'shape' cannot have negative values, but got {tuple(shape)}")
        indices = cast_to(indices, dtypes.int64)  # a small integer may not hold the sizes
        steps = [numel(shape[d + 1 :]) for d in range(len(shape))]
        return tuple(remainder(floor_divide(indices, n), size) for n, size in zip(steps, shape, strict=True))

    def oracle(np, indices, shape):
        return np.unravel_index(indices, shape)

    def samples(r):
        yield (r.ints(24, (2, 2)),), {"shape": (2, 3, 4)}

    def errors(r):
        yield (r(2),), {"shape": (2, 3)}, TypeError, "unravel_index: index must hold integers, got float64"


@function()
@suggest_keywords
def broadcast_shapes(*shapes: int | Sequence[int]):
    """Return the common shape of tensors of these shapes (a number is a 1-d shape); a ValueError if there is none.

    >>> import retrograd as rg
    >>> rg.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    tuples = [(s,) if isinstance(s, int) else tuple(s) for s in shapes]
    if any(size < 0 for sizes in tuples for size in sizes):
        raise OperandValueError(f"broadcast_shapes: sizes must not be negative, got {' and '.join(map(str, tuples))}")
    try:
        return common_shape("broadcast_shapes", tuples) if tuples else ()
    except OperandValueError as error:
        raise OperandValueError(f"{_pytorch_words(tuples)}; {error}") from None


def _pytorch_words(shapes):
    """Return PyTorch's words for the first shape that does not broadcast with those before it."""
    known: list[int] = []
    for index, shape in enumerate(shapes):
        known = [1] * (len(shape) - len(known)) + known
        for i in range(-1, -len(shape) - 1, -1):
            if 1 not in (shape[i], known[i]) and shape[i] != known[i]:
                return (
                    f"Attempting to broadcast a dimension of length {shape[i]} at {i}! Mismatching argument at index "
                    f"{index} had {shape}; but expected shape should be broadcastable to {known}"
                )
            known[i] = shape[i] if known[i] == 1 else known[i]
    return "broadcast_shapes"
