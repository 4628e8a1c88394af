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
from retrograd.nested.buffer import like, over, packed, values
from retrograd.nested.buffer_layout import Layout, component_shapes, is_nested, layout
from retrograd.nested.dispatch import composed
from retrograd.nested.ragged_dims import in_buffers, permute_ragged, restructured, with_ragged
from retrograd.nested.rules.pointwise import buffer_operand
from retrograd.ops.create import as_tensor
from retrograd.ops.family import canonical_dim, canonical_dims
from retrograd.ops.view import cat, expanded_shape, permutation, permute, reshape

# -------------------------------------------------------------------------------------------- other sizes


@composed("reshape")
def _reshape(op: Op, args: tuple, params: dict) -> Any:
    """Reshape the elements of each component, or of all components if the shape does not separate them."""
    return reshaped("reshape", args[0], params["shape"])


@composed("view")
def _view(op: Op, args: tuple, params: dict) -> Any:
    """Reshape without a copy."""
    (x,) = args
    out = reshaped("view", x, params["shape"])
    if x.level is None and not is_view_of(out.value, x.value):
        raise RuntimeError(
            f"view: the memory of this nested tensor, of shape {x.shape}, can't be shown in shape {out.shape}. Use "
            f".reshape(...) instead."
        )
    return out


def reshaped(name: str, x: Tensor, shape: Sequence[Any], at: int | None = None) -> Tensor:
    """Reshape a nested tensor; dimension `at` are the components; None: a dimension with as many."""
    known = layout(x)
    if not known.several:
        return reshape(values(packed(x)), shape)
    for place in [known.lead, *range(len(shape))] if at is None else [at]:
        found = _fits(x, known, shape, place)
        if found is not None:
            return _reshape_components(x, known, *found)
    return _reshape_across(name, x, known, tuple(shape))


def _fits(x: Tensor, known: Layout, shape: Sequence[Any], at: int) -> tuple | None:
    """Return the sizes before the components and those of a component, if `shape` fits; else None."""
    count = len(known.structure)
    if at >= len(shape) or isinstance(shape[at], RaggedSize) or shape[at] not in (count, -1):
        return None
    front = ragged_reshape.resolve_sizes(x.shape[: known.lead], shape[:at])
    mine, its = x.shape[known.lead + 1 :], shape[at + 1 :]
    if front is None or not all(map(ragged_reshape.is_number, front)):
        return None
    if is_of_sets(known, x):
        return _outer_sizes(x, known, front, list(its))
    sizes = ragged_reshape.resolve_sizes(mine, its)
    return None if sizes is None else (front, sizes)


def is_of_sets(known: Layout, x: Tensor) -> bool:
    """Whether components are nested tensors themselves."""
    return any(isinstance(s, RaggedSize) for s in x.shape[known.ragged.stop :])


def _outer_sizes(x: Tensor, known: Layout, front: list, its: list) -> tuple | None:
    """Return the sizes around the ragged ones of outer nested components, which must not change."""
    ragged = x.shape[known.ragged.start : known.ragged.stop]
    for k in range(len(its)):
        same = [s == r or (s == -1 and k == known.axis) for s, r in zip(its[k:], ragged, strict=False)]
        if len(same) == known.several and all(same):
            return front, its[:k], its[k + known.several :]
    return None


class _Plan(NamedTuple):
    """A change of the components' sizes to (*before, *first, *ragged, *behind, *after).

    `before` and `after` replace as many old sizes before `start` and from `stop` on independently; the sizes
    between become (*first, *ragged, *behind).
    """

    start: int
    stop: int
    before: list
    first: list
    ragged: list
    behind: list
    after: list

    @property
    def alone(self) -> bool:
        """Whether ragged sizes become ragged sizes only."""
        return not self.first and not self.behind


def _plan(known: Layout, old: list, new: list) -> _Plan:
    """Return how components of sizes `old` get the sizes `new`."""
    first, last = known.axis, known.axis + known.several
    a, k = ragged_reshape.match_leading_sizes(old[:first], new)
    b, n = ragged_reshape.match_leading_sizes(old[last:][::-1], new[k:][::-1])
    if k + n == len(new):  # a dimension must be ragged
        a, k, b, n = 0, 0, 0, 0
    middle, after = new[k : len(new) - n], new[len(new) - n :]
    ragged = [i for i, size in enumerate(middle) if not ragged_reshape.is_number(size)] or ([0] if middle else [0, -1])
    start, stop = ragged[0], ragged[-1] + 1
    return _Plan(a, len(old) - b, new[:k], middle[:start], middle[start:stop], middle[stop:], after)


