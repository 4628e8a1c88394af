"""Ordinary differential equations next to diffrax, torchdiffeq and SciPy: time and error at equal tolerance.

    .venv-peers/bin/python -m pip install diffrax torchdiffeq
    .venv-peers/bin/python -m benchmarks.ode

Each row is the least of repeated calls, CPU time of the process, on one thread. jax functions are compiled before
they are measured. The gradient is that of the sum of the solution at the end by the parameters. The error is the
largest one at the last time as a part of the largest value there, compared with DOP853 or Radau at 1e-12.
"""

import argparse
import time
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy.integrate import solve_ivp as scipy_solve_ivp

import retrograd as rg
from retrograd import ode
from retrograd.scipy.integrate import odeint, solve_ivp

RTOL, ATOL = 1e-6, 1e-9


class Problem(NamedTuple):
    """y' = slope(m, t, y, parameters) from 0 to the end; `m` is the module of the arrays."""

    slope: Callable[..., Any]
    start: np.ndarray
    parameters: list[np.ndarray]
    end: float
    stiff: bool = False


def lotka_volterra(m, t, y, p):
    (p,) = p
    return m.stack([p[0] * y[0] - p[1] * y[0] * y[1], p[2] * y[0] * y[1] - p[3] * y[1]])


def lorenz(m, t, y, p):
    (p,) = p
    return m.stack([p[0] * (y[1] - y[0]), y[0] * (p[1] - y[2]) - y[1], y[0] * y[1] - p[2] * y[2]])


def robertson(m, t, y, p):
    (p,) = p
    first = p[2] * y[1] * y[2] - p[0] * y[0]
    last = p[1] * y[1] * y[1]
    return m.stack([first, -first - last, last])


def network(m, t, y, p):
    first, bias, last = p
    return m.tanh(y @ first + bias) @ last


def neural() -> Problem:
    """Return a network of 64 hidden units that moves 128 points of the plane."""
    rng = np.random.default_rng(0)
    weights = [rng.normal(size=(2, 64)), rng.normal(size=64), rng.normal(size=(64, 2)) / 8]
    return Problem(network, rng.normal(size=(128, 2)), weights, 2.0)


PROBLEMS = {
    "Lotka-Volterra": Problem(lotka_volterra, np.array([10.0, 5.0]), [np.array([1.1, 0.4, 0.1, 0.4])], 10.0),
    "Lorenz": Problem(lorenz, np.ones(3), [np.array([10.0, 28.0, 8 / 3])], 5.0),
    "Robertson": Problem(robertson, np.array([1.0, 0.0, 0.0]), [np.array([0.04, 3e7, 1e4])], 100.0, True),
    "neural ODE": neural(),
}


def cpu(function: Callable, repeats: int) -> float:
    """Return the least CPU time of calls, after one that is not measured."""
    function()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return min(times)


@cache
def exact(name: str) -> np.ndarray:
    """Return the solution at the end, by SciPy at the lowest tolerance."""
    slope, start, p, end, stiff = PROBLEMS[name]
    flat = flattened(lambda t, y: slope(np, t, y, p), start.shape)
    method = "Radau" if stiff else "DOP853"
    return scipy_solve_ivp(flat, (0, end), start.reshape(-1), method, rtol=1e-12, atol=1e-14).y[:, -1]


def flattened(slope: Callable, shape: tuple[int, ...]) -> Callable:
    """Return a right-hand side for vectors."""
    return slope if len(shape) == 1 else lambda t, y: slope(t, y.reshape(shape)).reshape(-1)


# Each library: the name of a problem to a function for the solution at the end, and one for the gradient of its sum.


def ours(method: Callable, name: str) -> tuple[Callable, Callable]:
    slope, start, p, end, _ = PROBLEMS[name]
    y0, values = rg.from_numpy(start), [rg.from_numpy(x) for x in p]

    def solve(p=values):
        return method(lambda t, y: slope(rg, t, y, p), y0, end)

    def gradient():
        leaves = [x.detach().requires_grad_() for x in values]
        return rg.autograd.grad(solve(leaves).sum(), leaves)

    return solve, gradient


def of_steppers(name: str) -> tuple[Callable, Callable]:
    method = ode.kvaerno5 if PROBLEMS[name].stiff else ode.dopri5
    return ours(lambda f, y0, end: method(f, y0, [0.0, end], rtol=RTOL, atol=ATOL)[-1], name)


