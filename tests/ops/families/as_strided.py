"""Reference implementations of windows, strided views of memory, and scatter into views."""

import numpy as np


def windows(x, dimension, size, step):
    starts = range(0, x.shape[dimension] - size + 1, step)
    taken = [np.moveaxis(np.take(x, range(i, i + size), axis=dimension), dimension, -1) for i in starts]
    return np.stack(taken, axis=dimension % x.ndim)


def added_windows(src, dimension, length, step):
    rows = np.moveaxis(src, dimension, 0)
    out = np.zeros((length, *rows.shape[1:-1]))
    for i, window in enumerate(rows):
        out[i * step : i * step + src.shape[-1]] += np.moveaxis(window, -1, 0)
    return np.moveaxis(out, 0, dimension)


def strided(x, size, stride, offset):
    out = np.zeros(size)
    for place in np.ndindex(size):
        out[place] = x.ravel()[offset + sum(i * n for i, n in zip(place, stride, strict=True))]
    return out


def written(x, src, spec):
    out = x.copy()
    out[spec] = src
    return out


def on_diagonal(x, src, offset, dim1, dim2):
    out = np.moveaxis(x, (dim1, dim2), (-2, -1)).copy()
    for i in range(src.shape[-1]):
        out[..., i + max(-offset, 0), i + max(offset, 0)] = src[..., i]
    return np.moveaxis(out, (-2, -1), (dim1, dim2))


def strided_written(x, src, size, stride, storage_offset):
    out = x.copy()
    for place in np.ndindex(size):
        out.flat[(storage_offset or 0) + np.dot(place, stride)] = src[place]
    return out


ORACLES = {
    "ravel": np.ravel,
    "swapaxes": lambda x, axis0, axis1: np.swapaxes(x, axis0, axis1),
    "t": np.transpose,
    "narrow_copy": lambda x, dim, start, length: np.take(x, range(start, start + length), axis=dim),
    "view_as": lambda x, other: np.reshape(x, other.shape),
    "view_as_dtype": lambda x, dtype: np.frombuffer(x.tobytes(), dtype).reshape(*x.shape[:-1], -1),
    "resolve_neg": np.array,
    "unfold_dim": windows,
    "windows_sum": added_windows,
    "sliding_window_view": lambda x, window_shape, dim: np.lib.stride_tricks.sliding_window_view(x, window_shape, dim),
    "strided": strided,
    "as_strided": lambda x, size, stride, storage_offset: strided(x, size, stride, storage_offset or 0),
    "as_strided_scatter": strided_written,
    "select_scatter": lambda x, src, dim, index: written(x, src, (*[slice(None)] * dim, index)),
    "slice_scatter": lambda x, src, dim, start, end, step: written(
        x, src, (*[slice(None)] * dim, slice(start, end, step))
    ),
    "diagonal_scatter": on_diagonal,
    "sum_to_size": lambda x, shape: x.sum(1, keepdims=True) if shape[-1] == 1 else x.sum(0),
    "unravel_index": lambda indices, shape: np.unravel_index(indices, shape),
}

NEIGHBOURS = "as in PyTorch, memory whose elements do not lie as the call assumes is refused"
EXEMPT = {
    ("as_strided", "strides"): NEIGHBOURS,
    ("as_strided_scatter", "strides"): NEIGHBOURS,
    ("view_as", "strides"): NEIGHBOURS,
    ("view_as_dtype", "strides"): NEIGHBOURS,
    **{("view_as_dtype", law): "half the bytes are other numbers" for law in ("float32", "complex")},
}
