"""Estimate stochastic volatility: a particle filter gives the likelihood, and No-U-Turn sampling the posterior.

    pip install "retrograd[viz]"
    python examples/particle_filter.py

The logarithm of the volatility of a series is an autoregressive process that is not observed. A particle filter
estimates the likelihood. With fixed random numbers, and soft resampling whose weights stay differentiable (P. Karkus,
D. Hsu and W. S. Lee, Particle Filter Networks, 2018), it is a function with a gradient. The sampler needs no length of
trajectories: it stops where they turn back (M. D. Hoffman and A. Gelman, The No-U-Turn Sampler, 2014).
"""

import math
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import retrograd as rg

TRUE = (0.95, 0.25)  # persistence, deviation of the process


def simulate(count: int) -> np.ndarray:
    """Return a series whose log volatility is an autoregressive process."""
    r, state, series = np.random.default_rng(4), 0.0, []
    for _ in range(count):
        state = TRUE[0] * state + TRUE[1] * r.normal()
        series.append(math.exp(state / 2) * r.normal())
    return np.array(series)


# -------------------------------------------------------------------------------------------- the particle filter


def log_likelihood(p: rg.Tensor, series: rg.Tensor, noise: rg.Tensor, uniform: rg.Tensor) -> rg.Tensor:
    """Return the estimate of a particle filter; p has the transformed persistence and the log deviation.

    noise: normal numbers, (times, particles); uniform: a number for each time, for systematic resampling.
    """
    persistence, deviation = p[0].tanh(), p[1].exp()
    count = noise.shape[1]
    state = deviation / (1 - persistence**2).sqrt() * noise[0]
    weights = rg.full((count,), -math.log(count), dtype=rg.float64)
    total = rg.zeros((), dtype=rg.float64)
    steps = rg.arange(count, dtype=rg.float64)
    for t in range(len(series)):
        if t:
            state = persistence * state + deviation * noise[t]
        density = -0.5 * (series[t] ** 2 * (-state).exp() + state + math.log(2 * math.pi))
        joint = weights + density
        step = joint.logsumexp(0)
        total, weights = total + step, joint - step
        mixed = 0.7 * weights.exp() + 0.3 / count
        chosen = rg.searchsorted(mixed.detach().cumsum(0), (steps + uniform[t]) / count).clamp(max=count - 1)
        state = state[chosen]
        weights = weights[chosen] - mixed.log()[chosen]
        weights = weights - weights.logsumexp(0)
    return total


def log_posterior(p: rg.Tensor, *given: rg.Tensor) -> rg.Tensor:
    """Return the logarithm of the likelihood times normal priors."""
    prior = -0.5 * ((p[0] - 1.5) ** 2 + ((p[1] + 1.5) / 0.7) ** 2)
    return log_likelihood(p, *given) + prior


# -------------------------------------------------------------------------------------------------- the sampler


