"""Stochastic differential equations dy = f(t, y) dt + g(t, y) dW, by steps of equal size that are differentiated.

`diffusion` returns the shape of y, and each element of W drives one of y; or the shape of y and one more dimension, and
the elements of a vector W drive all.  The noise is a constant: gradients reach y0, args and what the functions close
over, along the given path.
"""

import itertools
from collections.abc import Callable
from typing import Any

from retrograd.core import Tensor
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.func import jvp
from retrograd.interop.numpy_protocol.table import O, cast, tensor
from retrograd.ode.brownian import BrownianPath


class StochasticProblem:
    """The functions of an equation, checked, and its path."""

    def __init__(self, name: str, drift: Callable, diffusion: Callable, path: BrownianPath, args: tuple) -> None:
        self._name = name
        self._drift = drift
        self._diffusion = diffusion
        self._path = path
        self._args = args

    def drift(self, t: float, y: Tensor) -> Tensor:
        """Return f(t, y)."""
        out = cast(tensor(self._drift(t, y, *self._args)), y.dtype)
        if out.shape != y.shape:
            raise ValueError(f"ode.{self._name}: drift must return the shape of y, {y.shape}, got {out.shape}")
        return out

    def diffusion(self, t: float, y: Tensor) -> Tensor:
        """Return g(t, y)."""
        out = cast(tensor(self._diffusion(t, y, *self._args)), y.dtype)
        shape = self._path.shape
        if (out.shape == y.shape and shape == y.shape) or (len(shape) == 1 and out.shape == (*y.shape, *shape)):
            return out
        raise ValueError(
            f"ode.{self._name}: diffusion returns {out.shape} for y of shape {y.shape} and a path of shape {shape}; "
            f"expected that of both, or {(*y.shape, 'm')} and a path of shape {('m',)}"
        )

    def noise(self, t: float, y: Tensor, dw: Tensor) -> Tensor:
        """Return g(t, y) dW."""
        g = self.diffusion(t, y)
        found: Tensor = g * dw if g.shape == dw.shape and g.ndim == y.ndim else g @ dw
        return found

    def solve(self, y0: Any, t: Any, steps: int, step: Callable) -> Tensor:
        """Return the values at times; `step(t, h, dw, state)` maps a tuple whose first element is y."""
        y = tensor(y0)
        if y.dtype.kind != "f":
            raise TypeError(f"ode.{self._name}: y0 must be real and floating, got {y.dtype}")
        times = tensor(t)
        if times.ndim != 1 or not times.shape[0]:
            raise ValueError(f"ode.{self._name}: t must be a vector of times, got shape {tuple(times.shape)}")
        times = O.detach(times).tolist()
        state, found = (y,), [y]
        for a, b in itertools.pairwise(times):
            h = (b - a) / steps
            for i in range(steps):
                dw = cast(self._path.increment(a + i * h, a + (i + 1) * h), y.dtype)
                state = step(a + i * h, h, dw, state)
            found.append(state[0])
        return O.stack(found)


def euler_maruyama(
    drift: Callable, diffusion: Callable, y0: Any, t: Any, path: BrownianPath, args: tuple = (), *, steps: int = 1
) -> Tensor:
    """Return the solution of an equation of Itô by the method of Euler and Maruyama: strong order 1/2, weak order 1.

    drift, diffusion: functions of (t, y, *args), t a number; see the module for their shapes.
    y0: a real floating tensor; t: a vector of times, constants, inside of the path; steps: between two times.

    Returns a tensor of shape (times, *y0.shape).  Raises ValueError for other shapes, TypeError for other dtypes.

    G. Maruyama, Continuous Markov processes and stochastic equations, Rend. Circ. Mat. Palermo 4 (1955).

    >>> import retrograd as rg
    >>> path = rg.ode.BrownianPath(0.0, 1.0, (1,), seed=1)
    >>> drift, diffusion = lambda t, y: -y, lambda t, y: 0 * y + 0.1
    >>> y = rg.ode.euler_maruyama(drift, diffusion, [1.0], [0.0, 0.5, 1.0], path, steps=10)
    >>> tuple(y.shape)
    (3, 1)
    """
    problem = StochasticProblem("euler_maruyama", drift, diffusion, path, args)

    def step(t: float, h: float, dw: Tensor, state: tuple) -> tuple:
        (y,) = state
        return (y + problem.drift(t, y) * h + problem.noise(t, y, dw),)

    return problem.solve(y0, t, steps, step)


def milstein(
    drift: Callable, diffusion: Callable, y0: Any, t: Any, path: BrownianPath, args: tuple = (), *, steps: int = 1
) -> Tensor:
    """Return the solution of an equation of Itô by Milstein's method: strong order 1; otherwise as `euler_maruyama`.

    The noise is diagonal: each element of the path drives one of y, whose diffusion depends on this element only.  That
    is not checked.  The derivative of `diffusion` is computed by `func.jvp`.

    G. N. Milstein, Approximate integration of stochastic differential equations, Theory Probab. Appl. 19 (1975).
    """
    problem = StochasticProblem("milstein", drift, diffusion, path, args)

    def step(t: float, h: float, dw: Tensor, state: tuple) -> tuple:
        (y,) = state
        g = problem.diffusion(t, y)
        if g.shape != y.shape:
            raise ValueError(f"ode.milstein: diffusion must return the shape of y, {y.shape}, got {g.shape}")
        _, curvature = jvp(lambda z: problem.diffusion(t, z), (y,), (g,))
        return (y + problem.drift(t, y) * h + g * dw + curvature * (dw * dw - h) / 2,)

    return problem.solve(y0, t, steps, step)


def reversible_heun(
    drift: Callable, diffusion: Callable, y0: Any, t: Any, path: BrownianPath, args: tuple = (), *, steps: int = 1
) -> Tensor:
    """Return the solution of an equation of Stratonovich by the reversible method of Heun; see `euler_maruyama`.

    Its strong order is 1/2, and 1 for noise that does not depend on y.  The steps are recorded, so that memory grows
    with their number.

    P. Kidger et al., Efficient and accurate gradients for neural SDEs, NeurIPS (2021).
    """
    problem = StochasticProblem("reversible_heun", drift, diffusion, path, args)

    def step(t: float, h: float, dw: Tensor, state: tuple) -> tuple:
        y = state[0]
        z, slope, noise = state[1:] if len(state) == 4 else (y, problem.drift(t, y), problem.diffusion(t, y))
        push = (lambda g: g * dw) if noise.shape == y.shape and dw.shape == y.shape else (lambda g: g @ dw)
        z = 2 * y - z + slope * h + push(noise)
        new_slope, new_noise = problem.drift(t + h, z), problem.diffusion(t + h, z)
        y = y + (slope + new_slope) * (h / 2) + push(noise + new_noise) / 2
        return y, z, new_slope, new_noise

    return problem.solve(y0, t, steps, step)


suggest_in_module(globals())
