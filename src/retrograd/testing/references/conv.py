"""Reference implementations of convolutions: one product for each position and tap."""

import itertools

import numpy as np

from retrograd.testing.references.common import value_per_dim


def triples(sizes, kernel, out, stride, before, dilation):
    """Yield all (index in x, tap, index in y) that are combined."""
    for place in np.ndindex(*out):
        for tap in np.ndindex(*kernel):
            at = tuple(p * s + t * d - b for p, s, t, d, b in zip(place, stride, tap, dilation, before, strict=True))
            if all(0 <= a < n for a, n in zip(at, sizes, strict=True)):
                yield at, tap, place


def channels(c, o, groups):
    """Yield all pairs of connected channels, with the index of the first within its group."""
    for i, j in itertools.product(range(c), range(o)):
        if i // (c // groups) == j // (o // groups):
            yield i, j, i % (c // groups)


def convolution(x, weight, bias=None, *, size, stride, before, dilation, groups):
    out = np.zeros((len(x), len(weight), *size), np.result_type(x, weight))
    for at, tap, place in triples(x.shape[2:], weight.shape[2:], size, stride, before, dilation):
        for c, o, within in channels(x.shape[1], len(weight), groups):
            out[:, o, *place] += x[:, c, *at] * weight[o, within, *tap]
    return out if bias is None else out + bias.reshape(-1, *(1,) * len(size))


def convolution_input(y, weight, *, size, stride, before, dilation, groups):
    out = np.zeros((len(y), weight.shape[1] * groups, *size), np.result_type(y, weight))
    for at, tap, place in triples(size, weight.shape[2:], y.shape[2:], stride, before, dilation):
        for c, o, within in channels(out.shape[1], len(weight), groups):
            out[:, c, *at] += y[:, o, *place] * weight[o, within, *tap]
    return out


def convolution_weight(x, y, *, kernel, stride, before, dilation, groups):
    out = np.zeros((y.shape[1], x.shape[1] // groups, *kernel))
    for at, tap, place in triples(x.shape[2:], kernel, y.shape[2:], stride, before, dilation):
        for c, o, within in channels(x.shape[1], y.shape[1], groups):
            out[o, within, *tap] += (x[:, c, *at] * y[:, o, *place]).sum()
    return out


def conv(ndim):
    """Make the padding explicit, and add a batch dimension if there is none."""

    def oracle(x, weight, bias, stride, padding, dilation, groups):
        stride, dilation = value_per_dim(stride, ndim), value_per_dim(dilation, ndim)
        spans = [d * (k - 1) for d, k in zip(dilation, weight.shape[2:], strict=True)]
        pads = (
            [(s // 2, s - s // 2) for s in spans]
            if padding == "same"
            else [(p, p) for p in value_per_dim(padding, ndim)]
        )
        batch = x if x.ndim == ndim + 2 else x[None]
        padded = np.pad(batch, [(0, 0), (0, 0), *pads])
        size = [(n - span - 1) // s + 1 for n, span, s in zip(padded.shape[2:], spans, stride, strict=True)]
        given = {"stride": stride, "before": (0,) * ndim, "dilation": dilation, "groups": groups}
        out = convolution(padded, weight, bias, size=size, **given)
        return out if x.ndim == ndim + 2 else out[0]

    return oracle


def conv_transpose(ndim):
    """Spread every element of x through the kernel, into images that are cropped."""

    def oracle(x, weight, bias, stride, padding, output_padding, groups, dilation):
        stride, padding, extra, dilation = (value_per_dim(v, ndim) for v in (stride, padding, output_padding, dilation))
        batch = x if x.ndim == ndim + 2 else x[None]
        per = zip(batch.shape[2:], stride, dilation, weight.shape[2:], extra, strict=True)
        whole = [(n - 1) * s + d * (k - 1) + 1 + e for n, s, d, k, e in per]
        given = {"stride": stride, "before": (0,) * ndim, "dilation": dilation, "groups": groups}
        out = convolution_input(batch, weight, size=whole, **given)
        out = out[:, :, *(slice(p, n - p) for p, n in zip(padding, whole, strict=True))]
        out = out if bias is None else out + bias.reshape(-1, *(1,) * ndim)
        return out if x.ndim == ndim + 2 else out[0]

    return oracle


def window_columns(x, kernel, stride, before, dilation, size):
    out = np.zeros((*x.shape[:2], *kernel, *size))
    for at, tap, place in triples(x.shape[2:], kernel, size, stride, before, dilation):
        out[:, :, *tap, *place] = x[:, :, *at]
    return out


def window_sums(x, kernel, stride, before, dilation, size):
    out = np.zeros((*x.shape[:2], *size))
    for at, tap, place in triples(size, kernel, x.shape[2 + len(kernel) :], stride, before, dilation):
        out[:, :, *at] += x[:, :, *tap, *place]
    return out


def unfold(x, kernel_size, dilation, padding, stride):
    kernel, dilation, padding, stride = (value_per_dim(v, 2) for v in (kernel_size, dilation, padding, stride))
    batch = x if x.ndim == 4 else x[None]
    per = zip(batch.shape[2:], kernel, dilation, padding, stride, strict=True)
    size = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, d, p, s in per]
    out = window_columns(batch, kernel, stride, padding, dilation, size)
    out = out.reshape(len(batch), -1, size[0] * size[1])
    return out if x.ndim == 4 else out[0]


def fold(x, output_size, kernel_size, dilation, padding, stride):
    kernel, dilation, padding, stride = (value_per_dim(v, 2) for v in (kernel_size, dilation, padding, stride))
    batch, size = x if x.ndim == 3 else x[None], value_per_dim(output_size, 2)
    per = zip(size, kernel, dilation, padding, stride, strict=True)
    places = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, d, p, s in per]
    columns = batch.reshape(len(batch), -1, *kernel, *places)
    out = window_sums(columns, kernel, stride, padding, dilation, size)
    return out if x.ndim == 3 else out[0]


conv1d, conv2d, conv3d = map(conv, (1, 2, 3))
conv_transpose1d, conv_transpose2d, conv_transpose3d = map(conv_transpose, (1, 2, 3))
