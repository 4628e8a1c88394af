"""Image resampling: interpolation, pixel and channel shuffle."""

import math

from retrograd.backend.resample_tables import source_indices
from retrograd.core import Aval, Internal, op, registry
from retrograd.core import dtype as dtypes
from retrograd.ops.create import as_tensor
from retrograd.ops.family import AlongDims, Composite, canonical_dim, check_floating
from retrograd.ops.gather import index_select
from retrograd.ops.pointwise import clamp, floor, row_major, to
from retrograd.ops.sparsity_rules import Labels, number_elements
from retrograd.ops.view import cat, permute, reshape, stack, transpose

# --------------------------------------------------------------------------------- linear maps along a dimension


class Resampling(Internal, AlongDims, memory="images"):
    """A linear map along one dimension; `how` is its name, the old and the new size, and its further arguments."""

    @classmethod
    def mapped(cls, i, out, /, *avals, **params):
        """All dimensions but this one."""
        return super().dependence(i, out, *avals, **params)


def _check_sizes(name, x, dim, size):
    at = canonical_dim(name, dim, x.ndim)
    if at < 0 or not x.ndim or x.shape[at] != size:
        raise ValueError(f"{name}: dimension {dim} of shape {x.shape} must have size {size}")
    return at


@op("resample(Tensor x, *, int dim, any how) -> Tensor")
class resample(Resampling, linear="x", saves_input=True):
    """x mapped along one dimension: padded, interpolated or averaged."""

    def impl(xp, x, *, dim, how):
        return xp.resample(x, _check_sizes("resample", x, dim, how[1]), how)

    def shape(x, *, dim, how):
        at = _check_sizes("resample", x, dim, how[1])
        return Aval((*x.shape[:at], how[2], *x.shape[at + 1 :]), x.dtype)

    def vjp_x(g, dim, how):
        return resample_backward(g, dim=dim, how=how)

    def dependence(i, out, x, *, dim, how):
        return _read_labels(x, dim, source_indices(how))

    oracle = "retrograd.testing.references.interpolate.resample"

    def samples(r):
        yield (r(2, 4, 3),), {"dim": 1, "how": ("linear", 4, 7, 0.0, False)}
        yield (r(2, 5),), {"dim": -1, "how": ("cubic", 5, 3, 0.0, True)}
        yield (r(5),), {"dim": 0, "how": ("area", 5, 3)}
        yield (r(5),), {"dim": 0, "how": ("reflect", 5, 8, 2)}


@op("resample_backward(Tensor x, *, int dim, any how) -> Tensor")
class resample_backward(Resampling, linear="x"):
    """The transpose of `resample`."""

    def impl(xp, x, *, dim, how):
        at = _check_sizes("resample_backward", x, dim, how[2])
        return xp.resample_backward(x, at, how)

    def shape(x, *, dim, how):
        at = _check_sizes("resample_backward", x, dim, how[2])
        return Aval((*x.shape[:at], how[1], *x.shape[at + 1 :]), x.dtype)

    def vjp_x(g, dim, how):
        return resample(g, dim=dim, how=how)

    def dependence(i, out, x, *, dim, how):
        return _read_labels(x, dim, source_indices(how, transposed=True))

    oracle = "retrograd.testing.references.interpolate.resample_backward"

    def samples(r):
        yield (r(2, 7, 3),), {"dim": 1, "how": ("linear", 4, 7, 0.0, False)}
        yield (r(2, 3),), {"dim": -1, "how": ("cubic", 5, 3, 0.0, True)}
        yield (r(3),), {"dim": 0, "how": ("nearest", 7, 3, 0.0, 0.0)}


def _read_labels(x, dim, indices):
    """Return the labels that a map reads: `indices` has one row per read, with 0 for none."""
    at = canonical_dim("resample", dim, x.ndim)
    none = registry["zeros"]((*x.shape[:at], 1, *x.shape[at + 1 :]), dtype=dtypes.float64)
    numbers = cat([none, number_elements(x.shape)], at)
    if not len(indices):
        return Labels(registry["zeros"]((*x.shape[:at], indices.shape[1], *x.shape[at + 1 :])), None)
    return Labels(stack([index_select(numbers, at, as_tensor(row)) for row in indices], -1), None)


# --------------------------------------------------------------------------------------------------- interpolation

_NDIM = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}  # of the modes for one number of dimensions
_OF_BYTES = ("bilinear", "bicubic")  # the modes that resize images of uint8


