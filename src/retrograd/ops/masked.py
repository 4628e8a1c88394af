"""Masks: fill, select and write elements where a boolean tensor is true."""

from typing import overload

from retrograd.backend.type_info import check_number_fits
from retrograd.core import Aval, Definition, Internal, Tensor, op, registry
from retrograd.core import dtype as dtypes
from retrograd.core.dispatch import call_fast
from retrograd.core.errors import OperandTypeError
from retrograd.foundation.lazy_imports import add_attribute
from retrograd.ops.as_strided import unravel_index
from retrograd.ops.batching import batch_all
from retrograd.ops.create import as_tensor, full
from retrograd.ops.family import Composite, cast_to, numel
from retrograd.ops.functions import check_tensor, function
from retrograd.ops.gather import gather
from retrograd.ops.index import index, nonzero
from retrograd.ops.pointwise import ne
from retrograd.ops.pointwise import where as choose
from retrograd.ops.sort import topk_indices
from retrograd.ops.view import broadcast_tensors, cat, narrow, reshape, stack, unsqueeze


def check_mask(name, mask):
    """Raise an error for a mask that is not boolean."""
    if check_tensor(name, mask).dtype != dtypes.bool_:
        raise TypeError(
            f"{name}: expected BoolTensor for mask: {name} only supports boolean masks, but got mask with dtype "
            f"{mask.dtype}: the mask must be boolean, got {mask.dtype}; convert with .bool()"
        )


def scalar_like(name, value, x):
    """A number, or a tensor without dimensions, as a tensor in the dtype of x."""
    if not hasattr(value, "dtype"):
        if isinstance(value, complex) and x.dtype.kind != "c":
            raise OperandTypeError(f"{name}: the value is complex, which {x.dtype} can't hold")
        check_number_fits(name, value, x.dtype)
        if type(value) in (bool, int, float, complex):
            return call_fast(registry["full"], (), {"size": (), "fill_value": value, "dtype": x.dtype})
        return registry["full"]((), value, dtype=x.dtype)
    value = as_tensor(value)
    if value.ndim:
        raise ValueError(
            f"{name}: {name} only supports a 0-dimensional value tensor, but got tensor with {value.ndim} "
            f"dimension(s): the value must be a number or have no dimensions, got shape {value.shape}"
        )
    if value.dtype.kind == "c" and x.dtype.kind != "c":
        raise OperandTypeError(f"{name}: the value is complex, which {x.dtype} can't hold")
    return cast_to(value, x.dtype)


@op("fill(Tensor x, Tensor value) -> Tensor")
class fill(Composite, method=False):
    """A number, or a tensor without dimensions, in the shape and dtype of x.

    >>> import retrograd as rg
    >>> rg.fill(rg.zeros(3), 2.5).tolist()
    [2.5, 2.5, 2.5]
    """

    def compose(x, value):
        return choose(registry["ones_like"](x, dtype=dtypes.bool_), scalar_like("fill", value, x), x)

    def oracle(np, x, value):
        return np.full(x.shape, value)

    def samples(r):
        yield (r(3, 4), 2.5), {}
        yield (r(3), r()), {}

    def errors(r):
        yield (r(3), r(2)), {}, ValueError, r"fill: .*the value must be a number"


@op("masked_fill(Tensor x, Tensor mask, Tensor value) -> Tensor")
class masked_fill(Composite, in_place=True):
    """x with `value`, a number or a tensor without dimensions, where the mask is true; x and the mask broadcast.

    >>> import retrograd as rg
    >>> rg.masked_fill(rg.tensor([1.0, 2.0, 3.0]), rg.tensor([True, False, True]), -1).tolist()
    [-1.0, 2.0, -1.0]
    """

    def compose(x, mask, value):
        check_mask("masked_fill", mask)
        return choose(mask, scalar_like("masked_fill", value, x), x).contiguous()

    def oracle(np, x, mask, value):
        return np.where(mask, value, x)

    def samples(r):
        yield (r(3, 4), r.booleans(4), -1.5), {}
        yield (r(4), r.booleans(3, 4), r()), {}

    def errors(r):
        yield (r(3), r.ints(2, (3,)), 1.0), {}, TypeError, "masked_fill: .*the mask must be boolean, got int64"
        yield (r(3), r.booleans(3), r(1)), {}, ValueError, r"masked_fill: .* no dimensions, got shape \(1,\)"
        yield (r(3), r.booleans(3), 1j), {}, TypeError, "masked_fill: the value is complex"


