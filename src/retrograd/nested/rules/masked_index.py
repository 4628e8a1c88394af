"""Selection of elements of nested tensors: by masks, by nested index tensors, by values."""

from typing import Any

from retrograd.backend import ragged_reshape, ragged_slicing
from retrograd.core import Op, Tensor, call, registry
from retrograd.core.dtype import bool_
from retrograd.nested.buffer import in_layout, like, over, packed, values
from retrograd.nested.buffer_layout import Layout, component_shapes, is_nested, layout
from retrograd.nested.dispatch import composed, final
from retrograd.nested.fallback_loop import one_by_one, warn_once
from retrograd.nested.ragged_dims import as_components
from retrograd.nested.rules.index import indexed, narrowed, rows_at
from retrograd.nested.rules.pointwise import buffer_operand, check_alike, result_layout
from retrograd.nested.rules.segment_scan import align_rows
from retrograd.nested.rules.view import over_same
from retrograd.ops.create import as_tensor
from retrograd.ops.family import canonical_dim, numel
from retrograd.ops.index import T
from retrograd.ops.layout import jagged, strided
from retrograd.ops.layout import layout as Storage
from retrograd.ops.masked import check_mask
from retrograd.ops.methods import concrete
from retrograd.ops.pointwise import ge, le, where
from retrograd.ops.view import broadcast_tensors, reshape


@composed("getitem")
@final
def _getitem(op: Op, args: tuple, params: dict) -> Any:
    """Index a plain tensor by nested index tensors, or a nested one by a nested mask or plain index tensors."""
    (x, *ids), spec = args, params["spec"]
    if not any(map(is_nested, ids)):
        return indexed(x, ids, spec)
    if ids[0].dtype != bool_:
        return NotImplemented if is_nested(x) else _index_plain(op, x, ids, spec)
    if len(ids) > 1 or spec[0] is not T:
        raise IndexError("index: a nested mask stands first in a key, without index tensors behind it")
    out = masked(x, ids[0])
    return registry["slice"](out, spec=(slice(None), slice(None), *spec[1:])) if spec[1:] else out


# ---------------------------------------------------------------------------------------------------- masks


def masked(x: Tensor, mask: Tensor) -> Any:
    """Return x[mask]: the selected rows or elements of each component; the mask covers its first dimensions."""
    _check_mask(x, mask)
    x, mask = packed(x), packed(mask)
    known, rows, flags = layout(x), values(x), values(mask)
    if known.lead:
        return NotImplemented
    if is_nested(flags):
        return NotImplemented if known.axis or known.several != 1 else like(known, masked(rows, flags))
    places = registry["nonzero"](reshape(flags, (-1,)), as_tuple=True)[0]
    behind = numel(flags.shape[known.row + 1 :])
    structure, order = ragged_slicing.count_by_component(known.structure, concrete(places), behind, not known.axis)
    places = places if order is None else registry["index_select"](places, 0, as_tensor(order))
    rows = reshape(rows, (flags.numel(), *rows.shape[flags.ndim :])) if flags.ndim > 1 else rows
    return over(registry["index_select"](rows, 0, places), structure)


def _check_mask(x: Tensor, mask: Tensor) -> None:
    """Refuse a mask that has other sizes than x; an IndexError names the first component that differs."""
    if not is_nested(x):
        raise IndexError(f"index: a nested mask does not fit a dense tensor of shape {x.shape}")
    pairs = list(zip(component_shapes(x), component_shapes(mask), strict=False))
    for i, (mine, its) in enumerate(pairs):
        if mine[: len(its)] != its:
            raise IndexError(f"index: a mask of shape {its} does not fit component {i} of shape {mine}")
    if x.shape[: mask.ndim] != mask.shape or layout(x).axis != layout(mask).axis:
        raise IndexError(f"index: a nested mask of shape {mask.shape} does not fit a nested tensor of shape {x.shape}")


