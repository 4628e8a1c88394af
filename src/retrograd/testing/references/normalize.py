"""Reference implementations of normalisation: one mean and one variance at a time."""

import numpy as np

from retrograd.testing.references.common import standardize_axes


def per_channel(v, x, otherwise):
    return otherwise if v is None else v.reshape(-1, *(1,) * (x.ndim - 2))


def scale_and_shift(out, weight, bias):
    return out * per_channel(weight, out, 1) + per_channel(bias, out, 0)


def channel_standardize(x, eps, center):
    mean = x.mean((0, 2)) if center else np.zeros(x.shape[1])
    variance = ((x - mean[:, None]) ** 2).mean((0, 2))
    return (x - mean[:, None]) / np.sqrt(variance + eps)[:, None], mean, variance


def subtract_channel(y, a):
    return y if a is None else y - a[:, None]


def channel_mix(x, p, q, y, r, a):
    return x * p[:, None] + (0 if q is None else q[:, None]) + (0 if y is None else subtract_channel(y, a) * r[:, None])


def norm_channels(x, weight, bias, eps):
    out, mean, variance = channel_standardize(x, eps, True)
    return scale_and_shift(out, weight, bias), mean, variance


def use_running_stats(x, running_mean, running_var, weight, bias, eps):
    out = (x - per_channel(running_mean, x, 0)) / np.sqrt(per_channel(running_var, x, 1) + eps)
    return scale_and_shift(out, weight, bias)


def batch_norm(x, running_mean, running_var, weight, bias, training, momentum, eps):
    if not training:
        return use_running_stats(x, running_mean, running_var, weight, bias, eps)
    return scale_and_shift(standardize_axes(x, (0, *range(2, x.ndim)), eps), weight, bias)


def instance_norm(x, running_mean, running_var, weight, bias, use_input_stats, momentum, eps):
    if not use_input_stats:
        return use_running_stats(x, running_mean, running_var, weight, bias, eps)
    return scale_and_shift(standardize_axes(x, tuple(range(2, x.ndim)), eps), weight, bias)


def group_norm(x, weight, bias, num_groups, eps):
    groups = np.split(x, num_groups, axis=1)
    return scale_and_shift(
        np.concatenate([standardize_axes(g, tuple(range(1, x.ndim)), eps) for g in groups], axis=1), weight, bias
    )


def rms_norm(x, weight, normalized_shape, eps):
    axes = tuple(range(-len(normalized_shape), 0))
    eps = np.finfo(x.dtype).eps if eps is None else eps
    return x / np.sqrt((x * x).mean(axes, keepdims=True) + eps) * (1 if weight is None else weight)


def norm_rows(x, *weights, eps, center):
    y = rms_norm(x, None, x.shape[-1:], eps) if not center else standardize_axes(x, (-1,), eps)
    return y * align_rows(weights[0], x) + align_rows(weights[1], x) if weights else y


def align_rows(v, x):
    return v if v.ndim == 1 else v[:, None]


def norm_rows_grad(g, x, weight, eps, center):
    """Return its Jacobian's columns, one element of x at a time, by complex steps."""
    dx = np.empty_like(x)
    for at in np.ndindex(x.shape):
        moved = x.astype(complex)
        moved[at] += 1e-20j
        centered = moved - moved.mean(-1, keepdims=True) if center else moved
        out = centered / np.sqrt((centered * centered).mean(-1, keepdims=True) + eps) * align_rows(weight, x)
        dx[at] = (g * out.imag).sum() / 1e-20
    return dx, (g * norm_rows(x, eps=eps, center=center)).sum(-2), g.sum(-2)


def layer_norm(x, weight, bias, normalized_shape, eps):
    out = standardize_axes(x, tuple(range(-len(normalized_shape), 0)), eps)
    return out * (1 if weight is None else weight) + (0 if bias is None else bias)


def standardize(x, ndim, eps):
    return standardize_axes(x, tuple(range(-ndim, 0)), eps)


def channel_dot(x, y, a):
    return (x * subtract_channel(y, a)).sum((0, 2))
