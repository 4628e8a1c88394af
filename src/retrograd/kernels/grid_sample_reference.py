"""The reference implementation of sampling images at the points of a grid.

x (n, c, size) has flattened images, grid (n, points, d) positions in them, y (n, c, points) numbers at the points.
`settings` are the mode, the padding and whether corners are aligned, as indices into MODES, PADDINGS and (False, True);
then the size of each of three dimensions, and the order of the derivative with respect to the position in each: the
weights of the elements that a point reads are differentiated.  In two dimensions the first size is 1.
"""

import itertools
import math

import numpy as np

from retrograd.kernels.overlap import separate

MODES = ("bilinear", "nearest", "bicubic")
PADDINGS = ("zeros", "border", "reflection")
TAPS = {"bilinear": 2, "nearest": 1, "bicubic": 4}  # elements along a dimension that a point reads
# Keys' cubic convolution with a = -0.75 at distances from 0 to 1, and from 1 to 2: the coefficients of the powers.
NEAR, FAR = (1.25, -2.25, 0.0, 1.0), (-0.75, 3.75, -6.0, 3.0)


@separate(1)
def sample_points(settings, x, grid, out):
    """Set out (n, c, points) to the weighted sums of the elements of x that the points read."""
    with np.errstate(all="ignore"):
        out[...] = _sampled(settings, x, grid, settings[6:])


@separate(1)
def sample_points_backward(settings, y, grid, out):
    """Set out (n, c, size) to the sums of the numbers y at the points that read each element, with their weights."""
    out[...] = 0
    images = np.arange(len(y))[:, None, None], np.arange(y.shape[1])[:, None]
    with np.errstate(all="ignore"):
        for index, weight in _taps(settings, grid, settings[6:]):
            shares = np.where(index < 0, 0, y * weight)
            np.add.at(out, (*images, np.maximum(index, 0)), shares)


@separate(1)
def sample_slopes(settings, y, x, grid, out):
    """Set out (n, points, d) to the sums over channels of y times the derivatives of samples by the positions."""
    with np.errstate(all="ignore"):
        for k in range(grid.shape[-1]):
            orders = list(settings[6:])
            orders[-1 - k] += 1
            out[..., k] = (y * _sampled(settings, x, grid, orders)).sum(1)


def _sampled(settings, x, grid, orders):
    total = None
    for index, weight in _taps(settings, grid, orders):
        found = np.take_along_axis(x, np.broadcast_to(np.maximum(index, 0), (*x.shape[:2], index.shape[2])), 2)
        term = np.where(index < 0, 0, found) * weight
        total = term if total is None else total + term
    return total


def _taps(settings, grid, orders):
    """Return the flat indices (n, 1, points) that the points read one after the other, -1 outside, and weights."""
    mode, padding, align = MODES[settings[0]], PADDINGS[settings[1]], bool(settings[2])
    axes, sizes = grid.shape[-1], settings[3:6]
    along = [_along(grid[:, None, :, 2 - k], sizes[k], orders[k], mode, padding, align) for k in range(3 - axes, 3)]
    for choice in itertools.product(*along):
        index, weight = choice[0]
        for (position, share), size in zip(choice[1:], sizes[4 - axes :], strict=True):
            index = np.where((index < 0) | (position < 0), -1, index * size + position)
            weight = weight * share
        yield index, weight


def _along(c, size, order, mode, padding, align):
    """Return the indices that a point reads along one dimension, -1 outside, and their weights."""
    slope = (size - 1) / 2 if align else size * 0.5
    c = (c + 1) * slope if align else ((c + 1) * size - 1) * 0.5
    slope = np.full_like(c, slope)
    if mode == "bicubic":
        low = np.floor(c)
        weights = [_cubic(j, c - low, order) for j in range(4)]
        positions = [_padded(low + (j - 1), slope, size, padding, align)[0] for j in range(4)]
    else:
        c, slope = _padded(c, slope, size, padding, align)
        low = np.round(c) if mode == "nearest" else np.floor(c)
        positions = [low, low + 1][: TAPS[mode]]
        weights = [np.full_like(c, order == 0)] if mode == "nearest" else _linear(c - low, order)
    for _ in range(order):
        weights = [weight * slope for weight in weights]
    return [(_index(at, size), weight) for at, weight in zip(positions, weights, strict=True)]


def _linear(t, order):
    if order == 0:
        return [1 - t, t]
    one = np.full_like(t, order == 1)
    return [-one, one]


def _cubic(j, t, order):
    """Return a derivative by t of the weight of neighbour j, at the distances 1 + t, t, 1 - t and 2 - t."""
    d = (t + 1, t, 1 - t, 2 - t)[j]
    factors = [math.perm(3 - k, order) * p for k, p in enumerate(NEAR if j in (1, 2) else FAR)][: max(4 - order, 0)]
    value = np.full_like(t, factors[0] if factors else 0)
    for factor in factors[1:]:
        value = value * d + factor
    return -value if j > 1 and order % 2 else value


def _index(at, size):
    inside = (at >= 0) & (at <= size - 1)  # False for NaN
    return np.where(inside, at, -1).astype(np.int64)


def _padded(c, slope, size, padding, align):
    """Return positions moved into the image, and the derivatives of them."""
    if padding == "zeros":
        return c, slope
    return _clipped(c, slope, size) if padding == "border" else _reflected(c, slope, size, align)


def _clipped(c, slope, size):
    inside = (c > 0) & (c < size - 1)
    return np.clip(np.where(np.isnan(c), 0, c), 0, size - 1), np.where(inside, slope, 0)


def _reflected(c, slope, size, align):
    low, span = (0.0, size - 1.0) if align else (-0.5, float(size))
    if span == 0:
        return c * 0, slope * 0
    distance = np.abs(c - low)
    extra = np.remainder(distance, span)
    odd = np.remainder(np.floor(distance / span), 2.0) == 1
    slope = np.where(odd != (c < low), -slope, slope)
    return _clipped(np.where(odd, span - extra, extra) + low, slope, size)