def _check_interpolation(x, size, scale_factor, mode, align_corners, antialias):
    if mode not in ("nearest", "nearest-exact", "area", *_NDIM):
        raise ValueError(f"interpolate: mode must be nearest, nearest-exact, area, {', '.join(_NDIM)}, got {mode!r}")
    if x.ndim not in (3, 4, 5) or x.ndim - 2 != _NDIM.get(mode, x.ndim - 2):
        expected = f"{_NDIM[mode] + 2}" if mode in _NDIM else "3 to 5"
        raise ValueError(f"interpolate: mode {mode!r} needs {expected} dimensions, (n, c, *sizes), got shape {x.shape}")
    if (size is None) == (scale_factor is None):
        words = "either size or scale_factor" if size is None else "only one of size or scale_factor"
        raise ValueError(f"interpolate: {words} should be defined")
    if align_corners is not None and mode not in _NDIM:
        raise ValueError(f"interpolate: align_corners makes no difference to mode {mode!r}; leave it out")
    if antialias and mode not in ("bilinear", "bicubic"):
        raise ValueError(f"interpolate: antialias=True is for the modes bilinear and bicubic, got {mode!r}")
    if not mode.startswith("nearest") and not (mode in _OF_BYTES and x.dtype == dtypes.uint8):
        check_floating("interpolate", x)


def _check_per_dim(what, value, ndim):
    values = tuple(value) if isinstance(value, (tuple, list)) else (value,) * ndim
    if len(values) != ndim:
        raise ValueError(f"interpolate: {what} must be one number or {ndim}, got {value}")
    return values


def _output_sizes(x, size, scale_factor, recompute):
    """Return the new sizes, and the scales for computing positions: 0 where they follow from the sizes."""
    if size is not None:
        if recompute:
            raise ValueError("interpolate: recompute_scale_factor needs scale_factor, not size")
        sizes, scales = _check_per_dim("size", size, x.ndim - 2), (0.0,) * (x.ndim - 2)
    else:
        scales = tuple(map(float, _check_per_dim("scale_factor", scale_factor, x.ndim - 2)))
        sizes = tuple(math.floor(n * s) for n, s in zip(x.shape[2:], scales, strict=True))
        scales = (0.0,) * len(sizes) if recompute else scales
    if any(n < 1 for n in (*sizes, *x.shape[2:])):
        raise ValueError(f"interpolate: sizes must be at least 1, got {x.shape[2:]} to {sizes}")
    return sizes, scales


def _linear_map(mode, old, new, scale, align, antialias):
    if mode.startswith("nearest"):
        return ("nearest", old, new, scale, 0.5 if mode == "nearest-exact" else 0.0)
    if mode == "area":
        return ("area", old, new)
    return ("smooth " * antialias + ("cubic" if mode == "bicubic" else "linear"), old, new, scale, align)


def _resample_bytes(x, dim, how):
    """Return bytes resampled along one dimension and rounded, as PyTorch rounds them after each dimension."""
    return to(floor(clamp(resample(to(x, dtypes.float32), dim=dim, how=how), 0, 255) + 0.5), dtypes.uint8)


