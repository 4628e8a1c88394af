"""The memory layout of convolutions: the grid, and NumPy versions of the C++ `sum_windows` and `conv_weight_sums`.

Images are first copied into a padded grid, split by phase (index modulo stride), so that the elements that a tap reads
of a channel, for all positions, are one contiguous run.  A run also covers the padding between two rows of an image;
results computed there are dropped.

In NumPy, the runs of all taps become the rows of a matrix, in blocks that fit into the cache, for a matrix product
(im2col).  C++ expects three spatial dimensions, some of which may have size 1.
"""

import itertools
import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from retrograd.kernels.host_values import on_host
from retrograd.kernels.overlap import separate

CACHE = 1 << 17  # elements processed at a time
WIDE = 256  # columns that make a matrix product efficient


class Phase(NamedTuple):
    """Along one dimension: the indices of an image that agree modulo the stride, and the taps that read them."""

    taps: slice
    number: int  # of taps
    first: int  # the index, within the phase, that the first tap reads first
    step: int  # from one tap to the next
    kept: slice  # the indices in the grid that hold elements of the image
    source: slice  # these elements


class Part(NamedTuple):
    """One phase for each dimension."""

    taps: tuple
    counts: tuple
    offset: int  # offset of the first run
    steps: tuple  # from a tap's run to the next one's, along each dimension
    kept: tuple
    source: tuple


class Plan(NamedTuple):
    """The layout of images in the grid."""

    parts: tuple
    pitches: tuple  # the shape of an image in one part of the grid
    rows: tuple  # the shape of a run
    run: int  # its length
    length: int  # of one channel of one part
    places: tuple  # for each tap: the index of its part, and the offset of its run
    as_is: bool  # the grid is the image itself
    table: np.ndarray | None  # the layout for the C++ kernels, if there are three dimensions


