"""Fit a Kalman filter written in plain NumPy by maximum likelihood, and compute a smoother as its gradient.

    pip install "retrograd[scipy,viz]"
    python examples/kalman.py

`log_likelihood` is the textbook filter and does not use retrograd. The data are the yearly flow of the Nile at Aswan,
1871 to 1970; the model is a random walk plus noise. `value_and_grad` drives SciPy's optimizer, and the `hessian` gives
standard errors. J. Durbin and S. J. Koopman, Time Series Analysis by State Space Methods, 2001, report 15099 and
1469.1.

A filter uses only past observations. The smoothed level, which uses the whole series, needs no second recursion: it is
the gradient of the log likelihood with respect to the observations, and its variance is their Hessian.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.optimize import OptimizeResult, minimize

import retrograd as rg

# fmt: off
NILE = np.array([
    1120, 1160, 963, 1210, 1160, 1160, 813, 1230, 1370, 1140, 995, 935, 1110, 994, 1020, 960, 1180, 799, 958, 1140,
    1100, 1210, 1150, 1250, 1260, 1220, 1030, 1100, 774, 840, 874, 694, 940, 833, 701, 916, 692, 1020, 1050, 969,
    831, 726, 456, 824, 702, 1120, 1100, 832, 764, 821, 768, 845, 864, 862, 698, 845, 744, 796, 1040, 759,
    781, 865, 845, 944, 984, 897, 822, 1010, 771, 676, 649, 846, 812, 742, 801, 1040, 860, 874, 848, 890,
    744, 749, 838, 1050, 918, 986, 797, 923, 975, 815, 1020, 906, 901, 1170, 912, 746, 919, 718, 714, 740,
], dtype=float)  # yearly flow in 10⁸ m³
# fmt: on
YEARS = 1871 + np.arange(len(NILE))
DAM = (YEARS >= 1899).astype(float)  # building began in 1898

# --------------------------------------------------------------------------------------------------- plain NumPy


def log_likelihood(series: np.ndarray, move: np.ndarray, drift: np.ndarray, look: np.ndarray, noise: float) -> float:
    """Run the filter for state = move @ state + N(0, drift), observation = look @ state + N(0, noise)."""
    state, covariance = np.zeros(len(move)), 1e7 * np.eye(len(move))
    total = 0.0
    for seen in series:
        surprise = seen - look @ state
        variance = look @ covariance @ look + noise
        total = total - 0.5 * (np.log(2 * np.pi * variance) + surprise**2 / variance)
        gain = covariance @ look / variance
        state = move @ (state + gain * surprise)
        covariance = move @ (covariance - np.outer(gain, look @ covariance)) @ move.T + drift
    return total


def wandering_level(logarithms: np.ndarray, series: np.ndarray) -> float:
    """Return the log likelihood of a random walk plus noise, from the log variances of noise and drift."""
    noise, drift = np.exp(logarithms)
    one = np.ones((1, 1))
    return log_likelihood(series, one, drift * one, np.ones(1), noise)


def wandering_level_and_step(parameters: np.ndarray, series: np.ndarray) -> float:
    """Return the log likelihood with a permanent change of the level in 1899."""
    return wandering_level(parameters[:2], series - 100 * parameters[2] * DAM[: len(series)])


# --------------------------------------------------------------------------------------------------- derivatives


def fit_parameters(model: Callable, start: np.ndarray, series: np.ndarray) -> OptimizeResult:
    """Return the maximum-likelihood parameters, by BFGS with exact gradients."""
    return minimize(rg.value_and_grad(lambda p: -model(p, series)), start, jac=True, method="BFGS", tol=1e-6)


def standard_errors(model: Callable, parameters: np.ndarray, series: np.ndarray) -> np.ndarray:
    """Return the standard errors of the parameters, from the inverse of the negative Hessian."""
    return np.sqrt(np.diag(np.linalg.inv(-rg.hessian(model)(parameters, series))))


def smooth(logarithms: np.ndarray, series: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the smoothed level of each year, given the whole series, and its standard deviation.

    The noise in a normal vector y of covariance S has the mean noise · S⁻¹(y - mean) and the covariance
    noise - noise · S⁻¹ · noise. These products are the first and second derivatives of log p(y).
    """
    noise = np.exp(logarithms[0])
    slope = rg.grad(wandering_level, 1)(logarithms, series)
    curvature = rg.hessian(wandering_level, 1)(logarithms, series)
    return series + noise * slope, np.sqrt(noise + noise**2 * np.diag(curvature))


# ------------------------------------------------------------------------------------------------------ the Nile


def draw(path: Path, years: np.ndarray, series: np.ndarray, levels: dict[str, tuple[np.ndarray, np.ndarray]]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.6), layout="constrained")
    axes = figure.subplots()
    axes.plot(years, series, "o", color="0.6", markersize=3.5, label="flow of a year")
    for color, (name, (level, deviation)) in zip(("C0", "C3"), levels.items(), strict=True):
        axes.plot(years, level, color=color, label=name)
        axes.fill_between(years, level - 2 * deviation, level + 2 * deviation, color=color, alpha=0.15, linewidth=0)
    axes.set(xlim=(years[0] - 1, years[-1] + 1), ylabel="10⁸ m³", title="The Nile at Aswan, ±2 standard deviations")
    axes.legend(frameon=False, ncols=3, loc="upper right")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=120)


def main(series: np.ndarray = NILE, picture: Path | None = Path("kalman.png")) -> dict[str, np.ndarray]:
    walk = fit_parameters(wandering_level, np.log([1e4, 1e3]), series)
    variances, spread = np.exp(walk.x), np.exp(walk.x) * standard_errors(wandering_level, walk.x, series)
    print(f"log likelihood {-walk.fun:.2f} after {walk.nfev} evaluations")
    for name, value, error in zip(("noise", "drift"), variances, spread, strict=True):
        print(f"variance of the {name}: {value:.0f} ± {error:.0f}")
    level, deviation = smooth(walk.x, series)

    step = fit_parameters(wandering_level_and_step, np.array([*walk.x, 0.0]), series)
    fixed = rg.hessian(wandering_level_and_step)(step.x, series)[2, 2]  # the variance of the drift has gone to 0
    print(f"with a step in 1899: log likelihood {-step.fun:.2f}, variance of the drift {np.exp(step.x[1]):.1g}")
    print(f"step: {100 * step.x[2]:.0f} ± {100 / np.sqrt(-fixed):.0f}")
    change = 100 * step.x[2] * DAM[: len(series)]
    flat, width = smooth(step.x[:2], series - change)

    if picture is not None:
        both = {"level, a random walk": (level, deviation), "with a step in 1899": (flat + change, width)}
        draw(picture, YEARS[: len(series)], series, both)
    return {"variances": variances, "level": level, "step": 100 * step.x[2]}


if __name__ == "__main__":
    main()
