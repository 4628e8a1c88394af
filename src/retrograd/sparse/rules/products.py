"""Matrix products with sparse factors, by two operators that are each other's derivatives."""

from typing import Any

from retrograd.backend import sparse_products
from retrograd.backend.sparse_array import index_array
from retrograd.backend.sparse_pattern import Coordinates, block_diagonal, product
from retrograd.core import Aval, Internal, Op, Tensor, op, registry
from retrograd.ops.batching import batch_all
from retrograd.ops.opmath import Family
from retrograd.sparse.conversions import to_layout_of
from retrograd.sparse.dispatch import refuse, rule_for
from retrograd.sparse.primitives import (
    add_at,
    entries,
    is_sparse,
    take,
    unique_entries,
    wrap,
)


def _pattern() -> Coordinates:
    return Coordinates(index_array("", [[0, 1, 1], [2, 0, 2]]), (2, 3), True)


@op("sparse.times_dense(Tensor values, Tensor dense, *, any pattern) -> Tensor")
class times_dense(Internal, Family, linear="values dense"):
    """The product of the sparse matrix with these values and a dense one (k, n)."""

    def impl(xp, values, dense, *, pattern):
        return xp.sparse_products.times_dense(values, dense, pattern)

    def shape(values, dense, *, pattern):
        return Aval((pattern.sizes[0], dense.shape[1]), dense.dtype)

    def vjp_values(g, dense, pattern):
        return sampled(g, dense, pattern=pattern)

    def vjp_dense(g, values, pattern):
        return times_dense(values, g, pattern=pattern.transposed((1, 0)))

    def batch(batched, n, values, dense, *, pattern):
        if not batched[0]:
            columns = dense.permute(1, 0, 2)
            out = times_dense(values, columns.reshape((columns.shape[0], -1)), pattern=pattern)
            return out.reshape((out.shape[0], n, dense.shape[2])).permute(1, 0, 2)
        values, dense = batch_all((values, dense), batched, n)
        whole = block_diagonal(pattern, n)
        rows = dense.reshape((n * dense.shape[1], dense.shape[2]))
        return times_dense(values.reshape((-1,)), rows, pattern=whole).reshape((n, pattern.sizes[0], dense.shape[2]))

    def samples(r):
        yield (r(3), r(3, 2)), {"pattern": _pattern()}


@op("sparse.sampled(Tensor a, Tensor b, *, any pattern) -> Tensor")
class sampled(Internal, Family, linear="a b"):
    """The elements of a @ b.mT at the positions of a pattern: (m, k) and (n, k) to (entries,)."""

    def impl(xp, a, b, *, pattern):
        return xp.sparse_products.sampled(a, b, pattern)

    def shape(a, b, *, pattern):
        return Aval((pattern.nnz,), a.dtype)

    def vjp_a(g, b, pattern):
        return times_dense(g, b, pattern=pattern)

    def vjp_b(g, a, pattern):
        return times_dense(g, a, pattern=pattern.transposed((1, 0)))

    def batch(batched, n, a, b, *, pattern):
        a, b = batch_all((a, b), batched, n)
        rows = [x.reshape((n * x.shape[1], x.shape[2])) for x in (a, b)]
        return sampled(*rows, pattern=block_diagonal(pattern, n)).reshape((n, pattern.nnz))

    def samples(r):
        yield (r(2, 4), r(3, 4)), {"pattern": _pattern()}


# ------------------------------------------------------------------------------------------------------- rules


@rule_for("matmul")
def matmul(op: Op, args: tuple, params: dict) -> Any:
    """Multiply matrices and vectors, and batches of matrices, one or both of them sparse."""
    a, b = args
    if any(not isinstance(x, Tensor) for x in args) or min(a.ndim, b.ndim) == 0:
        raise RuntimeError(f"{op.name}: expected vectors or matrices, got {a} and {b}")
    if a.dtype != b.dtype:
        raise RuntimeError(f"{op.name}: operands must have one dtype, got {a.dtype} and {b.dtype}; see .to(dtype)")
    if a.ndim == b.ndim == 1:
        raise refuse("dot", a if is_sparse(a) else b)
    if max(a.ndim, b.ndim) > 2:
        return _batched(op, a, b)
    if b.ndim == 1:
        return _remove_column(op, a, b)
    if a.ndim == 1:
        return op(registry["transpose"](b, 0, 1), a)
    check_product("addmm", a, b)
    if is_sparse(a):
        return sparse_sparse(a, b) if is_sparse(b) else sparse_dense(a, b)
    return sparse_dense(registry["transpose"](b, 0, 1), registry["transpose"](a, 0, 1)).permute(1, 0)


