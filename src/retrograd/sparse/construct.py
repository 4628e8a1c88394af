"""Construct sparse tensors from indices and values, which they share the memory of, and from SciPy's arrays."""

import math
from collections.abc import Sequence
from typing import Any

from retrograd.backend import sparse_array
from retrograd.backend.sparse_array import (
    check_coalesced,
    check_compressed,
    check_indices,
    index_array,
    largest,
    least_sizes,
)
from retrograd.backend.sparse_pattern import COMPRESSED, Compressed, Coordinates
from retrograd.backend.sparse_pattern import diagonals as diagonal_pattern
from retrograd.backend.sparse_pattern import empty as empty_pattern
from retrograd.core import Internal, Tensor, op, registry
from retrograd.core.tensor import version_of
from retrograd.foundation.suggestions import suggest_in_module, suggest_keywords
from retrograd.ops import layout as _layouts
from retrograd.ops.create import as_tensor
from retrograd.ops.family import Composite
from retrograd.ops.functions import function
from retrograd.ops.layout import check_keywords, sparse_coo, strided
from retrograd.ops.layout import layout as Layout
from retrograd.ops.methods import array_outside_graph, concrete
from retrograd.sparse.conversions import to_layout
from retrograd.sparse.invariants import check_sparse_tensor_invariants
from retrograd.sparse.primitives import is_sparse, take, wrap


@function()
@suggest_keywords
def sparse_coo_tensor(indices: Any, values: Any = None, size: Any = None, *, dtype: Any = None, device: Any = None,
                      pin_memory: bool = False, requires_grad: bool = False, check_invariants: bool | None = None,
                      is_coalesced: bool | None = None) -> Tensor:  # fmt: skip
    """Return a sparse tensor in COO format: the sum of `values` at the coordinates `indices`, and zeros elsewhere.

    indices: integers (sparse_dim, nnz), a column for each value.  values: (nnz, *dense sizes); with dense dimensions
    the tensor is hybrid: its entries are slices.  size: the shape, by default the smallest that holds all indices.
    `sparse_coo_tensor(size)` has no entries.  Tensors and arrays of int64 are not copied; gradients flow to `values`.
    check_invariants: whether indices are compared with the size, by default as `check_sparse_tensor_invariants` says;
    without a size they always are.  is_coalesced: True says that the columns are sorted and unique,
    another invariant.

    Raises RuntimeError for parts that do not fit.

    >>> import retrograd as rg
    >>> x = rg.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3))
    >>> x
    tensor(indices=tensor([[0, 1, 1],
                           [2, 0, 2]]),
           values=tensor([3., 4., 5.]),
           size=(2, 3), nnz=3, layout=retrograd.sparse_coo)
    >>> x.to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 5.]])
    """
    name = "sparse_coo_tensor"
    check_keywords(device, pin_memory=pin_memory)
    if values is None:
        sizes = indices if size is None else size
        return without_entries(sizes, layout=sparse_coo, dtype=dtype).requires_grad_(requires_grad)
    rows = _indices(name, indices)
    if rows.ndim != 2:
        raise RuntimeError(f"{name}: indices must be sparse_dim x nnz, but got: {list(rows.shape)}")
    data = _values(values, dtype, requires_grad)
    if data.ndim == 0:
        data = data.unsqueeze(0)  # the value of one entry
    if data.shape[0] != rows.shape[1]:
        raise RuntimeError(
            f"{name}: indices and values must have same nnz, but got nnz from indices: {rows.shape[1]}, nnz from "
            f"values: {data.shape[0]}"
        )
    sizes = (*least_sizes(rows), *data.shape[1:]) if size is None else tuple(size)
    if len(sizes) != rows.shape[0] + data.ndim - 1:
        raise RuntimeError(
            f"{name}: 'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(sizes)}, sparse_dim = "
            f"{rows.shape[0]}, dense_dim = {data.ndim - 1}"
        )
    if sizes[rows.shape[0] :] != data.shape[1:]:
        raise RuntimeError(
            f"{name}: values has incorrect size, expected {[rows.shape[1], *sizes[rows.shape[0] :]]}, got "
            f"{list(data.shape)}"
        )
    pattern = Coordinates(rows, sizes[: rows.shape[0]], is_coalesced or (is_coalesced is None and len(data) < 2))
    _count_writes(pattern, indices=indices)
    if size is None or _checks(check_invariants):
        check_indices(name, pattern)
    if _checks(check_invariants):
        check_coalesced(name, pattern)
    return _finish(data, pattern, requires_grad)


