"""`Sparse`, the array that holds a buffer of values and the pattern of their positions."""

import math
from typing import NamedTuple

import numpy as np

from retrograd.backend.sparse import scipy_sparse
from retrograd.backend.sparse_pattern import COMPRESSED, Coordinates
from retrograd.foundation.lazy_imports import lazy_module


class Flags(NamedTuple):
    """The subset of NumPy's array flags that is needed."""

    c_contiguous: bool
    writeable: bool


class Sparse:
    """A buffer, `values`, and the pattern of its entries: see `sparse_pattern`. Elements without an entry are 0."""

    __slots__ = ("__weakref__", "pattern", "values")
    __array_ufunc__ = None  # keeps NumPy's functions from treating it as an object

    def __init__(self, values, pattern):
        self.values = values
        self.pattern = pattern

    @property
    def shape(self):
        """The sizes of the dimensions."""
        return self.pattern.shape(self.values.shape)

    @property
    def ndim(self):
        """The number of dimensions."""
        return len(self.pattern.sizes) + self.values.ndim - self.pattern.lead

    @property
    def dtype(self):
        """The dtype of the values."""
        return self.values.dtype

    @property
    def memory(self):
        """The plain array that holds the values."""
        return self.values

    @property
    def flags(self):
        """NumPy's flags: a sparse array is never contiguous."""
        return Flags(False, self.values.flags.writeable)

    @property
    def size(self):
        """The number of elements, zeros included."""
        return math.prod(self.shape)

    @property
    def nbytes(self):
        """The number of bytes of the values and the indices."""
        return self.values.nbytes + sum(a.nbytes for a in self.pattern.arrays.values())

    @property
    def strides(self):
        raise RuntimeError(f"a sparse tensor of shape {self.shape} has no strides; its values() have")

    def astype(self, dtype, copy=True):
        """Return the same entries in another dtype."""
        return Sparse(self.values.astype(dtype, copy=copy), self.pattern)

    def copy(self):
        """Return a copy of values and indices."""
        return Sparse(self.values.copy(), self.pattern.copy())

    def layout_key(self):
        """Return all except dtype and values: programs for arrays with an equal key run the same kernels."""
        return Sparse, self.pattern, self.values.shape, self.values.strides

    def dense(self):
        """Return the elements as a NumPy array."""
        where = self.pattern.coordinates()
        flat = self.values.reshape(where.nnz, *self.values.shape[self.pattern.lead :])
        out = np.zeros((math.prod(self.pattern.sizes), *flat.shape[1:]), self.dtype)
        np.add.at(out, where.flat, flat)
        return out.reshape(self.shape)

    def item(self):
        """Return the only element."""
        return self.dense().item()

    def tolist(self):
        """Return the elements as nested lists of Python numbers; refused, as they would be mostly zeros."""
        raise RuntimeError(f"tolist: a sparse tensor of shape {self.shape} is no list; use x.to_dense().tolist()")

    def __array__(self, dtype=None, copy=None):
        words = "Sparse" if self.pattern.layout == "sparse_coo" else name_of_layout(self.pattern.layout)
        raise TypeError(
            f"can't convert {words} layout tensor to numpy. Use Tensor.to_dense() first; a sparse tensor of shape "
            f"{self.shape} is no NumPy array: rg.sparse.to_scipy(x) shares its values and indices"
        )

    def __deepcopy__(self, memo):
        return self.copy()

    def __getitem__(self, key):
        if key is Ellipsis:
            return Sparse(self.values[...], self.pattern)
        raise NotImplementedError  # operators index the pattern

    def __repr__(self):
        return f"Sparse{self.shape}"


def name_of_layout(layout):
    """Return PyTorch's name of a layout in error messages: "Sparse", "SparseCsr"."""
    return "Sparse" if layout == "sparse_coo" else "Sparse" + layout[-3:].capitalize()


# ------------------------------------------------------------------------------------------------- invariants


def check_indices(name, pattern):
    """Raise RuntimeError, in PyTorch's words, unless the coordinates are within the sizes."""
    for dim, (row, size) in enumerate(zip(pattern.indices, pattern.sizes, strict=True)):
        if row.size and row.min() < 0:
            raise RuntimeError(f"{name}: found negative index {row.min()} for dim {dim}")
        if row.size and row.max() >= size:
            raise RuntimeError(
                f"{name}: size is inconsistent with indices: for dim {dim}, size is {size} but found index {row.max()}"
            )


def check_coalesced(name, pattern):
    """Raise RuntimeError, in PyTorch's words, if coordinates that are said to be sorted and unique are not."""
    if pattern.coalesced and not (pattern.flat[1:] > pattern.flat[:-1]).all():
        raise RuntimeError(
            f"{name}: cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor: the columns of "
            f"indices must be sorted and unique"
        )


