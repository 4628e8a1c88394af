"""Splitting, joining, repeating and reversing nested tensors."""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

from retrograd.backend import ragged_reshape
from retrograd.backend.ragged import Structure
from retrograd.core import Op, Tensor, call, registry
from retrograd.core.views import mark_several
from retrograd.nested.buffer import like, over, packed, values
from retrograd.nested.buffer_layout import component_shapes, is_nested, layout
from retrograd.nested.components import components
from retrograd.nested.dispatch import composed
from retrograd.nested.ragged_dims import as_components, in_buffers, restructured, with_ragged
from retrograd.nested.rules.pointwise import like_each
from retrograd.nested.rules.view import dense, elements, is_of_sets, over_same
from retrograd.ops.create import as_tensor
from retrograd.ops.family import canonical_dim, canonical_dims
from retrograd.ops.split import chunk_sizes, equal_sizes, split_dim
from retrograd.ops.view import narrow

# --------------------------------------------------------------------------------------------------- cutting


@composed("unbind")
def _unbind(op: Op, args: tuple, params: dict) -> Any:
    """Return the components, or the slices along a dense dimension: views."""
    (x,), known = args, layout(args[0])
    d = split_dim("unbind", x, params["dim"])
    if d == known.lead:
        out = components(x)
        mark_several(out, "unbind")
        return out
    if d in known.ragged:
        return call(op, (_dense_components("unbind", x, d),), {"dim": d})
    parts = call(op, (values(x),), {"dim": known.in_buffer(d)})
    axis, lead = known.axis - (known.lead < d < known.ragged.start), known.lead - (d < known.lead)
    return tuple([over(part, known.structure, axis, lead) for part in parts])


def _dense_components(name: str, x: Tensor, d: int) -> Tensor:
    """Return the components as a plain tensor; RuntimeError if they differ in size along dimension d."""
    out = dense(x)
    if out is None:
        raise RuntimeError(
            f"{name}: dimension {d} is ragged: the components of a nested tensor have different numbers of slices "
            f"along it; take unbind(0) first, or to_padded_tensor()"
        )
    return out


@composed("split", "split_with_sizes")
def _split(op: Op, args: tuple, params: dict) -> Any:
    """Split the batch, or the buffer along a dense dimension, into views that share one node."""
    (x,), known = args, layout(args[0])
    d = split_dim(op.name, x, params["dim"])
    if d != known.lead:
        return _along(op, x, d, params)
    bounds = _bounds(op.name, x, d, params)
    if known.holes:
        return tuple([batch_part(x, first, last) for first, last in bounds])
    offsets = known.structure.offsets
    lengths = [int(offsets[last] - offsets[first]) for first, last in bounds]
    parts = registry["split"](values(x), lengths, dim=known.row)
    structures = [ragged_reshape.part(known.structure, first, last) for first, last in bounds]
    return tuple([over(p, s, known.axis, known.lead) for p, s in zip(parts, structures, strict=True)])


def _along(op: Op, x: Tensor, d: int, params: dict) -> Any:
    """Apply an operator to the buffer along a dense dimension; NotImplemented for other dimensions."""
    known = layout(x)
    dims = in_buffers(known, [d])
    if dims is None:
        return NotImplemented
    return like_each(known, call(op, (values(x),), {**params, "dim": dims[0]}))


@composed("chunk")
def _chunk(op: Op, args: tuple, params: dict) -> Any:
    """Split into chunks, by `split`."""
    (x,) = args
    d = split_dim("chunk", x, params["dim"])
    if d in layout(x).ragged:
        return NotImplemented
    return registry["split"](x, chunk_sizes("chunk", x, params["chunks"], d), d)


@composed("unsafe_split", "unsafe_split_with_sizes", "unsafe_chunk", "tensor_split")
def _tensor_split(op: Op, args: tuple, params: dict) -> Any:
    """Split the batch, each part an independent view; or the buffer."""
    (x,), known = args, layout(args[0])
    d = split_dim(op.name, x, params["dim"])
    if d != known.lead:
        return _along(op, x, d, params)
    return tuple([batch_part(x, first, last) for first, last in _bounds(op.name, x, d, params)])


