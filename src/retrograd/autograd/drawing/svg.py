"""The picture as SVG text, in light or dark colours as the reader's system is set."""

from collections.abc import Iterator, Sequence
from html import escape
from itertools import pairwise

from retrograd.autograd.drawing.arrange import Box, Line, Point, arrange
from retrograd.autograd.drawing.fold import Folded, fold
from retrograd.autograd.drawing.layers import Size
from retrograd.autograd.drawing.read import LEAF, MORE, OPERATOR, OUTPUT, Vertex

MARGIN, CAPTION = 28.0, 30.0
NAME_SIZE, DETAIL_SIZE = 13.0, 11.0
PADDING, HEAD = 14.0, 6.0
LONGEST_TEXT = 34
SHEETS = (8, 4)  # offsets of the sheets behind a frame

STYLE = """
.rg-graph { color-scheme: light dark; font-family: Inter, "Helvetica Neue", Helvetica, Arial, "DejaVu Sans", sans-serif;
  --page: #f8f9fb; --ink: #1f2733; --faint: #667085; --line: #94a1b3; --box: #ffffff; --edge: #cdd5e0;
  --leaf: #e3f3ef; --leaf-edge: #7cc4b8; --leaf-ink: #0b4f48; --output: #2f6fde; --output-ink: #ffffff;
  --sheet: #eef3fd; --sheet-edge: #a9c3f3; }
@media (prefers-color-scheme: dark) { .rg-graph {
  --page: #12161c; --ink: #e8ecf2; --faint: #97a3b4; --line: #66768b; --box: #1f2732; --edge: #3d4a5b;
  --leaf: #12302d; --leaf-edge: #2b8277; --leaf-ink: #bdece4; --output: #6b9bf2; --output-ink: #0d1420;
  --sheet: #182233; --sheet-edge: #3a5a94; } }
.rg-graph .page { fill: var(--page); }
.rg-graph text { fill: var(--ink); text-anchor: middle; font-size: 13px; font-weight: 600; }
.rg-graph .detail { font: 11px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
.rg-graph .caption { fill: var(--faint); text-anchor: start; font-size: 12px; font-weight: 400; }
.rg-graph .vertex rect { fill: var(--box); stroke: var(--edge); stroke-width: 1.25; }
.rg-graph .leaf rect { fill: var(--leaf); stroke: var(--leaf-edge); }
.rg-graph .leaf text { fill: var(--leaf-ink); }
.rg-graph .output rect { fill: var(--output); stroke: none; }
.rg-graph .output text { fill: var(--output-ink); }
.rg-graph .more rect { stroke-dasharray: 4 3; }
.rg-graph .more text { fill: var(--faint); }
.rg-graph .frame rect { fill: var(--sheet); stroke: var(--sheet-edge); stroke-width: 1.25; }
.rg-graph .badge rect { fill: var(--output); }
.rg-graph .badge text { fill: var(--output-ink); font-size: 12px; }
.rg-graph .arrow { fill: none; stroke: var(--line); stroke-width: 1.5; }
.rg-graph .head { fill: var(--line); stroke: none; }
"""


def render(vertices: Sequence[Vertex]) -> str:
    """Return the SVG text of a graph; inputs come before their consumers."""
    return paint(fold(vertices), "Autograd graph", caption_of(vertices))


