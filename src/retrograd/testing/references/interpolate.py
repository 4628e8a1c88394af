"""Reference implementations of resizing and sampling, one position at a time."""

import itertools
import math

import numpy as np

KEYS = -0.75


def cubic(d, a=KEYS):
    """Return Keys' cubic kernel, by its definition."""
    d = abs(d)
    if d <= 1:
        return (a + 2) * d**3 - (a + 3) * d**2 + 1
    return a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a if d < 2 else 0.0


def hat(d):
    return max(0.0, 1 - abs(d))


def padded_row(kind, size, out, before):
    mode = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}[kind]
    return np.pad(np.eye(size), [(before, out - size - before), (0, 0)], mode)


def smooth(kernel, size, out, scale, align):
    """Weight every element of the source by the distance of its center from the sampled position."""
    step = (size - 1) / max(out - 1, 1) if align else 1 / scale if scale else size / out
    weigh = np.vectorize(lambda d: kernel(d / max(step, 1)))
    rows = weigh(np.arange(size) + 0.5 - step * (np.arange(out)[:, None] + 0.5))
    return rows / rows.sum(1, keepdims=True)


def matrix(kind, size, out, *more):
    """Return the linear map along one dimension as a matrix (out, size)."""
    if kind in ("reflect", "replicate", "circular"):
        return padded_row(kind, size, out, *more)
    if kind.startswith("smooth"):
        return smooth(hat if kind == "smooth linear" else lambda d: cubic(d, -0.5), size, out, *more)
    rows = np.zeros((out, size))
    for i in range(out):
        if kind == "area":
            start, stop = i * size // out, math.ceil((i + 1) * size / out)
            rows[i, start:stop] = 1 / (stop - start)
            continue
        scale, last = more
        step = 1 / scale if scale else size / out
        if kind == "nearest":
            rows[i, min(math.floor((i + last) * step), size - 1)] = 1
            continue
        at = i * (size - 1) / max(out - 1, 1) if last else (i + 0.5) * step - 0.5
        for j in range(math.floor(at) - 1, math.floor(at) + 3):
            rows[i, min(max(j, 0), size - 1)] += (hat if kind == "linear" else cubic)(at - j)
    return rows


def along(x, dim, rows):
    return np.moveaxis(np.tensordot(rows, x, (1, dim)), 0, dim)


def interpolate(x, size, scale_factor, mode, align_corners, recompute_scale_factor, antialias):
    kinds = {"area": "area", "bicubic": "cubic", "nearest": "nearest", "nearest-exact": "nearest"}
    for d in range(2, x.ndim):
        scale = scale_factor[d - 2] if isinstance(scale_factor, tuple) else scale_factor
        new = size[d - 2] if isinstance(size, tuple) else size
        new = math.floor(x.shape[d] * scale) if new is None else new
        last = 0.5 * (mode == "nearest-exact") if mode.startswith("nearest") else bool(align_corners)
        more = () if mode == "area" else (0.0 if scale is None or recompute_scale_factor else scale, last)
        x = along(x, d, matrix("smooth " * antialias + kinds.get(mode, "linear"), x.shape[d], new, *more))
    return x


def upsample(x, size, scale_factor, mode, align_corners):
    return interpolate(x, size, scale_factor, mode, align_corners, None, False)


def reflect(at, low, high):
    """Reflect a position between two boundaries, one reflection after the other."""
    while low < high and not low <= at <= high:
        at = 2 * low - at if at < low else 2 * high - at
    return low if low == high else at


def apply_padding(at, size, padding_mode, align):
    if padding_mode == "reflection":
        at = reflect(at, 0, size - 1) if align else reflect(at, -0.5, size - 0.5)
    return at if padding_mode == "zeros" else min(max(at, 0), size - 1)


def derivative(kernel, d, order):
    """Return a derivative of a kernel, which is a polynomial of degree 3 between two integers, from the right."""
    at = math.floor(d) + np.array([0.2, 0.4, 0.6, 0.8])
    return np.polynomial.Polynomial.fit(at, [kernel(x) for x in at], 3).deriv(order)(d)


def slope(at, size, padding_mode, align):
    """Return the derivative of the padded position by the unpadded one, by a difference."""
    ends = [apply_padding(at + step, size, padding_mode, align) for step in (-1e-6, 1e-6)]
    return round((ends[1] - ends[0]) / 2e-6)


def neighbours(at, size, mode, padding_mode, align, order=0):
    """Return the indices in one dimension that a sample is computed from, with the derivatives of their weights."""
    scale = (size - 1) / 2 if align else size / 2
    at = (at + 1) / 2 * (size - 1) if align else ((at + 1) * size - 1) / 2
    if mode == "bicubic":
        places = range(math.floor(at) - 1, math.floor(at) + 3)
        weights = [derivative(cubic, at - j, order) * scale**order for j in places]
        return [(apply_padding(j, size, padding_mode, align), w) for j, w in zip(places, weights, strict=True)]
    scale *= slope(at, size, padding_mode, align)
    at = apply_padding(at, size, padding_mode, align)
    if mode == "nearest":
        return [(round(at), float(order == 0))]
    return [(j, derivative(hat, at - j, order) * scale**order) for j in (math.floor(at), math.floor(at) + 1)]


def grid_sample(x, grid, mode, padding_mode, align_corners):
    return sample_points(x, grid, (mode, padding_mode, align_corners, (0,) * grid.shape[-1]))


def sample_points(x, grid, how):
    mode, padding_mode, align_corners, orders = how
    sizes = x.shape[2:]
    out = np.zeros((*x.shape[:2], *grid.shape[1:-1]))
    for n, place in itertools.product(range(len(x)), np.ndindex(*grid.shape[1:-1])):
        axes = [
            neighbours(a, s, mode, padding_mode, align_corners, order)
            for a, s, order in zip(grid[n, *place][::-1], sizes, orders, strict=True)
        ]
        for choice in itertools.product(*axes):
            at = [int(p) for p, _ in choice]
            if all(0 <= a < s for a, s in zip(at, sizes, strict=True)):
                out[n, :, *place] += x[n, :, *at] * math.prod(w for _, w in choice)
    return out


def sample_points_backward(y, grid, how, sizes):
    """Return the transpose of `sample_points`, element by element of an image."""
    out = np.zeros((*y.shape[:2], *sizes))
    for at in np.ndindex(*sizes):
        one = np.zeros_like(out)
        one[..., *at] = 1
        out[..., *at] = (y * sample_points(one, grid, how)).sum(tuple(range(2, y.ndim)))
    return out


def sample_slopes(y, x, grid, how):
    """Return the derivatives of `sample_points` by each column of the grid, times y."""
    *modes, orders = how
    found = []
    for k in reversed(range(len(orders))):
        raised = tuple(order + (k == i) for i, order in enumerate(orders))
        found.append((y * sample_points(x, grid, (*modes, raised))).sum(1))
    return np.stack(found, -1)


def resample(x, dim, how):
    return along(x, dim, matrix(*how))


def resample_backward(x, dim, how):
    return along(x, dim, matrix(*how).T)


def upsample_bilinear(x, size, scale_factor):
    return upsample(x, size, scale_factor, "bilinear", True)


def upsample_nearest(x, size, scale_factor):
    return upsample(x, size, scale_factor, "nearest", None)
