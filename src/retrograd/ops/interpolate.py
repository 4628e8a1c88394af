"""Image resampling: interpolation, sampling on a grid, pixel and channel shuffle."""

import math
from typing import Any

from retrograd.backend.resample_tables import source_indices
from retrograd.core import Aval, Internal, op, registry
from retrograd.core import dtype as dtypes
from retrograd.ops.create import as_tensor
from retrograd.ops.family import AlongDims, Composite, canonical_dim, check_floating, check_real, same_dtype
from retrograd.ops.gather import gather, index_select
from retrograd.ops.linalg import matmul
from retrograd.ops.pointwise import abs, clamp, detach, floor, remainder, round, row_major, to, where
from retrograd.ops.sparsity_rules import Labels, number_elements
from retrograd.ops.view import cat, expand, permute, reshape, stack, transpose

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
        raise ValueError(
            f"interpolate: mode must be nearest, nearest-exact, area, {', '.join(_NDIM)}, got {mode!r}"
        )
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


@op(
    "upsample(Tensor x, any size=None, any scale_factor=None, str mode='nearest', bool? align_corners=None) -> Tensor"
)
class upsample(Composite, home="nn.functional"):
    """Resize images: an earlier name of `interpolate`."""

    def compose(x, *, size, scale_factor, mode, align_corners):
        return interpolate(x, size=size, scale_factor=scale_factor, mode=mode, align_corners=align_corners)

    oracle = "retrograd.testing.references.interpolate.upsample"

    def samples(r):
        yield (r(1, 2, 3, 4),), {"scale_factor": 2}
        yield (r(1, 1, 3, 4),), {"size": 5, "mode": "bilinear", "align_corners": False}


# ------------------------------------------------------------------------------------ sampling on a grid


def _unnormalize(c, size, align):
    """Convert coordinates from -1 to 1 over the image to positions in units of elements."""
    return (c + 1) * ((size - 1) / 2) if align else ((c + 1) * size - 1) * 0.5


def _clip_coordinates(c, size):
    """Clamp positions to the image, NaN to 0; the slope is 0 at the outermost elements and beyond."""
    inside = registry["logical_and"](c > 0, c < size - 1)
    return where(inside, c, clamp(registry["nan_to_num"](detach(c)), 0, size - 1))


def _reflect_coordinates(c, size, align):
    """Reflect positions outside at the centres of the outermost elements (`align`) or at the borders."""
    low, span = (0.0, size - 1.0) if align else (-0.5, float(size))
    if span == 0:
        return c * 0
    distance = abs(c - low)
    extra = remainder(distance, span)
    odd = remainder(floor(detach(distance) / span), 2.0) == 1
    return _clip_coordinates(where(odd, span - extra, extra) + low, size)


def _pad_coordinates(c, size, padding_mode, align):
    """Move positions into the image by the padding mode; zeros padding is applied when reading."""
    if padding_mode == "zeros":
        return c
    return _clip_coordinates(c, size) if padding_mode == "border" else _reflect_coordinates(c, size, align)


def _cubic_weights(t):
    """Return the weights of the four neighbours at distances 1 + t, t, 1 - t, 2 - t: Keys' kernel with a = -0.75."""
    a = -0.75
    near = [((a + 2) * d - (a + 3)) * d * d + 1 for d in (t, 1 - t)]
    far = [((a * d - 5 * a) * d + 8 * a) * d - 4 * a for d in (t + 1, 2 - t)]
    return far[0], near[0], near[1], far[1]


def _neighbours(c, size, mode, padding_mode, align):
    """Return the integer positions along one dimension that a sample reads, each with its weight (None: 1)."""
    c = _unnormalize(c, size, align)
    if mode == "bicubic":
        low = floor(detach(c))
        positions = [_pad_coordinates(low + j, size, padding_mode, align) for j in range(-1, 3)]
        return list(zip(positions, _cubic_weights(c - low), strict=True))
    c = _pad_coordinates(c, size, padding_mode, align)
    if mode == "nearest":
        return [(round(detach(c)), None)]
    low = floor(detach(c))
    return [(low, 1 - (c - low)), (low + 1, c - low)]


def _combinations(axes):
    """Return every choice of one neighbour per dimension, as a list of (position, weight)."""
    return [[*rest, one] for rest in _combinations(axes[:-1]) for one in axes[-1]] if axes else [[]]


