"""Indexing of nested tensors: x[...] for integers, slices, None, the ellipsis, and plain index tensors.

Along the components and dense dimensions the buffer is indexed.  Slices along ragged dimensions give a view with
holes, if the rows of each component remain contiguous; otherwise rows are selected one by one.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from retrograd.backend import ragged_slicing
from retrograd.backend.ragged import Structure
from retrograd.core import Aval, Internal, Op, Tensor, call, op, registry
from retrograd.core.dtype import int64
from retrograd.nested.buffer import remove_holes, values, wrap_buffer, wrap_buffer_like
from retrograd.nested.buffer_layout import Layout, get_layout, is_nested
from retrograd.nested.dispatch import rule_for, with_final_errors
from retrograd.nested.rules.join import slice_components
from retrograd.nested.rules.segment_reduce import repeat_rows
from retrograd.nested.rules.view import apply_to_buffer
from retrograd.ops.create import as_tensor
from retrograd.ops.family import Pointwise, broadcast_shapes, canonical_dim
from retrograd.ops.gather import check_slice_index
from retrograd.ops.index import T, getitem
from retrograd.ops.methods import concrete
from retrograd.ops.view import broadcast_tensors, movedim, narrow, permute, reshape

FULL_SLICE = slice(None)


class Key(NamedTuple):
    """The parts of a key of integers, slices and None, by the dimensions that they index."""

    front: list
    component: Any
    before: list
    ragged: list
    after: list


def expand_ellipsis(spec: Sequence[Any], ndim: int) -> list:
    """Replace the ellipsis, or the missing end of a key, by full slices."""
    if any(isinstance(k, bool) for k in spec):
        raise IndexError("index: True and False are no index of nested tensors; use None")
    num_indexed = sum(k is not None and k is not Ellipsis for k in spec)
    if num_indexed > ndim:
        raise IndexError(f"index: too many indices: {num_indexed} for a nested tensor of {ndim} dimensions")
    positions = [i for i, k in enumerate(spec) if k is Ellipsis] or [len(spec)]
    if len(positions) > 1:
        raise IndexError("index: there can be one ellipsis only")
    at = positions[0]
    return [*spec[:at], *[FULL_SLICE] * (ndim - num_indexed), *spec[at + 1 :]]


def split_key(key: Sequence[Any], layout: Layout) -> Key:
    """Split a full key into its parts.  New dimensions between ragged ones are ragged too, all of size 1."""
    parts = Key([], None, [], [], [])
    component, num_consumed = None, 0
    for k in key:
        if k is not None and num_consumed == layout.lead:
            component = k
        elif num_consumed <= layout.lead:
            parts.front.append(k)
        elif layout.num_ragged and num_consumed < layout.ragged.start + (k is None):
            parts.before.append(k)
        elif not layout.num_ragged or num_consumed < layout.ragged.stop:
            parts.ragged.append(k)
        else:
            parts.after.append(k)
        num_consumed += k is not None
    return parts._replace(component=component)


# --------------------------------------------------------------------------------------------------- slices


@rule_for("slice")
@with_final_errors
def _slice(op: Op, args: tuple, params: dict) -> Any:
    """Index with a key of integers, slices and None."""
    return slice_nested(args[0], expand_ellipsis(params["spec"], args[0].ndim))


def slice_nested(x: Tensor, key: Sequence[Any]) -> Tensor:
    """Return x[key], for a full key of integers, slices and None."""
    layout = get_layout(x)
    parts = split_key(key, layout)
    if isinstance(parts.component, int):
        rest = (*parts.front, *parts.before, *parts.ragged, *parts.after)
        one = component(x, parts.component)
        return one if _is_full_key(rest) else registry["slice"](one, spec=rest)
    x = _select_components(x, parts.component)
    if not is_nested(values(x)):
        return _slice_ragged(_slice_dense(x, parts), parts.ragged)
    x = _slice_ragged(
        x, parts.ragged
    )  # first, since components that are left out may be too short for the rest of the key
    if not all(isinstance(k, int) for k in parts.ragged):
        return _slice_dense(x, parts)
    return registry["slice"](x, spec=(*parts.front, FULL_SLICE, *parts.before, *parts.after))


def _is_full_key(key: Sequence[Any]) -> bool:
    return all(isinstance(k, slice) and k == FULL_SLICE for k in key)


def component(x: Tensor, number: int) -> Tensor:
    """Return one component, as a view."""
    layout = get_layout(x)
    first, count, sizes = ragged_slicing.rows_of_component("index", layout.structure, number)
    rows = narrow(values(x), layout.row, first, count)
    if layout.num_ragged == 1:
        return rows
    return reshape(rows, (*rows.shape[: layout.row], *sizes, *rows.shape[layout.row + 1 :]))


def _select_components(x: Tensor, key: slice) -> Tensor:
    """Return the components selected by a slice, as a view."""
    layout, (first, last, step) = get_layout(x), key.indices(len(get_layout(x).structure))
    if (first, last, step) == (0, len(layout.structure), 1):
        return x
    if step == 1:
        return slice_components(x, first, max(first, last))
    if not layout.num_ragged:  # rows are components: a strided slice of them leaves no holes
        rows = registry["slice"](values(x), spec=(*(FULL_SLICE,) * layout.row, key))
        return wrap_buffer(rows, ragged_slicing.some_components(layout.structure, key).packed, layout.axis, layout.lead)
    return wrap_buffer(values(x), ragged_slicing.some_components(layout.structure, key), layout.axis, layout.lead)


def _slice_dense(x: Tensor, parts: Key) -> Tensor:
    """Apply the parts of a key for the dense dimensions."""
    if _is_full_key([*parts.front, *parts.before, *parts.after]):
        return x
    x = remove_holes(x) if is_nested(values(x)) else x
    rows = registry["slice"](values(x), spec=(*parts.front, *parts.before, FULL_SLICE, *parts.after))
    axis, lead = (sum(not isinstance(k, int) for k in part) for part in (parts.before, parts.front))
    return wrap_buffer(rows, get_layout(x).structure, axis, lead)


def _slice_ragged(x: Tensor, key: Sequence[Any]) -> Tensor:
    """Apply slices and integers along the ragged dimensions."""
    if _is_full_key(key):
        return x
    structure, column, windows = get_layout(x).structure, 0, []
    for k in key:
        windows.append(None if k is None else ragged_slicing.window("index", structure, column, k))
        column += k is not None
    return take_windows(x, windows)


def take_windows(x: Tensor, windows: Sequence[ragged_slicing.Window | None]) -> Tensor:
    """Return the parts of the components in a window along each ragged dimension; a view if possible."""
    layout = get_layout(x)
    structure, indices = ragged_slicing.apply_windows(layout.structure, windows)
    rows = values(x) if indices is None else registry["index_select"](values(x), layout.row, as_tensor(indices))
    if not structure.sizes.shape[1]:
        return movedim(rows, layout.row, layout.lead) if layout.axis else rows
    return wrap_buffer(rows, structure, layout.axis, layout.lead)


@rule_for("narrow")
@with_final_errors
def _narrow(op: Op, args: tuple, params: dict) -> Any:
    """Return a slice; an IndexError if an index is out of range."""
    (x,), layout = args, get_layout(args[0])
    d, start, length = canonical_dim("narrow", params["dim"], x.ndim), params["start"], params["length"]
    if d in layout.ragged:
        return narrow_ragged("narrow", x, d, start, length)
    if d != layout.lead:
        return apply_to_buffer(op, x, {**params, "dim": layout.buffer_dim(d)})
    count = len(layout.structure)
    first = start + count * (start < 0)
    if first < 0 or length < 0 or first + length > count:
        raise IndexError(f"narrow: components {start} to {start + length} of a nested tensor that has {count}")
    return _select_components(x, slice(first, first + length))


def narrow_ragged(name: str, x: Tensor, dim: int, start: Any, length: Any) -> Tensor:
    """Slice `length` indices from `start` on along a ragged dimension: integers, or an array with one per
    component."""
    layout = get_layout(x)
    windows = [ragged_slicing.window(name, layout.structure, c, FULL_SLICE) for c in range(layout.num_ragged)]
    column = dim - layout.ragged.start
    windows[column] = ragged_slicing.narrow_window(name, layout.structure, column, start, length)
    return take_windows(x, windows)


# ------------------------------------------------------------------------------------------------- indices


@op("nested.rows_at(Tensor component, Tensor[] indices, *, any structure, bool wrap=True) -> Tensor")
class rows_at(Internal, Pointwise, differentiable=False, promotion=None, in_place=False, in_host_memory=True):
    """The row of a buffer at an index along each ragged dimension, in a component; all broadcast."""

    def impl(xp, component, *indices, structure, wrap):
        return ragged_slicing.row_indices_at(component, indices, structure, wrap)

    def shape(component, *indices, structure, wrap):
        return Aval(broadcast_shapes("index", [a.shape for a in (component, *indices)]), int64)

    def samples(r):
        structure = Structure(as_tensor([[2], [0], [3]]).value)
        yield (as_tensor([0, 2, 2]), as_tensor([1, -1, 0])), {"structure": structure}
        yield (as_tensor([[0], [2]]), as_tensor([1, 0])), {"structure": structure, "wrap": False}


@rule_for("index_select")
@with_final_errors
def _index_select(op: Op, args: tuple, params: dict) -> Any:
    """Select components, slices of the buffer, or rows."""
    x, index = args
    if not is_nested(x) or is_nested(index):
        return NotImplemented
    d, layout = check_slice_index("index_select", x, index, params["dim"]), get_layout(x)
    if layout.buffer_dim(d) is not None:
        return wrap_buffer_like(layout, call(op, (values(x), index), {"dim": layout.buffer_dim(d)}))
    ids = {d: index if index.ndim else reshape(index, (1,))}
    return select_elements(x, ids, False, wrap=False)


def index_nested(x: Tensor, ids: Sequence[Tensor], spec: Sequence[Any]) -> Any:
    """Return x[spec] with plain index tensors in the slots: apply the slices first, then the indices."""
    key, layout = expand_ellipsis(spec, x.ndim), get_layout(x)
    at = _position_of(key, layout.lead)
    if isinstance(key[at], int):
        one = registry["unsqueeze"](component(x, key[at]), layout.lead)
        return getitem(one, ids, spec=(*key[:at], 0, *key[at + 1 :]))
    if not _is_full_key([k for k in key if k is not T and not isinstance(k, int)]):
        x = slice_nested(x, [FULL_SLICE if k is T or isinstance(k, int) else k for k in key])
    rest = iter(ids)
    indices = {d: next(rest) if k is T else as_tensor(k) for d, k in enumerate(key) if k is T or isinstance(k, int)}
    return select_elements(x, indices, are_not_adjacent(list(indices)))


def _position_of(key: Sequence[Any], dim: int) -> int:
    """Return the position in a full key of a dimension's entry."""
    return [i for i, k in enumerate(key) if k is not None][dim]


