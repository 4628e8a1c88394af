"""The pages of the reference are the same on every machine."""

import inspect
import math
import re
import sys
from pathlib import Path
from runpy import run_path

import pytest

TOOLS = Path(__file__).parents[1] / "tools"
REFERENCE = run_path(str(TOOLS / "reference.py"))
WIDEST = run_path(str(TOOLS / "pictures/page.py"))["WIDEST"]
FENCED = re.compile(r"^```[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)


class Setting:
    """An object whose text begins with its address."""


@pytest.mark.parametrize(
    ("default", "text"),
    [
        (1e-5, "1e-05"),
        ("a/b", "'a/b'"),
        ((1, "sum"), "(1, 'sum')"),
        (math, "math"),
        ((math,), "(math,)"),
        (re.compile, "compile"),
        (Setting, "Setting"),
        (lambda x: x, "..."),
        (Setting(), "..."),
        ([Setting()], "[...]"),
        (Path("/usr/share/data"), "..."),
        ("/usr/share/data", "..."),
    ],
)
def test_defaults_of_arguments_show_no_path_and_no_address(default, text):
    parameter = inspect.Parameter("x", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default)
    assert REFERENCE["_argument"](parameter) == f"x={text}"


def test_lines_of_the_reference_fit_the_page_and_show_no_path_and_no_address():
    paths = re.compile("|".join([" at 0x[0-9a-f]{6}", re.escape(sys.base_prefix), "site-packages", "lib-dynload"]))
    pages = REFERENCE["pages"]()
    assert len(pages) > 50
    assert [f"{page}: {line}" for page, text in pages.items() for line in text.splitlines() if paths.search(line)] == []
    code = [(page, body) for page, text in pages.items() for body in FENCED.findall(text)]
    assert len(code) > 1000
    assert [f"{page}: {line}" for page, body in code for line in body.splitlines() if len(line) > WIDEST] == []


def test_pages_have_titles_of_words():
    titles = [text.partition("\n")[0].removeprefix("# ") for text in REFERENCE["pages"]().values()]
    assert [title for title in titles if "_" in title and not title.startswith("rg.")] == []
