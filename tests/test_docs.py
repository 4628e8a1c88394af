"""The examples of the README and the documentation run as written."""

import doctest
import re
from pathlib import Path

import pytest

import retrograd as rg
from retrograd.core import registry

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("**/*.md"))]

# Names that an example may use without defining them.
GIVEN = {
    "pipelining.md": {"x": rg.ones(16, 64), "batches": [(rg.randn(16, 64), rg.randint(10, (16,)))] * 2},
    "laws.md": {"my_operator": registry["mul"]},
}
# These define operators that are registered already; the laws run them.
SHOWN_ONLY = {"operators.md"}


def blocks(page, language):
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)
    return [body for named, body in fenced if named == language]


def examples(page):
    return blocks(page, "python")


def dialogues(page):
    return [body for body in blocks(page, "") if ">>> " in body]


@pytest.mark.parametrize("page", [p for p in PAGES if examples(p)], ids=lambda page: page.name)
def test_python_examples_run(page):
    for example in examples(page):
        code = compile(example, str(page), "exec")
        if page.name not in SHOWN_ONLY:
            exec(code, dict(GIVEN.get(page.name, {})))


def test_the_readme_shows_an_example_of_ten_lines():
    (example,) = examples(ROOT / "README.md")
    assert len([line for line in example.splitlines() if line.strip()]) <= 10


@pytest.mark.parametrize("page", [p for p in PAGES if dialogues(p)], ids=lambda page: page.name)
def test_dialogues_answer_what_they_say(page):
    test = doctest.DocTestParser().get_doctest("\n".join(dialogues(page)), {}, page.name, str(page), 0)
    assert test.examples
    assert doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test).failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files_that_exist(page):
    for target in re.findall(r"\]\(([^)#\s]+)", page.read_text()):
        assert target.startswith("https://") or (page.parent / target).exists(), target