class NoUTurn:
    """The No-U-Turn sampler of a log density with gradient, a function of an array to a number and an array."""

    def __init__(self, density: Callable, seed: int) -> None:
        self.density = density
        self.random = np.random.default_rng(seed)
        self.calls = 0

    def leap(self, x: np.ndarray, momentum: np.ndarray, slope: np.ndarray, size: float) -> tuple:
        """Return position, momentum, slope and log density after one step of the leapfrog method."""
        momentum = momentum + 0.5 * size * slope
        x = x + size * momentum
        value, slope = self.density(x)
        self.calls += 1
        return x, momentum + 0.5 * size * slope, slope, value

    def tree(self, state: tuple, level: float, direction: int, depth: int, size: float) -> tuple:
        """Return both ends of a trajectory of 2^depth steps, a sample, a count, whether it continues and more."""
        if depth == 0:
            x, momentum, slope, value = self.leap(*state, direction * size)
            height = value - 0.5 * momentum @ momentum
            end = (x, momentum, slope)
            accepted = min(1.0, math.exp(min(0.0, height - self.start)))
            return end, end, x, int(level <= height), level < height + 1000, accepted, 1
        low, high, sample, count, valid, accepted, tries = self.tree(state, level, direction, depth - 1, size)
        if valid:
            edge = low if direction < 0 else high
            other = self.tree(edge, level, direction, depth - 1, size)
            low, high = (other[0], high) if direction < 0 else (low, other[1])
            if other[3] and self.random.random() < other[3] / (count + other[3]):
                sample = other[2]
            count, accepted, tries = count + other[3], accepted + other[5], tries + other[6]
            valid = other[4] and not turns_back(low, high)
        return low, high, sample, count, valid, accepted, tries

    def sample(self, x: np.ndarray, size: float) -> tuple[np.ndarray, float]:
        """Return the next sample, and the mean acceptance of the trajectory."""
        value, slope = self.density(x)
        momentum = self.random.normal(size=x.size)
        self.start = value - 0.5 * momentum @ momentum
        level = self.start - self.random.exponential()
        low = high = (x, momentum, slope)
        count, accepted, tries = 1, 0.0, 0
        for depth in range(7):
            direction = 1 if self.random.random() < 0.5 else -1
            found = self.tree(low if direction < 0 else high, level, direction, depth, size)
            low, high = (found[0], high) if direction < 0 else (low, found[1])
            accepted, tries = found[5], found[6]
            if not found[4]:
                break
            if self.random.random() < found[3] / count:
                x = found[2]
            count += found[3]
            if turns_back(low, high):
                break
        return x, accepted / max(tries, 1)

    def run(self, x: np.ndarray, count: int, warmup: int, size: float = 0.1) -> np.ndarray:
        """Return samples; the size of steps is tuned for an acceptance of 0.8 during the warm-up."""
        found, logarithm, mean, error = [], math.log(size), 0.0, 0.0
        for i in range(warmup + count):
            x, accepted = self.sample(x, math.exp(logarithm))
            if i < warmup:  # dual averaging, Hoffman and Gelman, 2014, 3.2
                error += (0.8 - accepted - error) / (i + 11)
                logarithm = math.log(10 * size) - math.sqrt(i + 1) / 0.05 * error
                mean += (logarithm - mean) * (i + 1) ** -0.75
            else:
                logarithm = mean
                found.append(x)
        return np.array(found)


def turns_back(low: tuple, high: tuple) -> bool:
    """Return whether a trajectory begins to return at one of its ends."""
    along = high[0] - low[0]
    return bool(along @ low[1] < 0 or along @ high[1] < 0)


def draw(path: Path, series: np.ndarray, samples: np.ndarray) -> None:
    """Plot the series, and the samples of both parameters."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(series, color="0.4", linewidth=0.8)
    left.set(title="the series", xlabel="time")
    right.plot(np.tanh(samples[:, 0]), np.exp(samples[:, 1]), "o", markersize=3, alpha=0.5)
    right.plot(*TRUE, "x", color="C3", markersize=9)
    right.set(title="posterior, and the true values", xlabel="persistence", ylabel="deviation")
    figure.savefig(path, dpi=95)


def main(
    count: int = 70, particles: int = 100, samples: int = 40, warmup: int = 25,
    picture: Path | None = Path("particle_filter.png"),
) -> dict[str, list[float]]:  # fmt: skip
    rg.manual_seed(0)
    series = simulate(count)
    given = rg.tensor(series), rg.randn(count, particles, dtype=rg.float64), rg.rand(count, dtype=rg.float64)
    step = rg.compile(rg.func.grad_and_value(lambda p: log_posterior(p, *given)))

    def density(x: np.ndarray) -> tuple[float, np.ndarray]:
        slope, value = step(rg.tensor(x))
        return value.item(), slope.numpy()

    sampler, begin = NoUTurn(density, 0), time.perf_counter()
    found = sampler.run(np.array([1.5, -1.5]), samples, warmup)
    values = np.stack([np.tanh(found[:, 0]), np.exp(found[:, 1])], 1)
    print(f"{sampler.calls} gradients of a filter with {particles} particles, {time.perf_counter() - begin:.0f} s")
    for name, column, true in zip(("persistence", "deviation"), values.T, TRUE, strict=True):
        print(f"{name}: {column.mean():.2f} ± {column.std():.2f}, true value {true}")
    if picture is not None:
        draw(picture, series, found)
    return {"mean": values.mean(0).tolist(), "deviation": values.std(0).tolist()}


if __name__ == "__main__":
    main()
