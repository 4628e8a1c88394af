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
from retrograd.nested.buffer import like, over, packed, values
from retrograd.nested.buffer_layout import Layout, is_nested, layout
from retrograd.nested.dispatch import composed, final
from retrograd.nested.rules.join import batch_part
from retrograd.nested.rules.segment_reduce import repeat_rows
from retrograd.nested.rules.view import over_same
from retrograd.ops.create import as_tensor
from retrograd.ops.family import Pointwise, broadcast_shapes, canonical_dim
from retrograd.ops.gather import check_slice_index
from retrograd.ops.index import T, getitem
from retrograd.ops.methods import concrete
from retrograd.ops.view import broadcast_tensors, movedim, narrow, permute, reshape

WHOLE = slice(None)


class Key(NamedTuple):
    """The parts of a key of integers, slices and None, by the dimensions that they index."""

    front: list
    component: Any
    before: list
    ragged: list
    after: list


def expanded(spec: Sequence[Any], ndim: int) -> list:
    """Replace the ellipsis, or the missing end of a key, by full slices."""
    if any(isinstance(k, bool) for k in spec):
        raise IndexError("index: True and False are no index of nested tensors; use None")
    taken = sum(k is not None and k is not Ellipsis for k in spec)
    if taken > ndim:
        raise IndexError(f"index: too many indices: {taken} for a nested tensor of {ndim} dimensions")
    places = [i for i, k in enumerate(spec) if k is Ellipsis] or [len(spec)]
    if len(places) > 1:
        raise IndexError("index: there can be one ellipsis only")
    at = places[0]
    return [*spec[:at], *[WHOLE] * (ndim - taken), *spec[at + 1 :]]


def parts_of(key: Sequence[Any], known: Layout) -> Key:
    """Split a full key into its parts.  New dimensions between ragged ones are ragged too, all of size 1."""
    parts = Key([], None, [], [], [])
    component, seen = None, 0
    for k in key:
        if k is not None and seen == known.lead:
            component = k
        elif seen <= known.lead:
            parts.front.append(k)
        elif known.several and seen < known.ragged.start + (k is None):
            parts.before.append(k)
        elif not known.several or seen < known.ragged.stop:
            parts.ragged.append(k)
        else:
            parts.after.append(k)
        seen += k is not None
    return parts._replace(component=component)


# --------------------------------------------------------------------------------------------------- slices


@composed("slice")
@final
def _slice(op: Op, args: tuple, params: dict) -> Any:
    """Index with a key of integers, slices and None."""
    return sliced(args[0], expanded(params["spec"], args[0].ndim))


def sliced(x: Tensor, key: Sequence[Any]) -> Tensor:
    """Return x[key], for a full key of integers, slices and None."""
    known = layout(x)
    parts = parts_of(key, known)
    if isinstance(parts.component, int):
        rest = (*parts.front, *parts.before, *parts.ragged, *parts.after)
        one = component(x, parts.component)
        return one if _all_whole(rest) else registry["slice"](one, spec=rest)
    x = _select_components(x, parts.component)
    if not is_nested(values(x)):
        return _windows(_dense(x, parts), parts.ragged)
    x = _windows(x, parts.ragged)  # first, since components that are left out may be too short for the rest of the key
    if not all(isinstance(k, int) for k in parts.ragged):
        return _dense(x, parts)
    return registry["slice"](x, spec=(*parts.front, WHOLE, *parts.before, *parts.after))


def _all_whole(key: Sequence[Any]) -> bool:
    return all(isinstance(k, slice) and k == WHOLE for k in key)


def component(x: Tensor, number: int) -> Tensor:
    """Return one component, as a view."""
    known = layout(x)
    first, count, sizes = ragged_slicing.rows_of_component("index", known.structure, number)
    rows = narrow(values(x), known.row, first, count)
    if known.several == 1:
        return rows
    return reshape(rows, (*rows.shape[: known.row], *sizes, *rows.shape[known.row + 1 :]))


