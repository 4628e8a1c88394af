"""Values of an array at real coordinates, by B-splines on the grid of its elements."""

from collections.abc import Sequence
from itertools import product
from typing import Any

from retrograd.core import Tensor
from retrograd.interop.numpy_protocol.table import O, as_floating, cast, only_default, promote_operands
from retrograd.scipy._array_like import ArrayOrSequence
from retrograd.scipy._mirror import on_tensors
from retrograd.scipy.interpolate.data import solve_system
from retrograd.sparse.construct import sparse_coo_tensor

_ndimage = on_tensors("scipy.ndimage")

# The rule that continues the coefficients of each mode beyond the edges.
_EDGES = {
    "constant": "mirror",
    "mirror": "mirror",
    "wrap": "mirror",
    "reflect": "reflect",
    "nearest": "reflect",
    "grid-wrap": "grid-wrap",
    "grid-constant": "mirror",
}
_ALIASES = {"grid-mirror": "reflect"}
_PADDING = 12  # elements that SciPy adds at the edges of modes for which no continued spline is exact


@_ndimage
def map_coordinates(
    input: ArrayOrSequence, coordinates: ArrayOrSequence, output: Any = None, order: int = 3, mode: str = "constant",
    cval: Any = 0.0, prefilter: bool = True,
) -> Tensor:  # fmt: skip
    """Return the values of an array of d dimensions at coordinates (d, ...), in indices, by splines of an order 0 to 5.

    Differentiable in the input, in the coordinates and in `cval`; order 1 has one-sided derivatives at the elements,
    order 0 has none by coordinates.  The dtype is that of `input`, the default one for integers.  `output` is refused.

    mode: how the array continues beyond its edges, as in SciPy.  prefilter=False: `input` has passed `spline_filter`.
    Splines pass through all elements; SciPy's do so up to 1e-3 on axes of a few elements ("reflect"), and up to 3e-5
    at points more than some 10 elements away ("nearest").

    C. de Boor, A Practical Guide to Splines, 1978.

    >>> import retrograd as rg
    >>> from retrograd.scipy.ndimage import map_coordinates
    >>> at = rg.tensor([[0.25], [0.5]], requires_grad=True)
    >>> value = map_coordinates([[0.0, 1.0], [2.0, 3.0]], at, order=1)
    >>> value.item(), rg.autograd.grad(value, at)[0].tolist()
    (1.0, [[2.0], [1.0]])
    """
    only_default("ndimage.map_coordinates", output=(output, None))
    mode = _checked_mode("map_coordinates", order, mode)
    image = as_floating(input)
    dtype = image.dtype
    at = as_floating(coordinates)
    if at.dtype.kind == "c":
        raise TypeError("ndimage.map_coordinates: Complex type not supported")
    if image.ndim < 1 or at.ndim < 1 or at.shape[0] != image.ndim:
        raise RuntimeError(
            f"ndimage.map_coordinates: invalid shape for coordinate array: the first dimension must be {image.ndim}, "
            f"got {tuple(at.shape)}"
        )
    if dtype.kind != "c":
        image, at = promote_operands(image, at)
    points = list(at.unbind(0))
    inside: Any = True
    if mode == "constant":
        for x, n in zip(points, image.shape, strict=True):
            inside = inside & (x >= 0) & (x <= n - 1)
    if prefilter and order > 1:
        if mode in ("nearest", "grid-constant"):
            for axis in range(image.ndim):
                image = _padded(image, axis, mode, cval)
            points = [x + _PADDING for x in points]
        image = _filtered(image, order, mode)
    out = _sum_of_splines(image, points, order, mode, cval)
    return cast(out if inside is True else O.where(inside, out, cval), dtype)


@_ndimage
def spline_filter(input: ArrayOrSequence, order: int = 3, output: Any = float, mode: str = "mirror") -> Tensor:
    """Return the coefficients of the B-splines of an order 2 to 5 that interpolate an array.

    >>> import retrograd as rg
    >>> from retrograd.scipy.ndimage import spline_filter
    >>> spline_filter(rg.tensor([0.0, 1.0, 0.0])).round(decimals=4).tolist()
    [-1.0, 2.0, -1.0]
    """
    only_default("ndimage.spline_filter", output=(output, float))
    mode = _checked_mode("spline_filter", order, mode)
    if order < 2:
        raise RuntimeError("ndimage.spline_filter: spline order not supported")
    return _filtered(as_floating(input), order, mode)


