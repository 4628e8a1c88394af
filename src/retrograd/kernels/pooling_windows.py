"""Pooling with NumPy: sums and maxima over windows, one dimension after the other.

Along each dimension windows are (kernel, stride, before, dilation, size): window i of `size` begins at
i * stride - before; or (size,): that many windows cover the dimension as evenly as possible.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from retrograd.kernels.host_values import on_host
from retrograd.kernels.overlap import separate


class Windows(NamedTuple):
    """Windows of the last dimensions of images of one size."""

    windows: tuple
    sizes: tuple
    table: np.ndarray  # the description for pooling.cpp


@lru_cache(1024)
def windows_of(windows, sizes):
    """Return the windows of images of these sizes."""
    axes = [_axis(*one) for one in zip(sizes, windows, strict=True)] if on_host else []
    heads, lists = zip(*axes, strict=True) if axes else ((), ())
    return Windows(windows, sizes, np.concatenate([*heads, *lists], dtype=np.int64) if axes else np.zeros(0, np.int64))


def _axis(size, windows):
    """Return size, number of windows, stride (0: irregular), dilation, margin, taps, starts and lengths of windows."""
    if len(windows) == 1:
        first = np.arange(windows[0]) * size // windows[0]
        count = -(-np.arange(1, windows[0] + 1) * size // windows[0]) - first
        return (size, windows[0], 0, 1, 0, 0), np.concatenate([first, count])
    kernel, stride, before, dilation, out = windows
    start = np.arange(out) * stride - before
    outside = np.maximum(-(start // dilation), 0)  # taps before the image
    inside = np.minimum(-((start - size) // dilation), kernel) - outside
    lists = np.concatenate([start + outside * dilation, np.maximum(inside, 0)])
    return (size, out, stride, dilation, before, kernel), lists


def window_sums(plan, x, out):
    """Write the sums over windows of x to `out`."""
    out[...] = pooled_sum(x, plan.windows)


def window_sums_backward(plan, g, out):
    """Write the images `out`: each window's cotangent is added to all of its elements."""
    out[...] = pooled_sum_backward(g, plan.windows, plan.sizes)


def window_maxima(plan, x, out):
    """Write the largest values in windows of x to `out`; NaN wins."""
    out[...] = pooled_max(x, plan.windows)


def window_argmax(plan, x, out):
    """Write the index of the largest value in each window to `out`: the first of equal ones, the last NaN."""
    out[...] = max_pool_indices(x, plan.windows)


@separate(1)
def window_maxima_backward(plan, g, x, out):
    """Write the images `out`: each window's cotangent is added at its largest value."""
    places = max_pool_indices(x, plan.windows).reshape(len(x), -1)
    out[...] = 0
    np.add.at(out.reshape(len(x), -1), (np.arange(len(x))[:, None], places), g.reshape(places.shape))


class Taps(NamedTuple):
    """Along one dimension: the padding, and the indices that each tap reads for all windows."""

    before: int
    after: int
    reads: list  # slices, or integer arrays where windows are of several sizes
    places: list  # the same as arrays of indices into the image


def _taps(size, windows):
    if len(windows) == 1:
        count = windows[0]
        start = np.arange(count) * size // count
        last = -(-np.arange(1, count + 1) * size // count) - 1
        most = max([-(-(i + 1) * size // count) - i * size // count for i in range(count)], default=0)
        places = [np.minimum(start + t, last) for t in range(most)]
        return Taps(0, 0, places, places)
    kernel, stride, before, dilation, out = windows
    reads = [slice(t * dilation, t * dilation + (out - 1) * stride + 1, stride) for t in range(kernel)]
    after = max(0, (out - 1) * stride + (kernel - 1) * dilation + 1 - size - before)
    return Taps(before, after, reads, [np.arange(out) * stride + t * dilation - before for t in range(kernel)])


def _dims(x, windows):
    """Return the pooled dimensions of x, the last ones, each with its taps."""
    first = x.ndim - len(windows)
    return [(first + d, _taps(x.shape[first + d], w)) for d, w in enumerate(windows)]


def _pad_windows(x, dims, value):
    """Return x padded by all that windows read outside."""
    if not any(taps.before or taps.after for _, taps in dims):
        return x
    shape, inside = list(x.shape), [slice(None)] * x.ndim
    for dim, taps in dims:
        inside[dim] = slice(taps.before, taps.before + shape[dim])
        shape[dim] += taps.before + taps.after
    out = np.full(shape, value, x.dtype)
    out[*inside] = x
    return out


def _read(x, dim, read):
    """Return the elements that a tap reads along one dimension."""
    return x[(slice(None),) * dim + (read,)] if isinstance(read, slice) else np.take(x, read, axis=dim)


def _lowest(dtype):
    """Return a value that is never the maximum of others."""
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


def pooled_sum(x, windows):
    """Return the sums over windows of the last dimensions, with zeros outside."""
    dims = _dims(x, windows)
    x = _pad_windows(x, dims, 0)
    for dim, taps in dims:
        x = _combine_taps(x, dim, taps, np.add)
    return x


def pooled_max(x, windows):
    """Return the largest element in each window; NaN wins."""
    dims = _dims(x, windows)
    x = _pad_windows(x, dims, _lowest(x.dtype))
    for dim, taps in dims:
        x = _combine_taps(x, dim, taps, np.maximum)
    return x


def _combine_taps(x, dim, taps, combine):
    out = np.array(_read(x, dim, taps.reads[0]))
    for read in taps.reads[1:]:
        combine(out, _read(x, dim, read), out=out)
    return out


def pooled_sum_backward(g, windows, sizes):
    """Return `pooled_sum` transposed: each window's cotangent is added to all of its elements, in `sizes`."""
    first = g.ndim - len(windows)
    for d, (size, along) in enumerate(zip(sizes, windows, strict=True)):
        dim, taps = first + d, _taps(size, along)
        wide = np.zeros((*g.shape[:dim], taps.before + size + taps.after, *g.shape[dim + 1 :]), g.dtype)
        for read in taps.reads:
            _read(wide, dim, read)[...] += g
        g = _read(wide, dim, slice(taps.before, taps.before + size))
    return np.ascontiguousarray(g)


def max_pool_indices(x, windows):
    """Return the flat index of each window's largest element: the first of equal ones, the last NaN."""
    if x.dtype.kind in "iu":
        x = x.astype(np.int64)
    dims = _dims(x, windows)
    largest = pooled_max(x, windows)
    out = np.zeros(largest.shape, np.int64)
    # Padding must not be found as the maximum: for floats it is NaN.
    outside = np.nan if x.dtype.kind == "f" else _lowest(x.dtype)
    for read, place in reversed(list(_choices(_pad_windows(x, dims, outside), dims))):
        np.copyto(out, place, where=read == largest)
    if x.dtype.kind == "f" and (not on_host or np.isnan(largest).any()):
        for read, place in _choices(_pad_windows(x, dims, 0), dims):
            np.copyto(out, place, where=np.isnan(read))
    return out


def _choices(x, dims):
    """Yield for each tap of the window the elements that it reads and their flat indices in the image."""
    sizes = [x.shape[dim] - taps.before - taps.after for dim, taps in dims]
    for tap in np.ndindex(*[len(taps.reads) for _, taps in dims]):
        read, place = x, 0
        for t, (dim, taps), size in zip(tap, dims, sizes, strict=True):
            read = _read(read, dim, taps.reads[t])
            place = np.add.outer(place * size, taps.places[t])
        yield read, place
