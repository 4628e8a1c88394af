"""Operators along a dimension of nested tensors that map over the rest: scans, softmax, sorting."""

from collections.abc import Callable
from typing import Any

from retrograd.backend import segments
from retrograd.backend.ragged import RaggedSize, Structure
from retrograd.core import Aval, Op, Tensor, call, registry
from retrograd.nested.buffer import remove_holes, values
from retrograd.nested.buffer_layout import Layout, get_layout, is_nested
from retrograd.nested.dispatch import rule_for_family
from retrograd.nested.ragged_dims import buffer_dims
from retrograd.nested.rules.pointwise import buffer_operand, wrap_each_like
from retrograd.nested.rules.segment_reduce import local_rows
from retrograd.nested.rules.segment_scan import (
    align_rows,
    log_softmax_back,
    segment_cumprod,
    segment_cumsum,
    segment_log_softmax,
    segment_logcumsumexp,
    segment_recurrence,
    segment_softmax,
    softmax_back,
)
from retrograd.ops.create import as_tensor
from retrograd.ops.family import AlongDims, canonical_dims, cast_to
from retrograd.ops.gather import gather
from retrograd.ops.reduce import sum_dtype


@rule_for_family(AlongDims)
def scan_along(op: Op, args: tuple, params: dict) -> Any:
    """Run the operator on the buffers along a dense dimension, or on the rows of each component."""
    if not all(map(is_nested, args)):
        return NotImplemented
    args = tuple(map(remove_holes, args))
    layout, names = get_layout(args[0]), op.definition.dims.split()
    buffers = [buffer_operand(a, layout) for a in args]
    if any(b is NotImplemented for b in buffers) or any(a.ndim != layout.ndim for a in args):
        return NotImplemented
    given = {name: canonical_dims(op.name, params[name], layout.ndim) for name in names}
    dims = [d for named in given.values() for d in named]
    if not layout.num_ragged or layout.lead in dims:
        return _scan_scalars(op, buffers, layout, params) if not layout.num_ragged else NotImplemented
    if any(d in layout.ragged for d in dims):
        return _scan_rows(op, args, dims, params)
    moved = {name: _like_dim_param(params[name], buffer_dims(layout, dims)) for name, dims in given.items()}
    return wrap_each_like(layout, call(op, tuple(buffers), {**params, **moved}))


def _like_dim_param(given: Any, dims: Any) -> Any:
    return dims[0] if isinstance(given, int) else tuple(dims)


def _scan_scalars(op: Op, buffers: list, layout: Layout, params: dict) -> Any:
    """Run on components without dimensions: the buffers equal plain tensors."""
    out = call(op, tuple(buffers), params)
    rows = out[0] if isinstance(out, tuple) else out
    return wrap_each_like(layout, out) if rows.shape == buffers[0].shape else out


# ----------------------------------------------------------------------------------- along a ragged dimension


def _scan_rows(op: Op, args: tuple, dims: list[int], params: dict) -> Any:
    """Run the operator on the rows of each component."""
    if op.name not in SCANS or len(dims) != 1 or is_nested(values(args[0])):
        return NotImplemented
    check_dtypes(op, args, params)
    order = swap_with_last(get_layout(args[0]), dims[0])
    permuted = [a if order is None else remove_holes(registry["permute"](a, order)) for a in args]
    layout = get_layout(permuted[0])
    structure = (
        segments.group_rows(layout.structure, layout.num_ragged - 1)[0] if layout.num_ragged > 1 else layout.structure
    )
    out = SCANS[op.name]([values(a) for a in permuted], structure, layout.row, params)
    out = wrap_each_like(layout, out)
    if order is None:
        return out
    return tuple([_restore_order(o, order) for o in out]) if isinstance(out, tuple) else _restore_order(out, order)


def check_dtypes(op: Op, args: tuple, params: dict) -> None:
    """Check the operator for these dtypes."""
    avals = [Aval([1 if isinstance(size, RaggedSize) else size for size in a.shape], a.dtype) for a in args]
    op.definition.shape(*avals, **params)


def swap_with_last(layout: Layout, dim: int) -> tuple[int, ...] | None:
    """Return a permutation that swaps a ragged dimension with the last ragged one; None if it is that one."""
    last = layout.ragged.stop - 1
    if dim == last:
        return None
    order = list(range(layout.ndim))
    order[dim], order[last] = last, dim
    return tuple(order)


def _restore_order(x: Tensor, order: tuple[int, ...]) -> Tensor:
    out: Tensor = registry["permute"](x, order)  # two of them were swapped
    return out


Scan = Callable[[list[Tensor], Structure, int, dict], Any]  # (rows of each operand, structure, row, params)


def _casting_scan(primitive: Callable) -> Scan:
    def scan(xs: list[Tensor], structure: Structure, row: int, params: dict) -> Any:
        x = xs[0] if params["dtype"] is None else cast_to(xs[0], params["dtype"])
        return primitive(x, structure=structure, row=row)

    return scan


def _direct_scan(primitive: Callable) -> Scan:
    def scan(xs: list[Tensor], structure: Structure, row: int, params: dict) -> Any:
        return primitive(*xs, structure=structure, row=row)

    return scan


def _cumulative_scan(primitive: Callable) -> Scan:
    def scan(xs: list[Tensor], structure: Structure, row: int, params: dict) -> Any:
        dtype = sum_dtype(xs[0], params["dtype"])
        return cast_to(primitive(cast_to(xs[0], dtype), structure=structure, row=row), dtype)

    return scan


def _local_indices(operator: str) -> Scan:
    """Return a scan with the index in its component of each element of the result."""

    def scan(xs: list[Tensor], structure: Structure, row: int, params: dict) -> Tensor:
        given = {k: v for k, v in params.items() if k != "dim"}
        indices: Tensor = local_rows(xs[0], operator=operator, structure=structure, row=row, params=given)
        return indices

    return scan


def take_rows(x: Tensor, indices: Tensor, structure: Structure, row: int) -> Tensor:
    """Return the elements at these indices in their components, for each row."""
    firsts = align_rows(as_tensor(segments.starts(structure)), x, row)
    out: Tensor = gather(x, row, indices + firsts)
    return out


def _running_extremes(xs: list[Tensor], structure: Structure, row: int, params: dict) -> tuple[Tensor, Tensor]:
    indices = _local_indices("running_extremes")(xs, structure, row, params)
    return take_rows(xs[0], indices, structure, row), indices


def _sorted_values(xs: list[Tensor], structure: Structure, row: int, params: dict) -> Tensor:
    indices = _local_indices("argsort")(xs, structure, row, {**params, "stable": True})
    return take_rows(xs[0], indices, structure, row)


SCANS: dict[str, Scan] = {
    "softmax": _casting_scan(segment_softmax),
    "log_softmax": _casting_scan(segment_log_softmax),
    "softmax_grad": _direct_scan(softmax_back),
    "log_softmax_grad": _direct_scan(log_softmax_back),
    "cumsum": _cumulative_scan(segment_cumsum),
    "cumprod": _cumulative_scan(segment_cumprod),
    "logcumsumexp": _direct_scan(segment_logcumsumexp),
    "linear_recurrence": _direct_scan(segment_recurrence),
    "argsort": _local_indices("argsort"),
    "sorted_values": _sorted_values,
    "running_extremes": _running_extremes,
}
