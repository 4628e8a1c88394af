"""Plot loss and accuracy of a training."""

from pathlib import Path
from typing import Any

from retrograd.cli.demo.training import Trainer
from retrograd.cli.errors import needs_extra
from retrograd.interop.atomic_write import atomic_replace
from retrograd.pipelining.timeline.pictures import FAINT, FONTS, INK

LOSS, ACCURACY, GRID = "#2f6fde", "#0c8f82", "#e4e8ee"


def check_pictures() -> None:
    """Raise a UsageError if matplotlib is missing."""
    try:
        import matplotlib  # noqa: F401
    except ModuleNotFoundError as error:
        needs_extra("the demo", error.name, "demo")


def draw(path: Path, trainer: Trainer) -> None:
    """Write loss and accuracy over the epochs as a PNG."""
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.font_manager import get_font_names

    known = set(get_font_names())
    with matplotlib.rc_context({"font.family": next((font for font in FONTS if font in known), "sans-serif")}):
        figure = Figure(figsize=(10, 4), facecolor="white", layout="constrained")
        left, right = figure.subplots(1, 2)
        _draw_losses(left, trainer)
        _draw_accuracies(right, trainer)
        with atomic_replace(path) as unfinished:
            figure.savefig(unfinished, format="png", dpi=200)


def _draw_losses(axes: Any, trainer: Trainer) -> None:
    losses, per_epoch = trainer.history.losses, trainer.steps_per_epoch
    means = [sum(part) / len(part) for i in range(0, len(losses), per_epoch) if (part := losses[i : i + per_epoch])]
    axes.plot(_epochs(losses, per_epoch), losses, color=LOSS, alpha=0.3, linewidth=1.2, label="each batch")
    axes.plot(range(1, len(means) + 1), means, color=LOSS, linewidth=2.2, marker="o", markersize=4, label="epoch mean")
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.legend(frameon=False, labelcolor=INK, fontsize=10)
    _style(axes, "Training loss", "cross-entropy (log scale)")


def _draw_accuracies(axes: Any, trainer: Trainer) -> None:
    percent = [100 * accuracy for accuracy in trainer.history.accuracies]
    axes.plot(range(1, len(percent) + 1), percent, color=ACCURACY, linewidth=2.2, marker="o", markersize=4)
    if percent:
        axes.annotate(
            f"{percent[-1]:.1f} %", (len(percent), percent[-1]), (0, -16), textcoords="offset points",
            ha="right", color=ACCURACY, fontsize=11, weight="bold",
        )  # fmt: skip
    _style(axes, f"Test accuracy on {len(trainer.digits.test_y)} unseen scans", "read correctly, %")


def _epochs(losses: list[float], per_epoch: int) -> list[float]:
    return [(i + 1) / per_epoch for i in range(len(losses))]


def _style(axes: Any, title: str, y: str) -> None:
    axes.set_title(title, loc="left", color=INK, fontsize=12, weight="bold", pad=10)
    axes.set_xlabel("epoch", color=FAINT)
    axes.set_ylabel(y, color=FAINT)
    axes.tick_params(colors=FAINT, length=0, which="both")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.grid(color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[:].set_visible(False)
