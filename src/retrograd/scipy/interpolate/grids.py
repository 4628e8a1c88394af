"""Interpolation along one axis, and on grids of several dimensions."""

from collections.abc import Sequence
from itertools import product
from typing import Any

from retrograd.core import Tensor
from retrograd.interop.numpy_protocol.table import O, as_floating, promote_operands, values
from retrograd.ops.batching import append_dims
from retrograd.scipy._array_like import ArrayOrSequence
from retrograd.scipy.interpolate.bsplines import make_interp_spline
from retrograd.scipy.interpolate.data import (
    checked_data,
    interpolate,
    intervals,
    is_increasing,
)

_DEGREES = {"quadratic": 2, "cubic": 3}


class Interpolation:
    """The result of `interp1d`: a function of points."""

    def __init__(self, x: Tensor, y: Tensor, kind: str, axis: int, fill: Any, bounds_error: bool) -> None:
        self.x, self.y = x, y  # y with its axis in front
        self._kind = kind
        self._axis = axis
        self._fill = fill
        self._bounds_error = bounds_error
        degree = _DEGREES.get(kind)
        self._spline = None if degree is None else make_interp_spline(x, y, degree)

    def __call__(self, x: Any) -> Tensor:
        """Return the values at points of any shape."""
        points = as_floating(x)
        low, high = points < self.x[0], points > self.x[-1]
        if self._bounds_error and (values(low.detach()).any() or values(high.detach()).any()):
            raise ValueError("interp1d: a value in x_new is outside the interpolation range.")
        out = self._spline(points) if self._spline is not None else self._on_lines(points)
        if not isinstance(self._fill, str):
            below, above = self._fill if isinstance(self._fill, tuple) else (self._fill, self._fill)
            out = O.where(append_dims(low, out.ndim), below, O.where(append_dims(high, out.ndim), above, out))
        ndim = points.ndim
        return O.moveaxis(out, tuple(range(ndim)), tuple(range(self._axis, self._axis + ndim)))

    def _on_lines(self, points: Tensor) -> Tensor:
        at = intervals(self.x, points)
        if self._kind in ("linear", "slinear"):
            share = (points - self.x[at]) / (self.x[at + 1] - self.x[at])
            return self.y[at] + append_dims(share, points.ndim + self.y.ndim - 1) * (self.y[at + 1] - self.y[at])
        last = self.x.shape[0] - 1
        known = self.x.detach()
        if self._kind in ("nearest", "nearest-up"):
            middles = (known[1:] + known[:-1]) / 2
            return self.y[O.searchsorted(middles, points.detach(), right=self._kind == "nearest-up")]
        if self._kind == "next":
            out = self.y[O.clamp(O.searchsorted(known, points.detach()), max=last)]
            return O.where(append_dims(points > known[-1], out.ndim), float("nan"), out)
        out = self.y[O.clamp(O.searchsorted(known, points.detach(), right=True) - 1, min=0)]
        if self._kind == "zero":
            return out
        return O.where(append_dims(points < known[0], out.ndim), float("nan"), out)


@interpolate
def interp1d(
    x: ArrayOrSequence, y: ArrayOrSequence, kind: Any = "linear", axis: int = -1, copy: bool = True,
    bounds_error: bool | None = None, fill_value: Any = float("nan"), assume_sorted: bool = False,
) -> Interpolation:  # fmt: skip
    """Return the function that interpolates y (..., n, ...) at x (n,) along an axis.

    kind: "linear", "nearest", "nearest-up", "previous" ("zero"), "next", "quadratic", "cubic", or a degree. Points
    outside raise ValueError, or get `fill_value`, a number, a pair or "extrapolate".

    >>> import retrograd as rg
    >>> from retrograd.scipy.interpolate import interp1d
    >>> y = rg.tensor([0.0, 2.0, 6.0], requires_grad=True)
    >>> rg.autograd.grad(interp1d([0.0, 1.0, 2.0], y)(1.25), y)
    (tensor([0.0000, 0.7500, 0.2500]),)
    """
    kind = {0: "zero", 1: "linear", 2: "quadratic", 3: "cubic"}.get(kind, kind)
    if kind not in ("linear", "slinear", "nearest", "nearest-up", "previous", "zero", "next", *_DEGREES):
        raise NotImplementedError(f"interp1d: {kind!r} is unsupported for tensors: use make_interp_spline")
    x, y = promote_operands(as_floating(x), as_floating(y))
    axis %= y.ndim
    if not assume_sorted:
        order = O.argsort(x.detach(), stable=True)
        x, y = x[order], O.index_select(y, axis, order)
    x, y = checked_data("interp1d", x, y, axis)
    extrapolates = isinstance(fill_value, str)
    if extrapolates and (fill_value != "extrapolate" or bounds_error):
        raise ValueError(f"interp1d: fill_value is 'extrapolate' without bounds_error, or numbers, got {fill_value!r}")
    is_default = isinstance(fill_value, float) and fill_value != fill_value
    return Interpolation(x, y, kind, axis, fill_value, is_default if bounds_error is None else bounds_error)


