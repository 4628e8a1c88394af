"""Solve Burgers' equation with a neural network, with all derivatives by function transforms.

    pip install "retrograd[viz]"
    python examples/burgers.py

The equation is u_t + u u_x = ν u_xx on -1 < x < 1, with u = -sin πx at t = 0 and u = 0 at both ends: a wave that
steepens into a shock. The network is trained to make the residual of the equation zero at sampled points (M. Raissi et
al., Physics-informed neural networks, Journal of Computational Physics 378, 2019). The transforms are nested: `jvp`
twice along x and once along t gives the residual at one point, `grad_and_value` its gradient with respect to all
weights, and `vmap` maps this over the points. The result is the Jacobian of a least-squares problem, which is solved
by the Levenberg-Marquardt method.

The exact solution, for comparison: J. D. Cole, Quarterly of Applied Mathematics 9, 1951; E. Hopf, 1950.
"""

import math
import time
from pathlib import Path

import numpy as np

import retrograd as rg
from retrograd import nn
from retrograd.func import functional_call, grad_and_value, jvp, vmap

VISCOSITY = 0.01
Params = dict[str, rg.Tensor]

# -------------------------------------------------------------------------------------------------- the equation


class Wave(nn.Module):
    """u at a point (t, x); satisfies u(0, x) = -sin πx and u(t, -1) = u(t, 1) = 0 by construction."""

    def __init__(self, width: int) -> None:
        super().__init__()
        inner = [part for _ in range(2) for part in (nn.Linear(width, width), nn.Tanh())]
        self.network = nn.Sequential(nn.Linear(2, width), nn.Tanh(), *inner, nn.Linear(width, 1)).to(rg.float64)

    def forward(self, t: rg.Tensor, x: rg.Tensor) -> rg.Tensor:
        return -(math.pi * x).sin() + t * (1 - x * x) * self.network(rg.stack([t, x], -1)).squeeze(-1)


def residual(wave: Wave, params: Params, t: rg.Tensor, x: rg.Tensor) -> rg.Tensor:
    """Return u_t + u u_x - ν u_xx at one point, for the weights `params`."""

    def u(t: rg.Tensor, x: rg.Tensor) -> rg.Tensor:
        return functional_call(wave, params, (t, x))

    one = rg.ones_like(t)
    _, u_t = jvp(lambda t: u(t, x), (t,), (one,))
    (value, u_x), (_, u_xx) = jvp(lambda x: jvp(lambda x: u(t, x), (x,), (one,)), (x,), (one,))
    return u_t + value * u_x - VISCOSITY * u_xx


def exact(t: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return the Cole-Hopf solution; its Gaussian integrals are computed by Gauss-Hermite quadrature."""
    nodes, weights = np.polynomial.hermite.hermgauss(100)
    y = np.pi * (x[..., None] - np.sqrt(4 * VISCOSITY * t[..., None]) * nodes)
    density = weights * np.exp(-(np.cos(y) + 1) / (2 * np.pi * VISCOSITY))
    return -(density * np.sin(y)).sum(-1) / density.sum(-1)


# ------------------------------------------------------------------------------------------------------ training


def add_step(params: Params, step: rg.Tensor) -> Params:
    """Return the weights plus a step, which is one flat vector."""
    parts = step.split([p.numel() for p in params.values()])
    return {name: p + part.reshape(p.shape) for (name, p), part in zip(params.items(), parts, strict=True)}


def train(wave: Wave, t: rg.Tensor, x: rg.Tensor, steps: int) -> list[float]:
    """Run Levenberg-Marquardt; return the mean squared residual after each step.

    A step that increases the residuals is rejected, and the damping is increased.
    """
    params = {name: p.detach() for name, p in wave.named_parameters()}
    at_all = vmap(grad_and_value(lambda *args: residual(wave, *args)), in_dims=(None, 0, 0))
    damping, losses = 1.0, []
    slopes, left = at_all(params, t, x)
    for _ in range(steps):
        jacobian = rg.cat([slopes[name].flatten(1) for name in params], 1)
        square, downhill = jacobian.T @ jacobian, -(jacobian.T @ left)
        step = rg.linalg.solve(square + damping * rg.eye(len(square), dtype=rg.float64), downhill)
        there = add_step(params, step)
        new_slopes, new_left = at_all(there, t, x)
        if new_left.norm() < left.norm():
            params, slopes, left, damping = there, new_slopes, new_left, damping / 3
        else:
            damping = damping * 2
        losses.append(left.square().mean().item())
    wave.load_state_dict(params)
    return losses


def compare_with_exact(wave: Wave) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return a grid of t and x, and on it the network's solution and the exact one."""
    t, x = np.meshgrid(np.linspace(0, 1, 41)[1:], np.linspace(-1, 1, 401), indexing="ij")
    with rg.no_grad():
        return t, x, wave(rg.tensor(t), rg.tensor(x)).numpy(), exact(t, x)


def draw(path: Path, losses: list[float], t: np.ndarray, x: np.ndarray, found: np.ndarray, known: np.ndarray) -> None:
    """Plot the solution, slices of it, and the residuals during training."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    figure.colorbar(left.pcolormesh(t, x, found, cmap="RdBu_r", shading="gouraud"), ax=left)
    left.set(title="u(t, x) by the network", xlabel="t", ylabel="x")
    for row, color in zip((9, 19, 39), ("C0", "C1", "C2"), strict=True):
        middle.plot(x[row], found[row], color=color, label=f"t = {t[row, 0]:.2f}")
        middle.plot(x[row, ::10], known[row, ::10], ".", color=color, markersize=4)
    middle.legend(frameon=False, fontsize=8)
    middle.set(title="the network, and dots: exact", xlabel="x", ylabel="u")
    right.semilogy(losses)
    right.set(title="mean square of the residuals", xlabel="step")
    figure.savefig(path, dpi=110)


def main(points: int = 1500, width: int = 16, steps: int = 300, picture: Path | None = Path("burgers.png")) -> float:
    rg.manual_seed(0)
    wave = Wave(width)
    t, x = rg.rand(points, dtype=rg.float64), 2 * rg.rand(points, dtype=rg.float64) - 1
    start = time.perf_counter()
    losses = train(wave, t, x**3, steps)  # more points near the shock at x = 0
    seconds = (time.perf_counter() - start) / steps
    print(f"{sum(p.numel() for p in wave.parameters())} weights, {points} points, {1000 * seconds:.0f} ms per step")
    t, x, found, known = compare_with_exact(wave)
    error = float(np.linalg.norm(found - known) / np.linalg.norm(known))
    print(f"mean squared residual: {losses[-1]:.1e}")
    print(f"relative error of u: {error:.1e}, largest error: {abs(found - known).max():.1e}")
    if picture is not None:
        draw(picture, losses, t, x, found, known)
    return error


if __name__ == "__main__":
    main()
