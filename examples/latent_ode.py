"""Continue spirals that were observed at a few irregular times, by a latent differential equation.

    pip install "retrograd[demo]"
    python examples/latent_ode.py

Each series has its own number of noisy observations, at its own times. All of them form one nested tensor, without
padding and masks. The encoder maps each observation, averages over those of a series, and returns the mean and the
deviation of a latent state at time 0. A neural ODE moves the state through time, and the decoder maps it to the plane.
The evidence lower bound trains all three. The model then continues new series beyond the times of their observations.

R. T. Q. Chen et al., Neural ordinary differential equations, NeurIPS 2018; Y. Rubanova et al., Latent ODEs for
irregularly-sampled time series, NeurIPS 2019.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np

import retrograd as rg
from retrograd import nn, ode, optim
from retrograd.distributions import Normal, kl_divergence
from retrograd.nested import nested_tensor

OBSERVED, END = 3.0, 5.0  # observations are before the first time, predictions reach to the second
NOISE = 0.1
LATENT = 4
GRID = 16  # times at which the differential equation is solved


class Series(NamedTuple):
    """Series of the plane: times (series, observations), ragged, and points (series, observations, 2), ragged."""

    times: rg.Tensor
    points: rg.Tensor
    starts: np.ndarray  # radius, angle and direction of each series


def spiral(starts: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Return the points (..., 2) of spirals that turn to the left or right and shrink."""
    radius, angle, direction = starts
    turned, size = angle + direction * 2 * t, radius * np.exp(-0.25 * t)
    return np.stack([size * np.cos(turned), size * np.sin(turned)], -1)


def observe(count: int, seed: int) -> Series:
    """Return spirals, each with 8 to 24 observations at random times."""
    rng = np.random.default_rng(seed)
    starts = np.stack([rng.uniform(1, 2, count), rng.uniform(0, 2 * np.pi, count), rng.choice([-1, 1], count)])
    times = [np.sort(rng.uniform(0, OBSERVED, rng.integers(8, 25))) for _ in range(count)]
    points = [spiral(starts[:, i], t) + NOISE * rng.normal(size=(len(t), 2)) for i, t in enumerate(times)]
    single = (nested_tensor([x.astype(np.float32) for x in part], layout=rg.jagged) for part in (times, points))
    return Series(*single, starts)


