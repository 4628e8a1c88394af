"""Selection of elements of nested tensors: by masks, by nested index tensors, by values."""

from typing import Any

from retrograd.backend import ragged_reshape, ragged_slicing
from retrograd.core import Op, Tensor, call, registry
from retrograd.core.dtype import bool_
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.nested.buffer import remove_holes, to_layout, values, wrap_buffer, wrap_buffer_like
from retrograd.nested.buffer_layout import Layout, component_shapes, get_layout, is_nested
from retrograd.nested.dispatch import rule_for, with_final_errors
from retrograd.nested.fallback_loop import run_per_component, warn_once
from retrograd.nested.ragged_dims import nest_dense
from retrograd.nested.rules.index import index_nested, narrow_ragged, rows_at
from retrograd.nested.rules.pointwise import buffer_operand, check_broadcast, result_layout
from retrograd.nested.rules.segment_scan import align_rows
from retrograd.nested.rules.view import apply_to_buffer
from retrograd.ops.create import as_tensor
from retrograd.ops.family import canonical_dim, numel
from retrograd.ops.index import T
from retrograd.ops.layout import jagged, strided
from retrograd.ops.layout import layout as Storage
from retrograd.ops.masked import check_mask
from retrograd.ops.methods import concrete
from retrograd.ops.pointwise import ge, le, where
from retrograd.ops.view import broadcast_tensors, reshape


@rule_for("getitem")
@with_final_errors
def _getitem(op: Op, args: tuple, params: dict) -> Any:
    """Index a plain tensor by nested index tensors, or a nested one by a nested mask or plain index tensors."""
    (x, *ids), spec = args, params["spec"]
    if not any(map(is_nested, ids)):
        return index_nested(x, ids, spec)
    if ids[0].dtype != bool_:
        return NotImplemented if is_nested(x) else _index_plain(op, x, ids, spec)
    if len(ids) > 1 or spec[0] is not T:
        raise IndexError("index: a nested mask stands first in a key, without index tensors behind it")
    out = select_by_mask(x, ids[0])
    return registry["slice"](out, spec=(slice(None), slice(None), *spec[1:])) if spec[1:] else out


# ---------------------------------------------------------------------------------------------------- masks


def select_by_mask(x: Tensor, mask: Tensor) -> Any:
    """Return x[mask]: the selected rows or elements of each component; the mask covers its first dimensions."""
    _check_mask(x, mask)
    x, mask = remove_holes(x), remove_holes(mask)
    layout, rows, flags = get_layout(x), values(x), values(mask)
    if layout.lead:
        return NotImplemented
    if is_nested(flags):
        return (
            NotImplemented
            if layout.axis or layout.num_ragged != 1
            else wrap_buffer_like(layout, select_by_mask(rows, flags))
        )
    indices = registry["nonzero"](reshape(flags, (-1,)), as_tuple=True)[0]
    trailing = numel(flags.shape[layout.row + 1 :])
    structure, order = ragged_slicing.count_by_component(layout.structure, concrete(indices), trailing, not layout.axis)
    indices = indices if order is None else registry["index_select"](indices, 0, as_tensor(order))
    rows = reshape(rows, (flags.numel(), *rows.shape[flags.ndim :])) if flags.ndim > 1 else rows
    return wrap_buffer(registry["index_select"](rows, 0, indices), structure)


def _check_mask(x: Tensor, mask: Tensor) -> None:
    """Refuse a mask that has other sizes than x; an IndexError names the first component that differs."""
    if not is_nested(x):
        raise IndexError(f"index: a nested mask does not fit a dense tensor of shape {x.shape}")
    pairs = list(zip(component_shapes(x), component_shapes(mask), strict=False))
    for i, (mine, its) in enumerate(pairs):
        if mine[: len(its)] != its:
            raise IndexError(f"index: a mask of shape {its} does not fit component {i} of shape {mine}")
    if x.shape[: mask.ndim] != mask.shape or get_layout(x).axis != get_layout(mask).axis:
        raise IndexError(f"index: a nested mask of shape {mask.shape} does not fit a nested tensor of shape {x.shape}")


@rule_for("masked_select")
@with_final_errors
def _masked_select(op: Op, args: tuple, params: dict) -> Any:
    """Return the selected elements of each component, as a nested tensor."""
    check_mask("masked_select", args[1])
    layout = result_layout(args)
    rows = [buffer_operand(a, layout) for a in args]
    if any(r is NotImplemented for r in rows):
        check_broadcast("masked_select", *sorted(args, key=is_nested, reverse=True))
        return NotImplemented
    x, mask = (wrap_buffer_like(layout, r) for r in broadcast_tensors(*rows))
    return select_by_mask(x, mask)


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
    indices = registry["nonzero"](reshape(mask, (-1,)), as_tuple=True)[0]
    whole = ragged_reshape.same_size(numel(tensor.shape[:-1]), (1,))
    structure, _ = ragged_slicing.count_by_component(whole, concrete(indices), tensor.shape[-1], True)
    return wrap_buffer(registry["index_select"](reshape(tensor, (-1,)), 0, indices), structure)


