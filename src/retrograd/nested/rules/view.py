"""Reshape nested tensors: reshape their buffers, and adapt the structures.

If the order of elements and rows does not change, the result is a view.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from retrograd.backend import ragged_reshape
from retrograd.backend.ragged import RaggedSize
from retrograd.core import Op, Tensor, call, registry
from retrograd.core.aval import symbolic
from retrograd.core.views import is_view_of
from retrograd.nested.buffer import remove_holes, values, wrap_buffer, wrap_buffer_like
from retrograd.nested.buffer_layout import Layout, component_shapes, get_layout, is_nested
from retrograd.nested.dispatch import rule_for
from retrograd.nested.ragged_dims import buffer_dims, gather_rows, make_ragged, permute_ragged
from retrograd.nested.rules.pointwise import buffer_operand
from retrograd.ops.create import as_tensor
from retrograd.ops.family import canonical_dim, canonical_dims
from retrograd.ops.view import cat, expanded_shape, permutation, permute, reshape

# -------------------------------------------------------------------------------------------- other sizes


@rule_for("reshape")
def _reshape(op: Op, args: tuple, params: dict) -> Any:
    """Reshape the elements of each component, or of all components if the shape does not separate them."""
    return reshape_nested("reshape", args[0], params["shape"])


@rule_for("view")
def _view(op: Op, args: tuple, params: dict) -> Any:
    """Reshape without a copy."""
    (x,) = args
    out = reshape_nested("view", x, params["shape"])
    if x.level is None and not is_view_of(out.value, x.value):
        raise RuntimeError(
            f"view: the memory of this nested tensor, of shape {x.shape}, can't be shown in shape {out.shape}. Use "
            f".reshape(...) instead."
        )
    return out


def reshape_nested(name: str, x: Tensor, shape: Sequence[Any], at: int | None = None) -> Tensor:
    """Reshape a nested tensor; dimension `at` are the components; None: a dimension with as many."""
    layout = get_layout(x)
    if not layout.num_ragged:
        return reshape(values(remove_holes(x)), shape)
    for place in [layout.lead, *range(len(shape))] if at is None else [at]:
        found = _match_shape(x, layout, shape, place)
        if found is not None:
            return _reshape_components(x, layout, *found)
    return _reshape_across(name, x, layout, tuple(shape))


def _match_shape(x: Tensor, layout: Layout, shape: Sequence[Any], at: int) -> tuple | None:
    """Return the sizes before the components and those of a component, if `shape` fits; else None."""
    count = len(layout.structure)
    if at >= len(shape) or isinstance(shape[at], RaggedSize) or shape[at] not in (count, -1):
        return None
    front = ragged_reshape.resolve_sizes(x.shape[: layout.lead], shape[:at])
    current, sizes_after = x.shape[layout.lead + 1 :], shape[at + 1 :]
    if front is None or not all(map(ragged_reshape.is_number, front)):
        return None
    if has_nested_components(layout, x):
        return _outer_sizes(x, layout, front, list(sizes_after))
    sizes = ragged_reshape.resolve_sizes(current, sizes_after)
    return None if sizes is None else (front, sizes)


def has_nested_components(layout: Layout, x: Tensor) -> bool:
    """Whether components are nested tensors themselves."""
    return any(isinstance(s, RaggedSize) for s in x.shape[layout.ragged.stop :])


def _outer_sizes(x: Tensor, layout: Layout, front: list, sizes_after: list) -> tuple | None:
    """Return the sizes around the ragged ones of outer nested components, which must not change."""
    ragged = x.shape[layout.ragged.start : layout.ragged.stop]
    for k in range(len(sizes_after)):
        same = [s == r or (s == -1 and k == layout.axis) for s, r in zip(sizes_after[k:], ragged, strict=False)]
        if len(same) == layout.num_ragged and all(same):
            return front, sizes_after[:k], sizes_after[k + layout.num_ragged :]
    return None


class _ReshapePlan(NamedTuple):
    """A change of the components' sizes to (*before, *first, *ragged, *behind, *after).

    `before` and `after` replace as many old sizes before `start` and from `stop` on independently; the sizes
    between become (*first, *ragged, *behind).
    """

    start: int
    stop: int
    before: list
    first: list
    ragged: list
    last: list
    after: list

    @property
    def only_ragged(self) -> bool:
        """Whether ragged sizes become ragged sizes only."""
        return not self.first and not self.last


def _plan_reshape(layout: Layout, old: list, new: list) -> _ReshapePlan:
    """Return how components of sizes `old` get the sizes `new`."""
    first, last = layout.axis, layout.axis + layout.num_ragged
    a, k = ragged_reshape.match_leading_sizes(old[:first], new)
    b, n = ragged_reshape.match_leading_sizes(old[last:][::-1], new[k:][::-1])
    if k + n == len(new):  # a dimension must be ragged
        a, k, b, n = 0, 0, 0, 0
    middle, after = new[k : len(new) - n], new[len(new) - n :]
    ragged = [i for i, size in enumerate(middle) if not ragged_reshape.is_number(size)] or ([0] if middle else [0, -1])
    start, stop = ragged[0], ragged[-1] + 1
    return _ReshapePlan(a, len(old) - b, new[:k], middle[:start], middle[start:stop], middle[stop:], after)


def _reshape_components(x: Tensor, layout: Layout, front: list, sizes: list, after: list | None = None) -> Tensor:
    """Reshape the components to `sizes`, with others in front; for nested components, `after` gives the sizes
    behind."""
    if after is not None:
        buffer = values(x)
        rows = reshape(buffer, (*front, *sizes, buffer.shape[layout.row], *after))
        return wrap_buffer(rows, layout.structure, len(sizes), len(front))
    plan = _plan_reshape(layout, list(x.shape[layout.lead + 1 :]), sizes)
    same_rows = plan.only_ragged and (plan.start, plan.stop) == (layout.axis, layout.axis + layout.num_ragged)
    if not same_rows:
        x = make_ragged("reshape", remove_holes(x), layout.lead + 1 + plan.start, layout.lead + 1 + plan.stop)
    if plan.first:
        x = _move_to_end(x, plan)
    buffer = values(x)
    structure = ragged_reshape.structure_with(plan.ragged, get_layout(x).structure, keep_starts=same_rows)
    count = buffer.shape[get_layout(x).row] if same_rows else structure.rows
    buffer = reshape(buffer, (*front, *plan.before, count, *plan.first, *plan.last, *plan.after))
    buffer = _move_to_front(buffer, len(front) + len(plan.before), len(plan.first))
    return wrap_buffer(buffer, structure, len(plan.before) + len(plan.first), len(front))


def _move_to_end(x: Tensor, plan: _ReshapePlan) -> Tensor:
    """Move the dimensions before `ragged` of each component (*first, *ragged, *behind) after them."""
    sizes, several = [*plan.first, *plan.ragged, *plan.last], len(plan.first)
    structure = ragged_reshape.structure_with(sizes, get_layout(x).structure.packed)
    end = several + len(plan.ragged)
    order = [*range(several, end), *range(several), *range(end, len(sizes))]
    return gather_rows(x, structure, lambda _: ragged_reshape.transpose_rows(structure, order))


def _move_to_front(buffer: Tensor, row: int, count: int) -> Tensor:
    """Move `count` dimensions after the rows to before them."""
    if not count:
        return buffer
    return permute(buffer, (*range(row), *range(row + 1, row + 1 + count), row, *range(row + 1 + count, buffer.ndim)))


# ------------------------------------------------------------- shapes that do not keep the components apart


def _reshape_across(name: str, x: Tensor, layout: Layout, shape: tuple) -> Tensor:
    """Reshape so that the components are not one dimension: plain, or with more components than before."""
    if symbolic(shape) is None:
        row = flatten_elements(x)
        sizes = ragged_reshape.resolve_sizes(row.shape, shape)
        if sizes is not None and _is_within_components(x, layout, math.prod(sizes[1:])):
            return reshape(row, shape)
    for count in range(1, layout.axis + 1):
        merged = split_into_components(x, count)
        sizes_after = [_map_ragged_size(size, x, merged) for size in shape]
        for place in range(len(sizes_after)):
            found = _match_shape(merged, get_layout(merged), sizes_after, place)
            if found is not None:
                return _reshape_components(merged, get_layout(merged), *found)
    shapes = component_shapes(x)
    listed = f"; component 0 has shape {shapes[0]}" if shapes else ""
    raise ValueError(f"{name}: the components of a nested tensor of shape {x.shape} do not fit into {shape}{listed}")


def _is_within_components(x: Tensor, layout: Layout, size: int) -> bool:
    """Whether no slice of `size` elements along the first dimension spans components that differ in size."""
    if size == 1 or ragged_reshape.equal_sizes(layout.structure) is not None:
        return True
    if has_nested_components(layout, x):
        return not layout.row and _is_within_components(values(x), get_layout(values(x)), size)
    each = math.prod(x.shape[layout.lead + 1 : layout.ragged.start]) * math.prod(x.shape[layout.ragged.stop :])
    return not size or not (layout.structure.lengths * each % size).any()


def flatten_elements(x: Tensor) -> Tensor:
    """Return the elements of all components as a flat tensor, one component after the other."""
    x = remove_holes(x)
    layout = get_layout(x)
    if layout.num_ragged and not has_nested_components(layout, x):
        x = reshape_nested("flatten", x, (*x.shape[: layout.lead], len(layout.structure), -1), layout.lead)
    elif layout.num_ragged and layout.row:
        return cat([reshape(part, (-1,)) for part in registry["unbind"](x, layout.lead)])
    return reshape(values(x), (-1,))


def dense(x: Tensor) -> Tensor | None:
    """Return the plain tensor of components whose shapes are equal; None if they differ."""
    layout = get_layout(x)
    sizes = ragged_reshape.equal_sizes(layout.structure)
    if sizes is None or has_nested_components(layout, x):
        return None
    return reshape(flatten_elements(x), (*x.shape[: layout.ragged.start], *sizes, *x.shape[layout.ragged.stop :]))


def split_into_components(x: Tensor, count: int) -> Tensor:
    """Turn the first `count` dimensions of each component into separate components."""
    x = remove_holes(x)
    layout = get_layout(x)
    buffer, lead = values(x), layout.lead
    times = math.prod(buffer.shape[lead : lead + count])
    order = (
        *range(lead),
        *range(lead + count, layout.row),
        *range(lead, lead + count),
        *range(layout.row, buffer.ndim),
    )
    row = layout.row - count
    buffer = permute(buffer, order)
    rows = reshape(buffer, (*buffer.shape[:row], times * layout.structure.rows, *buffer.shape[layout.row + 1 :]))
    indices = as_tensor(ragged_reshape.gather_component_rows(layout.structure, times))
    structure = ragged_reshape.repeat_components(layout.structure, times)
    return wrap_buffer(registry["index_select"](rows, row, indices), structure, layout.axis - count, lead)


def _map_ragged_size(size: Any, x: Tensor, other: Tensor) -> Any:
    """Replace a ragged size of x by that of the same ragged dimension of another nested tensor."""
    pairs = zip(get_layout(x).ragged, get_layout(other).ragged, strict=True)
    return next((other.shape[b] for a, b in pairs if x.shape[a] == size), size)


# ------------------------------------------------------------------------------------- dimensions of size 1


@rule_for("unsqueeze")
def _unsqueeze(op: Op, args: tuple, params: dict) -> Any:
    """Insert a dimension of size 1; before the components it is one that they all share."""
    (x,), layout = args, get_layout(args[0])
    at = canonical_dim("unsqueeze", params["dim"], x.ndim + 1)
    return reshape_nested("unsqueeze", x, (*x.shape[:at], 1, *x.shape[at:]), layout.lead + (at <= layout.lead))


@rule_for("squeeze")
def _squeeze(op: Op, args: tuple, params: dict) -> Any:
    """Remove dimensions of size 1, including ragged ones if all sizes are 1; a single component is returned plain."""
    (x,), layout, dim = args, get_layout(args[0]), params["dim"]
    dims = range(x.ndim) if dim is None else canonical_dims("squeeze", dim, x.ndim) if dim != () else ()
    ones = [d for d in dims if x.shape[d] == 1 or (d in layout.ragged and _all_ones(x.shape[d]))]
    if layout.lead in ones:
        only_ragged = registry["unbind"](x, layout.lead)[0]
        return registry["squeeze"](only_ragged, tuple([d - (d > layout.lead) for d in ones if d != layout.lead]))
    shape = [size for d, size in enumerate(x.shape) if d not in ones]
    return reshape_nested("squeeze", x, shape, layout.lead - sum(d < layout.lead for d in ones))


def _all_ones(size: RaggedSize) -> bool:
    return bool(len(size.sizes)) and bool((size.sizes == 1).all())


# ------------------------------------------------------------------------------- dimensions in other orders


@rule_for("permute")
def _permute(op: Op, args: tuple, params: dict) -> Any:
    """Permute the dimensions: a view, unless ragged ones change their order."""
    return permute_nested("permute", args[0], permutation("permute", params["dims"], args[0].ndim))


@rule_for("transpose")
def _transpose(op: Op, args: tuple, params: dict) -> Any:
    """Swap two dimensions: a view, unless both are ragged."""
    (x,) = args
    order = list(range(x.ndim))
    a, b = (canonical_dim("transpose", params[d], x.ndim) for d in ("dim0", "dim1"))
    order[a], order[b] = b, a
    return permute_nested("transpose", x, order)


def permute_nested(name: str, x: Tensor, order: Sequence[int]) -> Tensor:
    """Return a nested tensor with its dimensions permuted."""
    layout = get_layout(x)
    if not layout.num_ragged:
        return permute(values(remove_holes(x)), tuple(order))
    positions = [i for i, d in enumerate(order) if d in layout.ragged]
    return permute_ragged(name, x, order, positions[0], positions[-1] + 1)


# ----------------------------------------------------------------------------------------------- expansion


@rule_for("expand")
def _expand(op: Op, args: tuple, params: dict) -> Any:
    """Repeat sizes of 1, and add new ones in front: a view, unless ragged sizes or the components are repeated."""
    (x,), layout = args, get_layout(args[0])
    if not layout.num_ragged:
        return call(op, (values(remove_holes(x)),), params)
    shape = _resolve_expand(x, layout, params["shape"])
    num_new = len(shape) - x.ndim
    if shape[layout.lead + num_new] != len(layout.structure):
        x = cat([x] * shape[layout.lead + num_new], dim=layout.lead)
    x = _expand_ragged(x, list(shape[num_new + layout.lead + 1 :]))
    layout, buffer = get_layout(x), values(x)
    lead, last = layout.lead + num_new, buffer.ndim - layout.row - 1
    before = shape[lead + 1 : lead + 1 + layout.axis]
    sizes = (*shape[:lead], *before, buffer.shape[layout.row], *shape[len(shape) - last :])
    return wrap_buffer(call(op, (buffer,), {"shape": sizes}), layout.structure, layout.axis, lead)


def _resolve_expand(x: Tensor, layout: Layout, shape: tuple) -> tuple:
    """Return the requested shape with -1 resolved; ragged sizes that equal the request, or are all 1, are kept."""
    num_new = len(shape) - x.ndim
    old: list[Any] = list(x.shape)
    new = list(shape)
    for d in layout.ragged:
        requested, current = new[d + num_new] if d + num_new >= 0 else -1, old[d]
        if (
            requested == current
            or requested == -1
            or (not isinstance(requested, RaggedSize) and (current.sizes == requested).all())
        ):
            new[d + num_new] = current
        elif _all_ones(current):
            old[d] = 1
        elif isinstance(requested, RaggedSize):
            raise ValueError(f"expand: shape {x.shape} does not expand to {shape}: {current.differs(requested)}")
    out: tuple = expanded_shape(old, new)
    return out


def _expand_ragged(x: Tensor, target: list) -> Tensor:
    """Expand sizes of 1 of the components to ragged sizes, or along ragged dimensions."""
    layout = get_layout(x)
    own = layout.axis + layout.num_ragged if has_nested_components(layout, x) else len(target)
    current, first, last = x.shape[layout.lead + 1 :], layout.axis, layout.axis + layout.num_ragged
    dims = [d for d in range(own) if d in range(first, last) or isinstance(target[d], RaggedSize)]
    if all(current[d] == target[d] for d in dims):
        return x
    front = layout.lead + 1
    x = make_ragged("expand", x, front + dims[0], front + dims[-1] + 1)
    columns = [ragged_reshape.numbers(size) for size in target[dims[0] : dims[-1] + 1]]
    wider = ragged_reshape.structure_with(columns, get_layout(x).structure.packed)
    return gather_rows(x, wider, lambda structure: ragged_reshape.expand_rows(structure, wider))


# ------------------------------------------------------------------------------ views along dense dimensions


@rule_for("unfold_dim")
def _unfold(op: Op, args: tuple, params: dict) -> Any:
    """Return windows along a dense dimension; the window is the last dimension of the buffer too."""
    (x,) = args
    dims = buffer_dims(get_layout(x), [canonical_dim("unfold", params["dimension"], x.ndim)])
    return NotImplemented if dims is None else apply_to_buffer(op, x, {**params, "dimension": dims[0]})


@rule_for("diagonal")
def _diagonal(op: Op, args: tuple, params: dict) -> Any:
    """Return the diagonal of two dense dimensions; it is the last dimension of the buffer too."""
    (x,), layout = args, get_layout(args[0])
    named = [canonical_dim("diagonal", params[d], x.ndim) for d in ("dim1", "dim2")]
    dims = buffer_dims(layout, named)
    if dims is None:
        return NotImplemented
    params = {**params, "dim1": dims[0], "dim2": dims[1]}
    lead, row = (sum(d < place for d in named) for place in (layout.lead, layout.ragged.start))
    return wrap_buffer(call(op, (values(x),), params), layout.structure, layout.axis + lead - row, layout.lead - lead)


@rule_for("detach", "view_as_real")
def _detach(op: Op, args: tuple, params: dict) -> Any:
    """Apply `detach` or the like to the buffer."""
    return apply_to_buffer(op, args[0], params)


@rule_for("view_as_complex", "view_as_dtype")
def _view_dtype(op: Op, args: tuple, params: dict) -> Any:
    """Reinterpret the buffer, if its last dimension is dense."""
    layout = get_layout(args[0])
    dense = layout.ndim > layout.ragged.stop
    same = "dtype" in params and params["dtype"].itemsize == args[0].dtype.itemsize
    return apply_to_buffer(op, args[0], params) if dense or same else NotImplemented


def apply_to_buffer(op: Op, x: Tensor, params: dict) -> Tensor:
    """Apply an operator to the buffer that does not move the rows."""
    return wrap_buffer_like(get_layout(x), call(op, (values(x),), params))


# ----------------------------------------------------------------------------------- what views are made of


@rule_for("view_scatter")
def _scatter(op: Op, args: tuple, params: dict) -> Any:
    """Write into the buffer, which is the first view in every chain of a nested tensor."""
    (base, src), chain = args, params["chain"]
    if not is_nested(base):
        return NotImplemented
    layout = get_layout(base)
    if chain and chain[0][0] == "nested.values":
        return wrap_buffer_like(layout, call(op, (values(base), src), {"chain": chain[1:]}))
    rows = NotImplemented if chain or layout.has_holes else buffer_operand(src, layout)
    return rows if rows is NotImplemented else wrap_buffer_like(layout, call(op, (values(base), rows), {"chain": ()}))
