"""Run Hamiltonian Monte Carlo on many chains at once with `vmap`, and compare it with a known posterior.

    pip install "retrograd[viz]"
    python examples/hamiltonian.py

The model is a line through a few points with unknown noise. The prior is conjugate, so the posterior has a closed
form: a normal times an inverse gamma distribution, with wide tails because there are few points. The sampler uses only
the unnormalized log density and its gradient. A step is written for one chain (R. M. Neal, MCMC using Hamiltonian
dynamics, 2011): `grad_and_value` gives the force, `where` accepts or rejects, and `vmap` runs the step for all chains.
"""

import math
from pathlib import Path

import numpy as np

import retrograd as rg
from retrograd.func import grad_and_value, vmap

# ------------------------------------------------------------------------------------------------- the posterior

SHAPE, SCALE = 2.0, 0.5  # prior of the noise variance: inverse gamma
X = rg.tensor([-1.0, -0.7, -0.3, 0.1, 0.4, 0.8, 1.0], dtype=rg.float64)
Y = rg.tensor([-1.31, -0.52, 0.01, 0.73, 0.65, 1.72, 1.48], dtype=rg.float64)
DESIGN = rg.stack([rg.ones_like(X), X], 1)


def log_density(place: rg.Tensor) -> rg.Tensor:
    """Return the unnormalized log posterior of (intercept, slope, log noise variance).

    Given the noise variance, the prior of intercept and slope is normal with that variance.
    """
    line, log_variance = place[:2], place[2]
    squares = (Y - DESIGN @ line).square().sum() + line.square().sum() + 2 * SCALE
    return -0.5 * squares * (-log_variance).exp() - (0.5 * (len(Y) + 2) + SHAPE) * log_variance


def posterior_parameters() -> tuple[np.ndarray, np.ndarray, float, float]:
    """Return the posterior's parameters: mean and covariance of the line for noise variance 1, shape and scale."""
    design, y = DESIGN.numpy(), Y.numpy()
    precision = design.T @ design + np.eye(2)
    mean = np.linalg.solve(precision, design.T @ y)
    return mean, np.linalg.inv(precision), SHAPE + len(y) / 2, SCALE + 0.5 * (y @ y - mean @ precision @ mean)


def exact_moments() -> tuple[np.ndarray, np.ndarray]:
    """Return the exact mean and variance of intercept, slope and noise variance."""
    mean, covariance, a, b = posterior_parameters()
    noise = b / (a - 1)
    return np.array([*mean, noise]), np.array([*np.diag(covariance) * noise, noise**2 / (a - 2)])


# --------------------------------------------------------------------------------------------------- the sampler


def step(place: rg.Tensor, size: float, leaps: int) -> tuple[rg.Tensor, rg.Tensor]:
    """Return the position of one chain after a leapfrog trajectory, and whether the proposal was accepted."""
    force_and_height = grad_and_value(log_density)
    force, height = force_and_height(place)
    momentum = rg.randn(*place.shape, dtype=place.dtype)
    energy = 0.5 * momentum.square().sum() - height

    there = place
    for _ in range(leaps):
        momentum = momentum + 0.5 * size * force
        there = there + size * momentum
        force, height = force_and_height(there)
        momentum = momentum + 0.5 * size * force

    gain = energy - (0.5 * momentum.square().sum() - height)
    accepted = rg.rand((), dtype=place.dtype).log() < gain
    return rg.where(accepted, there, place), accepted


def draw_samples(chains: int, steps: int, size: float = 0.2, leaps: int = 8) -> tuple[rg.Tensor, float]:
    """Return positions (steps, chains, 3), after as many burn-in steps, and the acceptance rate."""
    places, kept, moved = rg.zeros(chains, 3, dtype=rg.float64), [], []
    together = vmap(step, in_dims=(0, None, None), randomness="different")
    for number in range(-steps, steps):
        places, accepted = together(places, size, leaps)
        if number >= 0:
            kept.append(places)
            moved.append(accepted)
    return rg.stack(kept), rg.stack(moved).to(rg.float64).mean().item()


def convergence(samples: rg.Tensor) -> rg.Tensor:
    """Return R-hat (Gelman and Rubin, 1992), which is 1 if the chains have converged to the same distribution."""
    within, between = samples.var(0).mean(0), samples.mean(0).var(0)
    return ((within * (len(samples) - 1) / len(samples) + between) / within).sqrt()


# --------------------------------------------------------------------------------------------------------- plots


def inverse_gamma(variance: np.ndarray, a: float, b: float) -> np.ndarray:
    """Return the density of the inverse gamma distribution."""
    return np.exp(a * math.log(b) - math.lgamma(a) - (a + 1) * np.log(variance) - b / variance)


def draw(path: Path, samples: np.ndarray) -> None:
    """Plot sampled lines, the joint samples of slope and variance with the exact density, and the variance."""
    from matplotlib.figure import Figure

    mean, covariance, a, b = posterior_parameters()
    figure = Figure(figsize=(9, 3), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    ends = np.array([-1.2, 1.2])
    for intercept, slope, _ in samples[:: len(samples) // 80]:
        left.plot(ends, intercept + slope * ends, color="C0", alpha=0.12)
    left.plot(X.numpy(), Y.numpy(), "o", color="0.2", markersize=4)
    left.set(title="points, and lines that were sampled", xlabel="x", ylabel="y")

    slope, variance = np.meshgrid(np.linspace(0, 2.1, 150), np.linspace(0.02, 1.1, 150))
    normal = np.exp(-0.5 * (slope - mean[1]) ** 2 / (covariance[1, 1] * variance)) / np.sqrt(variance)
    density = normal * inverse_gamma(variance, a, b)
    middle.scatter(*samples[:: max(1, len(samples) // 2000), 1:].T, s=2, alpha=0.35, linewidth=0)
    middle.contour(slope, variance, density, density.max() * np.array([0.02, 0.1, 0.3, 0.7]), colors="C3", linewidths=1)
    middle.set(xlim=(0, 2.1), ylim=(0, 1.1), title="samples, and the known density", xlabel="slope", ylabel="σ²")

    right.hist(samples[:, 2], np.linspace(0, 1.1, 56), density=True, alpha=0.6)
    right.plot(variance[:, 0], inverse_gamma(variance[:, 0], a, b), color="C3")
    right.set(xlim=(0, 1.1), title="variance of the noise", xlabel="σ²")
    figure.savefig(path, dpi=110)


def main(chains: int = 200, steps: int = 300, picture: Path | None = Path("hamiltonian.png")) -> dict[str, np.ndarray]:
    rg.manual_seed(0)
    places, moved = draw_samples(chains, steps)
    samples = rg.cat([places[..., :2], places[..., 2:].exp()], -1)
    agreement = convergence(samples).max().item()
    print(f"{chains} chains of {steps} steps: {moved:.0%} accepted, R-hat at most {agreement:.3f}")
    samples = samples.flatten(0, 1).numpy()
    found, expected = (samples.mean(0), samples.var(0)), exact_moments()
    for number, name in enumerate(("intercept", "slope", "variance of the noise")):
        pairs = [f"{f[number]:.4f} ({e[number]:.4f})" for f, e in zip(found, expected, strict=True)]
        print(f"{name}: mean {pairs[0]}, variance {pairs[1]}, exact values in parentheses")
    if picture is not None:
        draw(picture, samples)
    return {"mean": found[0], "variance": found[1]}


if __name__ == "__main__":
    main()
