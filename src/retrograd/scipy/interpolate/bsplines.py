"""Splines of any degree, as sums of B-splines."""

from typing import Any

from retrograd.core import Tensor
from retrograd.interop.numpy_protocol.table import O, as_floating
from retrograd.ops.batching import append_dims
from retrograd.scipy._array_like import ArrayOrSequence
from retrograd.scipy.interpolate.data import (
    checked_data,
    interpolate,
    solve_system,
)
from retrograd.sparse.construct import sparse_coo_tensor


class Spline:
    """A spline as SciPy's `BSpline`: knots t, coefficients c (n, ...), degree k."""

    def __init__(self, t: Tensor, c: Tensor, k: int, extrapolate: Any = True, axis: int = 0) -> None:
        self.t, self.c, self.k = t, c, k
        self.extrapolate = extrapolate
        self.axis = axis

    def __call__(self, x: Any, nu: int = 0, extrapolate: Any = None) -> Tensor:
        """Return the values at points of any shape, or the derivatives of order nu."""
        if nu:
            return self.derivative(nu)(x, extrapolate=extrapolate)
        points = as_floating(x)
        flat = O.reshape(points, (-1,))
        first, basis = _basis(self.t, self.k, flat)
        terms = [append_dims(basis[:, j], self.c.ndim) * self.c[first + j] for j in range(self.k + 1)]
        out = O.sum(O.stack(terms, 0), 0)  # of the k + 1 functions that are not 0 at a point
        low, high = self.t[self.k], self.t[self.c.shape[0]]
        if not (self.extrapolate if extrapolate is None else extrapolate):
            inside = (flat >= low) & (flat <= high)
            out = O.where(append_dims(inside, out.ndim), out, float("nan"))
        out = O.reshape(out, (*points.shape, *self.c.shape[1:]))
        return O.moveaxis(out, tuple(range(points.ndim)), tuple(range(self.axis, self.axis + points.ndim)))

    def derivative(self, nu: int = 1) -> "Spline":
        """Return the derivative of order nu."""
        t, c, k = self.t, self.c, self.k
        for _ in range(min(nu, k)):
            count = c.shape[0]
            c = k * (c[1:] - c[:-1]) / append_dims(t[k + 1 : k + count] - t[1:count], c.ndim)
            t, k = t[1:-1], k - 1
        return Spline(t, O.zeros_like(c) if nu > self.k else c, k, self.extrapolate, self.axis)


def _basis(t: Tensor, k: int, points: Tensor) -> tuple[Tensor, Tensor]:
    """Return for each point the first B-spline that is not 0 there, and the values of k + 1 of them (Cox, de Boor)."""
    count = t.shape[0] - k - 1
    at = k + O.searchsorted(t.detach()[k + 1 : count], points.detach(), right=True)
    columns = [O.ones_like(points)]
    for degree in range(1, k + 1):
        new = [O.zeros_like(points)] * (degree + 1)
        for j, old in enumerate(columns):
            low, high = t[at + j - degree + 1], t[at + j + 1]
            share = old / (high - low)
            new[j] = new[j] + (high - points) * share
            new[j + 1] = new[j + 1] + (points - low) * share
        columns = new
    return at - k, O.stack(columns, 1)


@interpolate
def make_interp_spline(
    x: ArrayOrSequence, y: ArrayOrSequence, k: int = 3, t: Any = None, bc_type: Any = None, axis: int = 0,
    check_finite: bool = True,
) -> Spline:  # fmt: skip
    """Return the spline of degree k through points, with SciPy's knots ("not-a-knot"), or with the knots t.

    >>> import retrograd as rg
    >>> from retrograd.scipy.interpolate import make_interp_spline
    >>> x = rg.linspace(0, 3, 7, dtype=rg.float64, requires_grad=True)
    >>> spline = make_interp_spline(x, x**3)
    >>> round(spline(1.25).item(), 6), round(spline(1.25, 1).item(), 6)
    (1.953125, 4.6875)
    """
    if bc_type not in (None, "not-a-knot"):
        raise NotImplementedError(f"make_interp_spline: bc_type=None is there for tensors, got {bc_type!r}")
    x, y = checked_data("make_interp_spline", x, y, axis, k + 1)
    knots = _knots(x, k) if t is None else as_floating(t)
    count = x.shape[0]
    if knots.shape[0] != count + k + 1:
        raise ValueError(f"make_interp_spline: {count} points and degree {k} need {count + k + 1} knots")
    if k == 0:
        return Spline(knots, y, 0, True, axis)
    first, basis = _basis(knots, k, x)
    columns = O.unsqueeze(first, 1) + O.arange(0, k + 1, 1)
    rows = O.expand(O.unsqueeze(O.arange(0, count, 1), 1), (count, k + 1))
    indices = O.stack([O.reshape(rows, (-1,)), O.reshape(columns, (-1,))], 0)
    matrix = sparse_coo_tensor(indices, O.reshape(basis, (-1,)), (count, count))
    return Spline(knots, solve_system(matrix, y), k, True, axis)


def _knots(x: Tensor, k: int) -> Tensor:
    """Return SciPy's knots: k + 1 at each end, and data points, or points between them for an even degree."""
    if k % 2:
        inner = x[(k + 1) // 2 : x.shape[0] - (k + 1) // 2]
    else:
        middles = (x[1:] + x[:-1]) / 2
        inner = middles[k // 2 : x.shape[0] - 1 - k // 2]
    return O.cat([O.expand(x[:1], (k + 1,)), inner, O.expand(x[-1:], (k + 1,))], 0)
