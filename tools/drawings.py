"""Write the drawings of docs/how_it_works.md: docs/images/axes.svg and docs/images/levels.svg.

python tools/drawings.py

All text has a filled background, and lines have a middle tone, so that the drawings read on white and on black.
"""

from collections.abc import Sequence
from html import escape
from pathlib import Path

IMAGES = Path(__file__).parents[1] / "docs" / "images"
BLUE, GREEN, RED, DARK, LINE = "#1f4e8c", "#22694a", "#9c4221", "#33415c", "#8592a6"
FONT = "system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"


def box(x: int, y: int, width: int, colour: str, title: str, lines: Sequence[str]) -> str:
    """Return a filled box with a title and lines of text, as high as these need."""
    height = 40 + 22 * len(lines)
    rows = "".join(
        f'<text x="{x + 16}" y="{y + 50 + 22 * i}" font-size="13.5">{escape(line)}</text>'
        for i, line in enumerate(lines)
    )
    return (
        f'<rect x="{x}" y="{y}" width="{width}" height="{height + 4}" rx="8" fill="{colour}"/>'
        f'<text x="{x + 16}" y="{y + 26}" font-size="16" font-weight="600">{escape(title)}</text>{rows}'
    )


def arrow(x1: int, y1: int, x2: int, y2: int) -> str:
    """Return a line with a head at its end."""
    return f'<path d="M{x1} {y1}L{x2} {y2}" stroke="{LINE}" stroke-width="2.5" marker-end="url(#head)"/>'


def svg(width: int, height: int, label: str, parts: Sequence[str]) -> str:
    """Return the whole file."""
    head = (
        f'<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" orient="auto">'
        f'<path d="M0 0L8 4L0 8z" fill="{LINE}"/></marker></defs>'
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="{escape(label)}" font-family="{escape(FONT)}" fill="#fff">\n{head}\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def axes() -> str:
    """Draw the three axes, which meet in one call."""
    operators = [
        "what is computed:",
        "mul, softmax, linalg.solve, yours",
        "One class each: kernel,",
        "derivatives, batching, samples.",
    ]
    levels = [
        "what happens to it:",
        "gradients, batches, traces",
        "One class each, which sees",
        "every call.",
    ]
    arrays = [
        "what holds the numbers:",
        "NumPy's arrays, ragged arrays",
        "One namespace each, which has",
        "the kernels.",
    ]
    return svg(
        860,
        296,
        "Operators, levels and arrays vary independently, and meet in a call",
        [
            box(10, 10, 260, BLUE, "Operators", operators),
            box(300, 10, 260, GREEN, "Levels", levels),
            box(590, 10, 260, RED, "Arrays", arrays),
            arrow(140, 144, 140, 208),
            arrow(430, 144, 430, 208),
            arrow(720, 144, 720, 208),
            box(
                10,
                214,
                840,
                DARK,
                "One call",
                ["the operator, under the level that is active, on the arrays that its tensors hold"],
            ),
        ],
    )


def levels() -> str:
    """Draw a product inside of vmap(grad(f)), from the program down to NumPy."""
    rows = [
        (DARK, "The program", ["f(x) computes x * x for one example: x has shape (2,)"]),
        (GREEN, "The level of grad", ["records how the product was made, a GradFn, and passes the call on"]),
        (GREEN, "The level of vmap", ["asks mul for its batching rule: all examples at once, shape (3, 2)"]),
        (RED, "The ground", ["np.multiply on an array of shape (3, 2)"]),
    ]
    parts = []
    for i, (colour, title, lines) in enumerate(rows):
        parts.append(box(130, 10 + 96 * i, 600, colour, title, lines))
        if i:
            parts += [arrow(250, 96 * i - 18, 250, 96 * i + 6), arrow(610, 96 * i + 6, 610, 96 * i - 18)]
    return svg(860, 376, "A call goes down through the levels, and its result comes back up", parts)


def main() -> None:
    """Write both drawings."""
    for name, text in {"axes": axes(), "levels": levels()}.items():
        (IMAGES / f"{name}.svg").write_text(text)


if __name__ == "__main__":
    main()
