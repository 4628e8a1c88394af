"""Sample a hierarchical model with the No-U-Turn sampler, and compare the samples with quadrature.

    pip install "retrograd[viz]"
    python examples/nuts.py

Eight schools tried a course, and each reports its effect with a standard error (D. B. Rubin, 1981). The effects are
normal with an unknown mean and spread. The sampler builds a trajectory in both directions of time until it turns back,
and chooses a state by its weight (M. Betancourt, A Conceptual Introduction to Hamiltonian Monte Carlo, 2017). The size
of its steps and the scale of each coordinate are tuned during the warm-up. The log density is made of
`retrograd.distributions`, and a step with its gradient is one compiled function. Given mean and spread, the posterior
is normal, so quadrature over these two gives the exact moments.
"""

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

import retrograd as rg
from retrograd.distributions import HalfCauchy, Normal

# ------------------------------------------------------------------------------------------------- the model

EFFECT = rg.tensor([28.0, 8, -3, 7, -1, 1, 18, 12], dtype=rg.float64)
ERROR = rg.tensor([15.0, 10, 16, 11, 9, 11, 10, 18], dtype=rg.float64)


def log_density(x: rg.Tensor) -> rg.Tensor:
    """Return the log posterior of (mean, log spread, effects in units of the spread from the mean)."""
    mean, spread, units = x[0], x[1].exp(), x[2:]
    prior = Normal(0.0, 5.0).log_prob(mean) + HalfCauchy(5.0).log_prob(spread) + x[1]
    effects = mean + spread * units
    return prior + Normal(0.0, 1.0).log_prob(units).sum() + Normal(effects, ERROR).log_prob(EFFECT).sum()


def natural(x: np.ndarray) -> np.ndarray:
    """Return (mean, spread, effects) of samples."""
    spread = np.exp(x[:, 1:2])
    return np.concatenate([x[:, :1], spread, x[:, :1] + spread * x[:, 2:]], 1)


