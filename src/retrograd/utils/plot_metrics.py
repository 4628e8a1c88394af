"""Plot training curves with matplotlib."""

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from retrograd.foundation.suggestions import suggest_in_module
from retrograd.interop.atomic_write import atomic_replace

__all__ = ["plot_curves"]

FORMS = ("png", "svg", "pdf")


def plot_curves(
    path: str | os.PathLike[str],
    curves: Mapping[str, Sequence[float] | Mapping[int, float]],
    *,
    title: str = "",
    xlabel: str = "step",
    ylabel: str = "",
    log: bool = False,
    smooth: float = 0.0,
) -> None:
    """Plot curves, such as losses by step, to a file whose suffix selects the format: .png, .svg or .pdf.

    curves: name -> values, one per step from 0 on, or values by step. log: a logarithmic axis. smooth: from 0 to less
    than 1, the weight of the mean of earlier points; the unsmoothed curve is then drawn faintly.

    Raises ValueError for no curves, for one without points, for another suffix and for `smooth` out of range, and
    ImportError without matplotlib.

    >>> plot_curves("losses.png", {"train": [0.9, 0.5], "test": {1: 0.6}})  # doctest: +SKIP
    """
    form = Path(path).suffix.lower().removeprefix(".")
    if form not in FORMS:
        raise ValueError(f"plot_curves: the file's name must end in .png, .svg or .pdf, got {os.fspath(path)!r}")
    if not 0 <= smooth < 1:
        raise ValueError(f"plot_curves: smooth must be at least 0 and less than 1, got {smooth}")
    empty = [name for name, points in curves.items() if not len(points)]
    if empty or not curves:
        raise ValueError(f"plot_curves: expected curves with points, got none{f' for {empty}' if empty else ''}")
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError('pictures need matplotlib: pip install "retrograd[viz]"') from error
    with matplotlib.rc_context({"svg.hashsalt": "retrograd", "text.parse_math": False}):
        figure = Figure(figsize=(7, 4), layout="constrained")
        axes = figure.subplots()
        for name, points in curves.items():
            _draw(axes, name, points, smooth)
        axes.set(title=title, xlabel=xlabel, ylabel=ylabel, yscale="log" if log else "linear")
        if log:
            axes.yaxis.set_major_formatter("{x:g}")  # matplotlib's own labels are formulas, which are not parsed here
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", alpha=0.3)
        axes.legend(frameon=False)
        with atomic_replace(path) as unfinished:
            figure.savefig(unfinished, format=form, dpi=150, metadata={"Date": None} if form == "svg" else None)


def _draw(axes: Any, name: str, points: Sequence[float] | Mapping[int, float], smooth: float) -> None:
    steps = list(points) if isinstance(points, Mapping) else list(range(len(points)))
    values = [float(value) for value in (points.values() if isinstance(points, Mapping) else points)]
    (line,) = axes.plot(steps, smooth_values(values, smooth), label=name, marker="o" if len(values) == 1 else None)
    if smooth:
        axes.plot(steps, values, color=line.get_color(), alpha=0.25, linewidth=1)


def smooth_values(values: Sequence[float], share: float) -> list[float]:
    """Return exponential moving averages: a value k steps back has the weight `share ** k`.

    Values that are not finite stay unchanged, and are excluded from the averages.

    >>> smooth_values([1.0, 2.0], 0.5)
    [1.0, 1.6666666666666667]
    """
    total = weight = 0.0
    means = []
    for value in values:
        if math.isfinite(value):
            total, weight = total * share + value, weight * share + 1
        means.append(total / weight if math.isfinite(value) else value)
    return means


suggest_in_module(globals())