@function()
@suggest_keywords
def sparse_compressed_tensor(compressed_indices: Any, plain_indices: Any, values: Any, size: Any = None, *,
                             dtype: Any = None, layout: Layout | None = None, device: Any = None,
                             pin_memory: bool = False, requires_grad: bool = False,
                             check_invariants: bool | None = None) -> Tensor:  # fmt: skip
    """Return a sparse tensor compressed by rows or by columns, in a layout such as `rg.sparse_csr`.

    compressed_indices: (*batch, rows + 1) for rows: where the entries of each begin, and the end of the last.
    plain_indices: (*batch, nnz), the column of each entry.  values: (*batch, nnz, *block sizes, *dense sizes); only the
    layouts sparse_bsr and sparse_bsc have blocks, of two sizes.  For sparse_csc and sparse_bsc exchange rows and
    columns.  size: the shape; by default the smallest.  Nothing is copied; gradients flow to `values`.

    Raises RuntimeError for parts that do not fit.

    >>> import retrograd as rg
    >>> rg.sparse_compressed_tensor([0, 1, 3], [2, 0, 2], [3.0, 4.0, 5.0], layout=rg.sparse_csr).to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 5.]])
    """
    if layout is None:
        raise RuntimeError("sparse_compressed_tensor expected sparse compressed tensor layout but got none")
    given = (compressed_indices, plain_indices, values, size, dtype, device, pin_memory, requires_grad)
    return _compressed("sparse_compressed_tensor", layout, *given, check_invariants)


def _compressed(name: str, layout: Layout, compressed: Any, plain: Any, values: Any, size: Any, dtype: Any, device: Any,
                pin_memory: bool, requires_grad: bool, check_invariants: bool | None) -> Tensor:  # fmt: skip
    """Return a compressed tensor for the function `name`."""
    check_keywords(device, pin_memory=pin_memory)
    kind = repr(layout).rpartition(".")[2]
    if kind not in COMPRESSED:
        raise RuntimeError(f"{name}: expected sparse compressed tensor layout but got {layout!r}")
    axis, blocked = COMPRESSED[kind]
    first, second = (_indices(name, given, keep=True) for given in (compressed, plain))
    data = _values(values, dtype, requires_grad)
    _check_ranks(name, first, second, data, blocked)
    lead = second.ndim + 2 * blocked
    block = data.shape[second.ndim : lead]
    sides = [first.shape[-1] - 1, largest(second)]
    counts = sides if axis == 0 else sides[::-1]
    least = [n * b for n, b in zip(counts, block or (1, 1), strict=True)]
    sizes = tuple(size) if size is not None else (*second.shape[:-1], *least, *data.shape[lead:])
    batch = second.ndim - 1
    if len(sizes) != batch + 2 + data.ndim - lead:
        raise RuntimeError(f"{name}: size {sizes} does not fit values of shape {data.shape} in the layout {layout!r}")
    pattern = Compressed(kind, first, second, sizes[: batch + 2], block)
    _count_writes(pattern, compressed=compressed, plain=plain)
    if _checks(check_invariants):
        check_compressed(name, pattern)
    return _finish(data, pattern, requires_grad)


def _check_ranks(name: str, first: Any, second: Any, data: Tensor, blocked: bool) -> None:
    """Refuse indices and values of shapes that belong to no tensor."""
    if first.ndim < 1 or first.shape[-1] < 1 or first.shape[:-1] != second.shape[:-1] or first.ndim != second.ndim:
        raise RuntimeError(
            f"{name}: compressed indices {first.shape} and plain indices {second.shape} must have one number of "
            f"dimensions, and equal batch dimensions"
        )
    if data.ndim < second.ndim + 2 * blocked:
        raise RuntimeError(
            f"{name}: values must have dimensionality > sum of batch and block dimensionalities (={second.ndim - 1} + "
            f"{2 * blocked}) but got {data.ndim}"
        )
    if data.shape[: second.ndim] != second.shape:
        raise RuntimeError(f"{name}: number of specified elements must agree: plain indices have shape {second.shape}, "
                           f"values {data.shape}")  # fmt: skip


@function()
@suggest_keywords
def sparse_csr_tensor(crow_indices: Any, col_indices: Any, values: Any, size: Any = None, *, dtype: Any = None,
                      device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
                      check_invariants: bool | None = None) -> Tensor:  # fmt: skip
    """Return a sparse tensor in the layout `rg.sparse_csr`: see `sparse_compressed_tensor`.

    crow_indices: (*batch, rows + 1), where the entries of each row begin, and the end of the last; col_indices:
    (*batch, nnz), the column of each entry.

    >>> import retrograd as rg
    >>> rg.sparse_csr_tensor([0, 1, 2], [0, 1], [1.0, 2.0]).to_dense()
    tensor([[1., 0.],
            [0., 2.]])
    """
    given = (crow_indices, col_indices, values, size, dtype, device, pin_memory, requires_grad, check_invariants)
    return _compressed("sparse_csr_tensor", _layouts.sparse_csr, *given)


