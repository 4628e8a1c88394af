"""Methods of sparse tensors, and those of dense ones that make sparse tensors."""

import copyreg
from collections.abc import Sequence
from typing import Any

from retrograd.backend.sparse_array import Sparse, name_of_layout
from retrograd.backend.sparse_pattern import Compressed
from retrograd.core import Tensor, current, registry
from retrograd.core.tensor import bump_version, version_of
from retrograd.core.views import leave_memory
from retrograd.foundation.suggestions import suggest_keywords
from retrograd.ops.create import as_tensor
from retrograd.ops.functions import function
from retrograd.ops.layout import layout as Layout
from retrograd.ops.layout import strided
from retrograd.ops.methods import method
from retrograd.ops.mutate import check_write, is_recorded
from retrograd.sparse import conversions
from retrograd.sparse.primitives import check_dense_or_sparse, is_sparse, pattern_of, values_at, values_of, wrap


def layout_name(x: Tensor) -> str:
    """Return PyTorch's name of a tensor's layout in its errors."""
    if not isinstance(x, Tensor):
        raise TypeError(f"expected a sparse tensor, got {type(x).__name__}")
    return name_of_layout(pattern_of(x).layout) if is_sparse(x) else "Strided"


def _require_coordinates(name: str, x: Tensor) -> Any:
    """Return the pattern of a COO tensor; RuntimeError, in PyTorch's words, for others."""
    if not is_sparse(x) or isinstance(pattern_of(x), Compressed):
        raise RuntimeError(
            f"{name} expected sparse coordinate tensor layout but got {layout_name(x)}; see x.to_sparse()"
        )
    return pattern_of(x)


# ------------------------------------------------------------------------------------------------------- parts


@method
def coalesce(x: Tensor) -> Tensor:
    """Return a COO tensor with sorted, unique entries, the sums of those at the same position; x if it is marked so.

    >>> import retrograd as rg
    >>> rg.sparse_coo_tensor([[1, 1, 0]], [1.0, 2.0, 4.0], (3,)).coalesce()
    tensor(indices=tensor([[0, 1]]),
           values=tensor([4., 3.]),
           size=(3,), nnz=2, layout=retrograd.sparse_coo)
    """
    _require_coordinates("coalesce", x)
    return conversions.coalesced(x)


@method
def is_coalesced(x: Tensor) -> bool:
    """Return whether a COO tensor is known to have sorted, unique entries.

    >>> import retrograd as rg
    >>> rg.eye(2).to_sparse().is_coalesced()
    True
    """
    known: bool = _require_coordinates("is_coalesced", x).coalesced
    return known


@method
def _coalesced_(x: Tensor, coalesced: bool) -> Tensor:
    """Mark a COO tensor as coalesced, or not, in place; return it."""
    pattern = _require_coordinates("_coalesced_", x)
    x.value = Sparse(x.value.values, pattern.marked(coalesced))
    return x


@method
def indices(x: Tensor) -> Tensor:
    """Return the indices of a coalesced COO tensor, (sparse_dim, nnz), not copied.

    >>> import retrograd as rg
    >>> rg.eye(2).to_sparse().indices()
    tensor([[0, 1],
            [0, 1]])
    """
    pattern = _require_coordinates("indices", x)
    if not pattern.coalesced:
        raise RuntimeError("Cannot get indices on an uncoalesced tensor, please call .coalesce() first")
    return _shared_indices(pattern, "indices")


@method
def _indices(x: Tensor) -> Tensor:
    """Return the indices of a COO tensor, also if it is not coalesced."""
    return _shared_indices(_require_coordinates("_indices", x), "indices")


def _shared_indices(pattern: Any, name: str) -> Tensor:
    """Return an index array as a tensor, whose writes the pattern counts."""
    out = as_tensor(getattr(pattern, name))
    if out.level is None:
        out.version = pattern.versions.setdefault(name, version_of(out))
    return out


@method
def _values(x: Tensor) -> Tensor:
    """Return the values of a COO tensor, also if it is not coalesced, outside graphs."""
    _require_coordinates("_values", x)
    return values_of(x).detach()


@method
def _nnz(x: Tensor) -> int:
    """Return the number of entries, those at the same position counted each; of blocks in a layout that has them."""
    if not is_sparse(x):
        raise RuntimeError(f"_nnz expected sparse tensor layout but got {layout_name(x)}; see x.to_sparse()")
    count: int = pattern_of(x).nnz
    return count