def quadrature() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return mean and variance of all unknowns, then a grid of means and log spreads with the density there."""
    effect, error = EFFECT.numpy(), ERROR.numpy()
    mean, logarithm = np.meshgrid(np.linspace(-15, 25, 401), np.linspace(-8, 5, 401))
    spread = np.exp(logarithm)[..., None]
    total = error**2 + spread**2
    height = -0.5 * ((effect - mean[..., None]) ** 2 / total + np.log(total)).sum(-1)
    height += -0.5 * mean**2 / 25 - np.log1p(np.exp(2 * logarithm) / 25) + logarithm
    density = np.exp(height - height.max())
    weight = density / density.sum()
    pull = spread**2 / total
    centers = mean[..., None] + pull * (effect - mean[..., None])
    first = np.concatenate([mean[..., None], spread, centers], -1)
    inner = np.concatenate([0 * spread, 0 * spread, pull * error**2], -1)  # the variance given mean and spread
    means = (weight[..., None] * first).sum((0, 1))
    return means, (weight[..., None] * (inner + (first - means) ** 2)).sum((0, 1)), mean, logarithm, density


# ------------------------------------------------------------------------------------------------- the sampler


class State(NamedTuple):
    """A state of the trajectory, and the gradient and the value of the log density there."""

    x: np.ndarray
    momentum: np.ndarray
    slope: np.ndarray
    value: float


class Tree(NamedTuple):
    """A part of a trajectory: its ends, the chosen state, the logarithm of its weight, and the sum of the momenta."""

    left: State
    right: State
    chosen: State
    weight: float
    momenta: np.ndarray
    going: bool
    accepted: float
    count: int


class NoUTurn:
    """The No-U-Turn sampler of a log density of vectors; `leaps` counts the steps."""

    def __init__(self, density: Callable[[rg.Tensor], rg.Tensor], dimension: int, seed: int) -> None:
        gradient = rg.func.grad_and_value(density)

        def leap(x: rg.Tensor, momentum: rg.Tensor, slope: rg.Tensor, size: rg.Tensor, scale: rg.Tensor) -> tuple:
            momentum = momentum + 0.5 * size * slope
            x = x + size * scale * momentum
            slope, value = gradient(x)
            return x, momentum + 0.5 * size * slope, slope, value

        self._leap = rg.compile(leap)
        self._gradient = rg.compile(gradient)
        self.random = np.random.default_rng(seed)
        self.scale = np.ones(dimension)
        self.leaps = 0

    def leap(self, state: State, size: float) -> State:
        """Return the state after one step of the leapfrog method."""
        self.leaps += 1
        given = [rg.from_numpy(np.asarray(part)) for part in (*state[:3], np.float64(size), self.scale)]
        x, momentum, slope, value = self._leap(*given)
        return State(x.numpy(), momentum.numpy(), slope.numpy(), value.item())

    def energy(self, state: State) -> float:
        return 0.5 * float(self.scale @ state.momentum**2) - state.value

    def turns(self, left: State, right: State, momenta: np.ndarray) -> bool:
        """Return whether the trajectory between two states turns back."""
        return bool(momenta @ (self.scale * left.momentum) < 0 or momenta @ (self.scale * right.momentum) < 0)

    def tree(self, state: State, size: float, depth: int, start: float) -> Tree:
        """Return the trajectory of 2^depth steps after a state; `start` is the energy where all began."""
        if depth == 0:
            new = self.leap(state, size)
            gain = start - self.energy(new)
            gain = gain if math.isfinite(gain) else -math.inf
            return Tree(new, new, new, gain, new.momentum, gain > -1000, math.exp(min(0.0, gain)), 1)
        near = self.tree(state, size, depth - 1, start)
        if not near.going:
            return near
        far = self.tree(near.right if size > 0 else near.left, size, depth - 1, start)
        return self.join(near, far, size, biased=False)

    def join(self, near: Tree, far: Tree, size: float, biased: bool) -> Tree:
        """Return two parts as one; a biased choice prefers the new part."""
        left, right = (near.left, far.right) if size > 0 else (far.left, near.right)
        both = np.logaddexp(near.weight, far.weight)
        chance = math.exp(min(0.0, far.weight - (near.weight if biased else both))) if far.going else 0.0
        chosen = far.chosen if self.random.random() < chance else near.chosen
        momenta = near.momenta + far.momenta
        going = far.going and not self.turns(left, right, momenta)
        accepted, count = near.accepted + far.accepted, near.count + far.count
        return Tree(left, right, chosen, float(both), momenta, going, accepted, count)

    def sample(self, x: np.ndarray, size: float) -> tuple[np.ndarray, float]:
        """Return the next sample, and the mean acceptance along the trajectory."""
        slope, value = self._gradient(rg.from_numpy(x))
        momentum = self.random.normal(size=x.size) / np.sqrt(self.scale)
        start = State(x, momentum, slope.numpy(), value.item())
        energy = self.energy(start)
        whole = Tree(start, start, start, 0.0, momentum, True, 0.0, 0)
        for depth in range(10):
            step = size if self.random.random() < 0.5 else -size
            part = self.tree(whole.right if step > 0 else whole.left, step, depth, energy)
            whole = self.join(whole, part, step, biased=True)
            if not whole.going:
                break
        return whole.chosen.x, whole.accepted / whole.count

    def run(self, x: np.ndarray, count: int, warmup: int) -> np.ndarray:
        """Return samples after a warm-up that tunes the steps, and the scales from samples of its middle half."""
        found, seen, tuner = [], [], DualAveraging(0.1)
        for i in range(warmup + count):
            x, accepted = self.sample(x, tuner.size)
            if i < warmup:
                tuner.update(accepted)
                seen += [x] if warmup // 4 <= i else []
                if i in (warmup // 2, 3 * warmup // 4):
                    self.scale, tuner = np.var(seen, axis=0) + 1e-3, DualAveraging(tuner.size)
                if i == warmup - 1:
                    tuner.size = tuner.mean
            else:
                found.append(x)
        return np.array(found)


class DualAveraging:
    """The size of steps for which 0.8 of a trajectory is accepted (M. D. Hoffman and A. Gelman, 2014, 3.2)."""

    def __init__(self, size: float) -> None:
        self.size = self.mean = size
        self._target, self._error, self._logarithm, self._count = math.log(10 * size), 0.0, 0.0, 0

    def update(self, accepted: float) -> None:
        self._count += 1
        self._error += (0.8 - accepted - self._error) / (self._count + 10)
        logarithm = self._target - math.sqrt(self._count) / 0.05 * self._error
        self._logarithm += (logarithm - self._logarithm) * self._count**-0.75
        self.size, self.mean = math.exp(logarithm), math.exp(self._logarithm)


def convergence(chains: np.ndarray) -> float:
    """Return the largest R-hat of (chains, samples, unknowns), 1 where chains agree."""
    half = chains.shape[1] // 2
    parts = np.concatenate([chains[:, :half], chains[:, half : 2 * half]])
    within, between = parts.var(1, ddof=1).mean(0), parts.mean(1).var(0, ddof=1)
    return float(np.sqrt((half - 1) / half + between / within).max())


# ------------------------------------------------------------------------------------------------- output


def draw(path: Path, samples: np.ndarray, exact: tuple) -> None:
    """Plot mean and log spread over their exact density, and the effect of each school."""
    from matplotlib.figure import Figure

    means, variances, mean, logarithm, density = exact
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(samples[:, 0], np.log(samples[:, 1]), "o", markersize=1.5, alpha=0.3)
    left.contour(mean, logarithm, density, density.max() * np.array([0.02, 0.1, 0.3, 0.7]), colors="C3", linewidths=1)
    left.set(xlim=(-10, 18), ylim=(-5, 4), title="samples, and the exact density", xlabel="mean", ylabel="log spread")
    schools = np.arange(8)
    right.errorbar(schools - 0.2, EFFECT.numpy(), ERROR.numpy(), fmt="o", color="0.6", label="reported")
    right.errorbar(schools, samples[:, 2:].mean(0), samples[:, 2:].std(0), fmt="o", color="C0", label="sampled")
    right.errorbar(schools + 0.2, means[2:], np.sqrt(variances[2:]), fmt="o", color="C3", label="exact")
    right.set(xticks=schools, xticklabels=list("ABCDEFGH"), title="effects, ± 1 standard deviation", xlabel="school")
    right.legend()
    figure.savefig(path, dpi=95)


def main(
    chains: int = 4, samples: int = 1000, warmup: int = 500, picture: Path | None = Path("nuts.png")
) -> dict[str, np.ndarray | float]:
    begin, found, leaps = time.perf_counter(), [], 0
    for chain in range(chains):
        sampler = NoUTurn(log_density, 10, chain)
        found.append(natural(sampler.run(sampler.random.normal(size=10), samples, warmup)))
        leaps += sampler.leaps
    seconds = time.perf_counter() - begin
    agreement = convergence(np.array(found))
    print(f"{chains} chains of {samples} samples, {leaps} steps in {seconds:.0f} s, R-hat at most {agreement:.3f}")
    together, exact = np.concatenate(found), quadrature()
    names = ("mean", "spread", *(f"effect in school {letter}" for letter in "ABCDEFGH"))
    for name, column, mean, variance in zip(names, together.T, *exact[:2], strict=True):
        print(f"{name}: {column.mean():.2f} ± {column.std():.2f}, by quadrature {mean:.2f} ± {math.sqrt(variance):.2f}")
    if picture is not None:
        draw(picture, together, exact)
    return {"mean": together.mean(0), "deviation": together.std(0), "convergence": agreement, "exact": exact[0]}


if __name__ == "__main__":
    main()
