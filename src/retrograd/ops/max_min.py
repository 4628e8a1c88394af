"""Maxima and minima, and their indices: max, min, amax, amin, aminmax, argmax, argmin."""

# max and min are builtins; in this file these names are the operators.

from typing import Annotated

from retrograd.core import Aval, Internal, Tensor, call, op, registry
from retrograd.core import dtype as dtypes
from retrograd.core.dispatch import call_fast
from retrograd.core.errors import OperandDtypeError, OperandIndexError
from retrograd.ops.batching import at_least_1d
from retrograd.ops.family import (
    Composite,
    Family,
    Reduction,
    canonical_dim,
    canonical_dims,
    cast_to,
    numel,
    restore_dims,
    shape_without,
    shift_dims,
    squeeze_last,
)
from retrograd.ops.gather import gather, scatter_sum
from retrograd.ops.pointwise import detach, eq, isnan, logical_and, logical_or, maximum, minimum, where
from retrograd.ops.reduce import numpy_axes, reduced_aval, reduction_samples
from retrograd.ops.reduce import sum as sum_over
from retrograd.ops.view import reshape, unsqueeze


def _pytorch_words(x, dim):
    """Return PyTorch's words for a reduction of no elements."""
    dims = canonical_dims("max", dim, x.ndim)
    if dim is None or len(dims) != 1:
        return (
            "Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' "
            "argument"
        )
    return f"Expected reduction dim {dims[0]} to have non-zero size"


def check_nonempty(name, x, dim):
    """Raise an error if there are no elements to choose from."""
    if dim is None and 0 not in x.shape:
        return
    if 0 in [x.shape[d] for d in canonical_dims(name, dim, x.ndim)]:
        raise OperandIndexError(
            f"{name}: {_pytorch_words(x, dim)}: nothing to choose from: the reduced dimensions of shape {x.shape} "
            f"have no elements; expected reduction dim to have non-zero size"
        )


def check_ordered(name, x):
    """Raise an error for complex dtypes, which have no order."""
    if x.dtype.kind == "c":
        raise OperandDtypeError(f"{name}: complex numbers have no order, got {x.dtype}; compare .abs() or .real")


def _check_extreme(name, x, dim):
    check_ordered(name, x)
    shape = x.shape
    if 0 in shape:
        check_nonempty(name, x, None if dim is None else (dim,))
    elif dim is not None:
        canonical_dim(name, dim, len(shape))


def split_among_ties(g, x, out, dim, keepdim):
    """Return g divided equally among the elements of x that equal `out`; 0 for the others."""
    out = restore_dims(out, x, dim, keepdim)
    chosen = logical_or(eq(x, out), logical_and(isnan(x), isnan(out)))
    return where(chosen, g / sum_over(cast_to(chosen, x.dtype), dim, keepdim=True), 0)


class Extreme(Reduction):
    """Base of amax and amin over `dim`; tied elements share the gradient equally."""

    @staticmethod
    def vjp_x(g, x, out, dim, keepdim):
        """Each element's share."""
        return split_among_ties(restore_dims(g, x, dim, keepdim), x, out, dim, keepdim)

    @staticmethod
    def jvp_x(t, x, out, dim, keepdim):
        """The mean of the tangents of those that tie."""
        return sum_over(split_among_ties(t, x, out, dim, keepdim), dim, keepdim)

    @classmethod
    def shape(cls, x, *, dim, keepdim):
        """That of a reduction; an error if there is nothing to choose from."""
        check_nonempty(cls.__name__, x, dim)
        return reduced_aval(cls.__name__, x, dim, keepdim, x.dtype)

    samples = reduction_samples


@op("amax(Tensor x, int[]? dim=None, bool keepdim=False) -> Tensor")
class amax(Extreme):
    """The maximum over `dim` (None or (): all).  Tied elements share the gradient.  NaN wins.

    >>> import retrograd as rg
    >>> rg.amax(rg.tensor([[1.0, 5.0], [7.0, 2.0]]), dim=1).tolist()
    [5.0, 7.0]
    """

    def impl(xp, x, *, dim, keepdim):
        return xp.amax(x, axis=numpy_axes(x, dim), keepdims=keepdim)

    oracle = "numpy.max"

    def errors(r):
        yield (r(2, 0),), {"dim": 1}, ValueError, r"amax: .*nothing to choose from: .* \(2, 0\)"


@op("amin(Tensor x, int[]? dim=None, bool keepdim=False) -> Tensor")
class amin(Extreme):
    """The minimum over `dim` (None or (): all).  Tied elements share the gradient.  NaN wins."""

    def impl(xp, x, *, dim, keepdim):
        return xp.amin(x, axis=numpy_axes(x, dim), keepdims=keepdim)

    oracle = "numpy.min"

    def errors(r):
        yield (r(0),), {}, ValueError, "amin: .*nothing to choose from"