def _compressed_part(name: str, axis: int, plain: bool) -> None:
    """Define the method that returns an index array of the compressed layouts with this compressed dimension."""
    which = "row" if axis == 0 else "column"

    def part(x: Tensor) -> Tensor:
        pattern = pattern_of(x) if is_sparse(x) else None
        if not isinstance(pattern, Compressed) or pattern.axis != axis:
            raise RuntimeError(
                f"{name} expected sparse {which} compressed tensor layout but got {layout_name(x)}; see "
                f"x.to_sparse_cs{'rc'[axis]}()"
            )
        return _shared_indices(pattern, "plain" if plain else "compressed")

    what = (
        f"the {'column' if axis == 0 else 'row'} of each entry" if plain else f"where the entries of each {which} begin"
    )
    part.__name__ = name
    part.__doc__ = f"Return {what}, of a tensor compressed by {which}s, not copied; RuntimeError for other layouts."
    method(part)
    globals()[name] = part


for _name, _axis, _plain in (
    ("crow_indices", 0, False), ("col_indices", 0, True), ("ccol_indices", 1, False), ("row_indices", 1, True),
):  # fmt: skip
    _compressed_part(_name, _axis, _plain)


def _copying(name: str) -> None:
    """Define the function that returns a copy of what a method shows."""

    def copied(input: Tensor) -> Tensor:
        out: Tensor = getattr(input, name)().clone()
        return out

    copied.__name__ = f"{name}_copy"
    copied.__doc__ = f"Return a copy of `input.{name}()`."
    function()(copied)


for _name in ("indices", "values", "crow_indices", "col_indices", "ccol_indices", "row_indices"):
    _copying(_name)


# ------------------------------------------------------------------------------------------------- conversions


@method
def to_sparse(x: Tensor, sparse_dim: int | None = None, *, layout: Layout | None = None, blocksize: Any = None,
              dense_dim: int | None = None) -> Tensor:  # fmt: skip
    """Return a sparse tensor with the nonzero elements of a dense one, or a sparse one in another layout.

    sparse_dim: how many dimensions, from the first, are sparse, by default all: entries are slices along the others.
    layout: `rg.sparse_coo`, the default, or a compressed one, with a blocksize for those of blocks.  dense_dim: how
    many dimensions, to the last, are dense, for compressed layouts.  The gradient of a dense tensor is dense.

    >>> import retrograd as rg
    >>> rg.tensor([[0.0, 2.0], [0.0, 0.0]]).to_sparse()
    tensor(indices=tensor([[0],
                           [1]]),
           values=tensor([2.]),
           size=(2, 2), nnz=1, layout=retrograd.sparse_coo)
    """
    name = "to_sparse"
    check_dense_or_sparse(name, x)
    kind = "sparse_coo" if layout is None else repr(layout).rpartition(".")[2]
    if layout is strided:
        raise RuntimeError(f"{name}: expected a sparse layout, got {layout!r}; x.to_dense() is strided")
    if kind != "sparse_coo":
        if sparse_dim is not None:
            raise RuntimeError(f"{name}: sparse_dim is for the layout sparse_coo, got layout={layout!r}")
        return conversions.to_compressed(name, x, kind, blocksize, dense_dim)
    if blocksize is not None:
        raise RuntimeError(f"{name}: blocksize is for layouts of blocks, got {blocksize} for sparse_coo")
    if is_sparse(x):
        return conversions.to_coordinates(x)
    count = sparse_dim if sparse_dim is not None else x.ndim - (dense_dim or 0)
    if not 0 <= count <= x.ndim or (x.ndim > 0 and count == 0):
        raise RuntimeError(
            f"dense_to_sparse: sparse_dim argument must be in [{min(1, x.ndim)},{x.ndim}] range, but {count} is given"
        )
    return conversions.from_dense(x, count)


@method
def to_sparse_coo(x: Tensor) -> Tensor:
    """Return the tensor in the layout `rg.sparse_coo`, as `to_sparse()`."""
    return to_sparse(x)


@method
def to_sparse_csr(x: Tensor, dense_dim: int | None = None) -> Tensor:
    """Return a matrix compressed by rows; the last `dense_dim` dimensions are dense.

    >>> import retrograd as rg
    >>> rg.tensor([[0.0, 2.0], [3.0, 4.0]]).to_sparse_csr()
    tensor(crow_indices=tensor([0, 1, 3]),
           col_indices=tensor([1, 0, 1]),
           values=tensor([2., 3., 4.]), size=(2, 2), nnz=3,
           layout=retrograd.sparse_csr)
    """
    return conversions.to_compressed("to_sparse_csr", x, "sparse_csr", None, dense_dim)


@method
def to_sparse_csc(x: Tensor, dense_dim: int | None = None) -> Tensor:
    """Return a matrix compressed by columns; the last `dense_dim` dimensions are dense."""
    return conversions.to_compressed("to_sparse_csc", x, "sparse_csc", None, dense_dim)


@method
def to_sparse_bsr(x: Tensor, blocksize: Any, dense_dim: int | None = None) -> Tensor:
    """Return a matrix compressed by rows of blocks, each of blocksize, (rows, columns) or one number for both."""
    return conversions.to_compressed("to_sparse_bsr", x, "sparse_bsr", blocksize, dense_dim)


