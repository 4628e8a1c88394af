"""Pictures of the guides to arrays and operators."""

import itertools
from typing import Any

import numpy as np
from page import run_block, run_dialogue
from scipy import optimize
from style import BLUE, COLOURS, GREEN, GREY, ORANGE, PURPLE, RED, picture

import retrograd as rg


@picture("dtypes", width=6.4)
def dtypes(axes: Any) -> None:
    octaves = 2.0 ** np.arange(-20, 19)
    x = rg.from_numpy(octaves[:, None] * np.linspace(1, 2, 1000, endpoint=False))
    kinds = {"float8_e5m2": RED, "float8_e4m3fn": ORANGE, "bfloat16": GREEN, "float16": BLUE}
    for name, colour in kinds.items():
        errors = ((x.to(getattr(rg, name)).double() - x).abs() / x).amax(1).clamp(max=1)
        axes.plot(octaves, errors.numpy(), color=colour, label=name)
    axes.set(xscale="log", yscale="log", xlabel="x", ylabel="largest relative error", ylim=(1e-4, 2))
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1))


@picture("numpy", height=2.8)
def numpy(axes: Any) -> None:
    names = run_block("numpy", "def energy(x, spring)")
    energy, chain = names["energy"], names["chain"]
    _, slope = rg.value_and_grad(energy)(chain, 3.0)
    relaxed = chain.copy()
    for _ in range(300):
        relaxed -= 0.05 * rg.grad(energy)(relaxed, 3.0)
    axes.plot(*chain.T, "o-", color=BLUE, label="chain")
    axes.quiver(*chain.T, *-slope.T, color=ORANGE, width=0.006, angles="xy", scale_units="xy", scale=5, label="force")
    axes.plot(*relaxed.T, "o--", color=GREEN, lw=1.2, label="at rest")
    axes.set(aspect="equal")
    axes.margins(0.2)
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1))


@picture("array_api", width=6.8, height=2.8, columns=2)
def array_api(axes: Any) -> None:
    whitened = run_block("array_api", "def whitened(x)")["whitened"]
    x = rg.randn(160, 2) @ rg.tensor([[2.0, 1.2], [0.0, 0.6]])
    for part, points, title in ((axes[0], x.numpy(), "x"), (axes[1], whitened(x).numpy().T, "whitened(x)")):
        part.plot(*points.T, ".", ms=3, color=BLUE)
        part.set(title=title, aspect="equal", xlim=(-6, 6), ylim=(-4, 4))


@picture("nested", width=6.8, height=2.5, columns=2)
def nested(axes: Any) -> None:
    left, right = axes
    names = run_dialogue("nested")
    x = names["nested"].nested_tensor([[1.0, 2.0], [3.0], [4.0, 5.0, 6.0]])
    assert x.tolist() == names["x"].tolist()

    def cells(part: Any, row: int, begin: int, values: list[float], colour: str) -> None:
        for column, value in enumerate(values, begin):
            part.barh(row, 0.94, left=column, height=0.8, color=colour)
            part.text(column + 0.47, row, f"{value:g}", ha="center", va="center", color="white")

    offsets, values = x.offsets().tolist(), x.values().tolist()
    for i, (begin, end) in enumerate(itertools.pairwise(offsets)):
        cells(left, i, 0, values[begin:end], COLOURS[i])
        cells(right, 0, begin, values[begin:end], COLOURS[i])
    for begin in offsets:
        right.plot([begin - 0.03] * 2, [0.45, 0.75], color=GREY)
        right.text(begin - 0.03, 0.95, begin, ha="center", va="center")
    right.text(-0.03, 1.45, "x.offsets()", va="center")
    left.set(title="three components", xlim=(-0.1, 6.1), ylim=(2.6, -0.6))
    right.set(title="x.values(): one buffer", xlim=(-0.1, 6.1), ylim=(2.6, -0.6))
    for part in axes:
        part.set_axis_off()


@picture("exchange", height=3.0)
def exchange(axes: Any) -> None:
    names = run_block("exchange", "def rosenbrock(x)")
    visited = [np.array([-1.5, 2.0])]
    optimize.minimize(
        names["both"], visited[0], jac=True, hessp=names["hvp"], method="trust-ncg", callback=visited.append
    )
    a, b = np.meshgrid(np.linspace(-2, 1.6, 200), np.linspace(-0.6, 2.6, 200))
    heights = 100 * (b - a**2) ** 2 + (1 - a) ** 2
    axes.contour(a, b, np.log10(heights + 1e-3), levels=14, cmap="viridis", linewidths=0.8, alpha=0.8)
    axes.plot(*np.transpose(visited), "o-", color=ORANGE, ms=3.5, lw=1.2)
    axes.plot([1], [1], "*", color=RED, ms=10)
    axes.set(xlabel="x[0]", ylabel="x[1]")
    axes.grid(visible=False)


@picture("custom_operators")
def custom_operators(axes: Any) -> None:
    names = run_dialogue("custom_operators")
    x = rg.linspace(-4, 4, 200, dtype=rg.float64)
    curve, grad, vmap = names["asinh"], names["grad"], names["vmap"]
    for order, colour in enumerate((BLUE, ORANGE, GREEN, PURPLE)):
        label = ("asinh", "first derivative", "second derivative", "third derivative")[order]
        axes.plot(x.numpy(), vmap(curve)(x).numpy(), color=colour, label=label)
        curve = grad(curve)
    axes.set_xlabel("x")
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