@rule_for("nonzero_indices")
def _nonzero(op: Op, args: tuple, params: dict) -> Any:
    """Return a row for each nonzero element, with the component index first, as if the components were stacked."""
    (x,) = args
    return NotImplemented if get_layout(x).lead else as_tensor(ragged_slicing.nonzero(concrete(x)))


# -------------------------------------------------------------------------------------------- tables, classes


def _index_plain(op: Op, x: Tensor, ids: list, spec: tuple) -> Any:
    """Index a plain tensor by nested indices: a nested tensor with their structure."""
    layout = result_layout(tuple(ids))
    rows = [buffer_operand(i, layout) for i in ids]
    if any(r is NotImplemented for r in rows):
        for i in [i for i in ids if is_nested(i)][1:]:
            check_broadcast("index", next(filter(is_nested, ids)), i)
        return NotImplemented
    first = _index_position(spec, x.ndim)
    return wrap_buffer(call(op, (x, *rows), {"spec": spec}), layout.structure, layout.axis, layout.lead + first)


def _index_position(spec: tuple, ndim: int) -> int:
    """Return the dimension of x[spec] at which the index dimensions start."""
    indices = [n for n, k in enumerate(spec) if k is T or isinstance(k, int)]
    if indices != list(range(indices[0], indices[-1] + 1)):
        return 0
    whole = ndim - sum(k is not None and k is not Ellipsis for k in spec)
    return sum(whole if k is Ellipsis else 1 for k in spec[: indices[0]])


@rule_for("embedding", "one_hot", "searchsorted", "bucketize")
def _lookup_elements(op: Op, args: tuple, params: dict) -> Any:
    """Look up each element of a nested tensor in a plain table or sequence."""
    nested = [i for i, a in enumerate(args) if is_nested(a)]
    if len(nested) > 1 or nested[0] != _ELEMENT_OPERAND[op.name] or (op.name == "searchsorted" and args[0].ndim != 1):
        return NotImplemented
    x = remove_holes(args[nested[0]])
    out = call(op, tuple([values(x) if is_nested(a) else a for a in args]), params)
    return wrap_buffer_like(get_layout(x), out) if get_layout(x).num_ragged or out.ndim == x.ndim else out


_ELEMENT_OPERAND = {"embedding": 0, "one_hot": 0, "searchsorted": 1, "bucketize": 0}  # the operand with the elements


# ------------------------------------------------------------------------------------- indices along dimensions


@rule_for("gather", "take_along_dim")
def _gather(op: Op, args: tuple, params: dict) -> Any:
    """Gather along a dense dimension of the buffers, or select rows along a ragged dimension."""
    if params["dim"] is None:
        return NotImplemented
    if not is_nested(args[0]) and canonical_dim(op.name, params["dim"], args[0].ndim) == 0:
        warn_once(op.name)  # the components of the index share the tensor, and index its first dimension
        return run_per_component(op, args, params, [False, False])
    if op.name == "take_along_dim" and is_nested(args[0]) and not is_nested(args[1]):
        layout = result_layout(args[:1])
        dim, rows = (
            layout.buffer_dim(canonical_dim(op.name, params["dim"], layout.ndim)),
            buffer_operand(args[1], layout),
        )
        if dim is not None and rows is not NotImplemented and rows.ndim == layout.ndim - layout.num_ragged:
            return wrap_buffer_like(layout, call(op, (values(remove_holes(args[0])), rows), {"dim": dim}))
    return _run_along_dim(op, args, params)


@rule_for("scatter", "scatter_add", "scatter_reduce")
def _scatter(op: Op, args: tuple, params: dict) -> Any:
    """Scatter into the buffer: along ragged dimensions into rows."""
    return _run_along_dim(op, args, params)


def _run_along_dim(op: Op, args: tuple, params: dict) -> Any:
    """Apply an operator on x, an index, and perhaps a source along a dimension to their buffers.

    Plain operands have components of one size; a result in the shape of a plain operand is plain again.
    """
    x, _index = args[:2]
    d = canonical_dim(op.name, params["dim"], x.ndim)
    layout = get_layout(next(filter(is_nested, args)))
    if layout.lead or d == 0 or not layout.num_ragged:
        return NotImplemented
    nested = [_nest_operand(a, layout) if hasattr(a, "ndim") and a.ndim else a for a in args]
    if any(n is NotImplemented for n in nested):
        return NotImplemented
    inner = [remove_holes(n) if is_nested(n) else n for n in nested]
    rows = _buffers_along(inner, d, op.name == "take_along_dim")
    if rows is NotImplemented:
        return NotImplemented
    shaped = 1 if op.name in ("gather", "take_along_dim") else 0
    dim = get_layout(inner[0]).buffer_dim(d)
    dim = get_layout(inner[0]).row if dim is None else dim
    out = wrap_buffer_like(get_layout(inner[shaped]), call(op, tuple(rows), {**params, "dim": dim}))
    return out if is_nested(args[shaped]) else registry["to_padded_tensor"](out, 0)  # nothing is padded


