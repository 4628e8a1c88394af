"""Pictures of the guides for beginners, and of those for users of other libraries."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from page import DOCS, blocks, run_block, run_dialogue
from style import BLUE, GREEN, ORANGE, PURPLE, RED, picture

import retrograd as rg


@picture("start")
def start(axes: Any) -> None:
    names = run_dialogue("start")
    points = names["points"].numpy()
    found = {"height": names["model"](names["x"]).squeeze(), "slope": names["slope"], "curvature": names["curvature"]}
    exact = (np.sin(points), np.cos(points), -np.sin(points))
    for (label, curve), true, colour in zip(found.items(), exact, (BLUE, ORANGE, GREEN), strict=True):
        axes.plot(points, curve.detach().numpy(), color=colour, label=label)
        axes.plot(points, true, ":", color=colour, lw=1.2)
    axes.set_xlabel("x")
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1))


@picture("demo", width=6.8, height=2.6, columns=2)
def demo(axes: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "retrograd", "demo", "--quiet", "--output", folder]
        subprocess.run(command, check=True, capture_output=True)
        metrics = json.loads(Path(folder, "metrics.json").read_text())
    left, right = axes
    epochs = np.arange(1, len(metrics["accuracies"]) + 1)
    losses = np.array(metrics["losses"])
    left.plot(np.arange(1, len(losses) + 1) * epochs[-1] / len(losses), losses)
    left.set(yscale="log", xlabel="epoch", title="training loss of each batch")
    right.plot(epochs, 100 * np.array(metrics["accuracies"]), "o-", color=GREEN, ms=3)
    right.set(xlabel="epoch", title="test accuracy, %")


@picture("from_pytorch", width=6.8, height=2.6, columns=2)
def from_pytorch(axes: Any) -> None:
    import torch

    code = next(body for body in blocks((DOCS / "from_pytorch.md").read_text(), "python") if "AdamW" in body)
    setup, step = code.split("\n\n")[1], code.split("\n\n")[2]
    ours: dict[str, Any] = {"rg": rg, "nn": rg.nn}
    theirs: dict[str, Any] = {"rg": torch, "nn": torch.nn}
    for names in (ours, theirs):
        exec(setup, names)
    theirs["model"].load_state_dict({name: torch.tensor(v.numpy()) for name, v in ours["model"].state_dict().items()})
    theirs |= {name: torch.tensor(ours[name].numpy()) for name in ("x", "y")}
    losses: list[list[float]] = [[], []]
    for _ in range(300):
        for names, list_ in zip((ours, theirs), losses, strict=True):
            exec(step, names)
            list_.append(names["loss"].item())
    left, right = axes
    left.plot(losses[0], label="retrograd", lw=3.5, alpha=0.5)
    left.plot(losses[1], "--", label="PyTorch", lw=1.3)
    left.set(xlabel="step", title="loss")
    left.legend()
    right.plot(np.abs(np.subtract(*losses)), color=PURPLE, lw=1)
    right.set(xlabel="step", title="difference of the losses")
    right.ticklabel_format(axis="y", scilimits=(0, 0))


@picture("from_jax", height=2.4)
def from_jax(axes: Any) -> None:
    gradients = run_block("from_jax", "vmap(grad(predict)")["gradients"]["w"].flatten(1).numpy()
    limit = np.abs(gradients).max()
    mesh = axes.pcolormesh(gradients, cmap="RdBu", vmin=-limit, vmax=limit)
    axes.set(xlabel="entry of w", ylabel="example", yticks=np.arange(10) + 0.5, xticks=np.arange(12) + 0.5)
    axes.set_xticklabels(range(12))
    axes.set_yticklabels(range(10))
    axes.grid(visible=False)
    axes.figure.colorbar(mesh, ax=axes)


@picture("from_autograd")
def from_autograd(axes: Any) -> None:
    names = run_block("from_autograd", "def tanh(x)")
    points = np.linspace(-4, 4, 121)
    curve, grad = names["tanh"], names["grad"]
    for order, colour in enumerate((BLUE, ORANGE, GREEN, PURPLE, RED)):
        values = np.array([curve(point) for point in points])
        axes.plot(points, values / np.abs(values).max(), color=colour, label=f"order {order}" if order else "tanh")
        curve = grad(curve)
    axes.set_xlabel("x")
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