@method
def to_sparse_bsc(x: Tensor, blocksize: Any, dense_dim: int | None = None) -> Tensor:
    """Return a matrix compressed by columns of blocks, each of blocksize, (rows, columns) or one number for both."""
    return conversions.to_compressed("to_sparse_bsc", x, "sparse_bsc", blocksize, dense_dim)


@method
def sparse_mask(x: Tensor, mask: Tensor) -> Tensor:
    """Return the elements of x, dense or sparse, at the entries of a sparse tensor of the same shape.

    >>> import retrograd as rg
    >>> rg.tensor([[1.0, 2.0], [3.0, 4.0]]).sparse_mask(rg.eye(2).to_sparse()).values()
    tensor([1., 4.])
    """
    check_dense_or_sparse("sparse_mask", x, mask)
    if not is_sparse(mask):
        raise RuntimeError(f"sparse_mask: expected a sparse mask, got one in the layout {layout_name(mask)}")
    if x.shape != mask.shape:
        raise RuntimeError(
            f"sparse_mask(): operands have incompatible sizes; self has size {list(x.shape)} but mask has size "
            f"{list(mask.shape)}"
        )
    pattern = pattern_of(mask)
    return wrap(values_at(x, pattern), pattern)


# ---------------------------------------------------------------------------------------------------- in place


def _check_resize(name: str, x: Tensor, size: Sequence[int], sparse_dim: int, dense_dim: int) -> Any:
    pattern = _require_coordinates(name, x)
    check_write(name, x)
    if x.level is not None or current().level is not None or is_recorded(x):
        raise RuntimeError(f"{name}: a tensor that requires grad, or of a transform, can't be resized; x.detach() can")
    if sparse_dim + dense_dim != len(size):
        raise RuntimeError(
            f"{name}: 'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, sparse_dim = "
            f"{sparse_dim}, dense_dim = {dense_dim}"
        )
    return pattern


def _set_entries(x: Tensor, array: Sparse) -> Tensor:
    leave_memory(x)
    x.value = array
    bump_version(x)
    return x


@method
@suggest_keywords
def sparse_resize_(x: Tensor, size: Sequence[int], sparse_dim: int, dense_dim: int) -> Tensor:
    """Set the size of a COO tensor in place; return it.  With entries, no size may shrink nor dimension change kind.

    >>> import retrograd as rg
    >>> rg.sparse_coo_tensor([[0]], [1.0], (2,)).sparse_resize_((3,), 1, 0).shape
    (3,)
    """
    name = "sparse_resize_"
    size = tuple(size)
    pattern = _check_resize(name, x, size, sparse_dim, dense_dim)
    now = len(pattern.sizes)
    if not pattern.nnz:
        return sparse_resize_and_clear_(x, size, sparse_dim, dense_dim)
    if (sparse_dim, dense_dim) != (now, x.ndim - now):
        raise RuntimeError(
            f"{name}: changing the number of sparse dimensions (from {now} to {sparse_dim}) or dense ones (from "
            f"{x.ndim - now} to {dense_dim}) on a non-empty sparse tensor is not supported."
        )
    if any(new < old for new, old in zip(size, x.shape, strict=True)) or size[now:] != x.shape[now:]:
        raise RuntimeError(
            f"{name}: shrinking the size of sparse dimensions (from {list(x.shape)} to {list(size)}), or changing "
            f"dense ones, on a non-empty sparse tensor is not supported."
        )
    return _set_entries(x, Sparse(x.value.values, type(pattern)(pattern.indices, size[:now], pattern.coalesced)))


@method
def sparse_resize_and_clear_(x: Tensor, size: Sequence[int], sparse_dim: int, dense_dim: int) -> Tensor:
    """Set the size of a COO tensor in place, and remove its entries; return it."""
    size = tuple(size)
    _check_resize("sparse_resize_and_clear_", x, size, sparse_dim, dense_dim)
    rows = registry["zeros"]((0, *size[sparse_dim:]), dtype=x.dtype)
    return _set_entries(x, Sparse(rows.value, conversions.sparse_pattern.empty("sparse_coo", size, sparse_dim)))


@function()
def resize_as_sparse_(input: Tensor, the_template: Tensor) -> Tensor:
    """Give a COO tensor the size of another one, in place; return it."""
    sparse = len(_require_coordinates("resize_as_sparse_", the_template).sizes)
    return sparse_resize_(input, the_template.shape, sparse, the_template.ndim - sparse)


method(resize_as_sparse_)


# ------------------------------------------------------------------------------------------------------ pickles


def _rebuilt(*fields: Any) -> Sparse:
    """Return a sparse array from pickled fields; defined here so that unpickling imports this package."""
    return Sparse(*fields)


def _reduce(array: Sparse) -> tuple:
    return _rebuilt, (array.values, array.pattern)


copyreg.pickle(Sparse, _reduce)
