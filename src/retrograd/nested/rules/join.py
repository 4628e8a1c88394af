"""Splitting, joining, repeating and reversing nested tensors."""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

from retrograd.backend import ragged_reshape
from retrograd.backend.ragged import Structure
from retrograd.core import Op, Tensor, call, registry
from retrograd.core.views import mark_several
from retrograd.nested.buffer import remove_holes, values, wrap_buffer, wrap_buffer_like
from retrograd.nested.buffer_layout import component_shapes, get_layout, is_nested
from retrograd.nested.components import components
from retrograd.nested.dispatch import rule_for
from retrograd.nested.ragged_dims import buffer_dims, gather_rows, make_ragged, nest_dense
from retrograd.nested.rules.pointwise import wrap_each_like
from retrograd.nested.rules.view import apply_to_buffer, dense, flatten_elements, has_nested_components
from retrograd.ops.create import as_tensor
from retrograd.ops.family import canonical_dim, canonical_dims
from retrograd.ops.split import chunk_sizes, equal_sizes, split_dim
from retrograd.ops.view import narrow, stack_by_cat

# --------------------------------------------------------------------------------------------------- cutting


@rule_for("unbind")
def _unbind(op: Op, args: tuple, params: dict) -> Any:
    """Return the components, or the slices along a dense dimension: views."""
    (x,), layout = args, get_layout(args[0])
    d = split_dim("unbind", x, params["dim"])
    if d == layout.lead:
        out = components(x)
        mark_several(out, "unbind")
        return out
    if d in layout.ragged:
        return call(op, (_dense_components("unbind", x, d),), {"dim": d})
    parts = call(op, (values(x),), {"dim": layout.buffer_dim(d)})
    axis, lead = layout.axis - (layout.lead < d < layout.ragged.start), layout.lead - (d < layout.lead)
    return tuple([wrap_buffer(part, layout.structure, axis, lead) for part in parts])


def _dense_components(name: str, x: Tensor, d: int) -> Tensor:
    """Return the components as a plain tensor; RuntimeError if they differ in size along dimension d."""
    out = dense(x)
    if out is None:
        raise RuntimeError(
            f"{name}: dimension {d} is ragged: the components of a nested tensor have different numbers of slices "
            f"along it; take unbind(0) first, or to_padded_tensor()"
        )
    return out


@rule_for("split", "split_with_sizes")
def _split(op: Op, args: tuple, params: dict) -> Any:
    """Split the batch, or the buffer along a dense dimension, into views that share one node."""
    (x,), layout = args, get_layout(args[0])
    d = split_dim(op.name, x, params["dim"])
    if d != layout.lead:
        return _run_along(op, x, d, params)
    bounds = _bounds(op.name, x, d, params)
    if layout.has_holes:
        return tuple([slice_components(x, first, last) for first, last in bounds])
    offsets = layout.structure.offsets
    lengths = [int(offsets[last] - offsets[first]) for first, last in bounds]
    parts = registry["split"](values(x), lengths, dim=layout.row)
    structures = [ragged_reshape.part(layout.structure, first, last) for first, last in bounds]
    return tuple([wrap_buffer(p, s, layout.axis, layout.lead) for p, s in zip(parts, structures, strict=True)])


def _run_along(op: Op, x: Tensor, d: int, params: dict) -> Any:
    """Apply an operator to the buffer along a dense dimension; NotImplemented for other dimensions."""
    layout = get_layout(x)
    dims = buffer_dims(layout, [d])
    if dims is None:
        return NotImplemented
    return wrap_each_like(layout, call(op, (values(x),), {**params, "dim": dims[0]}))


@rule_for("chunk")
def _chunk(op: Op, args: tuple, params: dict) -> Any:
    """Split into chunks, by `split`."""
    (x,) = args
    d = split_dim("chunk", x, params["dim"])
    if d in get_layout(x).ragged:
        return NotImplemented
    return registry["split"](x, chunk_sizes("chunk", x, params["chunks"], d), d)


@rule_for("unsafe_split", "unsafe_split_with_sizes", "unsafe_chunk", "tensor_split")
def _tensor_split(op: Op, args: tuple, params: dict) -> Any:
    """Split the batch, each part an independent view; or the buffer."""
    (x,), layout = args, get_layout(args[0])
    d = split_dim(op.name, x, params["dim"])
    if d != layout.lead:
        return _run_along(op, x, d, params)
    return tuple([slice_components(x, first, last) for first, last in _bounds(op.name, x, d, params)])


