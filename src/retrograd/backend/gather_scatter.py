"""Kernels of indexed reads and writes: gathering, scattering, strided windows of memory."""

import itertools
import math
from functools import lru_cache

import numpy as np

from retrograd import kernels
from retrograd.backend.stored_dtypes import as_strided
from retrograd.core.errors import OperandIndexError
from retrograd.core.views import are_apart
from retrograd.kernels import empty
from retrograd.kernels.host_values import on_host

__all__ = [
    "add_at",
    "add_slices",
    "check_range",
    "gather",
    "index_combinations",
    "index_select",
    "index_sum",
    "masked_put",
    "masked_take",
    "moving_windows",
    "moving_windows_sum",
    "nonzero_static",
    "read_strided",
    "repeat_indices",
    "scatter_add",
    "scatter_along",
    "scatter_max",
    "scatter_min",
    "scatter_prod",
    "scatter_set",
    "stacked_indices",
    "sum_rows",
    "take_found",
    "triangle",
    "wrap_indices",
]


FEW = 512  # elements up to which two indices are faster than flat ones
_ascontiguousarray = kernels.caching(np.ascontiguousarray)


def range_hint(bad, size):
    """Return the indices that a size allows, and the size that an index needs."""
    allowed = f"; indices go from 0 to {size - 1}" if size else "; it has no elements"
    return allowed if bad < 0 else f"{allowed}, and {bad} needs a size of at least {bad + 1}"


_UNSIGNED = {np.dtype(f"i{n}"): np.dtype(f"u{n}") for n in (1, 2, 4, 8)}


def largest_unsigned(ids):
    """Return the largest of some integers, of which the negative ones count as larger than all others."""
    unsigned = ids.view(_UNSIGNED.get(ids.dtype, ids.dtype))
    # A reduction of few elements takes longer than to find the index of the largest.
    return unsigned.item(unsigned.argmax()) if ids.size <= FEW else np.maximum.reduce(unsigned, None)


def check_range(name, ids, size, dim=None):
    """Raise an OperandIndexError that names an index out of range, and the dimension if there is one.

    On a device, indices are not checked.
    """
    if on_host and ids.size and largest_unsigned(ids) >= size:
        bad = ids.max() if ids.max() >= size else ids.min()
        raise OperandIndexError(
            f"{name}: index {bad} is out of bounds for {'a dimension' if dim is None else f'dimension {dim}'} with "
            f"size "
            f"{size}: index out of range in self{range_hint(bad, size)}"
        )


def wrap_indices(ids, size):
    """Return int64 indices with negative ones wrapped; a view if none is negative and the dtype allows."""
    ids = ids.astype(np.int64, copy=False)
    return np.where(ids < 0, ids + size, ids) if not on_host or (ids.size and ids.min() < 0) else ids.view()


def stacked_indices(ids, size, dim):
    """Return indices into a stack of tables of `size` rows, one table for each slice of `ids` along dim."""
    check_range("index", ids, size)
    starts = np.arange(ids.shape[dim]) * size
    return ids.astype(np.int64) + starts.reshape(-1, *(1,) * (ids.ndim - 1 - dim))


# ------------------------------------------------------------------------------------- along one dimension


def _along(name, index, shape, dim):
    """Return flat indices into a row-major array of `shape` for `index` along `dim`; other dimensions match."""
    shape, index = shape or (1,), index.reshape(index.shape or (1,))
    at = dim % len(shape)
    check_range(name, index, shape[at], at)
    flat = index.astype(np.intp)
    flat *= math.prod(shape[at + 1 :])
    for d, size in enumerate(index.shape):
        if d != at:
            steps = np.arange(size) * math.prod(shape[d + 1 :])
            flat += steps.reshape(-1, *(1,) * (len(shape) - d - 1))
    return flat


