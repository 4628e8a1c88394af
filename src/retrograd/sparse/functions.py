"""Functions on sparse matrices: products, sums, softmax; those of `rg.sparse`, and some in `rg`."""

from typing import Any

from retrograd.backend.sparse_pattern import Compressed, Coordinates, full, join
from retrograd.core import Tensor, registry
from retrograd.foundation.suggestions import suggest_in_module, suggest_keywords
from retrograd.ops.create import arange, zeros
from retrograd.ops.functions import function, overridable
from retrograd.ops.methods import method
from retrograd.sparse.primitives import check_dense_or_sparse, entries, is_sparse, pattern_of, values_of, wrap
from retrograd.sparse.rules.products import check_product, rows_of_product, sampled, sparse_dense
from retrograd.sparse.rules.reductions import softmax as softmax_of_entries
from retrograd.sparse.rules.reductions import sum_over


@suggest_keywords
def mm(mat1: Tensor, mat2: Tensor, reduce: str = "sum") -> Tensor:
    """Return the product of two matrices, of which the first is sparse, or both are.

    The product of a sparse and a dense matrix is dense, that of two sparse ones sparse.  The gradient of a sparse
    factor is sparse, with its entries.  reduce: how the products of a row's entries are combined, "sum", or if mat1 is
    in layout CSR and mat2 dense, "mean", "amax" or "amin".  Raises RuntimeError for shapes that do not fit, dtypes that
    differ, and other layouts.

    >>> import retrograd as rg
    >>> x = rg.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse().requires_grad_()
    >>> rg.sparse.mm(x, rg.tensor([[1.0], [10.0]])).sum().backward()
    >>> x.grad.to_dense()
    tensor([[ 0., 10.],
            [ 1.,  0.]])
    """
    if reduce != "sum":
        return _reduced_products(mat1, mat2, reduce)
    out: Tensor = registry["mm"](mat1, mat2)
    return out


def _reduced_products(mat1: Tensor, mat2: Tensor, reduce: str) -> Tensor:
    """Return the mean or an extreme of the products of each row's entries; rows without entries are 0."""
    reduce = {"max": "amax", "min": "amin"}.get(reduce, reduce)  # PyTorch's other names
    if reduce not in ("mean", "amax", "amin"):
        raise ValueError(f"sparse.mm: reduce must be sum, mean, amax or amin, got {reduce!r}")
    if not (is_sparse(mat1) and pattern_of(mat1).layout == "sparse_csr") or is_sparse(mat2):
        raise RuntimeError(
            f"sparse.mm: reduce={reduce!r} takes a matrix in layout CSR and a dense one; x.to_sparse_csr() converts"
        )
    counts = registry["diff"](mat1.crow_indices())
    rows = registry["repeat_interleave"](arange(mat1.shape[0]), counts)
    products = mat1.values().unsqueeze(1) * mat2[mat1.col_indices()]
    out: Tensor = zeros(mat1.shape[0], mat2.shape[1], dtype=products.dtype)
    return out.scatter_reduce(0, rows.unsqueeze(1).expand_as(products), products, reduce, include_self=False)


@suggest_keywords
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Return beta · input + alpha · (mat1 @ mat2) for a sparse mat1 and dense others.

    >>> import retrograd as rg
    >>> rg.sparse.addmm(rg.ones(2, 2), rg.eye(2).to_sparse(), rg.ones(2, 2), alpha=3.0)
    tensor([[4., 4.],
            [4., 4.]])
    """
    out: Tensor = registry["addmm"](input, mat1, mat2, beta=beta, alpha=alpha)
    return out


def sampled_addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Return alpha · (mat1 @ mat2) at the entries of a CSR matrix, plus beta times it.

    Only these elements of the product of the dense matrices are computed.

    >>> import retrograd as rg
    >>> pattern = rg.eye(2).to_sparse_csr()
    >>> rg.sparse.sampled_addmm(pattern, rg.ones(2, 3), rg.ones(3, 2), beta=0.0).values()
    tensor([3., 3.])
    """
    check_dense_or_sparse("sampled_addmm", input, mat1, mat2)
    if not is_sparse(input) or pattern_of(input).layout != "sparse_csr":
        raise NotImplementedError(
            f"sampled_addmm: Expected self to have sparse csr layout, got a tensor of shape {input.shape}, layout "
            f"{input.layout}; see x.to_sparse_csr()"
        )
    if is_sparse(mat1) or is_sparse(mat2):
        raise RuntimeError("sampled_addmm: Expected mat1 and mat2 to have strided layout")
    where, rows = entries(input)
    if input.ndim != 2 or mat1.ndim != 2 or mat2.ndim != 2:
        raise NotImplementedError("sampled_addmm: expected matrices; batches are not supported")
    check_product("sampled_addmm", mat1, mat2)
    if (mat1.shape[0], mat2.shape[1]) != input.shape:
        raise RuntimeError(
            f"sampled_addmm: mat1 and mat2 shapes {mat1.shape}, {mat2.shape} do not give the shape {input.shape}"
        )
    product = sampled(mat1, registry["transpose"](mat2, 0, 1), pattern=where) * alpha
    return wrap(product if beta == 0 else rows * beta + product, pattern_of(input))


