"""Tables, text and code as HTML for notebooks, in the colors of the page around them, light or dark."""

_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"})  # importing `html` takes long
_LINE = "color-mix(in srgb, currentColor 25%, transparent)"
_SHADE = "color-mix(in srgb, currentColor 8%, transparent)"
STYLE = f"""
.retrograd-report {{ font: 13px/1.4 system-ui, sans-serif; overflow-x: auto; max-width: 100% }}
.retrograd-report p {{ margin: 4px 0; overflow-wrap: anywhere }}
.retrograd-report table {{ border-collapse: collapse; margin: 6px 0; font-size: inherit }}
.retrograd-report th, .retrograd-report td {{ text-align: right; padding: 2px 10px; white-space: nowrap;
  color: inherit; background: none; border: 0; border-bottom: 1px solid {_LINE}; font-variant-numeric: tabular-nums }}
.retrograd-report th:first-child, .retrograd-report td:first-child, .retrograd-report .text {{ text-align: left }}
.retrograd-report pre {{ overflow-x: auto; padding: 8px; margin: 4px 0; color: inherit; background: {_SHADE} }}
.retrograd-report summary {{ cursor: pointer }}
"""


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def escape(text):
    """Return text as HTML shows it literally, also in attributes.

    >>> escape("a < b"), escape(Markup("<b>"))
    ('a &lt; b', '<b>')
    """
    return text if isinstance(text, Markup) else Markup(str(text).translate(_ENTITIES))


def paragraph(text):
    """Return a paragraph of text."""
    return Markup(f"<p>{escape(text)}</p>")


def code_block(title, code):
    """Return code that is shown after a click on its title."""
    return Markup(f"<details><summary>{escape(title)}</summary><pre>{escape(code)}</pre></details>")


def table(rows, header=None, text_columns=()):
    """Return a table of rows of cells: numbers on the right; the first column and `text_columns`, indices, on the left.

    >>> table([["mul", 3]], ["name", "calls"])
    '<table><tr><th>name</th><th>calls</th></tr><tr><td>mul</td><td>3</td></tr></table>'
    """
    lines = [] if header is None else [_row(header, "th", text_columns)]
    lines += [_row(row, "td", text_columns) for row in rows]
    return Markup(f"<table>{''.join(lines)}</table>")


def _row(cells, tag, text_columns):
    kinds = [f'{tag} class="text"' if number in text_columns else tag for number in range(len(cells))]
    inner = "".join(f"<{kind}>{escape(cell)}</{tag}>" for kind, cell in zip(kinds, cells, strict=True))
    return f"<tr>{inner}</tr>"


def report(*parts, style=""):
    """Return paragraphs, tables and code as one block with its style; wide tables scroll within it."""
    return str(f'<div class="retrograd-report"><style>{STYLE}{style}</style>{"".join(map(escape, parts))}</div>')