def _bounds(name: str, x: Tensor, d: int, params: dict) -> list[tuple[int, int]]:
    """Return the start and end of each part of a batch."""
    total, indices = len(get_layout(x).structure), params.get("indices_or_sections")
    sizes: Sequence[int]
    if isinstance(indices, int) and indices > 0:
        least, remainder = divmod(total, indices)
        sizes = [least + (i < remainder) for i in range(indices)]
    elif indices is not None and not isinstance(indices, int):
        indices = indices.tolist() if hasattr(indices, "tolist") else indices
        edges = [slice(a, b).indices(total) for a, b in zip((0, *indices), (*indices, None), strict=True)]
        return [(start, max(start, stop)) for start, stop, _ in edges]
    elif indices is not None:
        raise ValueError(f"{name}: expected at least 1 section, got {indices}")
    elif "chunks" in params:
        sizes = chunk_sizes(name, x, params["chunks"], d)
    else:
        sizes = _section_sizes(name, d, total, params)
    return list(pairwise(accumulate(sizes, initial=0)))


def _section_sizes(name: str, d: int, total: int, params: dict) -> Sequence[int]:
    """Return the sizes of the parts."""
    size = next((params[p] for p in ("split_size_or_sections", "split_sizes", "split_size") if p in params), None)
    if size is None:
        raise TypeError(f"{name}: expected a number of sections or the indices between them, got None")
    sizes: Sequence[int] = equal_sizes(name, total, size) if isinstance(size, int) else size
    if sum(sizes) != total or any(s < 0 for s in sizes):
        raise ValueError(f"{name}: sizes {list(sizes)} add up to {sum(sizes)}, but dimension {d} has {total}")
    return sizes


def slice_components(x: Tensor, first: int, last: int) -> Tensor:
    """Return the components from `first` to before `last`, as a view."""
    layout = get_layout(x)
    buffer, structure = values(x), ragged_reshape.part(layout.structure, first, last)
    if not layout.has_holes:
        start, stop = layout.structure.offsets[[first, last]].tolist()
        buffer = narrow(buffer, layout.row, start, stop - start)
    return wrap_buffer(buffer, structure, layout.axis, layout.lead)


# --------------------------------------------------------------------------------------------------- joining


@rule_for("cat")
def _cat(op: Op, args: tuple, params: dict) -> Any:
    """Concatenate components, or along a ragged dimension each component with its counterparts."""
    args = tuple([a for a in args if is_nested(a) or a.shape != (0,)])
    first = next(a for a in args if is_nested(a))
    layout, d = get_layout(first), canonical_dim("cat", params["dim"], first.ndim)
    _check_ranks(args, first)
    if not layout.num_ragged:
        plain = [values(remove_holes(a)) if is_nested(a) else a for a in args]
        return call(op, tuple(plain), {"dim": d})
    start, stop = _ragged_range(args, d)
    parts = [
        make_ragged("cat", remove_holes(a), start, stop) if is_nested(a) else nest_dense(a, layout.lead, start, stop)
        for a in args
    ]
    if d == layout.lead:
        return _cat_components(op, parts)
    return _cat_ragged(op, parts, d - start) if start <= d < stop else _cat_dense(op, parts, d)


def _check_ranks(args: tuple, first: Tensor) -> None:
    """Check that operands have as many dimensions, and the components along the same."""
    for i, a in enumerate(args):
        if a.ndim != first.ndim or (is_nested(a) and get_layout(a).lead != get_layout(first).lead):
            raise ValueError(f"cat: tensor {i} of shape {a.shape} does not fit a nested tensor of shape {first.shape}")


def _ragged_range(args: tuple, d: int) -> tuple[int, int]:
    """Return the range of dimensions that are ragged in some operand, or whose sizes differ."""
    nested = [get_layout(a) for a in args if is_nested(a)]
    start, stop = min(k.ragged.start for k in nested), max(k.ragged.stop for k in nested)
    if d != nested[0].lead or any(has_nested_components(get_layout(a), a) for a in args if is_nested(a)):
        return start, stop
    for e in range(d + 1, nested[0].ndim):
        sizes = [a.shape[e] for a in args]
        if e not in range(start, stop) and any(s != sizes[0] for s in sizes):
            start, stop = min(start, e), max(stop, e + 1)
    return start, stop


