"""Steps of explicit Runge-Kutta methods, of fixed size or chosen by an error estimate."""

from collections.abc import Callable, Sequence
from typing import Any

from retrograd.core import Tensor, call, registry
from retrograd.higher_order.operands import read_examples
from retrograd.interop.numpy_protocol.table import O, cast, tensor
from retrograd.ode.tableaus import Tableau

SAFETY, SHRINK, GROW = 0.9, 0.2, 5.0  # bounds of the next step, as a part of the last one
SMALLEST = 1e-12  # part of an interval


class Steps:
    """One solution of y' = func(t, y, *args) by a method, from interval to interval."""

    def __init__(self, name: str, tableau: Tableau, func: Callable, args: tuple) -> None:
        self._name = name
        self._tableau = tableau
        self._func = func
        self._args = args
        self._first: Tensor | None = None  # the slope at the start of the next step, if the last step has computed it

    def slope(self, t: Tensor, y: Tensor) -> Tensor:
        """Return the right-hand side."""
        out = tensor(self._func(t, y, *self._args))
        if out.shape != y.shape:
            raise ValueError(f"ode.{self._name}: the function must return the shape of y, {y.shape}, got {out.shape}")
        return cast(out, y.dtype)

    def step(self, t: Tensor, y: Tensor, h: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Return the value after a step of size h, and all slopes."""
        tableau = self._tableau
        slopes = [self.slope(t, y) if self._first is None else self._first]
        for c, row in zip(tableau.c[1:], tableau.a, strict=True):
            slopes.append(self.slope(t + c * h, y + h * combine(row, slopes)))
        return y + h * combine(tableau.b, slopes), slopes

    def accept(self, slopes: list[Tensor]) -> None:
        """Keep the last slope for the next step, if it is its first one."""
        self._first = slopes[-1] if self._tableau.last_is_first else None

    def fixed(self, t: Tensor, y: Tensor, gap: Tensor, count: int) -> Tensor:
        """Return the value after an interval, by equal steps."""
        for i in range(count):
            y, slopes = self.step(t + gap * (i / count), y, gap / count)
            self.accept(slopes)
        return y

    def adaptive(
        self, t: Tensor, y: Tensor, gap: Tensor, part: float, rtol: float, atol: float, max_steps: int
    ) -> tuple[Tensor, float]:
        """Return the value after an interval, and the size of the last step that the estimate chose.

        Sizes are parts of the interval, numbers: so the times are differentiable, and the choice is not.
        """
        done = 0.0
        for _ in range(max_steps):
            size = min(part, 1.0 - done)
            h = gap * size
            new, slopes = self.step(t + gap * done, y, h)
            ratio = self._error(y, new, h, slopes, rtol, atol)
            if ratio <= 1:
                done, y = done + size, new
                self.accept(slopes)
            if ratio > 1 or size == part:
                part = size * min(GROW, max(SHRINK, SAFETY * (ratio + 1e-10) ** (-1 / self._tableau.order)))
            if 1.0 - done < SMALLEST:
                return y, part
            if part < SMALLEST:
                break
        raise RuntimeError(
            f"ode.{self._name}: no solution in {max_steps} steps, or with steps of {SMALLEST} of the interval: the "
            f"problem is stiff or singular. Use retrograd.scipy.integrate.solve_ivp with method='BDF', or raise rtol"
        )

    def _error(self, y: Tensor, new: Tensor, h: Tensor, slopes: list, rtol: float, atol: float) -> float:
        """Return the estimated error as a multiple of the allowed one, the largest of all examples."""
        weights = self._tableau.error
        assert weights is not None
        y, new, h = O.detach(y), O.detach(new), O.detach(h)
        error = h * combine(weights, [O.detach(s) for s in slopes])
        scaled = error / (atol + rtol * O.maximum(O.abs(y), O.abs(new)))
        ratio: float = read_examples(O.sqrt(O.mean(O.square(O.abs(scaled))))).max()
        return float(ratio) if ratio == ratio else 1e10


def combine(weights: Sequence[float], slopes: Sequence[Tensor]) -> Tensor:
    """Return the weighted sum of slopes, without those of weight 0."""
    used = [i for i, weight in enumerate(weights) if weight]
    given = {"weights": tuple([weights[i] for i in used])}
    found: Tensor = call(registry["weighted_sum"], tuple([slopes[i] for i in used]), given)
    return found


def solve(
    name: str, tableau: Tableau, func: Callable, y0: Any, t: Any, args: tuple, method: Callable | None = None,
    **options: Any,
) -> Tensor:  # fmt: skip
    """Return the values at the times; `options` are steps, or rtol, atol and max_steps, `method` a class of steps."""
    y, t = tensor(y0), tensor(t)
    if t.ndim != 1 or not t.shape[0]:
        raise ValueError(f"ode.{name}: t must be a vector of times, got shape {tuple(t.shape)}")
    if y.dtype.kind not in "fc":
        raise TypeError(f"ode.{name}: y0 must be floating, got {y.dtype}; convert it with .to(dtype)")
    t = cast(t, "float32" if y.dtype in ("float32", "complex64") else "float64")
    steps, values = (method or Steps)(name, tableau, func, args), [y]
    count, part = options.pop("steps", None), 0.1
    for i in range(t.shape[0] - 1):
        gap = t[i + 1] - t[i]
        if count is not None:
            y = steps.fixed(t[i], y, gap, count)
        else:
            y, part = steps.adaptive(t[i], y, gap, part, **options)
        values.append(y)
    return O.stack(values)
