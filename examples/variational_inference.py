"""Approximate a posterior by variational inference: independent normal distributions, and a joint one.

    pip install "retrograd[viz]"
    python examples/variational_inference.py

Before the launch of Challenger at 31 °F, O-rings had been damaged on 7 of 23 flights (S. R. Dalal, E. B. Fowlkes and
B. Hoadley, Risk Analysis of the Space Shuttle, 1989). A logistic regression by temperature has two unknowns: the log
odds of damage at 31 °F, and their change per 10 °F. They depend on each other, so independent distributions are too
narrow (C. M. Bishop, Pattern Recognition and Machine Learning, 2006, 10.1). `rsample` differentiates the expected log
likelihood, `kl_divergence` gives the rest of the evidence lower bound, and the exact posterior comes from a grid.
"""

import math
import time
from pathlib import Path

import numpy as np

import retrograd as rg
from retrograd import nn, optim
from retrograd.distributions import Bernoulli, Independent, MultivariateNormal, Normal, kl_divergence

TEMPERATURE = [
    66, 70, 69, 68, 67, 72, 73, 70, 57, 63, 70, 78, 67, 53, 67, 75, 70, 81, 76, 79, 75, 76, 58,
]  # fmt: skip
DAMAGED = rg.tensor([0.0, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 1], dtype=rg.float64)
WARMER = (rg.tensor(TEMPERATURE, dtype=rg.float64) - 31) / 10
PRIOR = (5.0, 2.5)  # deviations of the log odds at 31 °F and of their slope


def log_likelihood(x: rg.Tensor) -> rg.Tensor:
    """Return the log likelihood of points (..., 2)."""
    odds = x[..., :1] + x[..., 1:] * WARMER
    return Bernoulli(logits=odds).log_prob(DAMAGED).sum(-1)


def prior() -> MultivariateNormal:
    return MultivariateNormal(rg.zeros(2, dtype=rg.float64), scale_tril=rg.tensor(np.diag(PRIOR)))


# ------------------------------------------------------------------------------------------- the approximations


class MeanField(nn.Module):
    """Two independent normal distributions."""

    def __init__(self) -> None:
        super().__init__()
        self.mean = nn.Parameter(rg.zeros(2, dtype=rg.float64))
        self.logarithm = nn.Parameter(rg.zeros(2, dtype=rg.float64))

    def forward(self) -> Independent:
        return Independent(Normal(self.mean, self.logarithm.exp()), 1)

    def divergence(self) -> rg.Tensor:
        """Return the Kullback-Leibler divergence from the prior."""
        wide = Normal(rg.zeros(2, dtype=rg.float64), rg.tensor(PRIOR, dtype=rg.float64))
        return kl_divergence(self(), Independent(wide, 1))


class FullRank(nn.Module):
    """A normal distribution with a Cholesky factor of its covariance."""

    def __init__(self) -> None:
        super().__init__()
        self.mean = nn.Parameter(rg.zeros(2, dtype=rg.float64))
        self.logarithm = nn.Parameter(rg.zeros(2, dtype=rg.float64))
        self.below = nn.Parameter(rg.zeros(2, 2, dtype=rg.float64))

    def forward(self) -> MultivariateNormal:
        factor = self.below.tril(-1) + self.logarithm.exp().diag()
        return MultivariateNormal(self.mean, scale_tril=factor)

    def divergence(self) -> rg.Tensor:
        """Return the Kullback-Leibler divergence from the prior."""
        return kl_divergence(self(), prior())


def fit(model: MeanField | FullRank, steps: int, count: int) -> float:
    """Maximize the evidence lower bound; return an accurate estimate of it."""
    optimizer = optim.Adam(model.parameters(), lr=5e-2)
    decay = optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(steps):
        loss = model.divergence() - log_likelihood(model().rsample((count,))).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        decay.step()
    with rg.no_grad():
        return (log_likelihood(model().sample((20_000,))).mean() - model.divergence()).item()