def gather(x, index, dim):
    """Return the elements of x at `index` along `dim`, in the shape of `index`."""
    shape = index.shape
    if not index.size:  # it may have other dimensions than x
        return empty(shape, x.dtype)
    if not (x.ndim and shape):
        x, index = x.reshape(x.shape or (1,)), index.reshape(shape or (1,))
    if _one_to_one(x.shape, index.shape, dim) and (x.flags.c_contiguous or x.size < 2 * index.size):
        out = empty(index.shape, x.dtype)
        done = kernels_for(x.dtype).take_along(cube(x, dim), cube(_as_int64(index), dim), cube(out, dim))
        if done:
            return out.reshape(shape)
    check_range("gather", index, x.shape[dim], dim)
    where = list(np.ogrid[tuple(map(slice, index.shape))])
    where[dim] = index
    return x[tuple(where)].reshape(shape)


def take_found(x, index, dim):
    """Return `gather` for indices that a kernel has found, of which none is out of range."""
    if on_host and x.size <= FEW and dim == x.ndim - 1 and x.flags.c_contiguous and x.size:
        return x.take(index + _row_starts(x.shape) if x.ndim > 1 else index)
    return gather(x, index, dim)


@lru_cache(64)
def _row_starts(shape):
    """Return the flat index at which each row of a small array begins."""
    return np.arange(0, math.prod(shape), shape[-1]).reshape(*shape[:-1], 1)


def scatter_along(src, index, shape, dim):
    """Return zeros of `shape` with each element of `src` added at its index along `dim`."""
    if not index.size:  # it may have other dimensions than the result
        return np.zeros(shape, src.dtype)
    if _one_to_one(shape, index.shape, dim):
        out = empty(shape, src.dtype)
        if kernels_for(src.dtype).sum_along(cube(src, dim), cube(_as_int64(index), dim), cube(out, dim)):
            return out
    out = np.zeros(shape, src.dtype)
    np.add.at(out.reshape(-1), _along("scatter", index, shape, dim).reshape(-1), src.reshape(-1))
    return out


def kernels_for(dtype):
    """Return the kernels for a dtype: compiled ones for some, the reference implementation for all."""
    return kernels if dtype.char in "fd" and dtype.isnative else kernels.reference


def _one_to_one(shape, index_shape, dim):
    """Return whether the sizes of all dimensions except `dim` are equal."""
    return shape[:dim] == index_shape[:dim] and shape[dim + 1 :] == index_shape[dim + 1 :]


def contiguous(x, dtype=None):
    """Return x contiguous and aligned, as kernels need it; x itself if it is."""
    if on_host and type(x) is np.ndarray and not x.flags.c_contiguous and (dtype is None or x.dtype == dtype):
        return kernels.row_major(x)
    x = _ascontiguousarray(x, dtype)
    return x if not on_host or x.flags.aligned else x.copy()


def cube(x, dim):
    """Return x contiguous as (dimensions before `dim`, dim, dimensions after it)."""
    shape = x.shape or (1,)
    if len(shape) == 2:  # fast path
        return contiguous(x)[:, :, None] if dim % 2 else contiguous(x)[None]
    return contiguous(x).reshape(math.prod(shape[:dim]), shape[dim], math.prod(shape[dim + 1 :]))


def _as_int64(index):
    return contiguous(index, np.int64)


def scatter_set(x, index, src, dim):
    """Return x with each element of `src`, an array or a number, at its index along `dim`; the last one wins."""
    out = np.array(x, order="C")
    if x.ndim == 2 == index.ndim and index.size <= FEW:  # fast path
        check_range("scatter", index, x.shape[dim], dim % 2)
        n, m = index.shape
        out[(_row_starts((n, 1)), index) if dim % 2 else (index, np.arange(m))] = src
        return out
    flat = _along("scatter", index, x.shape, dim)
    out.reshape(-1)[flat] = src.reshape(flat.shape) if np.ndim(src) else src
    return out


def _merge_kernel(name, ufunc):
    """Return a kernel that merges each element of `src` by a ufunc into x at its index along `dim`."""

    def merge(x, index, src, dim):
        if name != "prod" and x.dtype.kind == "c":
            raise TypeError(f"scatter_reduce: complex numbers have no order, as scatter_{name} needs it; got {x.dtype}")
        out = np.array(x, order="C")
        places = _along("scatter_reduce", index, x.shape, dim).reshape(-1)
        with np.errstate(invalid="ignore"):  # NaN operands give NaN, as intended
            ufunc.at(out.reshape(-1), places, src.reshape(-1))
        return out

    return merge