def _select_components(x: Tensor, key: slice) -> Tensor:
    """Return the components selected by a slice, as a view."""
    known, (first, last, step) = layout(x), key.indices(len(layout(x).structure))
    if (first, last, step) == (0, len(known.structure), 1):
        return x
    if step == 1:
        return batch_part(x, first, max(first, last))
    if not known.several:  # rows are components: a strided slice of them leaves no holes
        rows = registry["slice"](values(x), spec=(*(WHOLE,) * known.row, key))
        return over(rows, ragged_slicing.some_components(known.structure, key).packed, known.axis, known.lead)
    return over(values(x), ragged_slicing.some_components(known.structure, key), known.axis, known.lead)


def _dense(x: Tensor, parts: Key) -> Tensor:
    """Apply the parts of a key for the dense dimensions."""
    if _all_whole([*parts.front, *parts.before, *parts.after]):
        return x
    x = packed(x) if is_nested(values(x)) else x
    rows = registry["slice"](values(x), spec=(*parts.front, *parts.before, WHOLE, *parts.after))
    axis, lead = (sum(not isinstance(k, int) for k in part) for part in (parts.before, parts.front))
    return over(rows, layout(x).structure, axis, lead)


def _windows(x: Tensor, key: Sequence[Any]) -> Tensor:
    """Apply slices and integers along the ragged dimensions."""
    if _all_whole(key):
        return x
    structure, column, windows = layout(x).structure, 0, []
    for k in key:
        windows.append(None if k is None else ragged_slicing.window("index", structure, column, k))
        column += k is not None
    return windowed(x, windows)


def windowed(x: Tensor, windows: Sequence[ragged_slicing.Window | None]) -> Tensor:
    """Return the parts of the components in a window along each ragged dimension; a view if possible."""
    known = layout(x)
    structure, places = ragged_slicing.apply_windows(known.structure, windows)
    rows = values(x) if places is None else registry["index_select"](values(x), known.row, as_tensor(places))
    if not structure.sizes.shape[1]:
        return movedim(rows, known.row, known.lead) if known.axis else rows
    return over(rows, structure, known.axis, known.lead)


@composed("narrow")
@final
def _narrow(op: Op, args: tuple, params: dict) -> Any:
    """Return a slice; an IndexError if an index is out of range."""
    (x,), known = args, layout(args[0])
    d, start, length = canonical_dim("narrow", params["dim"], x.ndim), params["start"], params["length"]
    if d in known.ragged:
        return narrowed("narrow", x, d, start, length)
    if d != known.lead:
        return over_same(op, x, {**params, "dim": known.in_buffer(d)})
    count = len(known.structure)
    first = start + count * (start < 0)
    if first < 0 or length < 0 or first + length > count:
        raise IndexError(f"narrow: components {start} to {start + length} of a nested tensor that has {count}")
    return _select_components(x, slice(first, first + length))


def narrowed(name: str, x: Tensor, dim: int, start: Any, length: Any) -> Tensor:
    """Slice `length` indices from `start` on along a ragged dimension: integers, or an array with one per
    component."""
    known = layout(x)
    windows = [ragged_slicing.window(name, known.structure, c, WHOLE) for c in range(known.several)]
    column = dim - known.ragged.start
    windows[column] = ragged_slicing.narrow_window(name, known.structure, column, start, length)
    return windowed(x, windows)


# -------------------------------------------------------------------------------------------------- places


@op("nested.rows_at(Tensor component, Tensor[] places, *, any structure, bool wrap=True) -> Tensor")
class rows_at(Internal, Pointwise, differentiable=False, promotion=None, in_place=False):
    """The row of a buffer at an index along each ragged dimension, in a component; all broadcast."""

    def impl(xp, component, *places, structure, wrap):
        return ragged_slicing.row_indices_at(component, places, structure, wrap)

    def shape(component, *places, structure, wrap):
        return Aval(broadcast_shapes("index", [a.shape for a in (component, *places)]), int64)

    def samples(r):
        structure = Structure(as_tensor([[2], [0], [3]]).value)
        yield (as_tensor([0, 2, 2]), as_tensor([1, -1, 0])), {"structure": structure}
        yield (as_tensor([[0], [2]]), as_tensor([1, 0])), {"structure": structure, "wrap": False}


