"""Runge-Kutta methods whose steps are differentiated, and methods for stochastic equations: operators only.

The methods work under every transform.  All functions for ordinary equations take `func(t, y, *args)` and a vector `t`
of times, and return the values of y at these, the first of which is y0: a tensor of shape (times, *y0.shape).  y may
have any shape, real or complex.  Gradients are those of the steps: they reach y0, t, args and what `func` closes over,
and their memory grows with the number of steps.
"""

from collections.abc import Callable
from typing import Any

from retrograd.core import Tensor
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.ode import tableaus
from retrograd.ode.brownian import BrownianPath
from retrograd.ode.implicit_steppers import KVAERNO3, KVAERNO5, ImplicitSteps
from retrograd.ode.steppers import solve
from retrograd.ode.stochastic import euler_maruyama, milstein, reversible_heun

__all__ = [
    "BrownianPath",
    "bosh3",
    "dopri5",
    "euler",
    "euler_maruyama",
    "heun",
    "kvaerno3",
    "kvaerno5",
    "midpoint",
    "milstein",
    "reversible_heun",
    "rk4",
    "tsit5",
]


def euler(func: Callable, y0: Any, t: Any, args: tuple = (), *, steps: int = 1) -> Tensor:
    """Return the solution by Euler's method, of order 1, with `steps` equal steps between two times.

    Raises ValueError for times that are no vector, and for a function that returns another shape than that of y.

    >>> import retrograd as rg
    >>> rg.ode.euler(lambda t, y: -y, rg.tensor([1.0]), [0.0, 1.0], steps=2)
    tensor([[1.0000],
            [0.2500]])
    """
    return solve("euler", tableaus.EULER, func, y0, t, args, steps=steps)


def midpoint(func: Callable, y0: Any, t: Any, args: tuple = (), *, steps: int = 1) -> Tensor:
    """Return the solution by the midpoint rule, of order 2; see `euler`."""
    return solve("midpoint", tableaus.MIDPOINT, func, y0, t, args, steps=steps)


def heun(func: Callable, y0: Any, t: Any, args: tuple = (), *, steps: int = 1) -> Tensor:
    """Return the solution by the trapezoidal method of Heun, of order 2; see `euler`."""
    return solve("heun", tableaus.HEUN, func, y0, t, args, steps=steps)


def rk4(func: Callable, y0: Any, t: Any, args: tuple = (), *, steps: int = 1) -> Tensor:
    """Return the solution by the classical method of Runge and Kutta, of order 4; see `euler`."""
    return solve("rk4", tableaus.RK4, func, y0, t, args, steps=steps)


def dopri5(
    func: Callable, y0: Any, t: Any, args: tuple = (), *, rtol: float = 1e-6, atol: float = 1e-9,
    max_steps: int = 10_000,
) -> Tensor:  # fmt: skip
    """Return the solution by the method of order 5 with error estimate of Dormand and Prince.

    The sizes of steps are chosen so that the estimated error of a step is below atol + rtol |y|, in the mean square
    over the elements of y; there are at most `max_steps` between two times.  Under `vmap` all examples take the same
    steps, those of the example with the largest error.  The choice of the sizes is not differentiated.

    Raises RuntimeError where the steps become too small, as for stiff problems, and as `euler`.

    J. R. Dormand and P. J. Prince, A family of embedded Runge-Kutta formulae, J. Comp. Appl. Math. 6 (1980).

    >>> import retrograd as rg
    >>> rate = rg.tensor(2.0, dtype=rg.float64, requires_grad=True)
    >>> y = rg.ode.dopri5(lambda t, y: -rate * y, rg.ones(1, dtype=rg.float64), [0.0, 1.0])
    >>> rg.autograd.grad(y[-1, 0], rate)  # -exp(-2)
    (tensor(-0.1353, dtype=float64),)
    """
    return solve("dopri5", tableaus.DOPRI5, func, y0, t, args, rtol=rtol, atol=atol, max_steps=max_steps)


def tsit5(
    func: Callable, y0: Any, t: Any, args: tuple = (), *, rtol: float = 1e-6, atol: float = 1e-9,
    max_steps: int = 10_000,
) -> Tensor:  # fmt: skip
    """Return the solution by the method of order 5 with error estimate of Tsitouras; see `dopri5`.

    C. Tsitouras, Runge-Kutta pairs of order 5(4) satisfying only the first column simplifying assumption, Comput.
    Math. Appl. 62 (2011).
    """
    return solve("tsit5", tableaus.TSIT5, func, y0, t, args, rtol=rtol, atol=atol, max_steps=max_steps)


def bosh3(
    func: Callable, y0: Any, t: Any, args: tuple = (), *, rtol: float = 1e-4, atol: float = 1e-6,
    max_steps: int = 10_000,
) -> Tensor:  # fmt: skip
    """Return the solution by the method of order 3 with error estimate of Bogacki and Shampine; see `dopri5`.

    P. Bogacki and L. F. Shampine, A 3(2) pair of Runge-Kutta formulas, Appl. Math. Lett. 2 (1989).
    """
    return solve("bosh3", tableaus.BOSH3, func, y0, t, args, rtol=rtol, atol=atol, max_steps=max_steps)


def kvaerno3(
    func: Callable, y0: Any, t: Any, args: tuple = (), *, rtol: float = 1e-4, atol: float = 1e-6,
    max_steps: int = 10_000,
) -> Tensor:  # fmt: skip
    """Return the solution by the L-stable implicit method of order 3 with error estimate of Kvaerno; see `kvaerno5`."""
    return _solve_implicit("kvaerno3", KVAERNO3, func, y0, t, args, rtol, atol, max_steps)


def kvaerno5(
    func: Callable, y0: Any, t: Any, args: tuple = (), *, rtol: float = 1e-6, atol: float = 1e-9,
    max_steps: int = 10_000,
) -> Tensor:  # fmt: skip
    """Return the solution of a stiff problem by the L-stable implicit method of order 5 of Kvaerno.

    y is real.  A step needs Jacobians of `func` by y, by `func.jacfwd`, and solves dense systems of the size of y.
    Derivatives are exact to second order.  Otherwise as `dopri5`.

    A. Kvaerno, Singly diagonally implicit Runge-Kutta methods with an explicit first stage, BIT Numer. Math. 44 (2004).

    >>> import retrograd as rg
    >>> y = rg.ode.kvaerno5(lambda t, y: -1e5 * (y - t), rg.ones(1, dtype=rg.float64), [0.0, 1.0])
    >>> y[-1].round(decimals=4)
    tensor([1.], dtype=float64)
    """
    return _solve_implicit("kvaerno5", KVAERNO5, func, y0, t, args, rtol, atol, max_steps)


def _solve_implicit(
    name: str, tableau: tableaus.Tableau, func: Callable, y0: Any, t: Any, args: tuple, rtol: float, atol: float,
    max_steps: int,
) -> Tensor:  # fmt: skip
    def method(name: str, tableau: tableaus.Tableau, func: Callable, args: tuple) -> ImplicitSteps:
        return ImplicitSteps(name, tableau, func, args, (rtol, atol))

    options = {"rtol": rtol, "atol": atol, "max_steps": max_steps}
    return solve(name, tableau, func, y0, t, args, method=method, **options)


suggest_in_module(globals())
