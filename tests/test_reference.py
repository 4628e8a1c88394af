"""The pages of the reference are the same on every machine."""

import inspect
import math
import re
import sys
from pathlib import Path
from runpy import run_path

import pytest

REFERENCE = run_path(str(Path(__file__).parents[1] / "tools/reference.py"))


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


@pytest.mark.once("the plain core changes no signature")
def test_no_page_of_the_reference_shows_a_path_or_an_address():
    paths = re.compile("|".join([" at 0x[0-9a-f]{6}", re.escape(sys.base_prefix), "site-packages", "lib-dynload"]))
    pages = REFERENCE["pages"]()
    assert len(pages) > 50
    assert [f"{page}: {line}" for page, text in pages.items() for line in text.splitlines() if paths.search(line)] == []