@composed("index_select")
@final
def _index_select(op: Op, args: tuple, params: dict) -> Any:
    """Select components, slices of the buffer, or rows."""
    x, index = args
    if not is_nested(x) or is_nested(index):
        return NotImplemented
    d, known = check_slice_index("index_select", x, index, params["dim"]), layout(x)
    if known.in_buffer(d) is not None:
        return like(known, call(op, (values(x), index), {"dim": known.in_buffer(d)}))
    ids = {d: index if index.ndim else reshape(index, (1,))}
    return select_elements(x, ids, False, wrap=False)


def indexed(x: Tensor, ids: Sequence[Tensor], spec: Sequence[Any]) -> Any:
    """Return x[spec] with plain index tensors in the slots: apply the slices first, then the indices."""
    key, known = expanded(spec, x.ndim), layout(x)
    at = _place_of(key, known.lead)
    if isinstance(key[at], int):
        one = registry["unsqueeze"](component(x, key[at]), known.lead)
        return getitem(one, ids, spec=(*key[:at], 0, *key[at + 1 :]))
    if not _all_whole([k for k in key if k is not T and not isinstance(k, int)]):
        x = sliced(x, [WHOLE if k is T or isinstance(k, int) else k for k in key])
    rest = iter(ids)
    places = {d: next(rest) if k is T else as_tensor(k) for d, k in enumerate(key) if k is T or isinstance(k, int)}
    return select_elements(x, places, are_not_adjacent(list(places)))


def _place_of(key: Sequence[Any], dim: int) -> int:
    """Return the position in a full key of a dimension's entry."""
    return [i for i, k in enumerate(key) if k is not None][dim]


def are_not_adjacent(dims: list[int]) -> bool:
    """Whether the dimensions are not adjacent; the index dimensions then come first in the result."""
    return dims != list(range(dims[0], dims[0] + len(dims)))


def select_elements(x: Tensor, ids: dict[int, Tensor], first: bool, wrap: bool = True) -> Any:
    """Select elements by broadcast indices along some dimensions; `first`: their dimensions come first in the
    result."""
    known = layout(x)
    along = [d for d in known.ragged if d in ids]
    if known.lead not in ids and not along:
        return _in_buffer(x, ids, first)
    ids = dict(zip(ids, tuple(broadcast_tensors(*ids.values())), strict=True)) if len(ids) > 1 else ids
    if known.several and len(along) == known.several:
        return _single_rows(x, ids, first, wrap)
    return NotImplemented if along else _components(x, ids, first, wrap)


def _in_buffer(x: Tensor, ids: dict[int, Tensor], first: bool) -> Tensor:
    """Select by indices along dense dimensions, which are dimensions of the buffer too."""
    x = packed(x) if is_nested(values(x)) else x
    known, dims = layout(x), sorted(ids)
    inside = {known.in_buffer(d): i for d, i in ids.items()}
    rows, rank = _picked(values(x), inside), max(i.ndim for i in ids.values())
    if first:
        at = _index_position(inside)
        rows = movedim(rows, tuple(range(at, at + rank)), tuple(range(rank))) if at and rank else rows
    lead = known.lead - sum(d < known.lead for d in dims)
    axis = known.axis - sum(known.lead < d < known.ragged.start for d in dims)
    lead += rank if first or dims[0] < known.lead else 0
    axis += rank if not first and known.lead < dims[0] < known.ragged.start else 0
    return over(rows, known.structure, axis, lead)


def _picked(buffer: Tensor, ids: dict[Any, Tensor]) -> Tensor:
    """Select elements of a buffer by indices along some of its dimensions."""
    spec = tuple([T if d in ids else WHOLE for d in range(max(ids) + 1)])
    return getitem(buffer, [ids[d] for d in sorted(ids)], spec=spec)