def paint(folded: Folded, title: str, caption: str, *, style: str = "", legend: Sequence[tuple[str, str]] = ()) -> str:
    """Return the SVG text of a folded graph.

    title: a description for screen readers.  style: CSS for the classes of vertices, besides the default.
    legend: the meaning of classes, as (class, text).
    """
    picture = arrange(folded, lambda index: size_of(folded.vertices[index]))
    key, key_end = _legend(legend, MARGIN + text_width(caption, 12) + 14)
    width = max(picture.width + 2 * MARGIN, key_end + MARGIN)
    height = picture.height + 2 * MARGIN + CAPTION
    left = (width - picture.width) / 2
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="rg-graph" role="img" width="{_num(width)}" '
        f'height="{_num(height)}" viewBox="0 0 {_num(width)} {_num(height)}" style="max-width: 100%; height: auto">',
        f"<title>{escape(title)}: {caption}</title>",
        f"<style>{STYLE}{style}</style>",
        f'<rect class="page" width="{_num(width)}" height="{_num(height)}" rx="12"/>',
        f'<text class="caption" x="{_num(MARGIN)}" y="{_num(MARGIN + 4)}">{caption}</text>',
        *key,
        f'<g transform="translate({_num(left)} {_num(MARGIN + CAPTION)})">',
        *(_frame(box) for box in picture.frames),
        *(_arrow(line) for line in picture.lines),
        *(_badge(box, picture.lines) for box in picture.frames),
        *(_vertex(box, folded) for box in picture.boxes),
        "</g>",
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def caption_of(vertices: Sequence[Vertex]) -> str:
    """Return a text with the numbers of operators, leaves and outputs."""
    counts = [(kind, sum(vertex.kind == kind for vertex in vertices)) for kind in (OPERATOR, LEAF, OUTPUT)]
    plural = {OPERATOR: "operators", LEAF: "leaves", OUTPUT: "outputs"}
    return " · ".join(f"{count:,} {kind if count == 1 else plural[kind]}" for kind, count in counts)


def _legend(legend: Sequence[tuple[str, str]], x: float) -> tuple[list[str], float]:
    """Draw the legend of classes after the caption, each a small box and a label; return where it ends."""
    parts = []
    for name, words in legend:
        box = _rect(x, MARGIN - 6, (12.0, 12.0), 3.5)
        text = f'<text class="caption" x="{_num(x + 18)}" y="{_num(MARGIN + 4)}">{escape(words)}</text>'
        parts.append(f'<g class="vertex {name}">{box}{text}</g>')
        x += 18 + text_width(words, 12) + 14
    return parts, x - 14


# --------------------------------------------------------------------------------------------------------- text

# Widths in em of the widest font in STYLE (DejaVu Sans Bold), by character; other characters are as wide as capitals.
WIDTHS = {
    **dict.fromkeys("ijlI.,:;|'!`· ", 0.41),
    **dict.fromkeys("frt()[]{}/\\-", 0.51),
    **dict.fromkeys('acezksvxyJ"*–_?', 0.69),
    **dict.fromkeys("bdghnopquLFEPST0123456789", 0.75),
    **dict.fromkeys("mwMW@%—", 1.12),
}
CAPITAL, MONOSPACE = 0.86, 0.61


def text_width(text: str, size: float) -> float:
    """Return an upper bound of a text's width in pixels, at a font size in pixels.

    >>> text_width("mul", 10.0)
    22.8
    """
    return round(sum(WIDTHS.get(character, CAPITAL) for character in text) * size, 2)


def elide_middle(text: str) -> str:
    """Return a text that fits a box, with the middle of a long one elided.

    >>> elide_middle("transformer.encoder.layers.11.self_attn.in_proj_weight")
    'transformer.encod…n.in_proj_weight'
    """
    if len(text) <= LONGEST_TEXT:
        return text
    half = (LONGEST_TEXT - 1) // 2
    return f"{text[: half + 1]}…{text[-half:]}"


def _rows(vertex: Vertex) -> list[tuple[str, bool]]:
    """Return the lines of text in a box, and which of them are details."""
    rows = [(elide_middle(vertex.name), False), (elide_middle(vertex.detail), True)]
    return [row for row in rows if row[0]]


def size_of(vertex: Vertex) -> Size:
    """Return the size of a vertex's box."""
    rows = _rows(vertex)
    widths = [len(text) * MONOSPACE * DETAIL_SIZE if detail else text_width(text, NAME_SIZE) for text, detail in rows]
    return Size(max(52.0, max(widths, default=0.0) + 2 * PADDING), 28.0 if len(rows) < 2 else 44.0)


# ------------------------------------------------------------------------------------------------------- shapes


def _num(number: float) -> str:
    return f"{round(number, 1):g}"


