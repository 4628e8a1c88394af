"""Pointwise operators that map 0 to 0: on the values; sums and products of sparse tensors."""

from typing import Any

from retrograd.backend.sparse_pattern import Compressed, empty, lookup, subset, union
from retrograd.core import Op, Tensor, registry
from retrograd.ops.family import broadcast_shapes
from retrograd.sparse.conversions import to_dense, to_layout_of
from retrograd.sparse.dispatch import refuse, rule_for
from retrograd.sparse.primitives import (
    add_at,
    entries,
    is_sparse,
    pattern_of,
    take,
    unique_entries,
    values_at,
    values_of,
    wrap,
)

KEEP_ZERO = (
    "abs asin asinh atan atanh ceil deg2rad erf erfinv expm1 floor frac isinf isnan isneginf isposinf log1p nan_to_num "
    "neg rad2deg relu round sgn sign signbit sin sinh sqrt square tan tanh trunc"
)
LINEAR = "to clone detach conj row_major"


@rule_for(*LINEAR.split())
def on_entries(op: Op, args: tuple, params: dict) -> Any:
    """Run the operator on the values."""
    return wrap(op(values_of(args[0]), **params), pattern_of(args[0]))


@rule_for(*KEEP_ZERO.split())
def on_elements(op: Op, args: tuple, params: dict) -> Any:
    """Run the operator on the values of unique entries, since it need not be linear."""
    x = args[0]
    if isinstance(pattern_of(x), Compressed):
        return on_entries(op, args, params)
    unique, rows = unique_entries(x)
    return wrap(op(rows, **params), unique)


@rule_for("clamp_numbers")
def _clamp(op: Op, args: tuple, params: dict) -> Any:
    """Clamp the values to a range that contains 0."""
    least, most = params["min"], params["max"]
    if (least or 0) > 0 or (0 if most is None else most) < 0:
        raise refuse("clamp", args[0], f"a range without 0 ({least} to {most}) would make zeros entries")
    return on_elements(op, args, params)


@rule_for("zeros_like")
def _zeros_like(op: Op, args: tuple, params: dict) -> Any:
    """Return the tensor without entries."""
    x = args[0]
    pattern = pattern_of(x)
    if isinstance(pattern, Compressed) and pattern.batch:
        return wrap(op(values_of(x), **params), pattern)
    bare = empty(pattern.layout, x.shape, len(pattern.sizes), getattr(pattern, "block", ()))
    rows = registry["zeros"](bare.values_shape(x.shape[len(pattern.sizes) :]), dtype=params.get("dtype") or x.dtype)
    return wrap(rows, bare)


# ------------------------------------------------------------------------------------------------ by numbers


def is_number(a: Any) -> bool:
    """Whether an operand is a number, or a dense tensor without dimensions."""
    return not is_sparse(a) and getattr(a, "ndim", 0) == 0


@rule_for("div", "floor_divide")
def _div(op: Op, args: tuple, params: dict) -> Any:
    """Divide the values by a number."""
    a, b = args
    if not is_sparse(a):
        raise refuse("reciprocal", b, "division by zeros")
    if not is_number(b):
        raise RuntimeError(
            f"{op.name}: Sparse division requires a scalar or zero-dim dense tensor divisor (got shape "
            f"{list(b.shape)} for divisor)"
        )
    return (on_entries if op.name == "div" else on_elements)(_with(op, b), (a,), params)


class _Partial:
    """An operator with its second operand."""

    def __init__(self, op: Op, b: Any) -> None:
        self.op, self.b = op, b

    def __call__(self, a: Tensor, **params: Any) -> Any:
        return self.op(a, self.b, **params)


def _with(op: Op, b: Any) -> Any:
    return _Partial(op, b)


@rule_for("pow")
def _pow(op: Op, args: tuple, params: dict) -> Any:
    """Raise the values to a positive power."""
    a, b = args
    if not is_sparse(a) or isinstance(b, Tensor) or b <= 0:
        raise refuse("pow", a if is_sparse(a) else b, "only x ** number, with a number above 0, maps 0 to 0")
    return on_elements(_with(op, b), (a,), params)


# ---------------------------------------------------------------------------------------------- sums, products


@rule_for("add", "sub")
def add(op: Op, args: tuple, params: dict) -> Any:
    """Add or subtract tensors of one shape; a dense one and a sparse one give a dense one."""
    a, b = args
    if not is_sparse(b) and isinstance(pattern_of(a), Compressed) and not is_number(b):
        _check_equal_shapes(op.name, b, a)
        return op(to_dense(a), b, **params)
    if not is_sparse(b):
        raise RuntimeError(
            f"{op.name}: add(sparse, dense) is not supported. Use add(dense, sparse) instead. The sparse tensor has "
            f"shape {a.shape}; x.to_dense() is dense"
        )
    if not is_sparse(a):
        _check_equal_shapes(op.name, a, b, " (FYI: dense-sparse addition does not currently support broadcasting)")
        return op(a, to_dense(b), **params)
    _check_equal_shapes(op.name, a, b)
    mine, its = pattern_of(a), pattern_of(b)
    if mine == its:
        return wrap(op(values_of(a), values_of(b), **params), mine)
    (first, left), (second, right) = entries(a), entries(b)
    unique, at, other = union(first, second)
    return to_layout_of(a, wrap(op(add_at(left, at, unique.nnz), add_at(right, other, unique.nnz)), unique))


def _check_equal_shapes(name: str, a: Any, b: Any, more: str = "") -> None:
    its = list(getattr(a, "shape", ()))
    if its != list(b.shape):
        raise RuntimeError(
            f"{name}: add: expected 'self' and 'other' to have same size, but self has size {its} while other has size "
            f"{list(b.shape)}{more}"
        )


@rule_for("mul")
def _mul(op: Op, args: tuple, params: dict) -> Any:
    """Multiply by a number, by a dense tensor at the entries, or by a sparse one where both have entries."""
    a, b = args
    if not is_sparse(a):
        a, b = b, a
    if is_number(b):
        return on_entries(_with(op, b), (a,), params)
    if not is_sparse(b):
        if broadcast_shapes(op.name, [a.shape, b.shape]) != a.shape:
            raise RuntimeError(f"mul: a dense tensor of shape {b.shape} does not fit a sparse one of shape {a.shape}")
        pattern = pattern_of(a)
        return wrap(op(values_of(a), values_at(b.expand(a.shape), pattern)), pattern)
    if a.shape != b.shape:
        raise RuntimeError(f"mul: operands of sparse products have one shape, got {a.shape} and {b.shape}")
    (first, left), (second, right) = unique_entries(a), unique_entries(b)
    at, there = lookup(first, second)
    both, mine = subset(first, there)
    return to_layout_of(a, wrap(op(take(left, mine), take(right, at[mine])), both))
