"""Line search for a step that satisfies the strong Wolfe conditions."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

SUFFICIENT, CURVATURE = 1e-4, 0.9  # of the two conditions, as usual for quasi-Newton methods


class Point(NamedTuple):
    """A step t, and at t the value, the gradient, and the slope along the direction."""

    t: float
    value: float
    gradient: Any
    slope: float


def strong_wolfe(
    evaluate: Callable[[float], Point], start: Point, t: float, direction_norm: float, tolerance: float, most: int
) -> Point:
    """Return a point with sufficient decrease and a small slope: the strong Wolfe conditions.

    Nocedal and Wright, Numerical Optimization, algorithms 3.5 and 3.6, with cubic interpolation. `t` is tried
    first; `direction_norm` is the largest element of the direction. Brackets that are narrower than `tolerance`, and
    `most` further evaluations, end the search, with the best point so far.
    """
    before, now = start, evaluate(t)
    for tries in range(most):
        if _lacks_decrease(now, start) or (tries > 1 and now.value >= before.value):
            return _zoom(evaluate, start, (before, now), range(tries, most), direction_norm, tolerance)
        if _has_small_slope(now, start):
            return now
        if now.slope >= 0:
            return _zoom(evaluate, start, (before, now), range(tries, most), direction_norm, tolerance)
        bounds = (now.t + 0.01 * (now.t - before.t), now.t * 10)
        before, now = now, evaluate(cubic_minimizer(before, now, bounds))
    return min(start, now, key=lambda point: point.value)


def _zoom(
    evaluate: Callable[[float], Point],
    start: Point,
    ends: tuple[Point, Point],
    tries: range,
    direction_norm: float,
    tolerance: float,
) -> Point:
    """Narrow a bracket that contains a suitable point; `low` is its end with the smaller value."""
    low, high = sorted(ends, key=lambda point: point.value)
    near = False  # whether the last trial was close to an end
    for _ in tries:
        left, right = sorted((low.t, high.t))
        if (right - left) * direction_norm < tolerance:
            break
        t, near = _safeguard(cubic_minimizer(*ends, (left, right)), left, right, near)
        now = evaluate(t)
        if _lacks_decrease(now, start) or now.value >= low.value:
            low, high = sorted((low, now), key=lambda point: point.value)
        elif _has_small_slope(now, start):
            return now
        else:
            high, low = (low if now.slope * (high.t - low.t) >= 0 else high), now
        ends = (low, high)
    return low


def _lacks_decrease(now: Point, start: Point) -> bool:
    return now.value > start.value + SUFFICIENT * now.t * start.slope


def _has_small_slope(now: Point, start: Point) -> bool:
    return abs(now.slope) <= -CURVATURE * start.slope


def _safeguard(t: float, left: float, right: float, near: bool) -> tuple[float, bool]:
    """Move a second consecutive trial near an end, or one outside, a tenth of the bracket inwards."""
    margin = 0.1 * (right - left)
    if min(right - t, t - left) >= margin:
        return t, False
    if not near and left < t < right:
        return t, True
    return (right - margin if abs(t - right) < abs(t - left) else left + margin), False


def cubic_minimizer(a: Point, b: Point, bounds: tuple[float, float]) -> float:
    """Return the minimizer of the cubic through two points, within bounds; their midpoint if it has none.

    >>> cubic_minimizer(Point(0.0, 1.0, None, -2.0), Point(4.0, 9.0, None, 6.0), (0.0, 4.0))  # (t - 1)²
    1.0
    """
    left, right = bounds
    a, b = sorted((a, b), key=lambda point: point.t)
    mean = a.slope + b.slope - 3 * (a.value - b.value) / (a.t - b.t)
    square = mean * mean - a.slope * b.slope
    if not square >= 0:
        return (left + right) / 2
    root = math.sqrt(square)
    turn = b.slope - a.slope + 2 * root
    t = b.t - (b.t - a.t) * ((b.slope + root - mean) / turn) if turn else (left + right) / 2
    return min(max(t, left), right)
