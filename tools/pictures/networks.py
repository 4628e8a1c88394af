"""Pictures of the guides to networks, training and graphs."""

import tempfile
import zipfile
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.colors import ListedColormap
from page import run_block
from sklearn.datasets import load_iris
from style import BLUE, COLOURS, GREEN, GREY, ORANGE, RC, drawing, picture, themed

import retrograd as rg
from retrograd import fx, nn
from retrograd.utils.plot_metrics import plot_curves


@picture("nn", width=6.8, height=3.4, columns=4, rows=2)
def layers(axes: Any) -> None:
    kinds = (nn.ELU, nn.SELU, nn.SiLU, nn.Mish, nn.GELU, nn.Hardswish, nn.Softplus, nn.Tanhshrink)
    for part, kind in zip(axes.flat, kinds, strict=True):
        x = rg.linspace(-4, 4, 200).requires_grad_()
        y = kind()(x)
        y.sum().backward()
        part.plot(x.detach().numpy(), y.detach().numpy(), color=BLUE)
        part.plot(x.detach().numpy(), x.grad.numpy(), color=ORANGE, lw=1.2)
        part.set(title=kind.__name__, ylim=(-2, 4), xticks=(-4, 0, 4), yticks=(-2, 0, 2, 4))
        part.label_outer()


@picture("training", height=2.5)
def training(axes: Any) -> None:
    optim, kinds = rg.optim, rg.optim.lr_scheduler

    def rates(make: Any) -> list[float]:
        optimizer = optim.SGD(nn.Linear(2, 1).parameters(), lr=0.1)
        schedule, found = make(optimizer), []
        for _ in range(100):
            found.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            schedule.step()
        return found

    def warmup(optimizer: Any) -> Any:
        parts = [kinds.LinearLR(optimizer, 0.1, total_iters=5), kinds.CosineAnnealingLR(optimizer, T_max=95)]
        return kinds.SequentialLR(optimizer, parts, milestones=[5])

    schedules = {
        "OneCycleLR": lambda optimizer: kinds.OneCycleLR(optimizer, max_lr=0.1, total_steps=101),
        "StepLR": lambda optimizer: kinds.StepLR(optimizer, step_size=30, gamma=0.3),
        "CosineAnnealingWarmRestarts": lambda optimizer: kinds.CosineAnnealingWarmRestarts(optimizer, T_0=25),
        "warm-up, then cosine": warmup,
    }
    for name, make in schedules.items():
        axes.plot(rates(make), label=name, lw=1.4)
    axes.set(xlabel="step", ylabel="learning rate")
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1))


@picture("distributions")
def distributions(axes: Any) -> None:
    rayleigh = run_block("distributions", "class Rayleigh")["Rayleigh"]
    x = rg.linspace(0.01, 8, 300)
    for scale, colour in ((1.0, BLUE), (2.0, ORANGE)):
        d = rayleigh(rg.tensor(scale))
        draws = d.sample((20_000,)).numpy()
        axes.hist(draws, bins=60, range=(0, 8), density=True, color=colour, alpha=0.35, label=f"draws, scale {scale:g}")
        axes.plot(x.numpy(), d.log_prob(x).exp().numpy(), color=colour, label="density")
    axes.set_xlabel("value")
    axes.legend()


@drawing("watching")
def watching() -> str:
    noise = np.random.default_rng(0).normal(size=100)
    with tempfile.TemporaryDirectory() as folder, matplotlib.rc_context(RC):
        path = Path(folder, "losses.svg")
        curves = {
            "train": [(1 + 0.2 * noise[step]) / (step + 1) for step in range(100)],
            "test": {step: 1.3 / (step + 1) for step in range(9, 100, 10)},
        }
        plot_curves(path, curves, log=True, smooth=0.9)
        return themed(path.read_text()).replace("fill: #ffffff", "fill: none")


@picture("data", height=2.4)
def data(axes: Any) -> None:
    utils = rg.utils.data
    dataset = utils.TensorDataset(np.arange(80))
    loader = utils.DataLoader(dataset, batch_size=32, shuffle=True, generator=rg.Generator(1))
    begin = 0
    for i, (batch,) in enumerate([*loader, *loader]):
        axes.plot(np.arange(begin, begin + len(batch)), batch.numpy(), "o", ms=3, color=COLOURS[i % 3])
        begin += len(batch)
    axes.axvline(79.5, color=GREY, lw=1, ls="--")
    axes.set(xlabel="position in the order of loading", ylabel="example", xticks=(0, 32, 64, 80, 112, 144))


@picture("sklearn", height=3.0)
def estimator(axes: Any) -> None:
    names = run_block("sklearn", "make_pipeline(StandardScaler()")
    X, y = load_iris(return_X_y=True)
    petals = X[:, 2:]
    model = names["search"].best_estimator_.fit(petals, y)
    a, b = np.meshgrid(np.linspace(0.8, 7.2, 240), np.linspace(0, 2.7, 160))
    regions = model.predict(np.c_[a.ravel(), b.ravel()]).reshape(a.shape)
    colours = (BLUE, ORANGE, GREEN)
    axes.contourf(a, b, regions, levels=[-0.5, 0.5, 1.5, 2.5], cmap=ListedColormap(colours), alpha=0.25)
    for kind, colour in enumerate(colours):
        axes.plot(*petals[y == kind].T, "o", ms=3.5, color=colour, label=load_iris().target_names[kind])
    axes.set(xlabel="petal length, cm", ylabel="petal width, cm")
    axes.grid(visible=False)
    axes.legend(loc="upper left")


@drawing("graphs")
def graphs() -> str:
    names = run_block("graphs", "fx.split_module(module, net, stage)")
    return str(names["picture"])


@drawing("export")
def export() -> str:
    program = run_block("export", "class Gated")["program"]
    return str(fx.draw(program.graph_module))


@picture("storage", width=6.8, height=1.7)
def storage(axes: Any) -> None:
    names = run_block("storage", 'export.save(captured, f"{folder}/linear.zip")')
    path = Path(names["folder"], "linear.zip")
    with zipfile.ZipFile(path) as file:
        parts = [(info.filename, info.header_offset, info.file_size) for info in file.infolist()]
        directory = file.start_dir
    (graph, *first), (tensors, *second) = parts
    bars = [(graph, *first, BLUE), (tensors, *second, ORANGE)]
    for name, begin, length, colour in (*bars, ("directory", directory, path.stat().st_size - directory, GREY)):
        axes.barh(0, length, left=begin, color=colour, height=0.6, label=f"{name}, {length} bytes")
    axes.set(xlabel="byte of the file", yticks=(), xlim=(0, path.stat().st_size))
    axes.spines["left"].set_visible(False)
    axes.legend(ncols=3, loc="lower left", bbox_to_anchor=(0, 1))
