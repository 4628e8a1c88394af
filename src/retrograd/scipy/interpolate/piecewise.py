"""Piecewise cubics: splines, and interpolants that keep the shape of the data."""

from typing import Any

from retrograd.core import Tensor
from retrograd.core.tensor import unwrap_all
from retrograd.interop.numpy_protocol.table import O, as_floating, tensor
from retrograd.ops.batching import append_dims
from retrograd.scipy._array_like import ArrayOrSequence
from retrograd.scipy.interpolate.data import (
    checked_data,
    interpolate,
    intervals,
    solve_system,
)
from retrograd.sparse.construct import sparse_coo_tensor


class PiecewisePolynomial:
    """Polynomials c[0] (t - x[i])^k + ... + c[k] on the intervals of x, as SciPy's `PPoly`: c is (k + 1, m, ...).

    extrapolate: whether points outside get the polynomial of the nearest interval, or NaN; "periodic" wraps them.
    """

    def __init__(self, c: Tensor, x: Tensor, extrapolate: Any = True, axis: int = 0) -> None:
        self.c = c
        self.x = x
        self.extrapolate = True if extrapolate is None else extrapolate
        self.axis = axis

    def __call__(self, x: Any, nu: int = 0, extrapolate: Any = None) -> Tensor:
        """Return the values at points of any shape, or the derivatives of order nu; the axis has that shape."""
        if nu:
            return self.derivative(nu)(x, extrapolate=self.extrapolate if extrapolate is None else extrapolate)
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        points = as_floating(x)
        if extrapolate == "periodic":
            first, length = self.x[0], self.x[-1] - self.x[0]
            points = first + (points - first) % length
        at = intervals(self.x, points)
        rest = self.c.ndim - 2
        step = append_dims(points - self.x[at], points.ndim + rest)
        out = O.zeros_like(self.c[0][at])
        for coefficient in self.c.unbind(0):
            out = out * step + coefficient[at]
        if not extrapolate:
            inside = (points >= self.x[0]) & (points <= self.x[-1])
            out = O.where(append_dims(inside, out.ndim), out, float("nan"))
        return O.moveaxis(out, tuple(range(points.ndim)), tuple(range(self.axis, self.axis + points.ndim)))

    def derivative(self, nu: int = 1) -> "PiecewisePolynomial":
        """Return the derivative of order nu."""
        c = self.c
        for _ in range(nu):
            powers = O.arange(c.shape[0] - 1, 0, -1, dtype=c.dtype)
            c = c[:-1] * append_dims(powers, c.ndim) if c.shape[0] > 1 else O.zeros_like(c)
        return PiecewisePolynomial(c, self.x, self.extrapolate, self.axis)

    def antiderivative(self, nu: int = 1) -> "PiecewisePolynomial":
        """Return the antiderivative of order nu that is 0 at the first breakpoint."""
        c = self.c
        for _ in range(nu):
            powers = O.arange(c.shape[0], 0, -1, dtype=c.dtype)
            c = O.cat([c / append_dims(powers, c.ndim), O.zeros_like(c[:1])], 0)
            steps = append_dims(self.x[1:] - self.x[:-1], c.ndim - 1)
            ends = O.zeros_like(c[0])
            for coefficient in c.unbind(0):
                ends = ends * steps + coefficient
            start = O.cumsum(ends, 0) - ends
            c = O.cat([c[:-1], O.unsqueeze(c[-1] + start, 0)], 0)
        extrapolate = False if self.extrapolate == "periodic" else self.extrapolate
        return PiecewisePolynomial(c, self.x, extrapolate, self.axis)

    def integrate(self, a: Any, b: Any) -> Tensor:
        """Return the integral from a to b."""
        whole = self.antiderivative()
        return whole(b) - whole(a)


def _hermite(x: Tensor, y: Tensor, slopes: Tensor, extrapolate: Any, axis: int) -> PiecewisePolynomial:
    """Return the cubics with these values and slopes at the breakpoints."""
    h = append_dims(x[1:] - x[:-1], y.ndim)
    secant = (y[1:] - y[:-1]) / h
    bend = (slopes[:-1] + slopes[1:] - 2 * secant) / h
    c = O.stack([bend / h, (secant - slopes[:-1]) / h - bend, slopes[:-1], y[:-1]], 0)
    return PiecewisePolynomial(c, x, extrapolate, axis)


@interpolate
def CubicHermiteSpline(
    x: ArrayOrSequence, y: ArrayOrSequence, dydx: ArrayOrSequence, axis: int = 0, extrapolate: Any = None
) -> PiecewisePolynomial:
    """Return the piecewise cubic with the values y and slopes dydx at x.

    >>> import retrograd as rg
    >>> from retrograd.scipy.interpolate import CubicHermiteSpline
    >>> spline = CubicHermiteSpline([0.0, 1.0], rg.tensor([0.0, 1.0]), [0.0, 0.0])
    >>> spline(0.5), spline(0.5, 1)
    (tensor(0.5000, dtype=float64), tensor(1.5000, dtype=float64))
    """
    x, y = checked_data("CubicHermiteSpline", x, y, axis)
    slopes = O.moveaxis(as_floating(dydx), axis, 0)
    if slopes.shape != y.shape:
        raise ValueError(f"CubicHermiteSpline: y {tuple(y.shape)} and dydx {tuple(slopes.shape)} must have one shape")
    return _hermite(x, y, slopes, extrapolate, axis)