def _reshape_components(x: Tensor, known: Layout, front: list, sizes: list, after: list | None = None) -> Tensor:
    """Reshape the components to `sizes`, with others in front; for nested components, `after` gives the sizes
    behind."""
    if after is not None:
        buffer = values(x)
        rows = reshape(buffer, (*front, *sizes, buffer.shape[known.row], *after))
        return over(rows, known.structure, len(sizes), len(front))
    plan = _plan(known, list(x.shape[known.lead + 1 :]), sizes)
    same_rows = plan.alone and (plan.start, plan.stop) == (known.axis, known.axis + known.several)
    if not same_rows:
        x = with_ragged("reshape", packed(x), known.lead + 1 + plan.start, known.lead + 1 + plan.stop)
    if plan.first:
        x = _move_to_end(x, plan)
    buffer = values(x)
    structure = ragged_reshape.structure_with(plan.ragged, layout(x).structure, keep_starts=same_rows)
    count = buffer.shape[layout(x).row] if same_rows else structure.rows
    buffer = reshape(buffer, (*front, *plan.before, count, *plan.first, *plan.behind, *plan.after))
    buffer = _move_to_front(buffer, len(front) + len(plan.before), len(plan.first))
    return over(buffer, structure, len(plan.before) + len(plan.first), len(front))


def _move_to_end(x: Tensor, plan: _Plan) -> Tensor:
    """Move the dimensions before `ragged` of each component (*first, *ragged, *behind) after them."""
    sizes, several = [*plan.first, *plan.ragged, *plan.behind], len(plan.first)
    structure = ragged_reshape.structure_with(sizes, layout(x).structure.packed)
    end = several + len(plan.ragged)
    order = [*range(several, end), *range(several), *range(end, len(sizes))]
    return restructured(x, structure, lambda _: ragged_reshape.transpose_rows(structure, order))


def _move_to_front(buffer: Tensor, row: int, count: int) -> Tensor:
    """Move `count` dimensions after the rows to before them."""
    if not count:
        return buffer
    return permute(buffer, (*range(row), *range(row + 1, row + 1 + count), row, *range(row + 1 + count, buffer.ndim)))


# ------------------------------------------------------------- shapes that do not keep the components apart


def _reshape_across(name: str, x: Tensor, known: Layout, shape: tuple) -> Tensor:
    """Reshape so that the components are not one dimension: plain, or with more components than before."""
    if symbolic(shape) is None:
        row = elements(x)
        sizes = ragged_reshape.resolve_sizes(row.shape, shape)
        if sizes is not None and _is_within_components(x, known, math.prod(sizes[1:])):
            return reshape(row, shape)
    for count in range(1, known.axis + 1):
        merged = into_components(x, count)
        its = [_renamed(size, x, merged) for size in shape]
        for place in range(len(its)):
            found = _fits(merged, layout(merged), its, place)
            if found is not None:
                return _reshape_components(merged, layout(merged), *found)
    shapes = component_shapes(x)
    listed = f"; component 0 has shape {shapes[0]}" if shapes else ""
    raise ValueError(f"{name}: the components of a nested tensor of shape {x.shape} do not fit into {shape}{listed}")


def _is_within_components(x: Tensor, known: Layout, size: int) -> bool:
    """Whether no slice of `size` elements along the first dimension spans components that differ in size."""
    if size == 1 or ragged_reshape.equal_sizes(known.structure) is not None:
        return True
    if is_of_sets(known, x):
        return not known.row and _is_within_components(values(x), layout(values(x)), size)
    each = math.prod(x.shape[known.lead + 1 : known.ragged.start]) * math.prod(x.shape[known.ragged.stop :])
    return not size or not (known.structure.lengths * each % size).any()


def elements(x: Tensor) -> Tensor:
    """Return the elements of all components as a flat tensor, one component after the other."""
    x = packed(x)
    known = layout(x)
    if known.several and not is_of_sets(known, x):
        x = reshaped("flatten", x, (*x.shape[: known.lead], len(known.structure), -1), known.lead)
    elif known.several and known.row:
        return cat([reshape(part, (-1,)) for part in registry["unbind"](x, known.lead)])
    return reshape(values(x), (-1,))


def dense(x: Tensor) -> Tensor | None:
    """Return the plain tensor of components whose shapes are equal; None if they differ."""
    known = layout(x)
    sizes = ragged_reshape.equal_sizes(known.structure)
    if sizes is None or is_of_sets(known, x):
        return None
    return reshape(elements(x), (*x.shape[: known.ragged.start], *sizes, *x.shape[known.ragged.stop :]))