def _bounds(name: str, x: Tensor, d: int, params: dict) -> list[tuple[int, int]]:
    """Return the start and end of each part of a batch."""
    total, places = len(layout(x).structure), params.get("indices_or_sections")
    sizes: Sequence[int]
    if isinstance(places, int) and places > 0:
        least, more = divmod(total, places)
        sizes = [least + (i < more) for i in range(places)]
    elif places is not None and not isinstance(places, int):
        places = places.tolist() if hasattr(places, "tolist") else places
        edges = [slice(a, b).indices(total) for a, b in zip((0, *places), (*places, None), strict=True)]
        return [(start, max(start, stop)) for start, stop, _ in edges]
    elif places is not None:
        raise ValueError(f"{name}: expected at least 1 section, got {places}")
    elif "chunks" in params:
        sizes = chunk_sizes(name, x, params["chunks"], d)
    else:
        sizes = _sizes(name, d, total, params)
    return list(pairwise(accumulate(sizes, initial=0)))


def _sizes(name: str, d: int, total: int, params: dict) -> Sequence[int]:
    """Return the sizes of the parts."""
    size = next((params[p] for p in ("split_size_or_sections", "split_sizes", "split_size") if p in params), None)
    if size is None:
        raise TypeError(f"{name}: expected a number of sections or the places between them, got None")
    sizes: Sequence[int] = equal_sizes(name, total, size) if isinstance(size, int) else size
    if sum(sizes) != total or any(s < 0 for s in sizes):
        raise ValueError(f"{name}: sizes {list(sizes)} add up to {sum(sizes)}, but dimension {d} has {total}")
    return sizes


def batch_part(x: Tensor, first: int, last: int) -> Tensor:
    """Return the components from `first` to before `last`, as a view."""
    known = layout(x)
    buffer, structure = values(x), ragged_reshape.part(known.structure, first, last)
    if not known.holes:
        start, stop = known.structure.offsets[[first, last]].tolist()
        buffer = narrow(buffer, known.row, start, stop - start)
    return over(buffer, structure, known.axis, known.lead)


# --------------------------------------------------------------------------------------------------- joining


@composed("cat")
def _cat(op: Op, args: tuple, params: dict) -> Any:
    """Concatenate components, or along a ragged dimension each component with its counterparts."""
    args = tuple([a for a in args if is_nested(a) or a.shape != (0,)])
    first = next(a for a in args if is_nested(a))
    known, d = layout(first), canonical_dim("cat", params["dim"], first.ndim)
    _check_ranks(args, first)
    if not known.several:
        plain = [values(packed(a)) if is_nested(a) else a for a in args]
        return call(op, tuple(plain), {"dim": d})
    start, stop = _block(args, d)
    parts = [
        with_ragged("cat", packed(a), start, stop) if is_nested(a) else as_components(a, known.lead, start, stop)
        for a in args
    ]
    if d == known.lead:
        return _cat_components(op, parts)
    return _cat_ragged(op, parts, d - start) if start <= d < stop else _cat_dense(op, parts, d)


def _check_ranks(args: tuple, first: Tensor) -> None:
    """Check that operands have as many dimensions, and the components along the same."""
    for i, a in enumerate(args):
        if a.ndim != first.ndim or (is_nested(a) and layout(a).lead != layout(first).lead):
            raise ValueError(f"cat: tensor {i} of shape {a.shape} does not fit a nested tensor of shape {first.shape}")


