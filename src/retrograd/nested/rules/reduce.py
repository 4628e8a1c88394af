"""Reductions of nested tensors: over dense and ragged dimensions, the components, several of them at once."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from retrograd.backend import ragged_reshape, segments
from retrograd.backend.ragged import RaggedSize, Structure
from retrograd.core import Aval, Op, Tensor, call
from retrograd.core import dtype as dtypes
from retrograd.nested.buffer import remove_holes, values, wrap_buffer
from retrograd.nested.buffer_layout import Layout, component_shapes, get_layout, is_nested
from retrograd.nested.dispatch import rule_for_family
from retrograd.nested.ragged_dims import buffer_dims, permute_ragged
from retrograd.nested.rules.segment_reduce import (
    repeat_rows,
    segment_argreduce,
    segment_logsumexp,
    segment_scale,
    segment_select,
    segment_sum,
)
from retrograd.nested.rules.segment_scan import align_rows, segment_prod
from retrograd.nested.rules.view import apply_to_buffer, flatten_elements
from retrograd.ops.create import as_tensor
from retrograd.ops.family import Reduction, canonical_dims, cast_to, reduced_shape
from retrograd.ops.pointwise import abs, conj, detach, eq, isinf, isnan, logical_or, pow, real_part, where
from retrograd.ops.reduce import LogicalReduction, sqrt_or_zero
from retrograd.ops.view import movedim, reshape, unsqueeze


@rule_for_family(Reduction)
def reduction(op: Op, args: tuple, params: dict) -> Any:
    """Reduce the buffer, or the rows of each component, or both."""
    x, layout = remove_holes(args[0]), get_layout(args[0])
    if len(args) > 1:
        return NotImplemented
    if params["dim"] == () and issubclass(op.definition, LogicalReduction):
        return apply_to_buffer(op, x, params)
    dims = canonical_dims(op.name, params["dim"], x.ndim)
    if not layout.num_ragged:
        return _reduce_scalars(op, x, dims, params)
    if any(d in layout.ragged for d in dims):
        check_elements(op, x, dims, params)
    if layout.lead in dims:
        return _reduce_all(op, x, dims, params)
    ragged = [d for d in dims if d in layout.ragged]
    return _reduce_ragged(op, x, dims, ragged, params) if ragged else _reduce_dense(op, x, dims, params)


def _params_for_dims(params: dict, dims: Any, keepdim: bool = False) -> dict:
    """Return the params for other dimensions; an integer stays an integer."""
    return {**params, "dim": dims[0] if isinstance(params["dim"], int) else tuple(dims), "keepdim": keepdim}


def check_elements(op: Op, x: Tensor, dims: tuple[int, ...], params: dict, name: str = "") -> None:
    """Check the operator on the smallest component; `name` is for the error."""
    layout = get_layout(x)
    columns = [d - layout.ragged.start for d in dims if d in layout.ragged]
    least = None if layout.lead in dims else segments.smallest(layout.structure, columns)
    shape = tuple([1 if isinstance(size, RaggedSize) or d == layout.lead else size for d, size in enumerate(x.shape)])
    if least is not None:
        sizes = layout.structure.sizes[least].tolist()
        shape = (*shape[: layout.ragged.start], *sizes, *shape[layout.ragged.stop :])
    try:
        op.definition.shape(Aval(shape, x.dtype), **params)
    except ValueError as error:
        text = f"{name or op.name}:{str(error).split(':', 1)[-1]}"
        raise ValueError(text if least is None else f"{text} (component {least} of a nested tensor)") from None


# ---------------------------------------------------------------------------------- without any ragged dimension


def _reduce_scalars(op: Op, x: Tensor, dims: tuple[int, ...], params: dict) -> Tensor:
    """Reduce components without dimensions: the buffer equals a plain tensor."""
    layout = get_layout(x)
    out: Tensor = call(op, (values(x),), params)
    if layout.lead in dims:
        return out
    return wrap_buffer(out, layout.structure, 0, layout.lead - (0 if params["keepdim"] else len(dims)))


def _reduce_dense(op: Op, x: Tensor, dims: tuple[int, ...], params: dict) -> Tensor:
    """Reduce over dense dimensions."""
    keepdim = params["keepdim"]
    out = call(op, (values(x),), _params_for_dims(params, buffer_dims(get_layout(x), dims), keepdim))
    return wrap_reduced(x, out, () if keepdim else dims)


def wrap_reduced(x: Tensor, buffer: Tensor, dims: Sequence[int]) -> Tensor:
    """Return a nested tensor over another buffer, in the shape of x without the dense dimensions `dims`."""
    layout = get_layout(x)
    lead = sum(d < layout.lead for d in dims)
    before = sum(layout.lead < d < layout.ragged.start for d in dims)
    return wrap_buffer(buffer, layout.structure, layout.axis - before, layout.lead - lead)


# ------------------------------------------------------------------------------------------ over the components


def _reduce_all(op: Op, x: Tensor, dims: tuple[int, ...], params: dict) -> Tensor:
    """Reduce over the components too: with all ragged dimensions, or if their shapes are equal."""
    layout, buffer = get_layout(x), values(x)
    if all(d in dims for d in layout.ragged) and (not is_nested(buffer) or _all_ragged(buffer, layout, dims)):
        return _reduce_components_and_ragged(op, x, dims, params)
    stack = stack_components(x)
    if stack is None:
        raise RuntimeError(_unequal_shapes_message(op, x))
    out: Tensor = call(op, (stack,), params)
    return out


def stack_components(x: Tensor) -> Tensor | None:
    """Return the plain tensor of components whose shapes are equal; None if they differ, or there are none."""
    x = remove_holes(x)
    layout, buffer = get_layout(x), values(x)
    sizes = None if is_nested(buffer) else ragged_reshape.equal_sizes(layout.structure)
    if sizes is None:
        return None
    row = layout.row
    stack = reshape(buffer, (*buffer.shape[:row], len(layout.structure), *sizes, *buffer.shape[row + 1 :]))
    return movedim(stack, row, layout.lead)


def _all_ragged(buffer: Tensor, layout: Layout, dims: tuple[int, ...]) -> bool:
    """Whether `dims` include all ragged dimensions of a nested buffer."""
    inner, moved = get_layout(buffer), [layout.buffer_dim(d) for d in dims]
    return all(d in moved for d in inner.ragged)


def _unequal_shapes_message(op: Op, x: Tensor) -> str:
    shapes = component_shapes(x)
    other = next((i for i, s in enumerate(shapes) if s != shapes[0]), None)
    differ = "" if other is None else f": component 0 has shape {shapes[0]}, component {other} shape {shapes[other]}"
    return (
        f"{op.name}: would reduce dimension {get_layout(x).lead}, the components of a nested tensor, whose shapes "
        f"differ{differ}. Reduce all ragged dimensions with it, or see to_padded_tensor()"
    )


def _reduce_components_and_ragged(op: Op, x: Tensor, dims: tuple[int, ...], params: dict) -> Tensor:
    """Reduce over the components and all ragged dimensions."""
    layout = get_layout(x)
    if params["dim"] is None and op.name in ("argmax", "argmin"):
        found = call(op, (flatten_elements(x),), {**params, "keepdim": False})
        return reshape(found, (1,) * x.ndim) if params["keepdim"] else found
    indices = [d for d in map(layout.buffer_dim, dims) if d is not None]
    out = call(op, (values(x),), {**params, "dim": (layout.row, *indices), "keepdim": False})
    return reshape(out, reduced_shape(x.shape, dims, True)) if params["keepdim"] else out


def _flatten_nested(x: Tensor) -> Tensor:
    """Flatten nested components: their rows become rows of the outer component."""
    layout, buffer = get_layout(x), remove_holes(values(x))
    inner = get_layout(buffer)
    structure = segments.merge_inner_components(layout.structure, inner.structure)
    return wrap_buffer(values(buffer), structure, layout.axis + inner.axis, layout.lead)


# -------------------------------------------------------------------------------------------- over ragged dimensions

STEPWISE = ("sum", "nansum", "mean", "any", "all", "logsumexp")  # reducing in two steps equals reducing at once


def _reduce_ragged(op: Op, x: Tensor, dims: tuple[int, ...], ragged: list[int], params: dict) -> Any:
    """Reduce over ragged dimensions, but not over the components."""
    if op.name not in REDUCERS:
        return NotImplemented
    if is_nested(values(x)):
        return _reduce_all_ragged(op, x, dims, ragged, params)
    shape, dense = x.shape, [d for d in dims if d not in ragged]
    if dense and op.name in STEPWISE:
        x = call(op, (x,), _params_for_dims(params, dense))
        ragged, dense = [d - sum(e < d for e in dense) for d in ragged], []
    groups = group_for_reduction(op.name, x, ragged, dense)
    rows = REDUCERS[op.name](groups.rows, groups.structure, groups.row, params)
    return groups.result(rows, shape, dims, params["keepdim"])


def _reduce_all_ragged(op: Op, x: Tensor, dims: tuple[int, ...], ragged: list[int], params: dict) -> Tensor:
    """Reduce over all ragged dimensions of nested components at once."""
    layout = get_layout(x)
    if len(ragged) < layout.num_ragged or not _all_ragged(values(x), layout, dims):
        raise RuntimeError(
            f"{op.name}: would reduce dimension {ragged[0]}, along which the components of nested components differ in "
            f"shape; reduce all ragged dimensions behind it too"
        )
    flat = _flatten_nested(x)
    inner = get_layout(values(x)).ragged
    first, last = layout.num_ragged + inner.start, layout.num_ragged + inner.stop
    result_structure = [
        d if d < layout.ragged.start else d - layout.num_ragged for d in dims if d < first and d not in ragged
    ]
    result_structure += [*get_layout(flat).ragged, *[d - x.ndim + flat.ndim for d in dims if d >= last]]
    out = call(op, (flat,), {**params, "dim": tuple(result_structure), "keepdim": False})
    return reshape(out, reduced_shape(x.shape, dims, True)) if params["keepdim"] else out


class Groups(NamedTuple):
    """Rows of a buffer in groups, each reduced to one row, and the structure of the result or None."""

    rows: Tensor
    structure: Structure
    result_structure: Structure | None
    layout: Layout

    @property
    def row(self) -> int:
        """Return the row dimension."""
        return self.layout.row

    def result(self, rows: Tensor, shape: tuple, dims: tuple[int, ...], keepdim: bool) -> Tensor:
        """Return the reduced tensor from a row per group; dimensions `dims` of `shape` were reduced."""
        if self.result_structure is None:
            out = movedim(rows, self.row, self.layout.lead)
            return reshape(out, reduced_shape(shape, dims, True)) if keepdim else out
        out = wrap_buffer(rows, self.result_structure, self.layout.axis, self.layout.lead)
        for d in sorted(dims) if keepdim else ():
            out = unsqueeze(out, d)
        return out


def group_for_reduction(name: str, x: Tensor, ragged: list[int], dense: list[int]) -> Groups:
    """Group the rows of a nested tensor for a reduction of some ragged and dense dimensions, which are merged."""
    layout = get_layout(x)
    remaining = [d for d in layout.ragged if d not in ragged]
    if remaining or dense:
        front = [d for d in range(layout.ragged.start) if d not in dense]
        trailing = [d for d in range(layout.ragged.stop, x.ndim) if d not in dense]
        block = [*remaining, *ragged, *dense]
        x = remove_holes(permute_ragged(name, x, [*front, *block, *trailing], len(front), len(front) + len(block)))
    layout = get_layout(x)
    if not remaining:
        return Groups(values(x), layout.structure, None, layout)
    return Groups(values(x), *segments.group_rows(layout.structure, len(remaining)), layout)  # type: ignore[call-arg]


# ------------------------------------------------------------------------------------------- how rows are reduced

Reducer = Callable[[Tensor, Structure, int, dict], Tensor]  # (rows, structure, row, params)


def _sum(x: Tensor, structure: Structure, row: int, params: dict) -> Tensor:
    dtype = params.get("dtype")
    out = segment_sum(x if dtype is None else cast_to(x, dtype), structure=structure, row=row)
    return out if dtype is None else cast_to(out, dtype)


def _nansum(x: Tensor, structure: Structure, row: int, params: dict) -> Tensor:
    return _sum(where(isnan(x), 0, x), structure, row, params)


def _mean(x: Tensor, structure: Structure, row: int, params: dict) -> Tensor:
    dtype = params.get("dtype") or x.dtype
    total = segment_sum(cast_to(x, dtypes.opmath_of(dtype)), structure=structure, row=row)
    return cast_to(total / _counts(structure, total, row), dtype)


def _counts(structure: Structure, x: Tensor, row: int, correction: Any = 0) -> Tensor:
    """Return the number of rows of each component minus `correction`, shaped to broadcast against one row each."""
    counts: Tensor = align_rows(as_tensor(segments.counts(structure, correction, dtypes.real_of(x.dtype))), x, row)
    return counts


def _squares(x: Tensor) -> Tensor:
    return x * x if dtypes.is_floating(x.dtype) else real_part(x * conj(x))


def _variance(x: Tensor, structure: Structure, row: int, params: dict) -> Tensor:
    center = repeat_rows(_mean(x, structure, row, {}), structure=structure, row=row)
    total = segment_sum(_squares(x - center), structure=structure, row=row)
    return total / _counts(structure, total, row, params["correction"])


def _euclidean_norm(x: Tensor, structure: Structure, row: int, params: dict) -> Tensor:
    """Divide rows by the largest of their component, so that squares do not overflow."""
    scaled, scale = _scale_rows(x, abs(x), structure, row, largest=True)
    return scale * sqrt_or_zero(segment_sum(_squares(scaled), structure=structure, row=row))


def _power_norm(x: Tensor, structure: Structure, row: int, params: dict) -> Tensor:
    """Divide rows by the one with the largest power."""
    p = params["p"]
    scaled, scale = _scale_rows(x, x, structure, row, largest=p > 0)
    zero = eq(scaled, 0)
    powers = where(zero, 0 if p > 0 else math.inf, pow(where(zero, 1, scaled), p))
    total = segment_sum(powers, structure=structure, row=row)
    none = logical_or(eq(total, 0), isinf(total))
    return scale * where(none, 0, pow(where(none, 1, total), 1 / p))


def _scale_rows(x: Tensor, size: Tensor, structure: Structure, row: int, largest: bool) -> tuple[Tensor, Tensor]:
    """Return rows divided by the largest or smallest of their component, and that divisor, detached."""
    scale = segment_scale(detach(size), largest=largest, structure=structure, row=row)
    return x / repeat_rows(scale, structure=structure, row=row), scale


def _prod(x: Tensor, structure: Structure, row: int, params: dict) -> Tensor:
    dtype = params["dtype"]
    out = segment_prod(x if dtype is None else cast_to(x, dtype), structure=structure, row=row)
    return out if dtype is None else cast_to(out, dtype)


def _logsumexp(x: Tensor, structure: Structure, row: int, params: dict) -> Tensor:
    return segment_logsumexp(cast_to(x, dtypes.float_of(x.dtype)), structure=structure, row=row)


def _kernel_reducer(operator: str, primitive: Callable) -> Reducer:
    """Return a reducer that applies the kernel of the operator to the rows of each component."""

    def reducer(x: Tensor, structure: Structure, row: int, params: dict) -> Tensor:
        given = {**{k: v for k, v in params.items() if k != "dim"}, "keepdim": True}
        out: Tensor = primitive(x, operator=operator, structure=structure, row=row, params=given)
        return out

    return reducer


REDUCERS: dict[str, Reducer] = {
    "sum": _sum,
    "nansum": _nansum,
    "mean": _mean,
    "variance": _variance,
    "euclidean_norm": _euclidean_norm,
    "power_norm": _power_norm,
    "prod": _prod,
    "logsumexp": _logsumexp,
    **{name: _kernel_reducer(name, segment_select) for name in ("amax", "amin", "middle")},
    **{name: _kernel_reducer(name, segment_argreduce) for name in ("any", "all", "argmax", "argmin")},
}