def _remove_column(op: Op, a: Tensor, b: Tensor) -> Tensor:
    """Multiply a matrix and a vector."""
    if is_sparse(b):
        raise refuse("mv", b, "a vector that a matrix multiplies must be dense")
    check_product("mv", a, b)
    out: Tensor = op(a, b.unsqueeze(1)).squeeze(1)
    return out


def _batched(op: Op, a: Tensor, b: Tensor) -> Tensor:
    """Multiply batches of matrices with a COO one in front, matrix by matrix."""
    if not is_sparse(a) or is_sparse(b) or a.ndim != 3 or b.ndim != 3 or a.shape[0] != b.shape[0]:
        raise refuse("bmm", a if is_sparse(a) else b, "only bmm(sparse, dense) of equal batch sizes is there")
    out: Tensor = registry["stack"]([op(a[i], b[i]) for i in range(a.shape[0])])
    return out


def check_product(name: str, a: Tensor, b: Tensor) -> None:
    """Raise RuntimeError, in PyTorch's words, unless two matrices fit."""
    if a.ndim != 2 or a.shape[1] != b.shape[0]:
        raise RuntimeError(
            f"{name}: Argument #3 (dense): Expected dim 0 size {a.shape[-1]}, got {b.shape[0]}: shapes {a.shape} and "
            f"{b.shape} do not fit"
        )


def sparse_dense(a: Tensor, b: Tensor) -> Tensor:
    """Return the dense product of a sparse matrix and a dense one."""
    where, rows = entries(a)
    if len(where.sizes) != 2:
        raise refuse("mm", a, "a matrix with dense dimensions is no factor")
    out: Tensor = times_dense(rows, b, pattern=where)
    return out


def sparse_sparse(a: Tensor, b: Tensor) -> Tensor:
    """Return the sparse product of sparse matrices, in the layout of the first one."""
    (first, left), (second, right) = unique_entries(a), unique_entries(b)
    if len(first.sizes) != 2 or len(second.sizes) != 2:
        raise refuse("mm", a, "a matrix with dense dimensions is no factor")
    unique, i, j, number = product(first, second)
    return to_layout_of(a, wrap(add_at(take(left, i) * take(right, j), number, unique.nnz), unique))


@rule_for("linear")
def _linear(op: Op, args: tuple, params: dict) -> Any:
    """Multiply by a sparse weight, transposed."""
    x, weight, bias = args
    if is_sparse(x) or x.ndim > 2:
        raise refuse(op.name, next(a for a in args if is_sparse(a)), "it takes a sparse weight, and x of 1 or 2 dims")
    out = registry["matmul"](x, registry["transpose"](weight, 0, 1))
    return out if bias is None else out + bias


def rows_of_product(a: Tensor, b: Tensor) -> tuple[Coordinates, Tensor]:
    """Return the coordinates of the nonempty rows of a sparse matrix, and these rows of its product with b."""
    if a.ndim != 2 or b.ndim != 2 or is_sparse(b):
        raise RuntimeError(f"hspmm: expected a sparse matrix and a dense one, got shapes {a.shape} and {b.shape}")
    check_product("hspmm", a, b)
    where, rows = unique_entries(a)
    lines = Coordinates(where.indices[:1], where.sizes[:1])
    unique, number, _ = lines.groups
    compact = Coordinates(sparse_products.pair(number, where.indices[1]), (unique.nnz, where.sizes[1]), True)
    return unique, times_dense(rows, b, pattern=compact)
