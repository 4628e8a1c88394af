"""Reference implementations of pooling, window by window."""

import itertools

import numpy as np

from retrograd.testing.references.common import value_per_dim


def window_indices(windows, place, sizes):
    """Yield the indices in an image that the window at an output index covers, one list per dimension."""
    for window, i, size in zip(windows, place, sizes, strict=True):
        if len(window) == 1:
            yield range(i * size // window[0], -(-(i + 1) * size // window[0]))
        else:
            kernel, stride, before, dilation, _ = window
            max_pool_indices = (i * stride - before + t * dilation for t in range(kernel))
            yield [at for at in max_pool_indices if 0 <= at < size]


def map_windows(x, windows, function):
    """Return `function` of the values and the flat indices of each window."""
    ndim = len(windows)
    sizes, counts = x.shape[x.ndim - ndim :], tuple(w[-1] for w in windows)
    planes = x.reshape(-1, *sizes)
    out = np.empty((len(planes), *counts))
    for plane, place in itertools.product(range(len(planes)), np.ndindex(*counts)):
        inside = list(itertools.product(*window_indices(windows, place, sizes)))
        flat = [int(np.ravel_multi_index(at, sizes)) for at in inside]
        out[plane, *place] = function([planes[plane][at] for at in inside], flat)
    return out.reshape(*x.shape[: x.ndim - ndim], *counts)


def pooled_max(x, windows):
    return map_windows(x, windows, lambda values, _: max(values))


def max_pool_indices(x, windows):
    return map_windows(x, windows, lambda values, flat: flat[int(np.argmax(values))])


def pooled_sum(x, windows):
    return map_windows(x, windows, lambda values, _: sum(values))


def pooled_sum_backward(g, windows, sizes):
    """Return the transpose of `pooled_sum`, column by column of its matrix."""
    out = np.zeros((*g.shape[: g.ndim - len(sizes)], *sizes))
    for at in np.ndindex(*sizes):
        one = np.zeros(sizes)
        one[at] = 1
        out[..., *at] = (g * pooled_sum(one, windows)).sum(tuple(range(-len(sizes), 0)))
    return out


def regular_windows(x, ndim, kernel_size, stride, padding, dilation, ceil_mode):
    """Return the windows of a call, counted by trying."""
    kernel, padding, dilation = (value_per_dim(v, ndim) for v in (kernel_size, padding, dilation))
    stride = kernel if stride is None else value_per_dim(stride, ndim)
    windows = []
    for n, k, s, p, d in zip(x.shape[-ndim:], kernel, stride, padding, dilation, strict=True):
        extent = d * (k - 1) + 1
        whole = [i for i in range(n + 2 * p) if i * s + extent <= n + 2 * p]
        if ceil_mode and len(whole) * s < n + p and (len(whole) - 1) * s + extent < n + 2 * p:
            whole.append(len(whole))
        windows.append((k, s, p, d, len(whole)))
    return windows


def max_pool(ndim):
    def oracle(x, kernel_size, stride, padding, dilation, ceil_mode, return_indices):
        windows = regular_windows(x, ndim, kernel_size, stride, padding, dilation, ceil_mode)
        return (pooled_max(x, windows), max_pool_indices(x, windows)) if return_indices else pooled_max(x, windows)

    return oracle


def adaptive(x, ndim, output_size):
    return [
        (n if out is None else out,) for n, out in zip(x.shape[-ndim:], value_per_dim(output_size, ndim), strict=True)
    ]


def adaptive_max_pool(ndim):
    def oracle(x, output_size, return_indices):
        windows = adaptive(x, ndim, output_size)
        return (pooled_max(x, windows), max_pool_indices(x, windows)) if return_indices else pooled_max(x, windows)

    return oracle


def adaptive_avg_pool(ndim):
    return lambda x, output_size: map_windows(x, adaptive(x, ndim, output_size), lambda values, _: np.mean(values))


def avg_pool(ndim):
    """Average; counts are sums of ones, padded with ones if the padding counts."""

    def oracle(x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override=None):
        windows = regular_windows(x, ndim, kernel_size, stride, padding, 1, ceil_mode)
        if divisor_override is not None:
            return pooled_sum(x, windows) / divisor_override
        pads = value_per_dim(padding, ndim) if count_include_pad else (0,) * ndim
        ones = np.ones([n + 2 * p for n, p in zip(x.shape[-ndim:], pads, strict=True)])
        shifted = [(k, s, b - p, d, o) for (k, s, b, d, o), p in zip(windows, pads, strict=True)]
        return pooled_sum(x, windows) / pooled_sum(ones, shifted)

    return oracle


def lp_pool(ndim):
    """Return the mean, scaled up to a full window."""

    def oracle(x, norm_type, kernel_size, stride, ceil_mode):
        if np.isinf(norm_type):
            windows, choose = (
                regular_windows(x, ndim, kernel_size, stride, 0, 1, ceil_mode),
                max if norm_type > 0 else min,
            )
            return map_windows(abs(x), windows, lambda values, _: choose(values))
        mean = avg_pool(ndim)(x**norm_type, kernel_size, stride, 0, ceil_mode, True)
        return (mean * np.prod(value_per_dim(kernel_size, ndim))) ** (1 / norm_type)

    return oracle


def max_unpool(ndim):
    def oracle(x, indices, kernel_size, stride, padding, output_size):
        kernel, padding = value_per_dim(kernel_size, ndim), value_per_dim(padding, ndim)
        stride = kernel if stride is None else value_per_dim(stride, ndim)
        per = zip(x.shape[-ndim:], kernel, stride, padding, strict=True)
        sizes = output_size or [(n - 1) * s + k - 2 * p for n, k, s, p in per]
        out = np.zeros((int(np.prod(x.shape[:-ndim])), int(np.prod(sizes))))
        for row, values, where in zip(out, x.reshape(len(out), -1), indices.reshape(len(out), -1), strict=True):
            row[where] = values
        return out.reshape(*x.shape[:-ndim], *sizes)

    return oracle


def pooled_max_backward(y, x, windows):
    out = np.zeros_like(x)
    image = x.shape[x.ndim - len(windows) :]
    flat = out.reshape(-1, int(np.prod(image)))
    where = max_pool_indices(x, windows).reshape(len(flat), -1)
    for plane, (ids, numbers) in enumerate(zip(where, y.reshape(len(flat), -1), strict=True)):
        for i, number in zip(ids, numbers, strict=True):
            flat[plane, int(i)] += number
    return out


adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = map(adaptive_avg_pool, (1, 2, 3))
adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = map(adaptive_max_pool, (1, 2, 3))
avg_pool1d, avg_pool2d, avg_pool3d = map(avg_pool, (1, 2, 3))
lp_pool1d, lp_pool2d, lp_pool3d = map(lp_pool, (1, 2, 3))
max_pool1d, max_pool2d, max_pool3d = map(max_pool, (1, 2, 3))
max_unpool1d, max_unpool2d, max_unpool3d = map(max_unpool, (1, 2, 3))