def sum(input: Tensor, dim: Any = None, dtype: Any = None) -> Tensor:
    """Return the sum of the elements, or the sums over dimensions: dense if no sparse dimension is left.

    >>> import retrograd as rg
    >>> x = rg.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3))
    >>> rg.sparse.sum(x), rg.sparse.sum(x, 0).to_dense()
    (tensor(12.), tensor([4., 0., 8.]))
    """
    _check_coordinates("sum", input)
    x = input if dtype is None else input.to(dtype)
    return sum_over(x, dim) if dim is not None else registry["sum"](values_of(x))


def softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """Return the softmax along a dimension of the entries of a COO tensor: absent ones count as -inf.

    >>> import retrograd as rg
    >>> x = rg.sparse_coo_tensor([[0, 0, 1], [0, 2, 1]], [1.0, 1.0, 7.0], (2, 3))
    >>> rg.sparse.softmax(x, 1).values()
    tensor([0.5000, 0.5000, 1.0000])
    """
    _check_coordinates("softmax", input)
    return softmax_of_entries("softmax", input if dtype is None else input.to(dtype), dim)


def log_softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """Return the logarithm of `softmax`.

    >>> import retrograd as rg
    >>> x = rg.sparse_coo_tensor([[0, 1], [2, 1]], [1.0, 7.0], (2, 3))
    >>> rg.sparse.log_softmax(x, 1).values()
    tensor([0., 0.])
    """
    _check_coordinates("log_softmax", input)
    return softmax_of_entries("log_softmax", input if dtype is None else input.to(dtype), dim)


def _check_coordinates(name: str, x: Tensor) -> None:
    check_dense_or_sparse(name, x)
    if not is_sparse(x) or isinstance(pattern_of(x), Compressed):
        raise RuntimeError(
            f"{name}: coalesce expected sparse coordinate tensor layout but got {x.layout}; see x.to_sparse()"
        )


# --------------------------------------------------------------------------------------- PyTorch's older names


@function()
@overridable
@suggest_keywords
def hspmm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """Return the product of a sparse matrix and a dense one as a hybrid tensor: of its nonempty rows.

    >>> import retrograd as rg
    >>> x = rg.sparse_coo_tensor([[1], [0]], [2.0], (3, 2))
    >>> rg.hspmm(x, rg.ones(2, 2))
    tensor(indices=tensor([[1]]),
           values=tensor([[2., 2.]]),
           size=(3, 2), nnz=1, layout=retrograd.sparse_coo)
    """
    check_dense_or_sparse("hspmm", mat1, mat2)
    _check_coordinates("hspmm", mat1)
    unique, rows = rows_of_product(mat1, mat2)
    return wrap(rows, unique)


@function()
@method
@overridable
@suggest_keywords
def smm(input: Tensor, mat: Tensor) -> Tensor:
    """Return the product of a sparse matrix and a dense one as a sparse matrix, with all elements of nonempty rows.

    >>> import retrograd as rg
    >>> x = rg.sparse_coo_tensor([[1], [0]], [2.0], (3, 2))
    >>> rg.smm(x, rg.ones(2, 2))
    tensor(indices=tensor([[1, 1],
                           [0, 1]]),
           values=tensor([2., 2.]),
           size=(3, 2), nnz=2, layout=retrograd.sparse_coo)
    """
    check_dense_or_sparse("smm", input, mat)
    _check_coordinates("smm", input)
    unique, rows = rows_of_product(input, mat)
    shape = (input.shape[0], mat.shape[1])
    return wrap(rows.reshape((-1,)), Coordinates(full(unique.indices[0], mat.shape[1]), shape, True))


@function()
@method
@overridable
@suggest_keywords
def sspaddmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Return beta · input + alpha · (mat1 @ mat2) for sparse input and mat1 and a dense mat2; the result is sparse.

    >>> import retrograd as rg
    >>> x = rg.eye(2).to_sparse()
    >>> rg.sspaddmm(x, x, rg.ones(2, 2)).to_dense()
    tensor([[2., 1.],
            [1., 2.]])
    """
    check_dense_or_sparse("sspaddmm", input, mat1, mat2)
    _check_coordinates("sspaddmm", input)
    product = smm(mat1, mat2)
    if product.shape != input.shape:
        raise RuntimeError(f"sspaddmm: Argument #1: Expected shape {product.shape}, got {input.shape}")
    rows = [values_of(input) * beta, values_of(product) * alpha]
    return wrap(registry["cat"](rows), join([pattern_of(input), pattern_of(product)]))


@function()
@overridable
@suggest_keywords
def dsmm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """Return the product of a sparse matrix and a dense one, as `rg.sparse.mm`."""
    check_dense_or_sparse("dsmm", mat1, mat2)
    _check_coordinates("dsmm", mat1)
    return sparse_dense(mat1, mat2)


hsmm = function("hsmm")(hspmm)
saddmm = function("saddmm")(addmm)
spmm = function("spmm")(mm)


suggest_in_module(globals())