def _checked_mode(name: str, order: int, mode: str) -> str:
    if order not in range(6):
        raise RuntimeError(f"ndimage.{name}: spline order not supported: 0 to 5, got {order}")
    mode = _ALIASES.get(mode, mode)
    if mode not in _EDGES:
        raise RuntimeError(f"ndimage.{name}: boundary mode not supported: {mode!r}")
    return mode


def _padded(image: Tensor, axis: int, mode: str, cval: Any) -> Tensor:
    """Return an image with more elements at both ends of an axis: those at the ends, or `cval`."""
    ends = []
    for i in (0, image.shape[axis] - 1):
        edge = O.narrow(image, axis, i, 1)
        if mode == "grid-constant":
            edge = O.zeros_like(edge) + cval
        shape = list(image.shape)
        shape[axis] = _PADDING
        ends.append(O.expand(edge, shape))
    return O.cat([ends[0], image, ends[1]], axis)


def _filtered(image: Tensor, order: int, mode: str) -> Tensor:
    """Return the coefficients of splines that interpolate an image: the solution of a banded system for each axis."""
    weights = _weights(0.0 if order % 2 else 0.5, order)
    weights = [w for w in weights if w]
    for axis, n in enumerate(image.shape):
        rows, columns, entries = [], [], []
        for shift, weight in enumerate(weights, -(len(weights) // 2)):
            rows.append(O.arange(0, n, 1))
            columns.append(_folded(O.arange(shift, n + shift, 1), n, _EDGES[mode]))
            entries.append(O.full((n,), weight, dtype=image.dtype))
        matrix = sparse_coo_tensor(O.stack([O.cat(rows, 0), O.cat(columns, 0)], 0), O.cat(entries, 0), (n, n))
        image = O.moveaxis(solve_system(matrix, O.moveaxis(image, axis, 0)), 0, axis)
    return image


def _weights(u: Any, order: int) -> list:
    """Return the values of the order + 1 B-splines that are not 0 at the part u of an interval (Cox, de Boor)."""
    found: list = [1.0]
    for degree in range(1, order + 1):
        new: list = [0.0] * (degree + 1)
        for j, old in enumerate(found):
            new[j] = new[j] + (1 + j - u) * old / degree
            new[j + 1] = new[j + 1] + (u + degree - 1 - j) * old / degree
        found = new
    return found


def _sum_of_splines(image: Tensor, points: Sequence[Tensor], order: int, mode: str, cval: Any) -> Tensor:
    """Return the sums over all elements near each point of their coefficients times their splines."""
    axes = []
    for x, n in zip(points, image.shape, strict=True):
        if mode == "nearest":
            x = O.clamp(x, 0, n - 1)
        elif mode == "wrap":
            at, period = x.detach(), max(n - 1, 1)
            turns = O.where(at < 0, -1 - O.floor(-at / period), O.where(at > n - 1, O.floor(at / period), 0.0))
            x = x - period * turns
        whole = O.floor(x.detach() if order % 2 else x.detach() + 0.5)
        weights = _weights(x - whole if order % 2 else x - whole + 0.5, order)
        first = cast(whole, "int64") - order // 2
        axes.append([(first + j, w, n) for j, w in enumerate(weights)])
    terms = []
    for corner in product(*axes):
        index: list = []
        weight: Any = 1.0
        inside: Any = True
        for i, w, n in corner:
            index.append(_folded(i, n, _EDGES[mode]))
            weight, inside = weight * w, inside & (i >= 0) & (i < n)
        term = image[tuple(index)]
        terms.append(weight * (O.where(inside, term, cval) if mode == "grid-constant" else term))
    return O.sum(O.stack(terms, 0), 0)


def _folded(i: Tensor, n: int, edge: str) -> Tensor:
    """Return the element that the coefficient of any index is equal to."""
    if edge == "grid-wrap":
        return O.remainder(i, n)
    period, turn = (2 * n, 2 * n - 1) if edge == "reflect" else (max(2 * n - 2, 1), 2 * n - 2)
    i = O.remainder(i, period)
    return O.where(i < n, i, turn - i)