def into_components(x: Tensor, count: int) -> Tensor:
    """Turn the first `count` dimensions of each component into separate components."""
    x = packed(x)
    known = layout(x)
    buffer, lead = values(x), known.lead
    times = math.prod(buffer.shape[lead : lead + count])
    order = (*range(lead), *range(lead + count, known.row), *range(lead, lead + count), *range(known.row, buffer.ndim))
    row = known.row - count
    buffer = permute(buffer, order)
    rows = reshape(buffer, (*buffer.shape[:row], times * known.structure.rows, *buffer.shape[known.row + 1 :]))
    places = as_tensor(ragged_reshape.gather_component_rows(known.structure, times))
    structure = ragged_reshape.repeat_components(known.structure, times)
    return over(registry["index_select"](rows, row, places), structure, known.axis - count, lead)


def _renamed(size: Any, x: Tensor, other: Tensor) -> Any:
    """Replace a ragged size of x by that of the same ragged dimension of another nested tensor."""
    pairs = zip(layout(x).ragged, layout(other).ragged, strict=True)
    return next((other.shape[b] for a, b in pairs if x.shape[a] == size), size)


# ------------------------------------------------------------------------------------- dimensions of size 1


@composed("unsqueeze")
def _unsqueeze(op: Op, args: tuple, params: dict) -> Any:
    """Insert a dimension of size 1; before the components it is one that they all share."""
    (x,), known = args, layout(args[0])
    at = canonical_dim("unsqueeze", params["dim"], x.ndim + 1)
    return reshaped("unsqueeze", x, (*x.shape[:at], 1, *x.shape[at:]), known.lead + (at <= known.lead))


@composed("squeeze")
def _squeeze(op: Op, args: tuple, params: dict) -> Any:
    """Remove dimensions of size 1, including ragged ones if all sizes are 1; a single component is returned plain."""
    (x,), known, dim = args, layout(args[0]), params["dim"]
    dims = range(x.ndim) if dim is None else canonical_dims("squeeze", dim, x.ndim) if dim != () else ()
    ones = [d for d in dims if x.shape[d] == 1 or (d in known.ragged and _all_ones(x.shape[d]))]
    if known.lead in ones:
        alone = registry["unbind"](x, known.lead)[0]
        return registry["squeeze"](alone, tuple([d - (d > known.lead) for d in ones if d != known.lead]))
    shape = [size for d, size in enumerate(x.shape) if d not in ones]
    return reshaped("squeeze", x, shape, known.lead - sum(d < known.lead for d in ones))


def _all_ones(size: RaggedSize) -> bool:
    return bool(len(size.sizes)) and bool((size.sizes == 1).all())


# ------------------------------------------------------------------------------- dimensions in other orders


@composed("permute")
def _permute(op: Op, args: tuple, params: dict) -> Any:
    """Permute the dimensions: a view, unless ragged ones change their order."""
    return permuted("permute", args[0], permutation("permute", params["dims"], args[0].ndim))


@composed("transpose")
def _transpose(op: Op, args: tuple, params: dict) -> Any:
    """Swap two dimensions: a view, unless both are ragged."""
    (x,) = args
    order = list(range(x.ndim))
    a, b = (canonical_dim("transpose", params[d], x.ndim) for d in ("dim0", "dim1"))
    order[a], order[b] = b, a
    return permuted("transpose", x, order)


def permuted(name: str, x: Tensor, order: Sequence[int]) -> Tensor:
    """Return a nested tensor with its dimensions permuted."""
    known = layout(x)
    if not known.several:
        return permute(values(packed(x)), tuple(order))
    places = [i for i, d in enumerate(order) if d in known.ragged]
    return permute_ragged(name, x, order, places[0], places[-1] + 1)


# ----------------------------------------------------------------------------------------------- expansion


@composed("expand")
def _expand(op: Op, args: tuple, params: dict) -> Any:
    """Repeat sizes of 1, and add new ones in front: a view, unless ragged sizes or the components are repeated."""
    (x,), known = args, layout(args[0])
    if not known.several:
        return call(op, (values(packed(x)),), params)
    shape = _expanded(x, known, params["shape"])
    more = len(shape) - x.ndim
    if shape[known.lead + more] != len(known.structure):
        x = cat([x] * shape[known.lead + more], dim=known.lead)
    x = _expand_ragged(x, list(shape[more + known.lead + 1 :]))
    known, buffer = layout(x), values(x)
    lead, behind = known.lead + more, buffer.ndim - known.row - 1
    before = shape[lead + 1 : lead + 1 + known.axis]
    sizes = (*shape[:lead], *before, buffer.shape[known.row], *shape[len(shape) - behind :])
    return over(call(op, (buffer,), {"shape": sizes}), known.structure, known.axis, lead)