@function()
@suggest_keywords
def sparse_csc_tensor(ccol_indices: Any, row_indices: Any, values: Any, size: Any = None, *, dtype: Any = None,
                      device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
                      check_invariants: bool | None = None) -> Tensor:  # fmt: skip
    """Return a sparse tensor in the layout `rg.sparse_csc`: see `sparse_compressed_tensor`.

    ccol_indices: (*batch, columns + 1), where the entries of each column begin, and the end of the last; row_indices:
    (*batch, nnz), the row of each entry.

    >>> import retrograd as rg
    >>> rg.sparse_csc_tensor([0, 1, 2], [0, 1], [1.0, 2.0]).to_dense()
    tensor([[1., 0.],
            [0., 2.]])
    """
    given = (ccol_indices, row_indices, values, size, dtype, device, pin_memory, requires_grad, check_invariants)
    return _compressed("sparse_csc_tensor", _layouts.sparse_csc, *given)


@function()
@suggest_keywords
def sparse_bsr_tensor(crow_indices: Any, col_indices: Any, values: Any, size: Any = None, *, dtype: Any = None,
                      device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
                      check_invariants: bool | None = None) -> Tensor:  # fmt: skip
    """Return a sparse tensor in the layout `rg.sparse_bsr`: see `sparse_compressed_tensor`.

    crow_indices: (*batch, rows of blocks + 1), where the blocks of each begin, and the end of the last; col_indices:
    (*batch, blocks), the column of blocks of each.

    >>> import retrograd as rg
    >>> rg.sparse_bsr_tensor([0, 1, 2], [0, 1], [[[1.0]], [[2.0]]]).to_dense()
    tensor([[1., 0.],
            [0., 2.]])
    """
    given = (crow_indices, col_indices, values, size, dtype, device, pin_memory, requires_grad, check_invariants)
    return _compressed("sparse_bsr_tensor", _layouts.sparse_bsr, *given)


@function()
@suggest_keywords
def sparse_bsc_tensor(ccol_indices: Any, row_indices: Any, values: Any, size: Any = None, *, dtype: Any = None,
                      device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
                      check_invariants: bool | None = None) -> Tensor:  # fmt: skip
    """Return a sparse tensor in the layout `rg.sparse_bsc`: see `sparse_compressed_tensor`.

    ccol_indices: (*batch, columns of blocks + 1), where the blocks of each begin, and the end of the last; row_indices:
    (*batch, blocks), the row of blocks of each.

    >>> import retrograd as rg
    >>> rg.sparse_bsc_tensor([0, 1, 2], [0, 1], [[[1.0]], [[2.0]]]).to_dense()
    tensor([[1., 0.],
            [0., 2.]])
    """
    given = (ccol_indices, row_indices, values, size, dtype, device, pin_memory, requires_grad, check_invariants)
    return _compressed("sparse_bsc_tensor", _layouts.sparse_bsc, *given)


def _indices(name: str, given: Any, keep: bool = False) -> Any:
    """Return indices, of a tensor or array or nested lists, as an array."""
    return index_array(name, concrete(given) if isinstance(given, Tensor) else given, keep)


def _count_writes(pattern: Any, **given: Any) -> None:
    """Let a pattern count the writes to the given indices that share its memory."""
    for name, indices in given.items():
        if isinstance(indices, Tensor) and indices.level is None and indices.value is getattr(pattern, name):
            pattern.versions[name] = version_of(indices)


def _values(given: Any, dtype: Any, requires_grad: bool) -> Tensor:
    """Return values as a tensor of a dtype; outside graphs if the sparse tensor becomes a leaf."""
    data: Tensor = as_tensor(given, dtype)
    if is_sparse(data):
        raise RuntimeError("values: expected a dense tensor, got a sparse one")
    return data.detach() if requires_grad else data


def _finish(data: Tensor, pattern: Any, requires_grad: bool) -> Tensor:
    out = wrap(data, pattern)
    return out.detach().requires_grad_() if requires_grad else out


def _checks(check_invariants: bool | None) -> bool:
    return check_sparse_tensor_invariants.is_enabled() if check_invariants is None else check_invariants


