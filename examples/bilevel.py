"""Choose 64 penalties of a regression by bilevel optimization: the gradient of the validation error through the fit.

    pip install "retrograd[scipy,viz]"
    python examples/bilevel.py

The inner problem fits weights to half of the data, with a penalty for each feature. The outer problem chooses the
penalties that give the lowest error on the other half. A grid search over 64 penalties is impossible. The derivative
of the inner minimum is that of its optimality conditions (`retrograd.scipy.optimize.minimize`, `rg.implicit.argmin`),
whatever iterations found it.
"""

import time
from pathlib import Path

import numpy as np

import retrograd as rg
from retrograd.scipy.optimize import minimize


def data(features: int, useful: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return features and labels, -1 or 1, that depend on the first few features."""
    r = np.random.default_rng(0)
    x = r.normal(size=(count, features))
    weights = np.where(np.arange(features) < useful, 1.5, 0.0)
    return x, np.where(r.random(count) < 1 / (1 + np.exp(-x @ weights)), 1.0, -1.0)


def loss(w: rg.Tensor, x: np.ndarray, y: np.ndarray) -> rg.Tensor:
    """Return the mean logistic loss."""
    return rg.nn.functional.softplus(-(rg.tensor(x) @ w) * rg.tensor(y)).mean()


def fit(penalties: rg.Tensor, x: np.ndarray, y: np.ndarray) -> rg.Tensor:
    """Return the weights with the lowest penalized loss, differentiable in the logarithms of the penalties."""
    found = minimize(
        lambda w: loss(w, x, y) + 0.5 * (penalties.exp() * w * w).sum(), np.zeros(x.shape[1]), method="BFGS", tol=1e-7
    )
    return found.x


def draw(path: Path, penalties: np.ndarray, useful: int, errors: list[float]) -> None:
    """Plot the penalty of each feature, and the validation error of each round."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3), layout="constrained")
    left, right = figure.subplots(1, 2)
    colors = ["C0" if i < useful else "0.7" for i in range(len(penalties))]
    left.bar(range(len(penalties)), np.log10(np.exp(penalties)), color=colors)
    left.set(title="penalties; blue: features that matter", xlabel="feature", ylabel="log10")
    right.plot(errors)
    right.set(title="validation loss", xlabel="round")
    figure.savefig(path, dpi=95)


def main(
    features: int = 64, useful: int = 6, count: int = 480, rounds: int = 15, picture: Path | None = Path("bilevel.png")
) -> dict[str, float]:
    x, y = data(features, useful, 4 * count)
    half = count // 2
    penalties = rg.full((features,), -3.0, dtype=rg.float64, requires_grad=True)
    optimizer, errors, start = rg.optim.Adam([penalties], lr=0.4), [], time.perf_counter()
    for _ in range(rounds):
        validation = loss(fit(penalties, x[:half], y[:half]), x[half:count], y[half:count])
        optimizer.zero_grad()
        validation.backward()
        optimizer.step()
        errors.append(validation.item())
    found = penalties.detach()
    tests = [loss(fit(p, x[:half], y[:half]), x[count:], y[count:]).item() for p in (rg.full_like(found, -3.0), found)]
    print(f"{rounds} gradients through a fit take {time.perf_counter() - start:.0f} s")
    print(f"loss on new data: {tests[0]:.3f} with equal penalties, {tests[1]:.3f} with chosen ones")
    kept = found[:useful].mean().item(), found[useful:].mean().item()
    print(f"mean log penalty of the features that matter {kept[0]:.1f}, of the others {kept[1]:.1f}")
    if picture is not None:
        draw(picture, found.numpy(), useful, errors)
    return {"before": tests[0], "after": tests[1], "useful": kept[0], "others": kept[1]}


if __name__ == "__main__":
    main()
