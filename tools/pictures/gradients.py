"""Pictures of the guides to gradients, transforms and their tools."""

import re
from typing import Any

import numpy as np
from page import DOCS, run_block, run_dialogue
from style import BLUE, COLOURS, GREEN, GREY, ORANGE, PURPLE, RED, drawing, picture

import retrograd as rg
from retrograd.autograd.graph import draw


@drawing("autograd")
def autograd() -> str:
    names = run_dialogue("autograd")
    w = names["w"]
    return str(draw((w.exp() * w).sum() + (w**2).mean(), params={"w": w}))


@picture("derivatives", width=6.8, height=2.2, columns=4)
def derivatives(axes: Any) -> None:
    functions = {
        "relu": (rg.relu, 0.0),
        "leaky_relu": (lambda x: rg.nn.functional.leaky_relu(x, 0.3), 0.0),
        "clamp(-1, 1)": (lambda x: x.clamp(-1, 1), 1.0),
        "maximum(x, 0.5)": (lambda x: rg.maximum(x, rg.full_like(x, 0.5)), 0.5),
    }
    for part, (title, (f, kink)) in zip(axes, functions.items(), strict=True):
        x = rg.linspace(-2, 2, 801).requires_grad_()
        f(x).sum().backward()
        slopes, points = x.grad.numpy().copy(), x.detach().numpy()
        at = rg.tensor(kink, requires_grad=True)
        f(at).backward()
        slopes[1:][np.diff(slopes) != 0] = np.nan
        part.plot(points, f(x).detach().numpy(), color=GREY, label="value")
        part.plot(points, slopes, color=BLUE, label="derivative")
        part.plot([kink], [at.grad.item()], "o", ms=5, color=ORANGE, label="at the kink")
        part.set(title=title, ylim=(-1.4, 2.1), xticks=(-2, 0, 2))
    axes[0].legend(fontsize=7, loc="upper left", handlelength=1)


@picture("checkpoint", height=2.4)
def checkpoint(axes: Any) -> None:
    cost = run_dialogue("checkpoint")["revolve"].cost
    rooms = range(1, 20)
    axes.plot(rooms, [cost(20, room) for room in rooms], "o-", ms=4)
    axes.set(xlabel="values that there is room for", ylabel="repeated steps", ylim=(0, None), xticks=(1, 5, 10, 15, 19))


@picture("compile", width=6.8, height=3.2)
def compiled(axes: Any) -> None:
    text = (DOCS / "compile.md").read_text().partition("## Speed")[2]
    rows = re.findall(r"^\| ([^|]*?) \| (\d\.\d\d) \| (\d\.\d\d) \|$", text, re.MULTILINE)
    lines = np.arange(len(rows))
    axes.barh(lines - 0.2, [float(time) for _, time, _ in rows], 0.38, label="time", color=BLUE)
    axes.barh(lines + 0.2, [float(memory) for _, _, memory in rows], 0.38, label="memory", color=ORANGE)
    axes.axvline(1, color=GREY, lw=1)
    axes.set_yticks(lines, [name for name, _, _ in rows])
    axes.invert_yaxis()
    axes.set(xlabel="compiled / eager, lower is better", xlim=(0, 1.05))
    axes.grid(visible=False, axis="y")
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1))


@picture("gradcheck")
def gradcheck(axes: Any) -> None:
    for dtype, colour in ((rg.float32, ORANGE), (rg.float64, BLUE)):
        x = rg.tensor(2.0, dtype=dtype, requires_grad=True)
        (x * x.sin()).backward()
        steps = 10.0 ** -np.arange(1, 14.1 if dtype == rg.float64 else 7.1, 0.25)
        with rg.no_grad():
            ends = [((x + h) * (x + h).sin() - (x - h) * (x - h).sin()) / (2 * h) for h in steps.tolist()]
        errors = np.abs([(end - x.grad).item() for end in ends])
        axes.plot(steps, np.maximum(errors, 1e-16), "o-", ms=3, lw=1, color=colour, label=str(dtype))
    axes.axvline(1e-6, color=GREY, lw=1, ls="--")
    axes.annotate("default eps", (1e-6, 1.0), (4, 0), textcoords="offset points", va="top")
    axes.set(xscale="log", yscale="log", xlabel="step", ylabel="error of the difference", ylim=(1e-13, 3))
    axes.legend()


@picture("profiler", width=6.8, height=2.8)
def profiler(axes: Any) -> None:
    runs = [run_block("profiler", "with profile(profile_memory=True)")["prof"].key_averages() for _ in range(10)]
    fastest = min(runs, key=lambda rows: sum(row.self_cpu_time_total for row in rows))
    rows = sorted(fastest, key=lambda row: row.self_cpu_time_total)[-12:]
    axes.barh([row.key for row in rows], [row.self_cpu_time_total for row in rows])
    axes.set_xlabel("self CPU, microseconds")
    axes.grid(visible=False, axis="y")


