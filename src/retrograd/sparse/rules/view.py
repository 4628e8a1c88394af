"""Transposing, slicing, selecting and joining sparse tensors: on patterns, and on values along dense dimensions."""

from typing import Any

from retrograd.backend import sparse_pattern
from retrograd.backend.sparse_pattern import Compressed
from retrograd.core import Op, Tensor, registry
from retrograd.ops.family import canonical_dim, canonical_dims
from retrograd.ops.methods import concrete
from retrograd.ops.view import stack_by_cat
from retrograd.sparse.conversions import to_coordinates
from retrograd.sparse.dispatch import refuse, rule_for
from retrograd.sparse.primitives import entries, is_sparse, pattern_of, take, values_of, wrap


@rule_for("transpose")
def _transpose(op: Op, args: tuple, params: dict) -> Any:
    x = args[0]
    first, last = (canonical_dim(op.name, params[k], x.ndim) for k in ("dim0", "dim1"))
    order = list(range(x.ndim))
    order[first], order[last] = last, first
    return permute(op.name, x, order)


@rule_for("permute")
def _permute(op: Op, args: tuple, params: dict) -> Any:
    x = args[0]
    dims = params["dims"]
    order = canonical_dims(op.name, dims[0] if len(dims) == 1 and isinstance(dims[0], tuple | list) else dims, x.ndim)
    return permute(op.name, x, list(order))


def permute(name: str, x: Tensor, order: list[int]) -> Tensor:
    """Return a sparse tensor with its dimensions in another order, sparse ones before dense ones."""
    pattern = pattern_of(x)
    sparse = len(pattern.sizes)
    if order == list(range(x.ndim)):
        return wrap(values_of(x), pattern)
    if sorted(order[:sparse]) != list(range(sparse)):
        moved = [d for d, o in enumerate(order) if d != o]
        raise RuntimeError(
            f"sparse {name}: transposed dimensions must be sparse Got sparse_dim: {sparse}, d0: {moved[0]}, d1: "
            f"{moved[-1]}; x.to_dense() has no such limit"
        )
    rows = values_of(x)
    dense = [pattern.lead + d - sparse for d in order[sparse:]]
    if dense != list(range(pattern.lead, rows.ndim)):
        rows = registry["permute"](rows, (*range(pattern.lead), *dense))
    if order[:sparse] == list(range(sparse)):
        return wrap(rows, pattern)
    if not isinstance(pattern, Compressed):
        return wrap(rows, pattern.transposed(order[:sparse]))
    if order[: sparse - 2] != list(range(sparse - 2)):
        raise refuse(name, x, "batch dimensions of compressed layouts can't be moved")
    if pattern.block:
        rows = registry["transpose"](rows, pattern.lead - 2, pattern.lead - 1)
    return wrap(rows, pattern.transpose())


@rule_for("unsqueeze")
def _unsqueeze(op: Op, args: tuple, params: dict) -> Any:
    x = args[0]
    dim = canonical_dim(op.name, params["dim"], x.ndim + 1)
    pattern = _coordinates("unsqueeze", x)
    if dim <= len(pattern.sizes):
        return wrap(values_of(x), sparse_pattern.unsqueeze(pattern, dim))
    return wrap(op(values_of(x), dim - len(pattern.sizes) + 1), pattern)


def _coordinates(name: str, x: Tensor) -> Any:
    """Return the pattern of a COO tensor; refuse other layouts."""
    pattern = pattern_of(x)
    if isinstance(pattern, Compressed):
        raise refuse(name, x, f"it is for the layout sparse_coo, not {pattern.layout}: see x.to_sparse()")
    return pattern


# -------------------------------------------------------------------------------------------------- selections


@rule_for("select")
def _select(op: Op, args: tuple, params: dict) -> Any:
    x = args[0]
    dim = canonical_dim(op.name, params["dim"], x.ndim)
    index = params["index"]
    if not -x.shape[dim] <= index < x.shape[dim]:
        raise IndexError(f"select(): index {index} out of range for tensor of size {list(x.shape)} at dimension {dim}")
    return select(x, dim, index % x.shape[dim])


def select(x: Tensor, dim: int, index: int) -> Tensor:
    """Return a slice of a sparse tensor, without that dimension; dense if no sparse dimension is left.

    A part of a batch of compressed matrices has their layout, other slices are COO.
    """
    compressed = pattern_of(x)
    if isinstance(compressed, Compressed) and dim < len(compressed.batch):
        return wrap(registry["select"](values_of(x), dim, index), compressed.select_batch(dim, index))
    where, rows = entries(x)
    sparse = len(where.sizes)
    if dim >= sparse:
        return wrap(registry["select"](rows, dim - sparse + 1, index), where)
    pattern, chosen = sparse_pattern.slice_at(where, dim, index)
    found = take(rows, chosen)
    return wrap(found, pattern) if sparse > 1 else registry["sum"](found, dim=0)


@rule_for("narrow")
def _narrow(op: Op, args: tuple, params: dict) -> Any:
    x, start, length = args[0], params["start"], params["length"]
    dim = canonical_dim(op.name, params["dim"], x.ndim)
    start = start + x.shape[dim] if start < 0 else start
    if not 0 <= start <= start + length <= x.shape[dim]:
        raise RuntimeError(
            f"narrow: start ({start}) + length ({length}) exceeds dimension size ({x.shape[dim]}) of shape {x.shape}"
        )
    return narrow(x, dim, start, length)


