"""The form that all pictures share: SVG without a background, with text that is dark on light and light on dark."""

import io
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

BLUE, ORANGE, GREEN, PURPLE, RED, GOLD, GREY = COLOURS = (
    "#3b82d6", "#d9762b", "#2f9e6e", "#9a6bd0", "#d1495b", "#b8901f", "#8592a6",
)  # fmt: skip
FONT = "system-ui, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
RC: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": GREY,
    "axes.grid": True,
    "axes.prop_cycle": matplotlib.cycler(color=COLOURS),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 9.5,
    "font.size": 9,
    "grid.alpha": 0.3,
    "grid.color": GREY,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "svg.fonttype": "none",
    "svg.hashsalt": "retrograd",
    "text.parse_math": False,
    "xtick.color": GREY,
    "xtick.labelcolor": "black",
    "ytick.color": GREY,
    "ytick.labelcolor": "black",
}
THEMES = (
    f"<style>svg {{ color: #1f2733; fill: currentColor; color-scheme: light dark; font-family: {FONT}; }} "
    "@media (prefers-color-scheme: dark) { svg { color: #dfe5ee; } }</style>"
)
PICTURES: dict[str, Callable[[], str]] = {}


def picture(page: str, width: float = 6.2, height: float = 2.8, columns: int = 1, rows: int = 1) -> Callable:
    """Register a function of axes, or of an array of them, as what draws the picture of a page.

    width, height: of the whole picture, in inches.
    """

    def register(draw: Callable[[Any], None]) -> Callable[[Any], None]:
        def svg() -> str:
            with matplotlib.rc_context(RC):
                figure = Figure(figsize=(width, height), layout="constrained", facecolor="none")
                axes = figure.subplots(rows, columns, subplot_kw={"facecolor": "none"})
                draw(axes)
                label_decades(figure.axes)
                file = io.StringIO()
                figure.savefig(file, format="svg", metadata={"Date": None})
            return themed(file.getvalue())

        PICTURES[page] = svg
        return draw

    return register


def label_decades(axes: Iterable[Any]) -> None:
    """Label logarithmic axes by numbers, since formulas are not parsed."""
    for part in axes:
        for axis in (part.xaxis, part.yaxis):
            if axis.get_scale() == "log":
                axis.set_major_formatter("{x:g}")


def drawing(page: str) -> Callable:
    """Register a function that returns an SVG file as text, such as a graph, as what draws the picture of a page."""

    def register(draw: Callable[[], str]) -> Callable[[], str]:
        PICTURES[page] = draw
        return draw

    return register


def themed(svg: str) -> str:
    """Return an SVG file of matplotlib with black as the colour of the theme, in fewer characters."""
    svg = re.sub(r"^.*?(?=<svg)", "", svg, flags=re.DOTALL)
    svg = re.sub(r"\s*<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"(<svg[^>]*>)", rf"\1\n {THEMES}", svg, count=1)
    svg = re.sub(r"#000000", "currentColor", svg)
    svg = re.sub(r" ?font-family: [^;\"]*;| transform=\"rotate\(-0 [^)]*\)\"", "", svg)
    svg = re.sub(r" *<!--.*?-->\n?", "", svg)
    svg = re.sub(r"(?<=[ \"(])-?\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}".rstrip("0").rstrip("."), svg)
    return svg


def write(page: str, folder: Path) -> Path:
    """Write the picture of a page to a folder, and return its path."""
    path = folder / f"{page}.svg"
    path.write_text("\n".join(line.rstrip() for line in PICTURES[page]().splitlines()) + "\n")
    return path