def _index_position(ids: dict[Any, Tensor]) -> int:
    """Return the dimension of the result at which the index dimensions start."""
    dims = sorted(ids)
    return 0 if are_not_adjacent(dims) else dims[0]


def _single_rows(x: Tensor, ids: dict[int, Tensor], first: bool, wrap: bool) -> Tensor:
    """Select by indices along all ragged dimensions, and perhaps others, of all or of selected components."""
    known, rank = layout(x), max(i.ndim for i in ids.values())
    labels: list[Any] = [("place", k) for k in range(rank)]
    number = ids.get(known.lead)
    if number is None:
        labels.insert(0, known.lead)
        count = len(known.structure)
        number = as_tensor(ragged_slicing.component_numbers("index", range(count), count, False))
        number = reshape(number, (count, *(1,) * rank))
    rows = rows_at(number, *[ids[d] for d in known.ragged], structure=known.structure, wrap=wrap)
    return _select_in_order(x, ids, rows, labels, first)


def _select_in_order(x: Tensor, ids: dict[int, Tensor], rows: Tensor, labels: list, first: bool) -> Any:
    """Select these rows of the buffer, and indices along dense dimensions, and put the dimensions in x's order.

    The labels describe the dimensions of `rows`: index dimensions, components, ...
    """
    known = layout(x)
    inside = {known.in_buffer(d): i for d, i in ids.items() if known.in_buffer(d) is not None}
    inside[known.row] = rows
    out, at = _picked(values(x), inside), _index_position(inside)
    dense = [d for d in range(x.ndim) if known.in_buffer(d) is not None and d not in ids]
    places = [label for label in labels if isinstance(label, tuple)]
    others: list[Any] = sorted([*dense, *[label for label in labels if not isinstance(label, tuple)]])
    put = 0 if first else sum(d < min(ids) for d in others)
    mine, wanted = [*dense[:at], *labels, *dense[at:]], [*others[:put], *places, *others[put:]]
    order = tuple([mine.index(label) for label in wanted])
    return out if order == tuple(range(len(order))) else permute(out, order)


def _components(x: Tensor, ids: dict[int, Tensor], first: bool, wrap: bool) -> Any:
    """Select components by index, each perhaps at its own index along dense dimensions."""
    known, index = layout(x), ids[layout(x).lead]
    if index.ndim > 1:
        raise RuntimeError(
            f"index: components of a nested tensor are named by one number, or by a 1-d tensor, got shape "
            f"{index.shape}; flatten it"
        )
    numbers = ragged_slicing.component_numbers("index", concrete(index), len(known.structure), wrap)
    if not index.ndim:
        one = registry["unsqueeze"](component(x, numbers.item()), known.lead)
        key = [0 if d == known.lead else T if d in ids else WHOLE for d in range(x.ndim)]
        return getitem(one, [ids[d] for d in sorted(ids) if d != known.lead], spec=tuple(key))
    structure = ragged_slicing.some_components(known.structure, numbers)
    return _all_rows(x, ids, structure, first)


def _all_rows(x: Tensor, ids: dict[int, Tensor], structure: Structure, first: bool) -> Tensor:
    """Return all rows of some components; indices along dense dimensions are one per component."""
    known, rows = layout(x), as_tensor(structure.row_indices())
    if len(ids) == 1:
        return over(registry["index_select"](values(x), known.row, rows), structure.packed, known.axis, known.lead)
    spread = {d: repeat_rows(i, structure=structure.packed, row=0) for d, i in ids.items() if d != known.lead}
    inside = {known.in_buffer(d): i for d, i in spread.items()} | {known.row: rows}
    dense = [d for d in range(x.ndim) if known.in_buffer(d) is not None and d not in ids]
    out, at = _picked(values(x), inside), _index_position(inside)
    put, row = 0 if first else sum(d < min(ids) for d in dense), sum(d < known.ragged.start for d in dense)
    out = movedim(out, at, row) if at != row else out
    return over(out, structure.packed, row - put, put)