@picture("transforms", height=3.2)
def transforms(axes: Any) -> None:
    names = run_dialogue("transforms")
    f, grad, vmap = (names[name] for name in ("f", "grad", "vmap"))
    side = np.linspace(-2, 2, 81)
    fine = np.stack(np.meshgrid(side, side, indexing="ij"), -1).reshape(-1, 2)
    heights = vmap(f)(rg.from_numpy(fine)).reshape(81, 81).numpy()
    axes.contour(side, side, heights.T, levels=np.arange(-7.5, 8), cmap="viridis", linewidths=1)
    points = fine.reshape(81, 81, 2)[4:-1:8, 4:-1:8].reshape(-1, 2)
    arrows = vmap(grad(f))(rg.from_numpy(points)).numpy()
    axes.quiver(*points.T, *arrows.T, color=ORANGE, width=0.004)
    axes.set(xlabel="x[0]", ylabel="x[1]")
    axes.grid(visible=False)


@picture("control_flow", height=2.4)
def control_flow(axes: Any) -> None:
    names = run_dialogue("control_flow")
    x = rg.logspace(-1, 2, 400)
    axes.plot(x.numpy(), names["vmap"](names["halvings"])(x).numpy(), drawstyle="steps-mid")
    axes.set(xscale="log", xlabel="x", ylabel="iterations")


@picture("sparse", width=6.2, height=3.0, columns=2)
def sparse(axes: Any) -> None:
    names = run_dialogue("sparse")
    n = 16
    residual = names["jacobian_sparsity"](names["residual"])(rg.zeros(n))
    energy = rg.func.hessian_sparsity(names["energy"])(rg.ones(n))
    for part, found, title in ((axes[0], residual, "Jacobian of residual"), (axes[1], energy, "Hessian of energy")):
        rows, columns = found.pattern.nonzero()
        part.scatter(columns, rows, marker="s", s=68, c=[COLOURS[found.colors[column]] for column in columns])
        part.set(title=f"{title}: {found.count} colors", aspect="equal", xticks=(), yticks=())
        part.set(xlim=(-0.6, n - 0.4), ylim=(n - 0.4, -0.6))
        part.grid(visible=False)
        part.spines[:].set_visible(True)


@picture("jet")
def jet(axes: Any) -> None:
    names = run_dialogue("jet")
    at = rg.tensor(0.5, dtype=rg.float64)
    value, found = rg.func.jet(rg.sin, (at,), ([rg.ones_like(at), *[0] * 8],), factorial_scaled=False)
    assert [round(d.item(), 4) for d in names["derivatives"]] == [0.8776, -0.4794, -0.8776, 0.4794]
    x = np.linspace(-4, 5.5, 200)
    axes.plot(x, np.sin(x), color=GREY, lw=3, label="sin")
    for order, colour in ((1, ORANGE), (3, GREEN), (5, PURPLE), (9, BLUE)):
        series = [value.item(), *(c.item() for c in found[:order])]
        axes.plot(x, np.polynomial.Polynomial(series)(x - 0.5), color=colour, lw=1.2, label=f"order {order}")
    axes.plot([0.5], [value.item()], "o", color=RED, ms=5)
    axes.set(xlabel="x", ylim=(-2, 2))
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1))


@picture("forward_ad")
def forward_ad(axes: Any) -> None:
    fwd = run_dialogue("forward_ad")["fwd"]
    points = rg.tensor([-1.4, -0.5, 0.6, 1.3])
    with fwd.dual_level():
        values, slopes = fwd.unpack_dual(fwd.make_dual(points, rg.ones(4)) ** 3)
    x = np.linspace(-1.8, 1.8, 200)
    axes.plot(x, x**3, color=GREY)
    for at, value, slope in zip(points.tolist(), values.tolist(), slopes.tolist(), strict=True):
        ends = np.array([at - 0.35, at + 0.35])
        axes.plot(ends, value + slope * (ends - at), color=ORANGE, lw=1.8)
        axes.plot([at], [value], "o", color=BLUE, ms=5)
    axes.set(xlabel="x", ylabel="x ** 3")


@picture("functional", width=6.4, height=2.6, columns=2)
def functional(axes: Any) -> None:
    names = run_dialogue("functional")
    x = rg.linspace(0.8, 1.25, 12)
    matrices = {
        "jacobian of cumprod": names["jacobian"](lambda x: x.cumprod(0), x),
        "hessian of the sum of cumprod": names["hessian"](lambda x: x.cumprod(0).sum(), x),
    }
    for part, (title, matrix) in zip(axes, matrices.items(), strict=True):
        mesh = part.pcolormesh(matrix.numpy(), cmap="Blues", vmin=0, edgecolor="face", linewidth=0.3)
        part.set(title=title, aspect="equal", xticks=(), yticks=())
        part.invert_yaxis()
        part.grid(visible=False)
        part.figure.colorbar(mesh, ax=part)
