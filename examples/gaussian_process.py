"""Fit a Gaussian process by its likelihood: by a Cholesky factor, and by conjugate gradients without one.

    pip install "retrograd[scipy,viz]"
    python examples/gaussian_process.py

The log likelihood needs y·K⁻¹y and log det K. The first way factors K. The second one only multiplies by K: conjugate
gradients solve K a = y, and a few random probes z estimate the gradient of log det K, which is the mean of z·K⁻¹ dK z
(M. F. Hutchinson, 1990). `rg.implicit.root` differentiates the solution, whatever solver found it. The second gradient
is that of the first up to the error of the probes.
"""

import math
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg

import retrograd as rg
from retrograd.scipy.linalg import cho_factor, cho_solve
from retrograd.scipy.optimize import minimize


def data(count: int) -> tuple[rg.Tensor, rg.Tensor]:
    """Return points and noisy values of a function."""
    r = np.random.default_rng(0)
    x = np.sort(r.uniform(0, 6, count))
    return rg.tensor(x), rg.tensor(np.sin(2 * x) * np.exp(-0.2 * x) + 0.15 * r.normal(size=count))


def kernel(a: rg.Tensor, b: rg.Tensor, p: rg.Tensor) -> rg.Tensor:
    """Return the covariances of function values; p has the logarithms of width, size and noise."""
    return (2 * p[1]).exp() * (-0.5 * ((a[:, None] - b) / p[0].exp()) ** 2).exp()


def covariance(x: rg.Tensor, p: rg.Tensor) -> rg.Tensor:
    """Return the covariances of the observations."""
    return kernel(x, x, p) + (2 * p[2]).exp() * rg.eye(len(x), dtype=x.dtype)


def by_cholesky(p: rg.Tensor, x: rg.Tensor, y: rg.Tensor) -> rg.Tensor:
    """Return the negative log likelihood."""
    factor, lower = cho_factor(covariance(x, p), lower=True)
    fit = y @ cho_solve((factor, lower), y)
    return 0.5 * fit + factor.diagonal().log().sum() + 0.5 * len(x) * math.log(2 * math.pi)


def conjugate_gradients(fun: Callable, start: np.ndarray) -> np.ndarray:
    """Return the root of an affine function with a positive definite matrix, which is only applied to vectors."""
    offset = fun(np.zeros_like(start))
    matrix = LinearOperator((start.size, start.size), matvec=lambda v: fun(v) - offset, dtype=start.dtype)
    found, failed = cg(matrix, -offset, rtol=1e-8, maxiter=10 * start.size)
    if failed:
        raise RuntimeError("conjugate gradients do not converge")
    return found


def by_products(p: rg.Tensor, x: rg.Tensor, y: rg.Tensor, probes: rg.Tensor) -> rg.Tensor:
    """Return a function of p whose gradient estimates that of the negative log likelihood."""
    weights = rg.implicit.root(lambda a: covariance(x, p) @ a - y, np.zeros(len(x)), solver=conjugate_gradients)
    total = 0.5 * y @ weights
    fixed = covariance(x, p.detach())
    for z in probes:
        solved = rg.tensor(cg(fixed.numpy(), z.numpy(), rtol=1e-8)[0])
        total = total + 0.5 * solved @ (covariance(x, p) @ z) / len(probes)
    return total


def draw(path: Path, x: rg.Tensor, y: rg.Tensor, p: rg.Tensor) -> None:
    """Plot the observations, and the posterior mean with two standard deviations."""
    from matplotlib.figure import Figure

    grid = rg.linspace(0, 6, 200, dtype=rg.float64)
    across, factor = kernel(grid, x, p), cho_factor(covariance(x, p), lower=True)
    mean = (across @ cho_solve(factor, y)).numpy()
    variance = (2 * p[1]).exp() - (across * cho_solve(factor, across.mT).mT).sum(1)
    deviation = variance.clamp(min=0).sqrt().numpy()
    figure = Figure(figsize=(7, 3.2), layout="constrained")
    axes = figure.subplots()
    axes.plot(x.numpy(), y.numpy(), "o", color="0.5", markersize=3)
    axes.plot(grid.numpy(), mean, color="C0")
    axes.fill_between(grid.numpy(), mean - 2 * deviation, mean + 2 * deviation, color="C0", alpha=0.2, linewidth=0)
    axes.set(title="posterior of a Gaussian process, ±2 standard deviations")
    figure.savefig(path, dpi=95)


def main(count: int = 120, probes: int = 200, picture: Path | None = Path("gaussian_process.png")) -> dict[str, list]:
    x, y = data(count)
    start = time.perf_counter()
    found = minimize(by_cholesky, [0.0, 0.0, -1.0], (x, y), method="BFGS")
    p = found.x.detach()
    width, size, noise = p.exp().tolist()
    print(f"width {width:.2f}, size {size:.2f}, noise {noise:.3f} after {time.perf_counter() - start:.1f} s")
    away = rg.tensor([0.1, -0.2, -1.2], dtype=rg.float64)
    exact = rg.func.grad(by_cholesky)(away, x, y)
    signs = rg.tensor(np.sign(np.random.default_rng(1).normal(size=(probes, count))))
    estimate = rg.func.grad(by_products)(away, x, y, signs)
    print("gradient by Cholesky:           ", [round(g, 2) for g in exact.tolist()])
    print("gradient by conjugate gradients:", [round(g, 2) for g in estimate.tolist()])
    if picture is not None:
        draw(picture, x, y, p)
    return {"noise": [noise], "exact": exact.tolist(), "estimate": estimate.tolist()}


if __name__ == "__main__":
    main()