def narrow(x: Tensor, dim: int, start: int, length: int) -> Tensor:
    """Return a range of a COO tensor along a dimension."""
    pattern = _coordinates("narrow", x)
    if dim >= len(pattern.sizes):
        return wrap(registry["narrow"](values_of(x), dim - len(pattern.sizes) + 1, start, length), pattern)
    inside, chosen = sparse_pattern.window(pattern, dim, start, length)
    return wrap(take(values_of(x), chosen), inside)


@rule_for("slice")
def _basic_slice(op: Op, args: tuple, params: dict) -> Any:
    """Index by integers, None, the ellipsis and slices with step 1."""
    x, spec = args[0], params["spec"]
    count = sum(s is not None and s is not Ellipsis for s in spec)
    if count > x.ndim:
        raise IndexError(f"index: too many indices for tensor of dimension {x.ndim}")
    at = spec.index(Ellipsis) if Ellipsis in spec else len(spec)
    spec = (*spec[:at], *(slice(None),) * (x.ndim - count), *spec[at + 1 :])
    dim = 0
    for item in spec:
        if item is None:
            x = registry["unsqueeze"](x, dim)
        elif isinstance(item, slice):
            x = _slice(x, dim, item)
        else:
            x = _index_at(x, dim, item)
            continue
        dim += 1
    return x


def _slice(x: Tensor, dim: int, item: slice) -> Tensor:
    start, stop, step = item.indices(x.shape[dim])
    if (start, stop, step) == (0, x.shape[dim], 1):
        return x
    if step != 1:
        raise NotImplementedError(f"index: a sparse tensor has no slices with step {step}; x.to_dense() has")
    return registry["narrow"](x, dim, start, max(stop - start, 0))


def _index_at(x: Tensor, dim: int, index: int) -> Tensor:
    size = x.shape[dim]
    if not -size <= index < size:
        raise IndexError(f"index {index} is out of bounds for dimension {dim} with size {size}")
    return registry["select"](x, dim, index)


@rule_for("unbind")
def _unbind(op: Op, args: tuple, params: dict) -> Any:
    x = args[0]
    dim = canonical_dim(op.name, params["dim"], x.ndim)
    return tuple([select(x, dim, i) for i in range(x.shape[dim])])


@rule_for("index_select")
def _index_select(op: Op, args: tuple, params: dict) -> Any:
    x, index = args
    dim = canonical_dim(op.name, params["dim"], x.ndim)
    pattern = _coordinates(op.name, x)
    if dim >= len(pattern.sizes):
        return wrap(op(values_of(x), dim - len(pattern.sizes) + 1, index), pattern)
    wanted = concrete(index).reshape(-1)
    wanted = sparse_pattern.checked_rows(op.name, wanted, x.shape[dim])
    selected, chosen = sparse_pattern.select_rows(pattern, dim, wanted)
    return wrap(take(values_of(x), chosen), selected)


# ------------------------------------------------------------------------------------------------------ joins


@rule_for("cat")
def _cat(op: Op, args: tuple, params: dict) -> Any:
    """Join COO tensors along a sparse dimension, or along a dense one, and fill their values with zeros."""
    for position, x in enumerate(args):
        if not is_sparse(x):
            raise RuntimeError(f"Concatenating sparse tensors, but a dense tensor was found at position {position}.")
    parts = [to_coordinates(x) for x in args]
    first = parts[0]
    dim = canonical_dim(op.name, params["dim"], first.ndim)
    patterns = [pattern_of(x) for x in parts]
    sparse = len(patterns[0].sizes)
    for position, (x, pattern) in enumerate(zip(parts, patterns, strict=True)):
        rest = [d for d in range(first.ndim) if d != dim]
        if x.ndim != first.ndim or len(pattern.sizes) != sparse or any(x.shape[d] != first.shape[d] for d in rest):
            raise RuntimeError(
                f"cat: All tensors must have the same shape: {list(first.shape)} (except in the concatenating "
                f"dimension {dim}), and the same sparse_dim, but found shape: {list(x.shape)} at position {position}"
            )
    if dim < sparse:
        return wrap(op([values_of(x) for x in parts]), sparse_pattern.concatenate(patterns, dim))
    return wrap(_padded_values(op, parts, dim - sparse + 1), sparse_pattern.join(patterns))


@rule_for("stack")
def _stack(op: Op, args: tuple, params: dict) -> Any:
    return stack_by_cat(args, params["dim"])


def _padded_values(op: Op, parts: list[Tensor], axis: int) -> Tensor:
    """Return the values of all tensors, each with zeros where the others' are along a dense dimension."""
    rows = [values_of(x) for x in parts]
    padded = []
    for number, own in enumerate(rows):
        sizes = [r.shape[axis] for r in rows]
        around = [(*own.shape[:axis], sum(s), *own.shape[axis + 1 :]) for s in (sizes[:number], sizes[number + 1 :])]
        before, after = (registry["zeros"](shape, dtype=own.dtype) for shape in around)
        padded.append(op([before, own, after], dim=axis))
    joined: Tensor = op(padded)
    return joined