def _cat_components(op: Op, parts: list[Tensor]) -> Tensor:
    """Concatenate along the components."""
    layout = get_layout(parts[0])
    rows = call(op, tuple([values(p) for p in parts]), {"dim": layout.row})
    structure = ragged_reshape.concat_structures([get_layout(p).structure for p in parts])
    return wrap_buffer(rows, structure, layout.axis, layout.lead)


def _cat_dense(op: Op, parts: list[Tensor], d: int) -> Tensor:
    """Concatenate components of one structure along a dense dimension."""
    layout = get_layout(parts[0])
    _check_structures("cat", parts, None)
    rows = call(op, tuple([values(p) for p in parts]), {"dim": layout.buffer_dim(d)})
    return wrap_buffer_like(layout, rows)


def _cat_ragged(op: Op, parts: list[Tensor], column: int) -> Tensor:
    """Concatenate components along a ragged dimension."""
    layout = get_layout(parts[0])
    _check_structures("cat", parts, column)
    rows = call(op, tuple([values(p) for p in parts]), {"dim": layout.row})
    structure, indices = ragged_reshape.concat_components([get_layout(p).structure for p in parts], column)
    return wrap_buffer(
        registry["index_select"](rows, layout.row, as_tensor(indices)), structure, layout.axis, layout.lead
    )


def _check_structures(name: str, parts: Sequence[Tensor], except_column: int | None) -> None:
    """Raise ValueError that names the first component whose sizes differ, except along one ragged dimension."""
    expected = get_layout(parts[0]).structure
    for other in parts[1:]:
        other_structure = get_layout(other).structure
        if len(expected) != len(other_structure):
            raise ValueError(f"{name}: the nested tensors have {len(expected)} and {len(other_structure)} components")
        i = ragged_reshape.first_difference(expected, other_structure, except_column)
        if i is not None:
            a, b = component_shapes(parts[0])[i], component_shapes(other)[i]
            raise ValueError(f"{name}: the nested tensors differ in structure: component {i} has shapes {a} and {b}")


@rule_for("stack")
def _stack(op: Op, args: tuple, params: dict) -> Any:
    """Concatenate along a new dimension; dim=0 comes before the components.

    Nested tensors that are ragged along the same dimensions must have one structure.
    """
    first = next(a for a in args if is_nested(a))
    layout = get_layout(first)
    if len({a.ndim for a in args}) == 1 and all(is_nested(a) and get_layout(a).ragged == layout.ragged for a in args):
        _check_structures("stack", args, None)
    return stack_by_cat(args, params["dim"])


# ------------------------------------------------------------------------------------- repeating and turning


@rule_for("repeat", "tile")
def _repeat(op: Op, args: tuple, params: dict) -> Any:
    """Return a copy, with dense dimensions repeated in the buffer, others by concatenation."""
    (x,), layout = args, get_layout(args[0])
    sizes = params["repeats" if op.name == "repeat" else "dims"]
    sizes = (*(1,) * (x.ndim - len(sizes)), *sizes) if op.name == "tile" else sizes
    num_new = len(sizes) - x.ndim
    if num_new < 0:
        raise ValueError(f"{op.name}: {len(sizes)} sizes for {x.ndim} dimensions")
    if not layout.num_ragged:
        return registry["repeat"](values(remove_holes(x)), sizes)
    for d in (layout.lead, *layout.ragged):
        x = _repeat_along(x, d, sizes[num_new + d])
    layout, buffer = get_layout(x), values(x)
    own = [d for d in range(x.ndim) if layout.buffer_dim(d) is not None or d == layout.ragged.start]
    times = [1 if d == layout.ragged.start else sizes[num_new + d] for d in own]
    out = registry["repeat"](buffer, (*sizes[:num_new], *times))
    return wrap_buffer(out, layout.structure, layout.axis, layout.lead + num_new)


