"""Kernels of pooling: sums and maxima over windows of the last dimensions.

Along each dimension windows are (kernel, stride, before, dilation, size): window i of `size` begins at
i * stride - before; or (size,): that many windows cover the dimension as evenly as possible.
"""

from functools import lru_cache

import numpy as np

from retrograd import kernels
from retrograd.backend.gather_scatter import contiguous, kernels_for
from retrograd.kernels import empty
from retrograd.kernels.pooling_windows import windows_of

__all__ = ["max_pool_indices", "pooled_max", "pooled_max_backward", "pooled_sum", "pooled_sum_backward"]

FURTHER = 2**31  # sizes from which on the C++ kernels cannot index an image
ALONE = (1, 1, 0, 1, 1)  # the window along an added dimension


def pooled_sum(x, windows):
    """Return the sums over windows of the last dimensions, with zeros outside."""
    return _run_kernel("window_sums", x, windows, x.shape[x.ndim - len(windows) :], _pooled_shape(x, windows), x.dtype)


def pooled_sum_backward(g, windows, sizes):
    """Return `pooled_sum` transposed: each window's cotangent is added to all of its elements, in `sizes`."""
    shape = (*g.shape[: g.ndim - len(windows)], *sizes)
    return _run_kernel("window_sums_backward", g, windows, tuple(sizes), shape, g.dtype)


def pooled_max(x, windows):
    """Return the largest element in each window; NaN wins."""
    return _run_kernel(
        "window_maxima", x, windows, x.shape[x.ndim - len(windows) :], _pooled_shape(x, windows), x.dtype
    )


def max_pool_indices(x, windows):
    """Return the flat index of each window's largest element: the first of equal ones, the last NaN."""
    shape = _pooled_shape(x, windows)
    return _run_kernel("window_argmax", x, windows, x.shape[x.ndim - len(windows) :], shape, np.dtype(np.int64))


def pooled_max_backward(g, x, windows):
    """Return zeros like x with each window's cotangent added at its largest element."""
    return _run_kernel("window_maxima_backward", x, windows, x.shape[x.ndim - len(windows) :], x.shape, g.dtype, g)


def _pooled_shape(x, windows):
    return (*x.shape[: x.ndim - len(windows)], *(w[-1] for w in windows))


def _run_kernel(name, x, windows, sizes, shape, dtype, *given):
    """Return an array of this shape, filled by a kernel on x and the arguments `given`."""
    out = empty(shape, dtype)
    if x.size and out.size:
        known = len(windows) <= 3 and x.size < FURTHER and all(z.dtype == x.dtype for z in given)
        images = [_images(z, len(windows)) for z in (*given, x, out)]
        getattr(kernels_for(x.dtype) if known else kernels.reference, name)(_plan(windows, sizes), *images)
    else:
        out[...] = 0
    return out


@lru_cache(1024)
def _plan(windows, sizes):
    missing = 3 - len(windows)
    return windows_of((ALONE,) * missing + windows, (1,) * missing + sizes)


def _images(x, ndim):
    """Return x as one batch of images with at least three dimensions."""
    return contiguous(x).reshape(-1, *(1,) * (3 - ndim), *x.shape[x.ndim - ndim :])
