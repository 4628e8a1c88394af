"""Linear filters of arrays: sums over windows with weights, which may be tensors."""

from collections.abc import Sequence
from itertools import product
from typing import Any

from retrograd.core import Tensor
from retrograd.interop.numpy_protocol import functions
from retrograd.interop.numpy_protocol.table import (
    NUMBERS,
    O,
    as_floating,
    only_default,
    promote_operands,
    refuse,
    tensor,
)
from retrograd.scipy._array_like import ArrayLike, ArrayOrSequence
from retrograd.scipy._mirror import on_tensors

_ndimage = on_tensors("scipy.ndimage")
# NumPy's names of SciPy's modes at the edges.
_MODES = {
    "reflect": "symmetric", "grid-mirror": "symmetric", "mirror": "reflect", "nearest": "edge", "wrap": "wrap",
    "grid-wrap": "wrap", "constant": "constant", "grid-constant": "constant",
}  # fmt: skip


def _extended(name: str, x: Tensor, widths: list[tuple[int, int]], mode: str, cval: Any) -> Tensor:
    """Return the array with (before, after) further elements along each axis."""
    if mode not in _MODES:
        raise ValueError(f"ndimage.{name}: mode must be one of {sorted(_MODES)}, got {mode!r}")
    if isinstance(cval, Tensor):
        refuse(f"ndimage.{name}", "cval must be a number; pad the array with retrograd.numpy.pad")
    constant = {"constant_values": cval} if _MODES[mode] == "constant" else {}
    padded: Tensor = functions()["pad"](x, widths, _MODES[mode], **constant)
    return padded


def _sum_along(name: str, x: Tensor, weights: Tensor, axis: int, mode: str, cval: Any, origin: int) -> Tensor:
    """Return the sums over windows along an axis."""
    size, length = weights.shape[0], x.shape[axis]
    before = size // 2 + origin
    if not 0 <= before < size:
        raise ValueError(f"ndimage.{name}: invalid origin {origin} for {size} weights")
    moved = O.movedim(x, axis, -1)
    widths = [(0, 0)] * (x.ndim - 1) + [(before, size - 1 - before)]
    moved = _extended(name, moved, widths, mode, cval)
    total = weights[0] * moved[..., :length]
    for k in range(1, size):
        total = total + weights[k] * moved[..., k : k + length]
    return O.movedim(total, -1, axis)


def _operands(name: str, input: Any, weights: Any, output: Any) -> tuple[Tensor, Tensor]:
    only_default(f"ndimage.{name}", output=(output, None))
    x, w = promote_operands(as_floating(input), as_floating(weights))
    return x, w


# --------------------------------------------------------------------------------------------- given weights


@_ndimage
def correlate1d(
    input: ArrayOrSequence, weights: ArrayOrSequence, axis: int = -1, output: Any = None, mode: str = "reflect",
    cval: Any = 0.0, origin: int = 0,
) -> Tensor:  # fmt: skip
    """Return the sum of the elements around each one along an axis, times weights; differentiable in both.

    mode: how the array continues beyond its edges, as in SciPy; cval: a number, for mode="constant".

    >>> import retrograd as rg
    >>> from retrograd.scipy.ndimage import correlate1d
    >>> correlate1d(rg.tensor([1.0, 2.0, 4.0]), rg.tensor([1.0, 0.0, 2.0]))
    tensor([ 5.,  9., 10.])
    """
    x, w = _operands("correlate1d", input, weights, output)
    if w.ndim != 1 or not w.shape[0]:
        raise ValueError(f"ndimage.correlate1d: weights must be a vector, got shape {tuple(w.shape)}")
    return _sum_along("correlate1d", x, w, axis, mode, cval, origin)


@_ndimage
def convolve1d(
    input: ArrayOrSequence, weights: ArrayOrSequence, axis: int = -1, output: Any = None, mode: str = "reflect",
    cval: Any = 0.0, origin: int = 0,
) -> Tensor:  # fmt: skip
    """Return the convolution along an axis with weights; see `correlate1d`."""
    w = O.flip(as_floating(weights), (0,))
    return correlate1d(input, w, axis, output, mode, cval, _mirrored(origin, w.shape[0]))


def _mirrored(origin: int, size: int) -> int:
    """Return the origin of reversed weights; a window of even size has its center after the middle."""
    return -origin - (0 if size % 2 else 1)


@_ndimage
def correlate(
    input: ArrayOrSequence, weights: ArrayOrSequence, output: Any = None, mode: str = "reflect", cval: Any = 0.0,
    origin: Any = 0, *, axes: Any = None,
) -> Tensor:  # fmt: skip
    """Return the sum of the elements around each one, times weights of as many dimensions; see `correlate1d`."""
    only_default("ndimage.correlate", axes=(axes, None))
    x, w = _operands("correlate", input, weights, output)
    return _sum_around("correlate", x, w, mode, cval, _for_each(origin, range(x.ndim)))


