"""Fit the model of Lotka and Volterra to a century-old record of hares and lynxes, and ask what the fit depends on.

    pip install "retrograd[demo]"
    python examples/predators.py

The numbers of pelts, in thousands, are those of the Hudson's Bay Company (E. P. Odum, Fundamentals of Ecology, 1953).
`least_squares` gets the Jacobian of the solution of the differential equation. The parameters that it returns are
differentiable in the data: one backward pass tells how each observation moves a parameter, without another fit.
"""

import time
from pathlib import Path

import numpy as np

import retrograd as rg
from retrograd.scipy.integrate import solve_ivp
from retrograd.scipy.optimize import least_squares

YEARS = np.arange(1900.0, 1921.0)
HARES = [
    30, 47.2, 70.2, 77.4, 36.3, 20.6, 18.1, 21.4, 22, 25.4, 27.1, 40.3, 57, 76.6, 52.3, 19.5, 11.2, 7.6, 14.6, 16.2,
    24.7,
]  # fmt: skip
LYNXES = [
    4, 6.1, 9.8, 35.2, 59.4, 41.7, 19, 13, 8.3, 9.1, 7.4, 8, 12.3, 19.5, 45.7, 51.1, 29.7, 15.8, 9.7, 10.1, 8.6,
]  # fmt: skip
NAMES = ("growth of hares", "hunting", "death of lynxes", "growth of lynxes")
START = np.log([0.5, 0.03, 0.8, 0.03, 30.0, 4.0])


def slope(t: rg.Tensor, y: rg.Tensor, rates: rg.Tensor) -> rg.Tensor:
    """Return the derivative of the logarithms of both populations."""
    u, v = y.exp()
    return rg.stack([rates[0] - rates[1] * v, rates[3] * u - rates[2]])


def populations(p: rg.Tensor, years: np.ndarray) -> rg.Tensor:
    """Return the logarithms of the populations, (2, years), for the logarithms of four rates and two initial values."""
    span = float(years[0]), float(years[-1])
    return solve_ivp(slope, span, p[4:], t_eval=years, args=(p[:4].exp(),), rtol=1e-6, atol=1e-6).y


def fit(observed: rg.Tensor, years: np.ndarray) -> rg.Tensor:
    """Return the parameters with the least squares of differences of logarithms."""
    found = least_squares(lambda p: populations(p, years) - observed, START)
    if not found.success:
        raise RuntimeError(found.message)
    return found.x


def compare_times(p: rg.Tensor, years: np.ndarray) -> float:
    """Return the time of a solution and its gradient as a multiple of the time of the solution."""
    p = p.detach().requires_grad_()
    start = time.perf_counter()
    y = populations(p, years)
    middle = time.perf_counter()
    y.sum().backward()
    return (time.perf_counter() - start) / (middle - start)


def draw(path: Path, p: rg.Tensor, years: np.ndarray, data: np.ndarray, influence: np.ndarray) -> None:
    """Plot the data and the model, and the influence of each observation on the growth of hares."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    times = np.linspace(years[0], years[-1], 200)
    for row, colour, name in zip(range(2), ("tab:blue", "tab:red"), ("hares", "lynxes"), strict=True):
        left.plot(times, populations(p, times)[row].exp().detach().numpy(), color=colour, label=name)
        left.scatter(years, data[row], color=colour, s=14)
        right.bar(years + 0.4 * row - 0.2, influence[row], 0.4, color=colour, label=name)
    left.set(xticks=years[::5], ylabel="pelts in thousands", title="model and data")
    right.set(xticks=years[::5], title="derivative of the growth of hares\nby the logarithm of an observation")
    left.legend()
    figure.savefig(path, dpi=95)


def main(count: int = 21, picture: Path | None = Path("predators.png")) -> dict[str, list[float]]:
    years, data = YEARS[:count], np.array([HARES[:count], LYNXES[:count]])
    observed = rg.tensor(np.log(data), requires_grad=True)
    p = fit(observed, years)
    rates = p[:4].exp()
    for name, rate in zip(NAMES, rates.tolist(), strict=True):
        print(f"{name}: {rate:.3f} per year")
    (influence,) = rg.autograd.grad(rates[0], observed)
    row, column = np.unravel_index(int(influence.abs().argmax()), influence.shape)
    print(f"the growth of hares depends most on the {('hares', 'lynxes')[row]} of {years[column]:.0f}")
    print(f"a gradient and its solution take {compare_times(p, years):.1f} times as long as the solution")
    if picture is not None:
        draw(picture, p, years, data, influence.numpy())
    return {"rates": rates.tolist(), "influence": influence.flatten().tolist()}


if __name__ == "__main__":
    main()