@op(
    "interpolate(Tensor x, any size=None, any scale_factor=None, str mode='nearest', bool? align_corners=None, "
    "bool? recompute_scale_factor=None, bool antialias=False) -> Tensor"
)
class interpolate(Composite, home="nn.functional"):
    """Resize images (n, c, *sizes) with one to three spatial dimensions.

    mode: nearest, nearest-exact, area (averages), linear, bilinear or trilinear (for one, two and three dimensions),
    bicubic (Keys' cubic convolution).  align_corners: align the centres of the corner elements, rather than their outer
    corners.  antialias: when shrinking, bilinear and bicubic average over all elements that an output element covers.
    Integers only with nearest; uint8 with bilinear and bicubic too, whose results are rounded.

    >>> import retrograd as rg
    >>> rg.nn.functional.interpolate(rg.tensor([[[0.0, 1.0]]]), size=4, mode="linear").tolist()
    [[[0.0, 0.25, 0.75, 1.0]]]
    """

    def compose(x, *, size, scale_factor, mode, align_corners, recompute_scale_factor, antialias):
        _check_interpolation(x, size, scale_factor, mode, align_corners, antialias)
        sizes, scales = _output_sizes(x, size, scale_factor, bool(recompute_scale_factor))
        rounded = mode in _OF_BYTES and x.dtype == dtypes.uint8
        for dim in reversed(range(2, x.ndim)):
            how = _linear_map(mode, x.shape[dim], sizes[dim - 2], scales[dim - 2], bool(align_corners), antialias)
            x = _resample_bytes(x, dim, how) if rounded else resample(x, dim=dim, how=how)
        return x

    oracle = "retrograd.testing.references.interpolate.interpolate"

    def samples(r):
        yield (r(1, 2, 4),), {"size": 7, "mode": "linear"}
        yield (r(1, 2, 4, 3),), {"scale_factor": 1.7}
        yield (r(1, 2, 4, 3),), {"size": (2, 5), "mode": "nearest-exact"}
        yield (r(1, 2, 4, 3),), {"size": (3, 6), "mode": "bilinear", "align_corners": True}
        yield (r(1, 1, 4, 5),), {"scale_factor": (1.3, 0.7), "mode": "bicubic"}
        yield (r(1, 1, 4, 5),), {"scale_factor": 1.6, "mode": "bilinear", "recompute_scale_factor": True}
        yield (r(1, 1, 2, 3, 2),), {"size": (3, 2, 4), "mode": "trilinear"}
        yield (r(1, 2, 5, 4),), {"size": (3, 2), "mode": "area"}
        yield (r(1, 1, 7, 4),), {"size": (3, 6), "mode": "bilinear", "antialias": True}
        yield (r(1, 1, 4, 7),), {"size": (5, 3), "mode": "bicubic", "antialias": True}

    def errors(r):
        yield (r(2, 3),), {"size": 2}, ValueError, "interpolate: mode 'nearest' needs 3 to 5 dimensions"
        yield (r(1, 1, 3),), {"size": 2, "mode": "bilinear"}, ValueError, "'bilinear' needs 4 dimensions"
        yield (r(1, 1, 3),), {"size": 2, "mode": "spline"}, ValueError, "interpolate: mode must be nearest"
        yield (r(1, 1, 3),), {}, ValueError, "either size or scale_factor"
        yield (r(1, 1, 3),), {"size": (2, 2)}, ValueError, "size must be one number or 1"
        yield (r(1, 1, 3),), {"size": 0}, ValueError, "at least 1"
        yield (r(1, 1, 3),), {"size": 2, "align_corners": True}, ValueError, "align_corners makes no difference"
        yield (r(1, 1, 3),), {"size": 2, "antialias": True}, ValueError, "antialias=True is for the modes bilinear"
        yield (r.ints(3, (1, 1, 3)),), {"size": 2, "mode": "linear"}, TypeError, "interpolate: expected a floating"


def _upsample(name, mode, align_corners):
    """Return a function with an earlier name of `interpolate` in one mode."""

    @op(f"{name}(Tensor x, any size=None, any scale_factor=None) -> Tensor")
    class upsample(Composite, home="nn.functional"):
        __doc__ = f"Resize images: `interpolate` with mode {mode!r}{' and align_corners' * bool(align_corners)}."

        def compose(x, *, size, scale_factor):
            given = {"mode": mode, "align_corners": align_corners}
            return interpolate(x, size=size, scale_factor=scale_factor, **given)

        oracle = f"retrograd.testing.references.interpolate.{name}"

        def samples(r):
            yield (r(1, 2, 3, 4),), {"scale_factor": 2}
            yield (r(1, 2, 3, 4),), {"size": (2, 5)}

    return upsample


upsample_nearest = _upsample("upsample_nearest", "nearest", None)
upsample_bilinear = _upsample("upsample_bilinear", "bilinear", True)


@op("upsample(Tensor x, any size=None, any scale_factor=None, str mode='nearest', bool? align_corners=None) -> Tensor")
class upsample(Composite, home="nn.functional"):
    """Resize images: an earlier name of `interpolate`."""

    def compose(x, *, size, scale_factor, mode, align_corners):
        return interpolate(x, size=size, scale_factor=scale_factor, mode=mode, align_corners=align_corners)

    oracle = "retrograd.testing.references.interpolate.upsample"

    def samples(r):
        yield (r(1, 2, 3, 4),), {"scale_factor": 2}
        yield (r(1, 1, 3, 4),), {"size": 5, "mode": "bilinear", "align_corners": False}


# ------------------------------------------------------------------------------------ channels and pixels


def _check_factor(name, x, what, factor, least):
    if x.ndim < least:
        raise ValueError(f"{name}: expected at least {least} dimensions, got shape {x.shape}")
    if factor < 1:
        raise ValueError(f"{name}: {what} must be at least 1, got {factor}")


