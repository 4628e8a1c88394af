"""Kernels of convolutions: one trilinear form, solved for each of its three parts.

The form is the sum over images n, channels c and o, places p and taps t of x[n, c, p * stride + t * dilation - before]
* w[o, c, t] * y[n, o, p], x being 0 outside.  `conv` is its derivative by y, `conv_input` by x, `conv_weight` by w.

Images are first copied into a padded grid, split by phase (place modulo stride), in which what a tap reads of a channel
for all places is one run of memory.  Runs of all taps are the rows of a matrix, of which as much is made at a time as
fits into the cache; the rest is a matrix product.  A run also passes the padding between two rows of an image: what
is computed there is cut off.
"""

import itertools
import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

__all__ = ["conv", "conv_input", "conv_weight", "window_columns", "window_sums"]

CACHE = 1 << 17  # elements that are worked on at a time
WIDE = 256  # columns that make a matrix product efficient


class Phase(NamedTuple):
    """Along one dimension: the places of an image that agree modulo the stride, and the taps that read them."""

    taps: slice
    number: int  # of taps
    first: int  # the place, counted within the phase, that the first tap reads first
    step: int  # from one tap to the next
    kept: slice  # the places in the grid that hold elements of the image
    source: slice  # these elements


class Part(NamedTuple):
    """A phase along each dimension."""

    taps: tuple
    counts: tuple
    offset: int  # where the first run begins
    steps: tuple  # from a tap's run to the next one's, along each dimension
    kept: tuple
    source: tuple


class Plan(NamedTuple):
    """How images lie in the grid."""

    parts: tuple
    pitches: tuple  # the shape of an image in one part of the grid
    rows: tuple  # the shape of a run
    run: int  # its length
    length: int  # of one channel of one part
    places: tuple  # per tap: the number of its part, and where its run begins
    as_is: bool  # the grid is the image itself