def _block(args: tuple, d: int) -> tuple[int, int]:
    """Return the range of dimensions that are ragged in some operand, or whose sizes differ."""
    nested = [layout(a) for a in args if is_nested(a)]
    start, stop = min(k.ragged.start for k in nested), max(k.ragged.stop for k in nested)
    if d != nested[0].lead or any(is_of_sets(layout(a), a) for a in args if is_nested(a)):
        return start, stop
    for e in range(d + 1, nested[0].ndim):
        sizes = [a.shape[e] for a in args]
        if e not in range(start, stop) and any(s != sizes[0] for s in sizes):
            start, stop = min(start, e), max(stop, e + 1)
    return start, stop


def _cat_components(op: Op, parts: list[Tensor]) -> Tensor:
    """Concatenate along the components."""
    known = layout(parts[0])
    rows = call(op, tuple([values(p) for p in parts]), {"dim": known.row})
    structure = ragged_reshape.concat_structures([layout(p).structure for p in parts])
    return over(rows, structure, known.axis, known.lead)


def _cat_dense(op: Op, parts: list[Tensor], d: int) -> Tensor:
    """Concatenate components of one structure along a dense dimension."""
    known = layout(parts[0])
    _check_structures("cat", parts, None)
    rows = call(op, tuple([values(p) for p in parts]), {"dim": known.in_buffer(d)})
    return like(known, rows)


def _cat_ragged(op: Op, parts: list[Tensor], column: int) -> Tensor:
    """Concatenate components along a ragged dimension."""
    known = layout(parts[0])
    _check_structures("cat", parts, column)
    rows = call(op, tuple([values(p) for p in parts]), {"dim": known.row})
    structure, places = ragged_reshape.concat_components([layout(p).structure for p in parts], column)
    return over(registry["index_select"](rows, known.row, as_tensor(places)), structure, known.axis, known.lead)


def _check_structures(name: str, parts: Sequence[Tensor], but: int | None) -> None:
    """Raise ValueError that names the first component whose sizes differ, except along one ragged dimension."""
    mine = layout(parts[0]).structure
    for other in parts[1:]:
        its = layout(other).structure
        if len(mine) != len(its):
            raise ValueError(f"{name}: the nested tensors have {len(mine)} and {len(its)} components")
        i = ragged_reshape.first_difference(mine, its, but)
        if i is not None:
            a, b = component_shapes(parts[0])[i], component_shapes(other)[i]
            raise ValueError(f"{name}: the nested tensors differ in structure: component {i} has shapes {a} and {b}")


@composed("stack")
def _stack(op: Op, args: tuple, params: dict) -> Any:
    """Check that nested tensors have one structure before they are stacked; dim=0 comes before the components."""
    first = next(a for a in args if is_nested(a))
    known = layout(first)
    if len({a.ndim for a in args}) == 1 and all(is_nested(a) and layout(a).ragged == known.ragged for a in args):
        _check_structures("stack", args, None)
    return NotImplemented


# ------------------------------------------------------------------------------------- repeating and turning


@composed("repeat", "tile")
def _repeat(op: Op, args: tuple, params: dict) -> Any:
    """Return a copy, with dense dimensions repeated in the buffer, others by concatenation."""
    (x,), known = args, layout(args[0])
    sizes = params["repeats" if op.name == "repeat" else "dims"]
    sizes = (*(1,) * (x.ndim - len(sizes)), *sizes) if op.name == "tile" else sizes
    more = len(sizes) - x.ndim
    if more < 0:
        raise ValueError(f"{op.name}: {len(sizes)} sizes for {x.ndim} dimensions")
    if not known.several:
        return registry["repeat"](values(packed(x)), sizes)
    for d in (known.lead, *known.ragged):
        x = _times(x, d, sizes[more + d])
    known, buffer = layout(x), values(x)
    own = [d for d in range(x.ndim) if known.in_buffer(d) is not None or d == known.ragged.start]
    times = [1 if d == known.ragged.start else sizes[more + d] for d in own]
    out = registry["repeat"](buffer, (*sizes[:more], *times))
    return over(out, known.structure, known.axis, known.lead + more)