@interpolate
def CubicSpline(
    x: ArrayOrSequence, y: ArrayOrSequence, axis: int = 0, bc_type: Any = "not-a-knot", extrapolate: Any = None
) -> Any:
    """Return the cubic spline through points, with two continuous derivatives (C. de Boor, 1978).

    bc_type: "not-a-knot", "natural", "clamped", "periodic", or a pair with one of the first three or (order, value) for
    each end: the first or second derivative there, which may be a tensor.

    >>> import retrograd as rg
    >>> from retrograd.scipy.interpolate import CubicSpline
    >>> y = rg.tensor([0.0, 1.0, 0.0], requires_grad=True)
    >>> rg.autograd.grad(CubicSpline([0.0, 1.0, 2.0], y, bc_type="natural")(0.5), y)
    (tensor([ 0.4062,  0.6875, -0.0938]),)
    """
    x, y = checked_data("CubicSpline", x, y, axis)
    periodic = isinstance(bc_type, str) and bc_type == "periodic"
    if extrapolate is None:
        extrapolate = "periodic" if periodic else True
    slopes = _periodic_slopes(x, y) if periodic else _slopes(x, y, bc_type)
    return _hermite(x, y, slopes, extrapolate, axis)


def _slopes(x: Tensor, y: Tensor, bc_type: Any) -> Tensor:
    """Return the slopes of a spline at its breakpoints, from a system with three diagonals and the ends' conditions."""
    n, h = x.shape[0], x[1:] - x[:-1]
    wide = append_dims(h, y.ndim)
    secant = (y[1:] - y[:-1]) / wide
    start, end = _conditions(bc_type, n)
    smooth = isinstance(start, str) and isinstance(end, str)
    if n == 2 and smooth:
        return O.cat([secant, secant], 0)
    if n == 3 and smooth:  # one parabola
        bend = (secant[1] - secant[0]) / (wide[0] + wide[1])
        return O.stack([secant[0] - bend * wide[0], secant[0] + bend * wide[0], secant[1] + bend * wide[1]], 0)
    entries: list[tuple[int, int, Tensor]] = []
    right: list[Tensor] = [None] * n  # type: ignore[list-item]
    for row, condition, order in ((0, start, 1), (n - 1, end, -1)):
        near, far = (0, 1) if order > 0 else (n - 2, n - 3)
        columns = (row, row + order, row + 2 * order)
        if isinstance(condition, str):  # not-a-knot
            a, b = h[near], h[far]
            entries += [(row, columns[0], b), (row, columns[1], a + b)]
            wa, wb = wide[near], wide[far]
            right[row] = ((wa + 2 * (wa + wb)) * wb * secant[near] + wa * wa * secant[far]) / (wa + wb)
        elif condition[0] == 1:
            entries.append((row, row, O.ones_like(h[0])))
            right[row] = condition[1] + O.zeros_like(y[0])
        else:
            entries += [(row, columns[0], 2 * h[near]), (row, columns[1], h[near])]
            right[row] = 3 * (y[near + 1] - y[near]) - order * 0.5 * condition[1] * wide[near] ** 2
    middle = O.arange(1, n - 1, 1)
    where = [O.stack([middle, middle + shift], 0) for shift in (-1, 0, 1)]
    rows = [tensor([[i], [j]]) for i, j, _ in entries]
    diagonals = [h[1:], 2 * (h[:-1] + h[1:]), h[:-1]]
    numbers = O.cat([*diagonals, *[O.reshape(value, (1,)) for _, _, value in entries]], 0)
    matrix = sparse_coo_tensor(O.cat([*where, *rows], 1), numbers, (n, n))
    inner = 3 * (wide[1:] * secant[:-1] + wide[:-1] * secant[1:])
    whole = O.cat([O.unsqueeze(right[0], 0), inner, O.unsqueeze(right[-1], 0)], 0)
    return solve_system(matrix, whole)


def _conditions(bc_type: Any, count: int) -> tuple[Any, Any]:
    """Return the condition at each end: "not-a-knot", or (order, value)."""
    known = {"not-a-knot": "not-a-knot", "clamped": (1, 0.0), "natural": (2, 0.0)}
    pair = (bc_type, bc_type) if isinstance(bc_type, str) else tuple(bc_type)
    found = [known.get(one) if isinstance(one, str) else one for one in pair]
    if len(found) != 2 or any(one is None or (not isinstance(one, str) and one[0] not in (1, 2)) for one in found):
        raise ValueError(
            f"CubicSpline: bc_type must be 'not-a-knot', 'natural', 'clamped', 'periodic', or a pair of these or of "
            f"(1 or 2, value), got {bc_type!r}"
        )
    knots = [isinstance(one, str) for one in found]
    if count < 4 and any(knots) and not all(knots):
        raise NotImplementedError(f"CubicSpline: 'not-a-knot' at one end needs at least 4 points, got {count}")
    return found[0], found[1]