def _gather_neighbours(x, choice):
    """Gather x (n, c, *sizes) at integer positions (n, *out) per dimension, times the weights: (n, c, *out)."""
    index: Any = 0
    within = weight = None
    for (position, share), size in zip(choice, x.shape[2:], strict=True):
        is_inside = registry["logical_and"](position >= 0, position <= size - 1)  # False for NaN
        within = is_inside if within is None else registry["logical_and"](within, is_inside)
        index = index * size + to(where(is_inside, position, 0), dtypes.int64)
        weight = share if weight is None or share is None else weight * share
    (n, c), out = x.shape[:2], index.shape[1:]
    index = expand(reshape(index, (n, 1, math.prod(out))), (n, c, math.prod(out)))
    found = reshape(gather(reshape(x, (n, c, math.prod(x.shape[2:]))), 2, index), (n, c, *out))
    found = where(registry["unsqueeze"](within, 1), found, 0)
    return found if weight is None else found * registry["unsqueeze"](weight, 1)


@op(
    "grid_sample(Tensor x, Tensor grid, str mode='bilinear', str padding_mode='zeros', bool? align_corners=None) "
    "-> Tensor"
)
class grid_sample(Composite, home="nn.functional", opmath="x grid"):
    """Sample images (n, c, *sizes) at the positions in grid (n, *out, d), d = 2 or 3: (n, c, *out).

    A position is (x, y) or (x, y, z), from -1 to 1 over the image: x along the last dimension.  mode: bilinear,
    nearest or (d = 2) bicubic.  padding_mode, outside: zeros, border (the nearest element) or reflection.
    align_corners: -1 and 1 are the centres of the outermost elements, not their outer edges.  M. Jaderberg et al.,
    Spatial transformer networks, NeurIPS 28 (2015).

    Differentiable in both; with nearest, the gradient of the grid is 0.  At integer positions, where the slope jumps,
    the right slope is taken; where positions are clamped, and at the outermost elements, it is 0.

    >>> import retrograd as rg
    >>> image, places = rg.arange(4.0).reshape(1, 1, 2, 2), rg.tensor([[[[0.0, 0.0]]]])
    >>> rg.nn.functional.grid_sample(image, places).item()
    1.5
    """

    def compose(x, grid, *, mode, padding_mode, align_corners):
        _check_grid(x, grid, mode, padding_mode)
        align = bool(align_corners)
        coordinates = registry["unbind"](grid, -1)[::-1]
        axes = [
            _neighbours(c, size, mode, padding_mode, align) for c, size in zip(coordinates, x.shape[2:], strict=True)
        ]
        total = None
        for choice in _combinations(axes):
            term = _gather_neighbours(x, choice)
            total = term if total is None else total + term
        return total + _zero_with_history(grid) if mode == "nearest" and grid.requires_grad else total

    oracle = "retrograd.testing.references.interpolate.grid_sample"

    def samples(r):
        for sizes, lead, params in (
            ((3, 4), (2, 2, 2), {}),
            ((3, 4), (1, 2, 2), {"padding_mode": "border", "align_corners": True}),
            ((3, 2), (1, 2, 3), {"padding_mode": "reflection"}),
            ((3, 4), (1, 3, 1), {"padding_mode": "reflection", "align_corners": True}),
            ((3, 4), (1, 2, 2), {"mode": "nearest"}),
            ((4, 5), (1, 2, 2), {"mode": "bicubic"}),
            ((4, 3), (1, 2, 2), {"mode": "bicubic", "padding_mode": "reflection", "align_corners": True}),
            ((2, 3, 2), (1, 1, 2, 2), {"align_corners": True}),
        ):
            align = params.get("align_corners", False)
            yield (r(lead[0], 2, *sizes), _sample_positions(r, lead, sizes, align)), {**params, "align_corners": align}

    def errors(r):
        x = r(2, 1, 3, 3)
        yield (x, r(1, 2, 2, 2)), {}, ValueError, "grid_sample: .* do not fit"
        yield (x, r(2, 2, 2, 3)), {}, ValueError, "grid_sample: .* do not fit"
        yield (x, r(2, 2, 2, 2)), {"mode": "cubic"}, ValueError, "grid_sample: mode must be bilinear"
        yield (x, r(2, 2, 2, 2)), {"padding_mode": "wrap"}, ValueError, "grid_sample: padding_mode must be zeros"


def _zero_with_history(grid):
    """Return zeros (n, 1, *out) that make the gradient of a grid zeros, where its elements have no influence."""
    position = registry["select"](grid, -1, 0)
    return registry["unsqueeze"](where(registry["zeros_like"](position, dtype=dtypes.bool_), position, 0), 1)


