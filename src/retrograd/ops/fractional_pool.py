"""Fractional max pooling: maxima over windows with random distances.

B. Graham, Fractional max-pooling, arXiv 1412.6071.
"""

from typing import Any

from retrograd.core import Aval, Internal, op, registry
from retrograd.core import dtype as dtypes
from retrograd.ops.conv import check_images, per_dim
from retrograd.ops.family import Composite, CoreDims, check_real, numel
from retrograd.ops.gather import take_along_dim
from retrograd.ops.index import select
from retrograd.ops.pooling import PooledWithIndices, gather_flat, max_pool_indices
from retrograd.ops.view import narrow, reshape, squeeze, unsqueeze


@op("fractional_starts(Tensor samples, *, int size, int windows, int kernel) -> Tensor")
class fractional_starts(Internal, CoreDims, differentiable=False, cores=(0,)):
    """Return the starts of `windows` windows of `kernel` elements in `size`, for each u from 0 to 1 in samples.

    Window i starts at floor((i + u) a) - floor(u a), where a = (size - kernel) / (windows - 1); the
    last one at size - kernel.
    """

    def impl(xp, samples, *, size, windows, kernel):
        check_real("fractional_starts", samples)
        step = samples.dtype.type(size - kernel) / samples.dtype.type(max(windows - 1, 1))
        positions = (xp.arange(windows - 1, dtype=samples.dtype) + samples[..., None]) * step
        starts = positions.astype(dtypes.int64) - (samples * step).astype(dtypes.int64)[..., None]
        last = xp.full((*samples.shape, 1), size - kernel, dtypes.int64)
        return xp.concatenate([starts, last], axis=-1)

    def shape(samples, *, size, windows, kernel):
        check_real("fractional_starts", samples)
        return Aval((*samples.shape, windows), dtypes.int64)

    oracle = "retrograd.testing.references.fractional_pool.fractional_starts"

    def samples(r):
        yield (r(2, 3, within=(0.0, 1.0)),), {"size": 9, "windows": 4, "kernel": 2}
        yield (r(within=(0.0, 1.0)),), {"size": 5, "windows": 1, "kernel": 3}


def _output_sizes(name, sizes, kernel, output_size, output_ratio):
    """Return the number of windows along each dimension."""
    if output_size is None and output_ratio is None:
        raise ValueError(f"{name}: requires either an output_size or an output_ratio")
    if output_size is None:
        ratios = output_ratio if isinstance(output_ratio, (tuple, list)) else (output_ratio,) * len(sizes)
        if len(ratios) != len(sizes):
            raise ValueError(f"{name}: output_ratio must be a number or {len(sizes)} of them, got {output_ratio}")
        output_size = tuple([int(n * ratio) for n, ratio in zip(sizes, ratios, strict=True)])
    windows = per_dim(name, "output_size", output_size, len(sizes), 1)
    for n, k, out in zip(sizes, kernel, windows, strict=True):
        if out + k - 1 > n:
            raise ValueError(f"{name}: {out} windows of size {k} do not begin at different elements of {n}")
    return windows


def _check_samples(name, x, ndim, samples):
    """Return the random values that determine the windows, (n, channels, ndim)."""
    if samples is None:
        return registry["rand"]((*x.shape[:2], ndim), dtype=x.dtype)
    if samples.dtype != x.dtype:
        raise TypeError(f"{name}: _random_samples must have the dtype of the images, {x.dtype}, got {samples.dtype}")
    if samples.ndim != 3 or samples.shape[0] < x.shape[0] or samples.shape[1:] != (x.shape[1], ndim):
        expected = (*x.shape[:2], ndim)
        raise ValueError(f"{name}: _random_samples must have shape {expected}, got {samples.shape}")
    return narrow(samples, 0, 0, x.shape[0])


def _window_indices(samples, sizes, kernel, windows):
    """Return the flat indices of each window's elements, (n, channels, all windows, all of a kernel)."""
    ndim = len(sizes)
    found: Any = 0
    order = (1, 0) if ndim == 2 else range(ndim)  # in 2 dimensions PyTorch's first value is that of the width
    for d, (n, k, out) in enumerate(zip(sizes, kernel, windows, strict=True)):
        starts = fractional_starts(select(samples, -1, order[d]), size=n, windows=out, kernel=k)
        along = unsqueeze(starts, -1) + registry["arange"](0, k, 1)
        ones = [1] * ndim
        shape = (*starts.shape[:2], *ones[:d], out, *ones[d + 1 :], *ones[:d], k, *ones[d + 1 :])
        found = found + reshape(along, shape) * numel(sizes[d + 1 :])
    return reshape(found, (*found.shape[:2], numel(windows), numel(kernel)))