class ArgExtreme(Reduction, differentiable=False):
    """Base of argmax and argmin: the index of the first match along `dim` (None: in the flattened tensor)."""

    @classmethod
    def shape(cls, x, *, dim, keepdim):
        """That of x without the dimension."""
        dims = None if dim is None else (dim,)
        check_nonempty(cls.__name__, x, dims)
        return reduced_aval(cls.__name__, x, dims, keepdim, dtypes.int64)

    @classmethod
    def batch(cls, batched, n, /, x, *, dim=None, keepdim=False):
        """Return the batched reduction over all dimensions: each flattened example is a row."""
        if dim is not None and x.ndim > 1:
            return registry[cls.__name__](x, shift_dims(cls.__name__, dim, x.ndim - 1), keepdim)
        canonical_dims(cls.__name__, dim, x.ndim - 1)
        found = registry[cls.__name__](reshape(x, (n, -1 if n else numel(x.shape[1:]))), 1)
        return reshape(found, (n, *(1,) * (x.ndim - 1))) if keepdim else found

    @staticmethod
    def samples(r):
        """In all of a tensor, and along a dimension."""
        yield (r(3, 4),), {}
        yield (r(3, 4),), {"keepdim": True}
        yield (r(3, 4),), {"dim": 1}
        yield (r(3, 4),), {"dim": 0, "keepdim": True}


@op("argmax(Tensor x, int? dim=None, bool keepdim=False) -> Tensor")
class argmax(ArgExtreme, node_name="MaxBackward0"):  # the name of `max`
    """The index of the maximum along `dim`, the first if tied; None: in the flattened tensor.

    >>> import retrograd as rg
    >>> rg.argmax(rg.tensor([[1.0, 5.0], [7.0, 2.0]]), dim=1).tolist()
    [1, 0]
    """

    def impl(xp, x, *, dim, keepdim):
        return xp.argmax(x, axis=dim, keepdims=keepdim)

    def errors(r):
        yield (r(0, 2),), {"dim": 0}, ValueError, "argmax: .*nothing to choose from"

    oracle = "numpy.argmax"


@op("argmin(Tensor x, int? dim=None, bool keepdim=False) -> Tensor")
class argmin(ArgExtreme, node_name="MinBackward0"):
    """The index of the minimum along `dim`, the first if tied; None: in the flattened tensor."""

    def impl(xp, x, *, dim, keepdim):
        return xp.argmin(x, axis=dim, keepdims=keepdim)

    def errors(r):
        yield (r(0),), {}, ValueError, "argmin: .*nothing to choose from"

    oracle = "numpy.argmin"



@op("aminmax(Tensor x, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)")
class aminmax(Composite):
    """The minimum and the maximum along `dim` (None: of all), as a named tuple (min, max).

    >>> import retrograd as rg
    >>> low, high = rg.aminmax(rg.tensor([3.0, 1.0, 2.0]))
    >>> low.item(), high.item()
    (1.0, 3.0)
    """

    def compose(x, *, dim, keepdim):
        _check_extreme("aminmax", x, dim)
        dims = None if dim is None else (dim,)
        return amin(x, dims, keepdim), amax(x, dims, keepdim)

    def oracle(np, x, dim, keepdim):
        return (x.min(axis=dim, keepdims=keepdim), x.max(axis=dim, keepdims=keepdim))

    def samples(r):
        yield (r(3, 4),), {}
        yield (r(3, 4),), {"dim": 1, "keepdim": True}

    def errors(r):
        yield (r(0, 2),), {"dim": 0}, ValueError, "^aminmax: .*nothing to choose from"



ChosenAlongDim = Annotated[Tensor | tuple[Tensor, Tensor], "dim"]  # values and indices if `dim` is given, else a tensor