def _repeat_along(x: Tensor, d: int, times: int) -> Tensor:
    """Concatenate a nested tensor with itself `times` times along its components, or a ragged dimension."""
    if times == 1:
        return x
    if times > 1:
        return registry["cat"]([x] * times, dim=d)
    if times < 0:
        raise ValueError(f"repeat: sizes must not be negative, got {times}")
    layout = get_layout(x)
    if d == layout.lead:
        return slice_components(x, 0, 0)
    columns = [layout.structure.sizes[:, c] * (c != d - layout.ragged.start) for c in range(layout.num_ragged)]
    structure = ragged_reshape.structure_with(columns, layout.structure.packed)
    return wrap_buffer(narrow(values(x), layout.row, 0, 0), structure, layout.axis, layout.lead)


@rule_for("repeat_interleave")
def _repeat_interleave(op: Op, args: tuple, params: dict) -> Any:
    """Repeat slices along dense dimensions, rows, or components."""
    x, repeats = args
    if not is_nested(x) or is_nested(repeats):
        return NotImplemented
    if params["dim"] is None:
        return call(op, (flatten_elements(x), repeats), params)
    layout, d = get_layout(x), canonical_dim("repeat_interleave", params["dim"], x.ndim)
    if d == layout.lead:
        indices = call(op, (registry["arange"](0, len(layout.structure), 1), repeats), {**params, "dim": 0})
        return registry["index_select"](x, d, indices)
    dims = buffer_dims(layout, [d])
    if dims is not None:
        return wrap_buffer_like(layout, call(op, (values(x), repeats), {**params, "dim": dims[0]}))
    if layout.num_ragged > 1 or not isinstance(repeats, int) or repeats < 0:
        return NotImplemented
    x = remove_holes(x)
    structure = Structure(layout.structure.sizes * repeats)
    rows = call(op, (values(x), repeats), {**params, "dim": layout.row})
    return wrap_buffer(rows, structure, layout.axis, layout.lead)


@rule_for("flip")
def _flip(op: Op, args: tuple, params: dict) -> Any:
    """Reverse the buffer, the rows of the components, or the order of the components."""
    (x,), layout = args, get_layout(args[0])
    dims = canonical_dims("flip", params["dims"], x.ndim) if params["dims"] != () else ()
    dense = [d for d in dims if layout.buffer_dim(d) is not None]
    columns = [d - layout.ragged.start for d in dims if d in layout.ragged]
    x = remove_holes(x)
    if columns:
        x = gather_rows(x, get_layout(x).structure, lambda s: ragged_reshape.flip_rows(s, columns))
    if layout.lead in dims:
        x = registry["index_select"](x, layout.lead, registry["arange"](len(layout.structure) - 1, -1, -1))
    return apply_to_buffer(op, x, {"dims": tuple([layout.buffer_dim(d) for d in dense])}) if dense else x


@rule_for("roll")
def _roll(op: Op, args: tuple, params: dict) -> Any:
    """Shift the buffer, the rows of the components, or the order of the components."""
    (x,), layout, shifts = args, get_layout(args[0]), params["shifts"]
    if not params["dim"]:
        raise RuntimeError("roll: the elements of a nested tensor are not one row; name dimensions, or use flatten()")
    if len(shifts) != len(params["dim"]):
        raise ValueError(f"roll: {len(shifts)} shifts for {len(params['dim'])} dimensions")
    pairs = [(canonical_dim("roll", d, x.ndim), s) for d, s in zip(params["dim"], shifts, strict=True)]
    x, inside = remove_holes(x), [(layout.buffer_dim(d), s) for d, s in pairs if layout.buffer_dim(d) is not None]
    rows = [(d - layout.ragged.start, s) for d, s in pairs if d in layout.ragged]
    if rows:
        columns, by = zip(*rows, strict=True)
        x = gather_rows(x, get_layout(x).structure, lambda structure: ragged_reshape.roll_rows(structure, by, columns))
    for by_components in [s for d, s in pairs if d == layout.lead]:
        numbers = registry["arange"](0, len(layout.structure), 1)
        x = registry["index_select"](x, layout.lead, registry["roll"](numbers, by_components))
    if not inside:
        return x
    return apply_to_buffer(op, x, {"shifts": tuple([s for _, s in inside]), "dim": tuple([d for d, _ in inside])})