scatter_prod = _merge_kernel("prod", np.multiply)
scatter_max, scatter_min = _merge_kernel("max", np.maximum), _merge_kernel("min", np.minimum)


# -------------------------------------------------------------------------------------------- slices


def index_select(x, index, dim):
    """Return the slices of x at `index` along `dim`."""
    x, index = x.reshape(x.shape or (1,)), index.reshape(-1)
    check_range("index_select", index, x.shape[dim], dim)
    return np.take(x, index, axis=dim)


def index_sum(src, index, dim, size):
    """Return `size` slices along `dim`; slice i sums the slices of src whose entry in `index` is i."""
    out = empty((*src.shape[:dim], size, *src.shape[dim + 1 :]), src.dtype)
    if not kernels_for(src.dtype).sum_rows(cube(src, dim), _as_int64(index), cube(out, dim)):
        check_range("index_add", index, size, dim)
    return out


def add_slices(x, src, index, dim):
    """Return x with each slice of `src` added at its index along `dim`."""
    out = empty(x.shape, src.dtype)
    if not kernels_for(src.dtype).add_rows(cube(src, dim), _as_int64(index), cube(x, dim), cube(out, dim)):
        check_range("index_add", index, x.shape[dim], dim)
    return out


def sum_rows(src, ids, size):
    """Return `size` rows; row i sums the rows of src whose id is i."""
    rows = src.reshape(ids.size, *src.shape[ids.ndim :])
    return index_sum(rows, ids.reshape(-1), 0, size)


# ---------------------------------------------------------------------------------------------- any index


def scatter_add(src, where, shape):
    """Return zeros of `shape` with `src` added at the index `where`; repeated indices accumulate."""
    if all(isinstance(i, _BASIC) for i in where):
        out = np.zeros(shape, src.dtype)
        out[where] = src
        return out
    flat = _flatten_leading_index(where, shape)
    if flat is not None:
        return sum_rows(src, flat, math.prod(shape[: len(where)])).reshape(shape)
    out = np.zeros(shape, src.dtype)
    add_at(out, where, src)
    return out


_BASIC = (int, slice, type(None), type(Ellipsis))  # indices that repeat no element


def _flatten_leading_index(where, shape):
    """Return integer indices of leading dimensions as flat indices of these; None for any other index."""
    if not 0 < len(where) < len(shape) or any(not isinstance(i, np.ndarray) or i.dtype.kind not in "iu" for i in where):
        return None
    try:
        return np.ravel_multi_index(
            [wrap_indices(i, size) for i, size in zip(where, shape, strict=False)], shape[: len(where)]
        )
    except ValueError:  # out of range: NumPy's own error is clearer
        return None


def add_at(out, where, src):
    """Add `src` to the row-major `out` at the index `where`, flattened to one dimension if that is faster."""
    if src.size * 4 > out.size:
        where, out = (np.arange(out.size).reshape(out.shape)[where].reshape(-1),), out.reshape(-1)
        src = np.asarray(src).reshape(-1)
    np.add.at(out, where, src)


def nonzero_static(x, size, fill_value):
    """Return the indices of the first `size` nonzero elements, padded with `fill_value`."""
    found = np.argwhere(x)[:size]
    out = np.full((size, x.ndim), fill_value, np.int64)
    out[: len(found)] = found
    return out


def masked_put(x, mask, source):
    """Return rows of x with the next elements of `source`, or a number, where the mask is true."""
    out = np.array(x, order="C")
    values = source.reshape(-1)[_first_in_rows(mask, source.shape[-1])] if np.ndim(source) else source
    out.reshape(-1)[np.flatnonzero(mask)] = values
    return out


def masked_take(x, mask, size):
    """Return rows of `size` elements: those of x where the mask is true, then zeros."""
    out = np.zeros((*x.shape[:-1], size), x.dtype)
    out.reshape(-1)[_first_in_rows(mask, size)] = x.reshape(-1)[np.flatnonzero(mask)]
    return out