def _periodic_slopes(x: Tensor, y: Tensor) -> Tensor:
    """Return the slopes of a periodic spline, whose first and last values are equal."""
    gap = unwrap_all(O.abs(y[0] - y[-1]) / (1 + O.abs(y[0])))
    if gap.max(initial=0) > 1e-15:
        raise ValueError("CubicSpline: the first and last values of y must be equal for bc_type='periodic'")
    n, h = x.shape[0] - 1, x[1:] - x[:-1]
    if n < 3:
        raise NotImplementedError(f"CubicSpline: a periodic spline needs at least 4 points, got {n + 1}")
    before = O.roll(h, 1, 0)
    wide, wide_before = append_dims(h, y.ndim), append_dims(before, y.ndim)
    secant = (y[1:] - y[:-1]) / wide
    right = 3 * (wide * O.roll(secant, 1, 0) + wide_before * secant)
    rows = O.arange(0, n, 1)
    where = [O.stack([rows, (rows + shift) % n], 0) for shift in (-1, 0, 1)]
    matrix = sparse_coo_tensor(O.cat(where, 1), O.cat([h, 2 * (h + before), before], 0), (n, n))
    slopes = solve_system(matrix, right)
    return O.cat([slopes, slopes[:1]], 0)


@interpolate
def PchipInterpolator(
    x: ArrayOrSequence, y: ArrayOrSequence, axis: int = 0, extrapolate: Any = None
) -> PiecewisePolynomial:
    """Return the piecewise cubic that is monotone where the data are.

    F. N. Fritsch and J. Butland, SIAM J. Sci. Comput. 5 (1984).

    >>> import retrograd as rg
    >>> from retrograd.scipy.interpolate import PchipInterpolator
    >>> PchipInterpolator([0.0, 1.0, 2.0], rg.tensor([0.0, 1.0, 1.0]))(1.5)
    tensor(1., dtype=float64)
    """
    x, y = checked_data("PchipInterpolator", x, y, axis)
    h = append_dims(x[1:] - x[:-1], y.ndim)
    secant = (y[1:] - y[:-1]) / h
    if x.shape[0] == 2:
        return _hermite(x, y, O.cat([secant, secant], 0), extrapolate, axis)
    left, right = 2 * h[1:] + h[:-1], h[1:] + 2 * h[:-1]
    turns = O.sign(secant[1:]) * O.sign(secant[:-1]) <= 0
    safe = [O.where(turns, 1.0, part) for part in (secant[:-1], secant[1:])]
    inner = O.where(turns, 0.0, (left + right) / (left / safe[0] + right / safe[1]))
    ends = [_pchip_end(h[i], h[j], secant[i], secant[j]) for i, j in ((0, 1), (-1, -2))]
    slopes = O.cat([O.unsqueeze(ends[0], 0), inner, O.unsqueeze(ends[1], 0)], 0)
    return _hermite(x, y, slopes, extrapolate, axis)


def _pchip_end(h: Tensor, other: Tensor, secant: Tensor, further: Tensor) -> Tensor:
    """Return the slope at an end by the formula of three points, limited to keep the shape."""
    slope = ((2 * h + other) * secant - h * further) / (h + other)
    slope = O.where(O.sign(slope) != O.sign(secant), 0.0, slope)
    steep = (O.sign(secant) != O.sign(further)) & (O.abs(slope) > 3 * O.abs(secant))
    return O.where(steep, 3 * secant, slope)


@interpolate
def Akima1DInterpolator(
    x: ArrayOrSequence, y: ArrayOrSequence, axis: int = 0, *, method: str = "akima", extrapolate: Any = None
) -> Any:
    """Return Akima's piecewise cubic (H. Akima, J. ACM 17, 1970); NaN outside unless `extrapolate`."""
    if method != "akima":
        raise NotImplementedError(f"Akima1DInterpolator: method='akima' is there for tensors, got {method!r}")
    x, y = checked_data("Akima1DInterpolator", x, y, axis)
    if x.shape[0] == 2:
        return _hermite(
            x, y, O.cat([(y[1:] - y[:-1]) / append_dims(x[1:] - x[:-1], y.ndim)] * 2, 0), bool(extrapolate), axis
        )
    m = (y[1:] - y[:-1]) / append_dims(x[1:] - x[:-1], y.ndim)
    before, after = 2 * m[0] - m[1], 2 * m[-1] - m[-2]
    ends = [2 * before - m[0], before], [after, 2 * after - m[-1]]
    m = O.cat([O.stack(ends[0], 0), m, O.stack(ends[1], 0)], 0)
    jumps = O.abs(m[1:] - m[:-1])
    f1, f2 = jumps[2:], jumps[:-2]
    total = f1 + f2
    flat = total.detach() <= 1e-9 * O.amax(total.detach())
    safe = O.where(flat, 1.0, total)
    slopes = O.where(flat, 0.5 * (m[3:] + m[:-3]), (f1 * m[1:-2] + f2 * m[2:-1]) / safe)
    return _hermite(x, y, slopes, False if extrapolate is None else extrapolate, axis)
