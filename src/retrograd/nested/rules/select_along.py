"""Operators that return elements and their indices: the largest, the median, sorted ones."""

from typing import Any

from retrograd.backend import ragged_slicing
from retrograd.core import Op, Tensor, call, registry
from retrograd.nested.buffer import remove_holes, values
from retrograd.nested.buffer_layout import get_layout, is_nested
from retrograd.nested.dispatch import rule_for
from retrograd.nested.rules.reduce import check_elements, group_for_reduction, wrap_reduced
from retrograd.nested.rules.segment_reduce import segment_argreduce
from retrograd.nested.rules.segment_scan import align_rows
from retrograd.ops.create import as_tensor
from retrograd.ops.family import canonical_dim
from retrograd.ops.gather import gather
from retrograd.ops.max_min import amax, amin

FINDERS: dict[str, tuple[str, dict]] = {  # the operator that finds the index of the selected element along `dim`
    "max": ("argmax", {"keepdim": True}),
    "min": ("argmin", {"keepdim": True}),
    "median": ("median_indices", {"skip_nan": False}),
    "nanmedian": ("median_indices", {"skip_nan": True}),
    "mode": ("mode_indices", {}),
    "kthvalue": ("kth_indices", {}),
}


@rule_for(*FINDERS)
def select_along(op: Op, args: tuple, params: dict) -> Any:
    """Select along a dimension of the buffer, or among the rows of each component."""
    x, dim = args[0], params["dim"]
    dim = -1 if dim is None and op.name == "kthvalue" else dim
    if not is_nested(x) or not isinstance(dim, int) or any(a is not None for a in args[1:]):
        return NotImplemented
    x, layout = remove_holes(x), get_layout(x)
    dim = canonical_dim(op.name, dim, x.ndim)
    if dim in layout.ragged:
        return NotImplemented if is_nested(values(x)) else _among_rows(op, x, dim, params)
    if dim != layout.lead or not layout.num_ragged:
        place = layout.buffer_dim(dim) if layout.num_ragged else dim
        out = call(op, (values(x), *args[1:]), {**params, "dim": place})
        if dim == layout.lead:
            return out
        return tuple([wrap_reduced(x, o, () if params["keepdim"] else (dim,)) for o in out])
    return NotImplemented


def _among_rows(op: Op, x: Tensor, dim: int, params: dict) -> tuple[Tensor, Tensor]:
    """Select among the rows of each component."""
    operator, given = FINDERS[op.name]
    given = {**given, "k": params["k"]} if "k" in params else given
    if len(get_layout(x).structure):
        check_elements(registry[operator], x, (dim,), {**given, "dim": dim}, op.name)
    groups = group_for_reduction(op.name, x, [dim], [])
    rows, structure, row = groups.rows, groups.structure, groups.row
    indices = segment_argreduce(rows, operator=operator, structure=structure, row=row, params=given)
    firsts = align_rows(as_tensor(ragged_slicing.first_rows(structure)), rows, row)
    found = gather(rows, row, indices + firsts)
    found, indices = (groups.result(o, x.shape, (dim,), params["keepdim"]) for o in (found, indices))
    return found, indices


@rule_for("select_along")
def _values_and_indices(op: Op, args: tuple, params: dict) -> Any:
    """Find the indices, and take the elements there, by two operators with rules of their own."""
    (x,), dim = args, canonical_dim(op.name, params["dim"], args[0].ndim)
    indices = call(registry[params["finder"]], (x,), {**params["given"], "dim": dim})
    found = gather(x, dim, indices), indices
    return found if params["keepdim"] else tuple([registry["squeeze"](o, (dim,)) for o in found])


@rule_for("aminmax")
def _aminmax(op: Op, args: tuple, params: dict) -> tuple[Tensor, Tensor]:
    """Compute both results; they raise an error for an empty input."""
    dim = None if params["dim"] is None else (params["dim"],)
    return amin(args[0], dim, params["keepdim"]), amax(args[0], dim, params["keepdim"])


@rule_for("sort")
def _sort(op: Op, args: tuple, params: dict) -> Any:
    """Return the indices from `argsort`, and the sorted values."""
    (x,), descending = args, params["descending"]
    dim = canonical_dim("sort", params["dim"], x.ndim)
    indices = registry["argsort"](x, dim, descending, True)
    return registry["sorted_values"](x, dim=dim, descending=descending), indices