def _times(x: Tensor, d: int, times: int) -> Tensor:
    """Concatenate a nested tensor with itself `times` times along its components, or a ragged dimension."""
    if times == 1:
        return x
    if times > 1:
        return registry["cat"]([x] * times, dim=d)
    if times < 0:
        raise ValueError(f"repeat: sizes must not be negative, got {times}")
    known = layout(x)
    if d == known.lead:
        return batch_part(x, 0, 0)
    columns = [known.structure.sizes[:, c] * (c != d - known.ragged.start) for c in range(known.several)]
    structure = ragged_reshape.structure_with(columns, known.structure.packed)
    return over(narrow(values(x), known.row, 0, 0), structure, known.axis, known.lead)


@composed("repeat_interleave")
def _repeat_interleave(op: Op, args: tuple, params: dict) -> Any:
    """Repeat slices along dense dimensions, rows, or components."""
    x, repeats = args
    if not is_nested(x) or is_nested(repeats):
        return NotImplemented
    if params["dim"] is None:
        return call(op, (elements(x), repeats), params)
    known, d = layout(x), canonical_dim("repeat_interleave", params["dim"], x.ndim)
    if d == known.lead:
        places = call(op, (registry["arange"](0, len(known.structure), 1), repeats), {**params, "dim": 0})
        return registry["index_select"](x, d, places)
    dims = in_buffers(known, [d])
    if dims is not None:
        return like(known, call(op, (values(x), repeats), {**params, "dim": dims[0]}))
    if known.several > 1 or not isinstance(repeats, int) or repeats < 0:
        return NotImplemented
    x = packed(x)
    structure = Structure(known.structure.sizes * repeats)
    rows = call(op, (values(x), repeats), {**params, "dim": known.row})
    return over(rows, structure, known.axis, known.lead)


@composed("flip")
def _flip(op: Op, args: tuple, params: dict) -> Any:
    """Reverse the buffer, the rows of the components, or the order of the components."""
    (x,), known = args, layout(args[0])
    dims = canonical_dims("flip", params["dims"], x.ndim) if params["dims"] != () else ()
    dense = [d for d in dims if known.in_buffer(d) is not None]
    columns = [d - known.ragged.start for d in dims if d in known.ragged]
    x = packed(x)
    if columns:
        x = restructured(x, layout(x).structure, lambda s: ragged_reshape.flip_rows(s, columns))
    if known.lead in dims:
        x = registry["index_select"](x, known.lead, registry["arange"](len(known.structure) - 1, -1, -1))
    return over_same(op, x, {"dims": tuple([known.in_buffer(d) for d in dense])}) if dense else x


@composed("roll")
def _roll(op: Op, args: tuple, params: dict) -> Any:
    """Shift the buffer, the rows of the components, or the order of the components."""
    (x,), known, shifts = args, layout(args[0]), params["shifts"]
    if not params["dim"]:
        raise RuntimeError("roll: the elements of a nested tensor are not one row; name dimensions, or use flatten()")
    if len(shifts) != len(params["dim"]):
        raise ValueError(f"roll: {len(shifts)} shifts for {len(params['dim'])} dimensions")
    pairs = [(canonical_dim("roll", d, x.ndim), s) for d, s in zip(params["dim"], shifts, strict=True)]
    x, inside = packed(x), [(known.in_buffer(d), s) for d, s in pairs if known.in_buffer(d) is not None]
    rows = [(d - known.ragged.start, s) for d, s in pairs if d in known.ragged]
    if rows:
        columns, by = zip(*rows, strict=True)
        x = restructured(x, layout(x).structure, lambda structure: ragged_reshape.roll_rows(structure, by, columns))
    for by_components in [s for d, s in pairs if d == known.lead]:
        numbers = registry["arange"](0, len(known.structure), 1)
        x = registry["index_select"](x, known.lead, registry["roll"](numbers, by_components))
    if not inside:
        return x
    return over_same(op, x, {"shifts": tuple([s for _, s in inside]), "dim": tuple([d for d, _ in inside])})
