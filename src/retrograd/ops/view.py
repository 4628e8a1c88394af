"""Views and rearrangements: reshape, expand, squeeze, permute, flip, narrow, cat, stack; more in `split` and `join`."""

from functools import lru_cache

from retrograd.core import Aval, Definition, Internal, op, registry, xp
from retrograd.core import dtype as dtypes
from retrograd.core.aval import SymbolicSize, symbolic
from retrograd.core.dispatch import call_fast
from retrograd.core.errors import OperandIndexError
from retrograd.foundation.describe_value import describe
from retrograd.ops.batching import batch_all
from retrograd.ops.family import (
    AlongDims,
    Composite,
    CoreDims,
    View,
    broadcast_shapes,
    canonical_dim,
    canonical_dims,
    cast_to,
    existing_dims,
    numel,
    shape_without,
    shift_dims,
    sum_to,
)

# ------------------------------------------------------------------------------------------------ new shapes


def inferred_shape(name, old, new):
    """The shape `new` with -1 replaced by the inferred size; ValueError if it does not fit, or a size is below -1.

    The -1 stays if sizes are symbolic.
    """
    for i, size in enumerate(new):
        if isinstance(size, int) and size < -1:
            raise ValueError(f"{name}: invalid shape dimension {size} at index {i} of shape {list(new)}")
    if any(isinstance(s, SymbolicSize) for s in (*old, *new)):
        return tuple(new)
    total, known = numel(old), numel(s for s in new if s != -1)
    unknown = sum(s == -1 for s in new)
    if unknown == 1 and known and total % known == 0:
        return tuple(total // known if s == -1 else s for s in new)
    if unknown == 1 and known == total == 0:
        raise ValueError(
            f"{name}: cannot reshape tensor of 0 elements into shape {list(new)} because the unspecified dimension "
            f"size -1 can be any value and is ambiguous"
        )
    if unknown or known != total or any(s < 0 for s in new):
        raise ValueError(
            f"{name}: shape {tuple(old)} of {total} elements does not fit into {tuple(new)}; shape '{list(new)}' is "
            f"invalid for input of size {total}{'; only one dimension can be inferred' if unknown > 1 else ''}"
        )
    return tuple(new)


@op("reshape(Tensor x, int... shape) -> Tensor")
class reshape(View, linear="x", node_name="ViewBackward0"):
    """x with the same elements, in row-major order, in another shape; one size may be -1.  A view if strides allow."""

    def impl(xp, x, *, shape):
        if shape and min(shape) < -1:  # NumPy infers any negative size, not only -1
            inferred_shape("reshape", x.shape, shape)
        return xp.reshape(x, shape)

    def shape(x, *, shape):
        return Aval(inferred_shape("reshape", x.shape, shape), x.dtype)

    def vjp_x(g, x_aval):
        return reshape(g, x_aval.shape)

    def batched_views(batch_shape, *, shape):
        return (("reshape", {"shape": (batch_shape[0], *inferred_shape("reshape", batch_shape[1:], shape))}),)

    def oracle(np, x, shape):
        return np.reshape(x, shape)

    def samples(r):
        yield (r(2, 6),), {"shape": (3, 4)}
        yield (r(2, 6),), {"shape": (-1,)}
        yield (r(1),), {"shape": ()}

    def errors(r):
        yield (r(2, 3),), {"shape": (4,)}, ValueError, r"\(2, 3\) of 6 elements"
        yield (r(2, 3),), {"shape": (-2,)}, ValueError, "invalid shape dimension -2"


@op("view(Tensor x, int... shape) -> Tensor")
class view(Composite):
    """A view of x with another shape; if the strides do not allow one, `reshape` copies instead."""

    method = False  # `view` also takes dtypes; see strides

    def compose(x, *, shape):
        out = call_fast(reshape, (x,), {"shape": shape})
        if x.level is None and out._view is None:
            raise RuntimeError(
                f"view: the memory of this tensor, of shape {x.shape} and strides {x.value.strides} bytes, can't be "
                f"shown in shape {out.shape}: view size is not compatible with input tensor's size and stride. "
                f"Use .reshape(...) instead."
            )
        return out

    exempt = {"strides": "as in PyTorch, memory that can't be shown in the shape is refused; reshape copies"}

    def oracle(np, x, shape):
        return np.reshape(x, shape)

    def samples(r):
        yield (r(2, 6),), {"shape": (3, -1)}


@op("expand(Tensor x, int... shape) -> Tensor")
class expand(View, linear="x"):
    """A view of x with dimensions of size 1 repeated, and new dimensions in front; -1 keeps a size."""

    def impl(xp, x, *, shape):
        shape = expanded_shape(x.shape, shape)
        size = symbolic(shape)
        if size is not None:
            return size.broadcast(x, shape)
        count = numel(shape)
        if count == x.size:  # no element is repeated, so the view may be written to
            return xp.reshape(x, shape)
        if count == 0:  # nor is one here
            return xp.reshape(x[None][:0], shape)
        return xp.broadcast_to(x, shape)

    def shape(x, *, shape):
        return Aval(expanded_shape(x.shape, shape), x.dtype)

    def vjp_x(g, x_aval):
        return sum_to(g, x_aval.shape)

    def batched_views(batch_shape, *, shape):
        n, *old = batch_shape
        new = expanded_shape(old, shape)
        lifted = (n, *(1,) * (len(new) - len(old)), *old)
        return (("reshape", {"shape": lifted}), ("expand", {"shape": (n, *new)}))

    def oracle(np, x, shape):
        return np.broadcast_to(x, [x.shape[i - len(shape)] if s == -1 else s for i, s in enumerate(shape)])

    def samples(r):
        yield (r(3, 1),), {"shape": (2, 3, 4)}
        yield (r(3, 1),), {"shape": (-1, 2)}
        yield (r(),), {"shape": (2,)}

    def errors(r):
        yield (r(3),), {"shape": (4,)}, ValueError, r"\(3,\) does not expand"
        yield (r(1),), {"shape": (-2, -3)}, ValueError, r"sizes must not be negative, other than -1, got \(-2, -3\)"


def expanded_shape(old, new):
    """The shape `new` with each -1 replaced by the old size; ValueError unless old sizes are equal or 1."""
    lead, out = len(new) - len(old), list(new)
    for i, size in enumerate(old):
        at = lead + i
        if at >= 0 and out[at] == -1:
            out[at] = size
        if at < 0 or size not in (1, out[at]):
            raise ValueError(
                f"expand: shape {tuple(old)} does not expand to {tuple(new)}: "
                + (
                    f"The expanded size of the tensor ({new[at]}) must match the existing size ({size}) at "
                    f"non-singleton dimension {at}"
                    if at >= 0
                    else f"the number of sizes provided ({len(new)}) must be greater or equal to the number of "
                    f"dimensions in the tensor ({len(old)})"
                )
            )
    if -1 in out:
        raise ValueError(
            f"expand: The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension "
            f"{out.index(-1)}: shape {tuple(old)} does not expand to {tuple(new)}"
        )
    for size in out:
        if type(size) is int and size < 0:
            raise ValueError(f"expand: sizes must not be negative, other than -1, got {tuple(new)}")
    return tuple(out)


@op("broadcast_to(Tensor x, int... shape) -> Tensor")
class broadcast_to(Composite):
    """x broadcast to `shape`, as a view: `expand` under NumPy's name."""

    def compose(x, *, shape):
        return expand(x, shape)

    def oracle(np, x, shape):
        return np.broadcast_to(x, shape)

    def samples(r):
        yield (r(3, 1),), {"shape": (3, 2)}


@op("squeeze(Tensor x, int[]? dim=None) -> Tensor")
class squeeze(View, linear="x"):
    """A view of x without its dimensions of size 1, or without those of them listed in `dim`."""

    def impl(xp, x, *, dim):
        return xp.reshape(x, squeezed_shape(x.shape, dim))

    def node_name(fn):
        dim = fn.params["dim"]
        return f"SqueezeBackward{0 if dim is None else 1 if isinstance(dim, int) or len(dim) == 1 else 2}"

    def shape(x, *, dim):
        return Aval(squeezed_shape(x.shape, dim), x.dtype)

    def vjp_x(g, x_aval):
        return reshape(g, x_aval.shape)

    def batched_views(batch_shape, *, dim):
        return (("reshape", {"shape": (batch_shape[0], *squeezed_shape(batch_shape[1:], dim))}),)

    def oracle(np, x, dim):
        dims = range(x.ndim) if dim is None else np.atleast_1d(dim)
        return np.squeeze(x, tuple(d for d in dims if x.shape[d] == 1))

    def samples(r):
        yield (r(2, 1, 3, 1),), {}
        yield (r(2, 1, 3, 1),), {"dim": 1}
        yield (r(2, 1, 3, 1),), {"dim": (0, -1)}


def squeezed_shape(shape, dim):
    """The shape without those of the listed dimensions that have size 1."""
    dims = range(len(shape)) if dim is None else canonical_dims("squeeze", dim, len(shape)) if dim else ()
    return tuple(s for i, s in enumerate(shape) if i not in dims or s != 1)


@op("unsqueeze(Tensor x, int dim) -> Tensor")
class unsqueeze(View, linear="x"):
    """A view of x with a new dimension of size 1 at `dim`."""

    def impl(xp, x, *, dim):
        return xp.reshape(x, unsqueezed_shape(x.shape, dim))

    def shape(x, *, dim):
        return Aval(unsqueezed_shape(x.shape, dim), x.dtype)

    def vjp_x(g, x_aval):
        return reshape(g, x_aval.shape)

    def batched_views(batch_shape, *, dim):
        return (("reshape", {"shape": (batch_shape[0], *unsqueezed_shape(batch_shape[1:], dim))}),)

    def oracle(np, x, dim):
        return np.expand_dims(x, dim)

    def samples(r):
        yield (r(2, 3),), {"dim": 1}
        yield (r(2, 3),), {"dim": -1}
        yield (r(),), {"dim": 0}


def unsqueezed_shape(shape, dim):
    """The shape with a 1 inserted at `dim`."""
    at = canonical_dim("unsqueeze", dim, len(shape) + 1)
    return (*shape[:at], 1, *shape[at:])


@op("flatten(Tensor x, int start_dim=0, int end_dim=-1) -> Tensor")
class flatten(Composite):
    """x with the dimensions start_dim to end_dim, inclusive, merged into one."""

    def compose(x, *, start_dim, end_dim):
        ndim = x.ndim
        first, last = canonical_dim("flatten", start_dim, ndim), canonical_dim("flatten", end_dim, ndim)
        if first > last:
            raise ValueError(
                f"flatten: start_dim cannot come after end_dim: start_dim {start_dim} comes after end_dim {end_dim}"
            )
        if ndim and first == last:
            return x
        shape = x.shape
        merged = shape[first : last + 1]
        size = numel(merged) if symbolic(merged) is None else -1
        return reshape(x, (*shape[:first], size, *shape[last + 1 :]))

    def oracle(np, x, start_dim, end_dim):
        return x.reshape(*x.shape[:start_dim], -1, *x.shape[x.ndim + end_dim + 1 :])

    def samples(r):
        yield (r(2, 3, 4),), {}
        yield (r(2, 3, 4),), {"start_dim": 1}


@op("unflatten(Tensor x, int dim, int[] sizes) -> Tensor")
class unflatten(Composite):
    """x with one dimension split into several; one of the sizes may be -1."""

    def compose(x, *, dim, sizes):
        at = canonical_dim("unflatten", dim, x.ndim)
        if not x.ndim:
            raise OperandIndexError(f"unflatten: Dimension specified as {dim} but tensor has no dimensions")
        if not sizes:
            raise ValueError("unflatten: sizes must be non-empty")
        try:
            sizes = inferred_shape("unflatten", (x.shape[at],), sizes)
        except ValueError as error:
            words = f"Provided sizes {list(sizes)} don't multiply up to the size of dim {at} ({x.shape[at]})"
            raise ValueError(f"unflatten: {words} in the input tensor: {error}") from None
        return reshape(x, (*x.shape[:at], *sizes, *x.shape[at + 1 :]))

    def oracle(np, x, dim, sizes):
        return x.reshape(*x.shape[:dim], *sizes, *x.shape[dim + 1 :])

    def samples(r):
        yield (r(2, 6),), {"dim": 1, "sizes": (3, -1)}


@op("alias(Tensor x) -> Tensor")
class alias(Internal, View, linear="x"):
    """A view of all of x."""

    def impl(xp, x):
        return x[...]

    def shape(x):
        return x

    def vjp_x(g):
        return g

    def batched_views(whole):
        return (("alias", {}),)

    def oracle(np, x):
        return x.copy()

    def samples(r):
        yield (r(2, 3),), {}
        yield (r(),), {}


# ------------------------------------------------------------------------------------ dimensions in new order


@op("permute(Tensor x, int... dims) -> Tensor")
class permute(View, linear="x"):
    """A view of x with dimensions reordered: dimension i of the result is dimension dims[i] of x."""

    impl = xp.transpose

    def bind(namespace):
        return lambda x, *, dims: namespace.transpose(x, dims)

    def shape(x, *, dims):
        order = permutation("permute", dims, x.ndim)
        return Aval(tuple(x.shape[d] for d in order), x.dtype)

    def vjp_x(g, dims):
        order = permutation("permute", dims, g.ndim)
        return permute(g, tuple(order.index(i) for i in range(g.ndim)))

    def batched_views(batch_shape, *, dims):
        order = permutation("permute", dims, len(batch_shape) - 1)
        return (("permute", {"dims": (0, *[d + 1 for d in order])}),)

    def oracle(np, x, dims):
        return np.transpose(x, dims)

    def samples(r):
        yield (r(2, 3, 4),), {"dims": (2, 0, 1)}
        yield (r(2, 3, 4),), {"dims": (-1, 1, 0)}

    def errors(r):
        yield (r(2, 3),), {"dims": (0,)}, ValueError, "each of the 2 dimensions once"


@lru_cache
def permutation(name, dims, ndim):
    """`dims` as nonnegative numbers; ValueError unless it is a permutation."""
    order = tuple(canonical_dim(name, d, ndim) for d in dims)
    if sorted(order) != list(range(ndim)):
        words = (
            "duplicate dims are not allowed"
            if len(order) == ndim
            else "number of dimensions in the tensor input does not match the length of the desired ordering of "
            "dimensions"
        )
        raise ValueError(f"{name}: {words}: dims {tuple(dims)} must name each of the {ndim} dimensions once")
    return order


@op("transpose(Tensor x, int dim0, int dim1) -> Tensor")
class transpose(View, linear="x", aliases="swapdims"):
    """A view of x with two dimensions swapped."""

    def impl(xp, x, *, dim0, dim1):
        canonical_dim("transpose", dim0, x.ndim), canonical_dim("transpose", dim1, x.ndim)
        return x if x.ndim == 0 else xp.swapaxes(x, dim0, dim1)

    def shape(x, *, dim0, dim1):
        a, b = (canonical_dim("transpose", d, x.ndim) for d in (dim0, dim1))
        swap = {a: b, b: a}
        return Aval(tuple(x.shape[swap.get(i, i)] for i in range(x.ndim)), x.dtype)

    def vjp_x(g, dim0, dim1):
        return transpose(g, dim0, dim1)

    def batched_views(batch_shape, *, dim0, dim1):
        dim0, dim1 = shift_dims("transpose", (dim0, dim1), len(batch_shape) - 1)
        return (("transpose", {"dim0": dim0, "dim1": dim1}),) if len(batch_shape) > 1 else ()

    def oracle(np, x, dim0, dim1):
        return np.swapaxes(x, dim0, dim1)

    def samples(r):
        yield (r(2, 3, 4),), {"dim0": 0, "dim1": -1}
        yield (r(2, 3),), {"dim0": 1, "dim1": 0}


@op("movedim(Tensor x, int[] source, int[] destination) -> Tensor")
class movedim(Composite, aliases="moveaxis"):
    """A view of x with dimensions moved to new positions; the others keep their order."""

    def compose(x, *, source, destination):
        source, destination = (canonical_dims("movedim", d, x.ndim) for d in (source, destination))
        if len(source) != len(destination):
            raise ValueError(f"movedim: {len(source)} sources, {len(destination)} destinations")
        rest = iter(i for i in range(x.ndim) if i not in source)
        source_of = dict(zip(destination, source, strict=True))
        return permute(x, tuple(source_of[i] if i in source_of else next(rest) for i in range(x.ndim)))

    def oracle(np, x, source, destination):
        return np.moveaxis(x, source, destination)

    def samples(r):
        yield (r(2, 3, 4),), {"source": 0, "destination": -1}
        yield (r(2, 3, 4),), {"source": (0, 1), "destination": (1, 2)}


@op("flip(Tensor x, int... dims) -> Tensor")
class flip(AlongDims, linear="x", dims="dims", elements="moved", memory="images"):
    """x with the order of elements reversed along the given dimensions; a copy, as in PyTorch."""

    def impl(xp, x, *, dims):
        return xp.flip(x, canonical_dims("flip", dims, x.ndim) if dims else ()).copy("K")

    def shape(x, *, dims):
        canonical_dims("flip", dims, x.ndim)
        return x

    def vjp_x(g, dims):
        return flip(g, dims)

    def oracle(np, x, dims):
        return np.flip(x, dims)

    def samples(r):
        yield (r(2, 3, 4),), {"dims": (0, -1)}
        yield (r(4),), {"dims": 0}


@op("roll(Tensor x, int[] shifts, int[]? dim=None) -> Tensor")
class roll(Definition, linear="x", elements="moved", memory="images"):
    """x shifted cyclically along each of `dim` (None: in row-major order).

    >>> import retrograd as rg
    >>> rg.roll(rg.tensor([[1, 2, 3], [4, 5, 6]]), (1, -1), (0, 1)).tolist()
    [[5, 6, 4], [2, 3, 1]]
    """

    def impl(xp, x, *, shifts, dim):
        _check_shifts(x, shifts, dim)
        return xp.roll(x, shifts, dim) if dim else xp.roll(x, shifts[0])

    def shape(x, *, shifts, dim):
        _check_shifts(x, shifts, dim)
        return x

    def vjp_x(g, shifts, dim):
        return roll(g, tuple(-s for s in shifts), dim)

    def batch(batched, n, x, *, shifts, dim):
        if not dim:
            return reshape(roll(reshape(x, (n, numel(x.shape[1:]))), shifts, 1), x.shape)
        return roll(x, shifts, shift_dims("roll", dim, x.ndim - 1))

    def oracle(np, x, shifts, dim):
        return np.roll(x, shifts, dim)

    def samples(r):
        yield (r(2, 3),), {"shifts": 1}
        yield (r(2, 3),), {"shifts": -2, "dim": 1}
        yield (r(2, 3),), {"shifts": (1, 2, -1), "dim": (0, -1, 0)}

    def errors(r):
        yield (r(2, 3),), {"shifts": (1, 1)}, ValueError, "roll: .*2 shifts for 0 dimensions"


def _check_shifts(x, shifts, dim):
    if len(shifts) != (len(dim) if dim else 1):
        raise ValueError(
            f"roll: shifts and dimensions must align: {len(shifts)} shifts for {len(dim or ())} dimensions"
        )
    existing_dims("roll", tuple(dict.fromkeys(dim or ())), x.ndim)


@op("tril(Tensor x, int diagonal=0) -> Tensor")
class tril(CoreDims, linear="x", in_place=True, elements="moved", memory="rows"):
    """The lower triangle of the last two dimensions; elements above the given diagonal become 0."""

    def impl(xp, x, *, diagonal):
        return xp.tril(_check_at_least_2d("tril", x), diagonal)

    def shape(x, *, diagonal):
        return _check_at_least_2d("tril", x)

    def vjp_x(g, diagonal):
        return tril(g, diagonal)

    def oracle(np, x, diagonal):
        return np.tril(x, diagonal)

    def samples(r):
        yield (r(3, 4),), {}
        yield (r(2, 3, 3),), {"diagonal": -1}

    def errors(r):
        yield (r(3),), {}, ValueError, r"tril: .*expected at least 2 dimensions, got shape \(3,\)"


@op("triu(Tensor x, int diagonal=0) -> Tensor")
class triu(CoreDims, linear="x", in_place=True, elements="moved", memory="rows"):
    """The upper triangle of the last two dimensions; elements below the given diagonal become 0."""

    def impl(xp, x, *, diagonal):
        return xp.triu(_check_at_least_2d("triu", x), diagonal)

    def shape(x, *, diagonal):
        return _check_at_least_2d("triu", x)

    def vjp_x(g, diagonal):
        return triu(g, diagonal)

    def oracle(np, x, diagonal):
        return np.triu(x, diagonal)

    def samples(r):
        yield (r(3, 4),), {}
        yield (r(2, 3, 3),), {"diagonal": 1}


def _check_at_least_2d(name, x):
    if x.ndim < 2:
        raise ValueError(
            f"{name}: input tensor must have at least 2 dimensions: expected at least 2 dimensions, got shape {x.shape}"
        )
    return x


# -------------------------------------------------------------------------------------- joining and cutting


@op("cat(Tensor[] tensors, int dim=0) -> Tensor")
class cat(Definition, linear="tensors,", aliases="concat concatenate", elements="moved", memory="images"):
    """The concatenation of tensors along an existing dimension; their other sizes must be equal.

    Tensors of shape (0,) are ignored; of only such tensors, the result is one too, for any dim.

    >>> import retrograd as rg
    >>> rg.cat((rg.tensor([[1, 2]]), rg.tensor([[3, 4]])), dim=1).tolist()
    [[1, 2, 3, 4]]
    """

    method = False

    def impl(xp, *tensors, dim):
        joined = _tensors_to_join(tensors)
        return xp.concatenate(joined, axis=_dim_to_join(joined, dim), dtype=_dtype_of_joined(tensors))

    def shape(*tensors, dim):
        if not tensors:
            raise ValueError("cat: expected a non-empty list of Tensors")
        for i, x in enumerate(tensors):
            if x.ndim == 0:
                raise ValueError(f"cat: zero-dimensional tensor (at position {i}) cannot be concatenated; see stack")
        joined = _tensors_to_join(tensors)
        first = joined[0]
        at = canonical_dim("cat", _dim_to_join(joined, dim), first.ndim)
        for i, x in enumerate(joined):
            if x.ndim != first.ndim or x.ndim == 0 or shape_without(x.shape, at) != shape_without(first.shape, at):
                raise ValueError(
                    f"cat: tensor {i} is {x}, which does not fit {first} except in dimension {at}: "
                    + (
                        f"Tensors must have same number of dimensions: got {first.ndim} and {x.ndim}"
                        if x.ndim != first.ndim
                        else f"Sizes of tensors must match except in dimension {at}. Expected size "
                        f"{_first_difference(first.shape, x.shape, at)} for tensor number {i} in the list"
                    )
                )
        dtype = dtypes.result_type(*tensors)
        return Aval((*first.shape[:at], sum(x.shape[at] for x in joined), *first.shape[at + 1 :]), dtype)

    def vjp_tensors(g, tensors_aval, dim):
        parts, start, at = [], 0, _dim_to_join(tensors_aval, dim)
        for aval in tensors_aval:
            if len(aval.shape) == g.ndim:
                parts.append(cast_to(narrow(g, at, start, aval.shape[at]), aval.dtype))
                start += aval.shape[at]
            else:
                parts.append(registry["zeros"](aval.shape, dtype=aval.dtype))
        return parts

    def batch(batched, n, *tensors, dim):
        tensors = batch_all(tensors, batched, n)
        joined = [t for t in tensors if t.ndim != 2 or t.shape[1]] or tensors
        at = 0 if all(t.shape == (n, 0) for t in joined) else dim
        return cast_to(cat(joined, dim=shift_dims("cat", at, joined[0].ndim - 1)), dtypes.result_type(*tensors))

    def oracle(np, *tensors, dim):
        """Concatenate; operands of shape (0,) are skipped."""
        joined = [t for t in tensors if t.shape != (0,)]
        return np.concatenate(joined, axis=dim) if joined else tensors[0]

    def samples(r):
        yield (r(2, 3), r(2, 1)), {"dim": -1}
        yield (r(2, 3), r(1, 3), r(2, 3)), {}
        yield (r(0), r(2, 3), r(1, 3)), {}
        yield (r(0), r(0)), {"dim": 1}

    def errors(r):
        yield (r(2, 3), r(3, 2)), {}, ValueError, "tensor 1 is"
        yield (r(), r()), {}, ValueError, "cat: zero-dimensional tensor"


def _tensors_to_join(tensors):
    """The tensors to concatenate: without those of shape (0,), unless all are."""
    for x in tensors:
        if not hasattr(x, "ndim"):
            raise TypeError(f"cat: expected tensors, got {describe(x)}")
    if all(x.ndim == 1 for x in tensors):
        return tensors
    return [x for x in tensors if x.shape != (0,)]


def _dim_to_join(tensors, dim):
    """The dimension to concatenate in: any dim is accepted if all tensors have shape (0,)."""
    return 0 if tensors[0].shape == (0,) and all(x.shape == (0,) for x in tensors) else dim


def _dtype_of_joined(tensors):
    """The promoted dtype, which is that of the first tensor in most calls."""
    dtype = tensors[0].dtype
    for x in tensors:
        if x.dtype is not dtype:
            return dtypes.result_type(*tensors)
    return dtype


def _first_difference(expected, shape, at):
    """Return PyTorch's words for the first size that differs, in another dimension than `at`."""
    d = next(d for d, size in enumerate(shape) if d != at and size != expected[d])
    return f"{expected[d]} but got size {shape[d]}"


@op("stack(Tensor[] tensors, int dim=0) -> Tensor")
class stack(Definition, linear="tensors,", elements="moved", memory="rows"):
    """Tensors of equal shape stacked along a new dimension.

    >>> import retrograd as rg
    >>> rg.stack((rg.tensor([1, 2]), rg.tensor([3, 4])), dim=1).tolist()
    [[1, 3], [2, 4]]
    """

    method = False

    def impl(xp, *tensors, dim):
        shape = tensors[0].shape
        at = canonical_dim("stack", dim, len(shape) + 1)
        for x in tensors:  # those that differ along `at` only could be concatenated
            if x.shape != shape:
                raise ValueError
        key = (*(slice(None),) * at, None)
        return xp.concatenate([x[key] for x in tensors], axis=at, dtype=_dtype_of_joined(tensors))

    def shape(*tensors, dim):
        _check_equal_shapes(tensors)
        first = tensors[0]
        at = canonical_dim("stack", dim, first.ndim + 1)
        return Aval((*first.shape[:at], len(tensors), *first.shape[at:]), dtypes.result_type(*tensors))

    def vjp_tensors(g, tensors_aval, dim):
        parts = registry["unbind"](g, dim)
        return [cast_to(part, aval.dtype) for part, aval in zip(parts, tensors_aval, strict=True)]

    def batch(batched, n, *tensors, dim):
        tensors = batch_all(tensors, batched, n)
        return stack(tensors, dim=shift_dims("stack", dim, tensors[0].ndim))

    def oracle(np, *tensors, dim):
        return np.stack(tensors, axis=dim)

    def samples(r):
        yield (r(2, 3), r(2, 3)), {"dim": 1}
        yield (r(2), r(2), r(2)), {"dim": -1}
        yield (r(), r()), {}

    def errors(r):
        yield (r(2), r(3)), {}, ValueError, r"equal size, but got \[2\] at entry 0 and \[3\] at entry 1"
        yield (r(2), r(2)), {"dim": 2}, IndexError, "stack: dim 2 is out of range"


def _check_equal_shapes(tensors):
    if not tensors:
        raise ValueError("stack expects a non-empty TensorList: stack got no tensors")
    first = tensors[0].shape
    for i, x in enumerate(tensors):
        if x.shape != first:
            raise ValueError(
                f"stack: shapes must agree, got {', '.join(str(t.shape) for t in tensors)}: stack expects each tensor "
                f"to be equal size, but got {list(first)} at entry 0 and {list(x.shape)} at entry {i}"
            )


def stack_by_cat(tensors, dim):
    """`stack` for tensors of several arrays, as nested and sparse ones are: by operators that have rules for these."""
    _check_equal_shapes(tensors)
    return cat([unsqueeze(t, dim) for t in tensors], dim=dim)


@op("narrow(Tensor x, int dim, int start, int length) -> Tensor")
class narrow(View, linear="x", node_name="SliceBackward0"):
    """A view of x at the indices start to start + length along `dim`; a negative start counts from the end."""

    def impl(xp, x, *, dim, start, length):
        return x[_narrowed_key(x.shape, dim, start, length)]

    def shape(x, *, dim, start, length):
        at = canonical_dim("narrow", dim, x.ndim)
        _narrowed_key(x.shape, dim, start, length)
        return Aval((*x.shape[:at], length, *x.shape[at + 1 :]), x.dtype)

    def vjp_x(g, x_aval, dim, start):
        before, after = list(x_aval.shape), list(x_aval.shape)
        before[dim] = start + x_aval.shape[dim] * (start < 0)
        after[dim] = x_aval.shape[dim] - before[dim] - g.shape[dim]
        zeros = registry["zeros"]
        return cat([zeros(before, dtype=g.dtype), g, zeros(after, dtype=g.dtype)], dim=dim)

    def batched_views(batch_shape, *, dim, start, length):
        dim = shift_dims("narrow", dim, len(batch_shape) - 1)
        return (("narrow", {"dim": dim, "start": start, "length": length}),)

    def oracle(np, x, dim, start, length):
        return np.take(x, range(start, start + length), axis=dim)

    def samples(r):
        yield (r(2, 5),), {"dim": 1, "start": 1, "length": 3}
        yield (r(4),), {"dim": -1, "start": 0, "length": 2}
        yield (r(4),), {"dim": 0, "start": -3, "length": 2}

    def errors(r):
        yield (
            (r(4),),
            {"dim": 0, "start": 3, "length": 2},
            IndexError,
            r"start \(3\) \+ length \(2\) exceeds dimension size \(4\)",
        )
        yield (r(4),), {"dim": 0, "start": -5, "length": 2}, IndexError, "narrow: start -5 is out of range"


def _narrowed_key(shape, dim, start, length):
    at = canonical_dim("narrow", dim, len(shape))
    if not shape:
        raise ValueError("narrow: a tensor without dimensions has no indices")
    if start < -shape[at]:
        raise IndexError(f"narrow: start {start} is out of range for dimension {at}, which has size {shape[at]}")
    start += shape[at] * (start < 0)
    if length < 0 or start + length > shape[at]:
        raise OperandIndexError(
            f"narrow: start ({start}) + length ({length}) exceeds dimension size ({shape[at]}) of dimension {at}"
            if length >= 0
            else f"narrow: length must be non-negative, got {length}"
        )
    return (*(slice(None),) * at, slice(start, start + length))


@op("broadcast_tensors(Tensor[] tensors=[]) -> Tensor[]")
class broadcast_tensors(Composite):
    """The tensors as views, broadcast to their common shape."""

    method = False

    def compose(*tensors):
        shape = broadcast_shapes("broadcast_tensors", [t.shape for t in tensors])
        return tuple(t if t.shape == shape else expand(t, shape) for t in tensors)

    oracle = "numpy.broadcast_arrays"

    def samples(r):
        yield (r(3, 1), r(2)), {}
