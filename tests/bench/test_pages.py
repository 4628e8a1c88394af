"""The scripts in benchmarks/ and the documentation pages with their results."""

import importlib
import re
from pathlib import Path

import pytest

from retrograd.bench import Row, Table, as_dict
from retrograd.bench.report import environment

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def page(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module("page")


@pytest.fixture
def everything(page):
    return importlib.import_module("all")


def test_every_script_is_run_and_has_a_section_on_a_page(page, everything):
    scripts = {
        path.stem for path in FOLDER.glob("*.py") if "report, " in path.read_text() or "report)" in path.read_text()
    }
    places = re.findall(r"^<!-- ([\w-]+) -->$", "".join(p.read_text() for p in page.PAGES), re.MULTILINE)
    assert scripts - {"peaks"} == {name.partition("-")[0] for name in everything.OPTIONS}
    assert places == list(everything.OPTIONS)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_scripts_change_parsed_options_and_make_none_of_their_own(path):
    """Options that a script makes itself lack every one that the parser gets later."""
    assert not re.search(r"\bNamespace\(\w+=", path.read_text())


def test_tables_go_between_their_marks_and_everything_else_stays(page):
    table = Table("Steps", "ms", [Row("a step", {"retrograd": [0.001]})])
    figures = {"steps": {**environment(), "tables": [as_dict(table)]}}
    text = "before\n<!-- steps -->\nold\n<!-- end of steps -->\nafter\n<!-- other -->\nkept\n<!-- end of other -->\n"
    filled = page.fill_tables(text, figures)
    assert filled.startswith("before\n<!-- steps -->\n![")
    assert "\n**Steps**\n" in filled
    assert "| a step | 1.00 |" in filled
    assert "old" not in filled
    assert "<!-- end of steps -->\nafter\n<!-- other -->\nkept\n<!-- end of other -->\n" in filled
    assert page.fill_tables(filled, figures) == filled