def are_not_adjacent(dims: list[int]) -> bool:
    """Whether the dimensions are not adjacent; the index dimensions then come first in the result."""
    return dims != list(range(dims[0], dims[0] + len(dims)))


def select_elements(x: Tensor, ids: dict[int, Tensor], first: bool, wrap: bool = True) -> Any:
    """Select elements by broadcast indices along some dimensions; `first`: their dimensions come first in the
    result."""
    layout = get_layout(x)
    along = [d for d in layout.ragged if d in ids]
    if layout.lead not in ids and not along:
        return _index_dense(x, ids, first)
    ids = dict(zip(ids, tuple(broadcast_tensors(*ids.values())), strict=True)) if len(ids) > 1 else ids
    if layout.num_ragged and len(along) == layout.num_ragged:
        return _index_rows(x, ids, first, wrap)
    return NotImplemented if along else _index_components(x, ids, first, wrap)


def _index_dense(x: Tensor, ids: dict[int, Tensor], first: bool) -> Tensor:
    """Select by indices along dense dimensions, which are dimensions of the buffer too."""
    x = remove_holes(x) if is_nested(values(x)) else x
    layout, dims = get_layout(x), sorted(ids)
    buffer_indices = {layout.buffer_dim(d): i for d, i in ids.items()}
    rows, rank = _index_buffer(values(x), buffer_indices), max(i.ndim for i in ids.values())
    if first:
        at = _index_position(buffer_indices)
        rows = movedim(rows, tuple(range(at, at + rank)), tuple(range(rank))) if at and rank else rows
    lead = layout.lead - sum(d < layout.lead for d in dims)
    axis = layout.axis - sum(layout.lead < d < layout.ragged.start for d in dims)
    lead += rank if first or dims[0] < layout.lead else 0
    axis += rank if not first and layout.lead < dims[0] < layout.ragged.start else 0
    return wrap_buffer(rows, layout.structure, axis, lead)


