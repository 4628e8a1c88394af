"""Fill in the documentation's pages with the tables and pictures of the results in build/bench.

    python benchmarks/page.py

A page has a pair of comments around the tables of each benchmark. Tables without new results are left unchanged.
"""

import json
import re
from pathlib import Path
from typing import Any

from retrograd.bench import as_markdown
from retrograd.bench.plots import draw
from retrograd.bench.report import as_table, environment_line

ROOT = Path(__file__).resolve().parents[1]
FIGURES = ROOT / "build" / "bench"
PAGES = [ROOT / "docs" / name for name in ("benchmarks.md", "benchmarks_parts.md")]
IMAGES = ROOT / "docs" / "images" / "benchmarks"
DRAWN = {  # benchmarks with a picture, and its caption
    "steps": "retrograd's time divided by each library's, by row",
    "kernels": "retrograd's time divided by each library's, by kernel",
    "scaling": "Time over size, depth, batch and number of components",
}
PLACE = re.compile(r"<!-- ([\w-]+) -->\n.*?<!-- end of \1 -->", re.DOTALL)


def fill_tables(text: str, figures: dict[str, dict[str, Any]]) -> str:
    """Return a page's text with the tables of these benchmarks filled in."""

    def place(match: re.Match[str]) -> str:
        name = match[1]
        return (
            f"<!-- {name} -->\n{tables(name, figures[name])}\n<!-- end of {name} -->" if name in figures else match[0]
        )

    return PLACE.sub(place, text)


def tables(name: str, found: dict[str, Any]) -> str:
    """Return a benchmark's picture, its tables, and the machine they were measured on."""
    picture = [f"![{DRAWN[name]}](images/benchmarks/{name}.svg)"] if name in DRAWN else []
    made = [as_markdown(as_table(table)) for table in found["tables"]]
    return "\n\n".join([*picture, *made, f"Measured on {environment_line(found)}."])


def pictures(figures: dict[str, dict[str, Any]]) -> None:
    """Draw the pictures; of several tables the curves, else the first."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    for name in DRAWN:
        if name in figures:
            made = [as_table(table) for table in figures[name]["tables"]]
            curves = [table for table in made if table.axis]
            draw(curves or made[:1], IMAGES / f"{name}.svg")


def main() -> None:
    """Fill in every page, and draw the pictures."""
    figures = {path.stem: json.loads(path.read_text()) for path in sorted(FIGURES.glob("*.json"))}
    for page in PAGES:
        page.write_text(fill_tables(page.read_text(), figures))
    pictures(figures)


if __name__ == "__main__":
    main()