@composed("masked_select")
@final
def _masked_select(op: Op, args: tuple, params: dict) -> Any:
    """Return the selected elements of each component, as a nested tensor."""
    check_mask("masked_select", args[1])
    known = result_layout(args)
    rows = [buffer_operand(a, known) for a in args]
    if any(r is NotImplemented for r in rows):
        check_alike("masked_select", *sorted(args, key=is_nested, reverse=True))
        return NotImplemented
    x, mask = (like(known, r) for r in broadcast_tensors(*rows))
    return masked(x, mask)


def masked_select(tensor: Tensor, mask: Tensor) -> Tensor:
    """Return the elements where a mask is true, as a nested tensor (components, j); the two broadcast.

    For dense tensors the components are the rows along the last dimension, as in PyTorch, whatever dimensions come
    before; for nested ones they remain the components.  TypeError for a mask that is not boolean.

    >>> import retrograd as rg
    >>> rg.nested.masked_select(rg.arange(4).reshape(2, 2), rg.tensor([[True, True], [False, True]]))
    nested_tensor([
      tensor([0, 1]),
      tensor([3])
    ])
    """
    check_mask("masked_select", mask)
    if is_nested(tensor) or is_nested(mask):
        out: Tensor = registry["masked_select"](tensor, mask)
        return out
    tensor, mask = broadcast_tensors(as_tensor(tensor), mask)
    if not tensor.ndim:
        raise ValueError("masked_select: a tensor without dimensions has no rows")
    places = registry["nonzero"](reshape(mask, (-1,)), as_tuple=True)[0]
    whole = ragged_reshape.same_size(numel(tensor.shape[:-1]), (1,))
    structure, _ = ragged_slicing.count_by_component(whole, concrete(places), tensor.shape[-1], True)
    return over(registry["index_select"](reshape(tensor, (-1,)), 0, places), structure)


@composed("nonzero_indices")
def _nonzero(op: Op, args: tuple, params: dict) -> Any:
    """Return a row for each nonzero element, with the component index first, as if the components were stacked."""
    (x,) = args
    return NotImplemented if layout(x).lead else as_tensor(ragged_slicing.nonzero(concrete(x)))


# -------------------------------------------------------------------------------------------- tables, classes


def _index_plain(op: Op, x: Tensor, ids: list, spec: tuple) -> Any:
    """Index a plain tensor by nested indices: a nested tensor with their structure."""
    known = result_layout(tuple(ids))
    rows = [buffer_operand(i, known) for i in ids]
    if any(r is NotImplemented for r in rows):
        for i in [i for i in ids if is_nested(i)][1:]:
            check_alike("index", next(filter(is_nested, ids)), i)
        return NotImplemented
    first = _index_position(spec, x.ndim)
    return over(call(op, (x, *rows), {"spec": spec}), known.structure, known.axis, known.lead + first)


def _index_position(spec: tuple, ndim: int) -> int:
    """Return the dimension of x[spec] at which the index dimensions start."""
    places = [n for n, k in enumerate(spec) if k is T or isinstance(k, int)]
    if places != list(range(places[0], places[-1] + 1)):
        return 0
    whole = ndim - sum(k is not None and k is not Ellipsis for k in spec)
    return sum(whole if k is Ellipsis else 1 for k in spec[: places[0]])


@composed("embedding", "one_hot", "searchsorted", "bucketize")
def _lookup_elements(op: Op, args: tuple, params: dict) -> Any:
    """Look up each element of a nested tensor in a plain table or sequence."""
    nested = [i for i, a in enumerate(args) if is_nested(a)]
    if len(nested) > 1 or nested[0] != _VALUES[op.name] or (op.name == "searchsorted" and args[0].ndim != 1):
        return NotImplemented
    x = packed(args[nested[0]])
    out = call(op, tuple([values(x) if is_nested(a) else a for a in args]), params)
    return like(layout(x), out) if layout(x).several or out.ndim == x.ndim else out