def check_compressed(name, pattern):
    """Raise RuntimeError, in PyTorch's words, unless the indices of a compressed pattern are valid."""
    (first, pointers), (second, plain) = pattern.arrays.items()
    axis, _ = COMPRESSED[pattern.layout]
    counts = [size // block for size, block in zip(pattern.sizes[-2:], pattern.block or (1, 1), strict=True)]
    outer, inner = (counts[axis], counts[1 - axis])
    if pointers.dtype != plain.dtype:
        raise RuntimeError(
            f"{name}: {first} and {second} must have the same dtype, got {pointers.dtype} and {plain.dtype}"
        )
    if pointers.shape[-1] != outer + 1:
        raise RuntimeError(
            f"{name}: {first}.shape[-1] must be {outer + 1} for size {pattern.sizes}, got {pointers.shape[-1]}"
        )
    if pointers.size and (pointers[..., 0] != 0).any():
        raise RuntimeError(f"{name}: `{first}[..., 0] == 0` is not satisfied.")
    if (pointers[..., -1] != pattern.nnz).any():
        raise RuntimeError(f"{name}: `{first}[..., -1] == nnz` is not satisfied.")
    steps = np.diff(pointers, axis=-1)
    if ((steps < 0) | (steps > inner)).any():
        raise RuntimeError(f"{name}: `0 <= {first}[..., 1:] - {first}[..., :-1] <= {inner}` is not satisfied.")
    if plain.size and (plain.min() < 0 or plain.max() >= inner):
        raise RuntimeError(f"{name}: `0 <= {second} < {inner}` is not satisfied.")
    _check_sorted(name, first, second, pointers, plain)


def _check_sorted(name, first, second, pointers, plain):
    flat_plain = plain.reshape(-1, plain.shape[-1])
    for starts, row in zip(pointers.reshape(-1, pointers.shape[-1]), flat_plain, strict=True):
        rises = np.diff(row) > 0
        rises[starts[1:-1][(starts[1:-1] > 0) & (starts[1:-1] < row.size)] - 1] = True
        if not rises.all():
            raise RuntimeError(
                f"{name}: `{second}[..., {first}[..., i - 1]:{first}[..., i]] for all i = 1, ..., {len(starts) - 1} "
                f"are sorted and distinct along the last dimension values` is not satisfied."
            )


# --------------------------------------------------------------------------------------------------- indices


def index_array(name, given, keep=False):
    """Return indices as an array of int64; with `keep`, of int32 if they are that."""
    array = np.asarray(given)
    if array.dtype.kind == "f" and array.size and (array % 1 == 0).all():
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu" and array.size:
        raise TypeError(f"{name}: indices must be integers, got {array.dtype}")
    return array if keep and array.dtype in (np.int32, np.int64) else array.astype(np.int64, copy=False)


def least_sizes(indices):
    """Return the smallest sizes of sparse dimensions that hold all indices."""
    return tuple((indices.max(axis=1) + 1).tolist()) if indices.size else (0,) * indices.shape[0]


def largest(array):
    """Return the largest index plus 1, 0 without any."""
    return int(array.max()) + 1 if array.size else 0


def as_indices(array):
    """Return an integer array that is passed to operators as a constant."""
    return array.astype(np.int64, copy=False)


def offsets_list(given):
    """Return offsets of diagonals as a list of ints."""
    return np.asarray(given).reshape(-1).tolist()


def coordinates_of(indices, sizes, coalesced):
    """Return coordinates, from an array of indices."""
    return Coordinates(indices, sizes, coalesced)


# --------------------------------------------------------------------------------------------------- to SciPy


def to_scipy(array):
    """Return a sparse array of SciPy that shares the memory of the values and indices."""
    pattern, kinds = array.pattern, scipy_sparse()
    if pattern.layout == "sparse_coo":
        rows = tuple(pattern.indices)
        return kinds.coo_array((array.values, rows), shape=array.shape)
    if pattern.layout == "sparse_bsc":
        raise TypeError("to_scipy: SciPy has no blocks by columns; use x.to_sparse_bsr(blocksize)")
    make = getattr(kinds, f"{pattern.layout[-3:]}_array")
    return make((array.values, pattern.plain, pattern.compressed), shape=array.shape)


def from_scipy(matrix):
    """Return (layout, index arrays, values, sizes) of a sparse array of SciPy, over its memory."""
    kind = matrix.format
    if kind == "coo":
        return "sparse_coo", [np.stack(matrix.coords)], matrix.data, matrix.shape
    if kind not in ("csr", "csc", "bsr"):
        return from_scipy(matrix.tocsr())
    return f"sparse_{kind}", [matrix.indptr, matrix.indices], matrix.data, matrix.shape


def text(array, options, **given):
    """Return a sparse array as code: `sparse_text.text`, imported when a tensor is printed."""
    return lazy_module("retrograd.backend.sparse_text").text(array, options, **given)