def moments(model: MeanField | FullRank) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and deviation of the approximation."""
    with rg.no_grad():
        found = model()
        return found.mean.numpy(), found.variance.sqrt().numpy()


# -------------------------------------------------------------------------------------------- the exact posterior


def grid() -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Return a grid of both unknowns, the posterior's density there, and the logarithm of the evidence."""
    a, b = np.meshgrid(np.linspace(-15, 30, 600), np.linspace(-9, 5, 600))
    points = rg.tensor(np.stack([a, b], -1).reshape(-1, 2))
    height = (log_likelihood(points) + prior().log_prob(points)).numpy().reshape(a.shape)
    density = np.exp(height - height.max())
    cell = (a[0, 1] - a[0, 0]) * (b[1, 0] - b[0, 0])
    return a, b, density / (density.sum() * cell), height.max() + math.log(density.sum() * cell)


def exact_moments() -> tuple[np.ndarray, np.ndarray]:
    """Return mean and deviation of the posterior."""
    a, b, density, _ = grid()
    points, weight = np.stack([a, b], -1), density[..., None] / density.sum()
    mean = (weight * points).sum((0, 1))
    return mean, np.sqrt((weight * (points - mean) ** 2).sum((0, 1)))


def draw(path: Path, models: dict[str, MeanField | FullRank]) -> None:
    """Plot the densities of both approximations over the exact one, and the probability of damage by temperature."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    a, b, density, _ = grid()
    points = rg.tensor(np.stack([a, b], -1))
    levels = np.array([0.05, 0.3, 0.8])
    left.contourf(a, b, density, density.max() * np.array([0.05, 0.3, 0.8, 1]), colors=["0.9", "0.75", "0.6"])
    degrees = np.linspace(31, 85, 100)
    right.plot(TEMPERATURE, DAMAGED.numpy(), "o", color="0.3", markersize=4)
    for color, (name, model) in zip(("C1", "C0"), models.items(), strict=True):
        with rg.no_grad():
            height = model().log_prob(points).exp().numpy()
            samples = model().sample((4000,)).numpy()
        left.contour(a, b, height, height.max() * levels, colors=color, linewidths=1)
        odds = samples[:, :1] + samples[:, 1:] * (degrees - 31) / 10
        low, middle, high = np.quantile(1 / (1 + np.exp(-odds)), [0.05, 0.5, 0.95], axis=0)
        right.plot(degrees, middle, color=color, label=name)
        right.fill_between(degrees, low, high, color=color, alpha=0.2, linewidth=0)
    left.set(xlim=(-3, 14), ylim=(-4.2, 0.8), title="the posterior, and two approximations")
    left.set(xlabel="log odds at 31 °F", ylabel="slope per 10 °F")
    right.set(title="probability of damage, 90 % intervals", xlabel="°F")
    right.legend()
    figure.savefig(path, dpi=95)


def main(
    steps: int = 1500, count: int = 32, picture: Path | None = Path("variational_inference.png")
) -> dict[str, np.ndarray | float]:
    rg.manual_seed(0)
    models = {"independent": MeanField(), "joint": FullRank()}
    found: dict[str, np.ndarray | float] = {"evidence": grid()[3]}
    print(f"log evidence {found['evidence']:.3f}")
    for name, model in models.items():
        begin = time.perf_counter()
        bound = fit(model, steps, count)
        mean, deviation = moments(model)
        print(f"{name}: bound {bound:.3f} in {time.perf_counter() - begin:.0f} s,", describe(mean, deviation))
        found |= {f"{name} bound": bound, f"{name} mean": mean, f"{name} deviation": deviation}
    print("exact:", describe(*exact_moments()))
    if picture is not None:
        draw(picture, models)
    return found


def describe(mean: np.ndarray, deviation: np.ndarray) -> str:
    names = ("log odds at 31 °F", "slope")
    return ", ".join(f"{n} {m:.2f} ± {d:.2f}" for n, m, d in zip(names, mean, deviation, strict=True))


if __name__ == "__main__":
    main()