def _sample_positions(r, lead, sizes, align):
    """Return positions in and around images of these sizes, away from those where a neighbour changes."""
    columns = []
    for size in reversed(sizes):
        position = r.ints(size + 2, lead) - 1.8 + r(*lead, within=(0.0, 0.2))
        columns.append(2 * position / (size - 1) - 1 if align else (2 * position + 1) / size - 1)
    return stack(columns, -1)


def _check_grid(x, grid, mode, padding_mode):
    if mode not in ("bilinear", "nearest", "bicubic") or (mode == "bicubic" and x.ndim == 5):
        raise ValueError(f"grid_sample: mode must be bilinear, nearest or, of flat images, bicubic, got {mode!r}")
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(f"grid_sample: padding_mode must be zeros, border or reflection, got {padding_mode!r}")
    if x.ndim not in (4, 5) or grid.ndim != x.ndim or grid.shape[0] != x.shape[0] or grid.shape[-1] != x.ndim - 2:
        raise ValueError(
            f"grid_sample: images {x.shape} and grid {grid.shape} do not fit: expected (n, c, h, w) and (n, *out, 2) "
            f"or (n, c, d, h, w) and (n, *out, 3)"
        )
    check_real("grid_sample", x)
    same_dtype("grid_sample", (x, grid))
    if 0 in x.shape[2:]:
        raise ValueError(f"grid_sample: images of shape {x.shape} have no elements")


@op("affine_grid(Tensor theta, int[] size, bool? align_corners=None) -> Tensor")
class affine_grid(Composite, home="nn.functional"):
    """Return the grid for `grid_sample` of an affine map: theta (n, d, d + 1) to (n, *out, d), size being (n, c, *out).

    >>> import retrograd as rg
    >>> theta = rg.tensor([[[1.0, 0.0, 0.5], [0.0, 1.0, 0.0]]])
    >>> rg.nn.functional.affine_grid(theta, (1, 1, 1, 2), align_corners=True).tolist()
    [[[[-0.5, 0.0], [1.5, 0.0]]]]
    """

    def compose(theta, *, size, align_corners):
        check_real("affine_grid", theta)
        ndim = len(size) - 2
        if ndim not in (2, 3) or theta.shape != (size[0], ndim, ndim + 1) or min(size) < 1:
            raise ValueError(
                f"affine_grid: theta {theta.shape} and size {size} do not fit: expected (n, 2, 3) and (n, c, h, w) or "
                f"(n, 3, 4) and (n, c, d, h, w)"
            )
        columns = []
        for dim in reversed(range(ndim)):
            line = _center_coordinates(size[2 + dim], bool(align_corners), theta.dtype)
            columns.append(expand(reshape(line, (-1, *(1,) * (ndim - 1 - dim))), size[2:]))
        columns.append(registry["ones"](size[2:], dtype=theta.dtype))
        coordinates = reshape(stack(columns, -1), (-1, ndim + 1))
        return reshape(matmul(coordinates, transpose(theta, 1, 2)), (size[0], *size[2:], ndim))

    exempt = {"nested": "the size that it is given says how many examples there are"}

    def oracle(np, theta, size, align_corners):
        out = np.zeros((size[0], *size[2:], len(size) - 2))
        for index in np.ndindex(*size[2:]):
            row = [
                0.0 if n == 1 else 2 * i / (n - 1) - 1 if align_corners else (2 * i + 1) / n - 1
                for i, n in zip(index, size[2:], strict=True)
            ]
            out[:, *index] = theta @ np.array([*row[::-1], 1.0])
        return out

    def samples(r):
        yield (r(2, 2, 3),), {"size": (2, 1, 3, 4), "align_corners": False}
        yield (r(1, 3, 4),), {"size": (1, 2, 2, 1, 3), "align_corners": False}
        yield (r(1, 3, 4),), {"size": (1, 1, 2, 3, 2), "align_corners": True}

    def errors(r):
        yield (r(1, 2, 2),), {"size": (1, 1, 3, 3)}, ValueError, "affine_grid: theta .* do not fit"


def _center_coordinates(count, align, dtype):
    """Return the coordinates of a row of elements, from -1 to 1."""
    if count == 1:
        return registry["zeros"]((1,), dtype=dtype)
    line = registry["linspace"](-1, 1, count, dtype=dtype)
    return line if align else line * ((count - 1) / count)


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
