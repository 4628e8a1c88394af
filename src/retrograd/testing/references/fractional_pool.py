"""Reference implementation of fractional max pooling, window by window."""

import itertools

import numpy as np


def fractional_starts(samples, size, windows, kernel):
    a = (size - kernel) / max(windows - 1, 1)
    inner = [np.floor((i + samples) * a) - np.floor(samples * a) for i in range(windows - 1)]
    return np.stack([*inner, np.full_like(samples, size - kernel)], -1)


def fractional_max_pool(ndim):
    def oracle(x, _random_samples, kernel_size, output_size, output_ratio, return_indices):
        images = x if x.ndim == ndim + 2 else x[None]
        sizes = images.shape[2:]
        kernel = np.broadcast_to(kernel_size, ndim)
        windows = (
            [int(n * r) for n, r in zip(sizes, output_ratio, strict=True)]
            if output_size is None
            else np.broadcast_to(output_size, ndim)
        )
        numbers = _random_samples[..., ::-1] if ndim == 2 else _random_samples
        out, indices = (np.zeros((*images.shape[:2], *windows)) for _ in range(2))
        for n, c in np.ndindex(images.shape[:2]):
            along = [fractional_starts(numbers[n, c, d], sizes[d], windows[d], kernel[d]) for d in range(ndim)]
            for window in itertools.product(*map(range, windows)):
                corner = [int(s[i]) for s, i in zip(along, window, strict=True)]
                part = images[n, c][tuple(slice(s, s + k) for s, k in zip(corner, kernel, strict=True))]
                inside = np.unravel_index(part.argmax(), part.shape)
                out[n, c][window] = part.max()
                indices[n, c][window] = np.ravel_multi_index(
                    [s + i for s, i in zip(corner, inside, strict=True)], sizes
                )
        out, indices = (a.reshape(*x.shape[: x.ndim - ndim], *windows) for a in (out, indices))
        return (out, indices) if return_indices else out

    return oracle


fractional_max_pool2d, fractional_max_pool3d = map(fractional_max_pool, (2, 3))
