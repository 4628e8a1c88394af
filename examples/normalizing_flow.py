"""Approximate a posterior: variational inference with a normal distribution, and with a normalizing flow.

    pip install "retrograd[viz]"
    python examples/normalizing_flow.py

The target is a banana, the density of (x, y + x²) for a normal (x, y), whose normalization is known: the evidence lower
bound of a perfect approximation is 0. A normal distribution cannot bend. A flow of affine couplings (L. Dinh et al.,
Density estimation using Real NVP, 2017) can: each one scales and shifts one coordinate by functions of the other.
`rsample` and `TransformedDistribution` differentiate the bound.
"""

import time
from pathlib import Path

import numpy as np

import retrograd as rg
from retrograd import nn, optim
from retrograd.distributions import Independent, Normal


def log_target(x: rg.Tensor) -> rg.Tensor:
    """Return the log density of the banana at points (..., 2)."""
    first = Normal(0.0, 1.0).log_prob(x[..., 0])
    return first + Normal(0.0, 0.5).log_prob(x[..., 1] + x[..., 0] ** 2 - 1)


class Gaussian(nn.Module):
    """A normal distribution with independent coordinates."""

    def __init__(self) -> None:
        super().__init__()
        self.mean = nn.Parameter(rg.zeros(2))
        self.logarithm = nn.Parameter(rg.zeros(2))

    def forward(self, count: int) -> tuple[rg.Tensor, rg.Tensor]:
        """Return samples and their log densities."""
        distribution = Independent(Normal(self.mean, self.logarithm.exp()), 1)
        x = distribution.rsample((count,))
        return x, distribution.log_prob(x)


class Flow(nn.Module):
    """A normal distribution behind affine couplings of alternating coordinates."""

    def __init__(self, layers: int, width: int) -> None:
        super().__init__()
        self.base = Gaussian()
        self.nets = nn.ModuleList(
            nn.Sequential(nn.Linear(1, width), nn.Tanh(), nn.Linear(width, 2)) for _ in range(layers)
        )
        for net in self.nets:  # begin as the identity
            nn.init.zeros_(net[2].weight)
            nn.init.zeros_(net[2].bias)

    def forward(self, count: int) -> tuple[rg.Tensor, rg.Tensor]:
        """Return samples and their log densities."""
        x, density = self.base(count)
        a, b = x[:, :1], x[:, 1:]
        for i, net in enumerate(self.nets):
            known, other = (a, b) if i % 2 == 0 else (b, a)
            scale, shift = net(known).split(1, 1)
            scale = scale.tanh()
            other = other * scale.exp() + shift
            density = density - scale[:, 0]
            a, b = (known, other) if i % 2 == 0 else (other, known)
        return rg.cat([a, b], 1), density


def fit(model: nn.Module, steps: int, count: int) -> float:
    """Maximize the evidence lower bound; return an accurate estimate of it."""
    optimizer = optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(steps):
        x, density = model(count)
        loss = (density - log_target(x)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with rg.no_grad():
        x, density = model(20_000)
        return (log_target(x) - density).mean().item()


def draw(path: Path, models: dict[str, nn.Module]) -> None:
    """Plot samples of both approximations over the target's density."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3.2), layout="constrained")
    a, b = np.meshgrid(np.linspace(-3, 3, 120), np.linspace(-6, 3, 120))
    density = log_target(rg.tensor(np.stack([a, b], -1))).exp().numpy()
    for axes, (name, model) in zip(figure.subplots(1, 2), models.items(), strict=True):
        with rg.no_grad():
            x = model(1000)[0].numpy()
        axes.plot(*x.T, "o", markersize=1.5, alpha=0.4)
        axes.contour(a, b, density, density.max() * np.array([0.02, 0.1, 0.4]), colors="C3", linewidths=1)
        axes.set(title=name, xlim=(-3, 3), ylim=(-6, 3))
    figure.savefig(path, dpi=95)


def main(steps: int = 600, count: int = 256, picture: Path | None = Path("normalizing_flow.png")) -> dict[str, float]:
    rg.manual_seed(0)
    models = {"normal distribution": Gaussian(), "normalizing flow": Flow(6, 24)}
    bounds = {}
    for name, model in models.items():
        start = time.perf_counter()
        bounds[name] = fit(model, steps, count)
        print(f"{name}: evidence lower bound {bounds[name]:.3f}, at most 0, in {time.perf_counter() - start:.0f} s")
    if picture is not None:
        draw(picture, models)
    return {"normal": bounds["normal distribution"], "flow": bounds["normalizing flow"]}


if __name__ == "__main__":
    main()
