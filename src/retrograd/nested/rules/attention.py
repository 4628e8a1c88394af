"""Attention within the components of nested tensors."""

import math
from typing import Any

from retrograd.backend.ragged import Structure, structure_of
from retrograd.backend.ragged_attention import Plan
from retrograd.backend.ragged_products import Part, Parts, pair_structures, uniform
from retrograd.core import Internal, Op, Tensor, call, op, registry
from retrograd.nested.buffer import remove_holes, values, wrap_buffer
from retrograd.nested.buffer_layout import Layout, component_shapes, get_layout, is_nested
from retrograd.nested.dispatch import rule_for
from retrograd.nested.error_words import FinalError
from retrograd.nested.fallback_loop import run_per_component
from retrograd.nested.padding import unpad_rows
from retrograd.nested.rules.pointwise import buffer_operand
from retrograd.nested.rules.ragged_attention import attend
from retrograd.nested.rules.segment_matmul import multiply_each
from retrograd.ops.family import Composite, broadcast_shapes
from retrograd.ops.view import expand, flatten, movedim, reshape, unflatten, unsqueeze


@rule_for("scaled_dot_product_attention")
def attention(op: Op, args: tuple, params: dict) -> Any:
    """Run one operator for all components; with dropout, the dense one on each of them."""
    query, key, value, mask = args
    if params["is_causal"] and mask is not None:
        return NotImplemented  # refused by the operator
    count = len(get_layout(next(a for a in args if is_nested(a))).structure)
    rows = [_structure_and_rows(x, count) for x in (query, key, value)]
    if mask is not None and rows[0] is not None and rows[1] is not None:
        mask = _cut_mask(mask, rows[0][0], rows[1][0], query.ndim)
    if params["dropout_p"]:
        args = query, key, value, mask
        own = [isinstance(a, Tensor) and not is_nested(a) and a.ndim > 2 and a.shape[0] == count for a in args]
        return run_per_component(op, args, params, own)
    if any(r is None for r in rows):
        return NotImplemented
    return _attend(rows, (query, key, value), mask, params)


def _structure_and_rows(x: Any, count: int) -> tuple[Structure, Tensor] | None:
    """Return the structure and the rows of all components, (*before, rows, features); None if x has another layout."""
    if not is_nested(x):
        if not isinstance(x, Tensor) or x.ndim < 3 or x.shape[0] != count:
            return None
        rows = flatten(movedim(x, 0, -3), -3, -2)
        return (uniform(count, x.shape[-2]), rows) if x.dtype.char in "fd" else None
    x = remove_holes(x)
    layout = get_layout(x)
    fits = layout.num_ragged == 1 and not layout.lead and layout.ragged.stop == layout.ndim - 1
    return (layout.structure, values(x)) if fits and x.dtype.char in "fd" and not is_nested(values(x)) else None


def _attend(rows: list, tensors: tuple, mask: Any, params: dict) -> Any:
    (queries, q), (keys, k), (value_rows, v) = rows
    _check_key_counts(tensors, (queries, keys, value_rows))
    if q.shape[-1] != k.shape[-1] or len({x.dtype for x in (q, k, v)}) > 1:
        return NotImplemented  # the fallback raises the error
    masks = None if mask is None else _mask_buffer(mask, queries, keys, tensors[0].ndim)
    if masks is NotImplemented or (masks is not None and masks.dtype not in (q.dtype, bool)):
        return NotImplemented
    scale = params["scale"]
    plan = Plan(queries, keys, 1 / math.sqrt(max(q.shape[-1], 1)) if scale is None else scale, params["is_causal"])
    heads = None
    if params["enable_gqa"] and q.ndim > 2 and k.shape[-3] != q.shape[-3]:
        heads = q.shape[-3]
        if k.shape[-3] == 0 or heads % k.shape[-3] or v.shape[-3] != k.shape[-3]:
            return NotImplemented
        q, k, v, masks = _group_heads(q, k, v, masks)
    out = _run_operator(q, k, v, masks, plan)
    out = out if heads is None else flatten(out, -4, -3)
    return wrap_buffer(out, queries, out.ndim - 2)


def _run_operator(q: Tensor, k: Tensor, v: Tensor, masks: Tensor | None, plan: Plan) -> Tensor:
    """Run the operator, after expanding the queries to the leading dimensions of the others."""
    fronts = [x.shape[:-2] for x in (q, k, v)] + ([] if masks is None else [masks.shape[:-1]])
    front = broadcast_shapes("scaled_dot_product_attention", fronts)
    q = q if q.shape[:-2] == front else expand(q, (*front, *q.shape[-2:]))
    attn_mask, attn_bias = (masks, []) if masks is None or masks.dtype == bool else (None, [masks])
    out: Tensor = call(attend, (attn_mask, q, k, v, *attn_bias), {"plan": plan})[0]
    return out


def _group_heads(q: Tensor, k: Tensor, v: Tensor, masks: Tensor | None) -> tuple:
    """Move the heads of queries that share keys into a dimension of their own."""
    groups = k.shape[-3]
    if masks is not None and masks.ndim > 1:
        masks = unsqueeze(masks, -2) if masks.shape[-2] == 1 else unflatten(masks, -2, (groups, -1))
    return unflatten(q, -3, (groups, -1)), unsqueeze(k, -3), unsqueeze(v, -3), masks