_VALUES = {"embedding": 0, "one_hot": 0, "searchsorted": 1, "bucketize": 0}  # the operand with the elements


# ------------------------------------------------------------------------------------- places along dimensions


@composed("gather", "take_along_dim")
def _gather(op: Op, args: tuple, params: dict) -> Any:
    """Gather along a dense dimension of the buffers, or select rows along a ragged dimension."""
    if params["dim"] is None:
        return NotImplemented
    if not is_nested(args[0]) and canonical_dim(op.name, params["dim"], args[0].ndim) == 0:
        warn_once(op.name)  # the components of the index share the tensor, and index its first dimension
        return one_by_one(op, args, params, [False, False])
    if op.name == "take_along_dim" and is_nested(args[0]) and not is_nested(args[1]):
        known = result_layout(args[:1])
        dim, rows = known.in_buffer(canonical_dim(op.name, params["dim"], known.ndim)), buffer_operand(args[1], known)
        if dim is not None and rows is not NotImplemented and rows.ndim == known.ndim - known.several:
            return like(known, call(op, (values(packed(args[0])), rows), {"dim": dim}))
    return _along_dim(op, args, params)


@composed("scatter", "scatter_add", "scatter_reduce")
def _scatter(op: Op, args: tuple, params: dict) -> Any:
    """Scatter into the buffer: along ragged dimensions into rows."""
    return _along_dim(op, args, params)


def _along_dim(op: Op, args: tuple, params: dict) -> Any:
    """Apply an operator on x, an index, and perhaps a source along a dimension to their buffers.

    Plain operands have components of one size; a result in the shape of a plain operand is plain again.
    """
    x, _index = args[:2]
    d = canonical_dim(op.name, params["dim"], x.ndim)
    known = layout(next(filter(is_nested, args)))
    if known.lead or d == 0 or not known.several:
        return NotImplemented
    nested = [_in_components(a, known) if hasattr(a, "ndim") and a.ndim else a for a in args]
    if any(n is NotImplemented for n in nested):
        return NotImplemented
    inner = [packed(n) if is_nested(n) else n for n in nested]
    rows = _rows_along(inner, d, op.name == "take_along_dim")
    if rows is NotImplemented:
        return NotImplemented
    shaped = 1 if op.name in ("gather", "take_along_dim") else 0
    dim = layout(inner[0]).in_buffer(d)
    dim = layout(inner[0]).row if dim is None else dim
    out = like(layout(inner[shaped]), call(op, tuple(rows), {**params, "dim": dim}))
    return out if is_nested(args[shaped]) else registry["to_padded_tensor"](out, 0)  # nothing is padded


def _in_components(a: Tensor, known: Layout) -> Any:
    """Convert a plain tensor to a nested one with the ragged dimensions of another."""
    if is_nested(a):
        its = layout(a)
        return a if its[1:] == known[1:] and its.several == known.several else NotImplemented
    if a.ndim != known.ndim or a.shape[0] != len(known.structure):
        return NotImplemented
    return as_components(a, 0, known.ragged.start, known.ragged.stop)


def _rows_along(nested: list, d: int, wrap: bool) -> Any:
    """Return the buffers, with an index along a ragged dimension converted to rows.  `wrap`: -1 is the last."""
    x, index, *src = nested
    known, its = layout(x), layout(index)
    if any(is_nested(s) and layout(s).structure != its.structure for s in src):
        return NotImplemented
    rest = [values(s) if is_nested(s) else s for s in src]
    if d not in known.ragged:
        return [values(x), values(index), *rest] if known.structure == its.structure else NotImplemented
    if is_nested(values(x)):
        return NotImplemented
    return [values(x), _rows_at(x, index, d - known.ragged.start, wrap), *rest]