def _expanded(x: Tensor, known: Layout, shape: tuple) -> tuple:
    """Return the requested shape with -1 resolved; ragged sizes that equal the request, or are all 1, are kept."""
    more = len(shape) - x.ndim
    old: list[Any] = list(x.shape)
    new = list(shape)
    for d in known.ragged:
        asked, mine = new[d + more] if d + more >= 0 else -1, old[d]
        if asked == mine or asked == -1 or (not isinstance(asked, RaggedSize) and (mine.sizes == asked).all()):
            new[d + more] = mine
        elif _all_ones(mine):
            old[d] = 1
        elif isinstance(asked, RaggedSize):
            raise ValueError(f"expand: shape {x.shape} does not expand to {shape}: {mine.differs(asked)}")
    out: tuple = expanded_shape(old, new)
    return out


def _expand_ragged(x: Tensor, wanted: list) -> Tensor:
    """Expand sizes of 1 of the components to ragged sizes, or along ragged dimensions."""
    known = layout(x)
    own = known.axis + known.several if is_of_sets(known, x) else len(wanted)
    mine, first, last = x.shape[known.lead + 1 :], known.axis, known.axis + known.several
    places = [d for d in range(own) if d in range(first, last) or isinstance(wanted[d], RaggedSize)]
    if all(mine[d] == wanted[d] for d in places):
        return x
    front = known.lead + 1
    x = with_ragged("expand", x, front + places[0], front + places[-1] + 1)
    columns = [ragged_reshape.numbers(size) for size in wanted[places[0] : places[-1] + 1]]
    wider = ragged_reshape.structure_with(columns, layout(x).structure.packed)
    return restructured(x, wider, lambda structure: ragged_reshape.expand_rows(structure, wider))


# ------------------------------------------------------------------------------ views along dense dimensions


@composed("unfold_dim")
def _unfold(op: Op, args: tuple, params: dict) -> Any:
    """Return windows along a dense dimension; the window is the last dimension of the buffer too."""
    (x,) = args
    dims = in_buffers(layout(x), [canonical_dim("unfold", params["dimension"], x.ndim)])
    return NotImplemented if dims is None else over_same(op, x, {**params, "dimension": dims[0]})


@composed("diagonal")
def _diagonal(op: Op, args: tuple, params: dict) -> Any:
    """Return the diagonal of two dense dimensions; it is the last dimension of the buffer too."""
    (x,), known = args, layout(args[0])
    named = [canonical_dim("diagonal", params[d], x.ndim) for d in ("dim1", "dim2")]
    dims = in_buffers(known, named)
    if dims is None:
        return NotImplemented
    params = {**params, "dim1": dims[0], "dim2": dims[1]}
    lead, row = (sum(d < place for d in named) for place in (known.lead, known.ragged.start))
    return over(call(op, (values(x),), params), known.structure, known.axis + lead - row, known.lead - lead)


@composed("detach", "view_as_real")
def _apply_to_buffer(op: Op, args: tuple, params: dict) -> Any:
    """Apply `detach` or the like to the buffer."""
    return over_same(op, args[0], params)


@composed("view_as_complex", "view_as_dtype")
def _view_dtype(op: Op, args: tuple, params: dict) -> Any:
    """Reinterpret the buffer, if its last dimension is dense."""
    known = layout(args[0])
    dense = known.ndim > known.ragged.stop
    same = "dtype" in params and params["dtype"].itemsize == args[0].dtype.itemsize
    return over_same(op, args[0], params) if dense or same else NotImplemented


def over_same(op: Op, x: Tensor, params: dict) -> Tensor:
    """Apply an operator to the buffer that does not move the rows."""
    return like(layout(x), call(op, (values(x),), params))


# ----------------------------------------------------------------------------------- what views are made of


@composed("view_scatter")
def _scatter(op: Op, args: tuple, params: dict) -> Any:
    """Write into the buffer, which is the first view in every chain of a nested tensor."""
    (base, src), chain = args, params["chain"]
    if not is_nested(base):
        return NotImplemented
    known = layout(base)
    if chain and chain[0][0] == "nested.values":
        return like(known, call(op, (values(base), src), {"chain": chain[1:]}))
    rows = NotImplemented if chain or known.holes else buffer_operand(src, known)
    return rows if rows is NotImplemented else like(known, call(op, (values(base), rows), {"chain": ()}))