def _first_in_rows(mask, size):
    """Return the flat indices of the first elements of rows of `size`, as many as the mask has true ones per row."""
    count = np.count_nonzero(mask, axis=-1)
    most = np.max(count, initial=0) if mask.ndim > 1 else count
    if on_host and most > size:
        raise RuntimeError(f"masked_scatter: the mask has {most} true elements, but source only {size}")
    return slice(count.item()) if mask.ndim == 1 else np.flatnonzero(np.arange(size) < count[..., None])


def repeat_indices(repeats, output_size):
    """Return each index repeated as `repeats` says; if there are several rows, each must sum to `output_size`."""
    if on_host and repeats.size and repeats.min() < 0:
        raise RuntimeError(
            f"repeat_interleave: repeats can not be negative: repeats must not be negative, got {repeats.min()}"
        )
    sizes = repeats.sum(axis=-1, dtype=np.int64)
    if on_host and output_size is not None and (sizes != output_size).any():
        total = sizes.reshape(-1)[np.argmax(sizes != output_size)]
        raise RuntimeError(f"repeat_interleave: output_size is {output_size}, but repeats add up to {total}")
    places = np.broadcast_to(np.arange(repeats.shape[-1]), repeats.shape)
    out = np.repeat(places.reshape(-1), repeats.reshape(-1))
    return out if repeats.ndim == 1 else out.reshape(*repeats.shape[:-1], output_size)


def index_combinations(n, r, with_replacement):
    """Return the combinations of r among n indices in lexicographic order, one row each."""
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    return np.array(list(choose(range(n), r)), np.int64).reshape(-1, r)


def triangle(find, row, col, offset, dtype):
    """Return the indices of a triangle of a matrix as two rows; `find` is NumPy's function for it."""
    return np.stack(getattr(np, find)(row, offset, col)).astype(dtype)


# ------------------------------------------------------------------------------------------ windows of memory


def _memory_view(x, shape, strides, skip=0):
    """Return a view of the memory of x from byte `skip` on, in another shape and strides, with a NumPy base."""
    if 0 in shape:  # no element, no address
        return (x[:0] if x.ndim else x.reshape(1)[:0]).reshape(shape)
    if not on_host:
        return np.lib.stride_tricks.as_strided(x[skip // x.itemsize :] if skip else x, shape, strides)
    owner = x if x.base is None else x.base
    memory = owner
    if isinstance(owner, np.ndarray):
        if not owner.flags.c_contiguous:  # it may own its memory in any order of dimensions
            memory = owner.transpose(sorted(range(owner.ndim), key=lambda d: -owner.strides[d]))
        if not (memory.flags.c_contiguous or skip):  # as_strided made it: its memory belongs to no array
            return as_strided(x, shape, strides, writeable=False).copy()
        start = kernels.address(memory)
    else:
        start = kernels.address(np.frombuffer(owner, np.uint8))
    out = np.ndarray(shape, x.dtype, memory, kernels.address(x) - start + skip, strides)
    out.flags.writeable = x.flags.writeable and are_apart(shape, strides, x.itemsize)
    return out if out.base is owner else out.copy()


def moving_windows(x, dim, size, step):
    """Return a view of the windows of `size` elements at every `step` along dim, in a new last dimension."""
    count = (x.shape[dim] - size) // step + 1
    shape = (*x.shape[:dim], count, *x.shape[dim + 1 :], size)
    return _memory_view(x, shape, (*x.strides[:dim], x.strides[dim] * step, *x.strides[dim + 1 :], x.strides[dim]))


def moving_windows_sum(src, dim, length, step):
    """Return zeros of `length` along dim with each window added where it was read."""
    out = np.zeros((*src.shape[:dim], length, *src.shape[dim + 1 : -1]), src.dtype)
    count, size, before = src.shape[dim], src.shape[-1], (slice(None),) * dim
    for i in range(size if count else 0):
        out[(*before, slice(i, i + (count - 1) * step + 1, step))] += src[..., i]
    return out


def read_strided(x, size, stride, offset):
    """Return elements of a vector in the shape `size`; the stride of dimension d is `stride[d]` elements."""
    step = x.strides[0]
    return _memory_view(x, size, tuple(s * step for s in stride), offset * step)