def of_solve_ivp(name: str) -> tuple[Callable, Callable]:
    method = "Radau" if PROBLEMS[name].stiff else "RK45"

    def solve(f, y0, end):
        flat = flattened(f, y0.shape)
        return solve_ivp(flat, (0, end), y0.reshape(-1), method, [end], rtol=RTOL, atol=ATOL).y[:, 0]

    return ours(solve, name)


def of_diffrax(name: str) -> tuple[Callable, Callable]:
    import diffrax
    import jax

    jax.config.update("jax_enable_x64", True)
    slope, start, p, end, stiff = PROBLEMS[name]
    term = diffrax.ODETerm(lambda t, y, p: slope(jax.numpy, t, y, p))
    solver = diffrax.Kvaerno5() if stiff else diffrax.Dopri5()

    def solve(p):
        control = diffrax.PIDController(rtol=RTOL, atol=ATOL)
        return diffrax.diffeqsolve(
            term, solver, 0.0, end, 1e-4, jax.numpy.array(start), p, stepsize_controller=control, max_steps=4096
        ).ys[-1]

    values = [jax.numpy.array(x) for x in p]
    solution, gradient = jax.jit(solve), jax.jit(jax.grad(lambda p: solve(p).sum()))
    return lambda: jax.block_until_ready(solution(values)), lambda: jax.block_until_ready(gradient(values))


def of_torchdiffeq(name: str) -> tuple[Callable, Callable]:
    import torch
    import torchdiffeq

    slope, start, p, end, stiff = PROBLEMS[name]
    if stiff:
        raise NotImplementedError("no implicit method with adaptive steps")
    torch.set_num_threads(1)
    y0, times = torch.tensor(start), torch.tensor([0.0, end], dtype=torch.float64)
    leaves = [torch.tensor(x, requires_grad=True) for x in p]
    values = [x.detach() for x in leaves]

    def solve(p=values):
        return torchdiffeq.odeint(lambda t, y: slope(torch, t, y, p), y0, times, rtol=RTOL, atol=ATOL)[-1]

    return solve, lambda: torch.autograd.grad(solve(leaves).sum(), leaves)


LIBRARIES = {
    "rg.ode": of_steppers,
    "rg.scipy.solve_ivp": of_solve_ivp,
    "diffrax": of_diffrax,
    "torchdiffeq": of_torchdiffeq,
}


def gradients_of_odeint(repeats: int) -> list[float]:
    """Return the times of a solution at 40 times, of that with its gradient, and of that by `func.grad`."""
    slope, start, (p,), _, _ = PROBLEMS["Lotka-Volterra"]
    times, values = np.linspace(0, 10, 40), rg.from_numpy(p)

    def total(p):
        return odeint(lambda y, t: slope(rg, t, y, [p]), start, times).sum()

    def gradient():
        leaf = values.detach().requires_grad_()
        return rg.autograd.grad(total(leaf), leaf)

    return [cpu(call, repeats) for call in (lambda: total(values), gradient, lambda: rg.func.grad(total)(values))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", default="", help="a part of the names of problems")
    given = parser.parse_args()
    repeats = given.repeats
    print("| problem | library | solution, ms | error | gradient, ms |\n| --- | --- | --- | --- | --- |")
    for name in [name for name in PROBLEMS if given.only in name]:
        for library, make in LIBRARIES.items():
            try:
                solve, gradient = make(name)
            except (ImportError, NotImplementedError) as error:
                print(f"| {name} | {library} | - | {error} | - |")
                continue
            found = np.asarray(solve()).reshape(-1)
            error = np.abs(found - exact(name)).max() / np.abs(exact(name)).max()
            times = [1e3 * cpu(call, repeats) for call in (solve, gradient)]
            print(f"| {name} | {library} | {times[0]:.2f} | {error:.1e} | {times[1]:.2f} |", flush=True)
    alone, both, by_func = gradients_of_odeint(repeats)
    print(f"\nodeint at 40 times: {1e3 * alone:.1f} ms; with its gradient {both / alone:.1f} times as long,")
    print(f"by func.grad {by_func / alone:.1f} times")


if __name__ == "__main__":
    main()