class GridInterpolation:
    """The result of `RegularGridInterpolator`: a function of points (..., d)."""

    def __init__(self, grid: Sequence[Tensor], values_: Tensor, method: str, bounds_error: bool, fill: Any) -> None:
        self.grid, self.values = tuple(grid), values_
        self.method, self.bounds_error, self.fill_value = method, bounds_error, fill

    def __call__(self, xi: Any, method: str | None = None) -> Tensor:
        """Return the values at points (..., d), of shape (..., *rest)."""
        method = self.method if method is None else method
        points = (
            O.stack(list(promote_operands(*map(as_floating, xi))), -1) if isinstance(xi, tuple) else as_floating(xi)
        )
        count = len(self.grid)
        if points.shape[-1:] != (count,):
            if count > 1 or points.ndim > 1:
                raise ValueError(f"RegularGridInterpolator: points must be (..., {count}), got {tuple(points.shape)}")
            points = O.unsqueeze(points, -1)
        coordinates = points.unbind(-1)
        outside = sum((x < line[0]) | (x > line[-1]) for x, line in zip(coordinates, self.grid, strict=True)) > 0
        if self.bounds_error and values(outside.detach()).any():
            raise ValueError("RegularGridInterpolator: One of the requested xi is out of bounds")
        corners, shares = [], []
        for x, line in zip(coordinates, self.grid, strict=True):
            at = intervals(line, x)
            corners.append(at)
            shares.append((x - line[at]) / (line[at + 1] - line[at]))
        rest = points.ndim - 1 + self.values.ndim - count
        if method == "nearest":
            index = tuple(at + (share.detach() > 0.5) for at, share in zip(corners, shares, strict=True))
            out = self.values[index]
        else:
            terms = []
            for corner in product((0, 1), repeat=count):
                weight: Any = 1.0
                for side, share in zip(corner, shares, strict=True):
                    weight = weight * (share if side else 1 - share)
                index = tuple(at + side for at, side in zip(corners, corner, strict=True))
                terms.append(append_dims(weight, rest) * self.values[index])
            out = O.sum(O.stack(terms, 0), 0)
        if self.fill_value is not None:
            out = O.where(append_dims(outside, out.ndim), self.fill_value, out)
        return out


@interpolate
def RegularGridInterpolator(
    points: ArrayOrSequence, values: ArrayOrSequence, method: str = "linear", bounds_error: bool = True,
    fill_value: Any = float("nan"), **options: Any,
) -> GridInterpolation:  # fmt: skip
    """Return the function that interpolates values on a grid of d dimensions, linearly or by the nearest point.

    points: d increasing vectors. values: (n1, ..., nd, *rest). Points outside raise ValueError, or get `fill_value`;
    None extrapolates.

    >>> import retrograd as rg
    >>> from retrograd.scipy.interpolate import RegularGridInterpolator
    >>> grid = rg.tensor([[0.0, 1.0], [2.0, 3.0]], requires_grad=True)
    >>> rg.autograd.grad(RegularGridInterpolator(([0.0, 1.0], [0.0, 1.0]), grid)([0.5, 0.25]), grid)
    (tensor([[0.3750, 0.1250],
            [0.3750, 0.1250]]),)
    """
    if method not in ("linear", "nearest"):
        raise NotImplementedError(f"RegularGridInterpolator: {method!r} is unsupported for tensors: linear or nearest")
    *grid, table = promote_operands(*map(as_floating, points), as_floating(values))
    sizes = tuple(line.shape[0] if line.ndim == 1 else -1 for line in grid)
    if sizes != table.shape[: len(grid)] or min(sizes, default=0) < 2:
        raise ValueError(f"RegularGridInterpolator: points of {sizes} do not fit values of {tuple(table.shape)}")
    for number, line in enumerate(grid):
        if not is_increasing(line):
            raise ValueError(f"RegularGridInterpolator: the points in dimension {number} must be strictly ascending")
    return GridInterpolation(grid, table, method, bounds_error, fill_value)
