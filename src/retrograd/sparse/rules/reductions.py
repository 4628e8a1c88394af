"""Sums, norms and softmax of sparse tensors."""

from typing import Any

from retrograd.backend.sparse_pattern import Compressed, fibers, without
from retrograd.core import Op, Tensor, registry
from retrograd.ops.create import as_tensor
from retrograd.ops.family import canonical_dim, canonical_dims
from retrograd.sparse.conversions import to_layout_of
from retrograd.sparse.dispatch import refuse, rule_for
from retrograd.sparse.primitives import add_at, entries, pattern_of, take, unique_entries, wrap


@rule_for("sum")
def _sum(op: Op, args: tuple, params: dict) -> Any:
    x = args[0]
    if params.get("dtype") is not None:
        x = x.to(params["dtype"])
    return sum_over(x, params["dim"], params["keepdim"])


def sum_over(x: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
    """Return the sum over some dimensions: dense if none of the sparse ones is left."""
    dims = canonical_dims("sum", dim, x.ndim)
    where, rows = entries(x)
    sparse = len(where.sizes)
    dense = tuple([d - sparse + 1 for d in dims if d >= sparse])
    rows = registry["sum"](rows, dim=dense, keepdim=keepdim) if dense else rows
    over = [d for d in dims if d < sparse]
    if not over:
        return wrap(rows, where)
    if len(over) == sparse and not keepdim:
        return registry["sum"](rows, dim=0)
    unique, number = without(where, over, keepdim)
    out = wrap(add_at(rows, number, unique.nnz), unique)
    return to_layout_of(x, out) if isinstance(pattern_of(x), Compressed) and out.ndim > 1 else out


@rule_for("any")
def _any(op: Op, args: tuple, params: dict) -> Any:
    if params["dim"] is not None:
        raise refuse(op.name, args[0], "only any() of all elements is there")
    return op(unique_entries(args[0])[1])


@rule_for("norm")
def _norm(op: Op, args: tuple, params: dict) -> Any:
    if params["dim"] is not None or params["keepdim"] or (isinstance(params["p"], str) and params["p"] != "fro"):
        raise refuse(op.name, args[0], "only norm(p) of all elements, with a number p, is there")
    p = 2 if isinstance(params["p"], str) else params["p"]
    if p <= 0:
        raise refuse(op.name, args[0], "zeros count in a norm of order 0 and below")
    rows = unique_entries(args[0])[1]
    return registry["linalg.vector_norm"](rows, p, dtype=params["dtype"])


@rule_for("euclidean_norm")
def _euclidean_norm(op: Op, args: tuple, params: dict) -> Any:
    return op(unique_entries(args[0])[1])


# ----------------------------------------------------------------------------------------------------- softmax


def softmax(name: str, x: Tensor, dim: int) -> Tensor:
    """Return the softmax, or log_softmax, along a dimension, of the entries only: absent ones count as -inf."""
    dim = canonical_dim(name, dim, x.ndim)
    unique, rows = unique_entries(x)
    if dim >= len(unique.sizes):
        return wrap(registry[name](rows, dim - len(unique.sizes) + 1), unique)
    lines, count = fibers(unique, dim)
    shifted = rows - take(_line_maxima(rows, lines, count), lines)
    powers = registry["exp"](shifted)
    totals = take(add_at(powers, lines, count), lines)
    return wrap(powers / totals if name == "softmax" else shifted - registry["log"](totals), unique)


def _line_maxima(rows: Tensor, lines: Any, count: int) -> Tensor:
    """Return the maximum of the entries of each line, as a constant."""
    least = registry["full"]((count, *rows.shape[1:]), -float("inf"), dtype=rows.dtype)
    index = as_tensor(lines).reshape((-1, *(1,) * (rows.ndim - 1))).expand(rows.shape)
    found: Tensor = registry["scatter_max"](least, index, rows.detach(), dim=0)
    return found