def _rect(x: float, y: float, size: tuple[float, float], rx: float, extra: str = "") -> str:
    return (
        f'<rect {extra}x="{_num(x)}" y="{_num(y)}" width="{_num(size[0])}" height="{_num(size[1])}" rx="{_num(rx)}"/>'
    )


def _vertex(box: Box, folded: Folded) -> str:
    vertex = folded.vertices[box.content]
    middle, rx = box.x + box.width / 2, box.height / 2 if vertex.kind in (OUTPUT, MORE) else 7.0
    rows = _rows(vertex)
    first = box.y + box.height / 2 + (4.5 if len(rows) == 1 else -3.5)
    tops = (first + 16 * index for index in range(len(rows)))
    texts = [_text(middle, y, *row) for y, row in zip(tops, rows, strict=True)]
    shape = _rect(box.x, box.y, box[3:5], rx)
    classes = f"vertex {vertex.kind} {vertex.style}".rstrip()
    return (
        f'<g class="{classes}" id="{_id(box.content)}"><title>{escape(vertex.tip)}</title>{shape}{"".join(texts)}</g>'
    )


def _text(x: float, y: float, text: str, detail: bool) -> str:
    return f'<text class="{"detail" if detail else "name"}" x="{_num(x)}" y="{_num(y)}">{escape(text)}</text>'


def _id(vertex: int) -> str:
    return f"v{vertex}"


def _frame(box: Box) -> str:
    """Draw a frame on the sheets of its copies."""
    sheets = "".join(_rect(box.x + by, box.y + by, box[3:5], 12) for by in (*SHEETS, 0))
    return (
        f'<g class="frame" data-count="{box.content.count}"><title>{box.content.count} copies in a row: each '
        f"continues with the result of the one before</title>{sheets}</g>"
    )


def _badge(box: Box, lines: Sequence[Line]) -> str:
    """Draw the number of copies that a frame represents, in a corner that no arrow passes."""
    text = f"× {box.content.count:,}"
    wide = text_width(text, 12) + 16
    corners = [(x, y - 10) for y in (box.y, box.y + box.height) for x in (box.x + box.width - wide - 10, box.x + 10)]
    x, y = next((c for c in corners if not any(_overlaps_badge(line, c, wide) for line in lines)), corners[0])
    shape = _rect(x, y, (wide, 20), 10)
    return f'<g class="badge">{shape}<text x="{_num(x + wide / 2)}" y="{_num(y + 14.3)}">{text}</text></g>'


def _overlaps_badge(line: Line, corner: Point, wide: float) -> bool:
    """Return whether a line passes near a badge."""
    left, top = corner
    return any(
        y0 <= top + 20 and y1 >= top and min(x0, x1) <= left + wide + 4 and max(x0, x1) >= left - 4
        for (x0, y0), (x1, y1) in pairwise(line.points)
    )


def _arrow(line: Line) -> str:
    x, y = line.points[-1]
    head = f"M{_num(x - 3.6)} {_num(y - HEAD - 1)}L{_num(x + 3.6)} {_num(y - HEAD - 1)}L{_num(x)} {_num(y - 0.5)}Z"
    return (
        f'<g class="edge" data-from="{_id(line.source)}" data-to="{_id(line.target)}">'
        f'<path class="arrow" d="{"".join(_path_commands(line.points))}"/><path class="head" d="{head}"/></g>'
    )


def _path_commands(points: Sequence[Point]) -> Iterator[str]:
    """Yield path commands up to the arrowhead: straight down where x is constant, else a curve with vertical ends."""
    x, y = points[-1]
    points = [*(point for point in points if point[1] < y - HEAD), (x, y - HEAD)]
    yield f"M{_num(points[0][0])} {_num(points[0][1])}"
    for (x0, y0), (x1, y1) in pairwise(points):
        if abs(x0 - x1) < 0.05:
            yield f"V{_num(y1)}"
        else:
            middle = (y0 + y1) / 2
            yield f"C{_num(x0)} {_num(middle)} {_num(x1)} {_num(middle)} {_num(x1)} {_num(y1)}"