def _phases(size, kernel, out, stride, before, dilation):
    """The phases along one dimension."""
    common = math.gcd(stride, dilation)
    found = []
    for tap in range(min(stride // common, kernel)):
        taps = range(tap, kernel, stride // common)
        first, rest = divmod(tap * dilation, stride)
        step = dilation // common
        end = out + first + (len(taps) - 1) * step  # of what is read
        low = max(0, -((rest - before) // stride))
        high = max(low, min(end, (size - 1 + before - rest) // stride + 1))
        start = rest + stride * low - before
        source = slice(start, start + stride * (high - low), stride) if high > low else slice(0, 0)
        found.append(Phase(slice(tap, None, taps.step), len(taps), first, step, slice(low, high), source))
    return found


def _pitch(phases, out):
    """How far rows lie apart: the padding at the end of one serves as that at the beginning of the next."""
    end = max(out + p.first + (p.number - 1) * p.step for p in phases)
    return max(out, end - min(p.kept.start for p in phases), *(p.kept.stop for p in phases))


@lru_cache(1024)
def _plan(sizes, kernel, out, stride, before, dilation):
    """The plan of a convolution."""
    axes = [_phases(*one) for one in zip(sizes, kernel, out, stride, before, dilation, strict=True)]
    pitches = tuple(_pitch(phases, o) for phases, o in zip(axes, out, strict=True))
    strides = [math.prod(pitches[j + 1 :]) for j in range(len(pitches))]
    parts = [_part(phases, strides) for phases in itertools.product(*axes)]
    places = {tap: (i, begin) for i, part in enumerate(parts) for tap, begin in _runs(part)}
    rows = (out[0], *pitches[1:])
    last = max(begin for _, begin in places.values())
    length = max(math.prod(pitches), last + math.prod(rows))
    as_is = len(parts) == 1 and pitches == sizes and length == math.prod(sizes) and not any(before)
    in_order = tuple(places[tap] for tap in np.ndindex(*kernel))
    return Plan(tuple(parts), pitches, rows, math.prod(rows), length, in_order, as_is)


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
    """Each tap of a part, with the place where its run begins."""
    for number in np.ndindex(*part.counts):
        tap = tuple(s.start + s.step * i for s, i in zip(part.taps, number, strict=True))
        yield tap, part.offset + sum(i * s for i, s in zip(number, part.steps, strict=True))


# ------------------------------------------------------------------------------------------------ grids and columns


def _chunks(total, step):
    return [slice(i, min(total, i + step)) for i in range(0, total, step)]


def _batches(plan, images, channels, cache=CACHE):
    """Images that are worked on at a time; several only where one alone makes a narrow matrix."""
    taken = channels * len(plan.places) * plan.run
    return _chunks(images, max(1, cache // max(taken, 1), WIDE // max(plan.run, 1)))


def _blocks(plan, channels, cache=CACHE):
    """Stretches of a run that are worked on at a time."""
    return _chunks(plan.run, max(WIDE, cache // max(channels * len(plan.places), 1)))


def _in_grid(plan, grid):
    """Per part its images in the grid, without what follows the last row."""
    end = math.prod(plan.pitches)
    return [grid[:, i, :, :end].reshape(*grid.shape[::2][:2], *plan.pitches) for i in range(len(plan.parts))]


def _grid(plan, x, used=None):
    """Images (n, c, *sizes) in the grid, (n, parts, c, length); `used` is memory of an earlier grid, if it fits."""
    if plan.as_is:
        return np.ascontiguousarray(x).reshape(len(x), 1, x.shape[1], plan.length)
    if used is None or len(used) != len(x):
        used = np.zeros((len(x), len(plan.parts), x.shape[1], plan.length), x.dtype)
    for part, images in zip(plan.parts, _in_grid(plan, used), strict=True):
        images[..., *part.kept] = x[..., *part.source]
    return used


def _views(plan, grid, groups):
    """Per part its runs, (groups, channels of one, *taps, n, run), which overlap in memory."""
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
    """A block of the runs of all taps as a matrix per group, (groups, channels of one * taps, n * block)."""
    groups, channels, *_, n, _ = views[0].shape
    shape = (groups, channels * len(plan.places), n * (block.stop - block.start))
    if len(plan.places) == 1:
        return views[0][..., block].reshape(shape)
    out = np.empty((groups, channels, *kernel, n, block.stop - block.start), views[0].dtype)
    for part, view in zip(plan.parts, views, strict=True):
        out[:, :, *part.taps] = view[..., block]
    return out.reshape(shape)


def _widened(plan, y):
    """Images (n, o, *out) with rows as far apart as in the grid, zeros between them: (n, o, run)."""
    if plan.rows != y.shape[2:]:
        wide = np.zeros((*y.shape[:2], *plan.rows), y.dtype)
        wide[..., *map(slice, y.shape[2:])] = y
        y = wide
    return np.ascontiguousarray(y).reshape(*y.shape[:2], plan.run)


def _grouped(y, groups, block):
    """A block of widened images as a matrix per group, (groups, channels of one, n * block)."""
    n, o, _ = y.shape
    part = y[..., block].reshape(n, groups, o // groups, -1)
    return part[0] if n == 1 else np.moveaxis(part, 0, 2).reshape(groups, o // groups, -1)


# ------------------------------------------------------------------------------------------------------ the kernels


def _half_in_single(kernel):
    """A kernel that computes in single precision where the numbers are half."""

    def rounded(a, b, *rest, **params):
        if a.dtype != np.float16:
            return kernel(a, b, *rest, **params)
        single = [r if r is None else r.astype(np.float32) for r in (a, b, *rest)]
        return kernel(*single, **params).astype(np.float16)

    return rounded


@_half_in_single
def conv(x, w, bias=None, *, size, stride, before, dilation, groups):
    """The images y (n, o, *size) that x (n, c, *sizes) and w (o, c / groups, *kernel) give."""
    out = np.empty((len(x), len(w), *size), x.dtype)
    if out.size and w.size:
        plan = _plan(x.shape[2:], w.shape[2:], size, stride, before, dilation)
        by_channel = groups == x.shape[1] == len(w)
        (_conv_by_channel if by_channel else _conv_by_group)(plan, x, w, out, groups)
    else:
        out.fill(0)
    if bias is not None:
        out += bias.reshape(-1, *(1,) * len(size))
    return out


def _conv_by_group(plan, x, w, out, groups):
    matrix = w.reshape(groups, len(w) // groups, -1)
    grid, blocks = None, _blocks(plan, x.shape[1])
    for images in _batches(plan, len(x), x.shape[1]):
        grid = _grid(plan, x[images], grid)
        n, views, part = len(grid), _views(plan, grid, groups), out[images]
        direct = n == 1 and plan.rows == out.shape[2:]
        flat = part.reshape(*matrix.shape[:2], -1) if direct else np.empty((*matrix.shape[:2], n * plan.run), x.dtype)
        for block in blocks:  # one, if there are several images
            columns = _columns(plan, views, w.shape[2:], block)
            np.matmul(matrix, columns, out=flat[..., n * block.start : n * block.stop])
        if not direct:
            rows = flat.reshape(len(w), n, *plan.rows)[..., *map(slice, out.shape[2:])]
            part[...] = rows.swapaxes(0, 1)


def _conv_by_channel(plan, x, w, out, _):
    """Each channel has a kernel of its own: scaled runs are added, without a matrix."""
    channels, taps = x.shape[1], w.reshape(len(w), -1)
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


@_half_in_single
def conv_input(y, w, *, size, stride, before, dilation, groups):
    """The images x (n, c, *size) that y (n, o, *out) and w (o, c / groups, *kernel) give: `conv` transposed."""
    kernel = w.shape[2:]
    if all(s == 1 for s in stride):
        extent = [(k - 1) * d - b for k, d, b in zip(kernel, dilation, before, strict=True)]
        turned = {"stride": stride, "before": tuple(extent), "dilation": dilation}
        return conv(y, _turned(w, groups), size=size, groups=groups, **turned)
    out = np.zeros((len(y), w.shape[1] * groups, *size), y.dtype)
    if out.size and y.size and w.size:
        plan = _plan(tuple(size), kernel, y.shape[2:], stride, before, dilation)
        by_channel = groups == out.shape[1] == len(w)
        (_back_by_channel if by_channel else _back_by_group)(plan, y, w, out, groups)
    return out


def _turned(w, groups):
    """The weight with both kinds of channels swapped and taps in reverse order: (c, o / groups, *kernel)."""
    flipped = np.flip(w, tuple(range(2, w.ndim)))
    o, c, *kernel = w.shape
    return flipped.reshape(groups, o // groups, c, *kernel).swapaxes(1, 2).reshape(groups * c, o // groups, *kernel)


def _back_by_group(plan, y, w, out, groups):
    c = out.shape[1]
    matrix = w.reshape(groups, len(w) // groups, -1).swapaxes(1, 2)
    blocks = _blocks(plan, c)
    for images in _batches(plan, len(y), c):
        flat = _widened(plan, y[images])
        grid = np.zeros((len(flat), len(plan.parts), c, plan.length), y.dtype)
        for block in blocks:
            columns = np.matmul(matrix, _grouped(flat, groups, block))
            columns = columns.reshape(c, len(plan.places), len(flat), -1)
            for t, (part, begin) in enumerate(plan.places):
                grid[:, part, :, begin + block.start : begin + block.stop] += columns[:, t].swapaxes(0, 1)
        _from_grid(plan, grid, out[images])


def _back_by_channel(plan, y, w, out, _):
    taps = w.reshape(len(w), -1)
    for images in _chunks(len(y), max(1, CACHE // (plan.run * len(w)))):
        flat = _widened(plan, y[images])
        grid = np.zeros((len(flat), len(plan.parts), len(w), plan.length), y.dtype)
        for t, (part, begin) in enumerate(plan.places):
            grid[:, part, :, begin : begin + plan.run] += flat * taps[:, t, None]
        _from_grid(plan, grid, out[images])


def _from_grid(plan, grid, out):
    for part, images in zip(plan.parts, _in_grid(plan, grid), strict=True):
        out[..., *part.source] = images[..., *part.kept]


@_half_in_single
def conv_weight(x, y, *, kernel, stride, before, dilation, groups):
    """The weight (o, c / groups, *kernel) that x (n, c, *sizes) and y (n, o, *out) give."""
    c, o = x.shape[1], y.shape[1]
    out = np.zeros((o, c // groups, *kernel), x.dtype)
    if x.size and y.size and out.size:
        plan = _plan(x.shape[2:], kernel, y.shape[2:], stride, before, dilation)
        (_weight_by_channel if groups == c == o else _weight_by_group)(plan, x, y, out, groups)
    return out


def _weight_by_group(plan, x, y, out, groups):
    total = out.reshape(groups, out.shape[0] // groups, -1)
    grid, blocks = None, _blocks(plan, x.shape[1])
    for images in _batches(plan, len(x), x.shape[1], 4 * CACHE):  # few, since each adds to all of the weight
        grid = _grid(plan, x[images], grid)
        views, flat = _views(plan, grid, groups), _widened(plan, y[images])
        for block in blocks if len(grid) == 1 else [slice(0, plan.run)]:
            columns = _columns(plan, views, out.shape[2:], block)
            total += np.matmul(_grouped(flat, groups, block), columns.swapaxes(1, 2))


def _weight_by_channel(plan, x, y, out, _):
    total, grid = out.reshape(out.shape[0], -1), None
    for images in _chunks(len(x), max(1, CACHE // (plan.run * x.shape[1]))):
        grid = _grid(plan, x[images], grid)
        flat = _widened(plan, y[images])
        for t, (part, begin) in enumerate(plan.places):
            total[:, t] += np.einsum("ncl,ncl->c", flat, grid[:, part, :, begin : begin + plan.run])


# --------------------------------------------------------------------------------------------- windows as columns


def _tap_places(tap, size, stride, dilation):
    """Where a tap reads a padded image, for all places of a window."""
    per = zip(tap, size, stride, dilation, strict=True)
    return tuple(slice(t * d, t * d + (n - 1) * s + 1, s) for t, n, s, d in per)


def _margins(sizes, kernel, stride, before, dilation, size):
    """The size of an image with all the padding that windows see, and where in it the image is."""
    per = zip(sizes, kernel, stride, before, dilation, size, strict=True)
    whole = tuple(max(n + b, (m - 1) * s + (k - 1) * d + 1) for n, k, s, b, d, m in per)
    return whole, tuple(slice(b, b + n) for b, n in zip(before, sizes, strict=True))


def window_columns(x, kernel, stride, before, dilation, size):
    """Images (n, c, *sizes) as (n, c, *kernel, *size): what each tap reads at each place."""
    whole, inside = _margins(x.shape[2:], kernel, stride, before, dilation, size)
    image = np.zeros((*x.shape[:2], *whole), x.dtype)
    image[..., *inside] = x
    out = np.empty((*x.shape[:2], *kernel, *size), x.dtype)
    for tap in np.ndindex(*kernel):
        out[:, :, *tap] = image[..., *_tap_places(tap, size, stride, dilation)]
    return out


def window_sums(x, kernel, stride, before, dilation, size):
    """Columns (n, c, *kernel, *places) added up to images (n, c, *size)."""
    places = x.shape[2 + len(kernel) :]
    whole, inside = _margins(size, kernel, stride, before, dilation, places)
    image = np.zeros((*x.shape[:2], *whole), x.dtype)
    for tap in np.ndindex(*kernel):
        image[..., *_tap_places(tap, places, stride, dilation)] += x[:, :, *tap]
    return image[..., *inside].copy()
