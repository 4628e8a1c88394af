"""Conversions between dense tensors and the layouts of sparse ones, differentiable in the values."""

import math
from typing import Any

from retrograd.backend import sparse_pattern
from retrograd.backend.devices import move
from retrograd.backend.sparse_array import Sparse
from retrograd.backend.sparse_pattern import COMPRESSED, compress
from retrograd.core import Tensor, registry
from retrograd.ops.methods import concrete
from retrograd.sparse import dispatch
from retrograd.sparse.primitives import (
    add_at,
    check_dense_or_sparse,
    entries,
    is_sparse,
    pattern_of,
    take,
    unique_entries,
    values_of,
    wrap,
)


def to_dense(x: Tensor) -> Tensor:
    """Return a sparse tensor with all its elements."""
    where, rows = entries(x)
    return add_at(rows, where.flat, math.prod(where.sizes)).reshape(x.shape)


dispatch._dense_of.append(to_dense)


def coalesced(x: Tensor) -> Tensor:
    """Return a COO tensor with sorted, unique entries; itself if it is marked so."""
    pattern = pattern_of(x)
    if isinstance(pattern, sparse_pattern.Coordinates) and pattern.coalesced:
        return x
    unique, rows = unique_entries(x)
    return wrap(rows, unique)


def to_coordinates(x: Tensor) -> Tensor:
    """Return a sparse tensor as COO."""
    where, rows = entries(x)
    return x if pattern_of(x) is where else wrap(rows, where)


def to_compressed(name: str, x: Tensor, layout: str, blocksize: Any = None, dense_dim: int | None = None) -> Tensor:
    """Return a tensor, dense or sparse, in a layout by rows or columns."""
    check_dense_or_sparse(name, x)
    if x.ndim < 2:
        raise RuntimeError(f"{name}: expected a tensor of at least two dimensions, got shape {x.shape}")
    dense = dense_dim or (dispatch.composite_arrays[Sparse].dense_dim(x) if is_sparse(x) else 0)
    block = _check_block(name, x, layout, blocksize, dense)
    if is_sparse(x) and pattern_of(x).layout == layout and getattr(pattern_of(x), "block", ()) == block:
        return x
    if is_sparse(x):
        _check_blocks_to_entries(name, x, layout)
    if x.ndim - dense < 2:
        raise RuntimeError(
            f"{name}: expected a tensor of at least two dimensions besides {dense} dense ones, got shape {x.shape}"
        )
    if x.ndim - dense > 2:
        return _to_batched(name, x, layout, blocksize, dense)
    unique, rows = unique_entries(x if is_sparse(x) else from_dense(x, 2))
    pattern, positions = compress(layout, unique, block)
    count = math.prod(pattern.values_shape(()))
    return wrap(add_at(rows, positions, count).reshape(pattern.values_shape(rows.shape[1:])), pattern)


def _check_block(name: str, x: Tensor, layout: str, blocksize: Any, dense: int) -> tuple[int, ...]:
    """Return the shape of blocks, () if there are none."""
    if not COMPRESSED[layout][1]:
        return ()
    if isinstance(blocksize, int):
        blocksize = blocksize, blocksize
    if blocksize is None or len(blocksize) != 2 or any(b < 1 for b in blocksize):
        raise RuntimeError(f"{name}: blocksize must be two positive sizes, (rows, columns), got {blocksize}")
    sizes = x.shape[x.ndim - dense - 2 : x.ndim - dense] if not is_sparse(x) else pattern_of(x).sizes[-2:]
    if any(size % block for size, block in zip(sizes, blocksize, strict=True)):
        raise RuntimeError(
            f"{name}: tensor sparse size ({sizes[0]},{sizes[1]}) must be divisible by given blocksize "
            f"({blocksize[0]},{blocksize[1]})"
        )
    return tuple(blocksize)


def _check_blocks_to_entries(name: str, x: Tensor, layout: str) -> None:
    pattern = pattern_of(x)
    if getattr(pattern, "block", ()) and not COMPRESSED[layout][1]:
        suffix = layout[-3:]
        raise RuntimeError(
            f"{name}: sparse_compressed_to_sparse_{suffix}: expected SparseCsr or SparseCsc layout but got "
            f"{dispatch.name_of_layout(pattern.layout)}; x.to_sparse() has single entries"
        )


def _to_batched(name: str, x: Tensor, layout: str, blocksize: Any, dense: int) -> Tensor:
    """Return a batch of matrices with equally many entries in a compressed layout."""
    if is_sparse(x) or x.ndim - dense != 3:
        raise NotImplementedError(
            f"{name}: expected a matrix, or a dense batch of matrices, got shape {x.shape} with {dense} dense "
            f"dimensions"
        )
    parts = [to_compressed(name, x[i], layout, blocksize, dense) for i in range(x.shape[0])]
    pattern = sparse_pattern.batched([pattern_of(p) for p in parts]) if parts else None
    if pattern is None:
        raise RuntimeError(f"{name}: Expect the same number of specified elements per batch.")
    return wrap(registry["stack"]([values_of(p) for p in parts]), pattern)


def from_dense(x: Tensor, sparse_dim: int) -> Tensor:
    """Return the COO tensor of the nonzero slices along the first dimensions of a dense tensor."""
    pattern = sparse_pattern.nonzero(move(concrete(x), None), sparse_dim)
    rows = x.reshape((math.prod(x.shape[:sparse_dim]), *x.shape[sparse_dim:]))
    return wrap(take(rows, pattern.flat), pattern)


def to_layout(name: str, x: Tensor, layout: str, block: Any = None) -> Tensor:
    """Return a sparse tensor in another layout."""
    return to_coordinates(x) if layout == "sparse_coo" else to_compressed(name, x, layout, block)


def to_layout_of(like: Tensor, x: Tensor) -> Tensor:
    """Return a sparse tensor in the layout of another one."""
    pattern = pattern_of(like)
    return to_layout("to_sparse", x, pattern.layout, getattr(pattern, "block", ()) or None)