def _index_buffer(buffer: Tensor, ids: dict[Any, Tensor]) -> Tensor:
    """Select elements of a buffer by indices along some of its dimensions."""
    spec = tuple([T if d in ids else FULL_SLICE for d in range(max(ids) + 1)])
    return getitem(buffer, [ids[d] for d in sorted(ids)], spec=spec)


def _index_position(ids: dict[Any, Tensor]) -> int:
    """Return the dimension of the result at which the index dimensions start."""
    dims = sorted(ids)
    return 0 if are_not_adjacent(dims) else dims[0]


def _index_rows(x: Tensor, ids: dict[int, Tensor], first: bool, wrap: bool) -> Tensor:
    """Select by indices along all ragged dimensions, and perhaps others, of all or of selected components."""
    layout, rank = get_layout(x), max(i.ndim for i in ids.values())
    labels: list[Any] = [("index", k) for k in range(rank)]
    number = ids.get(layout.lead)
    if number is None:
        labels.insert(0, layout.lead)
        count = len(layout.structure)
        number = as_tensor(ragged_slicing.component_numbers("index", range(count), count, False))
        number = reshape(number, (count, *(1,) * rank))
    rows = rows_at(number, *[ids[d] for d in layout.ragged], structure=layout.structure, wrap=wrap)
    return _gather_in_order(x, ids, rows, labels, first)