def phases_of(size, kernel, out, stride, before, dilation):
    """Return the phases along one dimension."""
    common = math.gcd(stride, dilation)
    found = []
    for tap in range(min(stride // common, kernel)):
        taps = range(tap, kernel, stride // common)
        first, rest = divmod(tap * dilation, stride)
        step = dilation // common
        end = out + first + (len(taps) - 1) * step  # of the elements read
        low = max(0, -((rest - before) // stride))
        high = max(low, min(end, (size - 1 + before - rest) // stride + 1))
        start = rest + stride * low - before
        source = slice(start, start + stride * (high - low), stride) if high > low else slice(0, 0)
        found.append(Phase(slice(tap, None, taps.step), len(taps), first, step, slice(low, high), source))
    return found


def _pitch(phases, out):
    """Return the distance of rows; the padding after one also serves as that before the next."""
    end = max(out + p.first + (p.number - 1) * p.step for p in phases)
    return max(out, end - min(p.kept.start for p in phases), *(p.kept.stop for p in phases))


@lru_cache(1024)
def plan_of(sizes, kernel, out, stride, before, dilation):
    """Return the plan of a convolution of images."""
    axes = [phases_of(*one) for one in zip(sizes, kernel, out, stride, before, dilation, strict=True)]
    pitches = tuple(_pitch(phases, o) for phases, o in zip(axes, out, strict=True))
    strides = [math.prod(pitches[j + 1 :]) for j in range(len(pitches))]
    parts = [_part(phases, strides) for phases in itertools.product(*axes)]
    places = {tap: (i, begin) for i, part in enumerate(parts) for tap, begin in _runs(part)}
    rows = (out[0], *pitches[1:])
    last = max(begin for _, begin in places.values())
    length = max(math.prod(pitches), last + math.prod(rows))
    as_is = len(parts) == 1 and pitches == sizes and length == math.prod(sizes) and not any(before)
    in_order = tuple(places[tap] for tap in np.ndindex(*kernel))
    plan = Plan(tuple(parts), pitches, rows, math.prod(rows), length, in_order, as_is, None)
    return plan._replace(table=_table(plan, out, stride, strides)) if on_host and len(out) == 3 else plan


def _table(plan, out, stride, strides):
    """Return the layout for conv_layout.hpp: counts, run, length and strides; then the parts, taps and rows."""
    gapless = plan.rows == out
    rows = [0] if gapless else [i * strides[0] + j * strides[1] for i, j in np.ndindex(*out[:2])]
    table = [len(plan.parts), len(plan.places), len(rows), math.prod(out) if gapless else out[2]]
    table += [plan.run, plan.length, *stride, *strides]
    for part in plan.parts:
        table += [n for k, s in zip(part.kept, part.source, strict=True) for n in (k.start, k.stop, s.start)]
    return np.array([*table, *itertools.chain(*plan.places), *rows], np.int64)


def _part(phases, strides):
    pairs = list(zip(phases, strides, strict=True))
    return Part(
        tuple(p.taps for p in phases),
        tuple(p.number for p in phases),
        sum(p.first * s for p, s in pairs),
        tuple(p.step * s for p, s in pairs),
        tuple(p.kept for p in phases),
        tuple(p.source for p in phases),
    )


def _runs(part):
    """Yield each tap of a part, with the offset of its run."""
    for number in np.ndindex(*part.counts):
        tap = tuple(s.start + s.step * i for s, i in zip(part.taps, number, strict=True))
        yield tap, part.offset + sum(i * s for i, s in zip(number, part.steps, strict=True))


# ------------------------------------------------------------------------------------------------ grids and columns


def _chunks(total, step):
    return [slice(i, min(total, i + step)) for i in range(0, total, step)]


def _batches(plan, images, channels, cache=CACHE):
    """Return slices of images to process at a time; several images only if one makes too narrow a matrix."""
    taken = channels * len(plan.places) * plan.run
    return _chunks(images, max(1, cache // max(taken, 1), WIDE // max(plan.run, 1)))


def _blocks(plan, channels, cache=CACHE):
    """Return slices of a run to process at a time."""
    return _chunks(plan.run, max(WIDE, cache // max(channels * len(plan.places), 1)))


def _in_grid(plan, grid):
    """Return the images of each part in the grid, without the elements after the last row."""
    end = math.prod(plan.pitches)
    return [grid[:, i, :, :end].reshape(*grid.shape[::2][:2], *plan.pitches) for i in range(len(plan.parts))]


def _grid(plan, x, used=None):
    """Return images (n, c, *sizes) in the grid, (n, parts, c, length); `used` is an earlier grid, reused if it fits."""
    if plan.as_is:
        return np.ascontiguousarray(x).reshape(len(x), 1, x.shape[1], plan.length)
    if used is None or len(used) != len(x):
        used = np.zeros((len(x), len(plan.parts), x.shape[1], plan.length), x.dtype)
    for part, images in zip(plan.parts, _in_grid(plan, used), strict=True):
        images[..., *part.kept] = x[..., *part.source]
    return used


def _views(plan, grid, groups):
    """Return for each part its runs, (groups, channels per group, *taps, n, run), which overlap in memory."""
    n, _, c, _ = grid.shape
    image, _, channel, item = grid.strides
    found = []
    for i, part in enumerate(plan.parts):
        shape = (groups, c // groups, *part.counts, n, plan.run)
        strides = (channel * (c // groups), channel, *(item * s for s in part.steps), image, item)
        runs = grid[:, i, :, part.offset :]
        found.append(np.lib.stride_tricks.as_strided(runs, shape, strides, writeable=False))
    return found


def _columns(plan, views, kernel, block):
    """Return a block of the runs of all taps as a matrix per group, (groups, channels per group * taps, n * block)."""
    groups, channels, *_, n, _ = views[0].shape
    shape = (groups, channels * len(plan.places), n * (block.stop - block.start))
    if len(plan.places) == 1:
        return views[0][..., block].reshape(shape)
    out = np.empty((groups, channels, *kernel, n, block.stop - block.start), views[0].dtype)
    for part, view in zip(plan.parts, views, strict=True):
        out[:, :, *part.taps] = view[..., block]
    return out.reshape(shape)


def _pad_rows(plan, y):
    """Return images (n, o, *out) with the row distance of the grid and zeros between rows: (n, o, run)."""
    if plan.rows != y.shape[2:]:
        wide = np.zeros((*y.shape[:2], *plan.rows), y.dtype)
        wide[..., *map(slice, y.shape[2:])] = y
        y = wide
    return np.ascontiguousarray(y).reshape(*y.shape[:2], plan.run)


def _matrix_per_group(y, groups, block):
    """Return a block of widened images as a matrix per group, (groups, channels per group, n * block)."""
    n, o, _ = y.shape
    part = y[..., block].reshape(n, groups, o // groups, -1)
    return part[0] if n == 1 else np.moveaxis(part, 0, 2).reshape(groups, o // groups, -1)


# ------------------------------------------------------------------------------------------------------ the kernels


@separate(1)
@np.errstate(invalid="ignore")  # as in C++, no product warns
def sum_windows(plan, x, w, bias, out):
    """Write the images `out` (n, o, *out) from x (n, c, *sizes) and w (groups, o and c per group, *kernel).

    w and `out` may be strided.  Each value is the sum over channels and taps of the element that a tap reads times its
    weight, plus the bias of its channel.
    """
    groups, outs, channels = w.shape[:3]
    matrix = w.reshape(groups, outs, -1)
    (_conv_by_channel if outs == channels == 1 else _conv_by_group)(plan, x, matrix, out, w.shape[3:])
    if bias is not None:
        out += bias.reshape(-1, *(1,) * (out.ndim - 2))


def _conv_by_group(plan, x, w, out, kernel):
    groups, outs, _ = w.shape
    grid, blocks = None, _blocks(plan, x.shape[1])
    for images in _batches(plan, len(x), x.shape[1]):
        grid = _grid(plan, x[images], grid)
        n, views, part = len(grid), _views(plan, grid, groups), out[images]
        direct = n == 1 and plan.rows == out.shape[2:] and part.flags.c_contiguous
        flat = part.reshape(groups, outs, -1) if direct else np.empty((groups, outs, n * plan.run), x.dtype)
        for block in blocks:  # one, if there are several images
            columns = _columns(plan, views, kernel, block)
            np.matmul(w, columns, out=flat[..., n * block.start : n * block.stop])
        if not direct:
            rows = flat.reshape(groups * outs, n, *plan.rows)[..., *map(slice, out.shape[2:])]
            part[...] = rows.swapaxes(0, 1)


def _conv_by_channel(plan, x, w, out, _):
    """Convolve with one kernel per channel: scaled runs are added, without a matrix."""
    channels, taps = x.shape[1], w[:, 0]
    grid, few = None, CACHE // 4
    blocks = _chunks(plan.run, max(WIDE, few // channels))
    for images in _chunks(len(x), max(1, few // (plan.run * channels))):
        grid = _grid(plan, x[images], grid)
        flat = np.empty((len(grid), channels, plan.run), x.dtype)
        for block in blocks:
            _add_scaled_runs(plan, grid, taps, block, flat[..., block])
        out[images] = flat.reshape(len(grid), channels, *plan.rows)[..., *map(slice, out.shape[2:])]


def _add_scaled_runs(plan, grid, taps, block, out):
    term = np.empty(out.shape, out.dtype)
    for t, (part, begin) in enumerate(plan.places):
        run = grid[:, part, :, begin + block.start : begin + block.stop]
        np.multiply(run, taps[:, t, None], out=term if t else out)
        if t:
            out += term


@separate(2)
@np.errstate(invalid="ignore")
def conv_weight_sums(plan, x, y, out, groups):
    """Write the weight `out` (o, c / groups, *kernel) from images x (n, c, *sizes) and y (n, o, *out).

    Each value is the sum over images and positions of the element of x that its tap reads there times y.
    """
    out.fill(0)
    by_channel = groups == x.shape[1] == y.shape[1]
    (_weight_by_channel if by_channel else _weight_by_group)(plan, x, y, out, groups)


def _weight_by_group(plan, x, y, out, groups):
    total = out.reshape(groups, out.shape[0] // groups, -1)
    grid, blocks = None, _blocks(plan, x.shape[1])
    for images in _batches(plan, len(x), x.shape[1], 4 * CACHE):  # few, because each adds to the entire weight
        grid = _grid(plan, x[images], grid)
        views, flat = _views(plan, grid, groups), _pad_rows(plan, y[images])
        for block in blocks if len(grid) == 1 else [slice(0, plan.run)]:
            columns = _without_gaps(plan, _columns(plan, views, out.shape[2:], block), y.shape[2:], block)
            total += np.matmul(_matrix_per_group(flat, groups, block), columns.swapaxes(1, 2))


def _without_gaps(plan, runs, size, block):
    """Return runs with zeros between the rows of an output of this size, where no tap reads.

    The other factor has zeros there, too; but 0 times NaN or an infinity of the images is NaN.
    """
    if plan.rows == size:
        return runs
    read = np.zeros(plan.rows, bool)
    read[*map(slice, size)] = True
    read = read.reshape(-1)[block]
    parts = runs.reshape(*runs.shape[:-1], -1, len(read))
    return np.where(read, parts, runs.dtype.type(0)).reshape(runs.shape)


def _weight_by_channel(plan, x, y, out, _):
    total, grid = out.reshape(out.shape[0], -1), None
    for images in _chunks(len(x), max(1, CACHE // (plan.run * x.shape[1]))):
        grid = _grid(plan, x[images], grid)
        flat = _pad_rows(plan, y[images])
        for t, (part, begin) in enumerate(plan.places):
            run = _without_gaps(plan, grid[:, part, :, begin : begin + plan.run], y.shape[2:], slice(0, plan.run))
            total[:, t] += np.einsum("ncl,ncl->c", flat, run)
