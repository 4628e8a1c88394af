"""Reductions of nested tensors: over dense and ragged dimensions, the components, several of them at once."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from retrograd.backend import ragged_reshape, segments
from retrograd.backend.ragged import RaggedSize, Structure
from retrograd.core import Aval, Op, Tensor, call
from retrograd.core import dtype as dtypes
from retrograd.nested.buffer import over, packed, values
from retrograd.nested.buffer_layout import Layout, component_shapes, is_nested, layout
from retrograd.nested.dispatch import family
from retrograd.nested.ragged_dims import in_buffers, permute_ragged
from retrograd.nested.rules.segment_reduce import (
    repeat_rows,
    segment_argreduce,
    segment_logsumexp,
    segment_scale,
    segment_select,
    segment_sum,
)
from retrograd.nested.rules.segment_scan import align_rows, segment_prod
from retrograd.nested.rules.view import elements, over_same
from retrograd.ops.create import as_tensor
from retrograd.ops.family import Reduction, canonical_dims, cast_to, reduced_shape
from retrograd.ops.pointwise import abs, conj, detach, eq, isinf, isnan, logical_or, pow, real_part, where
from retrograd.ops.reduce import LogicalReduction, sqrt_or_zero
from retrograd.ops.view import movedim, reshape, unsqueeze


@family(Reduction)
def reduction(op: Op, args: tuple, params: dict) -> Any:
    """Reduce the buffer, or the rows of each component, or both."""
    x, known = packed(args[0]), layout(args[0])
    if len(args) > 1:
        return NotImplemented
    if params["dim"] == () and issubclass(op.definition, LogicalReduction):
        return over_same(op, x, params)
    dims = canonical_dims(op.name, params["dim"], x.ndim)
    if not known.several:
        return _reduce_scalars(op, x, dims, params)
    if any(d in known.ragged for d in dims):
        check_elements(op, x, dims, params)
    if known.lead in dims:
        return _reduce_all(op, x, dims, params)
    ragged = [d for d in dims if d in known.ragged]
    return _reduce_ragged(op, x, dims, ragged, params) if ragged else _reduce_dense(op, x, dims, params)


def _given(params: dict, dims: Any, keepdim: bool = False) -> dict:
    """Return the params for other dimensions; an integer stays an integer."""
    return {**params, "dim": dims[0] if isinstance(params["dim"], int) else tuple(dims), "keepdim": keepdim}


def check_elements(op: Op, x: Tensor, dims: tuple[int, ...], params: dict, name: str = "") -> None:
    """Check the operator on the smallest component; `name` is for the error."""
    known = layout(x)
    columns = [d - known.ragged.start for d in dims if d in known.ragged]
    least = None if known.lead in dims else segments.smallest(known.structure, columns)
    shape = tuple([1 if isinstance(size, RaggedSize) or d == known.lead else size for d, size in enumerate(x.shape)])
    if least is not None:
        sizes = known.structure.sizes[least].tolist()
        shape = (*shape[: known.ragged.start], *sizes, *shape[known.ragged.stop :])
    try:
        op.definition.shape(Aval(shape, x.dtype), **params)
    except ValueError as error:
        text = f"{name or op.name}:{str(error).split(':', 1)[-1]}"
        raise ValueError(text if least is None else f"{text} (component {least} of a nested tensor)") from None


# ---------------------------------------------------------------------------------- without any ragged dimension


def _reduce_scalars(op: Op, x: Tensor, dims: tuple[int, ...], params: dict) -> Tensor:
    """Reduce components without dimensions: the buffer equals a plain tensor."""
    known = layout(x)
    out: Tensor = call(op, (values(x),), params)
    if known.lead in dims:
        return out
    return over(out, known.structure, 0, known.lead - (0 if params["keepdim"] else len(dims)))


def _reduce_dense(op: Op, x: Tensor, dims: tuple[int, ...], params: dict) -> Tensor:
    """Reduce over dense dimensions."""
    keepdim = params["keepdim"]
    out = call(op, (values(x),), _given(params, in_buffers(layout(x), dims), keepdim))
    return over_reduced(x, out, () if keepdim else dims)


def over_reduced(x: Tensor, buffer: Tensor, dims: Sequence[int]) -> Tensor:
    """Return a nested tensor over another buffer, in the shape of x without the dense dimensions `dims`."""
    known = layout(x)
    lead = sum(d < known.lead for d in dims)
    before = sum(known.lead < d < known.ragged.start for d in dims)
    return over(buffer, known.structure, known.axis - before, known.lead - lead)


# ------------------------------------------------------------------------------------------ over the components


def _reduce_all(op: Op, x: Tensor, dims: tuple[int, ...], params: dict) -> Tensor:
    """Reduce over the components too: with all ragged dimensions, or if their shapes are equal."""
    known, buffer = layout(x), values(x)
    if all(d in dims for d in known.ragged) and (not is_nested(buffer) or _all_ragged(buffer, known, dims)):
        return _reduce_components_and_ragged(op, x, dims, params)
    whole = stacked(x)
    if whole is None:
        raise RuntimeError(_refusal(op, x))
    out: Tensor = call(op, (whole,), params)
    return out


def stacked(x: Tensor) -> Tensor | None:
    """Return the plain tensor of components whose shapes are equal; None if they differ, or there are none."""
    x = packed(x)
    known, buffer = layout(x), values(x)
    sizes = None if is_nested(buffer) else ragged_reshape.equal_sizes(known.structure)
    if sizes is None:
        return None
    row = known.row
    apart = reshape(buffer, (*buffer.shape[:row], len(known.structure), *sizes, *buffer.shape[row + 1 :]))
    return movedim(apart, row, known.lead)


def _all_ragged(buffer: Tensor, known: Layout, dims: tuple[int, ...]) -> bool:
    """Whether `dims` include all ragged dimensions of a nested buffer."""
    inner, moved = layout(buffer), [known.in_buffer(d) for d in dims]
    return all(d in moved for d in inner.ragged)


def _refusal(op: Op, x: Tensor) -> str:
    shapes = component_shapes(x)
    other = next((i for i, s in enumerate(shapes) if s != shapes[0]), None)
    differ = "" if other is None else f": component 0 has shape {shapes[0]}, component {other} shape {shapes[other]}"
    return (
        f"{op.name}: would reduce dimension {layout(x).lead}, the components of a nested tensor, whose shapes "
        f"differ{differ}. Reduce all ragged dimensions with it, or see to_padded_tensor()"
    )


def _reduce_components_and_ragged(op: Op, x: Tensor, dims: tuple[int, ...], params: dict) -> Tensor:
    """Reduce over the components and all ragged dimensions."""
    known = layout(x)
    if params["dim"] is None and op.name in ("argmax", "argmin"):
        found = call(op, (elements(x),), {**params, "keepdim": False})
        return reshape(found, (1,) * x.ndim) if params["keepdim"] else found
    places = [d for d in map(known.in_buffer, dims) if d is not None]
    out = call(op, (values(x),), {**params, "dim": (known.row, *places), "keepdim": False})
    return reshape(out, reduced_shape(x.shape, dims, True)) if params["keepdim"] else out


def _flatten_nested(x: Tensor) -> Tensor:
    """Flatten nested components: their rows become rows of the outer component."""
    known, buffer = layout(x), packed(values(x))
    inner = layout(buffer)
    structure = segments.merge_inner_components(known.structure, inner.structure)
    return over(values(buffer), structure, known.axis + inner.axis, known.lead)


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
        x = call(op, (x,), _given(params, dense))
        ragged, dense = [d - sum(e < d for e in dense) for d in ragged], []
    groups = grouped(op.name, x, ragged, dense)
    rows = REDUCERS[op.name](groups.rows, groups.structure, groups.row, params)
    return groups.result(rows, shape, dims, params["keepdim"])


def _reduce_all_ragged(op: Op, x: Tensor, dims: tuple[int, ...], ragged: list[int], params: dict) -> Tensor:
    """Reduce over all ragged dimensions of nested components at once."""
    known = layout(x)
    if len(ragged) < known.several or not _all_ragged(values(x), known, dims):
        raise RuntimeError(
            f"{op.name}: would reduce dimension {ragged[0]}, along which the components of nested components differ in "
            f"shape; reduce all ragged dimensions behind it too"
        )
    flat = _flatten_nested(x)
    inner = layout(values(x)).ragged
    first, last = known.several + inner.start, known.several + inner.stop
    left = [d if d < known.ragged.start else d - known.several for d in dims if d < first and d not in ragged]
    left += [*layout(flat).ragged, *[d - x.ndim + flat.ndim for d in dims if d >= last]]
    out = call(op, (flat,), {**params, "dim": tuple(left), "keepdim": False})
    return reshape(out, reduced_shape(x.shape, dims, True)) if params["keepdim"] else out


class Groups(NamedTuple):
    """Rows of a buffer in groups, each reduced to one row, and the structure of the result: `left`, or None."""

    rows: Tensor
    structure: Structure
    left: Structure | None
    known: Layout

    @property
    def row(self) -> int:
        """Return the row dimension."""
        return self.known.row

    def result(self, rows: Tensor, shape: tuple, dims: tuple[int, ...], keepdim: bool) -> Tensor:
        """Return the reduced tensor from a row per group; dimensions `dims` of `shape` were reduced."""
        if self.left is None:
            out = movedim(rows, self.row, self.known.lead)
            return reshape(out, reduced_shape(shape, dims, True)) if keepdim else out
        out = over(rows, self.left, self.known.axis, self.known.lead)
        for d in sorted(dims) if keepdim else ():
            out = unsqueeze(out, d)
        return out


def grouped(name: str, x: Tensor, ragged: list[int], dense: list[int]) -> Groups:
    """Group the rows of a nested tensor for a reduction of some ragged and dense dimensions, which are merged."""
    known = layout(x)
    kept = [d for d in known.ragged if d not in ragged]
    if kept or dense:
        front = [d for d in range(known.ragged.start) if d not in dense]
        behind = [d for d in range(known.ragged.stop, x.ndim) if d not in dense]
        block = [*kept, *ragged, *dense]
        x = packed(permute_ragged(name, x, [*front, *block, *behind], len(front), len(front) + len(block)))
    known = layout(x)
    if not kept:
        return Groups(values(x), known.structure, None, known)
    return Groups(values(x), *segments.group_rows(known.structure, len(kept)), known)  # type: ignore[call-arg]


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


def _counts(structure: Structure, x: Tensor, row: int, less: Any = 0) -> Tensor:
    """Return the number of rows of each component minus `less`, in a shape that broadcasts against a row for each."""
    counts: Tensor = align_rows(as_tensor(segments.counts(structure, less, dtypes.real_of(x.dtype))), x, row)
    return counts


def _squares(x: Tensor) -> Tensor:
    return x * x if dtypes.is_floating(x.dtype) else real_part(x * conj(x))


def _variance(x: Tensor, structure: Structure, row: int, params: dict) -> Tensor:
    center = repeat_rows(_mean(x, structure, row, {}), structure=structure, row=row)
    total = segment_sum(_squares(x - center), structure=structure, row=row)
    return total / _counts(structure, total, row, params["correction"])


def _euclidean_norm(x: Tensor, structure: Structure, row: int, params: dict) -> Tensor:
    """Divide rows by the largest of their component, so that squares do not overflow."""
    scaled, scale = _scaled(x, abs(x), structure, row, largest=True)
    return scale * sqrt_or_zero(segment_sum(_squares(scaled), structure=structure, row=row))


def _power_norm(x: Tensor, structure: Structure, row: int, params: dict) -> Tensor:
    """Divide rows by the one with the largest power."""
    p = params["p"]
    scaled, scale = _scaled(x, x, structure, row, largest=p > 0)
    zero = eq(scaled, 0)
    powers = where(zero, 0 if p > 0 else math.inf, pow(where(zero, 1, scaled), p))
    total = segment_sum(powers, structure=structure, row=row)
    none = logical_or(eq(total, 0), isinf(total))
    return scale * where(none, 0, pow(where(none, 1, total), 1 / p))


def _scaled(x: Tensor, size: Tensor, structure: Structure, row: int, largest: bool) -> tuple[Tensor, Tensor]:
    """Return rows divided by the largest or smallest of their component, and that divisor, detached."""
    scale = segment_scale(detach(size), largest=largest, structure=structure, row=row)
    return x / repeat_rows(scale, structure=structure, row=row), scale


def _prod(x: Tensor, structure: Structure, row: int, params: dict) -> Tensor:
    dtype = params["dtype"]
    out = segment_prod(x if dtype is None else cast_to(x, dtype), structure=structure, row=row)
    return out if dtype is None else cast_to(out, dtype)


def _logsumexp(x: Tensor, structure: Structure, row: int, params: dict) -> Tensor:
    return segment_logsumexp(cast_to(x, dtypes.float_of(x.dtype)), structure=structure, row=row)


def _by_kernel(operator: str, primitive: Callable) -> Reducer:
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
    **{name: _by_kernel(name, segment_select) for name in ("amax", "amin", "middle")},
    **{name: _by_kernel(name, segment_argreduce) for name in ("any", "all", "argmax", "argmin")},
}