def _nest_operand(a: Tensor, layout: Layout) -> Any:
    """Convert a plain tensor to a nested one with the ragged dimensions of another."""
    if is_nested(a):
        its = get_layout(a)
        return a if its[1:] == layout[1:] and its.num_ragged == layout.num_ragged else NotImplemented
    if a.ndim != layout.ndim or a.shape[0] != len(layout.structure):
        return NotImplemented
    return nest_dense(a, 0, layout.ragged.start, layout.ragged.stop)


def _buffers_along(nested: list, d: int, wrap: bool) -> Any:
    """Return the buffers, with an index along a ragged dimension converted to rows.  `wrap`: -1 is the last."""
    x, index, *src = nested
    layout, its = get_layout(x), get_layout(index)
    if any(is_nested(s) and get_layout(s).structure != its.structure for s in src):
        return NotImplemented
    rest = [values(s) if is_nested(s) else s for s in src]
    if d not in layout.ragged:
        return [values(x), values(index), *rest] if layout.structure == its.structure else NotImplemented
    if is_nested(values(x)):
        return NotImplemented
    return [values(x), _row_indices_along(x, index, d - layout.ragged.start, wrap), *rest]


def _row_indices_along(x: Tensor, index: Tensor, column: int, wrap: bool) -> Tensor:
    """Return the rows of x at these indices along one ragged dimension, and at the index's position in the others."""
    its, rows = get_layout(index), values(index)

    numbers = [*ragged_slicing.coordinates(its.structure), its.structure.components()]
    *indices, component = [align_rows(as_tensor(n), rows, its.row) for n in numbers]
    indices[column] = rows
    return rows_at(component, *indices, structure=get_layout(x).structure, wrap=wrap)


@rule_for("index_add", "index_copy", "index_fill", "index_reduce")
def _index_slices(op: Op, args: tuple, params: dict) -> Any:
    """Apply an operator on slices along a dense dimension to the buffer."""
    x, index, *src = args
    if not is_nested(x) or is_nested(index):
        return NotImplemented
    layout = result_layout((x,))
    dim = layout.buffer_dim(canonical_dim(op.name, params["dim"], x.ndim))
    rows = [buffer_operand(s, layout) for s in src]
    if dim is None or any(r is NotImplemented for r in rows):
        return NotImplemented
    return wrap_buffer_like(layout, call(op, (values(remove_holes(x)), index, *rows), {**params, "dim": dim}))


# ---------------------------------------------------------------------------------------------- triangles, parts


@rule_for("tril", "triu")
def _triangle(op: Op, args: tuple, params: dict) -> Any:
    """Keep the elements on one side of a diagonal, by the indices of rows along the ragged dimensions."""
    x = remove_holes(args[0])
    layout = get_layout(x)
    last, before = x.ndim - 1, x.ndim - 2
    if before <= layout.lead or is_nested(values(x)):
        return NotImplemented
    if layout.buffer_dim(before) is not None and layout.buffer_dim(last) is not None and layout.axis == 0:
        return apply_to_buffer(op, x, params)
    indices = [_coordinate(x, layout, d) for d in (before, last)]
    side = ge if op.name == "tril" else le
    return wrap_buffer_like(layout, where(side(indices[0] + params["diagonal"], indices[1]), values(x), 0))


def _coordinate(x: Tensor, layout: Layout, dim: int) -> Tensor:
    """Return the index of each element along a dimension, in a shape that broadcasts with the buffer."""
    rows, at = values(x), layout.buffer_dim(dim)
    if at is None:
        at, numbers = layout.row, as_tensor(ragged_slicing.coordinates(layout.structure)[dim - layout.ragged.start])
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
    x = x if is_nested(x) or not d else nest_dense(x, 0, d, d + 1)
    ragged_layout = _layout_of(x)
    if ragged_layout is None or d not in ragged_layout.ragged:
        raise RuntimeError(
            f"narrow: dimension {d} of a tensor of shape {x.shape} is not one that components are parts of"
        )
    start, length = (concrete(n) if isinstance(n, Tensor) else n for n in (start, length))
    out = narrow_ragged("narrow", x, d, start, length)
    return out if is_nested(tensor) else to_layout(out, layout is strided)


def _layout_of(x: Tensor) -> Layout | None:
    return get_layout(x) if is_nested(x) else None


suggest_in_module(globals())
