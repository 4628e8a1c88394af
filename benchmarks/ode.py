"""Ordinary differential equations next to diffrax, torchdiffeq and SciPy: time and error at equal tolerance.

    .venv-peers/bin/python -m pip install diffrax torchdiffeq
    .venv-peers/bin/python -m benchmarks.ode

Each row is the median of repeated calls, CPU time of the process, on one thread. jax functions are compiled before
they are measured. The error is the largest relative one at the last time, compared with DOP853 or Radau at 1e-12.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
from scipy.integrate import solve_ivp as scipy_solve_ivp

import retrograd as rg
from retrograd import ode
from retrograd.scipy.integrate import odeint, solve_ivp

RTOL, ATOL = 1e-6, 1e-9


def lotka_volterra(m, t, y, p):
    return m.stack([p[0] * y[0] - p[1] * y[0] * y[1], p[2] * y[0] * y[1] - p[3] * y[1]])


def lorenz(m, t, y, p):
    return m.stack([p[0] * (y[1] - y[0]), y[0] * (p[1] - y[2]) - y[1], y[0] * y[1] - p[2] * y[2]])


def robertson(m, t, y, p):
    first = p[2] * y[1] * y[2] - p[0] * y[0]
    last = p[1] * y[1] * y[1]
    return m.stack([first, -first - last, last])


PROBLEMS = {  # right-hand side, y0, parameters, end, is it stiff
    "Lotka-Volterra": (lotka_volterra, [10.0, 5.0], [1.1, 0.4, 0.1, 0.4], 10.0, False),
    "Lorenz": (lorenz, [1.0, 1.0, 1.0], [10.0, 28.0, 8 / 3], 5.0, False),
    "Robertson": (robertson, [1.0, 0.0, 0.0], [0.04, 3e7, 1e4], 100.0, True),
}


def cpu(function: Callable, repeats: int) -> float:
    """Return the median CPU time of calls, after one that is not measured."""
    function()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return statistics.median(times)


def ours(name: str, method: Callable) -> tuple[Callable, Callable]:
    """Return the solution at the end, and the gradient of its sum by the parameters."""
    f, y0, p, end, _ = PROBLEMS[name]
    start, values = rg.tensor(y0, dtype=rg.float64), rg.tensor(p, dtype=rg.float64)

    def solve(p=values):
        return method(lambda t, y: f(rg, t, y, p), start, end)

    return solve, lambda: rg.func.grad(lambda p: solve(p).sum())(values)


def of_diffrax(name: str) -> tuple[Callable, Callable]:
    import diffrax
    import jax

    jax.config.update("jax_enable_x64", True)
    jnp = jax.numpy
    f, y0, p, end, stiff = PROBLEMS[name]
    term = diffrax.ODETerm(lambda t, y, p: f(jnp, t, y, p))
    solver = diffrax.Kvaerno5() if stiff else diffrax.Dopri5()

    def solve(p):
        control = diffrax.PIDController(rtol=RTOL, atol=ATOL)
        return diffrax.diffeqsolve(
            term, solver, 0.0, end, 1e-4, jnp.array(y0), p, stepsize_controller=control, max_steps=4096
        ).ys[-1]

    values, solution, slope = jnp.array(p), jax.jit(solve), jax.jit(jax.grad(lambda p: solve(p).sum()))
    return lambda: solution(values).block_until_ready(), lambda: slope(values).block_until_ready()


def of_torchdiffeq(name: str) -> tuple[Callable, Callable]:
    import torch
    import torchdiffeq

    f, y0, p, end, stiff = PROBLEMS[name]
    if stiff:
        raise NotImplementedError("no implicit method with adaptive steps")
    start, times = torch.tensor(y0, dtype=torch.float64), torch.tensor([0.0, end], dtype=torch.float64)
    values = torch.tensor(p, dtype=torch.float64, requires_grad=True)

    def solve():
        return torchdiffeq.odeint(lambda t, y: f(torch, t, y, values), start, times, rtol=RTOL, atol=ATOL)[-1]

    return lambda: solve().detach(), lambda: torch.autograd.grad(solve().sum(), values)[0]


def contenders(name: str) -> dict[str, Callable]:
    stiff = PROBLEMS[name][4]
    method = ode.kvaerno5 if stiff else ode.dopri5
    options = {"rtol": RTOL, "atol": ATOL}
    return {
        f"rg.ode.{method.__name__}": lambda: ours(name, lambda f, y0, end: method(f, y0, [0.0, end], **options)[-1]),
        "rg.scipy.solve_ivp": lambda: ours(
            name, lambda f, y0, end: solve_ivp(f, (0, end), y0, "Radau" if stiff else "RK45", [end], **options).y[:, 0]
        ),
        "diffrax": lambda: of_diffrax(name),
        "torchdiffeq": lambda: of_torchdiffeq(name),
    }


def gradient_of_odeint(repeats: int) -> tuple[float, float]:
    """Return the times of a solution at 40 times and of that with its gradient."""
    f, y0, p, _, _ = PROBLEMS["Lotka-Volterra"]
    times, values = np.linspace(0, 10, 40), rg.tensor(p, dtype=rg.float64)

    def solve(p):
        return odeint(lambda y, t: f(rg, t, y, p), y0, times)

    return cpu(lambda: solve(values), repeats), cpu(lambda: rg.func.grad(lambda p: solve(p).sum())(values), repeats)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    print("| problem | library | solution, ms | error | gradient, ms |\n| --- | --- | --- | --- | --- |")
    for name, (f, y0, p, end, stiff) in PROBLEMS.items():
        exact = scipy_solve_ivp(
            lambda t, y, f=f, p=p: f(np, t, y, p), (0, end), y0, "Radau" if stiff else "DOP853", rtol=1e-12, atol=1e-14
        ).y[:, -1]
        for library, make in contenders(name).items():
            try:
                solve, slope = make()
            except (ImportError, NotImplementedError) as error:
                print(f"| {name} | {library} | - | {error} | - |")
                continue
            error = np.abs(np.asarray(solve()) / exact - 1).max()
            times = [1e3 * cpu(call, repeats) for call in (solve, slope)]
            print(f"| {name} | {library} | {times[0]:.2f} | {error:.1e} | {times[1]:.2f} |")
    alone, both = gradient_of_odeint(repeats)
    print(f"\nodeint at 40 times: {1e3 * alone:.1f} ms; with its gradient {both / alone:.1f} times as long")


if __name__ == "__main__":
    main()