@op("masked_select(Tensor x, Tensor mask) -> Tensor")
class masked_select(Composite):
    """The elements of x where the mask is true, as a 1-d tensor; x and the mask broadcast.

    >>> import retrograd as rg
    >>> rg.masked_select(rg.tensor([1.0, 2.0, 3.0]), rg.tensor([True, False, True])).tolist()
    [1.0, 3.0]
    """

    def compose(x, mask):
        check_mask("masked_select", mask)
        x, mask = broadcast_tensors(x, mask)
        return index(x, mask) if x.ndim else index(reshape(x, (1,)), reshape(mask, (1,)))

    exempt = {
        "vmap": "how many are chosen depends on the values, and so the size of the result",
        "nested": "it chooses from each component: the result is nested, that of a dense tensor flat",
    }

    def oracle(np, x, mask):
        x, mask = np.broadcast_arrays(x, mask)
        return np.array([value for value, selected in zip(x.flat, mask.flat, strict=True) if selected])

    def samples(r):
        yield (r(3, 4), r.booleans(4)), {}
        yield (r(3), r.booleans(2, 3)), {}

    def errors(r):
        yield (r(3), r(3)), {}, TypeError, "masked_select: .*the mask must be boolean, got float64"


@op("masked_put(Tensor x, Tensor mask, Tensor source) -> Tensor")
class masked_put(Internal, linear="x,source", elements="moved"):
    """Rows of x where the mask is true replaced, in order, by elements of the same row of source, or by a number."""

    def impl(xp, x, mask, source):
        _check_rows(x, mask, source)
        return xp.masked_put(x, mask, source)

    def shape(x, mask, source):
        _check_rows(x, mask, source)
        return x

    def vjp_x(g, mask):
        return masked_put(g, mask, 0.0)

    def vjp_source(g, mask, source_aval):
        return masked_take(g, mask, size=source_aval.shape[-1])

    def batch(batched, n, x, mask, source):
        return masked_put(*batch_all((x, mask, source), batched, n))

    oracle = "retrograd.testing.references.masked.masked_put"

    def samples(r):
        yield (r(5), as_tensor([True, False, True, True, False]), r(4)), {}
        yield (r(2, 3), as_tensor([[True, False, True], [False, False, True]]), r(2, 2)), {}
        yield (r(3), as_tensor([True, False, True]), 0.0), {}


def _check_rows(x, mask, source):
    shapes = [x.shape, mask.shape, getattr(source, "shape", x.shape)]
    if x.shape != mask.shape or not all(shapes) or len({s[:-1] for s in shapes}) > 1:
        raise ValueError(f"masked_put: expected rows, got shapes {', '.join(map(str, shapes))}")


@op("masked_take(Tensor x, Tensor mask, *, int size) -> Tensor")
class masked_take(Internal, linear="x", elements="moved"):
    """Rows of `size` elements: the elements of x where the mask is true, then zeros."""

    def impl(xp, x, mask, *, size):
        _check_rows(x, mask, x)
        return xp.masked_take(x, mask, size)

    def shape(x, mask, *, size):
        _check_rows(x, mask, x)
        return Aval((*x.shape[:-1], size), x.dtype)

    def vjp_x(g, mask):
        return masked_put(registry["zeros"](mask.shape, dtype=g.dtype), mask, g)

    def batch(batched, n, x, mask, *, size):
        return masked_take(*batch_all((x, mask), batched, n), size=size)

    oracle = "retrograd.testing.references.masked.masked_take"

    def samples(r):
        yield (r(5), as_tensor([True, False, True, True, False])), {"size": 4}
        yield (r(2, 3), as_tensor([[True, False, True], [False, False, True]])), {"size": 2}