@op("pixel_shuffle(Tensor x, int upscale_factor) -> Tensor")
class pixel_shuffle(Composite, aliases="nn.functional.pixel_shuffle", method=False, memory="images"):
    """Rearrange channels into pixels: (..., c * r^2, h, w) to (..., c, h * r, w * r), r being upscale_factor.

    W. Shi et al., Real-time single image and video super-resolution, CVPR 2016.

    >>> import retrograd as rg
    >>> rg.pixel_shuffle(rg.arange(4.0).reshape(4, 1, 1), 2).tolist()
    [[[0.0, 1.0], [2.0, 3.0]]]
    """

    def compose(x, *, upscale_factor):
        r = upscale_factor
        _check_factor("pixel_shuffle", x, "upscale_factor", r, 3)
        *lead, c, h, w = x.shape
        if c % (r * r):
            raise ValueError(f"pixel_shuffle: {c} channels are no multiple of {r * r}, the factor squared")
        n = len(lead)
        parts = reshape(x, (*lead, c // (r * r), r, r, h, w))
        order = (*range(n), n, n + 3, n + 1, n + 4, n + 2)
        return reshape(row_major(permute(parts, order)), (*lead, c // (r * r), h * r, w * r))

    def oracle(np, x, upscale_factor):
        r = upscale_factor
        *lead, c, h, w = x.shape
        out = np.empty((*lead, c // r**2, h * r, w * r))
        for k, i, j in np.ndindex(*out.shape[-3:]):
            out[..., k, i, j] = x[..., k * r * r + (i % r) * r + j % r, i // r, j // r]
        return out

    def samples(r):
        yield (r(2, 8, 2, 3),), {"upscale_factor": 2}
        yield (r(9, 1, 2),), {"upscale_factor": 3}

    def errors(r):
        yield (r(6, 2, 2),), {"upscale_factor": 2}, ValueError, "pixel_shuffle: 6 channels are no multiple of 4"
        yield (r(2, 2),), {"upscale_factor": 2}, ValueError, "pixel_shuffle: expected at least 3"
        yield (r(4, 2, 2),), {"upscale_factor": 0}, ValueError, "upscale_factor must be at least 1"


@op("pixel_unshuffle(Tensor x, int downscale_factor) -> Tensor")
class pixel_unshuffle(Composite, aliases="nn.functional.pixel_unshuffle", method=False, memory="images"):
    """Undo `pixel_shuffle`: (..., c, h * r, w * r) to (..., c * r^2, h, w), r being downscale_factor."""

    def compose(x, *, downscale_factor):
        r = downscale_factor
        _check_factor("pixel_unshuffle", x, "downscale_factor", r, 3)
        *lead, c, h, w = x.shape
        if h % r or w % r:
            raise ValueError(f"pixel_unshuffle: height {h} and width {w} must be multiples of {r}")
        n = len(lead)
        parts = reshape(x, (*lead, c, h // r, r, w // r, r))
        parts = row_major(permute(parts, (*range(n), n, n + 2, n + 4, n + 1, n + 3)))
        return reshape(parts, (*lead, c * r * r, h // r, w // r))

    def oracle(np, x, downscale_factor):
        r = downscale_factor
        *lead, c, h, w = x.shape
        out = np.empty((*lead, c * r**2, h // r, w // r))
        for k, i, j in np.ndindex(*x.shape[-3:]):
            out[..., k * r * r + (i % r) * r + j % r, i // r, j // r] = x[..., k, i, j]
        return out

    def samples(r):
        yield (r(2, 2, 4, 6),), {"downscale_factor": 2}
        yield (r(1, 3, 6),), {"downscale_factor": 3}

    def errors(r):
        yield (r(1, 3, 4),), {"downscale_factor": 2}, ValueError, "pixel_unshuffle: height 3 and width 4"


@op("channel_shuffle(Tensor x, int groups) -> Tensor")
class channel_shuffle(Composite, aliases="nn.functional.channel_shuffle", method=False, memory="images"):
    """Interleave `groups` consecutive groups of channels (n, c, *sizes): the first of each, the second of each, ...

    X. Zhang et al., ShuffleNet, CVPR 2018.
    """

    def compose(x, *, groups):
        _check_factor("channel_shuffle", x, "groups", groups, 3)
        n, c, *sizes = x.shape
        if c % groups:
            raise ValueError(f"channel_shuffle: {c} channels do not divide into {groups} groups")
        return reshape(row_major(transpose(reshape(x, (n, groups, c // groups, *sizes)), 1, 2)), x.shape)

    def oracle(np, x, groups):
        each = x.shape[1] // groups
        return x[:, [group * each + i for i in range(each) for group in range(groups)]]

    def samples(r):
        yield (r(2, 6, 2, 1),), {"groups": 3}

    def errors(r):
        yield (r(1, 5, 2),), {"groups": 2}, ValueError, "channel_shuffle: 5 channels"