class LatentODE(nn.Module):
    """A variational autoencoder of series, whose latent state follows a differential equation."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(8, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.posterior = nn.Linear(width, 2 * LATENT)
        self.slope = nn.Sequential(nn.Linear(LATENT, width), nn.Tanh(), nn.Linear(width, LATENT))
        self.decoder = nn.Sequential(nn.Linear(LATENT, width), nn.Tanh(), nn.Linear(width, 2))

    def encode(self, data: Series) -> Normal:
        """Return the distribution of the latent state at time 0, (series, LATENT)."""
        t = data.times.unsqueeze(-1)
        waves = rg.cat([rg.sin(k * t) for k in (1, 2, 4)] + [rg.cos(k * t) for k in (1, 2, 4)], -1)
        features = self.encoder(rg.cat([data.points, waves], -1)).mean(1)
        mean, scale = self.posterior(features).chunk(2, -1)
        return Normal(mean, nn.functional.softplus(scale) + 1e-3)

    def path(self, state: rg.Tensor, times: rg.Tensor) -> rg.Tensor:
        """Return the latent states at times, of shape (times, *state.shape)."""
        return ode.rk4(lambda t, z: self.slope(z), state, times)

    def decode(self, state: rg.Tensor, times: rg.Tensor) -> rg.Tensor:
        """Return the points at times of each series, which are ragged, as the rows of one matrix."""
        grid = rg.linspace(0, OBSERVED, GRID)
        states = self.path(state, grid)
        slopes, step = self.slope(states), grid[1]
        t, lengths = times.values(), times.offsets().diff()
        series = rg.repeat_interleave(rg.arange(len(lengths)), lengths)
        k = (t / step).to(rg.int64)
        s = (t / step - k).unsqueeze(-1)
        # Hermite's cubic polynomial between two times of the grid
        first, last = states[k, series], states[k + 1, series]
        first_slope, last_slope = step * slopes[k, series], step * slopes[k + 1, series]
        rest = 1 - s
        inside = first * (1 + 2 * s) * rest**2 + last * s**2 * (3 - 2 * s)
        return self.decoder(inside + first_slope * s * rest**2 - last_slope * s**2 * rest)

    def bound(self, data: Series) -> rg.Tensor:
        """Return the evidence lower bound, the mean over series, with one sample of each latent state."""
        posterior = self.encode(data)
        predicted = self.decode(posterior.rsample(), data.times)
        likelihood = Normal(predicted, NOISE).log_prob(data.points.values()).sum()
        divergence = kl_divergence(posterior, Normal(rg.zeros(LATENT), 1.0)).sum()
        return (likelihood - divergence) / len(data.starts[0])


def train(model: LatentODE, data: Series, steps: int) -> list[float]:
    """Return the evidence lower bound of each step."""
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    bounds = []
    for step in range(steps):
        optimizer.zero_grad()
        bound = model.bound(data)
        (-bound).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 100.0)
        optimizer.step()
        schedule.step()
        bounds.append(bound.item())
        if step % max(1, steps // 5) == 0 or step == steps - 1:
            print(f"step {step}: evidence lower bound {bounds[-1]:.1f}")
    return bounds


@rg.no_grad()
def predict(model: LatentODE, data: Series, samples: int) -> tuple[np.ndarray, np.ndarray]:
    """Return times, and the points (samples, times, series, 2) for samples of the latent states."""
    times = rg.linspace(0, END, 101)
    states = model.path(model.encode(data).sample((samples,)), times)
    return times.numpy(), model.decoder(states).movedim(0, 1).numpy()


def errors(found: np.ndarray, times: np.ndarray, data: Series) -> list[float]:
    """Return the root mean square distance of the mean from the true spiral, before and after the last observations."""
    true = spiral(data.starts, times[:, None])
    distance = ((found.mean(0) - true) ** 2).sum(-1)
    return [float(np.sqrt(distance[part].mean())) for part in (times <= OBSERVED, times > OBSERVED)]


def draw(path: Path, found: np.ndarray, times: np.ndarray, data: Series) -> None:
    """Plot four series: observations, the true spiral, and samples of the model."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 2.7), layout="constrained")
    for i, axes in enumerate(figure.subplots(1, 4, sharex=True, sharey=True)):
        points = data.points[i].numpy()
        true = spiral(data.starts[:, i], np.linspace(0, END, 200))
        for sample in found[:20, :, i]:
            axes.plot(*sample.T, color="tab:orange", alpha=0.2, linewidth=1)
        axes.plot(*true.T, color="black", linewidth=1, linestyle=":", label="true")
        axes.plot(*found.mean(0)[:, i].T, color="tab:orange", label="model")
        axes.scatter(*points.T, s=12, color="tab:blue", zorder=3)
        axes.set(aspect="equal", title=f"{len(points)} observations")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside right center")
    figure.savefig(path, dpi=95)


def main(
    count: int = 300, steps: int = 800, width: int = 64, picture: Path | None = Path("latent_ode.png")
) -> dict[str, float]:
    rg.manual_seed(0)
    model, data, new = LatentODE(width), observe(count, 0), observe(50, 1)
    bounds = train(model, data, steps)
    times, found = predict(model, new, 100)
    inside, beyond = errors(found, times, new)
    print(f"new series, distance of the mean: {inside:.2f} until {OBSERVED}, {beyond:.2f} until {END}")
    if picture is not None:
        draw(picture, found, times, new)
    return {"first": bounds[0], "last": bounds[-1], "inside": inside, "beyond": beyond}


if __name__ == "__main__":
    main()