@_ndimage
def convolve(
    input: ArrayOrSequence, weights: ArrayOrSequence, output: Any = None, mode: str = "reflect", cval: Any = 0.0,
    origin: Any = 0, *, axes: Any = None,
) -> Tensor:  # fmt: skip
    """Return the convolution with weights of as many dimensions; see `correlate1d`."""
    only_default("ndimage.convolve", axes=(axes, None))
    x, w = _operands("convolve", input, weights, output)
    origins = [_mirrored(o, size) for o, size in zip(_for_each(origin, range(x.ndim)), w.shape, strict=False)]
    return _sum_around("convolve", x, O.flip(w, tuple(range(w.ndim))), mode, cval, origins)


def _sum_around(name: str, x: Tensor, w: Tensor, mode: str, cval: Any, origins: Sequence) -> Tensor:
    if x.ndim != w.ndim or not w.numel():
        raise RuntimeError(f"ndimage.{name}: weights must have {x.ndim} dimensions, got shape {tuple(w.shape)}")
    starts = [size // 2 + origin for size, origin in zip(w.shape, origins, strict=True)]
    if not all(0 <= start < size for start, size in zip(starts, w.shape, strict=True)):
        raise ValueError(f"ndimage.{name}: invalid origin {list(origins)} for weights of shape {tuple(w.shape)}")
    widths = [(start, size - 1 - start) for start, size in zip(starts, w.shape, strict=True)]
    padded = _extended(name, x, widths, mode, cval)
    total = None
    for at in product(*map(range, w.shape)):
        window = padded[tuple(slice(k, k + n) for k, n in zip(at, x.shape, strict=True))]
        total = w[at] * window if total is None else total + w[at] * window
    assert total is not None
    return total


def _for_each(value: Any, axes: Sequence) -> list:
    """Return one value for each axis."""
    single = isinstance(value, (*NUMBERS, str)) or (isinstance(value, Tensor) and value.ndim == 0)
    return [value] * len(axes) if single else list(value)


def _axes(name: str, x: Tensor, axes: Any) -> list[int]:
    chosen = range(x.ndim) if axes is None else [axes] if isinstance(axes, int) else axes
    return [axis % x.ndim for axis in chosen]


# ------------------------------------------------------------------------------------------ uniform and Gaussian


@_ndimage
def uniform_filter1d(input: ArrayOrSequence, size: int, axis: int = -1, output: Any = None, mode: str = "reflect",
                     cval: Any = 0.0, origin: int = 0) -> Tensor:  # fmt: skip
    """Return the means over windows along an axis."""
    only_default("ndimage.uniform_filter1d", output=(output, None))
    x = as_floating(input)
    if size < 1:
        raise RuntimeError(f"ndimage.uniform_filter1d: size must be positive, got {size}")
    return _sum_along("uniform_filter1d", x, O.ones((size,), dtype=x.dtype) / size, axis, mode, cval, origin)


@_ndimage
def uniform_filter(input: ArrayOrSequence, size: Any = 3, output: Any = None, mode: Any = "reflect", cval: Any = 0.0,
                   origin: Any = 0, *, axes: Any = None) -> Tensor:  # fmt: skip
    """Return the means over windows; size, mode and origin are those of all axes, or one for each."""
    only_default("ndimage.uniform_filter", output=(output, None))
    x = as_floating(input)
    chosen = _axes("uniform_filter", x, axes)
    parts = (_for_each(part, chosen) for part in (size, mode, origin))
    for axis, width, edge, start in zip(chosen, *parts, strict=True):
        x = uniform_filter1d(x, int(width), axis, None, edge, cval, start)
    return x


@_ndimage
def gaussian_filter1d(input: ArrayOrSequence, sigma: Tensor | float, axis: int = -1, order: int = 0, output: Any = None,
                      mode: str = "reflect", cval: Any = 0.0, truncate: float = 4.0, *,
                      radius: int | None = None) -> Tensor:  # fmt: skip
    """Return the array, smoothed by a normal density along an axis, or for order > 0 its derivative of that order.

    Differentiable in the input and in the deviation sigma; the number of elements in a window is a constant.

    >>> import retrograd as rg
    >>> from retrograd.scipy.ndimage import gaussian_filter1d
    >>> sigma = rg.tensor(1.0, requires_grad=True)
    >>> smooth = gaussian_filter1d(rg.tensor([0.0, 0.0, 1.0, 0.0, 0.0]), sigma, radius=2)
    >>> rg.autograd.grad(smooth[2], sigma)[0] < 0
    tensor(True)
    """
    x, deviation = _operands("gaussian_filter1d", input, sigma, output)
    width = int(truncate * float(O.detach(deviation)) + 0.5) if radius is None else radius
    if order < 0 or width < 0:
        raise ValueError(f"ndimage.gaussian_filter1d: order and radius must not be negative, got {order} and {radius}")
    weights = O.flip(_gaussian_weights(deviation, order, width), (0,))
    return _sum_along("gaussian_filter1d", x, weights, axis, mode, cval, 0)


def _gaussian_weights(deviation: Tensor, order: int, width: int) -> Tensor:
    """Return a normal density at integers, normalized, or its derivative: a Hermite polynomial times the density."""
    z = O.arange(-width, width + 1) / deviation
    density = O.exp(-0.5 * z * z)
    density = density / O.sum(density)
    before, polynomial = O.zeros_like(z), O.ones_like(z)
    for n in range(order):
        before, polynomial = polynomial, z * polynomial - n * before
    return density * polynomial * (-1 / deviation) ** order


@_ndimage
def gaussian_filter(
    input: ArrayOrSequence, sigma: ArrayLike, order: Any = 0, output: Any = None, mode: Any = "reflect",
    cval: Any = 0.0, truncate: float = 4.0, *, radius: Any = None, axes: Any = None,
) -> Tensor:  # fmt: skip
    """Return the array, smoothed along all axes or some; sigma, order, mode and radius may be one for each axis."""
    only_default("ndimage.gaussian_filter", output=(output, None))
    x = as_floating(input)
    chosen = _axes("gaussian_filter", x, axes)
    widths = [None] * len(chosen) if radius is None else _for_each(radius, chosen)
    parts = (_for_each(part, chosen) for part in (sigma, order, mode))
    for axis, deviation, degree, edge, width in zip(chosen, *parts, widths, strict=True):
        if isinstance(deviation, Tensor) or deviation > 1e-15:
            x = gaussian_filter1d(x, tensor(deviation), axis, degree, None, edge, cval, truncate, radius=width)
    return x


# ------------------------------------------------------------------------------------------------- derivatives


def _slope(name: str, input: Any, axis: int, output: Any, mode: Any, cval: Any, smoothing: list) -> Tensor:
    """Return central differences along an axis, smoothed along the others."""
    only_default(f"ndimage.{name}", output=(output, None))
    x = as_floating(input)
    modes = _for_each(mode, range(x.ndim))
    axis = axis % x.ndim
    for other in [axis, *[k for k in range(x.ndim) if k != axis]]:
        weights = tensor([-1.0, 0.0, 1.0] if other == axis else smoothing).to(x.dtype)
        x = _sum_along(name, x, weights, other, modes[other], cval, 0)
    return x


@_ndimage
def sobel(input: ArrayOrSequence, axis: int = -1, output: Any = None, mode: Any = "reflect", cval: Any = 0.0) -> Tensor:
    """Return Sobel's differences along an axis, with the weights 1, 2, 1 along the others."""
    return _slope("sobel", input, axis, output, mode, cval, [1.0, 2.0, 1.0])


@_ndimage
def prewitt(
    input: ArrayOrSequence, axis: int = -1, output: Any = None, mode: Any = "reflect", cval: Any = 0.0
) -> Tensor:
    """Return Prewitt's differences along an axis, with the weights 1, 1, 1 along the others."""
    return _slope("prewitt", input, axis, output, mode, cval, [1.0, 1.0, 1.0])


@_ndimage
def laplace(
    input: ArrayOrSequence, output: Any = None, mode: Any = "reflect", cval: Any = 0.0, *, axes: Any = None
) -> Tensor:
    """Return the sum of second differences along all axes, or some."""
    only_default("ndimage.laplace", output=(output, None))
    x = as_floating(input)
    chosen = _axes("laplace", x, axes)
    weights = tensor([1.0, -2.0, 1.0]).to(x.dtype)
    return _total([
        _sum_along("laplace", x, weights, axis, edge, cval, 0)
        for axis, edge in zip(chosen, _for_each(mode, chosen), strict=True)
    ])  # fmt: skip


def _total(parts: list[Tensor]) -> Tensor:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _gaussian_derivatives(input: Any, sigma: Any, mode: Any, cval: Any, axes: Any, degree: int, options: dict) -> list:
    """Return the derivatives of the smoothed array along each axis."""
    x = as_floating(input)
    chosen = _axes("gaussian_filter", x, axes)
    orders = [[degree if k == axis else 0 for k in chosen] for axis in chosen]
    return [gaussian_filter(x, sigma, order, None, mode, cval, axes=chosen, **options) for order in orders]


@_ndimage
def gaussian_laplace(
    input: ArrayOrSequence, sigma: ArrayLike, output: Any = None, mode: Any = "reflect", cval: Any = 0.0, *,
    axes: Any = None, **kwargs: Any,
) -> Tensor:  # fmt: skip
    """Return the sum of second derivatives of the array, smoothed as by `gaussian_filter`."""
    only_default("ndimage.gaussian_laplace", output=(output, None))
    return _total(_gaussian_derivatives(input, sigma, mode, cval, axes, 2, kwargs))


@_ndimage
def gaussian_gradient_magnitude(
    input: ArrayOrSequence, sigma: ArrayLike, output: Any = None, mode: Any = "reflect", cval: Any = 0.0, *,
    axes: Any = None, **kwargs: Any,
) -> Tensor:  # fmt: skip
    """Return the norm of the gradient of the array, smoothed as by `gaussian_filter`."""
    only_default("ndimage.gaussian_gradient_magnitude", output=(output, None))
    slopes = _gaussian_derivatives(input, sigma, mode, cval, axes, 1, kwargs)
    return O.sqrt(_total([O.square(slope) for slope in slopes]))