def _gather_in_order(x: Tensor, ids: dict[int, Tensor], rows: Tensor, labels: list, first: bool) -> Any:
    """Select these rows of the buffer, and indices along dense dimensions, and put the dimensions in x's order.

    The labels describe the dimensions of `rows`: index dimensions, components, ...
    """
    layout = get_layout(x)
    buffer_indices = {layout.buffer_dim(d): i for d, i in ids.items() if layout.buffer_dim(d) is not None}
    buffer_indices[layout.row] = rows
    out, at = _index_buffer(values(x), buffer_indices), _index_position(buffer_indices)
    dense = [d for d in range(x.ndim) if layout.buffer_dim(d) is not None and d not in ids]
    index_labels = [label for label in labels if isinstance(label, tuple)]
    others: list[Any] = sorted([*dense, *[label for label in labels if not isinstance(label, tuple)]])
    insert_at = 0 if first else sum(d < min(ids) for d in others)
    current, target = [*dense[:at], *labels, *dense[at:]], [*others[:insert_at], *index_labels, *others[insert_at:]]
    order = tuple([current.index(label) for label in target])
    return out if order == tuple(range(len(order))) else permute(out, order)


def _index_components(x: Tensor, ids: dict[int, Tensor], first: bool, wrap: bool) -> Any:
    """Select components by index, each perhaps at its own index along dense dimensions."""
    layout, index = get_layout(x), ids[get_layout(x).lead]
    if index.ndim > 1:
        raise RuntimeError(
            f"index: components of a nested tensor are named by one number, or by a 1-d tensor, got shape "
            f"{index.shape}; flatten it"
        )
    numbers = ragged_slicing.component_numbers("index", concrete(index), len(layout.structure), wrap)
    if not index.ndim:
        one = registry["unsqueeze"](component(x, numbers.item()), layout.lead)
        key = [0 if d == layout.lead else T if d in ids else FULL_SLICE for d in range(x.ndim)]
        return getitem(one, [ids[d] for d in sorted(ids) if d != layout.lead], spec=tuple(key))
    structure = ragged_slicing.some_components(layout.structure, numbers)
    return _gather_components(x, ids, structure, first)


def _gather_components(x: Tensor, ids: dict[int, Tensor], structure: Structure, first: bool) -> Tensor:
    """Return all rows of some components; indices along dense dimensions are one per component."""
    layout, rows = get_layout(x), as_tensor(structure.row_indices())
    if len(ids) == 1:
        return wrap_buffer(
            registry["index_select"](values(x), layout.row, rows), structure.packed, layout.axis, layout.lead
        )
    repeated = {d: repeat_rows(i, structure=structure.packed, row=0) for d, i in ids.items() if d != layout.lead}
    buffer_indices = {layout.buffer_dim(d): i for d, i in repeated.items()} | {layout.row: rows}
    dense = [d for d in range(x.ndim) if layout.buffer_dim(d) is not None and d not in ids]
    out, at = _index_buffer(values(x), buffer_indices), _index_position(buffer_indices)
    insert_at, row = 0 if first else sum(d < min(ids) for d in dense), sum(d < layout.ragged.start for d in dense)
    out = movedim(out, at, row) if at != row else out
    return wrap_buffer(out, structure.packed, row - insert_at, insert_at)
