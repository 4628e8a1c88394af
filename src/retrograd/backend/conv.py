"""Kernels of convolutions: one trilinear form, solved for each of its three parts.

The form is the sum over images n, channels c and o, indices p and taps t of x[n, c, p * stride + t * dilation - before]
* w[o, c, t] * y[n, o, p], x being 0 outside.  `conv` is its derivative by y, `conv_input` by x, `conv_weight` by w.
"""

import itertools
from functools import lru_cache

import numpy as np

from retrograd import kernels
from retrograd.backend.gather_scatter import contiguous, kernels_for
from retrograd.backend.stored_dtypes import convert
from retrograd.kernels import empty
from retrograd.kernels.conv_layout import phases_of, plan_of
from retrograd.kernels.host_values import on_host

__all__ = ["conv", "conv_input", "conv_weight", "window_columns", "window_sums"]


def _kernels(x):
    """Return the C++ kernels for real dtypes and up to three spatial dimensions, else the reference ones."""
    return kernels_for(x.dtype) if x.ndim == 5 else kernels.reference


def _half_in_single(kernel):
    """Wrap a kernel to compute half-precision operands in single precision."""

    def in_single(a, b, *rest, **params):
        if a.dtype != np.float16:
            return kernel(a, b, *rest, **params)
        single = [r if r is None else convert(r, np.dtype(np.float32)) for r in (a, b, *rest)]
        return convert(kernel(*single, **params), a.dtype)

    return in_single


def _pad_to_3d(values, fill):
    return (*(fill,) * (3 - len(values)), *values)


def _images(x):
    """Return images with three spatial dimensions."""
    return x.reshape(*x.shape[:2], *_pad_to_3d(x.shape[2:], 1))


@lru_cache(1024)
def _plan(sizes, kernel, size, stride, before, dilation):
    by_ones = (_pad_to_3d(values, 1) for values in (sizes, kernel, size, stride))
    return plan_of(*by_ones, _pad_to_3d(before, 0), _pad_to_3d(dilation, 1))


@_half_in_single
def conv(x, w, bias=None, *, size, stride, before, dilation, groups):
    """Return the convolution y (n, o, *size) of x (n, c, *sizes) with w (o, c / groups, *kernel)."""
    out = empty((len(x), len(w), *size), x.dtype)
    _convolve(x, _split_groups(w, groups), bias, out, stride, before, dilation)
    return out


def _split_groups(w, groups):
    """Return the weight as (groups, output channels, input channels, *kernel), channels per group."""
    return w.reshape(groups, len(w) // groups, *w.shape[1:])


def _convolve(x, w, bias, out, stride, before, dilation):
    """Write the convolution to `out`, which may be strided."""
    if x.size and w.size and out.size:
        plan = _plan(x.shape[2:], w.shape[3:], out.shape[2:], stride, before, dilation)
        x, out = _images(contiguous(x)), out[:, :, *(None,) * (5 - out.ndim)]
        w = (w if not on_host or w.flags.aligned else w.copy())[:, :, :, *(None,) * (6 - w.ndim)]
        bias = None if bias is None else contiguous(bias)
        _kernels(x).sum_windows(plan, x, w, bias, out)
    else:
        out[...] = 0 if bias is None else bias.reshape(-1, *(1,) * (out.ndim - 2))


@_half_in_single
def conv_input(y, w, *, size, stride, before, dilation, groups):
    """Return x (n, c, *size) from y (n, o, *out) and w (o, c / groups, *kernel): `conv` transposed.

    For each phase of the stride this is a convolution with the reversed taps that read indices of this phase.
    """
    w, ones = _split_groups(w, groups).swapaxes(1, 2), (1,) * len(size)
    covered, phases = _transposed_phases(tuple(size), w.shape[3:], y.shape[2:], stride, before, dilation)
    out = (empty if covered else np.zeros)((len(y), w.shape[1] * groups, *size), y.dtype)
    for taps, slices, margins, steps in phases:
        _convolve(y, w[:, :, :, *taps], None, out[:, :, *slices], ones, margins, steps)
    return out


@lru_cache(1024)
def _transposed_phases(size, kernel, out, stride, before, dilation):
    """Return whether all indices have taps, and per phase the reversed taps, slice, padding and dilation."""
    axes = [phases_of(*one) for one in zip(size, kernel, out, stride, before, dilation, strict=True)]
    covered = all(sum(p.kept.stop - p.kept.start for p in phases) == n for phases, n in zip(axes, size, strict=True))
    found = []
    for phases in itertools.product(*axes):
        taps = tuple(_reverse_slice(p.taps, k) for p, k in zip(phases, kernel, strict=True))
        margins = tuple(p.first + (p.number - 1) * p.step - p.kept.start for p in phases)
        found.append((taps, tuple(p.source for p in phases), margins, tuple(p.step for p in phases)))
    return covered, found


def _reverse_slice(taps, size):
    """Return the slice that reverses the taps of a dimension."""
    found = range(size)[taps]
    return slice(found[-1], found[0] - 1 if found[0] else None, -found.step)


@_half_in_single
def conv_weight(x, y, *, kernel, stride, before, dilation, groups):
    """Return the weight (o, c / groups, *kernel) from x (n, c, *sizes) and y (n, o, *out)."""
    out = np.zeros((y.shape[1], x.shape[1] // groups, *kernel), x.dtype)
    if x.size and y.size and out.size:
        plan = _plan(x.shape[2:], kernel, y.shape[2:], stride, before, dilation)
        x, y = (_images(contiguous(z)) for z in (x, y))
        _kernels(x).conv_weight_sums(plan, x, y, _images(out), groups)
    return out


# --------------------------------------------------------------------------------------------- windows as columns


def _tap_places(tap, size, stride, dilation):
    """Return the slice of a padded image that a tap reads, for all positions of the window."""
    per = zip(tap, size, stride, dilation, strict=True)
    return tuple(slice(t * d, t * d + (n - 1) * s + 1, s) for t, n, s, d in per)


def _margins(sizes, kernel, stride, before, dilation, size):
    """Return the size of an image with all the padding that windows read, and the slices of the image in it."""
    per = zip(sizes, kernel, stride, before, dilation, size, strict=True)
    whole = tuple(max(n + b, (m - 1) * s + (k - 1) * d + 1) for n, k, s, b, d, m in per)
    return whole, tuple(slice(b, b + n) for b, n in zip(before, sizes, strict=True))


def window_columns(x, kernel, stride, before, dilation, size):
    """Return (n, c, *kernel, *size) from images (n, c, *sizes): the element each tap reads at each position."""
    whole, inside = _margins(x.shape[2:], kernel, stride, before, dilation, size)
    image = np.zeros((*x.shape[:2], *whole), x.dtype)
    image[..., *inside] = x
    out = empty((*x.shape[:2], *kernel, *size), x.dtype)
    for tap in np.ndindex(*kernel):
        out[:, :, *tap] = image[..., *_tap_places(tap, size, stride, dilation)]
    return out


def window_sums(x, kernel, stride, before, dilation, size):
    """Return images (n, c, *size), the sums of columns (n, c, *kernel, *positions): im2col transposed."""
    places = x.shape[2 + len(kernel) :]
    whole, inside = _margins(size, kernel, stride, before, dilation, places)
    image = np.zeros((*x.shape[:2], *whole), x.dtype)
    for tap in np.ndindex(*kernel):
        image[..., *_tap_places(tap, places, stride, dilation)] += x[:, :, *tap]
    return image[..., *inside].copy()