@op("select_along(Tensor x, *, str finder, any given, int dim, bool keepdim) -> (Tensor values, Tensor indices)")
class select_along(Internal, Family, memory="rows", snapshots="out"):
    """The elements of x at the indices along `dim` that another operator returns, `finder`, and these indices.

    `given` are the params of that operator except for `dim`.  Without `keepdim` it returns one index, which keeps the
    dimension, and the results have none.
    """

    def impl(xp, x, *, finder, given, dim, keepdim):
        check_ordered("select_along", x)
        indices = registry[finder].kernel_for((x,))(x, dim=dim, **given)
        if not x.ndim:
            return x.copy(), indices
        values = xp.take_found(x, indices, dim % x.ndim)
        if keepdim:
            return values, indices
        shape = shape_without(x.shape, dim)
        return values.reshape(shape), indices.reshape(shape)

    @classmethod
    def bind_widened(cls, namespace):
        """Return the usual kernel: that of the other operator computes in float32, or refuses the dtype."""
        return cls.bind(namespace)

    def node_name(fn):
        name = registry[fn.params["finder"]].definition.node_name
        return name(fn) if callable(name) else name

    def shape(x, *, finder, given, dim, keepdim):
        check_ordered("select_along", x)
        found = registry[finder].definition.shape(x, dim=dim, **given)
        shape = found.shape if keepdim or not x.ndim else shape_without(x.shape, dim)
        return Aval(shape, x.dtype), Aval(shape, found.dtype)

    def vjp_x(g, indices, x_aval, dim, keepdim):
        if not x_aval.ndim:
            return g[0]
        operands = _with_dim(g[0], dim, keepdim), _with_dim(detach(indices), dim, keepdim)
        return call(scatter_sum, operands, {"shape": x_aval.shape, "dim": dim})

    def jvp_x(t, out, dim, keepdim):
        if not t.ndim:
            return t, None
        taken = gather(t, dim, _with_dim(detach(out[1]), dim, keepdim))
        return reshape(taken, out[1].shape), None

    def dependence(i, out, x, *, dim, keepdim, **params):
        left = [d for d in range(x.ndim) if d != canonical_dim("select_along", dim, x.ndim)]
        return dict(zip(left, left if keepdim else range(len(left)), strict=True))

    def batch(batched, n, x, *, dim, keepdim, **params):
        ndim = x.ndim - 1
        along = {"dim": shift_dims("select_along", dim, ndim), "keepdim": keepdim or not ndim, **params}
        out = call(select_along, (at_least_1d(x),), along)
        return out if ndim else squeeze_last(out)

    oracle = "retrograd.testing.references.max_min.select_along"

    def samples(r):
        yield (r(3, 4),), {"finder": "argmax", "given": {"keepdim": True}, "dim": 1, "keepdim": False}
        yield (r(3, 4),), {"finder": "argmin", "given": {"keepdim": True}, "dim": -2, "keepdim": True}
        yield (r(),), {"finder": "argmax", "given": {"keepdim": True}, "dim": 0, "keepdim": False}


def _with_dim(a, dim, keepdim):
    """Return a result of `select_along` with the dimension that it may have lost."""
    return a if keepdim else call_fast(unsqueeze, (a,), {"dim": dim})


def values_and_indices(x, finder, given, dim, keepdim=True):
    """The elements of x at the indices along `dim` that an operator finds, and the indices."""
    params = {"finder": finder.name, "given": given, "dim": dim, "keepdim": keepdim}
    return call(select_along, (x,), params)


# PyTorch's max and min are three operators each: elementwise of two tensors, along a dimension, over all elements.


def _dispatch_max_min(name, x, other, dim, keepdim, pairwise, overall, position):
    other = dim if isinstance(dim, Tensor) else other
    if other is not None:
        return pairwise(x, other)
    if dim is not None and not isinstance(dim, int):
        raise TypeError(f"{name}: dim must be an int, got {dim!r}; for several there is {overall.name}")
    _check_extreme(name, x, dim)
    if dim is None:
        return call_fast(overall, (x,), {"dim": None, "keepdim": keepdim})
    return values_and_indices(x, position, {"keepdim": True}, dim, keepdim)


@op("max(Tensor x, any dim=None, bool keepdim=False, *, Tensor? other=None) -> Tensor")
class max(Composite, result_fields="values indices"):
    """The maximum of all elements; along `dim`, a named tuple (values, indices); with a second tensor, `maximum`.

    Along a dimension the gradient goes to the element at `indices`.  Over all elements, tied ones share it, as in
    `amax`.

    >>> import retrograd as rg
    >>> values, indices = rg.max(rg.tensor([[1.0, 5.0], [7.0, 2.0]]), dim=1)
    >>> values.tolist(), indices.tolist()
    ([5.0, 7.0], [1, 0])
    """

    def compose(x, other, *, dim, keepdim) -> ChosenAlongDim:
        return _dispatch_max_min("max", x, other, dim, keepdim, maximum, amax, argmax)

    oracle = "retrograd.testing.references.max_min.max"

    def samples(r):
        yield (r(3, 4), None), {}
        yield (r(3, 4), None), {"dim": 1}
        yield (r(3, 4), r(4)), {}

    def errors(r):
        yield (r(3, 4), None), {"dim": (0, 1)}, TypeError, "max: dim must be an int.*amax"
        yield (r(0, 4), None), {"dim": 0}, ValueError, "^max: .*nothing to choose from"


@op("min(Tensor x, any dim=None, bool keepdim=False, *, Tensor? other=None) -> Tensor")
class min(Composite, result_fields="values indices"):
    """The minimum of all elements; along `dim`, a named tuple (values, indices); with a second tensor, `minimum`."""

    def compose(x, other, *, dim, keepdim) -> ChosenAlongDim:
        return _dispatch_max_min("min", x, other, dim, keepdim, minimum, amin, argmin)

    oracle = "retrograd.testing.references.max_min.min"

    def samples(r):
        yield (r(3, 4), None), {}
        yield (r(3, 4), None), {"dim": 0, "keepdim": True}
        yield (r(3, 4), r(4)), {}

    def errors(r):
        yield (r(3, 4), None), {"dim": 2}, IndexError, "^min: dim 2 is out of range"