def _check_key_counts(tensors: tuple, structures: tuple) -> None:
    """Raise ValueError that names the first component whose keys and values differ in number."""
    counts = {len(s) for s in structures}
    if len(counts) > 1:
        raise ValueError(
            f"scaled_dot_product_attention: the nested tensors have {', '.join(map(str, sorted(counts)))} components"
        )
    keys, value_rows = (s.lengths.tolist() for s in structures[1:])
    for i in range(len(keys)) if keys != value_rows else ():
        if keys[i] != value_rows[i]:
            shapes = [component_shapes(x)[i] if is_nested(x) else x.shape[1:] for x in tensors[1:]]
            raise ValueError(
                f"scaled_dot_product_attention: component {i} has keys of shape {shapes[0]} and values of shape "
                f"{shapes[1]}, which differ in number"
            )


# ---------------------------------------------------------------------------------------------------- masks


@op("nested.cut_mask(Tensor mask, Tensor query, Tensor key) -> Tensor")
class cut_mask(Internal, Composite, accepts_nested=True):
    """The mask of padded tensors, (..., most queries, most keys), as the nested mask of the components.

    Masks that are nested or broadcast as they are, and those of dense queries or keys, are returned unchanged.
    """

    def compose(mask, query, key):
        layouts = [get_layout(remove_holes(x)) for x in (query, key) if is_nested(x)]
        if len(layouts) < 2 or any(layout.num_ragged != 1 or layout.lead for layout in layouts):
            return mask
        queries, keys = (layout.structure for layout in layouts)
        return _cut_mask(mask, queries, keys, query.ndim)

    def samples(r):
        x = wrap_buffer(r(5, 2), structure_of([(3,), (2,)])[0])
        yield (r(3, 3), x, x), {}


def _cut_mask(mask: Tensor, queries: Structure, keys: Structure, ndim: int) -> Tensor:
    if is_nested(mask) or not 2 <= mask.ndim <= ndim or mask.shape[-2:] == (1, 1):
        return mask
    shape = (*(1,) * (ndim - mask.ndim), *mask.shape)
    most = tuple([int(own.lengths.max(initial=0)) for own in (queries, keys)])
    if shape[0] not in (1, len(queries)) or any(a not in (1, b) for a, b in zip(shape[-2:], most, strict=True)):
        raise FinalError(
            f"attention: a mask of shape {mask.shape} does not fit {len(queries)} components of at most {most[0]} "
            f"queries and {most[1]} keys; expected (..., {most[0]}, {most[1]}), as for padded tensors, or a nested mask"
        )
    boxes = expand(reshape(mask, shape), (len(queries), *shape[1:-2], *most))
    pairs = pair_structures(queries, keys)
    return wrap_buffer(unpad_rows(movedim(boxes, 0, -3), structure=pairs, row=ndim - 3), pairs, ndim - 3)


def _mask_buffer(mask: Tensor, queries: Structure, keys: Structure, ndim: int) -> Any:
    """Return a mask as the buffer of a nested tensor of matrices with a row for each query and a column for each
    key."""
    pairs = pair_structures(queries, keys)
    if not is_nested(mask):
        layout = Layout(pairs, ndim - 3, 0, ndim)
        found = buffer_operand(mask, layout)
        return found if found is NotImplemented else expand(found, (*found.shape[:-1], pairs.rows))
    mask = remove_holes(mask)
    layout, rows = get_layout(mask), values(mask)
    trailing = layout.ndim - layout.ragged.stop
    if layout.lead or is_nested(rows):
        return NotImplemented
    if (layout.num_ragged, trailing) == (2, 0):
        return rows if layout.structure == pairs else _mask_mismatch(mask, pairs)
    if layout.num_ragged == 1 and trailing < 2 and rows.ndim > 1:
        return _expand_mask(rows, layout.structure, trailing, queries, keys)
    return NotImplemented


def _mask_mismatch(mask: Tensor, pairs: Structure) -> Any:
    shapes, sizes = component_shapes(mask), pairs.sizes.tolist()
    if len(shapes) != len(sizes):
        raise ValueError(f"scaled_dot_product_attention: attn_mask has {len(shapes)} components, query {len(sizes)}")
    for i, (shape, size) in enumerate(zip(shapes, sizes, strict=True)):
        if list(shape[-2:]) != size and any(a not in (1, b) for a, b in zip(shape[-2:], size, strict=True)):
            raise ValueError(
                f"scaled_dot_product_attention: component {i} of attn_mask has shape {shape}, but there are {size[0]} "
                f"queries and {size[1]} keys"
            )
    return NotImplemented


def _expand_mask(rows: Tensor, structure: Structure, trailing: int, queries: Structure, keys: Structure) -> Any:
    """Expand a mask with one ragged dimension, that of the queries or of the keys."""
    own = queries if trailing else keys
    width = rows.shape[-1] if trailing else rows.shape[-2]
    if structure != own:
        return NotImplemented
    if trailing and (keys.lengths == width).all():
        return flatten(rows, -2, -1)
    if width != 1:
        return NotImplemented
    dtype = rows.dtype if rows.dtype != bool else "float32"
    ones = registry["ones"]((keys.rows, 1) if trailing else (queries.rows, 1), dtype=dtype)
    each = registry["to"](rows, dtype)
    left, right = (each, reshape(ones, (1, -1))) if trailing else (ones, each)
    parts = Parts(Part("rows", queries), Part("columns", keys), Part("both", pair_structures(queries, keys)))
    out: Tensor = multiply_each(left, right, parts=parts)
    return out if rows.dtype != bool else registry["to"](out, bool)