def _rows_at(x: Tensor, index: Tensor, column: int, wrap: bool) -> Tensor:
    """Return the rows of x at these indices along one ragged dimension, and at the index's position in the others."""
    its, rows = layout(index), values(index)

    numbers = [*ragged_slicing.coordinates(its.structure), its.structure.components()]
    *places, component = [align_rows(as_tensor(n), rows, its.row) for n in numbers]
    places[column] = rows
    return rows_at(component, *places, structure=layout(x).structure, wrap=wrap)


@composed("index_add", "index_copy", "index_fill", "index_reduce")
def _slices(op: Op, args: tuple, params: dict) -> Any:
    """Apply an operator on slices along a dense dimension to the buffer."""
    x, index, *src = args
    if not is_nested(x) or is_nested(index):
        return NotImplemented
    known = result_layout((x,))
    dim = known.in_buffer(canonical_dim(op.name, params["dim"], x.ndim))
    rows = [buffer_operand(s, known) for s in src]
    if dim is None or any(r is NotImplemented for r in rows):
        return NotImplemented
    return like(known, call(op, (values(packed(x)), index, *rows), {**params, "dim": dim}))


# ---------------------------------------------------------------------------------------------- triangles, parts


@composed("tril", "triu")
def _triangle(op: Op, args: tuple, params: dict) -> Any:
    """Keep the elements on one side of a diagonal, by the indices of rows along the ragged dimensions."""
    x = packed(args[0])
    known = layout(x)
    last, before = x.ndim - 1, x.ndim - 2
    if before <= known.lead or is_nested(values(x)):
        return NotImplemented
    if known.in_buffer(before) is not None and known.in_buffer(last) is not None and known.axis == 0:
        return over_same(op, x, params)
    places = [_coordinate(x, known, d) for d in (before, last)]
    side = ge if op.name == "tril" else le
    return like(known, where(side(places[0] + params["diagonal"], places[1]), values(x), 0))


def _coordinate(x: Tensor, known: Layout, dim: int) -> Tensor:
    """Return the index of each element along a dimension, in a shape that broadcasts with the buffer."""
    rows, at = values(x), known.in_buffer(dim)
    if at is None:
        at, numbers = known.row, as_tensor(ragged_slicing.coordinates(known.structure)[dim - known.ragged.start])
    else:
        numbers = registry["arange"](0, rows.shape[at], 1)
    out: Tensor = align_rows(numbers, rows, at)
    return out


def narrow(tensor: Tensor, dim: int, start: Any, length: Any, layout: Storage = strided) -> Tensor:
    """Return the nested tensor of slices of a tensor, `length` indices from `start` on along `dim`, per component.

    tensor: a dense one, whose slices along the first dimension are the components, or a nested one, with `dim` ragged.
    start, length: integers, or tensors of one for each component.  A view with gradients.
    layout: `rg.strided` or `rg.jagged`, that of the result if the tensor is dense.

    Raises IndexError naming the first component that is too short, TypeError for non-integers.

    >>> import retrograd as rg
    >>> rg.nested.narrow(rg.arange(6).reshape(2, 3), 1, rg.tensor([0, 1]), rg.tensor([1, 2]))
    nested_tensor([
      tensor([0]),
      tensor([4, 5])
    ])
    """
    if layout not in (strided, jagged):
        raise TypeError(f"narrow: layout must be rg.strided or rg.jagged, got {layout!r}")
    x = as_tensor(tensor)
    d = canonical_dim("narrow", dim, x.ndim)
    x = x if is_nested(x) or not d else as_components(x, 0, d, d + 1)
    known = _layout_of(x)
    if known is None or d not in known.ragged:
        raise RuntimeError(
            f"narrow: dimension {d} of a tensor of shape {x.shape} is not one that components are parts of"
        )
    start, length = (concrete(n) if isinstance(n, Tensor) else n for n in (start, length))
    out = narrowed("narrow", x, d, start, length)
    return out if is_nested(tensor) else in_layout(out, layout is strided)


def _layout_of(x: Tensor) -> Layout | None:
    return layout(x) if is_nested(x) else None
