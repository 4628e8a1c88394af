"""Define a deep equilibrium layer, z = tanh(W z + u), as a custom operator with an implicit gradient.

    pip install "retrograd[demo]"
    python examples/equilibrium.py

The kernel iterates z ← tanh(W z + u) until it converges (S. Bai, J. Z. Kolter and V. Koltun, Deep Equilibrium Models,
NeurIPS 2019). The backward pass does not go through the iterations and saves none of them: by the implicit function
theorem, the gradient is the solution of one linear system at the fixed point. The gradient formula is composed of
differentiable operators, so Hessians and forward mode follow from it; `opcheck` tests them.
"""

import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np

import retrograd as rg
from retrograd import nn, optim
from retrograd.nn import functional as F
from retrograd.nn.utils.parametrizations import spectral_norm

# -------------------------------------------------------------------------------------------------- the operator


@rg.library.custom_op("examples::equilibrium", mutates_args=())
def equilibrium(weight: rg.Tensor, u: rg.Tensor) -> rg.Tensor:
    """Return z of shape (n, size) with z = tanh(z weightᵀ + u); the norm of the weight must be below 1."""
    matrix, shift = weight.numpy().T, u.numpy()
    enough, z = 8 * np.finfo(shift.dtype).eps, np.zeros_like(shift)
    for _ in range(1000):
        before, z = z, np.tanh(z @ matrix + shift)
        if abs(z - before).max(initial=0) < enough:
            return rg.as_tensor(z)
    raise RuntimeError("equilibrium: no fixed point in 1000 rounds; the norm of the weight must be below 1")


def keep(ctx: Any, inputs: tuple, output: rg.Tensor) -> None:
    ctx.save_for_backward(inputs[0], output)


def backward(ctx: Any, g: rg.Tensor) -> tuple[rg.Tensor, rg.Tensor]:
    """Return the gradients: dz = D (W dz + dW z + du), D = 1 - z²; solve (1 - Wᵀ D) y = g, then du gets D y."""
    weight, z = ctx.saved_tensors
    slope = 1 - z * z
    system = rg.eye(len(weight), dtype=z.dtype) - weight.mT * slope[:, None, :]
    toward = slope * rg.linalg.solve(system, g)
    return toward.mT @ z, toward


equilibrium.register_autograd(backward, setup_context=keep)


def equilibrium_by_loop(weight: rg.Tensor, u: rg.Tensor, rounds: int = 200) -> rg.Tensor:
    """Return the same fixed point by a loop of recorded operators, for comparison."""
    z = rg.zeros_like(u)
    for _ in range(rounds):
        z = rg.tanh(z @ weight.mT + u)
    return z


class Equilibrium(nn.Module):
    """The layer z = tanh(0.95 W z + u), with W normalized to spectral norm 1."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.inner = spectral_norm(nn.Linear(size, size, bias=False))

    def forward(self, u: rg.Tensor) -> rg.Tensor:
        return equilibrium(0.95 * self.inner.weight, u)


def check() -> None:
    """Check the operator: first and second derivatives, forward mode, batching and more."""
    weight = (0.15 * rg.randn(4, 4, dtype=rg.float64)).requires_grad_()
    u = rg.randn(3, 4, dtype=rg.float64, requires_grad=True)
    print("opcheck", set(rg.library.opcheck(equilibrium, (weight, u)).values()))


def compare_memory(size: int = 16, rows: int = 2000) -> float:
    """Print time and memory of the implicit gradient and of the loop's; return their relative difference."""
    weight = rg.randn(size, size, dtype=rg.float64)
    weight = (0.8 * weight / rg.linalg.norm(weight, 2)).requires_grad_()
    u, found = rg.randn(rows, size, dtype=rg.float64), []
    for name, layer in (("equation", equilibrium), ("loop", equilibrium_by_loop)):
        tracemalloc.start()
        rg.autograd.grad(layer(weight, u).square().sum(), weight)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        start = time.perf_counter()
        found += rg.autograd.grad(layer(weight, u).square().sum(), weight)
        print(f"{name}: a gradient takes {1000 * (time.perf_counter() - start):.0f} ms and {peak / 2**20:.0f} MiB")
    return ((found[0] - found[1]).norm() / found[1].norm()).item()


def spirals(count: int) -> tuple[rg.Tensor, rg.Tensor]:
    """Return points of shape (2 count, 2) near two interleaved spirals, and the label of their spiral."""
    turn = rg.rand(count).sqrt() * 3 * np.pi
    arm = 0.4 * rg.stack([turn * turn.cos(), turn * turn.sin()], 1)
    return rg.cat([arm, -arm]) + 0.08 * rg.randn(2 * count, 2), rg.cat([rg.zeros(count), rg.ones(count)])


def train(model: nn.Module, x: rg.Tensor, y: rg.Tensor, steps: int) -> None:
    optimizer = optim.Adam(model.parameters(), lr=1e-2)
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(steps):
        loss = F.binary_cross_entropy_with_logits(model(x)[:, 0], y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()


def draw(path: Path, model: nn.Module, x: rg.Tensor, y: rg.Tensor) -> None:
    """Plot the points, and the predicted probability over the plane."""
    from matplotlib.figure import Figure

    axis = rg.linspace(-4.4, 4.4, 200)
    grid = rg.stack([axis.expand(200, 200), axis[:, None].expand(200, 200)], -1).reshape(-1, 2)
    with rg.no_grad():
        says = model(grid)[:, 0].sigmoid().reshape(200, 200).numpy()
    figure = Figure(figsize=(4.4, 4), layout="constrained")
    axes = figure.subplots()
    shown = axes.imshow(says, cmap="RdBu_r", extent=(-4.4, 4.4) * 2, origin="lower", alpha=0.7, vmin=0, vmax=1)
    axes.scatter(*x.T.numpy(), c=y.numpy(), cmap="RdBu_r", s=12, edgecolor="white", linewidth=0.4)
    axes.set(aspect="equal", xticks=(), yticks=())
    figure.colorbar(shown, ax=axes, label="probability of the red spiral", shrink=0.85)
    figure.savefig(path, dpi=95)


def main(steps: int = 400, size: int = 32, picture: Path | None = Path("equilibrium.png")) -> dict[str, float]:
    rg.manual_seed(0)
    check()
    difference = compare_memory()
    print(f"relative difference of the two gradients: {difference:.1e}")
    model = nn.Sequential(nn.Linear(2, size), Equilibrium(size), nn.Linear(size, 1))
    x, y = spirals(150)
    train(model, x, y, steps)
    new, which = spirals(1000)
    with rg.no_grad():
        right = ((model.eval()(new)[:, 0] > 0) == (which > 0.5)).to(rg.float32).mean().item()
    print(f"{right:.1%} of 2000 test points are classified correctly")
    if picture is not None:
        draw(picture, model, x, y)
    return {"difference": difference, "right": right}


if __name__ == "__main__":
    main()