@op("masked_scatter(Tensor x, Tensor mask, Tensor source) -> Tensor")
class masked_scatter(Composite, in_place=True):
    """x with the elements of `source`, in order, where the mask is true; x and the mask broadcast.

    Unused elements of source get gradient 0; too few elements raise RuntimeError.

    >>> import retrograd as rg
    >>> rg.masked_scatter(rg.zeros(3), rg.tensor([True, False, True]), rg.tensor([5.0, 6.0, 7.0])).tolist()
    [5.0, 0.0, 6.0]
    """

    def compose(x, mask, source):
        check_mask("masked_scatter", mask)
        if source.dtype != x.dtype:
            raise TypeError(f"masked_scatter: x and source must have one dtype, got {x.dtype} and {source.dtype}")
        x, mask = broadcast_tensors(x, mask)
        row, mask, source = (reshape(a, (-1,)) for a in (x, mask, source))
        return reshape(masked_put(row, mask, source), x.shape)

    oracle = "retrograd.testing.references.masked.masked_scatter"

    def samples(r):
        yield (r(3, 4), r.booleans(3, 4), r(8)), {}
        yield (r(4), r.booleans(2, 4), r(2, 2)), {}

    def errors(r):
        yield (r(4), r.booleans(4), r(1)), {}, RuntimeError, "masked_scatter: the mask has 2 .* source only 1"
        yield (r(4), r.booleans(4), r.ints(3, (4,))), {}, TypeError, "masked_scatter: .* float64 and int64"


@op("nonzero_static(Tensor x, *, int size, int fill_value=-1) -> Tensor")
class nonzero_static(Definition, differentiable=False):
    """The first `size` indices of nonzero elements, one per row, padded with `fill_value`.

    >>> import retrograd as rg
    >>> rg.nonzero_static(rg.tensor([0, 1, 1]), size=3).tolist()
    [[1], [2], [-1]]
    """

    def impl(xp, x, *, size, fill_value):
        _check_size(size)
        return xp.nonzero_static(x, size, fill_value)

    def shape(x, *, size, fill_value):
        _check_size(size)
        return Aval((size, x.ndim), dtypes.int64)

    def batch(batched, n, x, *, size, fill_value):
        _check_size(size)
        shape = x.shape[1:]
        true = ne(reshape(x, (n, numel(shape))), 0)
        count = min(size, numel(shape))
        found = topk_indices(true, k=count, dim=1, largest=True)
        rows = reshape(stack([found, *unravel_index(found, shape)], dim=-1), (n, count, 1 + len(shape)))
        rows = narrow(rows, 2, 1, len(shape))
        rows = choose(unsqueeze(gather(true, 1, found), 2), rows, fill_value)
        return cat([rows, full((n, size - count, len(shape)), fill_value, dtype=dtypes.int64)], dim=1)

    def oracle(np, x, size, fill_value):
        found = [index for index in np.ndindex(x.shape) if x[index]][:size]
        return np.array(found + [(fill_value,) * x.ndim] * (size - len(found)))

    def samples(r):
        yield (r.booleans(3, 4),), {"size": 8, "fill_value": 7}
        yield (r.booleans(3),), {"size": 1}

    def errors(r):
        yield (r.booleans(3),), {"size": -1}, ValueError, "nonzero_static: size must not be negative, got -1"


def _check_size(size):
    if size < 0:
        raise ValueError(f"nonzero_static: size must not be negative, got {size}")


@overload
def where(condition, input: None = None, other: None = None) -> tuple[Tensor, ...]: ...


@overload
def where(condition, input, other, *, out=None) -> Tensor: ...


@function("where")
def where(condition, input=None, other=None, *, out=None):
    """Elements of `input` where the condition is true, of `other` elsewhere; of a condition alone, its nonzero indices.

    >>> import retrograd as rg
    >>> rg.where(rg.tensor([True, False]), rg.tensor([1.0, 2.0]), 0.0).tolist()
    [1.0, 0.0]
    >>> rg.where(rg.tensor([False, True]))
    (tensor([1]),)
    """
    if input is None and other is None:
        return nonzero(condition, as_tuple=True)
    if input is None or other is None:
        raise TypeError("where: expected a condition alone, or what to take where it holds and where it does not")
    return choose(condition, input, other) if out is None else choose(condition, input, other, out=out)  # type: ignore[call-arg]


def _where(x, condition, other) -> Tensor:
    """Elements of x where the condition is true, of `other` elsewhere."""
    return choose(condition, x, other)


add_attribute(Tensor, "where", _where)