def _pool(name, x, ndim, samples, kernel_size, output_size, output_ratio):
    """Return the maxima and their indices in the flattened images."""
    check_real(name, x)
    batched = check_images(name, x, ndim)
    images, sizes = x if batched else unsqueeze(x, 0), x.shape[-ndim:]
    if 0 in x.shape[x.ndim - ndim - 1 :]:
        raise ValueError(f"{name}: images of shape {x.shape} have no elements")
    kernel = per_dim(name, "kernel_size", kernel_size, ndim, 1)
    windows = _output_sizes(name, sizes, kernel, output_size, output_ratio)
    elements = _window_indices(_check_samples(name, images, ndim, samples), sizes, kernel, windows)
    lead, count = images.shape[:2], numel(kernel)
    flat = reshape(images, (*lead, numel(sizes))).detach()
    indices = reshape(elements, (*lead, numel(elements.shape[2:])))
    candidates = reshape(take_along_dim(flat, indices, -1), elements.shape)
    largest = max_pool_indices(candidates, windows=((count, count, 0, 1, 1),))
    indices = reshape(take_along_dim(elements, largest, -1), (*lead, *windows))
    indices = indices if batched else squeeze(indices, 0)
    return gather_flat(x, indices, ndim), indices


_DOC = """Fractional max pooling of images (n, channels, {sizes}), or without n: maxima of `output_size` windows.

    The windows have `kernel_size` elements and start at random distances, which are nearly equal.  `output_ratio`,
    instead of output_size, is a fraction of the images' sizes.  `_random_samples` (n, channels, {ndim}), from 0 to 1
    in the dtype of the images, replaces random values.  return_indices: a tuple (values, indices), with indices
    into the flattened image.{example}
    """

_EXAMPLE = """

    >>> import retrograd as rg
    >>> x, u = rg.arange(16.0).reshape(1, 4, 4), rg.full((1, 1, 2), 0.5)
    >>> rg.nn.functional.fractional_max_pool2d(x, 2, output_size=2, _random_samples=u).tolist()
    [[[5.0, 7.0], [13.0, 15.0]]]"""


def _fractional_max_pool(ndim):
    """Make fractional_max_pool2d or fractional_max_pool3d."""
    name = f"fractional_max_pool{ndim}d"

    @op(
        f"{name}(Tensor x, any kernel_size, any output_size=None, any output_ratio=None, bool return_indices=False, "
        "Tensor? _random_samples=None) -> Tensor"
    )
    class fractional_max_pool(Composite, home="nn.functional"):
        __doc__ = _DOC.format(
            sizes=("h, w", "d, h, w")[ndim - 2], ndim=ndim, example=_EXAMPLE if ndim == 2 else ""
        )

        def compose(x, _random_samples, *, kernel_size, output_size, output_ratio, return_indices) -> PooledWithIndices:
            found = _pool(name, x, ndim, _random_samples, kernel_size, output_size, output_ratio)
            return found if return_indices else found[0]

        oracle = f"retrograd.testing.references.fractional_pool.{name}"

        def samples(r):
            sizes = (6, 5, 5)[:ndim]
            numbers = r(2, 2, ndim, within=(0.0, 1.0))
            yield (r(2, 2, *sizes), numbers), {"kernel_size": 2, "output_size": 2}
            yield (r(2, *sizes), numbers[:1]), {"kernel_size": (1, 2, 2)[:ndim], "output_ratio": (0.75,) * ndim}
            yield (r(1, 2, *sizes), numbers[1:]), {"kernel_size": 2, "output_size": 3, "return_indices": True}

        def errors(r):
            x = r(1, 2, *(5, 4, 4)[:ndim])
            yield (x, None), {"kernel_size": 2}, ValueError, f"{name}: requires either an output_size or"
            yield (x, None), {"kernel_size": 2, "output_size": 4}, ValueError, f"{name}: 4 windows of size 2 .* of 4"
            yield (r(3), None), {"kernel_size": 2, "output_size": 2}, ValueError, f"{name}: .*expected images"
            wrong = r(1, 1, ndim)
            yield (x, wrong), {"kernel_size": 2, "output_size": 2}, ValueError, f"{name}: _random_samples must have"

    return fractional_max_pool


fractional_max_pool2d, fractional_max_pool3d = map(_fractional_max_pool, (2, 3))