@op("sparse.without_entries(any size, *, any layout, dtype? dtype=None) -> Tensor")
class without_entries(Internal, Composite):
    """A tensor of zeros that has no entries."""

    def compose(*, size, layout, dtype):
        sizes, name = tuple(size), repr(layout).rpartition(".")[2]
        if any(not isinstance(s, int) or s < 0 for s in sizes):
            raise RuntimeError(f"{name}: expected the size of a tensor without values, got {size}")
        if name in ("sparse_bsr", "sparse_bsc"):
            raise RuntimeError(f"{name}: a tensor without entries has no block size, got {size}; see sparse_bsr_tensor")
        if name in COMPRESSED and len(sizes) < 2:
            raise RuntimeError(
                f"{name}: Only batched sparse compressed (non-block) tensors are supported, but got size {list(sizes)}"
            )
        pattern = empty_pattern(name, sizes, len(sizes))
        return wrap(registry["zeros"](pattern.values_shape(()), dtype=dtype), pattern)

    def samples(r):
        yield (), {"size": (2, 3), "layout": sparse_coo}


# ------------------------------------------------------------------------------------------------- from others


def spdiags(diagonals: Tensor, offsets: Any, shape: Sequence[int], layout: Layout | None = None) -> Tensor:
    """Return a sparse matrix with these diagonals.

    diagonals: (n, width); offsets: n distinct integers, of diagonals above the main one if positive; column j of the
    matrix has elements j of the diagonals, as in SciPy.  layout: sparse_coo, the default, sparse_csr or sparse_csc.

    >>> import retrograd as rg
    >>> rg.sparse.spdiags(rg.tensor([[1.0, 2.0], [3.0, 4.0]]), rg.tensor([0, 1]), (2, 2)).to_dense()
    tensor([[1., 4.],
            [0., 2.]])
    """
    x = as_tensor(diagonals)
    x = x.reshape((1, -1)) if x.ndim == 1 else x
    given = sparse_array.offsets_list(_indices("spdiags", offsets))
    if x.ndim != 2 or len(shape) != 2:
        raise RuntimeError(f"spdiags: Diagonals must be vector or matrix, and shape two sizes, got {x.shape}, {shape}")
    if len(given) != x.shape[0]:
        raise RuntimeError(
            f"spdiags: Number of diagonals ({x.shape[0]}) does not match the number of offsets ({len(given)})"
        )
    if len(set(given)) != len(given):
        raise RuntimeError(f"spdiags: Offset tensor contains duplicate values: {given}")
    kind = "sparse_coo" if layout is None else repr(layout).rpartition(".")[2]
    if kind not in ("sparse_coo", "sparse_csr", "sparse_csc"):
        name = "Strided" if layout is strided else repr(layout)
        raise RuntimeError(f"spdiags: Only output layouts (Sparse, SparseCsc, SparseCsr) are supported, got {name}")
    pattern, chosen = diagonal_pattern(given, x.shape[1], tuple(shape))
    return to_layout("spdiags", wrap(take(x.reshape((math.prod(x.shape),)), chosen), pattern), kind)


def from_scipy(matrix: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Return a sparse array of SciPy as a sparse tensor over its memory; formats without a layout become CSR.

    >>> import numpy as np
    >>> import scipy.sparse
    >>> import retrograd as rg
    >>> rg.sparse.from_scipy(scipy.sparse.csr_array(np.eye(2))).layout
    retrograd.sparse_csr
    """
    if not hasattr(matrix, "format") or not hasattr(matrix, "nnz"):
        raise TypeError(f"from_scipy: expected a sparse array of SciPy, got {type(matrix).__name__}")
    kind, indices, data, size = sparse_array.from_scipy(matrix)
    if kind == "sparse_coo":
        return sparse_coo_tensor(indices[0], data, size, dtype=dtype, requires_grad=requires_grad)
    layout = getattr(_layouts, kind)
    return sparse_compressed_tensor(*indices, data, size, layout=layout, dtype=dtype, requires_grad=requires_grad)


def to_scipy(x: Tensor) -> Any:
    """Return a sparse tensor as a sparse array of SciPy over its memory, in the format of its layout.

    >>> import retrograd as rg
    >>> rg.sparse.to_scipy(rg.eye(2).to_sparse_csr()).format
    'csr'
    """
    if not is_sparse(x):
        raise TypeError(f"to_scipy: expected a sparse tensor, got {type(x).__name__}; see x.to_sparse()")
    return sparse_array.to_scipy(array_outside_graph("to_scipy", x))


suggest_in_module(globals())
